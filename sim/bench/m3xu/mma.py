"""Matrix instructions as rows of ``make sim``: random lists on the compiled RTL against golden."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from vitruvian.golden.m3xu.isa import Instruction, Opcode
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.mma.issue import opcodes_of
from vitruvian.hdl.mma.unit import QUEUE_CYCLES, UNITS, MmaUnit
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.rtl.mma import (
    MmaRun,
    Values,
    draw_instructions,
    draw_values,
    expected_results,
    run_instructions,
)
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

__all__ = ["checks", "compare_run", "draw_opcodes", "run_unit"]

#: (name of the unit, rough seconds of the first build)
CONFIGURATIONS = (("m3xu", 25), ("m3xu_pipelined", 25), ("m3xu_systolic", 25), ("m3xu_fp64", 45))
#: Every element of D is the sum of several blocks: fewer say as much as a dot product's vectors.
SHARE = 1 / 16
STALL_RATE = 0.25


def draw_opcodes(rng: np.random.Generator, opcodes: Sequence[Opcode], count: int) -> list[Opcode]:
    """At least ``count`` opcodes: each one behind each, in an order of its own, then any."""
    pairs = list(product(opcodes, repeat=2))
    found = [opcode for place in rng.permutation(len(pairs)) for opcode in pairs[place]]
    more = max(count - len(found), 0)
    return found + [opcodes[place] for place in rng.integers(len(opcodes), size=more)]


def run_unit(
    config: MatrixUnitConfig,
    vectors: int,
    seed: int,
    *,
    stalls: bool,
    model: CompiledModel | None = None,
) -> Result:
    """Random instructions back to back; or with stalls on every stream and resets in between.

    Parameters
    ----------
    vectors : int
        Elements of D, about.
    stalls : bool
        With them the list is run three times: through, and with a reset in two random cycles.
        Without them a cycle that is neither a step nor latency is a mismatch too, in a unit that
        has the slots to do without.
    model : CompiledModel, optional
        Instead of the unit's own.
    """
    model = model or compile_unit(MmaUnit, config=config)
    rng = np.random.default_rng(seed)
    opcodes = opcodes_of(config)
    count = vectors // (opcodes[0].shape[0] * opcodes[0].shape[1]) // (3 if stalls else 1)
    program = draw_instructions(rng, draw_opcodes(rng, opcodes, count))
    values = draw_values(rng, program)
    expected = expected_results(program, values, config)
    run = run_instructions(
        config, program, values, model=model, stall_rate=STALL_RATE * stalls, seed=seed
    )
    total = compare_run(program, values, run, expected, seed)
    if not stalls:
        return total + _bubbles(config, run)
    for cycle in rng.integers(1, run.cycles, size=2).tolist():
        again = run_instructions(
            config,
            program,
            values,
            model=model,
            stall_rate=STALL_RATE,
            seed=seed + cycle,
            reset_at=cycle,
        )
        total += compare_run(program, values, again, expected, seed)
    return total


def compare_run(
    program: Sequence[Instruction],
    values: Sequence[Values],
    run: MmaRun,
    expected: Sequence[np.ndarray],
    seed: int,
) -> Result:
    """Every element of every D, a vector each; a wrong item of ``fetch`` is a mismatch as well."""
    total = Result(vectors=0, mismatches=0)
    if run.wrong_fetches:
        text = f"{run.wrong_fetches} items of fetch are not those expected (seed {seed})"
        total += Result(vectors=0, mismatches=run.wrong_fetches, examples=(text,))
    for number, (instruction, (a, b, c), got, wanted) in enumerate(
        zip(program, values, run.d, expected, strict=True)
    ):
        m, n = wanted.shape
        row, column = (axis.ravel() for axis in np.indices((m, n)).astype(np.uint8))
        operands = {"row": row, "column": column, "a": _codes(a)[row], "b": _codes(b.T)[column]}
        if c is not None:
            operands["c"] = _codes(c).reshape(m * n, -1)
        total += compare(
            f"instruction {number}, {instruction}",
            got=_codes(got).reshape(m * n, -1),
            expected=_codes(wanted).reshape(m * n, -1),
            operands=operands,
            seed=seed,
        )
    return total


def _codes(values: np.ndarray) -> np.ndarray:
    """Bit patterns; a complex number is two, along the last axis."""
    size = np.real(values).dtype.itemsize
    return np.ascontiguousarray(values).view(f"u{size}")


def _bubbles(config: MatrixUnitConfig, run: MmaRun) -> Result:
    """Cycles that are neither steps nor latency, where there are slots enough for none."""
    steps = sum(config.steps(config.precisions[code]) for code in run.beats["precision"])
    bubbles = run.cycles - steps - QUEUE_CYCLES - config.latency_cycles
    if not bubbles or config.slot_count <= config.latency_cycles:
        return Result(vectors=0, mismatches=0)
    text = f"{run.cycles} cycles, {bubbles} more than {steps} steps and the latency"
    return Result(vectors=0, mismatches=abs(bubbles), examples=(text,))


def checks() -> Iterator[Check]:
    """Every unit: back to back, and with stalls and resets."""
    for name, weight in CONFIGURATIONS:
        for stalls in (False, True):
            label = "stalls, resets" if stalls else "back to back"
            yield Check(
                unit="m3xu.MmaUnit",
                configuration=f"{name} {label}",
                run=partial(_run_share, UNITS[name], stalls),
                weight=1 if stalls else weight,  # the first row builds the unit for the other
            )


def _run_share(config: MatrixUnitConfig, stalls: bool, vectors: int, seed: int) -> Result:
    """`run_unit` with a share of the vectors."""
    return run_unit(config, int(vectors * SHARE), seed, stalls=stalls)
