"""Sums and functions of PyTorch as its kernels compute them on an H200."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.fused import fused
from vitruvian.golden.functions import cuda
from vitruvian.golden.reductions import pytorch_mean, pytorch_softmax, pytorch_sum
from vitruvian.golden.reductions.norms import layer_norm_and_moments
from vitruvian.torch_arrays import array, tensor
from vitruvian.torch_scaled import FORMATS

_WIDE = {torch.float32, torch.float64}
_FLOATS = {torch.float32, torch.float16, torch.bfloat16}
_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True)
class Computed:
    """A result, and what a report says of it."""

    value: Any
    call: str
    order: str
    evidence: str = "derived"


def _described(x: Tensor) -> str:
    return f"{FORMATS[x.dtype]} {'×'.join(map(str, x.shape)) or 'number'}"


def _taken(x: Tensor, types: set[torch.dtype]) -> bool:
    dense = x.device.type == "cpu" and x.layout == torch.strided
    return dense and x.dtype in types and x.is_contiguous() and x.numel() > 0


def _array(x: Tensor) -> np.ndarray:
    """Return values, of bfloat16 in the type of ml_dtypes."""
    import ml_dtypes

    codes = array(x)
    types = {torch.float16: np.float16, torch.bfloat16: ml_dtypes.bfloat16}
    return codes.view(types[x.dtype]) if x.dtype in types else codes


def _reduction(
    compute: Callable[..., np.ndarray], name: str, evidence: str
) -> Callable[..., Computed | None]:
    """Return the operator of a sum or mean along the first axis, the last one, or all."""

    def operator(
        x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Computed | None:
        dims = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
        dims = [d % max(x.ndim, 1) for d in dims]
        if not _taken(x, _WIDE) or dtype not in (None, x.dtype) or not x.ndim:
            return None
        if len(dims) == x.ndim:
            axis = None
        elif len(dims) == 1 and dims[0] in (0, x.ndim - 1):
            axis = -1 if dims[0] else 0
        else:
            return None
        try:
            total = compute(array(x), axis)
        except UserError:  # an order that is not known
            return None
        result = torch.from_numpy(np.ascontiguousarray(total)).reshape(total.shape)
        if keepdim:
            result = result.reshape([1 if i in dims else size for i, size in enumerate(x.shape)])
        return Computed(result, f"{name} of {_described(x)}", "the order of Reduce.cuh", evidence)

    return operator


def _softmax(log: bool) -> Callable[..., Computed | None]:
    def operator(x: Tensor, dim: int, half_to_float: bool = False) -> Computed | None:
        if half_to_float or not x.ndim or not _taken(x, _FLOATS):
            return None
        y = pytorch_softmax(_array(x), dim, log=log)
        return Computed(
            tensor(y, x.dtype),
            f"{'log_' * log}softmax of {_described(x)}",
            "the order of SoftMax.cu",
        )

    return operator


def _layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Computed | None:
    others = [p for p in (weight, bias) if p is not None]
    if not _taken(x, _FLOATS) or any(p.dtype != x.dtype for p in others):
        return None
    leading = x.shape[: x.ndim - len(normalized_shape)]
    rows = _array(x).reshape(math.prod(leading), -1)
    factors = [None if p is None else _array(p).reshape(-1) for p in (weight, bias)]
    y, *moments = layer_norm_and_moments(rows, *factors, eps)
    shape = (*leading, *(1 for _ in normalized_shape))
    values = [torch.from_numpy(m.reshape(shape)).to(x.dtype) for m in moments]
    return Computed(
        (tensor(y, x.dtype).reshape(x.shape), *values),
        f"layer_norm of {_described(x)}",
        "the order of layer_norm_kernel.cu",
    )


def _elementwise(
    name: str, compute: Callable[[np.ndarray], np.ndarray]
) -> Callable[..., Computed | None]:
    """Return the operator of a function that is computed in FP32 and rounded once."""

    def operator(x: Tensor) -> Computed | None:
        if not _taken(x, _FLOATS):
            return None
        with np.errstate(all="ignore"):
            y = compute(_array(x).astype(np.float32))
        value = torch.from_numpy(y).to(x.dtype)
        return Computed(value, f"{name} of {_described(x)}", "CUDA's function, rounded once")

    return operator


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return _ONE / (_ONE + cuda("expf", -x))


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (_ONE + cuda("expf", -x))


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * _HALF * (_ONE + cuda("erff", x * np.float32(math.sqrt(0.5))))


def _gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    inner = np.float32(math.sqrt(2 / math.pi)) * fused(np.float32(0.044715), x * x * x, x)
    return _HALF * x * (_ONE + cuda("tanhf", inner))


def _gelu_operator(x: Tensor, *, approximate: str = "none") -> Computed | None:
    compute = _gelu if approximate == "none" else _gelu_by_tanh
    return _elementwise("gelu", compute)(x)


#: Operators -> what computes them, or returns None for PyTorch's function on the CPU.
FUNCTIONS: dict[str, Callable[..., Computed | None]] = {
    "aten::sum": _reduction(pytorch_sum, "sum", "measured"),
    "aten::mean": _reduction(pytorch_mean, "mean", "derived"),
    "aten::_softmax": _softmax(log=False),
    "aten::_log_softmax": _softmax(log=True),
    "aten::native_layer_norm": _layer_norm,
    "aten::sigmoid": _elementwise("sigmoid", _sigmoid),
    "aten::silu": _elementwise("silu", _silu),
    "aten::gelu": _gelu_operator,
    **{
        f"aten::{name}": _elementwise(name, lambda x, function=f"{name}f": cuda(function, x))
        for name in ("exp", "log", "tanh", "erf", "rsqrt")
    },
}
