"""Conformance vectors notice wrong implementations, are right, and are read by other programs."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.commands import conformance as command
from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import compute, find
from vitruvian.golden.machines.rvbna import REPAIRS, printed_run
from vitruvian.sim import conformance
from vitruvian.sim.conformance import (
    STRATA,
    checksum,
    draw,
    make_vectors,
    to_npz,
    to_text,
    wrong_rules,
)
from vitruvian.sim.machines.sets import compare_set, read_set

#: Rows of RVBNA and the number of mistakes that their operands can show.
ROWS = [
    ("rvbna_bf16_n1_fp32", 13),
    ("rvbna_bf16_n2_fp32", 21),
    ("rvbna_bf16_n8_fp32", 22),
    ("rvbna_e4m3_n1_fp32", 7),
    ("rvbna_e4m3_n2_fp32", 14),
    ("rvbna_e4m3_n8_fp32", 18),
    ("rvbna_e5m2_n2_fp32", 18),
    ("rvbna_e5m2xe4m3_n4_fp32", 19),
]


@pytest.mark.parametrize(("stem", "count"), ROWS)
def test_every_wrong_implementation_is_noticed(stem, count):
    machine = find(stem)
    vectors = make_vectors(machine, 2000)
    wrong = {name: run(vectors.operands) != vectors.d for name, run in wrong_rules(machine).items()}
    assert len(wrong) == count
    assert [name for name, rows in wrong.items() if not rows.any()] == []
    # No mistake is so coarse that uniformly random operands would show it as well as the strata.
    assert all(rows.mean() < 0.6 for rows in wrong.values())


@pytest.mark.parametrize("stem", [stem for stem, _ in ROWS])
def test_the_results_agree_with_a_second_model(stem):
    vectors = make_vectors(find(stem), 1000, seed=3)
    x, rule = vectors.operands, vectors.machine.rule
    assert isinstance(rule, DotSpec)
    again = printed_run(x.a, x.b, x.c, rule, REPAIRS)
    nan = unpack(vectors.d, "fp32").nan
    np.testing.assert_array_equal(again[~nan], vectors.d[~nan])
    assert (vectors.d[nan] == 0x7FC00000).all() and unpack(again, "fp32").nan[nan].all()


def test_the_strata_contain_what_they_say():
    vectors = make_vectors(find("rvbna_bf16_n4_fp32"), 2400)
    d = unpack(vectors.d, "fp32")
    assert vectors.dot is not None
    dot = unpack(vectors.dot, "fp32")

    def share(condition, name):
        return condition[vectors.operands.stratum == list(STRATA).index(name)].mean()

    subnormal = (dot.exponent == -126) & (dot.significand < 1 << 23) & (dot.significand != 0)
    zero = (d.significand == 0) & ~d.infinity & ~d.nan
    assert share(subnormal, "tiny") > 0.3
    assert share(d.infinity, "overflow") > 0.3 and share(d.infinity, "normal") == 0
    minus = vectors.operands.c == 0x80000000
    assert share(zero, "zeros") > 0.5 and share(zero & minus, "zeros") > 0.2
    assert not (zero & d.sign).any()  # the sum is never -0, so D is not either
    assert share(d.nan, "specials") > 0.2 and share(d.infinity, "specials") > 0.02
    assert share(d.significand & 1 == 1, "cut") > 0.5
    assert np.bincount(vectors.operands.stratum).tolist() == [200] * len(STRATA)


def parsed(text):
    """Return the columns of a text by name, as the header gives their places."""
    lines = text.splitlines()
    bits = {}
    for line in lines:
        words = line.removeprefix("//").split()
        if len(words) == 2 and words[1].startswith("[") and ":" in words[1]:
            high, low = words[1].strip("[]").split(":")
            bits[words[0]] = int(high), int(low)
    rows = [int(line, 16) for line in lines if not line.startswith("//")]
    return {
        name: np.array([row >> low & ((2 << (high - low)) - 1) for row in rows], np.uint64)
        for name, (high, low) in bits.items()
    }


@pytest.mark.parametrize("stem", ["rvbna_e5m2xe4m3_n4_fp32", "b200_nvf4_ue4m3_fp32"])
def test_the_text_can_be_read_by_its_header(stem):
    vectors = make_vectors(find(stem), 200, seed=5)
    columns = parsed(to_text(vectors))
    x = vectors.operands
    terms = x.a.shape[1]
    np.testing.assert_array_equal(columns["D"], vectors.d)
    np.testing.assert_array_equal(columns["C"], x.c)
    for name, array in (("A", x.a), ("B", x.b)):
        stacked = np.stack([columns[f"{name}[{k}]"] for k in range(terms)], axis=1)
        np.testing.assert_array_equal(stacked, array)
    if x.scale_a is not None:
        np.testing.assert_array_equal(columns["scaleA[0]"], x.scale_a[:, 0])
    assert ("DOT" in columns) == stem.startswith("rvbna")


def test_the_checksum_is_that_of_the_rows(capsys):
    """A file of the same row, size and seed must stay the same; the page quotes this checksum."""
    vectors = make_vectors(find("rvbna_bf16_n2_fp32"), 2000)
    text = to_text(vectors)
    rows = "".join(line for line in text.splitlines(True) if not line.startswith("//"))
    assert hashlib.sha256(rows.encode()).hexdigest() == checksum(vectors)
    assert f"SHA-256 of the lines without //: {checksum(vectors)}\n" in text
    assert checksum(vectors) == CHECKSUM
    assert checksum(make_vectors(find("rvbna_bf16_n2_fp32"), 2000, seed=2)) != CHECKSUM


CHECKSUM = "9775643deabff84411c4a1650ceab4d02f6a807fea8fa2bf032eed230b2ac7d9"


@pytest.mark.parametrize(
    "stem",
    ["rvbna_e4m3_n4_fp32", "amx_tdpbf16ps", "bh_mvmul_bf16_fp32_hifi4", "b200_mxf4_fp32"],
)
def test_a_file_of_arrays_is_a_set_without_differences(stem, tmp_path):
    path = tmp_path / f"{stem}.npz"
    path.write_bytes(to_npz(make_vectors(find(stem), 300)))
    found = compare_set(read_set(path))
    assert (found.rows, found.values, found.zero_signs) == (300, 0, 0)
    with np.load(path) as file:
        header = json.loads(str(file["header"]))
        assert header["rows"] == len(file["stratum"]) == 300 and header["name"] == stem


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_verilog_reads_the_text(tmp_path):
    vectors = make_vectors(find("rvbna_e5m2_n2_fp32"), 100)
    (tmp_path / "v.hex").write_text(to_text(vectors))
    columns = 8 + 4 * 8 * 3 + 4 * 8
    (tmp_path / "top.v").write_text(
        f"""module top;
  reg [{columns - 1}:0] rows [0:99];
  integer i;
  initial begin
    $readmemh("v.hex", rows);
    for (i = 0; i < 100; i = i + 1)
      $display("%h %h", rows[i][{columns - 9}:{columns - 40}], rows[i][7:0]);
  end
endmodule
"""
    )
    subprocess.run(["iverilog", "-o", "top", "top.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "top"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "WARNING" not in done.stdout + done.stderr
    got = [[int(word, 16) for word in line.split()] for line in done.stdout.splitlines()]
    expected = zip(vectors.d.tolist(), vectors.operands.a[:, 0].tolist(), strict=True)
    assert got == [list(row) for row in expected]


@pytest.mark.parametrize(
    "stem", ["h100_wgmma_e5m2_fp16", "gaudi3_fp32_fp32", "cdna3_mfma_xf32_fp32"]
)
def test_other_rules_have_vectors_too(stem):
    machine = find(stem)
    x = draw(machine, 240, seed=2)
    d = compute(machine.rule, x.a, x.b, x.c)
    assert len(np.unique(d)) > 100
    assert wrong_rules(machine) == {}


# ------------------------------------------------------------------ the command


def test_the_command_writes_a_file_and_counts(tmp_path, capsys):
    path, report = tmp_path / "v.hex", tmp_path / "v.json"
    line = ["conformance", "rvbna_e4m3_n2_fp32", "--out", str(path), "--json", str(report)]
    assert main([*line, "--vectors", "1200"]) == 0
    printed = capsys.readouterr().out
    assert "14 of 14 wrong implementations are noticed" in printed
    facts = json.loads(report.read_text())
    assert facts["sha256"] in path.read_text() and facts["sha256"] in printed
    assert sum(row["rows"] for row in facts["strata"]) == 1200
    assert all(row["rows"] > 0 for row in facts["wrong"])


def test_a_wrong_implementation_that_passes_ends_with_1(capsys, monkeypatch):
    def right(machine):
        return {"right": lambda x: compute(machine.rule, x.a, x.b, x.c)}

    monkeypatch.setattr(conformance, "wrong_rules", right)
    assert command.__name__ and main(["conformance", "rvbna_e4m3_n2_fp32", "--vectors=100"]) == 1
    assert "0 of 1 wrong implementations are noticed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("amx_tdpbssd", "NAME must be a row with floating-point formats of at most 32 bits, not"),
        ("a100_mma_fp64_fp64", "NAME must be a row with floating-point formats"),
        ("rvbna_bf16_n3", "machine must be a row of the table, as rvbna_bf16_n"),
    ],
)
def test_a_row_without_vectors_is_refused(name, message, tmp_path, capsys):
    path = tmp_path / "v.hex"
    assert main(["conformance", name, "--out", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and not path.exists()


def test_the_page_states_the_figures():
    docs = Path(__file__).parents[4] / "docs"
    page = (docs / "units" / "machines" / "rvbna.md").read_text()
    table = (docs / "results" / "data" / "rvbna_wrong.csv").read_text().splitlines()
    vectors = make_vectors(find("rvbna_bf16_n8_fp32"), 2000)
    for name, run in wrong_rules(vectors.machine).items():
        count = (run(vectors.operands) != vectors.d).sum()
        assert f'"{name}",{count}' in table or f"{name},{count}" in table
    assert f"`{CHECKSUM}`" in page
