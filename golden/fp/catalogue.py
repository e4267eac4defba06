"""All formats by name: their facts, and conversion between codes and numbers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.golden.fp import hifloat8
from vitruvian.golden.fp.blocks import BLOCK_FORMATS, BlockFormat
from vitruvian.golden.fp.codec import check_codes, to_float
from vitruvian.golden.fp.convert import from_float
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, Specials
from vitruvian.golden.fp.scales import SCALES, ScaleFormat, encode_scale, scale_value

_FLOATS = {**FORMATS, **OTHER_FORMATS}
_ALIASES = {alias: f.name for f in _FLOATS.values() for alias in f.aliases}
#: Formats whose definitions are known from descriptions only
_UNCHECKED = ("hifloat8", "hif4", "ue6m2")
_SPECIALS = {
    Specials.IEEE: "∞, NaN as in IEEE 754",
    Specials.OCP_E4M3: "NaN: all ones below s",
    Specials.NONE: "none",
    Specials.FNUZ: "NaN 0x80; no −0",
}


def names() -> tuple[str, ...]:
    """Return the names of all encodings of single numbers, without those of blocks.

    Examples
    --------
    >>> from vitruvian import formats
    >>> "bf16" in formats.names()
    True
    """
    return (*_FLOATS, "hifloat8", *SCALES)


def _found(format: str) -> FloatFormat | ScaleFormat | None:
    """Return the format of that name or alias; None stands for HiFloat8."""
    name = _ALIASES.get(format, format)
    one_of("format", name, names())
    return _FLOATS.get(name) or SCALES.get(name)


def encode(
    values: ArrayLike, format: str, rounding: str | None = None, *, saturate: bool = False
) -> np.ndarray:
    """Round numbers to codes of a format.

    Parameters
    ----------
    values : array_like of float or int
        Numbers, which are first converted to float64.
    format : str
        One of ``names()``, or an alias such as ``e4m3``.
    rounding : str, optional
        One of ``ROUNDINGS``, by default "RNE". Scales have only "RNE", and HiFloat8 has only "RNA",
        which is its default.
    saturate : bool
        If True, numbers that are too large become the largest number of the format.

    Returns
    -------
    ndarray of unsigned int

    Raises
    ------
    TypeError
        If ``values`` are not real numbers.
    UserError
        If the format or the rounding is unknown.

    Examples
    --------
    >>> encode([1.0, 500.0, 500.0], "e4m3", "RZ").tolist()
    [56, 126, 126]
    """
    f = _found(format)
    if isinstance(f, FloatFormat):
        return from_float(values, f, rounding or "RNE", saturate=saturate)
    x = np.asarray(values)
    if x.dtype.kind not in "fiu":
        raise TypeError(f"values must be real numbers, not {x.dtype}")
    only = "RNE" if f else "RNA"
    if rounding not in (None, only):
        raise UserError(f"rounding must be {only} for {f or 'hifloat8'}, not {rounding!r}")
    if f is None:
        return hifloat8.encode(x, saturate=saturate)
    return encode_scale(x, f, saturate=saturate)


def decode(codes: ArrayLike, format: str) -> np.ndarray:
    """Return the values of codes as float64, which is exact for every format.

    Parameters
    ----------
    codes : array_like of unsigned int
    format : str
        One of ``names()``, or an alias.

    Raises
    ------
    TypeError, UserError
        If the format is unknown, or if ``codes`` are not codes of the format.

    Examples
    --------
    >>> from vitruvian import formats
    >>> formats.decode([0x3C00, 0xC000], "fp16").tolist()
    [1.0, -2.0]
    """
    f = _found(format)
    if f is None:
        return hifloat8.decode(codes)
    if isinstance(f, ScaleFormat):
        return scale_value(check_codes(codes, 8, "codes"), f)
    return to_float(codes, f)


def table() -> list[dict[str, Any]]:
    """Return the facts of all encodings of numbers, and after them those of block formats.

    Examples
    --------
    >>> from vitruvian import formats
    >>> {"name", "bits"} <= set(formats.table()[0])
    True
    """
    return [facts(name) for name in (*names(), *BLOCK_FORMATS)]


def facts(name: str) -> dict[str, Any]:
    """Return what is known of a format.

    Parameters
    ----------
    name : str
        One of ``names()``, an alias, or a key of ``BLOCK_FORMATS``.

    Returns
    -------
    dict
        ``name``, ``kind`` ("float", "scale" or "block"), ``bits`` for each value, ``layout``,
        ``bias``, ``specials``, the numbers ``largest``, ``normal`` (the least normal number) and
        ``least`` (the least positive number), and ``checked``, which is False if the definition
        could not be compared with a program of its authors. What a format does not have is None.

    Raises
    ------
    UserError
        If the name is unknown; the message lists all names.

    Examples
    --------
    >>> from vitruvian import formats
    >>> formats.facts("fp8e4m3")["bits"]
    8
    """
    name = _ALIASES.get(name, name)
    one_of("format", name, (*names(), *BLOCK_FORMATS))
    if name in BLOCK_FORMATS:
        return _block_facts(BLOCK_FORMATS[name])
    f = _found(name)
    if f is None:
        numbers = np.unique(hifloat8.VALUES[np.isfinite(hifloat8.VALUES)])
        layout = "s prefix exponent m"
        specials = f"∞ {hifloat8.INFINITY:#x}; NaN {hifloat8.NAN:#x}; no −0"
        least = float(numbers[numbers > 0][0])
        return _row(name, "float", 8, layout, None, specials, (float(numbers[-1]), 2.0**-15, least))
    if isinstance(f, ScaleFormat):
        first = float(scale_value(0, f)) or float(scale_value(1, f))
        normal = float(scale_value(1 << f.fraction_bits, f)) if f.subnormals else first
        specials = f"NaN {f.nan:#x}; " + ("zero" if f.subnormals else "no zero")
        values = float(scale_value(f.max_finite, f)), normal, first
        return _row(name, "scale", f.width, _layout(f, 0), f.bias, specials, values)
    specials = _SPECIALS[f.specials]
    values = tuple(float(to_float(c, f)) for c in (f.max_finite, f.min_normal, f.min_subnormal))
    return _row(name, "float", f.width, _layout(f, 1), f.bias, specials, values)


def _row(
    name: str,
    kind: str,
    bits: float,
    layout: str,
    bias: int | None,
    specials: str,
    values: tuple[float | None, ...],
) -> dict[str, Any]:
    largest, normal, least = values
    return {
        "name": name,
        "kind": kind,
        "bits": bits,
        "layout": layout,
        "bias": bias,
        "specials": specials,
        "largest": largest,
        "normal": normal,
        "least": least,
        "checked": name not in _UNCHECKED,
    }


def _layout(f: FloatFormat | ScaleFormat, sign: int) -> str:
    """Return the widths of the fields from the top: sign, exponent, fraction, unused bits."""
    words = ["s"] * sign + [f"e{f.exponent_bits}"]
    words += [f"m{f.fraction_bits}"] * (f.fraction_bits > 0)
    shift = f.storage_shift if isinstance(f, FloatFormat) else 0
    return " ".join(words + [f"0×{shift}"] * (shift > 0))


def _block_facts(f: BlockFormat) -> dict[str, Any]:
    """Return the facts of a block format; its layout says what a block holds."""
    element = f.element.name if f.element else {"mxint8": "int8 / 64"}.get(f.name, "s i.ff")
    layout = f"{f.size} × {element}, {f.scale}"
    if f.extra_bits:
        layout += f", {f.extra_bits} × e1"
    if f.element:
        top = float(to_float(f.element.max_finite, f.element))
        low = float(to_float(f.element.min_subnormal, f.element))
    else:
        top, low = (127 / 64, 1 / 64) if f.name == "mxint8" else (4 * 1.75, 0.25)
    scale = facts(f.scale.name)
    values = top * scale["largest"], None, low * scale["least"]
    return _row(f.name, "block", f.bits_per_value, layout, None, "NaN: a whole block", values)
