"""Reading of NumPy files: .npy, and .npz, whose arrays are checked before they are unpacked.

The header of a member contains its dtype and its shape. A member that is not needed, does not fit
or is too large is never unpacked, so a small file that would unpack to gigabytes costs nothing.
"""

import ast
import io
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import MOST_BYTES, read_bounded, shown_size

#: Largest total size in bytes of the arrays of a file.
MAX_BYTES = 256 << 20

_MAX_HEADER = 1000


class Misfit(ValueError):
    """Arrays that do not fit together; the user sees the message unchanged."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The dtype, the shape and the memory order of an array, from its header."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"


def read_arrays(
    path: Path, known: tuple[str, ...], check: Callable[[Mapping[str, Header]], object]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read the members of a file that have a known name.

    Parameters
    ----------
    path : Path
        The ``.npz`` file.
    known : tuple of str
        Names of the arrays to read.
    check : callable
        Function that is called with the headers of these arrays before any array is unpacked. It
        raises ``Misfit`` if they do not fit.

    Returns
    -------
    arrays : dict of ndarray
        Arrays by name, in the byte order of this machine.
    others : list of str
        Names of the members that were not read.

    Raises
    ------
    ValueError
        If the file is not an .npz file of plain arrays, or the arrays are larger than
        ``MAX_BYTES``.
    OSError
        If the file cannot be read.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} must be an .npz file, not a folder or device")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = {name: members[name] for name in known if name in members}
            headers = {name: _header(archive, info) for name, info in chosen.items()}
            _check_size(path, headers)
            check(headers)
            arrays = {name: _array(archive, info) for name, info in chosen.items()}
    except (OSError, MemoryError, Misfit):
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many types for damaged files
        raise ValueError(f"{path.name} must be an .npz file of plain arrays ({error})") from None
    return arrays, [name for name in members if name not in known]


def read_all_arrays(
    path: str | os.PathLike[str], *, thing: str = "input", limit: int = MOST_BYTES
) -> dict[str, np.ndarray]:
    """Return all arrays of a NumPy file of bounded size; see ``files.read_bounded``.

    Parameters
    ----------
    path : str or path-like
        The ``.npy`` or ``.npz`` file.
    thing : str
        Name of the file's role, for messages.
    limit : int
        Largest number of bytes of the file, and of all arrays of an ``.npz`` after unpacking.

    Returns
    -------
    dict of str to ndarray
        The arrays of an ``.npz`` by their names; the array of an ``.npy`` has the name "".

    Raises
    ------
    UserError
        If the file is too large, or not one of arrays of numbers.
    OSError
        If the file cannot be opened or read.
    """
    content = io.BytesIO(read_bounded(path, thing=thing, limit=limit))
    try:
        if not zipfile.is_zipfile(content):
            content.seek(0)
            return {"": np.load(content, allow_pickle=False)}
        with zipfile.ZipFile(content) as archive:
            members = archive.infolist()
            # A member is never read beyond the size that the archive states for it.
            size = sum(member.file_size for member in members)
            if size > limit:
                allowed, found = shown_size(limit), shown_size(size)
                raise UserError(f"{thing} must unpack to at most {allowed}, not {found}")
            return {info.filename.removesuffix(".npy"): _array(archive, info) for info in members}
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many types for damaged files
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{thing} must be a NumPy file of numbers: {reason}") from None


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    with archive.open(info) as file:
        return _read_header(file)


def _read_header(file: IO[bytes]) -> Header:
    """Read the header of an array, by the specification of NumPy's file format.

    NumPy's own reader refuses the dtype ``f1``, which NumPy writes for float8_e5m2 of ml_dtypes.
    """
    version = np.lib.format.read_magic(file)
    length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if length > _MAX_HEADER:
        raise ValueError("an array's header is too long")
    facts = ast.literal_eval(file.read(length).decode())
    descr, shape = facts["descr"], facts["shape"]
    if not isinstance(descr, str) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("structured arrays are not allowed")
    dtype = np.dtype(descr.replace("f1", "V1"))
    if dtype.hasobject:
        raise ValueError("Python objects are not allowed")
    return Header(dtype=dtype, shape=tuple(shape), order="F" if facts["fortran_order"] else "C")


def _check_size(path: Path, headers: Mapping[str, Header]) -> None:
    size = sum(h.dtype.itemsize * math.prod(h.shape) for h in headers.values())
    if size > MAX_BYTES:
        raise Misfit(f"{path.name} must hold at most {MAX_BYTES:,} bytes of arrays, not {size:,}")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as file:
        header = _read_header(file)
        size = header.dtype.itemsize * math.prod(header.shape)
        flat = np.frombuffer(file.read(size), header.dtype)
    array = flat.reshape(header.shape, order=header.order)
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
