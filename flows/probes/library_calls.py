"""Calls of PyTorch's matrix products on an NVIDIA GPU, and their operands there."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import numpy as np
import torch
from torch.nn import functional

from vitruvian.flows.probes import library_operands
from vitruvian.flows.probes.library_operands import FORMATS, SALTS, hashed

DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp64": torch.float64,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "int8": torch.int8,
}
_pools: dict[tuple[str, tuple[int, int]], torch.Tensor] = {}


def pool(format: str, exponents: tuple[int, int]) -> torch.Tensor:
    """Return the random codes of ``library_operands.pool`` on the GPU, as signed integers."""
    key = (format, exponents)
    if key not in _pools:
        codes = library_operands.pool(format, exponents)
        _pools[key] = torch.from_numpy(codes.view(f"i{codes.dtype.itemsize}").copy()).cuda()
    return _pools[key]


def matrix(format: str, rows: int, terms: int, kind: str, operand: str) -> torch.Tensor:
    """Return a (rows, K) operand on the GPU; ``library_operands.rows`` returns some of its rows."""
    i = torch.arange(rows, device="cuda", dtype=torch.int64)[:, None]
    k = torch.arange(terms, device="cuda", dtype=torch.int64)[None, :]
    salt = SALTS[operand]
    if format == "int8":
        codes = hashed(i * terms + k, salt)
        return ((codes >> 3) & 255).to(torch.uint8).view(torch.int8)
    narrow, wide = FORMATS[format][3:]
    if kind != "cancel":
        exponents = narrow if kind == "narrow" else wide
        return pool(format, exponents)[hashed(i * terms + k, salt)].view(DTYPES[format])
    late = k >= (terms + 1) // 2
    source = torch.where(late, terms - 1 - k, k)
    codes = pool(format, narrow)[hashed(i * terms + source, salt)]
    small = pool(format, (narrow[0] - 3, narrow[0] - 3))[hashed(i * terms + k, salt + 77)]
    if operand == "a":
        sign = torch.tensor(-1 << (8 * codes.element_size() - 1), device="cuda").to(codes.dtype)
        codes = torch.where(late, codes ^ sign, codes)
    return torch.where(k % 16 == 5, small, codes).contiguous().view(DTYPES[format])


def scale_values(count: int, operand: str) -> torch.Tensor:
    """Return scales between 0.5 and 2 in fp32."""
    index = torch.arange(count, device="cuda", dtype=torch.int64)
    return pool("fp32", (-1, 0))[hashed(index, SALTS[operand])].view(torch.float32).abs()


def as_bits(tensor: torch.Tensor) -> np.ndarray:
    """Return the codes of a tensor as unsigned integers."""
    size = tensor.element_size()
    view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    return tensor.contiguous().view(view).cpu().numpy().view(f"u{size}")


def select(case: dict) -> None:
    """Allow TF32 for the calls that are meant to use it."""
    torch.backends.cuda.matmul.allow_tf32 = case["a"] == "tf32"


def call(case: dict, a: torch.Tensor, w: torch.Tensor, extra: dict) -> torch.Tensor:
    """Return the (M, N) result of a call on A (M, K) and W (N, K)."""
    op = case["op"]
    b = w.t() if case["layout"] == "nt" else extra["b_rows"]
    if op == "mm":
        return torch.mm(a, b)
    if op == "mm32":
        return torch.mm(a, b, out_dtype=torch.float32)
    if op == "linear":
        return functional.linear(a, w, extra["bias"])
    if op == "bmm":
        count = case["batch"]
        x = a[None].expand(count, -1, -1).contiguous()
        if case["layout"] == "nn":
            y = b[None].expand(count, -1, -1).contiguous()
        else:
            y = w[None].expand(count, -1, -1).contiguous().transpose(1, 2)
        return torch.bmm(x, y)[count - 1]
    if op == "int_mm":
        return torch._int_mm(a, b)
    if op == "scaled":
        return torch._scaled_mm(
            a,
            w.t(),
            scale_a=extra["scale_a"],
            scale_b=extra["scale_b"],
            bias=extra.get("bias"),
            out_dtype=DTYPES[case["out"]],
            use_fast_accum=case["fast"],
        )
    raise ValueError(f"op must be one that is known, not {op!r}")


def extras(case: dict, w: torch.Tensor, plain: bool) -> dict[str, torch.Tensor]:
    """Return the further operands: bias and scales, which are neutral if ``plain``."""
    m, n, k = case["m"], case["n"], case["k"]
    found: dict[str, torch.Tensor] = {}
    if case["layout"] == "nn":
        found["b_rows"] = w.t().contiguous()
    if case.get("bias"):
        format = case["out"] if case["op"] == "scaled" else case["a"]
        row = matrix(format, 1, n, "narrow", "bias")[0]
        found["bias"] = torch.zeros_like(row) if plain else row.contiguous()
    if case["op"] != "scaled":
        return found
    # "block": 1 × 128 values of A and 128 × 128 values of B share a scale.
    shapes = {
        "tensor": ((), ()),
        "row": ((m, 1), (1, n)),
        "block": ((m, k // 128), (k // 128, n // 128)),
    }[case["scales"]]
    for name, shape in zip(("scale_a", "scale_b"), shapes, strict=True):
        count = int(np.prod(shape)) if shape else 1
        values = torch.ones(count, device="cuda") if plain else scale_values(count, name)
        values = values.reshape(shape) if shape else values[0].clone()
        if case["scales"] == "block":
            values = values.t().contiguous().t()
        found[name] = values
    return found
