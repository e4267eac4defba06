"""Im2Col and Col2Im against loops over pixels, SciPy's correlation, and each other."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.signal import correlate2d

from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.scu import (
    Patches,
    col2im,
    col2im_add,
    from_nc1hwc0,
    im2col,
    im2col_load,
    kernel_matrix,
    to_nc1hwc0,
)

RNG = np.random.default_rng(20)
FIGURE = Patches(height=8, width=8, kernel=(2, 2), stride=(2, 2))  # Rohwedder 2021, Fig. 3.2


def small_cases():
    """Yield every small geometry that has a patch; C0 is 2 to keep the images small."""
    axes = product((1, 2, 4, 9), (1, 2, 3), (1, 2, 3), ((0, 0), (1, 0), (0, 2), (1, 1)), (1, 2))
    axis = [a for a in axes if a[0] + sum(a[3]) >= (a[1] - 1) * a[4] + 1]
    picked = RNG.integers(0, len(axis), (len(axis), 4))
    for index, others in zip(axis, picked, strict=True):
        for number in others:
            for (h, kh, sh, ph, dh), (w, kw, sw, pw, dw) in (
                (index, axis[number]),
                (axis[number], index),
            ):
                yield Patches(
                    height=h,
                    width=w,
                    kernel=(kh, kw),
                    stride=(sh, sw),
                    pad=(ph[0], ph[1], pw[0], pw[1]),
                    dilation=(dh, dw),
                )


CASES = list(small_cases())


def plain_im2col(image, p, pad_value=0):
    """Return (patches, C1·Kh·Kw, C0) by a loop over the padded image."""
    top, bottom, left, right = p.pad
    padded = np.pad(
        image, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value
    )
    high, wide = (p.kernel[0] - 1) * p.dilation[0] + 1, (p.kernel[1] - 1) * p.dilation[1] + 1
    rows = []
    for y in range(0, padded.shape[1] - high + 1, p.stride[0]):
        for x in range(0, padded.shape[2] - wide + 1, p.stride[1]):
            window = padded[:, y : y + high : p.dilation[0], x : x + wide : p.dilation[1]]
            rows.append(window.reshape(-1, image.shape[-1]))
    return np.array(rows)


def check_im2col(transform, cases):
    """Compare the whole image in both modes; return the number of patches."""
    total = 0
    for p in cases:
        image = RNG.integers(1, 100, (2, p.height, p.width, 2)).astype(np.int16)
        expected = plain_im2col(image, p, -7)
        short = -len(expected) % 16
        filled = np.concatenate([expected, np.full((short, *expected.shape[1:]), -7)])
        fractals = filled.reshape(-1, 16, *expected.shape[1:]).transpose(0, 2, 1, 3)
        assert np.array_equal(transform(image, p, mode=0, pad_value=-7), fractals), p
        turned = fractals.swapaxes(0, 1)
        assert np.array_equal(transform(image, p, mode=1, pad_value=-7), turned), p
        total += len(expected)
    return total


def test_every_small_case_is_a_walk_over_the_padded_image():
    assert len(CASES) > 1500 and len(set(CASES)) > 1200
    assert max(p.fractals for p in CASES) >= 4 and min(p.count for p in CASES) == 1
    assert check_im2col(im2col, CASES) > 10_000


def test_loads_of_all_patches_give_the_whole_image():
    """The instruction and the conversion of an image are computed in different ways."""

    def loaded(image, p, *, mode, pad_value):
        kh, kw = p.kernel
        steps = len(image) * kh * kw
        options = {"mode": mode, "pad_value": pad_value}
        if mode == 0:
            starts = [{"position": p.corner(16 * n)} for n in range(p.fractals)]
            repeat = steps
        else:
            places = [divmod(step, kh * kw) for step in range(steps)]
            starts = [{"channel": c, "kernel_position": divmod(at, kw)} for c, at in places]
            repeat = p.fractals
        return np.stack([im2col_load(image, p, repeat=repeat, **s, **options) for s in starts])

    assert check_im2col(loaded, CASES[::8]) > 1000


@pytest.mark.parametrize(
    "mutant",
    [
        lambda p: replace(p, stride=p.stride[::-1]),
        lambda p: replace(p, dilation=p.dilation[::-1]),
        lambda p: replace(p, kernel=p.kernel[::-1]),
        lambda p: replace(p, pad=(p.pad[2], p.pad[3], p.pad[0], p.pad[1])),
        lambda p: replace(p, pad=(p.pad[1], p.pad[0], p.pad[3], p.pad[2])),
    ],
    ids=["stride", "dilation", "kernel", "pad turned", "pad exchanged"],
)
def test_the_comparison_notices_an_exchange(mutant):
    def transform(image, p, **options):
        return im2col(image, mutant(p), **options)

    with pytest.raises((AssertionError, ValueError)):
        check_im2col(transform, CASES[:200])


def test_col2im_is_the_adjoint():
    """⟨im2col(x), y⟩ = ⟨x, col2im(y)⟩ exactly on integers, which checks all of col2im."""
    for p in CASES[::3]:
        image = RNG.integers(-8, 9, (2, p.height, p.width, 2)).astype(np.float32)
        fractals = im2col(image, p)
        other = RNG.integers(-8, 9, fractals.shape).astype(np.float32)
        back = col2im(other, p)
        assert (fractals * other).sum() == (image * back).sum(), p
        assert np.array_equal(col2im(other.swapaxes(0, 1), p, mode=1), back)


def test_an_adjoint_without_a_pixel_is_noticed():
    p = Patches(height=3, width=3, kernel=(2, 2), pad=(1, 1, 1, 1))
    image = np.ones((1, 3, 3, 2), np.float32)
    fractals = im2col(image, p)
    wrong = col2im(fractals, p)
    assert (fractals * fractals).sum() == (image * wrong).sum()
    wrong[0, 1, 1, 1] -= 1
    assert (fractals * fractals).sum() != (image * wrong).sum()


def test_col2im_of_overlapping_patches_counts_them():
    """Pixels that lie in two patches are summed (Rohwedder 2021, Fig. 2.2)."""
    p = Patches(height=3, width=5, kernel=(3, 3), stride=(1, 2))
    image = np.arange(1, 16, dtype=np.float16).reshape(1, 3, 5, 1)
    twice = np.array([1, 1, 2, 1, 1])[:, None]
    assert np.array_equal(col2im(im2col(image, p), p), image * twice)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sums_are_rounded_in_the_order_that_is_stated(dtype):
    p = Patches(height=5, width=4, kernel=(3, 2), pad=(1, 0, 0, 1), dilation=(1, 2))
    fractals = RNG.normal(0, 100, (p.fractals, 2 * 6, 16, 3)).astype(dtype)
    start = RNG.normal(0, 100, (2, 5, 4, 3)).astype(dtype)
    flat = fractals.swapaxes(1, 2).reshape(-1, 2, 3, 2, 3)  # patch, c1, kh, kw, c0

    def plain(order):
        expected = start.copy()
        for kh, kw in order:
            for c1, n in product(range(2), range(p.count)):
                y, x = n // p.columns - 1 + kh, n % p.columns + 2 * kw
                for c0 in range(3 if 0 <= y < 5 and 0 <= x < 4 else 0):
                    expected[c1, y, x, c0] = dtype(expected[c1, y, x, c0] + flat[n, c1, kh, kw, c0])
        return expected

    rising = list(np.ndindex(3, 2))
    got = col2im(fractals, p, image=start)
    assert np.array_equal(got, plain(rising))
    assert not np.array_equal(got, plain(rising[::-1]))


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "dilation"),
    [
        ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
        ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
        ((3, 2), (2, 1), (1, 0, 0, 1), (1, 1)),
        ((2, 3), (1, 3), (2, 1, 3, 2), (2, 2)),
    ],
)
def test_convolution_as_a_product(kernel, stride, pad, dilation):
    """The product equals SciPy's on small integers; channels that fill up a group are zero."""
    channels, filters = 20, 5
    images = RNG.integers(-4, 5, (2, channels, 9, 7)).astype(np.float16)
    kernels = RNG.integers(-3, 4, (filters, channels, *kernel)).astype(np.float16)
    p = Patches(height=9, width=7, kernel=kernel, stride=stride, pad=pad, dilation=dilation)
    fractals = im2col(to_nc1hwc0(images), p)
    rows = fractals.swapaxes(-3, -2).reshape(2, 16 * p.fractals, -1)[:, : p.count]
    spec = PRESETS["ieee"].spec("fp16", k=16)
    codes = mmad(rows.view(np.uint16), kernel_matrix(kernels).copy().view(np.uint16), spec=spec)
    got = codes.view(np.float32).swapaxes(1, 2).reshape(2, filters, p.rows, p.columns)
    spread = np.zeros((filters, channels, *p.extent))
    spread[..., :: dilation[0], :: dilation[1]] = kernels
    padded = np.pad(images.astype(float), ((0, 0), (0, 0), pad[:2], pad[2:]))
    for n, f in np.ndindex(2, filters):
        whole = sum(correlate2d(padded[n, c], spread[f, c], mode="valid") for c in range(channels))
        assert np.array_equal(got[n, f], np.asarray(whole)[:: stride[0], :: stride[1]])


def test_the_figure_of_rohwedder():
    """An 8 × 8 image with kernel and stride 2 takes four loads, or one in mode 0 (Fig. 3.2)."""
    image = np.arange(64).reshape(1, 8, 8, 1) + np.zeros(16, int)
    assert (FIGURE.rows, FIGURE.columns, FIGURE.fractals) == (4, 4, 1)
    whole = im2col_load(image, FIGURE, repeat=4, mode=0)
    for i, at in enumerate(np.ndindex(2, 2)):
        assert np.array_equal(im2col_load(image, FIGURE, kernel_position=at)[0], whole[i])
    blue = [2 * x + 16 * y for y in range(4) for x in range(4)]
    assert whole[0, :, 0].tolist() == blue and whole[3, :, 5].tolist() == [b + 9 for b in blue]
    image = np.zeros((1, 8, 8, 16), np.float16)
    after = col2im_add(image, np.ones((1, 16, 16), np.float16), FIGURE)
    assert after[0, ::2, ::2].all() and after.sum() == 256 and not image.any()


def test_a_load_may_begin_at_any_patch_channel_and_place():
    """A load from any start gives a part of the whole image's fractals."""
    p = Patches(height=7, width=9, kernel=(2, 3), stride=(2, 1), pad=(1, 1, 0, 1))
    image = RNG.integers(0, 99, (3, 7, 9, 4)).astype(np.uint8)
    whole = plain_im2col(image, p)
    for start, step in product((0, 3, 7, 18), (0, 2, 5, 9)):
        channel, place = divmod(step, 6)
        options = {
            "position": p.corner(start),
            "channel": channel,
            "kernel_position": divmod(place, 3),
        }
        deep = im2col_load(image, p, repeat=18 - step, mode=0, **options)
        long = im2col_load(image, p, repeat=2, mode=1, **options)
        rows = whole[start : start + 32]
        rows = np.concatenate([rows, np.zeros((32 - len(rows), *rows.shape[1:]), np.uint8)])
        assert np.array_equal(deep, rows[:16, step:].swapaxes(0, 1))
        assert np.array_equal(long.reshape(32, 4), rows[:, step])


def test_images_with_leading_axes():
    p = Patches(height=4, width=4, kernel=(2, 2))
    images = RNG.normal(size=(2, 3, 1, 4, 4, 16)).astype(np.float16)
    fractals = im2col(images, p)
    back = col2im(fractals, p)
    for index in np.ndindex(2, 3):
        assert np.array_equal(fractals[index], im2col(images[index], p))
        assert np.array_equal(back[index], col2im(fractals[index], p))


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.float32])
def test_layout(dtype):
    images = RNG.integers(0, 99, (2, 37, 3, 5)).astype(dtype)
    laid = to_nc1hwc0(images)
    c0 = 32 // images.itemsize
    assert laid.shape == (2, -(-37 // c0), 3, 5, c0)
    for n, c, h, w in np.ndindex(*images.shape):
        assert laid[n, c // c0, h, w, c % c0] == images[n, c, h, w]
    assert not laid.reshape(2, -1, 15, c0)[:, -1, :, 37 % c0 :].any()
    assert np.array_equal(from_nc1hwc0(laid, 37), images)
    single = to_nc1hwc0(images, c0=1)
    assert np.array_equal(single[..., 0], images) and single.shape == (2, 37, 3, 5, 1)


IMAGE = np.zeros((1, 8, 8, 16), np.float16)
FRACTAL = np.zeros((1, 16, 16), np.float16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replace(FIGURE, height=0), "height must be at least 1, not 0"),
        (lambda: replace(FIGURE, stride=(0, 1)), "stride must be at least 1, not 0"),
        (lambda: replace(FIGURE, kernel=(9, 2)), "kernel must fit into the padded image, not 9"),
        (lambda: im2col(IMAGE[:, :7], FIGURE), "image must be (..., C1, 8, 8, C0), not (1, 7, 8,"),
        (lambda: im2col(IMAGE, FIGURE, mode=2), "mode must be 0 or 1, not 2"),
        (lambda: im2col_load(IMAGE, FIGURE, mode=2), "mode must be 0 or 1, not 2"),
        (lambda: im2col_load(IMAGE, FIGURE, repeat=0), "repeat must be at least 1, not 0"),
        (lambda: im2col_load(IMAGE, FIGURE, repeat=5), "channel must be below 1 in every repe"),
        (lambda: im2col_load(IMAGE, FIGURE, position=(0, 7)), "position must be at least 0 and fr"),
        (lambda: im2col_load(IMAGE, FIGURE, position=(-1, 0)), "position must be at least 0 and f"),
        (lambda: im2col_load(IMAGE, FIGURE, kernel_position=(2, 0)), "kernel_position must be wit"),
        (lambda: col2im_add(IMAGE, FRACTAL[:, :8], FIGURE), "fractals must be (..., repeat, 16, 1"),
        (lambda: col2im_add(IMAGE, FRACTAL, FIGURE, channel=1), "channel must be between 0 and 0"),
        (lambda: col2im(FRACTAL, FIGURE), "fractals must be (..., 1, C1·Kh·Kw, 16, C0) in mode 0"),
        (lambda: col2im(FRACTAL[None], FIGURE, mode=3), "mode must be 0 or 1, not 3"),
        (lambda: from_nc1hwc0(IMAGE, 17), "channels must be between 0 and 16 for"),
        (lambda: to_nc1hwc0(np.zeros((2, 2))), "images must be (..., C, H, W)"),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_types_are_checked():
    with pytest.raises(TypeError, match="pad must be a tuple of 4 ints, not 1"):
        replace(FIGURE, pad=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="kernel must be an int"):
        replace(FIGURE, kernel=(2.0, 2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        col2im_add(IMAGE, FRACTAL.astype(np.float32), FIGURE)


def test_the_example_of_the_page(root):
    """The example of docs/units/scu.md gives the printed patch counts and their product."""
    text = (root / "docs" / "units" / "scu.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict = {}
    exec(compile(code, "scu.md", "exec"), names)
    p, fractals, weights = names["p"], names["fractals"], names["weights"]
    assert fractals.shape == (p.fractals, 12, 16, 16) and weights.shape == (192, 32)
    assert names["back"].max() == 3 and names["back"].sum(dtype=int) == fractals.sum(dtype=int)
