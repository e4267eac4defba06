"""Convolutions of PyTorch as products of matrices."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Sequence
from itertools import product as choices
from math import prod
from typing import Any

from torch import Tensor
from torch.nn import functional

Product = Callable[[Tensor, Tensor], Tensor]


def convolution(dimensions: int) -> Callable[..., Tensor]:
    """Return a convolution as a product of a matrix of patches and the weights.

    Parameters
    ----------
    dimensions : int
        Those of the image: 1 to 3.

    Returns
    -------
    callable
        Of a function that multiplies stacks of matrices, and the parameters of PyTorch's function.
    """

    def every(value: Any) -> list[Any]:
        return list(value) if isinstance(value, (list, tuple)) else [value] * dimensions

    def convolve(
        product: Product,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x = input if input.ndim == dimensions + 2 else input[None]
        sizes, steps, gaps = weight.shape[2:], every(stride), every(dilation)
        if padding == "same":
            total = [gap * (size - 1) for size, gap in zip(sizes, gaps, strict=True)]
            sides = [(t // 2, t - t // 2) for t in total]
        else:
            sides = [(p, p) for p in every(0 if padding == "valid" else padding)]
        x = functional.pad(x, [p for side in reversed(sides) for p in side])
        patches, out = _patches(x, sizes, steps, gaps, groups)
        filters = weight.reshape(groups, len(weight) // groups, -1)
        d = product(patches, filters.mT)  # (groups, N · out, O / groups)
        d = d.reshape(groups, len(x), prod(out), -1).permute(1, 0, 3, 2)
        d = d.reshape(len(x), len(weight), *out)
        if bias is not None:
            d = d + bias.reshape(-1, *[1] * dimensions)
        return d if input.ndim == dimensions + 2 else d[0]

    return convolve


def convolution_gradients(
    product: Product,
    gradient: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of a convolution by its input, weight and bias, those that are wanted.

    That by the input is a product with the weights, whose results are added where patches overlap;
    that by the weight is a product with the patches.
    """
    x = functional.pad(input, [p for side in reversed(padding) for p in (side, side)])
    sizes = weight.shape[2:]
    patches, out = _patches(x, sizes, stride, dilation, groups)
    g = gradient.reshape(len(x), groups, -1, prod(out)).permute(1, 0, 3, 2)
    g = g.reshape(groups, len(x) * prod(out), -1)  # (groups, N · out, O / groups)
    by_input = by_weight = by_bias = None
    if wanted[0]:
        filters = weight.reshape(groups, len(weight) // groups, -1)
        parts = product(g, filters).reshape(groups, len(x), prod(out), -1, prod(sizes))
        parts = parts.permute(1, 0, 3, 4, 2).reshape(*x.shape[:2], *sizes, *out)
        by_input = x.new_zeros(x.shape)
        for place in choices(*map(range, sizes)):
            ranges = zip(place, dilation, stride, out, strict=True)
            at = [slice(p * gap, p * gap + step * n, step) for p, gap, step, n in ranges]
            by_input[(..., *at)] += parts[(slice(None), slice(None), *place)]
        for axis, (side, size) in enumerate(zip(padding, input.shape[2:], strict=True), 2):
            by_input = by_input.narrow(axis, side, size)
    if wanted[1]:
        by_weight = product(g.mT, patches).reshape(weight.shape)
    if wanted[2]:
        by_bias = gradient.sum((0, *range(2, gradient.ndim)))
    return by_input, by_weight, by_bias


def _patches(
    x: Tensor, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> tuple[Tensor, Sequence[int]]:
    """Return the patches of padded images as a matrix for each group, and the size of the output.

    The matrices have the shape (N · out, C / groups · size).
    """
    dimensions = len(sizes)
    for axis, (size, step, gap) in enumerate(zip(sizes, steps, gaps, strict=True), 2):
        x = x.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
    out = x.shape[2 : 2 + dimensions]
    # (N, groups, C / groups, out…, size…) to (groups, N · out, C / groups · size)
    patches = x.reshape(len(x), groups, -1, prod(out), prod(sizes)).permute(1, 0, 3, 2, 4)
    return patches.reshape(groups, len(x) * prod(out), -1), out
