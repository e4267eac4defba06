"""Convolutions of PyTorch as products of matrices."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
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
        for axis, (size, step, gap) in enumerate(zip(sizes, steps, gaps, strict=True), 2):
            x = x.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
        out = x.shape[2 : 2 + dimensions]
        # (N, groups, C / groups, out…, size…) to (groups, N · out, C / groups · size)
        patches = x.reshape(len(x), groups, -1, prod(out), prod(sizes)).permute(1, 0, 3, 2, 4)
        patches = patches.reshape(groups, len(x) * prod(out), -1)
        filters = weight.reshape(groups, len(weight) // groups, -1)
        d = product(patches, filters.mT)  # (groups, N · out, O / groups)
        d = d.reshape(groups, len(x), prod(out), -1).permute(1, 0, 3, 2)
        d = d.reshape(len(x), len(weight), *out)
        if bias is not None:
            d = d + bias.reshape(-1, *[1] * dimensions)
        return d if input.ndim == dimensions + 2 else d[0]

    return convolve
