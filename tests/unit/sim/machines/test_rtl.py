"""The units of machines' rules against sets of results, and the command that compares them."""

import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.fp import DotSpec
from vitruvian.golden.machines import compute, find, machines
from vitruvian.golden.machines.table import output_format
from vitruvian.hdl.machines import NoUnit, realise
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.machines import check as machine_check
from vitruvian.sim.machines.check import Source, check_set, present, some_rows
from vitruvian.sim.machines.rtl import compare_rtl, run_rtl, unit_of
from vitruvian.sim.machines.sets import MachineSet


def made(stem: str, rows: int) -> MachineSet:
    """Return a set of stratified operands with golden's results."""
    machine = find(stem)
    assert isinstance(machine.rule, DotSpec)
    a, b, c = dot_vectors(machine.rule, rows, seed=3)
    d = compute(machine.rule, a, b, c)
    return MachineSet(name=stem, machine=machine, a=a, b=b, c=c, d=d)


def test_a_unit_equals_a_set_and_a_wrong_unit_is_noticed():
    data = made("v100_mma_fp16_fp32", 4000)
    rule = data.machine.rule
    assert isinstance(rule, DotSpec)
    assert compare_rtl(data).values == 0
    wrong = realise(rule.replace(window=rule.sum.window and rule.sum.window - 1))
    assert compare_rtl(data, wrong).values > 10


def test_a_difference_in_one_row_of_rtl_fails_the_set():
    data = made("v100_mma_fp16_fp32", 100)
    assert not check_set(data).failed
    d = data.d.copy()
    d[17] ^= 1
    checked = check_set(replace(data, d=d))
    assert checked.failed and checked.rtl is not None
    assert (checked.rtl.values, checked.rtl.first, checked.golden.first) == (1, 17, 17)


def test_a_long_sum_takes_several_steps_and_a_short_one_is_filled_with_zeros():
    row = find("v100_mma_fp16_fp32")
    rng = np.random.default_rng(4)
    unit = unit_of(row.rule)
    for terms in (3, 4, 12):
        a, b = rng.integers(0, 1 << 15, (2, 50, terms)).astype(np.uint16)
        c = np.full(50, 0x80000000, np.uint32)
        expected = compute(row.rule, a, b, c)
        np.testing.assert_array_equal(run_rtl(unit, a, b, c, zeros=(0x8000, 0)), expected)


def test_every_row_of_the_table_has_a_unit_or_a_reason():
    units = reasons = 0
    for row in machines().values():
        try:
            unit = realise(row.rule)
        except NoUnit as error:
            assert "\n" not in str(error)
            reasons += 1
        else:
            assert unit.k >= 1 and unit.name
            units += 1
    assert units >= 100 and units + reasons == len(machines())


def test_without_sets_the_samples_are_compared(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine_check, "FOLDERS", (tmp_path,))
    assert len(present()) == 139
    out = tmp_path / "out.json"
    assert main(["machines", "--check", "--no-rtl", "--jobs", "1", "--json", str(out)]) == 0
    assert "0 values and 0 signs of zero differ" in capsys.readouterr().out
    sets = json.loads(out.read_text())["sets"]
    assert {one["golden"]["values"] for one in sets} == {0}
    assert {one["rtl"] for one in sets} == {None}


def test_a_set_with_a_wrong_result_fails_the_command(tmp_path, capsys):
    data = made("v100_mma_fp16_fp32", 40)
    path = tmp_path / "v100_mma_fp16_fp32.npz"
    for change, code in ((0, 0), (1, 1)):
        np.savez(path, a=data.a, b=data.b, c=data.c, d=data.d ^ np.uint32(change))
        assert main(["machines", "--check", str(path), "--rows", "20", "--jobs", "1"]) == code
    out = capsys.readouterr().out
    assert "RTL: 1 set, 20 rows: 18 values" in out  # two results are NaN, whatever the code


def test_rows_are_chosen_at_equal_distances():
    data = made("v100_mma_fp16_fp32", 100)
    assert (some_rows(data, 4).d == data.d[[0, 25, 50, 75]]).all()
    assert some_rows(data, 200) is data and some_rows(data, None) is data


@pytest.mark.parametrize("option", [["--rows", "3"], ["--no-rtl"], ["--jobs", "1"]])
def test_options_of_the_comparison_need_check(option, capsys):
    assert main(["machines", "h100", *option]) == 2
    assert f"{option[0]} must come with --check" in capsys.readouterr().err


def test_a_file_that_is_no_set_ends_the_command(tmp_path, capsys):
    (tmp_path / "h100_wgmma_e4m3_fp32.npz").write_bytes(b"junk")
    assert main(["machines", "--check", str(tmp_path), "--jobs", "1"]) == 2
    assert "must be an .npz file of plain arrays" in capsys.readouterr().err
    assert output_format(find("amx_tdpbssd")) is None
    assert Source(sample="amx_tdpbssd").read().name == "amx_tdpbssd sample"


def changed(name, change):
    """Return the arrays of a set of FP16 dot products, with one of them changed."""
    data = made("v100_mma_fp16_fp32", 8)
    arrays = {key: getattr(data, key) for key in "abcd"}
    return arrays | {name: change(arrays[name])}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("a", lambda x: x[:, :0], r"a must have the shape \(8, K\) with a K of at least 1, not"),
        ("a", lambda x: x[:, :3], r"b must have the shape of a, \(8, 3\), not \(8, 4\)"),
        ("a", lambda x: x[0, 0], r"a must have the shape \(8, K\) .*, not \(\)"),
        ("c", lambda x: x[0], r"c must have the shape \(8,\), not \(\)"),
        ("d", lambda x: x[0], r"d must have the shape \(rows,\) with at least one row, not \(\)"),
        (
            "d",
            lambda x: x[:0],
            r"d must have the shape \(rows,\) with at least one row, not \(0,\)",
        ),
        ("d", lambda x: x.astype(np.float32), r"d must hold integers, not float32"),
        ("a", lambda x: np.full(x.shape, -1, np.int16), r"a must be between 0 and 0xffff"),
        ("d", lambda x: np.full(x.shape, -1, np.int16), r"d must be between 0 and 0xffffffff"),
        ("c", lambda x: np.full(x.shape, 1 << 40), r"c must be between 0 and 0xffffffff"),
    ],
)
def test_a_set_that_is_none_is_one_line(name, change, message, tmp_path, capsys):
    path = tmp_path / "v100_mma_fp16_fp32.npz"
    np.savez(path, **changed(name, change))
    assert main(["machines", "--check", str(path), "--no-rtl", "--jobs", "1"]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1


def test_a_set_without_rows_is_refused(tmp_path, capsys):
    path = tmp_path / "v100_mma_fp16_fp32.npz"
    data = made("v100_mma_fp16_fp32", 8)
    np.savez(path, **{name: getattr(data, name)[:0] for name in "abcd"})
    assert main(["machines", "--check", str(path), "--jobs", "1"]) == 2
    assert "with at least one row" in capsys.readouterr().err


def test_a_set_that_is_missing_or_too_large_is_refused(tmp_path, capsys):
    for path in (tmp_path / "missing.npz", "/dev/zero"):
        assert main(["machines", "--check", str(path), "--jobs", "1"]) == 2
        assert f"{path} must be a file .npz that exists" in capsys.readouterr().err
    path = tmp_path / "v100_mma_fp16_fp32.npz"
    with zipfile.ZipFile(path, "w") as archive:  # headers that state more than the file has
        for name in "abcd":
            header = {"descr": "<u2", "fortran_order": False, "shape": (1 << 30, 4)}
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array_header_1_0(member, header)
    assert main(["machines", "--check", str(path), "--jobs", "1"]) == 2
    error = capsys.readouterr().err
    assert f"{path} must hold at most 268,435,456 bytes of arrays" in error
