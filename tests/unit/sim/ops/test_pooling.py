"""vitruvian.ops: pooling by PyTorch's definition, and by PyTorch itself if it is installed."""

import importlib.util
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian import ops
from vitruvian.sim.davinci import Report, load_chip
from vitruvian.sim.kernels.pooling import METHODS
from vitruvian.sim.kernels.pooling.layers import LAYERS

#: The functions without their types, for wrong arguments and for options in dictionaries.
F: Any = ops

HAS_TORCH = importlib.util.find_spec("torch") is not None


def windows(size, kernel, stride, padding, dilation, ceil):
    """Return the pixels of each window along an axis, as PyTorch's documentation defines them."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    # Windows that begin in the far padding are left out.
    while ceil and (count - 1) * stride >= size + padding:
        count -= 1
    starts = [o * stride - padding for o in range(count)]
    return [
        [s + k * dilation for k in range(kernel) if 0 <= s + k * dilation < size] for s in starts
    ]


def largest(x, rows, columns):
    """Return the maxima and the indices of the first ones."""
    y = np.zeros((*x.shape[:2], len(rows), len(columns)), x.dtype)
    where = np.zeros(y.shape, np.int64)
    for n, c, i, j in np.ndindex(y.shape):
        best = None
        for row in rows[i]:
            for column in columns[j]:
                value = x[n, c, row, column]
                if best is None or value > best:
                    best, where[n, c, i, j] = value, row * x.shape[3] + column
        y[n, c, i, j] = best
    return y, where


@st.composite
def cases(draw, dilated=True):
    """Return an input and options, all within what PyTorch allows."""
    axes = []
    for _ in range(2):
        kernel, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2 if dilated else 1))
        extent = (kernel - 1) * dilation + 1
        padding = draw(st.integers(0, extent // 2))
        size = draw(st.integers(max(1, extent - 2 * padding), 8))
        axes.append((size, kernel, draw(st.integers(1, 3)), padding, dilation))
    size, kernel, stride, padding, dilation = zip(*axes, strict=True)
    ceil = draw(st.booleans())
    shape = draw(st.integers(1, 2)), draw(st.sampled_from([1, 3, 16, 17])), *size
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.integers(-2, 3, shape) if draw(st.booleans()) else rng.normal(0, 9, shape)
    options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
    rows, columns = (windows(n, k, s, p, d, ceil) for n, k, s, p, d in axes)
    return values.astype(np.float16) + np.float16(0), options, dilation, rows, columns


@settings(max_examples=15)
@given(cases(), st.sampled_from(sorted(METHODS)))
def test_max_pool2d_and_its_gradient(case, method):
    x, options, dilation, rows, columns = case
    if not all(rows) or not all(columns):
        return  # dilation can leave a window without a pixel, which PyTorch does not define
    options |= {"dilation": dilation, "method": method}
    y, where = ops.max_pool2d(x, **options, return_indices=True)
    best, index = largest(x, rows, columns)
    assert y.dtype == np.float16 and np.array_equal(y.view("u2"), best.view("u2"))
    assert where.dtype == np.int64 and np.array_equal(where, index)
    assert np.array_equal(ops.max_pool2d(x, **options), y)
    # Whole numbers have exact sums, so that their order does not matter here.
    grad = np.random.default_rng(1).integers(-9, 10, y.shape).astype(np.float16)
    dx = np.zeros(x.shape, np.float16)
    for n, c in np.ndindex(x.shape[:2]):
        np.add.at(dx[n, c].reshape(-1), index[n, c].reshape(-1), grad[n, c].reshape(-1))
    assert np.array_equal(ops.max_pool2d_backward(grad, x, **options), dx)
    assert np.array_equal(ops.max_pool2d_backward(grad, x, **options, indices=where), dx)


@settings(max_examples=15)
@given(
    cases(dilated=False),
    st.sampled_from(sorted(METHODS)),
    st.booleans(),
    st.sampled_from([None, 7, -3]),
)
def test_avg_pool2d_and_its_gradient(case, method, include, divisor):
    """Sums of small whole numbers are exact in any order, and the quotient is rounded once."""
    x, options, _, rows, columns = case
    x = np.round(x).astype(np.float16) + np.float16(0)
    options |= {"method": method, "count_include_pad": include, "divisor_override": divisor}
    sums = np.zeros((*x.shape[:2], len(rows), len(columns)), np.float16)
    counts = np.zeros(sums.shape[2:], np.float16)
    (kh, kw), (sh, sw), (ph, pw) = (options[k] for k in ("kernel_size", "stride", "padding"))
    for i, j in np.ndindex(counts.shape):
        sums[:, :, i, j] = x[:, :, rows[i]][:, :, :, columns[j]].astype(float).sum(axis=(2, 3))
        inside = len(rows[i]) * len(columns[j])
        high = min(i * sh - ph + kh, x.shape[2] + ph) - (i * sh - ph)
        wide = min(j * sw - pw + kw, x.shape[3] + pw) - (j * sw - pw)
        counts[i, j] = divisor or (high * wide if include else inside)
    y = ops.avg_pool2d(x, **options)
    # The quotient of +0 by a negative divisor is −0.
    assert np.array_equal(y.view("u2"), ((sums + np.float16(0)) / counts).view("u2"))
    # Multiples of all divisors have exact quotients.
    grad = np.random.default_rng(2).integers(-3, 4, y.shape) * counts.astype(int)
    dx = np.zeros(x.shape, np.float16)
    for i, j in np.ndindex(counts.shape):
        for row in rows[i]:
            dx[:, :, row, columns[j]] += (grad / counts)[:, :, i, j, None].astype(np.float16)
    assert np.array_equal(ops.avg_pool2d_backward(grad.astype(np.float16), x, **options), dx)


def test_one_image_has_no_batch_axis():
    rng = np.random.default_rng(8)
    x = rng.integers(-9, 9, (3, 6, 7)).astype(np.float16)
    y, where = ops.max_pool2d(x, 2, return_indices=True)
    expected = ops.max_pool2d(x[None], 2, return_indices=True)
    assert y.shape == where.shape == (3, 3, 3)
    assert np.array_equal(y, expected[0][0]) and np.array_equal(where, expected[1][0])
    grad = rng.integers(-4, 5, y.shape).astype(np.float16)
    dx = ops.max_pool2d_backward(grad[None], x[None], 2)[0]
    assert np.array_equal(ops.max_pool2d_backward(grad, x, 2), dx)
    assert np.array_equal(ops.max_pool2d_backward(grad, x, 2, indices=where), dx)
    y, report = ops.avg_pool2d(x, 2, report=True)
    assert np.array_equal(y, ops.avg_pool2d(x[None], 2)[0]) and report.total_s > 0
    dx = ops.avg_pool2d_backward(grad, x, 2)
    assert np.array_equal(dx, ops.avg_pool2d_backward(grad[None], x[None], 2)[0])
    with pytest.raises(
        ValueError, match=r"grad_output must have the shape \(3, 3, 3\), not \(1, 3"
    ):
        ops.avg_pool2d_backward(grad[None], x, 2)
    with pytest.raises(ValueError, match=r"indices must have the shape \(3, 3, 3\), not \(1, 3"):
        ops.max_pool2d_backward(grad, x, 2, indices=where[None])


@pytest.mark.parametrize("method", METHODS)
def test_an_average_is_within_its_bound(method):
    """The bound of the docstring, for values of both signs and of all magnitudes."""
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(1, 16, 30, 30)) * 2.0 ** rng.integers(-20, 8, (1, 16, 30, 30))).astype(
        "e"
    )
    wide = x.astype(float)
    views = np.lib.stride_tricks.sliding_window_view(wide, (5, 5), (2, 3))
    mean, size = views.mean(axis=(-1, -2)), np.abs(views).sum(axis=(-1, -2))
    distance = np.abs(ops.avg_pool2d(x, 5, 1, method=method) - mean)
    bound = ((1 + 2.0**-11) ** 25 - 1) * size / 25 + 2.0**-25
    assert (distance <= bound).all() and distance.max() > 0


def test_channels_and_images_are_independent():
    """A group of 16 channels is filled up, and every channel is pooled by itself."""
    x = np.random.default_rng(4).normal(size=(3, 35, 6, 5)).astype(np.float16)
    whole = ops.max_pool2d(x, 2)
    for n, c in ((0, 0), (2, 34), (1, 16)):
        assert np.array_equal(ops.max_pool2d(x[n : n + 1, c : c + 1], 2)[0, 0], whole[n, c])


def test_a_report_comes_with_the_result():
    x = np.ones((1, 1, 6, 6), np.float16)
    y, where, report = ops.max_pool2d(x, 2, return_indices=True, report=True)
    assert y.shape == where.shape == (1, 1, 3, 3)
    assert isinstance(report, Report) and not report.findings and report.total_s > 0
    _, direct = ops.avg_pool2d(x, 2, method="direct", chip=load_chip("ascend310"), report=True)
    assert direct.chip.name == "ascend310"
    for backward in (ops.max_pool2d_backward, ops.avg_pool2d_backward):
        dx, report = backward(y, x, 2, report=True)
        assert dx.shape == x.shape and not report.findings


def test_what_differs_from_pytorch_is_what_the_documentation_says():
    nan, inf = np.nan, np.inf
    x = np.array([[[[nan, 1, nan, nan], [2, 0, nan, nan]]]], np.float16)
    y, where = ops.max_pool2d(x, 2, return_indices=True)
    assert y.tolist() == [[[[2.0, -inf]]]] and where.tolist() == [[[[4, 2]]]]
    zeros = np.array([[[[-0.0, 0.0]]]], np.float16)
    y, where = ops.max_pool2d(zeros, (1, 2), return_indices=True)
    assert not np.signbit(y).any() and where.item() == 0
    # The mask marks no pixel of a window of NaNs; its index is that of its first pixel.
    for more, dx in (({}, [0, 0]), ({"indices": np.zeros((1, 1, 1, 1), int)}, [1, 0])):
        ones, nans = np.ones((1, 1, 1, 1), np.float16), np.full((1, 1, 1, 2), nan, np.float16)
        assert F.max_pool2d_backward(ones, nans, (1, 2), **more).flatten().tolist() == dx
    x = np.full((1, 1, 2, 2), -inf, np.float16)
    y, where = ops.max_pool2d(x, 2, 1, 1, return_indices=True)
    assert (y == -inf).all() and where.tolist() == [[[[0, 0, 1], [0, 0, 1], [2, 2, 3]]]]
    grad = np.array([[[[inf]]]], np.float16)
    dx = ops.max_pool2d_backward(grad, zeros, (1, 2))
    assert dx[0, 0, 0, 0] == inf and np.isnan(dx[0, 0, 0, 1])


@pytest.mark.parametrize("method", METHODS)
def test_a_window_without_a_pixel_has_the_index_of_pytorch(method):
    """Dilation leaves the windows in the padding; PyTorch 2.15 printed the expected numbers."""
    x = np.arange(1, 20, dtype=np.float16).reshape(1, 1, 19, 1)
    options = {"kernel_size": (4, 2), "stride": 2, "padding": (0, 1), "dilation": 2}
    y, where = F.max_pool2d(x, **options, return_indices=True, method=method)
    assert (y == -np.inf).all() and where.flatten().tolist() == [1, 3, 5, 7, 9, 11, 13]
    grad = np.arange(1, 8, dtype=np.float16).reshape(y.shape)
    wanted = [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0, 0, 0, 0]
    for more in ({}, {"indices": where}):
        dx = F.max_pool2d_backward(grad, x, **options, **more, method=method)
        assert dx.flatten().tolist() == wanted
    # A gradient whose index is behind the image has no effect.
    y, where = F.max_pool2d(x[:, :, :7], **options, return_indices=True)
    assert where.flatten().tolist() == [1]
    y, where = F.max_pool2d(x[:, :, :1], (1, 2), 1, (0, 1), dilation=2, return_indices=True)
    assert y.item() == -np.inf and where.item() == 1
    dx = F.max_pool2d_backward(np.ones_like(y), x[:, :, :1], (1, 2), 1, (0, 1), dilation=2)
    assert dx.item() == 0


def test_with_ceil_mode_the_only_window_may_be_partial():
    """PyTorch takes 7 pixels into 6 if the stride is 2, and refuses it if the stride is 1."""
    x = np.arange(1, 13, dtype=np.float16).reshape(1, 1, 6, 2)
    y, where = ops.max_pool2d(x, (7, 1), 2, ceil_mode=True, return_indices=True)
    assert y.flatten().tolist() == [11] and where.flatten().tolist() == [10]
    dx = ops.max_pool2d_backward(y, x, (7, 1), 2, ceil_mode=True)
    assert dx.flatten().tolist() == [0] * 10 + [11, 0]
    # The pixels beyond the image do not count in the divisor.
    assert ops.avg_pool2d(x, (7, 1), 2, ceil_mode=True).item() == 6
    for stride in (1, 2):
        with pytest.raises(ValueError, match="kernel_size must fit into the padded image, not 8"):
            ops.max_pool2d(x, (8, 1), stride, ceil_mode=True)


X = np.zeros((1, 2, 4, 5), np.float16)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.max_pool2d(X, 6), ValueError, "kernel_size must fit into the padded image"),
        (lambda: F.max_pool2d(X, 2, 0), ValueError, "stride must be 1 or more, not 0"),
        (lambda: F.max_pool2d(X, 0), ValueError, "kernel_size must be 1 or more, not 0"),
        (
            lambda: F.max_pool2d(X, 2, 1, 2),
            ValueError,
            "padding must be at most half of",
        ),
        (lambda: F.avg_pool2d(X, 2, 1, -1), ValueError, "padding must be 0 or more, not -1"),
        (
            lambda: F.max_pool2d(X, 2.5),
            TypeError,
            "kernel_size must be an int or two ints",
        ),
        (
            lambda: F.max_pool2d(X, (1, 2, 3)),
            TypeError,
            "kernel_size must be an int or two ints",
        ),
        (
            lambda: F.max_pool2d(X, 2, dilation=0),
            ValueError,
            "dilation must be 1 or more, not 0",
        ),
        (
            lambda: F.max_pool2d(X[0, 0], 2),
            ValueError,
            r"x must be \(N, C, H, W\) or \(C, H, W\), each 1 or more",
        ),
        (lambda: F.max_pool2d(X[:, :0], 2), ValueError, r"x must be \(N, .*, each 1 or"),
        (
            lambda: F.max_pool2d(X.astype("f"), 2),
            TypeError,
            "array of float16, not an array",
        ),
        (
            lambda: F.avg_pool2d([[1.0]], 2),
            TypeError,
            "x must be a NumPy array of float16, not",
        ),
        (
            lambda: F.max_pool2d(X, 2, method="fast"),
            ValueError,
            "method must be one of auto, direct",
        ),
        (lambda: F.max_pool2d(X, 2, chip="none"), ValueError, "chip"),
        (
            lambda: F.max_pool2d(X, 2, method="im2col", chip="ascend910b"),
            ValueError,
            "method of a pooling on ascend910b must be direct, expansion, xy, strided, not im2col",
        ),
        (
            lambda: F.avg_pool2d(X, 2, divisor_override=0),
            ValueError,
            "divisor_override must be",
        ),
        (
            lambda: F.avg_pool2d(X, 2, divisor_override=1.5),
            TypeError,
            "divisor_override must be",
        ),
        (
            lambda: F.max_pool2d_backward(X, X, 2),
            ValueError,
            "grad_output must have the shape",
        ),
        (
            lambda: F.max_pool2d_backward(X[:, :, :2, :2], X, 2, indices=np.zeros((1, 2, 2, 2))),
            TypeError,
            "indices must be a NumPy array of integers",
        ),
        (
            lambda: F.max_pool2d_backward(X[:, :, :2, :2], X, 2, indices=np.full((1, 2, 2, 2), 3)),
            ValueError,
            "indices must be in the window that they belong to",
        ),
        (
            lambda: F.min_pool2d,
            AttributeError,
            "module 'vitruvian.ops' has no attribute",
        ),
    ],
)
def test_a_wrong_argument_is_one_clear_line(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layers_equal_pytorch(layer):
    """Only layers with equal padding on both sides; averages are compared within their bound."""
    import torch  # pyright: ignore[reportMissingImports]

    if layer.pad[0] != layer.pad[1]:
        return
    rng = np.random.default_rng(layer.side)
    x = rng.integers(-9, 10, (1, 16, layer.side, layer.side)).astype(np.float16)
    options = {"kernel_size": layer.kernel, "stride": layer.stride, "padding": layer.pad[0]}
    wide = torch.tensor(x.astype(np.float32))
    if layer.reduction == "max":
        y, where = ops.max_pool2d(x, **options, return_indices=True)
        best, index = torch.nn.functional.max_pool2d(wide, **options, return_indices=True)
        assert np.array_equal(y, best.numpy()) and np.array_equal(where, index.numpy())
    else:
        y = ops.avg_pool2d(x, **options, count_include_pad=False)
        mean = torch.nn.functional.avg_pool2d(wide, **options, count_include_pad=False).numpy()
        # Sums of these whole numbers are exact, so only the quotient is rounded: half an ulp.
        assert (np.abs(y - mean) <= 2.0**-11 * np.abs(mean) + 2.0**-25).all()
