"""Arrays of an .npz file, checked by their headers before anything is unpacked.

A member's header says its dtype and shape. What is not asked for, does not fit or is too large is
never unpacked, so a small file that unpacks to gigabytes costs nothing.
"""

import ast
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np

from vitruvian.golden.fp import FloatFormat, convert

__all__ = ["MAX_BYTES", "Header", "Misfit", "allowed_dtypes", "codes", "read_arrays", "rounded"]

#: Bytes of arrays that one file may hold.
MAX_BYTES = 256 << 20

_MAX_HEADER = 1000


class Misfit(ValueError):
    """Arrays do not fit; the message is complete."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a member says of its array: its dtype, shape and order in memory."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"


def read_arrays(
    path: Path, known: tuple[str, ...], check: Callable[[Mapping[str, Header]], object]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read the members that have a known name.

    Parameters
    ----------
    path : Path
        The ``.npz`` file.
    known : tuple of str
        Names of the arrays that are read.
    check : callable
        Called with the headers of those that are there, before any is unpacked; it raises
        `Misfit` for what does not fit.

    Returns
    -------
    arrays : dict of ndarray
        In the machine's byte order.
    others : list of str
        Names of the members that were not read.

    Raises
    ------
    ValueError
        If it is no .npz file of plain arrays, or they take more than `MAX_BYTES`.
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
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        raise ValueError(f"{path.name} must be an .npz file of plain arrays ({error})") from None
    return arrays, [name for name in members if name not in known]


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    with archive.open(info) as file:
        return _read_header(file)


def _read_header(file: IO[bytes]) -> Header:
    """Read what precedes an array's data, by NumPy's format specification.

    NumPy's own reader refuses ``f1``, as which it stores ml_dtypes' float8_e5m2.
    """
    version = np.lib.format.read_magic(file)
    length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if length > _MAX_HEADER:
        raise ValueError("an array's header is too long")
    facts = ast.literal_eval(file.read(length).decode())
    descr, shape = facts["descr"], facts["shape"]
    if not isinstance(descr, str) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("records are not read")
    dtype = np.dtype(descr.replace("f1", "V1"))
    if dtype.hasobject:
        raise ValueError("Python objects are not read")
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


# -------------------------------------------------------------------- numbers


def allowed_dtypes(format: FloatFormat) -> str:
    """Text that lists the dtypes that `codes` takes for a format."""
    if format.storage_bits == 32:
        return f"uint32 codes of {format.name}, float32 or float16"
    own = f"uint{format.storage_bits} codes of {format.name}"
    return f"{own}, float16, float32 or uint32 (fp32 bit patterns)"


def codes(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """Codes of what an array holds.

    Parameters
    ----------
    values : ndarray
        Codes of `format`: unsigned or signed integers of its width, or the void that NumPy makes
        of a stored ml_dtypes array. Else fp32 bit patterns (uint32), float16 or float32, of values
        that `format` holds exactly.

    Raises
    ------
    ValueError
        If the dtype is another, or a value is none of the format's.
    """
    bits = _as_codes(values, format)
    if bits is not None:
        return bits
    bits = _as_fp32(values, format, name)
    found = np.asarray(convert(bits, "fp32", format))
    back = np.asarray(convert(found, format, "fp32"))
    inexact = (back != bits) & ~np.isnan(bits.view(np.float32))
    if inexact.any():
        raise ValueError(
            f"{name} must hold values of {format.name}, not {int(bits[inexact][0]):#010x}"
        )
    return found


def rounded(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """Codes of what an array holds as in `codes`, but values are rounded to nearest."""
    bits = _as_codes(values, format)
    if bits is not None:
        return bits
    return np.asarray(convert(_as_fp32(values, format, name), "fp32", format))


def _as_codes(values: np.ndarray, format: FloatFormat) -> np.ndarray | None:
    """The array itself if it holds codes of the format, else None."""
    bits = 8 * values.dtype.itemsize
    float_code = values.dtype.kind == "f" and format.name in (f"fp{bits}", f"tf{bits}")
    if bits != format.storage_bits or not (values.dtype.kind in "uiV" or float_code):
        return None
    return np.ascontiguousarray(values).view(f"u{bits // 8}")


def _as_fp32(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """fp32 bit patterns of an array that does not hold codes of the format."""
    if values.dtype in (np.uint32, np.int32, np.float32):
        return np.ascontiguousarray(values).view(np.uint32)
    if values.dtype == np.float16:
        return np.asarray(convert(np.ascontiguousarray(values).view(np.uint16), "fp16", "fp32"))
    raise ValueError(f"{name} must be {allowed_dtypes(format)}, not {values.dtype}")
