"""Launches with more blocks than cores: in rounds, in time and in data."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.cce import build, build_mixed, read
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.deadlock import Deadlock
from vitruvian.sim.davinci.timing.lowering import lower

C310, C910B = load_chip("ascend310"), load_chip("ascend910b")
NS = 10**9

ADD = """
extern "C" __global__ __aicore__ void add_block(__gm__ half *x, __gm__ half *y) {
    __ubuf__ half *u = (__ubuf__ half *)0;
    copy_gm_to_ubuf(u, x + block_idx * 128, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, 0);
    wait_flag(PIPE_MTE2, PIPE_V, 0);
    for (int i = 0; i <= block_idx; i++) {
        vadds(u, u, (half)1.0, 1, 1, 1, 8, 8);
        pipe_barrier(PIPE_V);
    }
    set_flag(PIPE_V, PIPE_MTE3, 0);
    wait_flag(PIPE_V, PIPE_MTE3, 0);
    copy_ubuf_to_gm(y + block_idx * 128, u, 0, 1, 8, 0, 0);
}
"""


def scalar_program(lengths_ns, chip=C310):
    """Return a launch of blocks that only compute on the scalar unit for these times."""
    program = Program(chip, "scalar", blocks=len(lengths_ns))
    for block, ns in enumerate(lengths_ns):
        program.core(block).scalar(cycles=round(ns * float(chip.clock_hz) / 1e9))
    return program


def begins_us(program, **options):
    """Return the microseconds at which each block starts and ends."""
    lowered, _ = lower(program, **options)
    times = engine.run(lowered)
    return (times.start[lowered.first[:-1]] / 1e12).tolist(), (times.end / 1e12).tolist()


def test_a_block_begins_on_the_first_core_that_is_free():
    """Blocks of 13, 2, 2, 2 and 4 µs on two cores: the second core runs four of them."""
    begin, end = begins_us(scalar_program([13_000, 2_000, 2_000, 2_000, 4_000]))
    launch, block = 2.05, 2.05
    assert begin[:2] == [launch, launch]
    assert begin[2] == pytest.approx(end[1] + block)
    assert begin[3] == pytest.approx(end[2] + block)
    assert begin[4] == pytest.approx(min(end[0], end[3]) + block)
    assert end[3] < end[0], "the long block still runs when the fourth ends"


def test_blocks_begin_in_order_whatever_their_length():
    rng = np.random.default_rng(7)
    lengths = rng.integers(1, 50, 40) * 1000
    begin, end = begins_us(scalar_program(lengths.tolist()))
    assert begin == sorted(begin)
    running = [sum(b <= at < e for b, e in zip(begin, end, strict=True)) for at in begin]
    assert max(running) == 2, "as many as there are cores"
    # List scheduling by hand, with the launch of each block.
    free = [0.0, 0.0]
    for at, length in zip(begin, end, strict=True):
        core = free.index(min(free))
        assert at == pytest.approx(free[core] + 2.05)
        free[core] = length


def test_the_bus_decides_which_block_ends_first():
    """Blocks that transfer share the bus, and the next ones begin when these end."""
    program = Program(C310, blocks=6)
    x = program.tensor("x", (1 << 16,), "fp16")
    for block in range(6):
        core = program.core(block)
        u = core.allocate("UB", (1 << 15,), "fp16")
        n = 1 << (15 - block)
        core.copy(u[:n], x[:n])
    begin, end = begins_us(program)
    order = sorted(end)
    for k in range(4):
        assert begin[2 + k] == pytest.approx(order[k] + 2.05)


@pytest.mark.parametrize("blocks", [1, 2, 3, 7])
def test_data_of_all_blocks(blocks):
    x = np.arange(7 * 128, dtype=np.float16).reshape(7, 128)
    arguments = {"x": x, "y": np.zeros_like(x)}
    program, functional = build(read(ADD), C310, arguments, blocks=blocks)
    report = simulate(program)
    expected = np.zeros_like(x)
    for block in range(blocks):
        expected[block] = x[block] + np.float16(block + 1)
    assert np.array_equal(report.outputs["y"], expected) and not report.findings
    assert functional is not None and np.array_equal(functional.read("y"), expected)
    assert report.rounds == -(-blocks // 2) or blocks == 7  # the blocks become longer
    assert report.as_dict()["rounds"] == report.rounds
    assert ("rounds" in report.text()) == (blocks > 2)


def test_the_report_names_blocks_and_rounds():
    report = simulate(scalar_program([1000] * 5))
    text = report.text()
    assert "of 5 blocks in 3 rounds on 2 cores" in text and "aicore block 0 to 4" in text
    path = report.critical_path()
    assert [step.why for step in path] == ["launch", "round", "round"]
    for before, after in pairwise(path):
        assert before.end == after.begin
    assert report.total_s == pytest.approx(3 * (2.05e-6 + 1e-6), rel=1e-3)
    assert report.critical_units() == pytest.approx({"launch": 6.15e-6, "S": 3e-6}, rel=1e-3)


def test_another_chip_runs_the_same_launch_in_other_rounds():
    program = scalar_program([1000] * 12)
    assert simulate(program, "ascend310").rounds == 6
    assert simulate(program, "ascend310p").rounds == 2
    assert simulate(program, "ascend910").rounds == 1


def test_a_program_without_blocks_still_needs_its_cores():
    program = Program(load_chip("ascend910"))
    program.core(5).scalar(cycles=1)
    with pytest.raises(ValueError, match="cores of ascend310 must be enough for aicore 5"):
        simulate(program, "ascend310")


def test_a_block_of_several_kinds_needs_a_group():
    """30 blocks on 24 groups: a vector core waits for its own Cube core, round after round."""
    text = """
    extern "C" __global__ __aicore__ void mixed(__gm__ half *x, __gm__ half *y) {
    #ifdef __DAV_C220_CUBE__
        ffts_cross_core_sync(PIPE_MTE2, 0x21 | (1 << 8));
    #else
        wait_flag_dev(1);
        __ubuf__ half *u = (__ubuf__ half *)0;
        long at = (block_idx * 2 + get_subblockid()) * 128;
        copy_gm_to_ubuf(u, x + at, 0, 1, 8, 0, 0);
        set_flag(PIPE_MTE2, PIPE_MTE3, 0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, 0);
        copy_ubuf_to_gm(y + at, u, 0, 1, 8, 0, 0);
    #endif
    }
    """
    kernels = {
        "cube": read(text, defines={"__DAV_C220_CUBE__": "1"}),
        "vector": read(text, defines={"__DAV_C220_VEC__": "1"}),
    }
    x = np.random.default_rng(0).normal(size=(60, 128)).astype(np.float16)
    program = build_mixed(kernels, C910B, {"x": x, "y": np.zeros_like(x)}, blocks=30)
    report = simulate(program)
    assert np.array_equal(report.outputs["y"], x) and report.rounds == 2
    assert "of 30 blocks in 2 rounds on 24 groups of cores" in report.text()


def test_blocks_that_wait_for_all_others_stand_still():
    """A barrier of all blocks cannot end if some of them have no core: so it is on the device."""

    def launch(blocks):
        program = Program(C910B, blocks=blocks)
        for block in range(blocks):
            core = program.core(block, "vector")
            core.cross_set(Unit.S, 0, "kind")
            core.cross_wait(Unit.S, 0, "kind")
        return program

    assert simulate(launch(48)).rounds == 1
    with pytest.raises(Deadlock, match="cross_wait"):
        simulate(launch(49))


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (0, UserError, "blocks must be between 1 and 65535, not 0"),
        (-3, UserError, "blocks must be between 1 and 65535, not -3"),
        (1 << 16, UserError, "blocks must be between 1 and 65535, not 65536"),
        (1.5, TypeError, "blocks must be an int, not 1.5"),
        (True, TypeError, "blocks must be an int, not True"),
    ],
)
def test_wrong_numbers_of_blocks(blocks, error, message):
    with pytest.raises(error, match=message):
        Program(C310, blocks=blocks)
    arguments = {"x": np.zeros(128, np.float16), "y": np.zeros(128, np.float16)}
    with pytest.raises(error, match=message):
        build(read(ADD), C310, arguments, blocks=blocks)


def test_an_index_beyond_the_blocks():
    program = Program(C310, blocks=3)
    with pytest.raises(ValueError, match="index of a core must be 0 … 2, not 3"):
        program.core(3)


def test_a_wrong_order_of_rounds_is_noticed():
    """With other places or another handover, the times differ."""
    lowered, _ = lower(scalar_program([3000, 1000, 2000, 1000, 2000]))
    ends = engine.run(lowered).end
    for change in ({"places": 3}, {"handover": 0}, {"places": 0}):
        other = dataclasses.replace(lowered, **change)
        assert not np.array_equal(engine.run(other).end, ends)


def test_a_block_leaves_no_buffers_behind():
    """The buffers of 65535 blocks would otherwise need more memory than most machines have."""
    sizes, blocks = [], 40
    arguments = {"x": np.zeros(128 * blocks, np.float16), "y": np.zeros(128 * blocks, np.float16)}
    for count in (2, blocks):
        program, functional = build(read(ADD), C310, arguments, blocks=count)
        assert functional is not None
        sizes.append([functional.memory(core).words.any() for core in program])
    assert sizes == [[True] * 2, [False] * blocks]
