"""Files of counters of a simulated run: the roofline of the files equals that of the run."""

import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.report.counting import write_counters
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import Bound, CounterError, analyse, counters_of
from vitruvian.sim.roofline.components import ComponentKind
from vitruvian.sim.roofline.msprof import read_msprof
from vitruvian.sim.roofline.summary import is_summary, read_summary

#: Kernels, sizes and chips; what the files lack of their work.
RUNS = [
    ("matmul", None, "ascend310", {"V"}),  # moves out of L0C
    ("softmax", None, "ascend310", set()),
    ("softmax", None, "ascend910", set()),
    ("maxpool-im2col", None, "ascend310", {"MTE1"}),  # from L1 to UB
    ("conv2d", None, "ascend310p", {"V", "MTE1"}),  # moves out of L0C, loads by Im2Col
    ("gemm", None, "ascend910b", {"MTE2"}),  # nd2nz
]


def run(name, size, chip):
    program = KERNELS[name].build(size, chip=load_chip(chip), data=False).program
    return simulate(program, cube=None, checks=False)


@pytest.mark.parametrize(("name", "size", "chip", "lacks"), RUNS)
def test_a_folder_of_files_has_the_roofline_of_the_run(tmp_path, name, size, chip, lacks):
    report = run(name, size, chip)
    write_counters(report, tmp_path)
    direct = analyse(counters_of(report))
    found = [analyse(c) for c in read_msprof(tmp_path, report.chip)]
    best = max(found, key=lambda a: a.longest.active_s)
    assert best.counters.name == report.name and best.counters.lacks
    rows = {r.component.name: r for r in best.rows}
    expected = {r.component.name: r for r in direct.rows if r.component.kind != ComponentKind.BUS}
    assert rows.keys() == expected.keys()
    different = set()
    for unit, row in expected.items():
        # The files have six decimals of a microsecond.
        assert rows[unit].active_s == pytest.approx(row.active_s, rel=1e-5, abs=1e-12)
        # The core may have ended before the others, and the files have its own time.
        ratio = best.counters.total_s / direct.counters.total_s
        assert 0.99 < ratio < 1 + 1e-5
        assert ratio * rows[unit].time_ratio == pytest.approx(row.time_ratio, rel=1e-5)
        if ratio * rows[unit].utilisation != pytest.approx(row.utilisation, rel=1e-5):
            different.add(unit)
    assert different == lacks
    if direct.cause.component.kind != ComponentKind.BUS:
        assert best.bound == direct.bound
        assert best.cause.component.name == direct.cause.component.name


@pytest.mark.parametrize(("name", "size", "chip", "lacks"), RUNS)
def test_a_summary_has_the_time_ratios_of_the_run(tmp_path, name, size, chip, lacks):
    report = run(name, size, chip)
    write_counters(report, tmp_path)
    assert is_summary(tmp_path / "op_summary.csv")
    (counters,) = read_summary(tmp_path / "op_summary.csv", report.chip)
    assert counters.name == report.name
    # Times are means over the cores of a kind.
    kind = direct_kind(report)
    cores = [str(s) for s in report.streams if s.kind == kind]
    each = [u for u in report.units() if u.core in cores]
    for count in counters.counts:
        busy = sum(u.busy for u in each if u.unit.name == count.component.name)
        assert count.active_s == pytest.approx(busy / len(cores), rel=1e-5, abs=1e-12)
    found = analyse(counters)
    transfers = [r for r in found.rows if r.component.kind == ComponentKind.TRANSFER]
    assert transfers and all(r.utilisation == 0 for r in transfers)
    if len(cores) == 1:
        direct = {r.component.name: r for r in analyse(counters_of(report)).rows}
        for row in found.rows:
            assert row.time_ratio == pytest.approx(direct[row.component.name].time_ratio, rel=1e-4)
            if row.component.name == "M":
                assert row.utilisation == pytest.approx(direct["M"].utilisation, rel=1e-4)


def direct_kind(report):
    core = counters_of(report).scope
    return next(s.kind for s in report.streams if str(s) == core)


HEAD = "Op Name,aicore_time(us),Block Dim,vec_time(us),mac_time(us),mte2_time(us),cube_fops"


def read(tmp_path, *lines, chip="ascend310"):
    path = tmp_path / "op_summary.csv"
    path.write_text("\n".join(lines) + "\n")
    return read_summary(path, load_chip(chip))


def test_a_summary_by_hand(tmp_path):
    """Each of two cores does half of the operations."""
    lines = (HEAD, "mm,100,2,10,60,90,557056000", "add,20,1,6,0,19,0", "host,N/A,0,N/A,N/A,N/A,N/A")
    product, add = read(tmp_path, *lines)
    assert (product.name, product.scope) == ("mm", "mean of 2 cores")
    rows = {r.component.name: r for r in analyse(product).rows}
    assert rows["M"].work == {"fp16": 278528000}
    ceiling = rows["M"].component.ceilings["fp16"]
    assert rows["M"].utilisation == pytest.approx(278528000 / ceiling / 100e-6)
    assert rows["M"].efficiency == pytest.approx(278528000 / ceiling / 60e-6)
    assert rows["MTE2"].time_ratio == 0.9 and rows["MTE2"].utilisation == 0
    found = analyse(add)  # without any work, the time ratio alone decides
    assert (found.bound, found.cause.component.name) == (Bound.INEFFICIENT_MTE, "MTE2")
    assert "utilisations are unknown" in found.verdict()
    assert found.verdict().endswith("it may be the bound instead.")


@pytest.mark.parametrize(("busy", "doubt"), [(13.2, True), (12.8, False)])
def test_a_time_ratio_between_the_thresholds_leaves_a_doubt(tmp_path, busy, doubt):
    """A utilisation is at most the time ratio, so only a ratio of 0.65 or more may be a bound."""
    found = analyse(read(tmp_path, HEAD, f"x,20,1,1,0,{busy},0")[0])
    assert found.bound == Bound.PARALLELISM
    assert found.verdict().endswith("it may be the bound instead.") == doubt


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((HEAD,), "counters must have a row with aicore_time"),
        ((HEAD, "x,-1,1,1,1,1,1"), r"op_summary.csv:2: aicore_time\(us\) must be a number, 0 or"),
        ((HEAD, "x,1,1,fast,1,1,1"), r"op_summary.csv:2: vec_time\(us\) must be a number"),
        ((HEAD, "x,1,1"), "row must have 7 values, not 3"),
    ],
)
def test_a_bad_summary_gives_one_line(tmp_path, lines, message):
    with pytest.raises(CounterError, match=message) as error:
        read(tmp_path, *lines)
    assert "\n" not in str(error.value)


def test_counters_beyond_a_ceiling_are_refused(tmp_path):
    (counters,) = read(tmp_path, HEAD, "mm,100,1,10,50,90,557056000")
    with pytest.raises(CounterError, match="mm, M: work must be within the ceilings"):
        analyse(counters)


def test_other_files_are_no_summary(tmp_path):
    path = tmp_path / "counters.csv"
    assert not is_summary(path)
    path.write_text("component,item,work,active_us,total_us\n")
    assert not is_summary(path)
