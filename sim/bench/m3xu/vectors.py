"""Matrix instructions with golden's results, as the words of an ``MmaUnit``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.m3xu.isa import Instruction
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.mma.issue import opcodes_of
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.sim.bench.arrays import Arrays, words_of_port
from vitruvian.sim.rtl.emit import interface_of
from vitruvian.sim.rtl.mma import (
    beats_of,
    draw_instructions,
    draw_values,
    expected_results,
    operands_of,
    tiles_of,
    words_of,
)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Random instructions, and the words of the streams of an ``MmaUnit``.

    Attributes
    ----------
    program : sequence of Instruction
    beats : dict of str to ndarray
        See ``sim.rtl.mma.beats_of``.
    words : dict of str to list of int
        Words by the name of the stream.
    owners : list of int
        The instruction of each word of the stream ``o``.
    """

    program: Sequence[Instruction]
    beats: dict[str, np.ndarray]
    words: dict[str, list[int]]
    owners: list[int]


def draw(config: MatrixUnitConfig, unit: Any, *, count: int, seed: int) -> Drawn:
    """Return random instructions with their requests, operands and results.

    Every opcode occurs once before another occurs twice.

    Parameters
    ----------
    unit : MmaUnit
        A unit of this configuration, which describes the streams.
    count : int
        Approximate number of requests and results.
    """
    rng = np.random.default_rng(seed)
    opcodes = opcodes_of(config)
    program: list[Instruction] = []
    number = 0
    while number < count:
        for n in rng.permutation(len(opcodes)):
            drawn = draw_instructions(rng, [opcodes[int(n)]])
            beats = beats_of(drawn, config)
            number += len(beats["row"]) + len(tiles_of(config, drawn, beats))
            program += drawn
            if number >= count:
                break
    values = draw_values(rng, program)
    beats = beats_of(program, config)
    a, b, c = operands_of(config, program, values, beats)
    tiles = tiles_of(config, program, beats)
    results = []
    d = expected_results(program, values, config)
    for owner, row, column, part in tiles:
        precision = program[owner].opcode.precision
        bits = config.result_bits(precision.name)
        # The real and the imaginary parts of a complex matrix alternate in memory, and a result
        # that is narrower than a word of the unit is in the low bits of the word.
        codes = d[owner].view(f"u{bits // 8}")[:, part :: 2 if precision.is_complex else 1]
        fractal = codes[row : row + config.m, column : column + config.n]
        results.append(fractal.astype(f"u{config.word_bits // 8}"))
    fields = unit.fetch.payload.shape().members
    given: dict[str, Any] = {
        "i": words_of(program),
        "ab": {"a": a, "b": b},
        "c": c,
        "fetch": {name: beats[name] for name in fields},
        "o": np.stack(results),
    }
    interface = interface_of(unit)
    streams = {s.name: s.payload for s in interface.streams_in + interface.streams_out}
    return Drawn(
        program=program,
        beats=beats,
        words={name: words_of_port(streams[name], value) for name, value in given.items()},
        owners=[tile[0] for tile in tiles],
    )


def instructions(unit: Any, count: int, seed: int) -> Arrays:
    """Return random instructions with their requests, operands and results."""
    assert isinstance(unit, MmaUnit)
    words = draw(unit.config, unit, count=count, seed=seed).words
    return Arrays(
        inputs={name: words[name] for name in ("i", "ab", "c")},
        outputs={name: words[name] for name in ("fetch", "o")},
        zeros=("illegal",),
    )
