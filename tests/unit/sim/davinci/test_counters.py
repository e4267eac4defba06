"""Counters in the columns of msprof: names, values against the report, files, and the reader."""

import csv
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.report.counters import TABLES, meaning, read_counters
from vitruvian.sim.davinci.report.counting import counters, write_counters
from vitruvian.sim.kernels import KERNELS

FILES = [
    "op_summary.csv",
    "PipeUtilization.csv",
    "ArithmeticUtilization.csv",
    "Memory.csv",
    "MemoryL0.csv",
]


@pytest.fixture(scope="module")
def matmul():
    chip = load_chip("ascend310")
    instance = KERNELS["matmul"].build((64, 64, 64), chip=chip, seed=0, cores=2, tiling=None)
    return simulate(instance.program, checks=False)


def mixed():
    """Return the report of one Cube core and one vector core of a 910B."""
    program = Program(load_chip("ascend910b"), "mixed")
    x = program.tensor("x", (4096,), "fp16", np.zeros(4096, np.float16))
    core = program.core(3, "vector")
    u = core.allocate("UB", (4096,), "fp16")
    core.copy(u, x)
    core.set_flag(Unit.MTE2, Unit.V, 0)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    core.vrelu(u, u)
    cube = program.core(1, "cube")
    cube.copy(cube.allocate("L1", (4096,), "fp16"), x)
    return simulate(program, checks=False)


def test_every_column_has_a_name_once_and_a_meaning():
    assert list(TABLES) == FILES
    for columns in TABLES.values():
        assert len(set(columns)) == len(columns)
        assert all(meaning(column) for column in columns)
    assert meaning("aic_mte2_time(us)") == "µs in which the unit is busy"
    assert meaning("aiv_time(us)") == meaning("aicore_time(us)") == "µs of the core"
    assert meaning("aic_l1_read_bw(GB/s)").startswith("GB/s")
    assert meaning("L1_to_GM_bw_usage_rate(%)(estimate)").startswith("per cent")
    assert meaning("L1_to_GM_datas(KB)(estimate)").startswith("KB")
    with pytest.raises(ValueError, match="column must be one of those in TABLES, not 'tea'"):
        meaning("tea")


def test_the_columns_are_those_of_the_documentation():
    """A sample of each documented table, written down from the maker's pages."""
    assert {"aiv_vec_time(us)", "aic_cube_ratio", "aic_fixpipe_time(us)"} < set(
        TABLES["PipeUtilization.csv"]
    )
    assert {"GM_to_L1_datas(KB)", "aiv_gm_to_ub_bw(GB/s)", "aic_mte1_instructions"} < set(
        TABLES["Memory.csv"]
    )
    assert {"aic_cube_fops", "aiv_vec_fp16_ratio", "aiv_vec_misc_ratio"} < set(
        TABLES["ArithmeticUtilization.csv"]
    )
    assert {"Task Duration(us)", "Block Dim", "mac_ratio", "aic_mac_ratio", "memory_bound"} < set(
        TABLES["op_summary.csv"]
    )


def test_values_agree_with_the_report(matmul):
    files = counters(matmul)
    (summary,) = files["op_summary.csv"]
    assert summary["Task Duration(us)"] == pytest.approx(matmul.total_s * 1e6, abs=1e-6)
    assert summary["Block Dim"] == 2 and summary["Task Type"] == "AI_CORE"
    assert summary["cube_fops"] == 2 * 64**3 == matmul.operations()["M", "fp16"]
    assert summary["memory_bound"] == pytest.approx(
        summary["mte2_ratio"] / max(summary["mac_ratio"], summary["vec_ratio"]), rel=1e-4
    )
    rows = files["PipeUtilization.csv"]
    for name, column in (
        ("aicore_time(us)", "aic_time(us)"),
        ("mac_time(us)", "aic_cube_time(us)"),
    ):
        mean = sum(row[column] for row in rows) / 2
        assert summary[name] == pytest.approx(mean, abs=2e-6), "times are means over the cores"
    cycles = sum(row["aic_total_cycles"] for row in rows)
    assert summary["total_cycles"] == pytest.approx(cycles, abs=2), "and cycles are sums"
    busy = {(u.core, u.unit): u.busy for u in matmul.units()}
    for c, row in enumerate(files["PipeUtilization.csv"]):
        assert (row["block_id"], row["sub_block_id"]) == (c, "aicore0")
        for unit, name in ((Unit.M, "cube"), (Unit.MTE2, "mte2"), (Unit.V, "vec")):
            expected = busy[f"aicore {c}", unit]
            assert row[f"aic_{name}_time(us)"] == pytest.approx(expected * 1e6, abs=1e-6)
            ratio = row[f"aic_{name}_time(us)"] / row["aic_time(us)"]
            assert row[f"aic_{name}_ratio"] == pytest.approx(ratio, abs=2e-6)
        cycles = row["aic_time(us)"] * float(matmul.chip.clock_hz) / 1e6
        assert row["aic_total_cycles"] == pytest.approx(cycles, abs=1)
    paths = matmul.path_bytes()
    rows = files["Memory.csv"]
    assert sum(row["GM_to_L1_datas(KB)"] for row in rows) * 1024 == paths["GM->L1"]
    assert sum(row["UB_to_GM_datas(KB)"] for row in rows) * 1024 == paths["UB->GM"]
    assert sum(row["read_main_memory_datas(KB)"] for row in rows) * 1024 == paths["GM->L1"]
    for row in rows:
        rate = row["GM_to_L1_datas(KB)"] * 1024 / row["aic_time(us)"] / 1e3
        assert row["aic_l1_write_bw(GB/s)"] == pytest.approx(rate, rel=1e-5)
        full = float(matmul.chip.routes["GM->L1"].rate.bytes_per_s) / 1e9
        assert row["GM_to_L1_bw_usage_rate(%)"] == pytest.approx(100 * rate / full, rel=1e-5)
    rows = files["ArithmeticUtilization.csv"]
    assert sum(row["aic_cube_fops"] for row in rows) == 2 * 64**3
    assert sum(row["aic_cube_fp_instr_number"] for row in rows) == sum(
        u.count for u in matmul.units() if u.unit == Unit.M
    )


def test_cores_of_two_kinds(tmp_path):
    report = mixed()
    paths = write_counters(report, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == FILES
    assert sorted(p.name for p in (tmp_path / "new" / "folder").iterdir()) == sorted(FILES)
    (summary,) = read_counters(paths[0])
    assert (summary["Task Type"], summary["Block Dim"], summary["Mix Block Dim"]) == (
        "MIX_AIC",
        1,
        1,
    )
    assert "memory_bound" not in summary and summary["aiv_vec_time(us)"] > 0
    cube, vector = read_counters(paths[1])
    assert (cube["block_id"], cube["sub_block_id"]) == (1, "cube0")
    assert (vector["block_id"], vector["sub_block_id"]) == (1, "vector1"), "two in a group"
    assert cube["aiv_vec_time(us)"] is None and vector["aic_cube_ratio"] is None
    assert "N/A" in paths[1].read_text() and vector["aiv_vec_ratio"] > 0
    memory = read_counters(paths[3])
    assert memory[0]["GM_to_L1_datas(KB)"] == 8 == memory[1]["GM_to_UB_datas(KB)"]
    assert memory[0]["GM_to_UB_datas(KB)"] is None is memory[1]["GM_to_L1_datas(KB)"]


def test_files_have_the_columns_in_order_and_are_read_back(matmul, tmp_path):
    for path in write_counters(matmul, tmp_path):
        with path.open(newline="") as file:
            header = next(csv.reader(file))
        assert header == [c for c in TABLES[path.name] if c in header]
        assert read_counters(path, required=header) == [
            {c: float(v) if isinstance(v, int) else v for c, v in row.items()}
            for row in counters(matmul)[path.name]
        ]


def test_no_file_is_left_if_one_cannot_be_written(matmul, tmp_path):
    (tmp_path / "Memory.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        write_counters(matmul, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["Memory.csv"]


def test_a_chip_without_level_0_buffers_has_no_such_file(tmp_path):
    program = Program(load_chip("ascend910b"), "vector")
    core = program.core(0, "vector")
    u = core.allocate("UB", (128,), "fp16")
    core.vrelu(u, u)
    report = simulate(program, checks=False)
    assert [p.name for p in write_counters(report, tmp_path)] == FILES[:-1]
    (row,) = read_counters(tmp_path / "op_summary.csv")
    assert row["Task Type"] == "AI_VECTOR_CORE" and row["Block Dim"] == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "c.csv:1: first line must have 1 … 1000 names of columns, not 0 of them"),
        (b"a,b,a\n", "c.csv:1: first line must have 1 … 1000 names of columns, not 'a' twice"),
        (b"a,b\n1\n", "c.csv:2: row must have 2 values, not 1"),
        (b"a,b\n1,2\n", "c.csv:1: columns must include c, d"),
        (b"\xff\xfe", "c.csv: file must be text in UTF-8"),
        (b'a\n"x', "c.csv: file must be a table in CSV: unexpected end of data"),
    ],
)
def test_mistakes_in_a_file_are_one_line(data, message, tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes(data)
    with pytest.raises(ValueError) as caught:
        read_counters(path, ["a", "c", "d"] if b"1,2" in data else ())
    assert str(caught.value) == message


def test_values_of_real_files(tmp_path):
    """msprof writes a byte order mark, tabs behind times, and N/A."""
    path = Path(tmp_path) / "op_summary_1.csv"
    path.write_bytes('\ufeffOp Name,Task Start Time(us),x\nadd,"1.5\t",N/A\n\nnan,inf,\n'.encode())
    assert read_counters(path) == [
        {"Op Name": "add", "Task Start Time(us)": 1.5, "x": None},
        {"Op Name": "nan", "Task Start Time(us)": "inf", "x": None},
    ]
