"""Files of counters: a round trip, and one line for every mistake."""

import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import CounterError, analyse, counters_of
from vitruvian.sim.roofline.profile import profile_text, read_profile

CHIP = load_chip("ascend310")

GOOD = """\
component,item,work,active_us,total_us
MTE-GM,GM->UB,480000,22,40
MTE3,UB->GM,240000,15,40
Vector,fp16,120000,5,40
Vector,fp32,60000,5,40
"""


def read(tmp_path, text, name="op.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_profile(path, CHIP)


def test_a_file_by_hand(tmp_path):
    (counters,) = read(tmp_path, GOOD)
    assert (counters.name, counters.total_s) == ("op", 40e-6)
    rows = {row.component.name: row for row in analyse(counters).rows}
    assert list(rows) == ["V", "MTE2", "MTE3"]
    assert rows["MTE2"].utilisation == pytest.approx(0.5)
    assert rows["MTE2"].time_ratio == pytest.approx(0.55)
    lanes = CHIP.vector_bytes_per_s() / 2
    assert rows["V"].ideal_s == pytest.approx(120000 / lanes + 60000 / (lanes / 2))


def test_counters_of_kernels_survive_a_round_trip(tmp_path):
    names = ("matmul", "softmax", "reluKer", "cce-cube")
    reports = [
        simulate(KERNELS[n].build(chip=CHIP, data=False).program, cube=None, checks=False)
        for n in names
    ]
    before = [counters_of(report, buses=False) for report in reports]
    after = read(tmp_path, profile_text(before))
    assert len(after) == len(names)
    for a, b in zip(before, after, strict=True):
        assert a.name == b.name
        for x, y in zip(analyse(a).rows, analyse(b).rows, strict=True):
            assert x.utilisation == pytest.approx(y.utilisation, rel=1e-9)
            assert x.efficiency == pytest.approx(y.efficiency, rel=1e-9)


def test_columns_may_be_in_any_order_and_more_than_needed(tmp_path):
    text = "note,total_us,work,item,active_us,component,operator\n"
    text += "x,10,24000,GM->UB,8,MTE2,a\nx,10,24000,GM->UB,8,MTE2,b\n"
    assert [c.name for c in read(tmp_path, text)] == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("active_us,", "", "op.csv:1: counters must have the columns .*; active_us is missing"),
        ("component,item", "unit,path", "; component, item are missing"),
        ("480000", "much", "op.csv:2: work must be a number, 0 or more, not 'much'"),
        ("480000", "-1", "op.csv:2: work must be a number, 0 or more, not '-1'"),
        ("480000", "", "op.csv:2: work must be a number, 0 or more, not ''"),
        ("22", "nan", "op.csv:2: active_us must be a number"),
        ("15,40", "15", "op.csv:3: total_us must be a number, 0 or more, not None"),
        ("MTE-GM", "MTE9", "op.csv:2: component must be one of S, V, M, .*, not 'MTE9'"),
        ("MTE-GM", "FIX", "op.csv:2: component must be one of .*, not 'FIX'"),
        ("GM->UB", "GM->L9", "op.csv:2: item of MTE2 must be one of GM->L1, .*, not 'GM->L9'"),
        ("fp32", "fp16", "op.csv:5: item of V must occur once, not again: 'fp16'"),
        ("60000,5,", "60000,6,", "op.csv:5: active_us of V must be 5 as in its first row, not 6"),
        ("15,40", "15,41", "op.csv:3: total_us of op must be 40 as in its first row, not 41"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(CounterError, match=message) as error:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(error.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(CounterError, match="must be a CSV file in UTF-8: No such file"):
        read_profile(tmp_path / "none.csv", CHIP)
    with pytest.raises(CounterError, match="counters must be a file, not a folder, device or pipe"):
        read_profile(tmp_path, CHIP)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CounterError, match="it is not UTF-8"):
        read_profile(tmp_path / "bytes.csv", CHIP)
    with pytest.raises(CounterError, match="at least one row below the header"):
        read(tmp_path, GOOD.splitlines()[0] + "\n")
    with pytest.raises(CounterError, match="are missing"):
        read(tmp_path, "")


def test_counters_beyond_a_ceiling_are_refused_with_the_component(tmp_path):
    (counters,) = read(tmp_path, GOOD.replace("480000", "600000"))
    with pytest.raises(CounterError, match=r"op, MTE2: .* need 25 µs for 600,000 bytes of GM->UB"):
        analyse(counters)
