"""Functions and sums in Triton's interpreter, as its compiler makes them for an H100 or H200."""

# Triton is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
from triton.runtime import interpreter

from vitruvian.golden.functions import compute, cuda, divide_full
from vitruvian.golden.reductions import add_tile
from vitruvian.golden.triton import sum_order

#: Machines whose approximate functions are known.
MACHINES = ("h100", "h200", "hopper")
#: Operations of the interpreter -> what the compiler makes of them in FP32.
_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "create_exp": lambda x: cuda("__expf", x),
    "create_exp2": lambda x: compute("ex2.approx.ftz.f32", x),
    "create_log": lambda x: cuda("logf", x),
    "create_erf": lambda x: cuda("erff", x),
    "create_sqrt": lambda x: compute("sqrt.approx.ftz.f32", x),
    "create_rsqrt": lambda x: compute("rsqrt.approx.ftz.f32", x),
    "create_fdiv": divide_full,
}


def functions(builder: Any) -> dict[str, Callable[..., Any]]:
    """Return the operations of the interpreter's builder that are replaced."""
    return {
        name: _replaced(getattr(builder, name), function) for name, function in _FUNCTIONS.items()
    }


def _replaced(
    before: Callable[..., Any], function: Callable[..., np.ndarray]
) -> Callable[..., Any]:
    def create(*handles: Any) -> Any:
        if any(handle.data.dtype != np.float32 for handle in handles):
            return before(*handles)
        result = function(*(handle.data for handle in handles))
        return interpreter.TensorHandle(result, handles[0].dtype.scalar)

    return create


def sums(before: Callable[..., Any], loaded: Callable[[Any], int], warps: Callable[[], int]) -> Any:
    """Return the interpreter's sum, in the order of the most likely layout."""
    major, minor = (int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
    pairs = (major, minor) >= (3, 8)

    def add(reduction: Any, input: Any) -> Any:
        x, axis = input.handle.data, reduction.axis
        if axis is None or x.dtype not in (np.float32, np.float64):
            return before(reduction, input)
        order = sum_order(x.shape, axis, loaded=loaded(input.handle), warps=warps(), pairs=pairs)
        total = add_tile(np.moveaxis(x, axis, -1), order)
        if reduction.keep_dims:
            total = np.expand_dims(total, axis)
        return reduction.to_tensor(total, input.dtype)

    return add
