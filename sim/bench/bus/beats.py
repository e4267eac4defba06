"""Beats of random matrix products, as a driver of the registers sends them."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.cube.ports import Start

from .commands import make_packets


@dataclass
class BusBeat:
    """A beat to send: the words of its operands, its command, and its results if it has any."""

    words: dict[str, list[int]]
    command: int
    results: list[list[int]]


def make_beats(core: BusCore, rng: random.Random, *, count: int, **options: Any) -> list[BusBeat]:
    """Return random beats; each command of ``make_packets`` is cut into its beats.

    Parameters
    ----------
    core : BusCore
        A unit of the kind ``cube`` or ``simd2-int``.
    rng : random.Random
        Source of the seed and of the slots.
    count : int
        Number of results.
    **options
        Further arguments of ``make_packets``.
    """
    seed = rng.getrandbits(31)
    packets = make_packets(core, count=count, seed=seed, tiles=1, plain=True, **options)
    beats = []
    for number, word in enumerate(packets.commands):
        size = packets.beats[number]
        parts = {name: part[number] for name, part in packets.inputs.items()}
        slot = rng.randrange(core.slot_count)
        for beat in range(size):
            start, emit = (word >> 8 & 3, beat == size - 1)
            # The first beat starts from zero or C, and the others add to its slot.
            if beat:
                start = Start.ACCUMULATE.value
            words = {
                name: words_of(part[beat * len(part) // size : (beat + 1) * len(part) // size])
                for name, part in parts.items()
                if name != "c"
            }
            if start == Start.FROM_C.value:
                words["c"] = words_of(parts["c"])
            # The word of a command: start from bit 8, emit in bit 10, the slot from bit 16 on.
            command = word & 0xFF | start << 8 | emit << 10 | slot << 16
            results = [words_of(packets.d[number])] if emit else []
            beats.append(BusBeat(words, command, results))
    return beats


def words_of(octets: bytes) -> list[int]:
    """Return bytes as 32-bit words, the lowest byte first, with zeros behind the last byte."""
    return np.frombuffer(octets + bytes(-len(octets) % 4), "<u4").tolist()
