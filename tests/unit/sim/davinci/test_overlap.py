"""Vector instructions whose operands lie on each other, or at the end of the buffer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.sim.davinci.test_vector import CHIP, machine, view
from vitruvian.golden import vector
from vitruvian.sim.davinci import DTYPES, Program
from vitruvian.sim.davinci.semantics.lanes import independent
from vitruvian.sim.davinci.semantics.vectors_compiled import compiled


@pytest.fixture
def core():
    return Program(CHIP).core()


@pytest.mark.parametrize("last", ["dst", "src0", "src1"])
@pytest.mark.parametrize(("block", "step"), [(1, 8), (0, 3), (5, 2), (3, 0), (40, 0)])
def test_the_twin_stays_within_the_buffer(core, last, block, step):
    """It does what ends with the buffer, and leaves what ends a block later to golden."""
    functional, buffer = machine(core, 15)
    repeat, names = 4, ("dst", "src0", "src1")
    length = 32 * (7 * block + (repeat - 1) * step + 1)
    strides = {f"{last}_block_stride": block, f"{last}_repeat_stride": step}
    for start, done in ((len(buffer) - length, True), (len(buffer) - length + 32, False)):
        operands = {n: view(start if n == last else 4096 * i, "fp16") for i, n in enumerate(names)}
        fields = {f"{n}_{s}_stride": v for n in names for s, v in (("block", 1), ("repeat", 8))}
        (instr,) = core.vector("vadd", operands, repeat=repeat, **fields | strides)
        assert compiled(functional.memory(core), instr) == done


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_repeats_are_done_at_once_only_where_none_meets_what_another_writes(seed):
    """Against the blocks of 32 bytes that every repeat touches."""
    rng = np.random.default_rng(seed)
    dtypes = rng.choice(["fp16", "fp32"], 2)
    lanes, repeat = 64, int(rng.integers(1, 6))
    operands = []
    for dtype in dtypes:
        offset = 32 * int(rng.integers(0, 60))
        block, step = (int(rng.choice([0, 1, 2, 5])) for _ in "ab")
        operands.append((view(offset, dtype), block, step))
    target, source = operands

    def touched(operand, i):
        at, block, step = operand
        blocks = np.arange(lanes * DTYPES[at.dtype].itemsize // 32)
        return set(at.offset // 32 + i * step + blocks * block)

    met = any(
        touched(target, i) & (touched(source, j) | touched(target, j))
        for i in range(repeat)
        for j in range(i + 1, repeat)
    )
    once = independent(lanes, repeat, target, [source])
    assert not (once and met)
    if not once:  # the slow way must not be chosen for disjoint operands without repeated bytes
        first, second = (set().union(*(touched(x, i) for i in range(repeat))) for x in operands)
        apart = max(first) < min(second) or max(second) < min(first)
        once_each = len(first) == repeat * lanes * DTYPES[dtypes[0]].itemsize // 32
        assert not (apart and once_each)


def test_a_result_that_lies_on_a_later_source_is_part_of_it(core):
    """Results begin well below the sources, but run ahead: the sixth lies on the seventh source."""
    functional, buffer = machine(core, 13, small=True)
    rows = buffer[1024 : 1024 + 7 * 256].view(np.float16).reshape(7, 128).copy()
    instr = core.vreduce_lanes(
        "vcadd",
        view(0, "fp16"),
        view(1024, "fp16"),
        repeat=7,
        dst_repeat_bytes=512,
        src_repeat_stride=8,
    )
    functional.execute(core, instr)
    sums = [vector.sum_tree(row) for row in rows[:6]]
    rows[6, 0] = sums[5]
    result = buffer[: 7 * 512].view(np.float16)[::256]
    assert result.tolist() == [*sums, vector.sum_tree(rows[6])]


def test_a_wide_result_that_reaches_into_the_sources_is_part_of_the_second(core):
    """Sums of pairs are 128 bytes: the last 64 lie on the first source and half of the second."""
    functional, buffer = machine(core, 14, small=True)
    others = buffer.copy()
    fields = {"dst_repeat_bytes": 0, "src_repeat_stride": 1}
    both = core.vreduce_lanes("vcpadd", view(64, "fp16"), view(128, "fp16"), repeat=2, **fields)
    functional.execute(core, both)
    result = buffer.copy()
    buffer[:] = others
    for offset in (128, 160):
        instr = core.vreduce_lanes("vcpadd", view(64, "fp16"), view(offset, "fp16"), **fields)
        functional.execute(core, instr)
    assert np.array_equal(result, buffer) and not np.array_equal(result, others)
