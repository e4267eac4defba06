"""Memories in LUTs whose unused address bits are tied, written and read as before."""

from copy import deepcopy

import numpy as np
import pytest

from vitruvian.flows.fpga import memory_addresses


def _cell(written, read, initial="x" * 48 + "0" * 16):
    return {
        "type": "TRELLIS_DPR16X4",
        "parameters": {"INITVAL": initial},
        "connections": {"WAD": list(written), "RAD": list(read)},
    }


def _tied(cell):
    module = {"cells": {"memory": deepcopy(cell)}}
    memory_addresses.tie(module)
    return module["cells"]["memory"]


def _words(cell, seed=1, cycles=60):
    """Return what the memory gives for random values of the nets 1 to 8; it begins with zeros."""
    random, words, found = np.random.default_rng(seed), [0] * 16, []
    for cycle in range(cycles):
        nets = {str(n): int(random.integers(2)) for n in range(1, 9)} | {"c0": 0, "c1": 1}

        def address(bits, nets=nets):
            return sum(nets[f"c{b}" if isinstance(b, str) else str(b)] << n for n, b in bits)

        written, read = (
            address(list(enumerate(cell["connections"][port]))) for port in ("WAD", "RAD")
        )
        found.append(words[read])
        words[written] = cycle + 1
    return found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ([1, 2, "0", "0"], [5, 6, "0", "0"]),
        ([1, 2, 3, "0"], [5, 6, 7, "0"]),
        (["0", 2, "1", 4], ["0", 6, "1", 8]),
    ],
)
def test_unused_bits_are_copies_of_a_used_one(written, read):
    cell = _cell(written, read)
    tied = _tied(cell)
    assert not any(isinstance(b, str) for port in tied["connections"].values() for b in port)
    assert any(_words(cell))
    for seed in range(20):
        assert _words(tied, seed) == _words(cell, seed)


@pytest.mark.parametrize(
    "cell",
    [
        _cell([1, 2, "0", "0"], [5, 6, "0", "0"], "0" * 63 + "1"),  # it has contents
        _cell(["0"] * 4, ["0"] * 4),
        _cell([1, 2, 3, 4], [5, 6, 7, 8]),
        _cell([1, 2, 3, "0"], [5, 6, 7, "1"]),  # another half is read than is written
    ],
)
def test_other_memories_stay(cell):
    assert _tied(cell) == cell
