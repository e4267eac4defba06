"""Reports, critical paths, traces and pictures of runs."""

import io
import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.davinci import Program, Unit, engine, load_chip
from sim.davinci.instruction import Kind
from sim.davinci.lowering import lower
from sim.davinci.report import Finding, Report, _critical, _union
from sim.davinci.trace import _joined, gantt, timeline, write_trace
from tests.unit.davinci_programs import random_lowered

CHIP = load_chip("ascend310")


@pytest.fixture
def report() -> Report:
    """x → UB, relu → y, on two cores."""
    program = Program(CHIP, "relu")
    x, y = (program.tensor(n, (2, 16384), "fp16") for n in "xy")
    for c in range(2):
        core = program.core(c)
        u = core.allocate("UB", (16384,), "fp16")
        core.copy(u, x[c])
        core.set_flag(Unit.MTE2, Unit.V, 0)
        core.wait_flag(Unit.MTE2, Unit.V, 0)
        core.vrelu(u, u)
        core.set_flag(Unit.V, Unit.MTE3, 0)
        core.wait_flag(Unit.V, Unit.MTE3, 0)
        core.copy(y[c], u)
    low, streams = lower(program)
    return Report("relu", CHIP, low, streams, engine.run(low, streams))


def test_figures(report):
    move = Fraction(2 * 32768, 36) + 40
    relu = Fraction(128 * 256 * 100, 17406) + 40
    total = 2050 + 2 * move + relu
    assert report.total_ps == round(total * 1000)
    assert report.path_bytes() == {"GM->UB": 65536, "UB->GM": 65536}
    assert report.operations() == {("V", "fp16"): 2 * 16384}
    units = {(u.core, u.unit): u for u in report.units()}
    assert len(units) == 6
    v = units["aicore 1", Unit.V]
    assert v.count == 1 and v.busy == pytest.approx(float(relu) / 1e9, rel=1e-9)
    assert v.waiting == pytest.approx(float(move) / 1e9, rel=1e-9)
    assert v.active == pytest.approx(v.busy + v.waiting, rel=1e-9), (
        "a queue with a wait is not empty"
    )
    mte2 = units["aicore 0", Unit.MTE2]
    assert mte2.busy == mte2.active == pytest.approx(float(move) / 1e9, rel=1e-9)
    assert mte2.waiting == 0


def test_text_and_dictionary(report):
    text = report.text()
    assert text.startswith("relu on ascend310: ") and "14 instructions on 2 cores" in text
    assert "GM->UB" in text and "V fp16" in text and "critical path: " in text
    report.findings.append(Finding("race", "race: something"))
    assert report.text().endswith("race: something")
    found = json.loads(json.dumps(report.as_dict()))
    assert found["total_ps"] == report.total_ps and len(found["units"]) == 6
    assert sum(found["critical_path_s"].values()) == pytest.approx(report.total_s, rel=1e-12)
    assert found["findings"] == [{"check": "race", "message": "race: something"}]


def test_the_critical_path_goes_through_flags(report):
    path = report.critical_path()
    ops = [report.instruction(step.number)[1].op for step in path]
    assert ops == ["copy", "set_flag", "wait_flag", "vrelu", "set_flag", "wait_flag", "copy"]
    assert [s.why for s in path] == ["launch", "queue", "flag", "queue", "queue", "flag", "queue"]
    assert report.critical_units()["launch"] == pytest.approx(2050e-9)


def test_scalar_work_and_barriers_are_on_the_critical_path():
    core = Program(CHIP).core()
    u = core.allocate("UB", (128,), "fp16")
    core.scalar(1000)
    core.vrelu(u, u)
    core.pipe_barrier()
    core.vrelu(u, u)
    low, streams = lower(core.program)
    path = _critical(low, engine.run(low, streams))
    assert [s.number for s in path] == [0, 1, 2, 3]
    assert [s.why for s in path] == ["launch", "dispatch", "barrier", "dispatch"]


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_a_critical_path_has_no_gaps(seed):
    low = random_lowered(seed, large=True)
    times = engine.run(low)
    path = _critical(low, times)
    assert path[-1].end == times.total
    for one, two in pairwise(path):
        assert one.end == two.begin, "steps follow each other"
    assert path[0].why == "launch" and all(s.why != "launch" for s in path[1:])
    assert path[0].begin in low.begin
    for step in path:
        took = step.end - step.begin
        least = int(low.init[step.number] + low.data[step.number])
        if low.kind[step.number] == Kind.NORMAL:
            assert took >= least, "a step contains its instruction"
            if low.bus[step.number] < 0 and not low.dispatch:
                assert took == least
        elif step.why == "flag":
            assert took == low.init[step.number] + low.lag[step.number]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=9))
def test_union_of_intervals(parts):
    begin = np.array([b for b, _ in parts])
    end = begin + np.array([n for _, n in parts])
    assert _union(begin, end) == len({t for b, n in parts for t in range(b, b + n)})


def test_trace(report):
    file = io.StringIO()
    count = write_trace(report, file)
    events = json.loads(file.getvalue())["traceEvents"]
    assert len(events) == count
    bars = [e for e in events if e["ph"] == "X"]
    assert len(bars) == 14
    last = max(e["ts"] + e["dur"] for e in bars)
    assert last == pytest.approx(report.total_s * 1e6, abs=1e-5)
    starts, ends = ({e["id"]: e for e in events if e["ph"] == p} for p in "sf")
    assert set(starts) == set(ends) and len(starts) == 4
    assert all(starts[k]["ts"] <= ends[k]["ts"] for k in starts)
    names = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    assert names == {(c, n) for c in (0, 1) for n in ("MTE2", "V", "MTE3")}
    for one in bars:
        inside = [e for e in bars if e["pid"] == one["pid"] and e["tid"] == one["tid"]]
        assert all(
            e is one or e["ts"] >= one["ts"] + one["dur"] - 1e-6 or e["ts"] <= one["ts"]
            for e in inside
        )
    assert write_trace(report, io.StringIO(), flows=False) == count - 8


def test_timeline(report):
    lines = timeline(report, 50).split("\n")
    assert len(lines) == 7 and all(len(line.split("|")[1]) == 50 for line in lines[:-1])
    bars = [line.split("|")[1] for line in lines[:3]]
    for bar, unit in zip(bars, (Unit.V, Unit.MTE2, Unit.MTE3), strict=True):
        busy = next(u.busy for u in report.units() if u.unit == unit) / report.total_s
        share = sum(" ▁▂▃▄▅▆▇█".index(m) for m in bar) / 8 / 50
        assert busy - 1e-9 <= share <= busy + 2 / 50, "marks are rounded up"
    with pytest.raises(ValueError, match="width must be 1 or more, not 0"):
        timeline(report, 0)


def test_pictures_are_repeatable(report, tmp_path):
    for name in ("a.svg", "b.svg", "a.png"):
        gantt(report, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_bars_too_close_to_see_are_joined():
    begin, end = np.array([0, 12, 40, 61]), np.array([10, 20, 60, 70])
    assert _joined(begin, end, 2).tolist() == [[0, 20], [40, 30]]
    assert _joined(begin, end, 0).tolist() == [[0, 10], [12, 8], [40, 20], [61, 9]]
    assert _joined(begin[:0], end[:0], 5).shape == (0, 2)


def test_an_empty_run():
    low, streams = lower(Program(CHIP))
    empty = Report("nothing", CHIP, low, streams, engine.run(low, streams))
    assert empty.critical_path() == [] and empty.units() == [] and "0 instructions" in empty.text()
    assert write_trace(empty, io.StringIO()) == 0 and "|" in timeline(empty, 10)
