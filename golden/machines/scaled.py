"""Operands of the rules with block scales: values are quantised, codes come with their scales."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import ceil_div
from vitruvian.golden.fp.blocks import BLOCK_FORMATS, BlockFormat, Blocks, quantise
from vitruvian.golden.fp.codec import as_codes
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec

_TENSOR_SCALE = ("auto",)


def block_format(rule: DotSpec, element: FloatFormat) -> BlockFormat:
    """Return the format of the blocks of an operand.

    Parameters
    ----------
    rule : DotSpec
        A rule with block scales.
    element : FloatFormat
        ``rule.input`` or ``rule.input_b``.
    """
    assert rule.scales is not None
    for known in BLOCK_FORMATS.values():
        if (known.element, known.size, known.scale) == (
            element,
            rule.scales.block,
            rule.scales.format,
        ):
            return known
    return BlockFormat(
        f"{element.name} in {rule.scales.block}",
        element,
        rule.scales.block,
        rule.scales.format,
        element.width,
    )


def in_blocks(
    a: np.ndarray,
    b: np.ndarray,
    rule: DotSpec,
    scale_a: ArrayLike | None,
    scale_b: ArrayLike | None,
    tensor_scale: Literal["auto"] | None,
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], float]:
    """Return codes of A and B, their scales, and the factor of the product.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) ndarray
        Values without scales, or codes with scales.
    rule : DotSpec
        A rule with block scales.
    scale_a, scale_b : (..., M, K / block), (..., K / block, N) array_like, optional
    tensor_scale : "auto" or None
        As in ``golden.machines.multiply``.

    Raises
    ------
    TypeError, ValueError
        If the operands have other types or shapes, or scales are missing or not wanted.
    """
    if tensor_scale is not None and tensor_scale not in _TENSOR_SCALE:
        raise ValueError(f'tensor_scale must be "auto" or None, not {tensor_scale!r}')
    if (a.dtype.kind in "iu") != (b.dtype.kind in "iu"):
        raise ValueError("a and b must both hold values, or both codes with scales")
    operands = ((a, scale_a, rule.input, "a", -1), (b, scale_b, rule.input_b, "b", -2))
    codes: list[np.ndarray] = []
    scales: list[np.ndarray] = []
    factor = 1.0
    for array, scale, element, name, axis in operands:
        if array.dtype.kind in "iu":
            if tensor_scale is not None:
                raise ValueError(f"tensor_scale must be None for codes, as {name} has")
            codes.append(as_codes(array, element, name))
            scales.append(_scale_codes(scale, array.shape, rule, name, axis))
            continue
        if scale is not None:
            raise ValueError(f"scale_{name} must be None for values, which get scales of their own")
        blocks = _quantised(array, block_format(rule, element), axis, name, tensor_scale)
        codes.append(blocks.codes)
        scales.append(blocks.scales)
        factor *= blocks.tensor_scale
    return codes[0], codes[1], (scales[0], scales[1]), factor


def _quantised(
    array: np.ndarray,
    format: BlockFormat,
    axis: int,
    name: str,
    tensor_scale: Literal["auto"] | None,
) -> Blocks:
    if not array.size:  # ``quantise`` needs at least one block
        blocks = ceil_div(array.shape[axis], format.size)
        shape, scales = list(array.shape), list(array.shape)
        shape[axis], scales[axis] = blocks * format.size, blocks
        return Blocks(format, np.zeros(shape, np.uint8), np.zeros(scales, np.uint8), axis, 0)
    try:
        return quantise(array, format, axis, pad=True, tensor_scale=tensor_scale)
    except TypeError:
        raise TypeError(f"{name} must be floating point or codes, not {array.dtype}") from None


def _scale_codes(
    scale: ArrayLike | None, shape: tuple[int, ...], rule: DotSpec, name: str, axis: int
) -> np.ndarray:
    """Return the scales of an operand that holds codes, one for each block along K."""
    assert rule.scales is not None
    format, block = rule.scales.format, rule.scales.block
    if shape[axis] % block:
        raise ValueError(f"K must be a multiple of the block of {block}, not {shape[axis]!r}")
    wanted = list(shape)
    wanted[axis] //= block
    if scale is None:
        raise ValueError(
            f"scale_{name} must be {format} codes with the shape {tuple(wanted)} for an array "
            f"of codes"
        )
    codes = np.asarray(scale)
    if codes.dtype.kind not in "iu" or (codes.size and not 0 <= codes.min() <= codes.max() <= 255):
        raise ValueError(f"scale_{name} must be {format} codes from 0 to 255")
    if codes.shape != tuple(wanted):
        raise ValueError(f"scale_{name} must have the shape {tuple(wanted)}, not {codes.shape}")
    return codes.astype(np.uint8)
