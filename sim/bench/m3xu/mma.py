"""Batch checks of matrix instructions, which compare random lists on the RTL with golden."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from vitruvian.golden.m3xu.isa import Instruction, Opcode
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.matrix import mma_config
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.mma.issue import opcodes_of
from vitruvian.hdl.mma.unit import QUEUE_CYCLES, MmaUnit
from vitruvian.sim.bench.cube.batch import build_seconds
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

#: Share of the requested vectors. An element of D is the sum of several blocks, so that fewer
#: elements test as much as the vectors of a dot product.
SHARE = 1 / 16
STALL_RATE = 0.25


def draw_opcodes(rng: np.random.Generator, opcodes: Sequence[Opcode], count: int) -> list[Opcode]:
    """Return at least ``count`` opcodes.

    The list begins with all pairs of opcodes in random order, so that every opcode follows every
    opcode. The rest are random.
    """
    pairs = list(product(opcodes, repeat=2))
    result = [opcode for index in rng.permutation(len(pairs)) for opcode in pairs[index]]
    more = max(count - len(result), 0)
    return result + [opcodes[index] for index in rng.integers(len(opcodes), size=more)]


def run_unit(
    config: MatrixUnitConfig,
    vectors: int,
    seed: int,
    *,
    stalls: bool,
    model: CompiledModel | None = None,
) -> Result:
    """Run random instructions and compare the results with golden.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    vectors : int
        Approximate number of elements of D.
    stalls : bool
        If True, all streams stall, and the list runs three times: once without a reset, and twice
        with a reset in a random cycle. If False, the list runs once without stalls, and a cycle
        that is neither a step nor latency counts as a mismatch, provided that the unit has enough
        slots to avoid such cycles.
    model : CompiledModel, optional
        Model of the unit; by default it is compiled.
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
    """Compare all elements of all D with golden. A wrong item of ``fetch`` is a mismatch as well.

    Parameters
    ----------
    values : sequence of Values
        Operands of each instruction.
    run : MmaRun
        Results of the RTL.
    expected : sequence of (M, N) ndarray
        Results of golden.
    seed : int
        Seed of the run, for messages.
    """
    total = Result(vectors=0, mismatches=0)
    if run.wrong_fetches:
        text = f"{run.wrong_fetches} items of fetch differ from the expected ones (seed {seed})"
        total += Result(vectors=0, mismatches=run.wrong_fetches, examples=(text,))
    for number, (instruction, (a, b, c), got, golden) in enumerate(
        zip(program, values, run.d, expected, strict=True)
    ):
        m, n = golden.shape
        row, column = (axis.ravel() for axis in np.indices((m, n)).astype(np.uint8))
        operands = {"row": row, "column": column, "a": _codes(a)[row], "b": _codes(b.T)[column]}
        if c is not None:
            operands["c"] = _codes(c).reshape(m * n, -1)
        total += compare(
            f"instruction {number}, {instruction}",
            got=_codes(got).reshape(m * n, -1),
            expected=_codes(golden).reshape(m * n, -1),
            operands=operands,
            seed=seed,
        )
    return total


def _codes(values: np.ndarray) -> np.ndarray:
    """Return bit patterns; a complex number has two, along the last axis."""
    size = np.real(values).dtype.itemsize
    return np.ascontiguousarray(values).view(f"u{size}")


def _bubbles(config: MatrixUnitConfig, run: MmaRun) -> Result:
    """Count cycles that are neither steps nor latency as mismatches.

    A unit that has too few accumulator slots to avoid such cycles passes.
    """
    steps = sum(config.steps(config.precisions[code]) for code in run.beats["precision"])
    bubbles = run.cycles - steps - QUEUE_CYCLES - config.latency_cycles
    if not bubbles or config.slot_count <= config.latency_cycles:
        return Result(vectors=0, mismatches=0)
    text = f"{run.cycles} cycles, {bubbles} more than {steps} steps and the latency"
    return Result(vectors=0, mismatches=abs(bubbles), examples=(text,))


def checks() -> Iterator[Check]:
    """Yield two rows for every unit: without stalls, and with stalls and resets."""
    unit = UNITS["mma"]
    for c in map(unit.default, unit.checked):
        name, config = c["preset"], mma_config(c)
        for stalls in (False, True):
            label = "stalls, resets" if stalls else "back to back"
            yield Check(
                unit="m3xu.MmaUnit",
                configuration=f"{name} {label}",
                run=partial(_run_share, config, stalls),
                weight=1
                if stalls
                else build_seconds(config),  # the first row builds the unit for the other
            )


def _run_share(config: MatrixUnitConfig, stalls: bool, vectors: int, seed: int) -> Result:
    """Call ``run_unit`` with a share of the vectors."""
    return run_unit(config, int(vectors * SHARE), seed, stalls=stalls)
