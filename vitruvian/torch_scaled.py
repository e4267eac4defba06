"""Which calls of ``_scaled_mm`` PyTorch and cuBLAS take on a Hopper GPU."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from typing import Any

import torch
from torch import Tensor

from vitruvian.common.errors import UserError

#: Names of the formats of PyTorch's types.
FORMATS = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
}


def checked_output(
    operands: tuple[Tensor, Tensor],
    factors: tuple[Tensor, Tensor],
    scales: str,
    bias: Tensor | None,
    out_dtype: Any,
) -> str:
    """Return the format of the results of a call that PyTorch and cuBLAS take.

    Raises
    ------
    UserError
        With what they reject.
    """
    a, b = operands
    (m, k), n = a.shape, b.shape[-1]
    output = FORMATS.get(out_dtype or torch.bfloat16, str(out_dtype))
    blocks = ((m, -(-k // 128)), (-(-k // 128), -(-n // 128)))
    allowed = {
        "operands must be of 8 bits, and not both e5m2": {FORMATS.get(x.dtype) for x in operands}
        in ({"e4m3"}, {"e4m3", "e5m2"}),
        "A must have rows, and B columns, of adjacent elements": (
            a.stride(1) == 1 and b.stride(0) == 1 and a.shape[1] == b.shape[0]
        ),
        "K and N must be multiples of 16": k % 16 == 0 == n % 16 and min(m, k, n) > 0,
        "out_dtype must be bf16, fp16 or fp32": output in ("bf16", "fp16", "fp32"),
        "out_dtype must be bf16 with factors by row": scales != "row" or output == "bf16",
        "factors must be float32": all(x.dtype == torch.float32 for x in factors),
        "factors must be one each, (M, 1) and (1, N), or (M, K/128) and (K/128, N/128)": (
            scales != "block" or tuple(tuple(x.shape) for x in factors) == blocks
        ),
        "bias must have N elements of the type of the results, and they 16 bits": bias is None
        or (bias.shape == (n,) and FORMATS.get(bias.dtype) == output and output != "fp32"),
    }
    for what, fits in allowed.items():
        if not fits:
            raise UserError(f"{what} in _scaled_mm")
    return output
