"""Results of a machine in an .npz file."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of
from vitruvian.common.npz import Header, Misfit, read_arrays
from vitruvian.flows.probes.file import ProbeSection
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

_OUTPUTS = ("d", "d_fp32", "d_fp16")
_KNOWN = ("a", "b", "c", *_OUTPUTS, "scale_a", "scale_b", "header")
# The format of results without a name, by the bytes of their type.
_SIZES = {1: "fp8e4m3", 2: "fp16", 4: "fp32", 8: "fp64"}


def read_npz(path: Path, input: str | None) -> tuple[str, list[ProbeSection]]:
    """Read the codes ``a``, ``b``, ``c`` and ``d`` (or ``d_fp32`` and ``d_fp16``) of a file.

    Parameters
    ----------
    input : str, optional
        Format of the operands, or two joined by _. By default the header of the file says it.

    Returns
    -------
    device : str
        An empty text.
    sections : list of ProbeSection
        One for each array of results.

    Raises
    ------
    UserError
        If the file has not these arrays, if they do not fit together or have more than 256 MiB,
        or if a format is unknown or does not fit.
    """
    try:
        arrays, _ = read_arrays(path, _KNOWN, _check)
    except Misfit as error:
        text = str(error)
        # The size is refused with the file's name in front, other misfits without it.
        raise UserError(text if text.startswith(path.name) else f"{path}: {text}") from None
    except (ValueError, MemoryError) as error:
        raise UserError(str(error) or f"{path} is too large for the memory") from None
    except OSError as error:
        raise UserError(f"{path}: {reason_of(error)}") from None
    header = _header(arrays.get("header"))
    outputs = [n for n in _OUTPUTS if n in arrays]
    names = input.split("_") if input else [header.get(n, "") for n in "ab"]
    # A NumPy type such as float16 is the last resort; integers have no format of their own.
    names = [n for n in names if n] or [str(arrays["a"].dtype)]
    a, b = (_format(n, path) for n in (names[0], names[-1]))
    sections: list[ProbeSection] = []
    for name in outputs:
        d = arrays[name]
        # ``d_fp16`` names its own format.
        out = name[2:] or header.get("d") or _SIZES.get(d.dtype.itemsize, "fp32")
        sections.append(_section(path, arrays, d, a, b, _format(out, path), header))
    return "", sections


def _check(found: Mapping[str, Header]) -> None:
    """Raise ``Misfit`` unless the arrays have the shapes and types of operands and results."""
    outputs = [n for n in _OUTPUTS if n in found]
    lacking = [n for n in "ab" if n not in found] + ["d"] * (not outputs)
    if lacking:
        raise Misfit(f"arrays must be a, b and d, not lack {lacking[0]}")
    a = found["a"].shape
    if len(a) != 2 or 0 in a:
        raise Misfit(f"a must have the shape (rows, terms) without zeros, not {a}")
    scales = found.get("scale_a", found.get("scale_b"))
    shapes = {"b": a, "c": a[:1], **dict.fromkeys(outputs, a[:1])}
    if scales is not None:
        blocks = scales.shape[1:]
        if len(scales.shape) != 2 or scales.shape[0] != a[0] or not blocks[0] or a[1] % blocks[0]:
            raise Misfit(
                f"scales must have the shape (rows, blocks) where blocks divide the {a[1]} terms, "
                f"not {scales.shape}"
            )
        if not {"scale_a", "scale_b"} <= found.keys():
            raise Misfit("scales must be both scale_a and scale_b")
        shapes |= {"scale_a": scales.shape, "scale_b": scales.shape}
    for name, array in found.items():
        if array.shape != shapes.get(name, array.shape):
            raise Misfit(f"{name} must have the shape {shapes[name]}, not {array.shape}")
        if name != "header" and array.dtype.kind not in "iu":
            raise Misfit(f"{name} must hold integers, not {array.dtype}")


def _header(array: np.ndarray | None) -> dict[str, str]:
    try:
        found = json.loads(str(array)) if array is not None else {}
        formats = found.get("formats", {})
        return {k: v for k, v in formats.items() if isinstance(v, str)}
    # A header is a help and no more: one that cannot be read is like none.
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
) -> ProbeSection:
    c = arrays.get("c", np.zeros(len(d), d.dtype))
    scale, scales = None, [arrays.get(n) for n in ("scale_a", "scale_b")]
    if scales[0] is not None:
        name = header.get("scale", "ue8m0")
        if name not in SCALES:
            raise UserError(f"scale of {path} must be one of {', '.join(SCALES)}, not {name!r}")
        scale = SCALES[name]
    return ProbeSection(
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
            scale_a=_scale_codes(scales[0], path),
            scale_b=_scale_codes(scales[1], path),
        ),
    )


def _scale_codes(array: np.ndarray | None, path: Path) -> np.ndarray | None:
    if array is not None and ((array < 0) | (array > 255)).any():
        raise UserError(f"scales in {path} must be codes from 0 to 255")
    return None if array is None else array.astype(np.uint8)


def _codes(array: np.ndarray, format: FloatFormat | IntFormat, name: str, path: Path) -> np.ndarray:
    """Return codes with the type of their format; fp32 patterns become codes of the format."""
    if isinstance(format, IntFormat):
        return array.astype(f"u{format.bits // 8}")
    dtype = code_dtype(format)
    if array.dtype.itemsize == 4 and dtype.itemsize < 4:
        from vitruvian.golden.fp.convert import convert

        # Some sets store narrow operands as the FP32 numbers that they stand for.
        return convert(array.astype(np.uint32), FORMATS["fp32"], format)
    codes = array.astype(dtype) if array.dtype.itemsize >= dtype.itemsize else array
    if array.dtype.itemsize > dtype.itemsize and (codes != array).any():
        raise UserError(f"{name} in {path} must hold codes of {format}")
    return codes.view(dtype) if codes.dtype.itemsize == dtype.itemsize else codes.astype(dtype)
