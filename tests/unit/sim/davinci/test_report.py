"""Reports, critical paths, traces and charts of runs."""

import io
import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.davinci_programs import random_lowered
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.davinci.report import trace
from vitruvian.sim.davinci.report.busy import union_time
from vitruvian.sim.davinci.report.report import Finding, Report, _critical
from vitruvian.sim.davinci.report.trace import _joined, gantt, timeline, write_trace
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower

CHIP = load_chip("ascend310")


@pytest.fixture
def report() -> Report:
    """Return the report of x → UB, relu, UB → y on two cores."""
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
    lowered, streams = lower(program)
    return Report("relu", CHIP, lowered, streams, engine.run(lowered, streams))


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
    assert text.count("aicore 0 to 1  MTE2 ") == 1, "both cores did the same"
    assert text.startswith("relu on ascend310: ") and "14 instructions on 2 cores" in text
    assert "GM->UB" in text and "V fp16" in text and "critical path: " in text
    report.findings.append(Finding("race", "race: something"))
    assert report.text().endswith("race: something")
    document = json.loads(json.dumps(report.as_dict()))
    assert document["total_ps"] == report.total_ps and len(document["units"]) == 6
    assert sum(document["critical_path_s"].values()) == pytest.approx(report.total_s, rel=1e-12)
    assert document["findings"] == [{"check": "race", "message": "race: something"}]


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
    lowered, streams = lower(core.program)
    path = _critical(lowered, engine.run(lowered, streams))
    assert [s.number for s in path] == [0, 1, 2, 3]
    assert [s.why for s in path] == ["launch", "dispatch", "barrier", "dispatch"]


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_a_critical_path_has_no_gaps(seed):
    lowered = random_lowered(seed, large=True)
    times = engine.run(lowered)
    path = _critical(lowered, times)
    assert path[-1].end == times.total
    for before, after in pairwise(path):
        assert before.end == after.begin, "steps follow each other"
    assert path[0].why == "launch" and all(s.why != "launch" for s in path[1:])
    assert path[0].begin in lowered.begin
    for step in path:
        took = step.end - step.begin
        least = int(lowered.init[step.number] + lowered.data[step.number])
        least += int(lowered.drain[step.number]) if step is path[-1] else 0
        if lowered.kind[step.number] == Kind.NORMAL:
            assert took >= least, "a step contains its instruction"
            if lowered.bus[step.number] < 0 and not lowered.dispatch:
                assert took == least
        elif step.why == "flag":
            assert took == lowered.init[step.number] + lowered.lag[step.number]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=9))
def test_union_of_intervals(parts):
    begin = np.array([b for b, _ in parts])
    end = begin + np.array([n for _, n in parts])
    assert union_time(begin, end) == len({t for b, n in parts for t in range(b, b + n)})


def imported(text):
    """Model Perfetto's import: return the bars kept, the bars dropped, and the arrows (set, wait).

    Perfetto multiplies microseconds by a thousand, truncates to nanoseconds, and sorts by time
    (stably). It removes the bars that have ended from a thread's stack when the next bar starts,
    and drops a bar that starts within another one and ends after it. The end of an arrow belongs
    to the bar on top of the stack.
    """
    events = json.loads(text)["traceEvents"]
    events = [e | {"ns": int(e["ts"] * 1000)} for e in events if e["ph"] != "M"]
    stacks, kept, dropped, arrows = {}, [], [], {}
    for e in sorted(events, key=lambda e: e["ns"]):
        stack = stacks.setdefault((e["pid"], e["tid"]), [])
        if e["ph"] != "X":
            arrows.setdefault(e["id"], {})[e["ph"]] = stack[-1][1]
            continue
        begin, length = e["ns"], int(e["dur"] * 1000)
        while stack and (
            stack[-1][0] < begin
            or (stack[-1][0] == begin and (length or int(stack[-1][1]["dur"] * 1000)))
        ):
            stack.pop()
        if stack and begin < stack[-1][0] < begin + length:
            dropped.append(e)
            continue
        stack.append((begin + length, e))
        kept.append(e)
    pairs = [(a["s"]["args"]["number"], a["f"]["args"]["number"]) for a in arrows.values()]
    return kept, dropped, sorted(pairs)


def test_trace(report):
    file = io.StringIO()
    count = write_trace(report, file)
    events = json.loads(file.getvalue())["traceEvents"]
    assert len(events) == count
    bars, dropped, arrows = imported(file.getvalue())
    assert len(bars) == 14 and not dropped
    for bar in bars:
        number = bar["args"]["number"]
        begin, end = int(report.times.start[number]), int(report.times.end[number])
        assert bar["args"]["begin_ps"] == round(begin / 10**6)
        assert bar["args"]["end_ps"] == round(end / 10**6)
        assert bar["ns"] == begin // 10**9 and int(bar["dur"] * 1000) == end // 10**9 - bar["ns"]
    sets = {
        int(report.lowered.need[k]): i
        for i, k in enumerate(report.lowered.need_first[:-1])
        if report.lowered.kind[i] == Kind.WAIT
    }
    assert arrows == sorted(sets.items()) and len(arrows) == 4
    core_of = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(core_of.values()) == ["aicore 0", "aicore 1"]
    threads = [e for e in events if e["name"] == "thread_name"]
    names = {(core_of[e["pid"]], e["args"]["name"]) for e in threads}
    assert names == {(f"aicore {c}", n) for c in (0, 1) for n in ("MTE2", "V", "MTE3")}
    numbers = [*core_of, *(e["tid"] for e in threads)]
    assert len(set(numbers)) == len(numbers) and 0 not in numbers
    assert write_trace(report, io.StringIO(), flows=False) == count - 8


def text_of(report, moments):
    """Return a trace of the report's instructions at other times: a start and an end each."""
    start, end = np.sort(np.array(moments).reshape(-1, 2)).T
    times = engine.EngineTimes(start, end, start, end)
    file = io.StringIO()
    write_trace(replace(report, times=times), file)
    return file.getvalue()


def one_queue():
    program = Program(CHIP, "scalar work")
    for _ in range(6):
        program.core().scalar(1)
    lowered, streams = lower(program)
    return Report("queue", CHIP, lowered, streams, engine.run(lowered, streams))


@given(st.lists(st.integers(0, 10**7), min_size=6, max_size=6), st.sampled_from([10**9, 10**8]))
def test_no_bar_of_a_trace_reaches_into_the_next(lengths, grain):
    ends = np.cumsum(lengths)
    moments = np.stack([ends - lengths, ends], 1) * grain
    assert not imported(text_of(one_queue(), moments))[1]


def test_a_microsecond_that_is_cut_down_would_drop_bars(monkeypatch):
    """With a plain division, the modelled import drops bars."""
    monkeypatch.setattr(trace, "_microseconds", lambda nano: nano / 1000)
    moments = [[0, 0], [0, 0], [0, 0], [500, 1001], [1001, 1500], [1500, 1501]]
    assert imported(text_of(one_queue(), np.array(moments) * 10**9))[1]


def test_timeline(report):
    lines = timeline(report, 50).split("\n")
    assert len(lines) == 7 and all(len(line.split("|")[1]) == 50 for line in lines[:-1])
    bars = [line.split("|")[1] for line in lines[:3]]
    for bar, unit in zip(bars, (Unit.V, Unit.MTE2, Unit.MTE3), strict=True):
        busy = next(u.busy for u in report.units() if u.unit == unit) / report.total_s
        share = sum(" ▁▂▃▄▅▆▇█".index(m) for m in bar) / 8 / 50
        # The bars end when a unit takes its next instruction, the busy time with its results.
        drain = 40e-9 / report.total_s if unit == Unit.V else 0
        assert busy - drain - 1e-9 <= share <= busy + 2 / 50, "marks are rounded up"
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
    lowered, streams = lower(Program(CHIP))
    empty = Report("nothing", CHIP, lowered, streams, engine.run(lowered, streams))
    assert empty.critical_path() == [] and empty.units() == [] and "0 instructions" in empty.text()
    assert write_trace(empty, io.StringIO()) == 0 and "|" in timeline(empty, 10)
