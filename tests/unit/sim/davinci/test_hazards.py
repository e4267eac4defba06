"""Hazards within a queue, flags left set, and overlapping operands.

Small programs that lack something and their repaired twins, an oracle for the order that a device
guarantees, and mutants of the checks.
"""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.davinci_programs import random_accesses, random_lowered
from vitruvian.common import compiling
from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.checks import compiled as loops
from vitruvian.sim.davinci.checks import overlap
from vitruvian.sim.davinci.checks.check import check, check_lowered
from vitruvian.sim.davinci.chip.file import CHIPS, ChipError, read_chip
from vitruvian.sim.davinci.isa.instruction import Kind

C310, C910B = load_chip("ascend310"), load_chip("ascend910b")
S, V, M, MTE1, MTE2, MTE3 = list(Unit)[:6]
FIX = Unit.FIX
TEXT = (CHIPS / "ascend310.toml").read_text(encoding="utf-8")


@pytest.fixture(params=["compiled", "plain"])
def form(request, monkeypatch):
    """Small programs are checked by the same loops as plain Python; test both."""
    monkeypatch.setattr(compiling, "SMALL", 0 if request.param == "compiled" else 10**9)


def core_of(chip=C310, kind=None):
    return Program(chip).core(0, kind)


def ub(core, n=1024, dtype="fp16"):
    return core.allocate("UB", (n,), dtype)


def sync(core, source, target, register=0):
    core.set_flag(source, target, register)
    core.wait_flag(source, target, register)


# Hazards: functions that emit two instructions, and call ``between`` to separate them: it does
# nothing in the broken program, and adds a barrier of the unit in the repaired one.


def read_after_write(between):
    core = core_of()
    u, v = ub(core), ub(core)
    core.vdup(u, 1.0)
    between(core)
    core.vrelu(v, u)
    return core.program


def write_after_read(between):
    core = core_of()
    u, v = ub(core), ub(core)
    core.vdup(u, 1.0)
    core.pipe_barrier(V)
    core.vrelu(v, u)
    between(core)
    core.vdup(u[128:256], 2.0)
    return core.program


def write_after_write(between):
    core = core_of()
    u = ub(core)
    core.vdup(u, 1.0)
    between(core)
    core.vdup(u[512:], 2.0)
    return core.program


def _tensor(core, name="x", n=1024, dtype="fp16"):
    return core.program.tensor(name, (n,), dtype)


def loads(between):
    core = core_of()
    x, u = _tensor(core), ub(core)
    core.copy(u[:512], x[:512])
    between(core)
    core.copy(u[256:768], x[512:])
    return core.program


def stores(between):
    core = core_of()
    x, u = _tensor(core), ub(core)
    core.vdup(u, 1.0)
    sync(core, V, MTE3)
    core.copy(x[:512], u[:512])
    between(core)
    core.copy(x[496:1008], u[512:])
    return core.program


def fractals(between):
    core = core_of()
    x, near = _tensor(core), core.allocate("L1", (1024,), "fp16")
    a = core.allocate("L0A", (1024,), "fp16")
    core.copy(near, x)
    sync(core, MTE2, MTE1)
    core.load(a[:512], near[:512])
    between(core)
    core.load(a[256:768], near[512:])
    return core.program


def products(between, rows=48, first=None):
    """Add a second product to the first; from 160 × 16 on, the Cube's pipeline is long enough."""
    core = core_of()
    a, b = core.allocate("L0A", (rows * 16,), "fp16"), core.allocate("L0B", (256,), "fp16")
    c = core.allocate("L0C", (rows * 16,), "fp32")
    core.fill(a, 1)
    core.fill(b, 1)
    sync(core, MTE1, M)
    core.mmad(c, a, b, m=first or rows, k=16, n=16, init="zero")
    between(core)
    core.mmad(c, a, b, m=rows, k=16, n=16, init="accumulate" if first is None else "zero")
    return core.program


def out_of_l0c(between):
    core = core_of(C910B, "cube")
    y = core.program.tensor("y", (2, 16, 16), "fp32")
    c = core.allocate("L0C", (512,), "fp32")
    a, b = core.allocate("L0A", (512,), "fp16"), core.allocate("L0B", (256,), "fp16")
    core.fill(a, 1)
    core.fill(b, 1)
    sync(core, MTE1, M)
    core.mmad(c, a, b, m=32, k=16, n=16, init="zero")
    sync(core, M, FIX)
    core.matrix_out(y[0], c[:256], m=16, n=16, layout="nd")
    between(core)
    core.matrix_out(y[0], c[256:], m=16, n=16, layout="nd")
    return core.program


HAZARDS = [
    (V, "writes and vrelu.* on V reads UB", read_after_write),
    (V, r"reads and vdup.* on V writes UB\[256:512\]", write_after_read),
    (V, r"writes and vdup.* on V writes UB\[1024:2048\]", write_after_write),
    (MTE2, r"writes and copy.* on MTE2 writes UB\[512:1024\]", loads),
    (MTE3, "writes and copy.* on MTE3 writes GM", stores),
    (MTE1, r"writes and load.* on MTE1 writes L0A\[512:1024\]", fractals),
    (M, "writes and mmad.* on M (reads|writes) L0C", products),
    (FIX, "writes and matrix_out.* on FIX writes GM", out_of_l0c),
]


@pytest.mark.parametrize(("unit", "message", "build"), HAZARDS)
def test_dependent_instructions_of_a_queue_need_a_barrier(form, unit, message, build):
    (finding,) = check(build(lambda core: None))
    assert finding.check == "hazard" and finding.message.startswith("hazard: ")
    assert re.search(message, finding.message)
    assert finding.message.endswith(f"; pipe_barrier({unit.name}) between them is missing")
    assert finding.message.count(f"{__file__}:") == 2 and "\n" not in finding.message
    assert not check(build(lambda core: core.pipe_barrier(unit)))
    assert not check(build(lambda core: core.pipe_barrier()))
    other = MTE1 if unit != MTE1 else MTE2
    assert check(build(lambda core: core.pipe_barrier(other))), "of another queue"


def compare_and_select(between, in_memory=False):
    """Compare into the register, and select by it, or by bits in memory."""
    core = core_of()
    u, v, w = ub(core, 128), ub(core, 128), ub(core, 128)
    bits = ub(core, 32, "uint8")
    for view in (u, v):
        core.vdup(view, 1.0)
    core.pipe_barrier(V)
    core.vcmpv(bits, u, v, "lt", repeat=1)
    core.pipe_barrier(V)
    core.vcmp(u, v, "lt")
    between(core)
    core.vsel(w, u, v, bits if in_memory else None, repeat=1)
    return core.program


def test_the_register_of_comparisons_is_a_dependence(form):
    program = compare_and_select(lambda core: None)
    (finding,) = check(program)
    assert finding.check == "hazard" and finding.message.count(f"{__file__}:") == 2
    assert re.search(r"vcmp.* on V writes and vsel.* on V reads CMPMASK; ", finding.message)
    assert finding.message.endswith("; pipe_barrier(V) between them is missing")
    assert not check(compare_and_select(lambda core: core.pipe_barrier(V)), strict=True)
    assert check(compare_and_select(lambda core: core.pipe_barrier(MTE2))), "of another queue"
    assert not check(compare_and_select(lambda core: None, in_memory=True)), "it reads no register"
    chip = read_chip(TEXT.replace("interlocks = []", 'interlocks = ["V"]'))
    assert not simulate(program, chip=chip).findings
    assert [f.check for f in check(program, strict=True)] == ["hazard"]


def test_a_comparison_may_follow_a_selection_at_once(form):
    """The queue starts in order, so that the selection has read the register by then."""
    core = core_of()
    u, v, w = ub(core, 128), ub(core, 128), ub(core, 128)
    for view in (u, v):
        core.vdup(view, 1.0)
    core.pipe_barrier(V)
    core.vcmp(u, v, "lt")
    core.pipe_barrier(V)
    core.vsel(w, u, v)
    core.vcmp(u, v, "gt")
    assert not check(core.program, strict=True)


def test_a_flag_to_another_queue_and_back_is_as_good_as_a_barrier(form):
    def there_and_back(core):
        sync(core, V, MTE3)
        sync(core, MTE3, V)

    assert not check(read_after_write(there_and_back))
    assert not check(read_after_write(lambda core: sync(core, V, S))), "S issues what follows"
    assert check(read_after_write(lambda core: sync(core, V, MTE3))), "nothing comes back"
    assert check(read_after_write(lambda core: sync(core, MTE3, V))), "nothing goes there"
    assert check(read_after_write(lambda core: core.add(S, "scalar"))), "S has waited for nothing"


def test_scalar_work_needs_no_barrier(form):
    core = core_of()
    u = ub(core)
    core.scalar_store(u[0:1], 1)
    core.scalar_store(u[0:1], 2)
    core.scalar_load(u[0:1])
    assert not check(core.program, strict=True)


def test_long_products_follow_each_other_without_a_barrier(form):
    """The pipeline orders products on the same C of ten fractals and more, not other ones."""
    assert [f.check for f in check(products(lambda core: None, 144))] == ["hazard"]
    assert not check(products(lambda core: None, 160), strict=True)
    assert [f.check for f in check(products(lambda core: None, 320, first=160))] == ["hazard"]


def test_an_instruction_may_be_repeated(form):
    """It writes the same again, unless it reads what it writes; others are compared as ever."""
    for in_place, expected in ((False, []), (True, ["hazard"])):
        core = core_of()
        u, v = ub(core), ub(core)
        core.vdup(u, 1.0)
        core.pipe_barrier(V)
        for _ in range(3):
            core.vadds(u if in_place else v, u, 1.0)
        assert [f.check for f in check(core.program)] == expected
        core.vadds(v, u, 2.0)
        assert "hazard" in {f.check for f in check(core.program)}


def test_a_chip_may_interlock_a_queue(form):
    chip = read_chip(TEXT.replace("interlocks = []", 'interlocks = ["V", "M"]'))
    assert chip.kind().interlocks == (V, M)
    for _, _, build in HAZARDS[:3]:
        program = build(lambda core: None)
        report = simulate(program, chip=chip)
        assert not report.findings, "the chip that is simulated counts"
        assert [f.check for f in simulate(program, chip=chip, strict=True).findings] == ["hazard"]
        assert [f.check for f in simulate(program).findings] == ["hazard"]
    assert [f.check for f in simulate(loads(lambda core: None), chip=chip).findings] == ["hazard"]


def test_mistakes_in_the_interlocks_of_a_chip():
    allowed = r"core.aicore.interlocks must be a list of V, M, MTE1, MTE2, MTE3, or \[\], not "
    for value in ('["S"]', '["FIX"]', '"V"', "[1]"):
        with pytest.raises(ChipError, match=allowed):
            read_chip(TEXT.replace("interlocks = []", f"interlocks = {value}"))
    text = re.sub(r", interlocks = \"[^\"]*\"", "", TEXT)
    assert text != TEXT
    with pytest.raises(ChipError, match="a text for each number, also for interlocks"):
        read_chip(text)
    text = text.replace("interlocks = []\n", "")
    assert read_chip(text).kind().interlocks == (), "a chip that says nothing interlocks nothing"


# The order that a device guarantees, by reachability among starts and ends.


def guaranteed(lowered) -> np.ndarray:
    """Return [j, i] = True if j always has ended when i starts."""
    n, core = len(lowered), np.repeat(np.arange(len(lowered.begin)), np.diff(lowered.first))
    unit, kind = lowered.unit, lowered.kind
    edge = np.zeros((2 * n, 2 * n), bool)  # 0 … n − 1 are the starts, n … 2n − 1 the ends
    for i in range(n):
        edge[i, n + i] = True
        earlier = [j for j in range(i) if core[j] == core[i]]
        mine = [j for j in earlier if unit[j] == unit[i]]
        if mine:
            edge[mine[-1], i] = True  # a queue starts in order
            if kind[mine[-1]] in (Kind.WAIT, Kind.BARRIER, Kind.BARRIER_ALL):
                edge[n + mine[-1], i] = True
        for j in earlier:
            if unit[j] == S:
                edge[n + j, i] = True
        before = earlier if kind[i] == Kind.BARRIER_ALL else mine
        if kind[i] in (Kind.SET, Kind.BARRIER, Kind.BARRIER_ALL):
            for j in before:
                edge[n + j, n + i] = True
        if kind[i] == Kind.WAIT:
            for j in lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]]:
                edge[n + j, n + i] = True
    reach = edge
    while True:
        further = reach | (reach.astype(np.float32) @ reach.astype(np.float32) > 0)
        if np.array_equal(further, reach):
            return reach[n:, :n]
        reach = further


def hazards_of(seed):
    """Return the pairs that are hazards by brute force, and those that the check finds."""
    lowered = random_lowered(seed, size=24, lags=False)
    streams = random_accesses(lowered, np.random.default_rng(seed))
    flat = [instr for stream in streams for instr in stream.instructions]
    core = np.repeat(np.arange(len(streams)), np.diff(lowered.first)).tolist()

    def touch(spans, i):
        return {
            (s.buffer, -1 if s.buffer == "GM" else core[i], byte)
            for s in spans
            for lo, hi in s.intervals().tolist()
            for byte in range(lo, hi)
        }

    reads = [touch(instr.reads, i) for i, instr in enumerate(flat)]
    writes = [touch(instr.writes, i) for i, instr in enumerate(flat)]
    order = guaranteed(lowered)
    expected, bytes_ = set(), set()
    for i in range(len(flat)):
        for j in range(i):
            if core[i] != core[j] or lowered.unit[i] != lowered.unit[j] or lowered.unit[i] == S:
                continue
            common = writes[i] & (reads[j] | writes[j]) | reads[i] & writes[j]
            if common and not order[j, i]:
                expected.add((j, i))
                bytes_ |= common
    program = Program(C310)
    program.tensor("x", (1000,), "int8")
    found = {
        f.instructions for f in check_lowered(program, lowered, streams) if f.check == "hazard"
    }
    covered = {place for j, i in found for place in (reads[i] | writes[i]) & (reads[j] | writes[j])}
    return expected, found, bytes_ <= covered


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_hazards_are_those_of_brute_force(seed):
    expected, found, covered = hazards_of(seed)
    assert found <= expected, "no false alarm"
    assert covered, "every byte with a hazard is in a reported hazard"


# Flags.


def test_a_flag_that_stays_set_is_found(form):
    core = core_of()
    u = ub(core)
    core.vdup(u, 0.0)
    for _ in range(2):
        core.set_flag(V, MTE3, 3)
        core.wait_flag(V, MTE3, 3)
    assert not check(core.program)
    core.set_flag(V, MTE3, 3)
    core.set_flag(V, MTE2, 3)
    core.set_flag(V, MTE2, 4)
    core.wait_flag(V, MTE2, 4)
    findings = check(core.program)
    assert [f.check for f in findings] == ["flag", "flag"]
    assert re.search(
        r"flag: set_flag\(V, MTE3, 3\) at .* is still set when the kernel ends; "
        r"wait_flag\(V, MTE3, 3\) is missing$",
        findings[0].message,
    )
    assert "wait_flag(V, MTE2, 3) is missing" in findings[1].message


def test_a_flag_set_in_a_loop_is_reported_once(form):
    program = Program(C310)
    for c in range(2):
        for register in range(4):
            program.core(c).set_flag(V, MTE3, register)
    assert [f.check for f in check(program)] == ["flag"]


# Destination and sources of one instruction.


def one(op, at, *sources, repeat=2, dtypes=None, mask=-1, **strides):
    """Return a program of one vector instruction on byte offsets of initialised memory."""
    core = core_of()
    core.vdup(core.view("UB", 0, (8192,), "fp16"), 1.0)
    core.pipe_barrier(V)
    names = ("dst", "src") if len(sources) == 1 else ("dst", "src0", "src1")
    dtypes = dtypes or ["fp16"] * 3
    operands = {
        name: core.view("UB", offset, (128,), dtype)
        for name, offset, dtype in zip(names, (at, *sources), dtypes, strict=False)
    }
    fields = {"rounding": "none"} if op == "vconv" else {}
    core.vector(op, operands, repeat=repeat, mask=mask, strides=strides, **fields)
    return core.program


OVERLAPS = [
    (one("vabs", 0, 0), ""),
    (one("vabs", 0, 512), ""),
    (one("vadd", 0, 0, 0), ""),
    (one("vadd", 0, 512, 0), ""),
    (one("vabs", 0, 0, mask=0xFF00FF), ""),
    (one("vabs", 32, 0, repeat=1), r"writes UB\[32:256\], a part of what it reads"),
    (one("vabs", 0, 32, repeat=1), r"writes UB\[32:256\], a part of what it reads"),
    (one("vabs", 256, 0), r"writes UB\[256:512\], a part of what it reads"),
    (one("vadd", 0, 0, 128), r"writes UB\[128:512\], a part of what it reads"),
    (one("vconv", 0, 0, dtypes=["fp16", "fp32"], dst=(1, 4), src=(1, 8)), ""),
    (one("vconv", 32, 0, dtypes=["fp16", "fp32"], dst=(1, 4), src=(1, 8)), "a part of what it"),
    # All repeats combined in one place: only the second source may be that place.
    (one("vadd", 0, 512, 0, dst=(1, 0), src1=(1, 0)), ""),
    (one("vmax", 0, 512, 0, dst=(1, 0), src1=(1, 0), repeat=9), ""),
    (one("vadd", 0, 0, 512, dst=(1, 0), src0=(1, 0)), r"reads UB\[0\] in repeat 1 as src0"),
    (one("vabs", 0, 0, dst=(1, 0), src=(1, 0)), r"reads UB\[0\] in repeat 1 as src,"),
    (one("vmla", 0, 512, 1024, dst=(1, 0)), r"in repeat 1 as dst"),
    # The place and stride are the same, but a repeat reaches into the next one.
    (one("vabs", 0, 0, dst=(1, 4), src=(1, 4)), r"reads UB\[128\] in repeat 1 as src"),
    (one("vabs", 0, 0, dst=(2, 1), src=(2, 1)), ""),
]


@pytest.mark.parametrize(("program", "message"), OVERLAPS)
def test_a_destination_is_a_source_or_apart_from_it(form, program, message):
    findings = check(program)
    assert [f.check for f in findings] == ["overlap"] * bool(message)
    for finding in findings:
        assert re.search(message, finding.message) and f"{__file__}:" in finding.message
        assert finding.message.startswith("overlap: v") and "\n" not in finding.message


def test_a_move_or_a_reduction_onto_its_own_source():
    for build, expected in (
        (lambda core, u: core.copy(u[256:512], u[:256]), 0),
        (lambda core, u: core.copy(u[128:384], u[:256]), 1),
        (lambda core, u: core.vcadd(u[256:], u), 0),
        (lambda core, u: core.vcadd(u, u), 0),  # the sum begins where its source does
        (lambda core, u: core.vcadd(u[16:], u), 1),
        (lambda core, u: core.vtranspose(u[:256], u[:256]), 0),
        (lambda core, u: core.vtranspose(u[128:384], u[:256]), 1),
    ):
        core = core_of()
        u = ub(core)
        core.vdup(u, 1.0)
        core.pipe_barrier(V)
        build(core, u)
        assert [f.check for f in check(core.program)] == ["overlap"] * expected


# Mutants of the checks: each must be noticed by the programs above.


@pytest.mark.parametrize(
    "mutant",
    [
        lambda needs, known, kind, i, *_: known[2][i] - 1,  # a queue ends in order
        lambda needs, known, kind, i, *_: 0,  # nothing ever ends
        lambda needs, known, kind, i, previous, *_: (
            known[2][i] if kind >= 3 else known[1][previous] if previous >= 0 else 0
        ),  # barriers count, flags do not
    ],
)
def test_a_wrong_order_of_the_queues_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(compiling, "SMALL", 10**9)
    monkeypatch.setattr(loops, "_settled", mutant)
    outcomes = [hazards_of(seed) for seed in range(40)]
    assert not all(found <= expected and covered for expected, found, covered in outcomes)


@pytest.mark.parametrize(("name", "value"), [("_equal", True), ("_accumulates", True)])
def test_a_lenient_check_of_overlaps_is_noticed(monkeypatch, name, value):
    monkeypatch.setattr(overlap, name, lambda *_: value)
    assert any(
        [f.check for f in check(program)] != ["overlap"] * bool(message)
        for program, message in OVERLAPS
    )
