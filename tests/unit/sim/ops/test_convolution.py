"""``conv2d``, ``unfold`` and ``fold`` with PyTorch's arguments, against SciPy and plain NumPy."""

from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate2d

from vitruvian import ops
from vitruvian.sim.kernels.convolution import golden
from vitruvian.sim.ops.convolution import shape_of

RNG = np.random.default_rng(21)


def halves(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float16)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(np.float16)


def by_scipy(x, w, b, stride, padding, dilation, groups) -> np.ndarray:
    """Convolve one pair of channels after the other, with dilated kernels, in float64."""
    (ph, pw), (sh, sw), (dh, dw) = padding, stride, dilation
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    filters, depth, kh, kw = w.shape
    kernels = np.zeros((filters, depth, (kh - 1) * dh + 1, (kw - 1) * dw + 1))
    kernels[:, :, ::dh, ::dw] = w
    each = filters // groups
    found = [
        [
            sum(
                correlate2d(image[f // each * depth + c], kernels[f, c], "valid")[::sh, ::sw]
                for c in range(depth)
            )
            + float(b[f])
            for f in range(filters)
        ]
        for image in padded
    ]
    return np.array(found)


@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "stride", "padding", "dilation", "groups"),
    [
        (3, 5, (3, 3), (1, 1), (1, 1), (1, 1), 1),
        (20, 33, (2, 3), (2, 1), (0, 2), (1, 2), 1),
        (12, 18, (3, 3), (1, 2), (1, 0), (1, 1), 3),
        (18, 18, (3, 3), (2, 2), (1, 1), (1, 1), 18),
        (6, 12, (5, 1), (1, 1), (2, 0), (1, 1), 6),
        (1, 1, (1, 1), (3, 3), (2, 2), (1, 1), 1),
        (4, 4, (3, 3), (1, 1), (4, 5), (1, 1), 4),
    ],
)
def test_conv2d_is_exact_on_integers(channels, filters, kernel, stride, padding, dilation, groups):
    x, w = integers(2, channels, 11, 9), integers(filters, channels // groups, *kernel)
    b = integers(filters)
    y, report = ops.conv2d(x, w, b, stride, padding, dilation, groups, report=True)
    assert y.dtype == np.float16 and not report.findings
    assert np.array_equal(y, by_scipy(x, w, b, stride, padding, dilation, groups))


@pytest.mark.parametrize(("groups", "model"), [(1, golden.dense), (24, golden.depthwise)])
def test_conv2d_is_golden_to_the_bit(groups, model):
    x, w, b = halves(1, 24, 10, 12), halves(24, 24 // groups, 3, 3), halves(24)
    s = shape_of(x.shape, w.shape, 2, 1, 1, groups)
    for chip in ("ascend310", "ascend910"):
        y = ops.conv2d(x, w, b, 2, 1, groups=groups, chip=chip)
        assert y.tobytes() == model(s, x, w, b).tobytes()


@pytest.mark.parametrize(("filters", "method"), [(48, "auto"), (33, "auto"), (3, "cube")])
def test_a_channel_with_many_filters_has_sums_in_fp32(filters, method):
    x, w = halves(1, 3, 9, 9), halves(filters, 1, 5, 5)
    exact = by_scipy(x, w, np.zeros(filters), (1, 1), (2, 2), (1, 1), 3)
    y, report = ops.conv2d(x, w, padding=2, groups=3, method=method, report=True)
    errors = np.abs(y - exact) - np.abs(exact) * 2.0**-11
    on_cube = filters >= 48 or method == "cube"
    assert (errors.max() < 1e-5) == on_cube and not report.findings
    s = shape_of(x.shape, w.shape, 1, 2, 1, 3)
    if on_cube:
        assert y.tobytes() == golden.dense(s, x, w, None).tobytes()
        other = ops.conv2d(x, w, padding=2, groups=3, method="vector")
        assert np.abs(other - exact).max() > 2e-3


def test_one_image_has_no_batch_axis():
    x, w = integers(20, 6, 7), integers(5, 20, 3, 3)
    y, report = ops.conv2d(x, w, padding=1, report=True)
    assert y.shape == (5, 6, 7) and report.total_s > 0
    assert np.array_equal(y, ops.conv2d(x[None], w, padding=1)[0])
    columns = ops.unfold(x, 2)
    assert np.array_equal(columns, ops.unfold(x[None], 2)[0])
    assert np.array_equal(ops.fold(columns, (6, 7), 2), ops.fold(columns[None], (6, 7), 2)[0])


def test_padding_by_name():
    x, w = integers(1, 2, 6, 7), integers(3, 2, 2, 4)
    assert np.array_equal(ops.conv2d(x, w, padding="valid"), ops.conv2d(x, w))
    y = ops.conv2d(x, w, padding="same", dilation=(2, 1))
    # An odd number of zeros has the additional one at the end, as in PyTorch.
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 2)))
    assert y.shape == (1, 3, 6, 7)
    assert np.array_equal(y, ops.conv2d(wide, w, dilation=(2, 1)))


GEOMETRIES = [
    ((3, 3), 1, 1, 1),
    ((3, 2), (1, 2), (1, 0), (2, 1)),
    (2, 1, 0, 3),
    ((5, 1), 1, (2, 0), (1, 1)),
    (1, 1, 2, 2),
]


def columns(x, kernel, dilation, padding, stride) -> np.ndarray:
    """Return PyTorch's columns by a loop over positions of the kernel."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (
        (v, v) if isinstance(v, int) else v for v in (kernel, dilation, padding, stride)
    )
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    oh = (padded.shape[2] - (kh - 1) * dh - 1) // sh + 1
    ow = (padded.shape[3] - (kw - 1) * dw - 1) // sw + 1
    rows, across = np.arange(oh) * sh, np.arange(ow) * sw
    parts = [
        padded[:, :, rows[:, None] + i * dh, across + j * dw].reshape(*x.shape[:2], -1)
        for i, j in np.ndindex(kh, kw)
    ]
    return np.stack(parts, axis=2).reshape(len(x), -1, oh * ow)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_unfold_and_its_way_back(geometry):
    x = integers(1, 17, 9, 8)
    u, report = ops.unfold(x, *geometry, report=True)
    assert not report.findings and np.array_equal(u, columns(x, *geometry))
    kernel, *rest = geometry
    multiplicity = ops.fold(columns(np.ones_like(x), *geometry), (9, 8), kernel, *rest)
    y, report = ops.fold(u, (9, 8), kernel, *rest, report=True)
    # Products of small integers are exact in any order.
    assert not report.findings and np.array_equal(y, x * multiplicity)
    if kernel == (3, 3):
        assert multiplicity[0, 0, 5, 5] == 9 and multiplicity[0, 0, 0, 0] == 4


def test_fold_rounds_every_sum_in_the_order_of_the_kernel():
    u = halves(1, 9 * 2, 25)
    y = ops.fold(u, 5, 3, padding=1)
    image = np.zeros((2, 7, 7), np.float16)
    for (i, j), part in zip(np.ndindex(3, 3), u.reshape(2, 9, 5, 5).swapaxes(0, 1), strict=True):
        image[:, i : i + 5, j : j + 5] += part
    assert y.tobytes() == np.ascontiguousarray(image[None, :, 1:6, 1:6]).tobytes()
    # The other order gives other bits, so the test can see the order.
    other = np.zeros_like(image)
    for i, j in list(np.ndindex(3, 3))[::-1]:
        other[:, i : i + 5, j : j + 5] += u.reshape(2, 9, 5, 5)[:, 3 * i + j]
    assert other.tobytes() != image.tobytes()


def test_conv2d_is_unfold_times_the_kernels():
    x, w = integers(1, 5, 8, 8), integers(7, 5, 3, 3)
    u = ops.unfold(x, 3, padding=1).astype(float)
    y = np.einsum("fk,nkl->nfl", w.reshape(7, -1).astype(float), u).reshape(1, 7, 8, 8)
    assert np.array_equal(ops.conv2d(x, w, padding=1), y)


#: Without their types, so that wrong ones can be passed.
CONV2D: Any = ops.conv2d
UNFOLD: Any = ops.unfold
FOLD: Any = ops.fold

X, W = np.ones((1, 4, 5, 6), np.float16), np.ones((6, 4, 3, 3), np.float16)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: CONV2D(X.astype(np.float32), W), TypeError, "x must be .* of float32"),
        (lambda: CONV2D(X, W.tolist()), TypeError, "w must be a NumPy array of float16, not"),
        (lambda: CONV2D(X[0, 0], W), ValueError, r"x must be \(N, C, H, W\) or .* not \(5, 6\)"),
        (lambda: CONV2D(X, W, method="v"), ValueError, "method must be one of auto, cube, vec"),
        (lambda: CONV2D(X, W, method="vector"), ValueError, "groups must be the 4 channels, .* 1"),
        (lambda: CONV2D(X, W[:, :3]), ValueError, "w must have 4 channels / 1 groups = 4"),
        (lambda: CONV2D(X, W, groups=3), ValueError, "groups must divide 4 channels and 6 f"),
        (lambda: CONV2D(X, W, groups=0), ValueError, "groups must divide .*, not 0"),
        (lambda: CONV2D(X, W, groups=1.0), TypeError, "groups must be an int, not 1.0"),
        (lambda: CONV2D(X, W, stride=0), ValueError, "stride must be 1 or more, not 0"),
        (lambda: CONV2D(X, W, stride=(1, 1, 1)), TypeError, "stride must be an int or two"),
        (lambda: CONV2D(X, W, padding=-1), ValueError, "padding must be 0 or more, not -1"),
        (lambda: CONV2D(X, W, padding="full"), ValueError, "padding must be int, two ints, 'v"),
        (
            lambda: CONV2D(X, W, None, 2, "same"),
            ValueError,
            "stride must be 1 with padding 'same'",
        ),
        (lambda: CONV2D(X, W, dilation=3), ValueError, "must fit into the padded image, not 7"),
        (lambda: CONV2D(X, W, W[0, 0, 0]), ValueError, r"b must have .* of 6 filters, not \(3"),
        (lambda: CONV2D(X, W, [1.0] * 6), TypeError, "b must be .* of float16, not 'list'"),
        (lambda: UNFOLD(X, 8), ValueError, "kernel must fit into the padded image, not 8 × 8"),
        (lambda: UNFOLD(X, 0), ValueError, "kernel_size must be 1 or more, not 0"),
        (lambda: UNFOLD(X[0, 0], 2), ValueError, r"x must be \(N, C, H, W\) or"),
        (lambda: FOLD(X, 5, 2), ValueError, r"x must be \(N, C·Kh·Kw, L\) or .*, each 1 or more"),
        (lambda: FOLD(X[0], 4, 2), ValueError, "axis 1 of x must be C·2·2 = C·Kh·Kw, not 5"),
        (
            lambda: FOLD(X[0], 4, (5, 1), padding=1),
            ValueError,
            "axis 2 of x must be 2·6 = 12, not",
        ),
        (lambda: FOLD([1], 4, 2), TypeError, "x must be a NumPy array of float16, not 'list'"),
    ],
)
def test_mistakes_get_one_line(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_computation_that_takes_too_long_is_refused():
    x, w = np.zeros((1, 512, 200, 200), np.float16), np.zeros((512, 512, 3, 3), np.float16)
    with pytest.raises(ValueError, match="multiply-accumulates of conv2d must be at most"):
        ops.conv2d(x, w)
