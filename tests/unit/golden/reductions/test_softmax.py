"""Softmax and norms against PyTorch's kernels, thread by thread, and against exact values."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from vitruvian import functions, reductions
from vitruvian.common.errors import UserError
from vitruvian.golden.fp.fused import fused
from vitruvian.golden.reductions.softmax import places_of_a_row

RNG = np.random.default_rng(21)
F = np.float32


def kernel(row: np.ndarray, size: int, shift: int) -> np.float32:
    """Return the sum of a row as the threads of PyTorch's kernels add it."""
    n, vector = len(row), 16 // size
    if n <= 2048:
        elements = 1 << (n - 1).bit_length()
        width = min(elements, 32)
        lanes = [F(0)] * width
        for lane in range(width):
            for i in range(lane, n, width):
                lanes[lane] += row[i]
        return butterfly(lanes)
    held = [F(0)] * 1024
    if n <= 9216:
        for t in range(1024):
            for i in range(t, n, 1024):
                held[t] += row[i]
    elif n % vector == 0 and n < (49152 - 128) // size:
        for t in range(1024):
            for start in range(vector * t, n, vector * 1024):
                for i in range(start, start + vector):
                    held[t] += row[i]
    else:
        start, left = 0, n
        if shift:
            for t in range(shift, 1024):
                held[t] += row[t - shift]
            start, left = 1024 - shift, n + shift - 1024
        last = left % (vector * 1024)
        for t in range(1024):
            for offset in range(t, (left - last) // vector, 1024):
                for i in range(vector):
                    held[t] += row[start + vector * offset + i]
            for i in range(left - last + t, left, 1024):
                held[t] += row[start + i]
    return butterfly([butterfly(held[w : w + 32]) for w in range(0, 1024, 32)])


def butterfly(lanes: list[np.float32]) -> np.float32:
    """Return the sum that lane 0 of a warp has in the end."""
    offset = len(lanes) // 2
    while offset:
        lanes = [lane + lanes[i ^ offset] for i, lane in enumerate(lanes)]
        offset //= 2
    return lanes[0]


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=["fp32", "fp16", "bf16"]
)
@pytest.mark.parametrize("n", [1, 2, 3, 33, 100, 1024, 2047, 2048, 2049, 9216, 9220, 12256, 24515])
def test_rows_follow_the_kernels(n, dtype):
    x = (3 * RNG.standard_normal((3, n))).astype(dtype)
    rows, size = x.astype(np.float32), x.dtype.itemsize
    less = rows - rows.max(axis=1, keepdims=True)
    powers = functions.cuda("expf", less)
    sums = [kernel(powers[r], size, r * n % (16 // size)) for r in range(3)]
    sums = np.array(sums, np.float32)[:, None]
    got = reductions.pytorch_softmax(x)
    assert got.dtype == dtype and np.array_equal(got, (powers / sums).astype(dtype))
    logs = (less - functions.cuda("logf", sums)).astype(dtype)
    assert np.array_equal(reductions.pytorch_softmax(x, log=True), logs)
    exact = np.exp(less.astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    bits = {4: 20, 2: 7}[size]
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2.0**-bits, atol=1e-7)


@pytest.mark.parametrize("size", [2, 4])
def test_every_number_is_added_once(size):
    for n in [*range(1, 70), *range(2040, 2060), 9215, 9216, 9217, 12255, 12256, 12257, 50257]:
        for shift in range(16 // size):
            places = places_of_a_row(n, size, shift)
            assert np.array_equal(np.sort(places[places >= 0]), np.arange(n)), (n, shift)


def test_the_kernels_differ_in_their_sums():
    """An order that is not the kernel's gives other bits, so that the test above can fail."""
    x = RNG.standard_normal((200, 2052)).astype(np.float32)
    powers = functions.cuda("expf", x - x.max(axis=1, keepdims=True))
    got = reductions.pytorch_softmax(x)
    assert (got != powers / powers.sum(axis=1, keepdims=True)).any()
    assert (got[:, :2048] != reductions.pytorch_softmax(x[:, :2048])).any()


@pytest.mark.parametrize(("n", "across"), [(5, 3), (64, 64), (64, 65), (300, 7), (1000, 2)])
def test_an_axis_whose_numbers_lie_apart(n, across):
    x = RNG.standard_normal((2, n, across)).astype(np.float32)
    powers = functions.cuda("expf", x - x.max(axis=1, keepdims=True))
    threads = 1
    if across <= 64 and n >= 64:
        while across * threads <= 1024 and threads <= n:
            threads *= 2
        threads //= 2
    held = np.zeros((2, threads, across), np.float32)
    for i in range(n):
        held[:, i % threads] += powers[:, i]
    while held.shape[1] > 1:
        half = held.shape[1] // 2
        held = held[:, :half] + held[:, half:]
    assert np.array_equal(reductions.pytorch_softmax(x, 1), powers / held)


def test_special_numbers_of_a_row():
    x = np.zeros((4, 40), np.float32)
    x[0, 3], x[1, 3], x[2, 5], x[3] = np.nan, np.inf, -np.inf, -np.inf
    y = reductions.pytorch_softmax(x)
    assert np.isnan(y[[0, 1, 3]]).all() and y[2, 5] == 0 and y[2, 0] == F(1) / F(39)
    assert (y[0].view(np.uint32) == 0x7FFFFFFF).all()
    half = reductions.pytorch_softmax(x.astype(np.float16), log=True)
    assert (half[0].view(np.uint16) == 0x7FFF).all() and np.isneginf(half[2, 5])


def norm(row: np.ndarray, *, rms: bool) -> tuple[Any, Any]:
    """Return mean and mean square of a row, as the threads of PyTorch's kernel compute them."""
    threads = []
    for t in range(128):
        mean, squares, count = F(0), F(0), F(0)
        for start in range(4 * t, len(row), 512):
            for value in row[start : start + 4]:
                if rms:
                    squares = fused(value, value, squares)
                    continue
                delta, count = value - mean, count + F(1)
                mean = fused(delta, F(1) / count, mean)
                squares = fused(delta, value - mean, squares)
        threads.append((mean, squares, count))

    def both(b, a):
        if rms:
            return F(0), b[1] + a[1], F(0)
        delta, count = b[0] - a[0], a[2] + b[2]
        if count == 0:
            return F(0), F(0), count
        part = F(1) / count
        of_a, of_b = a[2] * part, b[2] * part
        return fused(of_a, a[0], of_b * b[0]), fused(delta * delta * a[2], of_b, a[1] + b[1]), count

    def halve(parts):
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [both(parts[i], parts[i + half]) for i in range(half)]
        return parts[0]

    mean, squares, _ = halve([halve(threads[w : w + 32]) for w in range(0, 128, 32)])
    return mean, squares / F(len(row))


@pytest.mark.parametrize(
    ("n", "dtype"), [(4, np.float32), (100, ml_dtypes.bfloat16), (516, np.float32)]
)
def test_norms_follow_the_kernels(n, dtype):
    x = (RNG.standard_normal((2, n)) + 0.5).astype(dtype)
    weight, bias = (RNG.standard_normal(n).astype(dtype) for _ in range(2))
    rows, w, b = (v.astype(np.float32) for v in (x, weight, bias))
    for r in range(2):
        mean, square = norm(rows[r], rms=False)
        scale = functions.cuda("rsqrtf", np.asarray(square + F(1e-5)))
        y = scale * (rows[r] - mean)
        plain = reductions.pytorch_layer_norm(x)
        assert np.array_equal(plain[r], y.astype(dtype))
        weighted = reductions.pytorch_layer_norm(x, weight)
        assert np.array_equal(weighted[r], (w * y).astype(dtype))
        moved = reductions.pytorch_layer_norm(x, bias=bias)
        parts = zip([scale] * n, rows[r] - mean, b, strict=True)
        alone = np.array([fused(*v) for v in parts])
        alone[::4] = (y + b)[::4]
        assert np.array_equal(moved[r], alone.astype(dtype))
        all_ = np.array([fused(*v) for v in zip(w, y, b, strict=True)])
        whole = reductions.pytorch_layer_norm(x, weight, bias)
        assert np.array_equal(whole[r], all_.astype(dtype))
        _, square = norm(rows[r], rms=True)
        y = rows[r] * functions.cuda("rsqrtf", np.asarray(square + F(1e-6)))
        got = reductions.pytorch_rms_norm(x, weight, eps=1e-6)
        assert np.array_equal(got[r], (w * y).astype(dtype))


@pytest.mark.parametrize("n", [1, 7, 4098, 5001])
def test_norms_of_rows_without_vectors_are_near_the_exact_ones(n):
    x = (RNG.standard_normal((3, n)) + 2).astype(np.float32)
    wide = x.astype(np.float64)
    mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
    exact = (wide - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(reductions.pytorch_layer_norm(x), exact, rtol=1e-5, atol=1e-5)
    exact = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(reductions.pytorch_rms_norm(x, eps=1e-6), exact, rtol=1e-5)
    x[0, 0] = np.nan
    assert (reductions.pytorch_layer_norm(x)[0].view(np.uint32) == 0x7FFFFFFF).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: reductions.pytorch_softmax(np.zeros(4)), TypeError, "x must be of float32"),
        (lambda: reductions.pytorch_softmax(np.zeros(4, F), 1), UserError, "axis must be one of"),
        (lambda: reductions.pytorch_softmax(np.zeros((0, 4), F)), UserError, "have numbers"),
        (lambda: reductions.pytorch_layer_norm(np.zeros(4, int)), TypeError, "x must be of"),
        (lambda: reductions.pytorch_layer_norm(np.zeros((0, 4), F)), UserError, "have numbers"),
        (
            lambda: reductions.pytorch_layer_norm(np.zeros(4, F), np.zeros(3, F)),
            UserError,
            r"weight must have the shape \(4,\), not \(3,\)",
        ),
        (
            lambda: reductions.pytorch_rms_norm(np.zeros(4, F), np.zeros(4, np.float16), eps=0.1),
            TypeError,
            "weight must be of .* of the type of x, not float16",
        ),
    ],
)
def test_what_a_kernel_does_not_take_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
