"""Folders of msprof op: the counters of a core by hand, and one line for every mistake."""

import pytest

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.roofline import CounterError, analyse
from vitruvian.sim.roofline.msprof import FILES, read_msprof

HEAD = "block_id,sub_block_id,aic_time(us)"

#: A core that runs for 100 µs: files by name, as lists of columns and of values.
CORE = {
    "PipeUtilization.csv": {
        "aic_cube_time(us)": "30.5",
        "aic_vec_time(us)": "20.0",
        "aic_scalar_time(us)": "10.0",
        "aic_mte1_time(us)": "N/A",
        "aic_mte2_time(us)": "90.0",
        "aic_mte3_time(us)": "50.0",
    },
    "ArithmeticUtilization.csv": {
        "aic_cube_fops": "150000000",
        "aic_vec_fops": "900000",
        "aic_vec_fp16_ratio": "0.1",
        "aic_vec_fp32_ratio": "0.1",
    },
    "Memory.csv": {
        "GM_to_L1_datas(KB)": "1500",
        "GM_to_UB_datas(KB)": "500",
        "UB_to_GM_datas(KB)": "1000",
    },
    "MemoryL0.csv": {"aic_l0a_write_bw(GB/s)": "N/A"},
}


def write(folder, files=CORE, cores=2):
    folder.mkdir(exist_ok=True)
    for name, columns in files.items():
        lines = [",".join((HEAD, *columns))]
        lines += [
            ",".join((str(c), "aicore", "100.000000", *columns.values())) for c in range(cores)
        ]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_a_core_by_hand(tmp_path):
    chip = load_chip("ascend310")
    first, second = read_msprof(write(tmp_path / "op"), chip)
    assert (first.name, first.scope, second.scope) == ("op", "block 0 aicore", "block 1 aicore")
    rows = {row.component.name: row for row in analyse(first).rows}
    assert list(rows) == ["S", "V", "M", "MTE2", "MTE3"]
    assert rows["MTE2"].work == {"GM->L1": 1500 * 1024, "GM->UB": 500 * 1024}
    assert rows["MTE2"].utilisation == pytest.approx(2000 * 1024 / 24e9 / 100e-6)
    assert rows["MTE2"].time_ratio == pytest.approx(0.9)
    # Equal times of FP16 and FP32 process twice as many lanes of FP16.
    assert rows["V"].work == pytest.approx({"fp16": 600000, "fp32": 300000})
    assert rows["S"].utilisation == 0 and rows["S"].time_ratio == pytest.approx(0.1)
    assert first.resolution_s == pytest.approx(0.5e-12)


def test_a_vector_core_of_two_kinds(tmp_path):
    files = {
        "PipeUtilization.csv": {"aiv_time(us)": "100.0", "aiv_mte2_time(us)": "60.0"},
        "ArithmeticUtilization.csv": {"aiv_vec_fops": "0"},
        "Memory.csv": {"GM_to_UB_datas(KB)": "2000"},
    }
    folder = write(tmp_path / "op", files, 1)
    for name in files:
        text = (folder / name).read_text().replace("100.000000", "N/A")
        (folder / name).write_text(text)
    (counters,) = read_msprof(folder, load_chip("ascend910b"))
    (row,) = analyse(counters).rows
    assert row.component.name == "MTE2" and row.work == {"GM->UB": 2000 * 1024}


def test_times_may_be_rounded_to_their_last_digit(tmp_path):
    chip = load_chip("ascend310")
    folder = write(tmp_path / "op", cores=1)
    path = folder / "PipeUtilization.csv"
    exact = 2000 * 1024 / 24e9 * 1e6  # 85.333… µs of MTE2
    path.write_text(path.read_text().replace("90.0", "85.333").replace("100.000000", "100.000"))
    assert exact > 85.333 * (1 + 1e-6)
    (counters,) = read_msprof(folder, chip)
    assert analyse(counters).rows
    path.write_text(path.read_text().replace("85.333", "85.332"))
    (counters,) = read_msprof(folder, chip)
    with pytest.raises(CounterError, match="op, MTE2: work must be within the ceilings"):
        analyse(counters)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (0, "block_id", "block", "PipeUtilization.csv:1: columns must include block_id"),
        (0, "90.0", "x", r"PipeUtilization.csv:2: aic_mte2_time\(us\) must be a number, .* 'x'"),
        (0, "90.0", "-1", r"aic_mte2_time\(us\) must be a number, 0 or more, not '-1'"),
        (0, "100.000000", "N/A", r"columns must include aiv_time\(us\)"),
        (1, "aic_cube_fops", "fops", "Arith.*csv:1: columns must include aic_cube_fops"),
        (1, "0,aicore", "7,aicore", "Arith.*csv: cores must be those of PipeUtilization.csv"),
        (2, "1500", "nan", r"Memory.csv:2: GM_to_L1_datas\(KB\) must be a number"),
        (3, "N/A", "inf", r"MemoryL0.csv:2: aic_l0a_write_bw\(GB/s\) must be a number"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, file, old, new, message):
    folder = write(tmp_path / "op")
    path = folder / FILES[file]
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(CounterError, match=message) as error:
        read_msprof(folder, load_chip("ascend310"))
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    folder = write(tmp_path / "op")
    (folder / "Memory.csv").unlink()
    with pytest.raises(CounterError, match=r"Memory.csv: counters must be a CSV file in UTF-8"):
        read_msprof(folder, load_chip("ascend310"))
    (folder / "MemoryL0.csv").unlink()
    write(folder, {"Memory.csv": CORE["Memory.csv"]})
    assert len(read_msprof(folder, load_chip("ascend310"))) == 2
