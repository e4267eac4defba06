"""Lowering of programs that are built by instruction, and of the same as indices into a table."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.chip.file import CHIPS, read_chip
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import NEVER, lower, lower_sequences

CHIP = load_chip("ascend310")
S, V, M, MTE1, MTE2, MTE3 = list(Unit)[:6]


def random_program(seed: int, cores: int) -> Program:
    rng = np.random.default_rng(seed)
    program = Program(CHIP)
    x = program.tensor("x", (4096,), "fp16")
    for c in range(cores):
        core = program.core(c)
        u, l1 = core.allocate("UB", (4096,), "fp16"), core.allocate("L1", (4096,), "fp16")
        for _ in range(int(rng.integers(1, 40))):
            n = 64 << int(rng.integers(4))
            match int(rng.integers(7)):
                case 0:
                    core.copy(u[:n], x[:n])
                case 1:
                    core.copy(x[:n], u[:n])
                case 2:
                    core.copy(l1[:n], u[:n])
                case 3:
                    core.vadds(u[:n], u[:n], 1.0)
                case 4:
                    core.pipe_barrier([None, V][int(rng.integers(2))])
                case 5:
                    core.scalar(int(rng.integers(5)))
                case _:
                    source, target = [(MTE2, V), (V, MTE3), (MTE3, MTE2)][int(rng.integers(3))]
                    register = int(rng.integers(3))
                    core.set_flag(source, target, register)
                    if rng.random() < 0.9:
                        core.wait_flag(source, target, register)
    return program


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_sequences_are_the_program(seed, cores):
    program = random_program(seed, cores)
    expected, streams = lower(program)
    table = [instr for stream in streams for instr in stream.instructions]
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(table))
    place = np.argsort(shuffled)  # where each instruction is in the shuffled table
    sequences = {
        (s.kind, s.index): place[first : first + len(s.instructions)]
        for s, first in zip(streams, expected.first.tolist(), strict=False)
    }
    lowered, picked = lower_sequences(CHIP, [table[k] for k in shuffled], sequences)
    for field in dataclasses.fields(expected):
        actual, reference = getattr(lowered, field.name), getattr(expected, field.name)
        if field.name in ("bus", "totals"):
            continue  # buses may be numbered in another order
        assert np.array_equal(actual, reference), field.name
        assert np.asarray(actual).dtype == np.asarray(reference).dtype, field.name
    assert ((lowered.bus < 0) == (expected.bus < 0)).all()
    assert [list(p.instructions) for p in picked] == [s.instructions for s in streams]
    assert (engine.run(lowered, check=False).end == engine.run(expected, check=False).end).all()


def test_a_loop_of_tiles():
    """Time 120,000 instructions that repeat a body of six."""
    core = Program(CHIP).core()
    x = core.program.tensor("x", (1024,), "fp16")
    u = core.allocate("UB", (1024,), "fp16")
    core.copy(u, x)
    core.set_flag(MTE2, V, 0)
    core.wait_flag(MTE2, V, 0)
    core.vrelu(u, u)
    core.set_flag(V, MTE2, 0)
    core.wait_flag(V, MTE2, 0)
    table = core.instructions
    lowered, streams = lower_sequences(CHIP, table, {("aicore", 0): np.tile(np.arange(6), 20_000)})
    times = engine.run(lowered, streams)
    # The flag is set when the results of the vector unit are there.
    period = sum(CHIP.timing(table[k]).period for k in (0, 3)) + CHIP.timing(table[3]).drain
    assert times.total == round(CHIP.launch_s * 10**18) + 20_000 * period
    report = Report("loop", CHIP, lowered, streams, times)
    assert report.path_bytes() == {"GM->UB": 20_000 * 2048}


def test_flags_are_matched_one_by_one():
    core = Program(CHIP).core()
    for register in (0, 1, 0):
        core.set_flag(MTE2, V, register)
    for register in (1, 0, 0, 0):
        core.wait_flag(MTE2, V, register)
    lowered, _ = lower(core.program)
    assert lowered.need.tolist() == [1, 0, 2, NEVER]


def test_mistakes():
    program = Program(load_chip("ascend910b"))
    cube = program.core(0, "cube")
    cube.cross_set(Unit.FIX, 1)
    with pytest.raises(ValueError, match="table must be without core-to-core flags"):
        lower_sequences(program.chip, cube.instructions, {("cube", 0): np.zeros(1, int)})
    other = Program(load_chip("ascend910"))
    other.core(5).scalar()
    with pytest.raises(ValueError, match="cores of ascend310 must be enough for aicore 5"):
        lower(other, CHIP)
    empty, streams = lower_sequences(CHIP, [], {})
    assert len(empty) == 0 and streams == [] and engine.run(empty).total == 0


def test_a_bus_of_each_core():
    """Two cores slow each other down on a shared bus, but not if each has its own."""
    text = (CHIPS / "ascend310.toml").read_text()
    own = read_chip(text.replace("[bus.interconnect]", "[bus.interconnect]\nper_core = true"))
    took = []
    for chip in (own, CHIP):
        program = Program(chip)
        x = program.tensor("x", (2, 8192), "fp16")
        for c in range(2):
            core = program.core(c)
            core.copy(core.allocate("UB", (8192,), "fp16"), x[c])
        lowered, _ = lower(program)
        table = [instr for core in program for instr in core.instructions]
        other, _ = lower_sequences(chip, table, {("aicore", c): np.array([c]) for c in range(2)})
        assert (other.bus == lowered.bus).all() and (other.totals == lowered.totals).all()
        took.append(int((engine.run(lowered).end - lowered.begin - lowered.init).max()))
        assert lowered.totals.shape == ((2, 4) if chip is own else (1, 4))
    bus = CHIP.buses["interconnect"]
    assert took[0] == int(lowered.data[0])
    assert took[1] == pytest.approx(took[0] * float(2 * bus.total(1) / bus.total(2)), rel=1e-12)


def test_periods_can_be_given():
    program = random_program(3, 1)
    lowered, _ = lower(program)
    own, _ = lower(program, mmad_periods_s={2: 1e-6})
    assert own.init[2] == 10**12 and (np.delete(own.init, 2) == np.delete(lowered.init, 2)).all()
