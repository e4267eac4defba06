"""Slots that keep their contents: what is loaded when, and which flags that takes."""

from hypothesis import given
from hypothesis import strategies as st

from vitruvian.sim.kernels.convolution.slots import uses_of


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 6))
def test_a_use_finds_its_content_and_flags_are_paired(keys, slots):
    held: dict[int, int] = {}
    released: set[int] = set()
    uses = uses_of(keys, slots)
    assert len(uses) == len(keys)
    for key, use in zip(keys, uses, strict=True):
        assert 0 <= use.slot < slots
        if use.load:
            # A wait is for the flag that the last use of the old content set.
            assert use.wait == (use.slot in held) == (use.slot in released)
            released.discard(use.slot)
            held[use.slot] = key
        assert held[use.slot] == key and not (use.wait and not use.load)
        if use.release:
            released.add(use.slot)
    assert not released


def test_what_fits_is_loaded_once_and_the_rest_in_turn():
    assert [u.load for u in uses_of([0, 1, 2, 0, 1, 2], 3)] == [True] * 3 + [False] * 3
    assert [u.slot for u in uses_of([0, 1, 2, 3], 2)] == [0, 1, 0, 1]
    # The content that has not been used for the longest time goes first.
    assert [u.load for u in uses_of([0, 1, 0, 2, 0], 2)] == [True, True, False, True, False]
