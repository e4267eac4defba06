"""Arrays for a port: the range of numbers that a field accepts."""

import numpy as np
import pytest

from vitruvian.sim.rtl.ports import Leaf


@pytest.mark.parametrize("width", [1, 5, 8, 31, 33, 64])
@pytest.mark.parametrize("signed", [False, True])
def test_a_field_accepts_its_whole_range_and_no_more(width, signed):
    low = -(1 << width - 1) if signed else 0
    high = (1 << width - 1) - 1 if signed else (1 << width) - 1
    leaf = Leaf(width=width, signed=signed)
    array = leaf.to_memory(np.array([low, high], object), name="a")
    assert array.dtype == leaf.dtype and [int(x) for x in array] == [low, high]
    for wrong in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"a must be within {low}..{high}, not {wrong}"):
            leaf.to_memory(np.array([0, wrong], object), name="a")


def test_the_last_of_several_words_has_the_remaining_bits():
    leaf = Leaf(width=70)
    top = np.array([[2**64 - 1, 2**6 - 1]], np.uint64)
    assert np.array_equal(leaf.to_memory(top, name="a"), top)
    with pytest.raises(ValueError, match=r"a must be within 0\.\.63, not 64"):
        leaf.to_memory(top + np.array([0, 1], np.uint64), name="a")
    with pytest.raises(TypeError, match="a must be uint64 words, low word first, not int64"):
        leaf.to_memory(top.astype(np.int64), name="a")
