"""Arguments that no operator can take: each gets one line before any work begins."""

import numpy as np
import pytest

from vitruvian import ops

X, W = np.zeros((1, 3, 8, 8), np.float16), np.zeros((4, 3, 3, 3), np.float16)

#: Calls of every operator with an image, and with other options.
CALLS = {
    "max_pool2d": lambda x, **more: ops.max_pool2d(x, 2, **more),
    "avg_pool2d": lambda x, **more: ops.avg_pool2d(x, 2, **more),
    "max_pool2d_backward": lambda x, **more: ops.max_pool2d_backward(
        np.zeros((1, 3, 4, 4), np.float16), x, 2, **more
    ),
    "avg_pool2d_backward": lambda x, **more: ops.avg_pool2d_backward(
        np.zeros((1, 3, 4, 4), np.float16), x, 2, **more
    ),
    "unfold": lambda x, **more: ops.unfold(x, 2, **more),
    "conv2d": lambda x, **more: ops.conv2d(x, W, **more),
    "fold": lambda x, **more: ops.fold(x.reshape(1, 12, 16), 8, 2, **{"stride": 2, **more}),
}


@pytest.mark.parametrize("name", CALLS)
def test_another_type_of_number_is_refused_with_the_way_to_convert_it(name):
    message = r"x must be a NumPy array of float16, not .* float32; x\.astype\(np\.float16\) conv"
    with pytest.raises(TypeError, match=message):
        CALLS[name](X.astype(np.float32))


@pytest.mark.parametrize("name", CALLS)
def test_a_masked_array_is_refused(name):
    with pytest.raises(TypeError, match="x must be a NumPy array of float16, not 'MaskedArray'"):
        CALLS[name](np.ma.array(X))


@pytest.mark.parametrize("name", CALLS)
def test_a_chip_with_separate_cube_and_vector_cores_has_the_same_bits(name):
    one, other = (CALLS[name](X, chip=chip) for chip in ("ascend910", "ascend910b"))
    assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("chip", [None, 3, float("nan"), ()])
def test_a_chip_must_be_a_name_or_a_chip(chip):
    with pytest.raises(TypeError, match="chip must be a Chip, or the name or file of one, not"):
        ops.max_pool2d(X, 2, chip=chip)


@pytest.mark.parametrize("name", CALLS)
def test_a_stride_beyond_32_bits_is_refused(name):
    with pytest.raises(ValueError, match=r"stride must be at most .* an integer of 100 b"):
        CALLS[name](X, stride=10**30)


def test_an_array_is_no_stride():
    with pytest.raises(TypeError, match="stride must be an int or two ints, not array"):
        ops.max_pool2d(X, 2, np.array([2, 2]))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("method", ["im2col", "direct", "expansion", "xy"])
def test_a_pooling_that_needs_too_much_memory_is_refused_before_it_is_packed(method):
    # The pages of zeros take no memory, unless they are copied.
    x = np.zeros((64, 512, 224, 224), np.float16)
    small = np.zeros((64, 512, 112, 112), np.float16)
    for call in (
        lambda: ops.max_pool2d(x, 3, 2, method=method),
        lambda: ops.max_pool2d(x, 2, return_indices=True, method=method),
        lambda: ops.avg_pool2d(x, 3, 2, method=method),
        lambda: ops.max_pool2d_backward(small, x, 2, method=method),
        lambda: ops.avg_pool2d_backward(small, x, 2, method=method),
    ):
        with pytest.raises(ValueError, match=r"bytes of data of .* pooling must be at most"):
            call()
