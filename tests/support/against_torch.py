"""Random comparisons of ``vitruvian.ops`` with PyTorch, which a test may repeat as it likes.

Each function draws one case, and returns a description of it if the results differ. PyTorch
computes in float32 where the result is exact, and otherwise in float64, so that its own rounding
does not count; the bound is then that of FP16 and FP32 sums.
"""

from typing import Any

import numpy as np

from vitruvian import ops as _ops
from vitruvian.sim.kernels.pooling import METHODS

#: The functions without their types, since options are in dictionaries.
ops: Any = _ops

#: Half an ulp of FP16 and, beside it, that of FP32, relative; half of FP16's least subnormal.
HALF, SINGLE, TINY = 2.0**-11, 2.0**-24, 2.0**-25


def _torch(array: np.ndarray, dtype: Any = np.float64) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.from_numpy(np.ascontiguousarray(array.astype(dtype)))


def _functional() -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.nn.functional


def _both(call, torch_call) -> Any:
    """Return the two results, or None if both sides refuse; one refusal alone is raised."""
    mine = theirs = mine_error = theirs_error = None
    try:
        theirs = torch_call()
    except RuntimeError as error:
        theirs_error = error
    try:
        mine = call()
    except ValueError as error:
        mine_error = error
    if (mine_error is None) != (theirs_error is None):
        raise AssertionError(f"ours: {mine_error}, PyTorch: {theirs_error}")
    return None if mine_error else (mine, theirs)


def _two(rng, low: int, high: int) -> tuple[int, int]:
    first, second = rng.integers(low, high, 2)
    return int(first), int(second)


def _image(rng, most: int = 22) -> np.ndarray:
    """Return an image with ties, with other numbers, or with all bit patterns but NaNs."""
    shape = tuple(int(n) for n in (rng.integers(1, 3), rng.integers(1, 36), *_two(rng, 1, most)))
    kind = rng.integers(3)
    if kind == 0:
        return (rng.integers(-8, 8, shape) / 2).astype(np.float16)
    if kind == 1:
        return rng.normal(size=shape).astype(np.float16)
    x = rng.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16)
    return np.where(np.isnan(x), np.float16(np.inf), x)


def _maybe_single(rng, x: np.ndarray) -> np.ndarray:
    """Return images, or the first one without its batch axis."""
    return x if rng.integers(3) else x[0]


def _windows(rng) -> dict[str, Any]:
    kernel = _two(rng, 1, 5)
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    return {"kernel_size": kernel, "stride": _two(rng, 1, 4), "padding": padding}


def max_pool2d(rng) -> str | None:
    """Compare values, indices and the gradient, all exactly."""
    functional, x = _functional(), _maybe_single(rng, _image(rng))
    options = _windows(rng) | {"dilation": _two(rng, 1, 3), "ceil_mode": bool(rng.integers(2))}
    case = f"{x.shape} {options}"
    method = str(rng.choice(list(METHODS)))
    wide = _torch(x, np.float32).requires_grad_()
    both = _both(
        lambda: ops.max_pool2d(x, **options, method=method, return_indices=True),
        lambda: functional.max_pool2d(wide, **options, return_indices=True),
    )
    if both is None:
        return None
    (y, where), (best, index) = both
    # Equality of numbers, since −0 and +0 have their own line in the documentation.
    if not (np.array_equal(y, best.detach().numpy()) and np.array_equal(where, index.numpy())):
        return f"{method} {case}"
    if int(index.max()) >= x.shape[-2] * x.shape[-1]:
        return None  # PyTorch's gradient would write outside of its array.
    grad = rng.integers(-4, 5, y.shape).astype(np.float16)
    best.backward(_torch(grad, np.float32))
    for more in ({}, {"indices": where}):
        dx = ops.max_pool2d_backward(grad, x, **options, method=method, **more)
        if not np.array_equal(dx, wide.grad.numpy()):
            return f"gradient, {method} {case}"
    return None


def avg_pool2d(rng) -> str | None:
    """Compare within the bound of the docstring, and gradients of whole numbers within theirs."""
    functional, x = _functional(), _maybe_single(rng, _image(rng))
    x = np.where(np.abs(x) < 1000, x, np.float16(1))
    options = _windows(rng) | {
        "ceil_mode": bool(rng.integers(2)),
        "count_include_pad": bool(rng.integers(2)),
        "divisor_override": None if rng.integers(3) else int(rng.choice([-8, -3, -1, 1, 2, 5, 7])),
    }
    case = f"{x.shape} {options}"
    method = str(rng.choice(list(METHODS)))
    wide = _torch(x).requires_grad_()
    both = _both(
        lambda: ops.avg_pool2d(x, **options, method=method),
        lambda: functional.avg_pool2d(wide, **options),
    )
    if both is None:
        return None
    y, mean = both[0], both[1].detach().numpy()
    elements = int(np.prod(options["kernel_size"]))
    size = functional.avg_pool2d(_torch(np.abs(x)), **options).abs().numpy()
    bound = ((1 + HALF) ** elements - 1) * size + TINY
    if y.shape != mean.shape or not (np.abs(y - mean) <= bound).all():
        return f"{method} {case}"
    grad = rng.integers(-4, 5, y.shape).astype(np.float16)
    both[1].backward(_torch(grad))
    exact = wide.grad.numpy().copy()
    wide.grad.zero_()
    functional.avg_pool2d(wide, **options).backward(_torch(np.abs(grad)))
    size = wide.grad.abs().numpy()
    dx = ops.avg_pool2d_backward(grad, x, **options, method=method)
    # A pixel is in at most as many windows as the kernel has elements: one quotient and one sum of
    # each are rounded.
    bound = ((1 + HALF) ** (elements + 1) - 1) * size + 2 * elements * TINY
    if not (np.abs(dx - exact) <= bound).all():
        return f"gradient, {method} {case}"
    return None


def conv2d(rng) -> str | None:
    """Compare with float64, within the rounding of FP32 sums (Cube) or FP16 sums (depthwise)."""
    functional = _functional()
    groups = int(rng.choice([1, 1, 2, 3]))
    depth, each = int(rng.integers(1, 20)), int(rng.integers(1, 20))
    if rng.random() < 0.3:
        groups, depth, each = int(rng.integers(2, 20)), 1, int(rng.integers(1, 3))
    kernel = _two(rng, 1, 4)
    x = rng.normal(size=(int(rng.integers(1, 3)), groups * depth, *_two(rng, 1, 14)))
    w = rng.normal(size=(groups * each, depth, *kernel)).astype(np.float16)
    x, b = _maybe_single(rng, x.astype(np.float16)), None
    if rng.integers(2):
        b = rng.normal(size=groups * each).astype(np.float16)
    same = rng.random() < 0.25
    padding = "same" if same else _two(rng, 0, 3)
    stride = 1 if same else _two(rng, 1, 4)
    options = {"padding": padding, "stride": stride, "dilation": _two(rng, 1, 3), "groups": groups}
    case = f"x {x.shape}, w {w.shape}, bias {b is not None}, {options}"
    bias: Any = None if b is None else _torch(b)
    both = _both(
        lambda: ops.conv2d(x, w, b, **options),
        lambda: functional.conv2d(_torch(x), _torch(w), bias, **options).numpy(),
    )
    if both is None:
        return None
    y, exact = both
    size = functional.conv2d(
        _torch(np.abs(x)), _torch(np.abs(w)), None if b is None else bias.abs(), **options
    ).numpy()
    terms = depth * kernel[0] * kernel[1] + 1
    if depth == 1 < groups and each < 16:
        # Each product is rounded with its sum, and the bias is one more sum.
        bound = ((1 + HALF) ** terms - 1) * size + terms * TINY
    else:
        # At most one rounding of FP32 for each term, and one to FP16.
        inner = ((1 + SINGLE) ** terms - 1) * size
        bound = inner + HALF * (np.abs(exact) + inner) + TINY
    if y.shape != exact.shape or not (np.abs(y - exact) <= bound).all():
        return case
    return None


def unfold_and_fold(rng) -> str | None:
    """Compare the bits of ``unfold``, and ``fold`` within the rounding of its FP16 sums."""
    functional, x = _functional(), _maybe_single(rng, _image(rng, 16))
    options = _windows(rng) | {"dilation": _two(rng, 1, 3)}
    options["padding"] = _two(rng, 0, 3)
    case = f"{x.shape} {options}"
    both = _both(
        lambda: ops.unfold(x, **options),
        lambda: functional.unfold(_torch(x, np.float32), **options).numpy().astype(np.float16),
    )
    if both is None:
        return None
    if both[0].shape != both[1].shape or both[0].tobytes() != both[1].tobytes():
        return f"unfold {case}"
    u = rng.normal(size=both[0].shape).astype(np.float16)
    y = ops.fold(u, x.shape[-2:], **options)
    exact = functional.fold(_torch(u), x.shape[-2:], **options).numpy()
    size = functional.fold(_torch(np.abs(u)), x.shape[-2:], **options).numpy()
    elements = int(np.prod(options["kernel_size"]))
    bound = ((1 + HALF) ** (elements - 1) - 1) * size
    # Sums of FP16 numbers below the normal range are exact, so there is no further term.
    if y.shape != exact.shape or not (np.abs(y - exact) <= bound).all():
        return f"fold {case}"
    return None


COMPARISONS = (max_pool2d, avg_pool2d, conv2d, unfold_and_fold)
