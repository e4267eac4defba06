"""Matrix instructions with golden's results, as the words of an ``MmaUnit``."""

from typing import Any

import numpy as np

from vitruvian.golden.m3xu.isa import Instruction
from vitruvian.hdl.mma.issue import opcodes_of
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.sim.bench.arrays import Arrays
from vitruvian.sim.rtl.mma import (
    beats_of,
    draw_instructions,
    draw_values,
    expected_results,
    operands_of,
    tiles_of,
    words_of,
)

__all__ = ["instructions"]


def instructions(unit: Any, count: int, seed: int) -> Arrays:
    """Return random instructions with their requests, operands and results.

    Every opcode occurs once before another occurs twice. A result that is narrower than a word of
    the unit has a value only in the low bits of the word.

    Parameters
    ----------
    unit : MmaUnit
    count : int
        Approximate number of requests and results.
    seed : int
    """
    assert isinstance(unit, MmaUnit)
    config, rng = unit.config, np.random.default_rng(seed)
    opcodes = opcodes_of(config)
    program: list[Instruction] = []
    words = 0
    while words < count:
        for n in rng.permutation(len(opcodes)):
            drawn = draw_instructions(rng, [opcodes[int(n)]])
            beats = beats_of(drawn, config)
            words += len(beats["row"]) + len(tiles_of(config, drawn, beats))
            program += drawn
            if words >= count:
                break
    values = draw_values(rng, program)
    beats = beats_of(program, config)
    a, b, c = operands_of(config, program, values, beats)
    names = (stream for stream in unit.fetch.payload.shape().members)
    word = np.dtype(f"u{config.word_bits // 8}")
    results, known = [], []
    d = expected_results(program, values, config)
    for number, row, column, part in tiles_of(config, program, beats):
        precision = program[number].opcode.precision
        bits = config.result_bits(precision.name)
        # The real and the imaginary parts of a complex matrix alternate in memory.
        codes = d[number].view(f"u{bits // 8}")[:, part :: 2 if precision.is_complex else 1]
        results.append(codes[row : row + config.m, column : column + config.n].astype(word))
        known.append(np.full((config.m, config.n), (1 << bits) - 1, word))
    return Arrays(
        inputs={"i": words_of(program), "ab": {"a": a, "b": b}, "c": c},
        outputs={"fetch": {name: beats[name] for name in names}, "o": np.stack(results)},
        care={"o": np.stack(known)},
        zeros=("illegal",),
    )
