"""Ceilings of components, and the work and time that a report has."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.chip.parts import Bus, Throughput
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import CounterError, analyse, counters_of
from vitruvian.sim.roofline.components import ComponentKind, bus_component, components_of

CHIPS = ("ascend310", "ascend310p", "ascend910", "ascend910b")

#: Kernels for the chips that do not run all of them here. The 910B has no core with all units.
NAMES = {
    "ascend310p": ("matmul", "softmax", "maxpool-im2col", "conv2d", "cce-cube"),
    "ascend910": ("matmul", "softmax", "maxpool-im2col", "conv2d", "mte2+3Con", "cce-cube"),
    "ascend910b": ("gemm", "cce-scale-add", "cce-softmax"),
}


def test_ceilings_of_the_310_by_hand():
    found = components_of(load_chip("ascend310"))
    assert list(found) == ["S", "V", "M", "MTE1", "MTE2", "MTE3"]
    cube = load_chip("ascend310").cube
    assert cube is not None
    assert found["M"].ceilings["fp16"] == pytest.approx(8192 / float(cube.step_s))
    assert found["M"].ceilings["int8"] == 2 * found["M"].ceilings["fp16"]
    # 174.06 GB/s are 87.03 · 10⁹ lanes of two bytes.
    assert found["V"].ceilings["fp16"] == pytest.approx(87.03e9, rel=1e-4)
    assert found["V"].ceilings["fp32"] == pytest.approx(87.03e9 / 2, rel=1e-4)
    assert found["S"].ceilings == {"scalar": pytest.approx(1 / 1.47e-9)}  # one cycle of 1.47 ns
    assert found["MTE2"].ceilings["GM->L1"] == 24e9
    assert found["MTE1"].ceilings["L1->L0A"] > found["MTE1"].ceilings["L1->L0B"]


def test_the_highest_measured_throughput_is_the_ceiling():
    chip = load_chip("ascend910b")
    rate = chip.routes["L0C->GM"].rate
    measured = [n / time for n, time in rate.points]
    assert max(measured) > rate.bytes_per_s  # it falls again for the largest size
    ceiling = components_of(chip, "cube")["FIX"].ceilings["L0C->GM"]
    assert ceiling == pytest.approx(float(max(measured)))


def test_cores_together_share_the_bus():
    chip = load_chip("ascend910")
    one, all_ = components_of(chip), components_of(chip, cores=32)
    assert all_["M"].ceilings["fp16"] == pytest.approx(32 * one["M"].ceilings["fp16"])
    assert all_["MTE1"].ceilings["L1->L0A"] == pytest.approx(32 * one["MTE1"].ceilings["L1->L0A"])
    assert all_["MTE2"].ceilings["GM->UB"] == 1200e9 < 32 * one["MTE2"].ceilings["GM->UB"]
    with pytest.raises(ValueError, match="cores must be 1 … 32, not 33"):
        components_of(chip, cores=33)


def test_a_share_of_a_larger_total_may_be_more_than_all_of_a_smaller_one():
    """One transfer of two gets 15 of 30, more than the 10 that it has alone."""
    chip = load_chip("ascend310")
    slow = Bus("interconnect", (Fraction(10), Fraction(30)))
    route = replace(chip.routes["GM->L1"], rate=Throughput(Fraction(100)))
    chip = replace(chip, buses={"interconnect": slow}, routes={**chip.routes, "GM->L1": route})
    assert components_of(chip)["MTE2"].ceilings["GM->L1"] == 10  # it alone sets the time
    assert components_of(chip, cores=2)["MTE2"].ceilings["GM->L1"] == 20


def test_a_bus_is_limited_by_its_users():
    bus = Bus("b", (Fraction(5), Fraction(9)))
    assert bus_component(bus, 1, ["x"]).ceilings == {"x": 5.0}
    assert bus_component(bus, 8, ["x", "y"]).ceilings == {"x": 9.0, "y": 9.0}


@pytest.mark.parametrize("chip", CHIPS)
def test_no_kernel_exceeds_a_ceiling_and_all_work_is_counted(chip):
    """``analyse`` refuses an efficiency above 1, so every kernel must stay within the ceilings."""
    chip, count = load_chip(chip), 0
    for name in NAMES.get(chip.name, set(KERNELS) - {"gemm"}):
        kernel = KERNELS[name]
        if kernel.needs(kernel.default, chip, None).instructions > 2000:
            continue
        program = kernel.build(chip=chip, data=False).program
        report = simulate(program, cube=None, checks=False)
        for scope in ("busiest", "all"):
            for active in ("busy", "queue"):
                result = analyse(counters_of(report, scope, active=active))
                assert all(0 <= row.efficiency <= 1 for row in result.rows)
                for row in result.rows:
                    product = row.efficiency * row.time_ratio
                    assert product == pytest.approx(row.utilisation, rel=1e-9)
        moved = {}
        kinds = {str(stream): stream.kind for stream in report.streams}
        if len(set(kinds.values())) == 1:
            for each in counters_of(report, "all", buses=False).counts:
                for item, work in each.work.items():
                    path = item.split(" ")[0]
                    if "->" in path:
                        moved[path] = moved.get(path, 0) + work
            assert moved == report.path_bytes()
        count += 1
    assert count >= {"ascend310": 25, "ascend310p": 4, "ascend910": 4, "ascend910b": 3}[chip.name]


def program(chip="ascend310", cores=1):
    made = Program(load_chip(chip), "two pieces")
    x = made.tensor("x", (2, 1024), "fp16")
    y = made.tensor("y", (2, 1024), "fp16")
    for index in range(cores):
        core = made.core(index)
        u = core.allocate("UB", (1024,), "fp16")
        for piece in range(2):
            core.copy(u, x[piece])
            core.set_flag(Unit.MTE2, Unit.V, 0)
            core.wait_flag(Unit.MTE2, Unit.V, 0)
            core.vrelu(u, u)
            core.set_flag(Unit.V, Unit.MTE3, 0)
            core.wait_flag(Unit.V, Unit.MTE3, 0)
            core.copy(y[piece], u)
            core.set_flag(Unit.MTE3, Unit.MTE2, 0)
            core.wait_flag(Unit.MTE3, Unit.MTE2, 0)
    return made


def test_counters_of_a_serial_program_by_hand():
    """Nothing overlaps, so the active times add up to the total, and the launch is left out."""
    report = simulate(program(), cube=None)
    counters = counters_of(report)
    active = {c.component.name: c.active_s for c in counters.counts}
    load, relu = 40e-9 + 2048 / 24e9, active["V"] / 2
    assert active["MTE2"] == pytest.approx(2 * load)
    assert active["MTE2"] + active["V"] + active["MTE3"] == pytest.approx(counters.total_s)
    assert counters.total_s == pytest.approx(4 * load + 2 * relu)
    assert counters.total_s == pytest.approx(report.total_s - 2050e-9)
    work = {c.component.name: dict(c.work) for c in counters.counts}
    assert work["V"] == {"fp16": 2048.0} and work["MTE3"] == {"UB->GM": 4096.0}


def test_the_time_of_a_queue_includes_waits():
    """In the simulator queues never fill up, so all components seem active to their last end."""
    report = simulate(program(), cube=None)
    busy = {c.component.name: c for c in counters_of(report).counts}
    queue = {c.component.name: c for c in counters_of(report, active="queue").counts}
    total = counters_of(report).total_s
    assert queue["MTE3"].active_s == pytest.approx(total)
    assert busy["MTE3"].active_s < 0.5 * total
    with pytest.raises(ValueError, match="active must be one of busy, queue, not 'idle'"):
        counters_of(report, active="idle")


def test_the_scope_is_a_core_the_busiest_or_all():
    report = simulate(program(cores=2), cube=None)
    one, both = counters_of(report, "aicore 1"), counters_of(report, "all")
    assert (one.scope, both.scope) == ("aicore 1", "2 of aicore")
    assert counters_of(report).scope in ("aicore 0", "aicore 1")
    for a, b in zip(one.counts, both.counts, strict=True):
        factor = 1 if a.component.kind == ComponentKind.BUS else 2
        assert {k: factor * v for k, v in a.work.items()} == b.work
    with pytest.raises(ValueError, match="core must be busiest, all or one of aicore 0, aicore 1"):
        counters_of(report, "aicore 7")


def test_the_busiest_core_has_the_busiest_unit():
    made = program(cores=2)
    core = made.core(1)
    v = core.allocate("UB", (16384,), "fp16")
    core.vrelu(v, v)
    assert counters_of(simulate(made, cube=None, checks=False)).scope == "aicore 1"


@pytest.mark.parametrize("chip", CHIPS[:3])
def test_the_drain_of_a_pipeline_is_active_time_and_counts_once(chip):
    """The results of the last instruction come after its end, as those of the others do."""
    made = Program(load_chip(chip), "only vectors")
    core = made.core()
    u = core.allocate("UB", (4096,), "fp16")
    for _ in range(3):
        core.vadds(u, u, 1.0)
    report = simulate(made, cube=None, checks=False)
    counters = counters_of(report)
    (row,) = analyse(counters).rows
    (unit,) = report.units()
    drain = report.lowered.drain[-1] / 1e18
    assert row.active_s == counters.total_s == unit.busy  # nothing else runs
    assert counters.total_s == pytest.approx(report.total_s - 2050e-9, rel=1e-12)
    assert drain > 0 and row.time_ratio == 1.0


def test_the_active_times_are_the_busy_times_of_the_report():
    for chip in CHIPS[:3]:
        report = simulate(program(chip, cores=2), cube=None)
        for stream in report.streams:
            busy = {u.unit.name: u.busy for u in report.units() if u.core == str(stream)}
            for count in counters_of(report, str(stream), buses=False).counts:
                assert count.active_s == busy[count.component.name]


def test_the_busiest_core_is_that_of_the_longest_busy_time():
    """Three overlapping instructions are busy for less than the sum of their times."""
    made = Program(load_chip("ascend910"), "two cores")
    for index, (count, size) in enumerate(((8, 128), (1, 128 * 60))):
        core = made.core(index)
        u = core.allocate("UB", (size,), "fp16")
        for _ in range(count):
            core.vadds(u, u, 1.0)
    report = simulate(made, cube=None, checks=False)
    lowered, times = report.lowered, report.times
    sums = [
        int(
            (times.end + lowered.drain - times.start)[lowered.first[c] : lowered.first[c + 1]].sum()
        )
        for c in (0, 1)
    ]
    busy = [u.busy for u in report.units()]
    assert sums[0] > sums[1] and busy[0] < busy[1]  # the sum would choose the wrong core
    assert counters_of(report).scope == "aicore 1"


def test_a_core_that_runs_blocks_in_rounds_has_the_work_of_all_of_them():
    chip = load_chip("ascend310")
    made = Program(chip, "rounds", blocks=5)
    for block, cycles in enumerate((9000, 1000, 1000, 1000, 1000)):
        made.core(block).scalar(cycles=cycles)
    report = simulate(made, cube=None, checks=False)
    assert report.rounds > 2 and sorted(map(len, report.cores())) in ([1, 4], [2, 3])
    counters = counters_of(report, "all")
    assert counters.scope == "2 of aicore" and counters.counts[0].work == {"scalar": 13000}
    second = next(c for c in report.cores() if 1 in c)
    counters = counters_of(report, str(report.streams[second[-1]]))
    assert counters.counts[0].work == {"scalar": 1000 * len(second)}
    assert counters.scope.endswith(f"and {len(second) - 1} other blocks of its core")
    assert all(0 < row.time_ratio <= 1 for row in analyse(counters).rows)


def test_a_bus_appears_with_its_users():
    names = [c.component.name for c in counters_of(simulate(program(), cube=None)).counts]
    assert names == ["V", "MTE2", "MTE3", "bus interconnect"]
    report = simulate(program(), cube=None)
    (bus,) = (c for c in counters_of(report).counts if c.component.kind == ComponentKind.BUS)
    assert bus.component.ceilings == {"GM->UB": 36e9, "UB->GM": 36e9}  # two units: MTE2 and MTE3
    names = [c.component.name for c in counters_of(report, buses=False).counts]
    assert names == ["V", "MTE2", "MTE3"]


def test_scalar_cycles_count():
    made = Program(load_chip("ascend310"), "scalar")
    core = made.core()
    core.scalar(cycles=10)
    core.scalar(cycles=90)
    (row,) = analyse(counters_of(simulate(made, cube=None))).rows
    # The shortest operation takes 1.47 ns in the chip file, and a cycle of 680 MHz 0.04 % more.
    assert row.work == {"scalar": 100} and row.utilisation == pytest.approx(1.47e-9 * 680e6)


def test_a_faster_operation_has_a_ceiling_of_its_own():
    """On the 910B, FP32 to FP16 is twice as fast as other operations of 64 lanes."""
    made = Program(load_chip("ascend910b"), "cast")
    core = made.core(0, "vector")
    x = core.allocate("UB", (16384,), "fp32")
    y = core.allocate("UB", (16384,), "fp16")
    core.vconv(y, x)
    core.vadd(x, x, x)
    row = next(r for r in analyse(counters_of(simulate(made, cube=None, checks=False))).rows)
    assert set(row.work) == {"fp32", "fp32 vconv fp32 fp16"}
    wrong = row.component.ceilings["fp32"]
    # Under the ceiling of the precision, the conversions alone would take longer than they did.
    conversion = next(i for i in core.instructions if i.op == "vconv")
    took = sum(
        float(load_chip("ascend910b").timing(i).period) / 1e18
        for i in core.instructions
        if i.op == conversion.op
    )
    assert row.work["fp32 vconv fp32 fp16"] / wrong > took


def test_an_empty_program_is_refused():
    with pytest.raises(ValueError, match="report must have instructions that take time"):
        counters_of(simulate(Program(load_chip("ascend310"), "empty"), cube=None))


def test_a_lower_ceiling_than_the_chip_has_is_noticed():
    """The check of ``analyse`` fails if a ceiling is 1 % too low for what the engine did."""
    made = Program(load_chip("ascend310"), "one load")
    x = made.tensor("x", (65536,), "fp16")
    core = made.core()
    core.copy(core.allocate("UB", (65536,), "fp16"), x)
    counters = counters_of(simulate(made, cube=None))
    (count,) = counters.counts
    low = {k: v * 0.98 for k, v in count.component.ceilings.items()}
    lower = replace(count, component=replace(count.component, ceilings=low))
    assert analyse(counters).rows[0].efficiency > 0.99
    with pytest.raises(CounterError, match="MTE2: work must be within the ceilings"):
        analyse(replace(counters, counts=[lower]))


def test_a_million_events_take_less_than_five_seconds():
    from time import process_time

    from vitruvian.sim.davinci.report.report import Report
    from vitruvian.sim.davinci.timing.engine import run
    from vitruvian.sim.davinci.timing.lowering import CoreStream, lower_sequences

    chip, table = load_chip("ascend910"), program("ascend910").core(0).instructions
    rounds = 1_000_000 // 32 // len(table) + 1
    order = np.tile(np.arange(len(table)), rounds)
    sequences = {("aicore", index): order for index in range(32)}
    lowered, streams = lower_sequences(chip, table, sequences)
    assert len(lowered) >= 1_000_000
    times = run(lowered, streams)
    # A program that was built instruction by instruction has lists, which take longer to count.
    lists = [CoreStream(s.kind, s.index, list(s.instructions)) for s in streams]
    results = []
    for given in (streams, lists):
        report = Report("a million", chip, lowered, given, times)
        begin = process_time()  # other work on the machine does not count
        results.append(analyse(counters_of(report, "all")).as_dict())
        assert process_time() - begin < 5
    assert results[0] == results[1]
