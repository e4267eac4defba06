"""Quotients and multiples that are rounded up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vitruvian.common.validate import ceil_div, round_up


@given(st.integers(-(1 << 80), 1 << 80), st.integers(1, 1 << 70))
def test_the_quotient_is_the_smallest_that_covers_the_number(number, divisor):
    quotient = ceil_div(number, divisor)
    assert (quotient - 1) * divisor < number <= quotient * divisor
    assert round_up(number, divisor) == quotient * divisor


def test_arrays_are_rounded_by_element():
    assert ceil_div(np.array([0, 1, 16, 17]), 16).tolist() == [0, 1, 1, 2]
    assert round_up(np.array([0, 1, 16, 17]), np.array([16, 8, 8, 3])).tolist() == [0, 8, 16, 18]
