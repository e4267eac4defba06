"""A linear layer in FP8 whose results have the bits of an H100, without one.

A layer of PyTorch calls ``_scaled_mm`` with weights and activations in E4M3 and a factor for each
tensor, as layers for FP8 training and inference do. Within ``vitruvian.torch.library`` this product
is computed as cuBLASLt does on an H100: by its matrix instruction, with sums that restart every 128
terms, and in the slices that it chooses. The same product by the package mmaemu, which was checked
on an H100, must have the same bits; PyTorch's own product on the CPU has others.

    python examples/fp8_layer.py [--tokens 64] [--inputs 4096] [--outputs 1024]

Needs the extra ``vitruvian[torch]`` and the package mmaemu.
"""

# PyTorch and mmaemu are optional, and their types are unknown where they are not installed.
# pyright: basic, reportMissingImports=false

import argparse
import sys
import warnings
from collections.abc import Sequence

from vitruvian.common.errors import UserError

try:
    import mmaemu
    import torch

    from vitruvian.torch import library
except ImportError as missing:
    print(f"error: {missing.name} must be installed: pip install torch mmaemu", file=sys.stderr)
    raise SystemExit(2) from None


class Fp8Linear(torch.nn.Module):
    """A linear layer with weights in E4M3 and one factor, as it would run on a GPU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        weight = torch.randn(outputs, inputs) / inputs**0.5
        self.weight, self.factor = quantised(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product of rounded activations and weights, in BF16."""
        codes, factor = quantised(x)
        dtype = torch.bfloat16
        return torch._scaled_mm(codes, self.weight.t(), factor, self.factor, out_dtype=dtype)


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a tensor in E4M3 and the factor that it must be multiplied by."""
    factor = x.abs().max() / torch.finfo(torch.float8_e4m3fn).max
    return (x / factor).to(torch.float8_e4m3fn), factor


def main(argv: Sequence[str] | None = None) -> int:
    """Run the layer in three ways, and return 1 if ours and that of mmaemu differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, value in (("tokens", 64), ("inputs", 4096), ("outputs", 1024)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{name} of the layer")
    sizes = parser.parse_args(argv)
    torch.manual_seed(0)
    layer = Fp8Linear(sizes.inputs, sizes.outputs)
    x = torch.randn(sizes.tokens, sizes.inputs)
    try:
        with library(gpu="h100", explain=True):
            ours = layer(x)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    codes, factor = quantised(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how well the choice of slices is known is printed above
        theirs = mmaemu.scaled_mm(
            codes,
            layer.weight.t(),
            factor,
            layer.factor,
            out_dtype=torch.bfloat16,
            profile="hopper",
        )
    plain = (codes.float() @ layer.weight.float().t() * factor * layer.factor).bfloat16()
    differ = int((ours.view(torch.int16) != theirs.view(torch.int16)).sum())
    cpu = float((ours != plain).float().mean())
    print(f"{ours.numel():,} results: {differ} differ from mmaemu, {cpu:.1%} from sums in FP32")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
