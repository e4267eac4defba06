"""Emitted Verilog: what it says of itself, who reads it, and that it computes the same."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flows import verilog
from flows.synth import WORKER
from flows.units import variants
from golden.fp import PRESETS, fused_dot
from hdl.m3xu.mma import UNITS as MMA_UNITS
from hdl.m3xu.mma import MmaUnit
from sim.rtl import toolchain

CASES = {
    "dot": {"preset": ["a100"], "k": [4], "pipeline": [2]},
    "intdot": {"k": [4], "pipeline": [0], "saturate": [True]},
    "convert": {},
    "minmax": {},
    "cube": {"preset": ["tiny"]},
    "mma": {"preset": ["m3xu"], "pipeline": [0]},
}
#: Verilator would look at each of the 32 elements; two are enough.
LARGE = ("mma",)


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in sorted(CASES)],
)
def emitted(request, tmp_path_factory) -> tuple[Path, str]:
    (variant,) = variants(request.param, CASES[request.param])
    path = verilog.write(variant, tmp_path_factory.mktemp("verilog"))
    return path, path.read_text()


def test_header_says_what_it_is_and_how_to_make_it(emitted):
    path, text = emitted
    header = text[: text.index("`timescale")]
    assert all(line.startswith("//") for line in header.splitlines())
    command = re.search(r"python -m flows verilog (.+)", header)
    assert command and command[1].split()[0] == path.stem.split("_")[0]
    assert f"module {path.stem}(" in text
    assert "Latency: " in header
    top = text[text.index(f"module {path.stem}(") :]
    top = top[: top.index("endmodule")]
    for port in re.findall(r"(?m)^  (?:input|output) (?:\[\d+:0\] )?(\w+);", top):
        assert port in ("clk", "rst") or re.search(rf"//   (in|out)put +{port}: ", header)


def test_the_command_in_the_header_makes_the_same_text(emitted, root: Path):
    text = emitted[1]
    command = re.search(r"python -m (flows verilog .+)", text)
    assert command
    arguments = [sys.executable, "-m", *command[1].split(), "--stdout"]
    done = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == text


def test_no_escaped_name(emitted):
    assert "\\" not in emitted[1]


def smaller(path: Path, folder: Path) -> Path:
    """The same unit with two elements, if it is a large one."""
    if path.stem.split("_")[0] not in LARGE:
        return path
    (variant,) = variants("mma", CASES["mma"])
    config = replace(MMA_UNITS["m3xu"], m=2, n=1, pipeline=0)
    unit = replace(variant.unit, build=lambda _: MmaUnit(config=config))
    return verilog.write(replace(variant, unit=unit), folder)


def test_lints_clean_under_verilator(emitted, tmp_path):
    tool = toolchain.verilator()
    path = smaller(emitted[0], tmp_path)
    command = [*tool.command, "--lint-only", "-Wall", str(verilog.WAIVERS), str(path)]
    environment = {**os.environ, **dict(tool.environment)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "%Warning" not in done.stderr + done.stdout


def test_every_waiver_has_a_reason():
    lines = verilog.WAIVERS.read_text().splitlines()
    assert any(line.startswith("lint_off") for line in lines)
    for number, line in enumerate(lines):
        if line.startswith("lint_off"):
            assert lines[number - 1].startswith("//")


def test_yosys_reads_it(emitted, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text(f"read_verilog {emitted[0]}\nhierarchy -check -top {emitted[0].stem}\nproc\n")
    command = [sys.executable, str(WORKER), str(script), str(tmp_path / "usage.json")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]


BENCH = """
`timescale 1ns / 1ps
module bench;
  reg clk = 0, rst = 0;
  reg [{ab}:0] a, b; reg [31:0] c; wire [31:0] d;
  {module} unit({clock}.a(a), .b(b), .c(c), .d(d));
  reg [{word}:0] memory [0:{last}];
  integer i;
  initial begin
    $readmemh("stimuli.hex", memory);
    for (i = 0; i <= {last} + {latency}; i = i + 1) begin
      {{a, b, c}} = memory[i <= {last} ? i : {last}];
      #1;
      if (i >= {latency}) $display("%h", d);
      clk = 1; #1; clk = 0; #1;
    end
    $finish;
  end
endmodule
"""


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs Icarus Verilog (iverilog)")
@pytest.mark.parametrize(("preset", "k", "pipeline"), [("a100", 4, 2), ("ieee", 4, 0)])
def test_icarus_computes_what_golden_says(preset: str, k: int, pipeline: int, tmp_path: Path):
    values = {"preset": [preset], "k": [k], "pipeline": [pipeline]}
    (variant,) = variants("dot", values)
    unit = verilog.write(variant, tmp_path)
    count, generator = 300, np.random.default_rng(2)
    a, b = generator.integers(0, 1 << 16, (2, count, k))
    c = generator.integers(0, 1 << 32, count)
    lines = []
    for row in range(count):
        vectors = ["".join(f"{int(x):04x}" for x in v[row][::-1]) for v in (a, b)]
        lines.append(f"{vectors[0]}{vectors[1]}{int(c[row]):08x}")
    (tmp_path / "stimuli.hex").write_text("\n".join(lines) + "\n")
    sizes = {"ab": 16 * k - 1, "word": 32 * k + 31, "last": count - 1}
    clock = ".clk(clk), .rst(rst), " if pipeline else ""
    bench = BENCH.format(module=variant.module, latency=pipeline, clock=clock, **sizes)
    (tmp_path / "bench.v").write_text(bench)
    compile_ = ["iverilog", "-g2005", "-Wall", "-o", "bench", "bench.v", unit.name]
    done = subprocess.run(compile_, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(["vvp", "bench"], cwd=tmp_path, capture_output=True, text=True, check=True)
    words = [line for line in ran.stdout.split() if re.fullmatch("[0-9a-fx]{8}", line)]
    expected = fused_dot(a, b, c, PRESETS[preset].spec("fp16", "fp32", k=k))
    assert words == [f"{int(word):08x}" for word in expected]
