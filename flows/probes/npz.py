"""Results of a machine in an .npz file."""

import json
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from vitruvian.errors import UserError
from vitruvian.flows.probes.file import Section
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import (
    FORMATS,
    INT_FORMATS,
    OTHER_FORMATS,
    FloatFormat,
    IntFormat,
)
from vitruvian.golden.fp.scales import SCALES
from vitruvian.golden.machines.probe import Results

__all__ = ["read_npz"]

_LARGEST = 1 << 28  # bytes of arrays
_SIZES = {1: "fp8e4m3", 2: "fp16", 4: "fp32", 8: "fp64"}


def read_npz(path: Path, input: str | None) -> tuple[str, list[Section]]:
    """Read the codes ``a``, ``b``, ``c`` and ``d`` (or ``d_fp32`` and ``d_fp16``) of a file.

    Parameters
    ----------
    path : Path
    input : str, optional
        Format of the operands, or two joined by _. By default the header of the file says it.

    Returns
    -------
    device : str
        An empty text.
    sections : list of Section
        One for each array of results.

    Raises
    ------
    UserError
        If the file has not these arrays, or if a format is unknown or does not fit.
    """
    try:
        with np.load(path) as file:
            size = sum(info.file_size for info in file.zip.infolist())  # pyright: ignore
            if size > _LARGEST:
                raise UserError(f"{path} must have at most {_LARGEST >> 20} MiB of arrays")
            arrays = {name: file[name] for name in file.files}
    except UserError:
        raise
    except (OSError, ValueError, EOFError, BadZipFile, AttributeError, MemoryError) as error:
        raise UserError(f"{path} must be an .npz file of unsigned codes: {error}") from None
    header = _header(arrays.get("header"))
    missing = [n for n in "ab" if n not in arrays]
    outputs = [n for n in ("d", "d_fp32", "d_fp16") if n in arrays]
    if missing or not outputs:
        raise UserError(f"{path} must have the arrays a, b and d, not lack {[*missing, 'd'][0]}")
    names = input.split("_") if input else [header.get(n, "") for n in "ab"]
    names = [n for n in names if n] or [str(arrays["a"].dtype)]
    a, b = (_format(n, path) for n in (names[0], names[-1]))
    sections: list[Section] = []
    for name in outputs:
        d = arrays[name]
        out = name[2:] or header.get("d") or _SIZES.get(d.dtype.itemsize, "fp32")
        sections.append(_section(path, arrays, d, a, b, _format(out, path), header))
    return "", sections


def _header(array: np.ndarray | None) -> dict[str, str]:
    try:
        found = json.loads(str(array)) if array is not None else {}
        formats = found.get("formats", {})
        return {k: v for k, v in formats.items() if isinstance(v, str)}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _format(name: str, path: Path) -> FloatFormat | IntFormat:
    names: dict[str, FloatFormat | IntFormat] = {**INT_FORMATS}
    for f in (*FORMATS.values(), *OTHER_FORMATS.values()):
        names |= dict.fromkeys((f.name, *f.aliases), f)
    # Names of AMD's and Gaudi's formats in headers of sets
    more = {"fp8": "fp8e4m3fnuz", "bf8": "fp8e5m2fnuz", "xf32": "tf32", "e4m3i": "fp8e4m3i"}
    short = more.get(name, name)
    if short not in names:
        raise UserError(
            f"format of {path} must be given with --input, as fp16 or e4m3_e5m2, not {name!r}"
        )
    return names[short]


def _section(
    path: Path,
    arrays: dict[str, np.ndarray],
    d: np.ndarray,
    a: FloatFormat | IntFormat,
    b: FloatFormat | IntFormat,
    out: FloatFormat | IntFormat,
    header: dict[str, str],
) -> Section:
    rows = len(d) if d.ndim == 1 else 0
    c = arrays.get("c", np.zeros(rows, d.dtype))
    scales = [arrays.get(n) for n in ("scale_a", "scale_b")]
    for name, x, axes in (("a", arrays["a"], 2), ("b", arrays["b"], 2), ("c", c, 1)):
        if x.dtype.kind not in "iu" or x.ndim != axes or len(x) != rows or not rows:
            raise UserError(f"{name} in {path} must have {axes} axes of {rows} rows of integers")
    if d.dtype.kind not in "iu" or arrays["a"].shape != arrays["b"].shape:
        raise UserError(f"a and b in {path} must have one shape, and d must hold integers")
    scale = None
    if scales[0] is not None and scales[1] is not None:
        name = header.get("scale", "ue8m0")
        scale = SCALES.get(name)
        terms = arrays["a"].shape[1]
        fit = scales[0].ndim == 2 and scales[0].shape == scales[1].shape
        if scale is None or not fit or len(scales[0]) != rows or terms % scales[0].shape[1]:
            raise UserError(f"scales in {path} must be codes for blocks of each row")
    return Section(
        path.stem,
        Results(
            input=a,
            input_b=b,
            output=out,
            a=_codes(arrays["a"], a, "a", path),
            b=_codes(arrays["b"], b, "b", path),
            c=_codes(c, out, "c", path),
            d=_codes(d, out, "d", path),
            scale=scale,
            scale_a=None if scale is None else scales[0],
            scale_b=None if scale is None else scales[1],
        ),
    )


def _codes(array: np.ndarray, format: FloatFormat | IntFormat, name: str, path: Path) -> np.ndarray:
    """Return codes with the type of their format; fp32 patterns become codes of the format."""
    if isinstance(format, IntFormat):
        return array.astype(f"u{format.bits // 8}")
    dtype = code_dtype(format)
    if array.dtype.itemsize == 4 and dtype.itemsize < 4:
        from vitruvian.golden.fp.arith import convert

        return convert(array.astype(np.uint32), FORMATS["fp32"], format)
    codes = array.astype(dtype) if array.dtype.itemsize >= dtype.itemsize else array
    if array.dtype.itemsize > dtype.itemsize and (codes != array).any():
        raise UserError(f"{name} in {path} must hold codes of {format}")
    return codes.view(dtype) if codes.dtype.itemsize == dtype.itemsize else codes.astype(dtype)
