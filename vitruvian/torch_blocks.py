"""Products of PyTorch whose blocks of 16 or 32 terms have factors: MXFP8, MXFP4 and NVFP4."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden.machines.products import multiply
from vitruvian.torch_arrays import array, tensor

#: Recipes of ``_scaled_mm_v2`` -> terms of a block; another factor may belong to the tensor.
BLOCKS = {(2,): 16, (2, 0): 16, (3,): 32}
#: Names of the formats of PyTorch's types, by name since old versions lack some.
_NAMES = {
    "torch.float8_e4m3fn": "e4m3",
    "torch.float8_e5m2": "e5m2",
    "torch.float4_e2m1fn_x2": "e2m1",
    "torch.float8_e8m0fnu": "e8m0",
}
#: Formats of operands and factors, and terms of a block -> instruction of a B200.
_INSTRUCTIONS = {
    ("e2m1", "e8m0", 32): "mxf4",
    ("e2m1", "e4m3", 16): "nvf4_ue4m3",
    ("8 bits", "e8m0", 32): "mxf8f6f4",
}
_OUTPUTS = (torch.bfloat16, torch.float16, torch.float32)
_ROWS, _COLUMNS = 128, 4  # factors of a tile in memory


def block_of(factor: Tensor) -> int:
    """Return the terms of a block by the type of its factors; 0 for factors of larger parts."""
    return {"e8m0": 32, "e4m3": 16}.get(_name(factor), 0)


def _name(x: Tensor) -> str:
    return _NAMES.get(str(x.dtype), str(x.dtype))


def blocks_product(
    context: Any,
    operands: tuple[Tensor, Tensor],
    factors: tuple[Tensor, Tensor],
    block: int,
    of_tensors: tuple[Tensor, ...] = (),
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Return A·B by one chain of a B200's instruction along K, rounded once.

    Parameters
    ----------
    context : vitruvian.torch.library
    operands : (M, K), (K, N) tensors
        Those of four bits hold two numbers an element along K.
    factors : two tensors
        In tiles of 128 rows and 4 blocks, as cuBLAS reads them.
    block : {16, 32}
        Terms of a block.
    of_tensors : tuple of tensor
        Factors in FP32 that the sum is multiplied by.

    Raises
    ------
    UserError
        For another GPU, without ``assume``, or for what PyTorch does not take.
    """
    a, b = operands
    if context.gpu != "b200" or not context.assume:
        raise UserError(
            "products with factors of 16 or 32 terms must be within "
            'library(gpu="b200", assume=True): none was recorded'
        )
    names = [_name(x) for x in operands]
    small = names == ["e2m1", "e2m1"]
    kind = "e2m1" if small else "8 bits"
    instruction = _INSTRUCTIONS.get((kind, _name(factors[0]), block))
    (m, k), n = a.shape, b.shape[1]
    k *= 2 if small else 1
    output = out_dtype or torch.bfloat16
    sizes = [round_up(rows, _ROWS) * round_up(ceil_div(k, block), _COLUMNS) for rows in (m, n)]
    allowed = {
        "operands must be e4m3, e5m2, or both of float4_e2m1fn_x2": small
        or set(names) <= {"e4m3", "e5m2"},
        "factors must be e8m0 for 32 terms, and e4m3 for 16 terms of four bits": instruction
        is not None
        and factors[1].dtype == factors[0].dtype,
        "A must have rows, and B columns, of adjacent elements": (
            a.stride(1) == 1 and b.stride(0) == 1 and a.shape[1] == b.shape[0]
        ),
        "K must be a multiple of 32, and N of 16": k % 32 == 0 == n % 16 and min(m, k, n) > 0,
        f"factors must be {' and '.join(map(str, sizes))}, of tiles of 128 × 4": sizes
        == [x.numel() for x in factors],
        "out_dtype must be bf16, fp16 or fp32": output in _OUTPUTS,
        "bias must be None": bias is None,
    }
    for what, fits in allowed.items():
        if not fits:
            raise UserError(f"{what} in _scaled_mm with blocks")
    blocks = [_in_rows(x, rows, k // block) for x, rows in zip(factors, (m, n), strict=True)]
    d = multiply(
        array(a),
        array(b.t()).T,
        machine="b200",
        instruction=instruction,
        input=names[0] if names[0] == names[1] else "x".join(names),
        packed=small,
        scale_a=blocks[0],
        scale_b=blocks[1].T,
    ).view(np.float32)
    with np.errstate(all="ignore"):
        if of_tensors:  # their product is the alpha of cuBLAS
            first, second = (factor.numpy().reshape(()) for factor in of_tensors)
            d = d * (first * second)
    context.note(
        "_scaled_mm",
        f"scaled {' × '.join(names)} {m}×{k}×{n} in blocks of {block}",
        f"b200_{instruction}; one chain along K",
        "the call was not recorded, and slices are not known",
        evidence="assumed",
    )
    return tensor(d, torch.float32).to(output)


def _in_rows(factors: Tensor, rows: int, columns: int) -> np.ndarray:
    """Return codes of factors row by row from tiles of 32 × 4 × 4, which hold 128 × 4."""
    codes = array(factors).reshape(ceil_div(rows, _ROWS), ceil_div(columns, _COLUMNS), 32, 4, 4)
    tiles = codes.transpose(0, 3, 2, 1, 4)  # row tile, quarter, row of it, column tile, column
    whole = tiles.reshape(round_up(rows, _ROWS), round_up(columns, _COLUMNS))
    return np.ascontiguousarray(whole[:rows, :columns])
