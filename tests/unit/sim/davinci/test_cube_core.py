"""Keys of a chip file for the Cube cores of the 910B: posted flags, the cache, bytes written."""

from dataclasses import replace
from fractions import Fraction

import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.chip.file import ChipError, find_chip, read_chip
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.davinci.timing.predecessors import predecessors

C910B = load_chip("ascend910b")
TEXT = find_chip("ascend910b").read_text(encoding="utf-8")
NS = 10**9


def times_of(core):
    lowered = lower(core.program)[0]
    return lowered, engine.run(lowered, check=False)


def cube_core():
    return Program(C910B).core(0, "cube")


def test_a_posted_flag_does_not_hold_its_queue_up():
    core = cube_core()
    x = core.program.tensor("x", (128, 256), "fp16")
    slots = [core.allocate("L1", (x.size,), "fp16") for _ in "01"]
    for register, slot in enumerate(slots):
        core.nd2nz(slot, x)
        core.set_flag(Unit.MTE2, Unit.MTE1, register)
    lowered, times = times_of(core)
    assert lowered.posted.tolist() == [False, True, False, True]
    assert times.start[2] == times.end[0], "the second load follows the first"
    assert times.end[1] == times.drained[0] > times.end[0], "its flag comes with the data"
    assert times.end[3] == times.drained[2]
    before, _ = predecessors(lowered)
    assert before.tolist() == [-1, 0, 0, 2], "nobody waits for a posted flag in its queue"


def test_m_waits_for_its_flags():
    core = cube_core()
    a = core.allocate("L0A", (256,), "fp16")
    b = core.allocate("L0B", (256,), "fp16")
    c = core.allocate("L0C", (512,), "fp32")
    for half in (c[:256], c[256:]):
        core.mmad(half, a, b, m=16, k=16, n=16, init="zero")
        core.set_flag(Unit.M, Unit.FIX, 0)
        core.wait_flag(Unit.M, Unit.FIX, 0)
    lowered, times = times_of(core)
    first, flag, _, second, *_ = range(len(lowered))
    assert C910B.cube is not None
    assert C910B.cube.drain_s == Fraction(22, NS)
    assert times.start[flag] == times.drained[first] == times.end[first] + 22 * 10**9
    assert times.start[second] == times.end[flag]


def test_fix_takes_as_long_as_the_bytes_that_it_writes():
    core = cube_core()
    c = core.allocate("L0C", (128 * 256,), "fp32")
    periods = {}
    for dtype in ("fp16", "fp32"):
        y = core.program.tensor(dtype, (128, 256), dtype)
        out = core.matrix_out(y, c, m=128, n=256, layout="nd", dst_stride=y.strides[0])
        periods[dtype] = C910B.timing(out).period
    route = C910B.route("L0C", "GM", "matrix_out")
    assert route.counts_written
    for dtype, nbytes in (("fp16", 65536), ("fp32", 131072)):
        assert periods[dtype] == round(route.rate.seconds(nbytes) * 10**18)


def load_timing(missed, chip=C910B):
    core = Program(chip).core(0, "cube")
    x = core.program.tensor("x", (128, 256), "fp16")
    return chip.timing(core.nd2nz(core.allocate("L1", (x.size,), "fp16"), x, missed=missed))


def test_what_a_miss_costs():
    """Data that several cores need have a latency; those of one core need the memory's bus."""
    hit = load_timing((0, 1))
    assert hit.bus == "memory"
    shared = load_timing((65536 // 4, 4))
    assert shared == replace(hit, init=hit.init + 180 * 10**9)
    alone = load_timing((65536, 1))
    assert alone == replace(hit, bus="hbm"), "no latency, and a bus that has less for all cores"
    half = load_timing((65536 // 2, 2))
    assert half.bus == "hbm" and half.init == shared.init
    assert half.data == hit.data and half.rate == hit.rate / 2, "the memory carries its half"
    uncached = load_timing((65536, 1), replace(C910B, cache=None, _known={}))
    assert uncached == hit


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('bus = "hbm"', 'bus = "hbn"', "cache.bus must be one of memory, write, hbm, not 'hbn'"),
        ("mib = 100", "mib = 0", "cache.mib must be an integer, 1 or more, not 0"),
        ("latency_ns = 180", "latency_ns = -1", "cache.latency_ns must be 0 or more, not -1"),
        ('counts = "written"', 'counts = "w"', "counts must be one of read, written, not 'w'"),
        ('"MTE3", "FIX"]\nsource', '"MTE3", "FX"]\nsource', "posted must be a list of M, MTE1"),
        (", posted = ", ", passed = ", "text for each number, also for posted"),
    ],
)
def test_mistakes_are_refused(old, new, message):
    assert old in TEXT
    with pytest.raises(ChipError, match=message):
        read_chip(TEXT.replace(old, new, 1))
