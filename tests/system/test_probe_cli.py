"""The command ``probe``: write programs, and read what they return."""

import json
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.hidden_rules import hidden_rule
from tests.support.probes import answered, probe_file
from vitruvian.cli import main
from vitruvian.flows.probes.file import ProbeSection, pack, read
from vitruvian.golden.machines.probe import Results
from vitruvian.golden.machines.probe.equality import equal_rules
from vitruvian.golden.machines.table import read_rows


def flags():
    """Return the instruction sets that this machine's kernel lists."""
    try:
        return set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return set()


@pytest.mark.parametrize(
    ("target", "needs"), [("amx", {"amx_bf16", "amx_int8"}), ("avx512", {"avx512_bf16"})]
)
def test_the_program_names_this_processor(target, needs, tmp_path, capsys):
    if not needs <= flags() or platform.machine() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip(f"this machine has no gcc or not {', '.join(sorted(needs))}")
    folder = tmp_path / "kit"
    assert main(["probe", "write", "--target", target, "--out", str(folder)]) == 0
    subprocess.run(["make", "CC=gcc"], cwd=folder, check=True, capture_output=True, timeout=120)
    capsys.readouterr()
    assert main(["probe", "read", str(folder / "outputs.bin"), "--json", "-"]) == 0
    captured = capsys.readouterr()
    records = json.loads(captured.out)["instructions"]
    assert all(f"{record['instruction']}" in captured.err for record in records)
    assert all(record["instruction"] in record["machines"] for record in records)
    assert len(records) == {"amx": 5, "avx512": 1}[target]


@pytest.mark.parametrize(
    ("target", "source", "text"),
    [
        ("cuda", "probe.cu", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (
            "cuda",
            "probe.cu",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
        ),
        ("hip", "probe.hip", "__builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8"),
    ],
)
def test_a_program_is_written_whole(target, source, text, tmp_path, capsys):
    pattern = {"cuda": "*m16n8k[13][62]_[bf]*16_f32", "hip": "*_fp8_bf8"}[target]
    arguments = ["probe", "write", "--target", target, "--instruction", pattern]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["Makefile", "README.md", "inputs.bin", source])
    assert text in (tmp_path / source).read_text()
    assert "instructions; run make there" in capsys.readouterr().out


UNIT = """
def unit(name, a, b, c):
    from vitruvian.golden.machines import compute, find
    return compute(find("v100_mma_fp16_fp32").rule, a, b, c)


if __name__"""
#: A program that reads lines of codes: one fused multiply-add in FP64, rounded to FP32.
PROGRAM = """\
import struct, sys
def number(word, kind):
    return struct.unpack(kind[0], int(word, 16).to_bytes(kind[1], "little"))[0]
for line in sys.stdin:
    a, b, c = line.split()
    a, b, c = number(a, ("<e", 2)), number(b, ("<e", 2)), number(c, ("<f", 4))
    print(struct.pack("<d", a * b + c)[::-1].hex())
"""


def make(folder, *arguments):
    """Run make with this interpreter."""
    command = ["make", f"PYTHON={sys.executable}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
def test_a_function_of_the_user_is_named(tmp_path, capsys):
    folder = tmp_path / "kit"
    arguments = ["probe", "write", "--target", "python", "--instruction", "fp16_fp32_k4"]
    assert main([*arguments, "--out", str(folder)]) == 0
    failed = make(folder)
    assert failed.returncode and "fill in unit() in probe.py" in failed.stderr
    assert not (folder / "outputs.bin").exists()
    program = folder / "probe.py"
    program.write_text(program.read_text().replace("if __name__", UNIT.lstrip(), 1))
    assert make(folder).returncode == 0
    capsys.readouterr()
    assert main(["probe", "read", str(folder / "outputs.bin")]) == 0
    out = capsys.readouterr().out
    assert "fp16_fp32_k4 (a function in Python)" in out and "v100_mma_fp16_fp32" in out


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
def test_a_program_of_the_user_is_run(tmp_path, capsys):
    folder = tmp_path / "kit"
    arguments = ["probe", "write", "--target", "python", "--instruction", "fp16_fp64_k1"]
    assert main([*arguments, "--out", str(folder)]) == 0
    (folder / "unit.py").write_text(PROGRAM.replace('("<f", 4)', '("<d", 8)'))
    done = make(folder, f"RUN={sys.executable} unit.py")
    assert done.returncode == 0, done.stderr
    device, (section,) = read(folder / "outputs.bin")
    assert device == sys.executable[:63] and isinstance(section.cases, Results)
    x = section.cases
    a, b = x.a.view(np.float16).astype(float)[:, 0], x.b.view(np.float16).astype(float)[:, 0]
    with np.errstate(all="ignore"):
        d = a * b + x.c.view(float)
    same = (d == x.d.view(float)) | (np.isnan(d) & np.isnan(x.d.view(float)))
    assert same.all() and len(d) > 1000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "a target of your own must come with --instruction INPUT_OUTPUT_kK"),
        ("fp16", "instruction must be INPUT_OUTPUT_kK, as fp16_fp32_k8 or .*, not 'fp16'"),
        ("fp17_fp32_k8", "each format of fp17_fp32_k8 must be one of"),
        ("fp16_fp32_k0", "K of fp16_fp32_k0 must be between 1 and 1024, not 0"),
    ],
)
def test_an_instruction_of_the_user_has_formats(name, message, tmp_path, capsys):
    more = [] if name is None else ["--instruction", name]
    folder = tmp_path / "kit"
    arguments = ["probe", "write", "--target", "python", *more, "--out", str(folder)]
    assert main(arguments) == 2
    assert re.search(message, capsys.readouterr().err) and not folder.exists()


def test_an_unknown_rule_becomes_a_machine_file(tmp_path, capsys):
    rule, data = hidden_rule(2)
    file = tmp_path / "outputs.bin"
    file.write_bytes(answered(pack([ProbeSection("mystery", data)], 1), [data.d.tobytes()]))
    out = tmp_path / "machines"
    arguments = ["probe", "read", str(file), "--out", str(out), "--json", str(tmp_path / "x.json")]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "mystery (a device): no known machine" in printed and "window" in printed
    text = (out / "mystery.toml").read_text()
    (row,) = read_rows(tomllib.loads(text))
    assert equal_rules(row.rule, rule)
    (record,) = json.loads((tmp_path / "x.json").read_text())["instructions"]
    basis = {row["parameter"]: row for row in record["basis"]}
    assert record["wrong"] == 0 and basis["window"]["row"] is not None


def test_json_on_standard_output_is_all_that_stands_there(tmp_path, capsys):
    file = tmp_path / "outputs.bin"
    file.write_bytes(probe_file())
    assert main(["probe", "read", str(file), "--json", "-"]) == 0
    captured = capsys.readouterr()
    records = json.loads(captured.out)["instructions"]
    assert records and all(record["instruction"] in captured.err for record in records)
    kit = ["probe", "write", "--target", "python", "--instruction", "fp16_fp32_k8"]
    assert main([*kit, "--out", str(tmp_path / "kit"), "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["target"] == "python" and "1 instructions" in captured.err


def test_a_named_machine_needs_no_inference(tmp_path, capsys):
    file = tmp_path / "outputs.bin"
    file.write_bytes(probe_file())
    assert main(["probe", "read", str(file)]) == 0
    assert "as avx512_vdpbf16ps" in capsys.readouterr().out


def error_of(arguments, capsys):
    """Return the one line on standard error of a command that ends with exit code 2."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    return line


def test_results_that_fit_no_rule_are_a_finding(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "vitruvian.common.progress._PAUSE_S", 0.0
    )  # a line at each step of the search
    d = np.random.default_rng(0).integers(0, 1 << 32, 760, np.uint32)
    path = tmp_path / "outputs.bin"
    from vitruvian.flows.probes.kit import chosen

    each = chosen("amx", ["amx_tdpbssd"])[0]
    path.write_bytes(answered(pack([ProbeSection(each.name, each.cases(1))], 1), [d.tobytes()]))
    out, json_file = tmp_path / "new", tmp_path / "x.json"
    assert main(["probe", "read", str(path), "--out", str(out), "--json", str(json_file)]) == 1
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert "no rule fits; 760 of 760 rows differ from the closest, a sum of integers, fir" in line
    assert "first row 0; of the known machines, amx_tdpb" in line
    steps = printed.err.splitlines()
    assert "amx_tdpbssd sums of integers, 2 comparisons (0 s)" in "\n".join(steps)
    assert len(steps) > 5 and not any("error" in step for step in steps)
    assert not out.exists()
    (record,) = json.loads(json_file.read_text())["instructions"]
    assert record["wrong"] == 760 and record["machines"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["write"], "write must come with --target cuda|hip|amx|avx512"),
        (["write", "--target", "amx"], "write must come with --out FOLDER"),
        (["write", "--target", "tpu", "--out", "new"], "target must be one of cuda, hip, amx, avx"),
        (["write", "x", "--target", "amx", "--out", "new"], "write must come without FILE"),
        (["write", "--target", "amx", "--out", "new", "--instruction", "z"], "instruction must be"),
        (["write", "--target", "amx", "--out", "new", "--input", "fp16"], "--input must come with"),
        (["read"], "read must come with at least one FILE"),
        (["read", "x", "--target", "amx"], "--target must come with write"),
        (["read", "missing.bin"], "missing.bin: No such file or directory"),
        (["guess"], "argument ACTION: invalid choice"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert message in error_of(["probe", *arguments], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("length", [5, 60, 300, -1])
def test_a_truncated_file_is_one_line(length, tmp_path, capsys):
    path = tmp_path / "outputs.bin"
    path.write_bytes(probe_file()[:length])
    assert "must" in error_of(["probe", "read", str(path)], capsys)


def npz_of(path, rows=4, terms=4, **changed):
    """Write a file of zeros in which some arrays are changed, or absent if None."""
    shapes = {"a": (rows, terms), "b": (rows, terms), "c": (rows,), "d": (rows,)}
    arrays = {n: np.zeros(s, np.uint32 if n in "cd" else np.uint16) for n, s in shapes.items()}
    given: Any = {n: x for n, x in (arrays | changed).items() if x is not None}
    np.savez(path, **given)
    return str(path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"terms": 0}, "x.npz: a must have the shape (rows, terms) without zeros, not (4, 0)"),
        ({"rows": 0}, "a must have the shape (rows, terms) without zeros, not (0, 4)"),
        ({"a": np.uint16(1)}, "a must have the shape (rows, terms) without zeros, not ()"),
        ({"b": np.zeros((4, 5), np.uint16)}, "b must have the shape (4, 4), not (4, 5)"),
        ({"d": np.zeros((4, 1), np.uint32)}, "d must have the shape (4,), not (4, 1)"),
        ({"d": np.zeros(4)}, "d must hold integers, not float64"),
        ({"d": None}, "arrays must be a, b and d, not lack d"),
        ({"scale_a": np.zeros((4, 0), np.uint8)}, "scales must have the shape (rows, blocks)"),
        ({"scale_a": np.zeros((4, 1), np.uint8)}, "scales must be both scale_a and scale_b"),
        ({n: np.full((4, 1), 256) for n in ("scale_a", "scale_b")}, "must be codes from 0 to 255"),
        ({"a": np.array(None)}, "Python objects are not allowed"),
    ],
)
def test_arrays_that_do_not_fit_are_one_line(changed, message, tmp_path, capsys):
    path = npz_of(tmp_path / "x.npz", **changed)
    assert message in error_of(["probe", "read", path, "--input", "fp16"], capsys)


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vitruvian.common.npz.MAX_BYTES", 1000)
    path = npz_of(tmp_path / "x.npz", rows=100)
    assert "x.npz must hold at most 1,000 bytes of arrays" in error_of(
        ["probe", "read", path, "--input", "fp16"], capsys
    )


def test_a_device_is_refused(capsys):
    line = error_of(["probe", "read", "/dev/zero"], capsys)
    assert line == "error: /dev/zero must be a file, not a device"


def test_a_section_cannot_name_a_file_elsewhere(tmp_path, capsys):
    _, data = hidden_rule(2)
    file = tmp_path / "outputs.bin"
    file.write_bytes(answered(pack([ProbeSection("../../x", data)], 1), [data.d.tobytes()]))
    line = error_of(["probe", "read", str(file), "--out", str(tmp_path / "a" / "b")], capsys)
    assert "section 0 of" in line and not (tmp_path / "x.toml").exists()


def test_escape_sequences_in_the_name_of_a_device_do_not_reach_the_terminal(tmp_path, capsys):
    data = bytearray(probe_file(step=20))
    data[64:72] = b"\x1b[31mred"
    (tmp_path / "outputs.bin").write_bytes(data)
    assert main(["probe", "read", str(tmp_path / "outputs.bin")]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "[31mred" in printed
