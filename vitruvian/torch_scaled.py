"""Products of PyTorch with factors: ``_scaled_mm`` and ``_scaled_mm_v2``."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitruvian.common.errors import UserError
from vitruvian.golden.plans import LibraryCall, Plan, multiply
from vitruvian.torch_arrays import array, tensor
from vitruvian.torch_blocks import BLOCKS, block_of, blocks_product

#: Names of the formats of PyTorch's types.
FORMATS = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
}
DTYPES = {name: dtype for dtype, name in FORMATS.items()}


def format_of(x: Tensor, name: str) -> str:
    """Return the format of an operand, which the product takes."""
    if x.device.type != "cpu" or x.layout != torch.strided:
        raise UserError(f"operands must be dense and on the CPU, not {x.layout} on {x.device}")
    if x.dtype not in FORMATS:
        raise UserError(f"operands of {name} must be one of {', '.join(DTYPES)}, not {x.dtype}")
    found = FORMATS[x.dtype]
    return "tf32" if found == "fp32" and torch.backends.cuda.matmul.allow_tf32 else found


def values_of(x: Tensor, y: Tensor, plan: Plan, **more: Any) -> np.ndarray:
    """Return a product by a plan, of tensors."""
    return np.asarray(multiply(array(x), array(y), plan=plan, **more))


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


def scaled_mm(
    context: Any,
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Return the product of PyTorch's operator of this name."""
    if block := block_of(scale_a):
        factors = scale_a, scale_b
        return blocks_product(context, (a, b), factors, block, bias=bias, out_dtype=out_dtype)
    if scale_a.numel() == scale_b.numel() == 1:
        scales = "tensor"
    elif scale_a.shape == (a.shape[0], 1) and scale_b.shape == (1, b.shape[1]):
        scales = "row"
    else:
        scales = "block"
    if scale_result is not None:
        raise UserError("scale_result of _scaled_mm must be None: results of FP8 are not known")
    return _scaled(context, (a, b), (scale_a, scale_b), scales, bias, out_dtype, use_fast_accum)


def scaled_mm_v2(
    context: Any,
    a: Tensor,
    b: Tensor,
    scale_a: list[Tensor],
    recipe_a: list[int],
    swizzle_a: list[int],
    scale_b: list[Tensor],
    recipe_b: list[int],
    swizzle_b: list[int],
    bias: Tensor | None = None,
    out_dtype: Any = None,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Return the product of PyTorch's operator of this name, whose factors have recipes."""
    if tuple(recipe_a) in BLOCKS and recipe_a == recipe_b:
        factors, of_tensors = (scale_a[0], scale_b[0]), (*scale_a[1:], *scale_b[1:])
        if not swizzle_a[0] == swizzle_b[0] == 1 or any(contraction_dim):
            raise UserError("factors of blocks must be in tiles (SWIZZLE_32_4_4) in _scaled_mm_v2")
        return blocks_product(
            context, (a, b), factors, BLOCKS[tuple(recipe_a)], of_tensors, bias, out_dtype
        )
    recipes = {((0,), (0,)): "tensor", ((1,), (1,)): "row", ((4,), (5,)): "block"}
    scales = recipes.get((tuple(recipe_a), tuple(recipe_b)))
    if scales is None or any((*swizzle_a, *swizzle_b, *contraction_dim)):
        raise UserError(
            "factors of _scaled_mm_v2 must be by tensor, by row, or by 1×128 and 128×128 blocks "
            "without swizzle, or by 16 or 32 terms with it, "
            f"not recipes {recipe_a} and {recipe_b}"
        )
    return _scaled(
        context, (a, b), (scale_a[0], scale_b[0]), scales, bias, out_dtype, use_fast_accum
    )


def _scaled(
    context: Any,
    operands: tuple[Tensor, Tensor],
    factors: tuple[Tensor, Tensor],
    scales: str,
    bias: Tensor | None,
    out_dtype: Any,
    fast: bool,
) -> Tensor:
    a, b = operands
    output = checked_output(operands, factors, scales, bias, out_dtype)
    call = LibraryCall(
        op="scaled",
        a=format_of(a, "_scaled_mm"),
        b=format_of(b, "_scaled_mm"),
        m=a.shape[0],
        k=a.shape[1],
        n=b.shape[1],
        layout="nt",
        output=output,
        fast=fast and scales != "block",
        scales=scales,
        bias=bias is not None,
    )
    plan = context.plan(call)
    context.note("_scaled_mm", call, plan)
    first, second = (x.detach().contiguous().numpy() for x in factors)
    more = {"scale_a": first, "scale_b": second}
    added = None if bias is None else array(bias)
    return tensor(values_of(a, b, plan, bias=added, **more), DTYPES[output])
