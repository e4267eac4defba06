"""Blocks of values that share a scale: MXFP8, MXFP6, MXFP4, MXINT8, NVFP4 and HiF4.

``quantise`` divides an axis of an array into blocks and returns codes and scales as
``machines.run`` takes them; ``dequantise`` returns the values. All steps are exact but the
roundings that a format defines, which are to the nearest, with ties to even.

A block with a NaN or an infinity has no scale that fits: its scale is the NaN of its format, its
codes are those of zeros, and all its values are NaN again. The specifications leave this case open.

References
----------
OCP Microscaling Formats Specification 1.0, sections 5 and 6.3; NVIDIA PTX ISA (NVFP4).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_type, one_of
from vitruvian.golden.fp.codec import as_codes, to_float
from vitruvian.golden.fp.convert import from_float
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.fp.scales import SCALES, ScaleFormat, encode_scale, scale_value


@dataclass(frozen=True)
class BlockFormat:
    """A number of elements that share one scale.

    Parameters
    ----------
    name : str
        Name of the format; the key in ``BLOCK_FORMATS``.
    element : FloatFormat or None
        Format of the elements; None for integers and for HiF4's elements.
    size : int
        Elements of a block.
    bits : int
        Bits of an element.
    extra_bits : int
        Bits of a block beside its elements and its scale.
    """

    name: str
    element: FloatFormat | None
    size: int
    scale: ScaleFormat
    bits: int
    extra_bits: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def bits_per_value(self) -> float:
        """The bits of a block by the number of its elements."""
        return self.bits + (8 + self.extra_bits) / self.size


def _mx(name: str, element: str) -> BlockFormat:
    f = as_format(element)
    return BlockFormat(name, f, 32, SCALES["ue8m0"], f.width)


BLOCK_FORMATS = {
    f.name: f
    for f in (
        _mx("mxfp8_e4m3", "fp8e4m3"),
        _mx("mxfp8_e5m2", "fp8e5m2"),
        _mx("mxfp6_e2m3", "fp6e2m3"),
        _mx("mxfp6_e3m2", "fp6e3m2"),
        _mx("mxfp4", "fp4e2m1"),
        # Two's complement in steps of 1/64
        BlockFormat("mxint8", None, 32, SCALES["ue8m0"], 8),
        BlockFormat("nvfp4", as_format("fp4e2m1"), 16, SCALES["ue4m3"], 4),
        # Sign and a magnitude in steps of 1/4; a bit for each 8 values and one for each 4
        BlockFormat("hif4", None, 64, SCALES["ue6m2"], 4, extra_bits=24),
    )
}


@dataclass(frozen=True, eq=False)
class Blocks:
    """A quantised array.

    Parameters
    ----------
    codes : ndarray of uint8
        One code for each element, in the low bits. The blocked axis is as long as the blocks.
    scales : ndarray of uint8
        One scale for each block; the blocked axis has one place for each block.
    axis : int
        The blocked axis, not negative.
    length : int
        Length of the blocked axis before padding.
    tensor_scale : float
        A factor of all values, which the codes and scales do not have (NVFP4; otherwise 1).
    exponents : ndarray of uint32 or None
        HiF4's one-bit exponents, one word for each block: bits 0 to 7 belong to 8 values each and
        bits 8 to 23 to 4 values each.
    """

    format: BlockFormat
    codes: np.ndarray
    scales: np.ndarray
    axis: int
    length: int
    tensor_scale: float = 1.0
    exponents: np.ndarray | None = None


def quantise(
    values: ArrayLike,
    format: BlockFormat | str,
    axis: int = -1,
    *,
    pad: bool = False,
    tensor_scale: float | Literal["auto"] | None = None,
) -> Blocks:
    """Quantise an array to blocks along an axis.

    Parameters
    ----------
    values : array_like of float or int
        Numbers, which are first converted to float64 (HiF4: and rounded to bfloat16, on which its
        definition works).
    format : BlockFormat or str
        A block format or a key of ``BLOCK_FORMATS``.
    axis : int
        The axis along which blocks lie; the last by default.
    pad : bool
        If True, zeros are appended until the axis is a multiple of the block. If False, such an
        axis is refused.
    tensor_scale : float or "auto", optional
        NVFP4 only: a factor of all values, a positive fp32 number. "auto" takes the largest
        magnitude by 6 · 448, rounded to fp32, so that scales of blocks use their whole range. By
        default it is 1.

    Returns
    -------
    Blocks

    Raises
    ------
    TypeError
        If ``values`` are not real numbers.
    UserError
        If the format is unknown, or if the axis or the tensor scale does not fit.

    Examples
    --------
    >>> blocks = quantise([0.1, 0.2, 0.3, 3.1] * 4, "nvfp4")
    >>> blocks.codes[:4].tolist(), blocks.scales.tolist()
    ([0, 1, 1, 7], [48])
    >>> dequantise(blocks)[:4].tolist()
    [0.0, 0.25, 0.25, 3.0]
    """
    f = _block_format(format)
    x = _numbers(values)
    if not x.ndim or not -x.ndim <= axis < x.ndim:
        raise UserError(f"axis must be one of the {x.ndim} axes of values, not {axis!r}")
    axis %= x.ndim
    length = x.shape[axis]
    if not length or (length % f.size and not pad):
        raise UserError(
            f"axis {axis} of values must be a multiple of {f.size} ({f.name}), not {length}; "
            "pad=True appends zeros"
        )
    x = np.moveaxis(x, axis, -1)
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -length % f.size)])
    x = _split(x, f)
    bad: np.ndarray = np.any(~np.isfinite(x), axis=-1)
    x = np.where(bad[..., None], 0, x)
    factor = _tensor_scale(x, f, tensor_scale)
    exponents = None
    if f.name == "hif4":
        codes, scales, exponents = _hif4(x)
        exponents = np.moveaxis(exponents, -1, axis)
    elif f.name == "nvfp4":
        codes, scales = _nvfp4(x, factor)
    else:
        codes, scales = _mx_blocks(x, f)
    assert f.scale.nan is not None
    scales = np.where(bad, np.uint8(f.scale.nan), scales)
    codes = np.moveaxis(_joined(codes), -1, axis)
    return Blocks(f, codes, np.moveaxis(scales, -1, axis), axis, length, factor, exponents)


def dequantise(blocks: Blocks) -> np.ndarray:
    """Return the values of a quantised array as float64, exactly and without padding.

    Raises
    ------
    TypeError
        If ``blocks`` are not the result of ``quantise``.

    Examples
    --------
    >>> from vitruvian import formats
    >>> blocks = formats.quantise([3.0] * 32, "mxfp8_e4m3")
    >>> formats.dequantise(blocks)[:2].tolist()
    [3.0, 3.0]
    """
    check_type("blocks", blocks, Blocks)
    f = blocks.format
    codes = _split(np.moveaxis(blocks.codes, blocks.axis, -1), f)
    scales = np.moveaxis(scale_value(blocks.scales, f.scale), blocks.axis, -1)[..., None]
    if f.element is not None:
        value = to_float(as_codes(codes, f.element), f.element)
    elif blocks.exponents is None:
        value = codes.astype(np.uint8).view(np.int8) / 64
    else:
        shift = _shifts(np.moveaxis(blocks.exponents, blocks.axis, -1))
        value = np.ldexp((codes & 7) / 4, shift) * np.where(codes & 8, -1, 1)
    value = _joined(value * scales * blocks.tensor_scale)[..., : blocks.length]
    return np.moveaxis(value, -1, blocks.axis)


def _block_format(format: BlockFormat | str) -> BlockFormat:
    if isinstance(format, BlockFormat):
        return format
    return BLOCK_FORMATS[one_of("block format", format, BLOCK_FORMATS)]


def _split(x: np.ndarray, f: BlockFormat) -> np.ndarray:
    """Divide the last axis into blocks; with -1 in the shape, an array must not be empty."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // f.size, f.size)


def _joined(x: np.ndarray) -> np.ndarray:
    """Undo ``_split``."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def _numbers(values: ArrayLike) -> np.ndarray:
    x = np.asarray(values)
    if x.dtype.kind not in "fiu" and x.dtype.type.__module__ != "ml_dtypes":
        raise TypeError(f"values must be real numbers, not {x.dtype}")
    return x.astype(np.float64)


def _tensor_scale(x: np.ndarray, f: BlockFormat, wanted: float | str | None) -> float:
    """Return the factor of all values."""
    if wanted is None:
        return 1.0
    if f.name != "nvfp4":
        raise UserError(f"tensor_scale must be None for {f.name}; only nvfp4 has one")
    if wanted == "auto":
        largest = np.abs(x).max(initial=0.0)
        code = from_float(largest / (6 * 448), "fp32", saturate=True)
        return float(to_float(np.maximum(code, 1), "fp32")) if largest else 1.0
    number = isinstance(wanted, (int, float, np.number)) and not isinstance(wanted, bool)
    with np.errstate(over="ignore"):
        if not number or not 0 < float(wanted) < np.inf or float(np.float32(wanted)) != wanted:
            raise UserError(
                f'tensor_scale must be a positive fp32 number, "auto" or None, not {wanted!r}'
            )
    return float(wanted)


def _mx_blocks(x: np.ndarray, f: BlockFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and scales of blocks that share a power of two (OCP MX, section 6.3)."""
    largest = np.abs(x).max(axis=-1)
    top = np.frexp(largest)[1] - 1
    exponent = np.clip(top - (0 if f.element is None else f.element.emax), -127, 127)
    exponent = np.where(largest == 0, -127, exponent)
    scaled = np.ldexp(x, -exponent[..., None])
    if f.element is None:
        codes = np.clip(np.rint(scaled * 64), -128, 127).astype(np.int8).view(np.uint8)
    else:
        codes = from_float(scaled, f.element, saturate=True)
    return codes, (exponent + 127).astype(np.uint8)


def _nvfp4(x: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and scales of NVFP4: the largest magnitude of a block becomes about 6."""
    largest = np.abs(x).max(axis=-1)
    scales = encode_scale(_quotient(largest, np.asarray(6 * factor)), "ue4m3", saturate=True)
    divisor = scale_value(scales, "ue4m3")[..., None] * factor
    zero = np.copysign(0.0, x)  # where the scale is zero
    scaled = np.where(divisor > 0, _quotient(x, np.where(divisor > 0, divisor, 1)), zero)
    return from_float(scaled, "fp4e2m1", saturate=True), scales


def _quotient(x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Return quotients that round to a short format as the exact ones do.

    A float64 quotient is a tie of the short format only if the exact one is. Let m be a tie, so
    that m · divisor is exact in float64 (of at most 32 bits), and let x be the next float64. Then
    x / divisor differs from m by more than half a unit in the last place of m: by that unit times
    the ratio of two significands in [1, 2), which is above 1/2.
    """
    with np.errstate(over="ignore", under="ignore"):
        return x / divisor


def _bf16(x: np.ndarray) -> np.ndarray:
    return to_float(from_float(x, "bf16", saturate=True), "bf16")


def _shifts(words: np.ndarray) -> np.ndarray:
    """Return HiF4's sum of the two one-bit exponents of each of 64 values."""
    bits = words[..., None].astype(np.int64) >> np.arange(24) & 1
    return np.repeat(bits[..., :8], 8, axis=-1) + np.repeat(bits[..., 8:], 4, axis=-1)


def _hif4(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes, scales and exponents of HiF4."""
    x = _bf16(x)
    magnitude = np.abs(x)
    seventh = _bf16(np.asarray(1 / 7))
    scales = encode_scale(_bf16(magnitude.max(axis=-1) * seventh), "ue6m2", saturate=True)
    scaled = magnitude * _bf16(1 / scale_value(scales, "ue6m2"))[..., None]
    eights = scaled.reshape(*scaled.shape[:-1], 8, 8).max(axis=-1) >= 4
    fours = scaled.reshape(*scaled.shape[:-1], 16, 4).max(axis=-1)
    fours = fours / np.where(np.repeat(eights, 2, axis=-1), 2, 1) >= 2
    bits = np.concatenate([eights, fours], axis=-1).astype(np.uint32)
    words = (bits << np.arange(24, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)
    codes = np.minimum(np.floor(np.ldexp(scaled, 2 - _shifts(words)) + 0.5), 7).astype(np.uint8)
    return codes | (np.signbit(x).astype(np.uint8) << np.uint8(3)), scales, words
