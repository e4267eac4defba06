"""Verilator, Icarus Verilog, Yosys and slang read the text of five units without a warning."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vitruvian.flows.units import variants
from vitruvian.flows.verilog import emit
from vitruvian.flows.verilog.netlist.names import poor
from vitruvian.flows.verilog.netlist.rtlil import parse
from vitruvian.flows.verilog.netlist.simplify import Netlist
from vitruvian.flows.yosys import SynthesisError, run_yosys
from vitruvian.hdl.elaborate import to_rtlil
from vitruvian.sim.rtl import toolchain

PRESETS = {
    "dot": {"preset": "a100", "k": 4},
    "cube": {"preset": "tiny"},
    "m3xu": {"m": 2, "n": 1},
    "simd2": {"operations": "mma-minplus", "m": 1, "n": 2},
    "scu-im2col": {},
}


def variant(unit: str):
    (chosen,) = variants(unit, {name: [value] for name, value in PRESETS[unit].items()})
    return chosen


#: Units of which a run of all tests reads the text; the others show the same kinds of statements.
LARGE = ("m3xu", "simd2")


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.long) if n in LARGE else n for n in PRESETS],
)
def text(request) -> tuple[str, str]:
    chosen = variant(request.param)
    return chosen.module, emit.emit(chosen)


def verilator(path: Path) -> str:
    tool = toolchain.verilator()
    command = [*tool.command, "--lint-only", "-Wall", path.name]
    environment = {**os.environ, **dict(tool.environment)}
    done = subprocess.run(
        command, cwd=path.parent, capture_output=True, text=True, env=environment, check=False
    )
    return done.stderr if done.returncode else ""


def icarus(path: Path) -> str:
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus Verilog (iverilog)")
    command = ["iverilog", "-g2005", "-Wall", "-o", os.devnull, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or done.stderr
    return done.stderr


def yosys(path: Path) -> str:
    script = [
        *("read_verilog design.v", f"hierarchy -check -top {path.stem}", "proc", "flatten"),
        *("opt_clean", "check -assert", "write_rtlil design.il"),
    ]
    try:
        run_yosys("design.v", path.read_text(), script, "design.il", task="read it")
    except SynthesisError as error:
        return str(error)
    return ""


def slang(path: Path) -> str:
    pyslang = pytest.importorskip("pyslang", reason="needs pyslang, of the extra test")
    syntax = getattr(pyslang, "syntax", pyslang)
    ast = getattr(pyslang, "ast", pyslang)
    compilation = ast.Compilation()
    compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(path)))
    engine = pyslang.DiagnosticEngine(compilation.sourceManager)
    engine.setWarningOptions(["default"])
    return "\n".join(
        str(item.code)
        for item in compilation.getAllDiagnostics()
        # Warnings that slang's own program does not print unless one asks for them.
        if engine.getSeverity(item.code, item.location) != pyslang.DiagnosticSeverity.Ignored
    )


READERS: dict[str, Callable[[Path], str]] = {
    reader.__name__: reader for reader in (verilator, icarus, yosys, slang)
}


@pytest.mark.parametrize("reader", READERS)
def test_the_text_is_read_without_a_warning(text, reader: str, tmp_path: Path):
    path = tmp_path / f"{text[0]}.v"
    path.write_text(text[1])
    assert READERS[reader](path) == ""


#: A change of the text of the unit dot that each reader has to notice.
MUTATIONS = {
    "verilator": ("  wire unused = ", "  wire fine = "),
    "icarus": ("  assign d = ", "  wire far = a[99];\n  assign d = "),  # beyond the end of a
    "yosys": ("  assign d = ", "  assign d = a[31:0];\n  assign d = "),
    "slang": ("  assign d = ", "  assign d = missing & "),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_notices_a_mistake(reader: str, tmp_path: Path):
    chosen = variant("dot")
    body = emit.emit(chosen)
    old, new = MUTATIONS[reader]
    assert body.count(old) == 1
    path = tmp_path / f"{chosen.module}.v"
    path.write_text(body.replace(old, new))
    assert READERS[reader](path)


def registers(rtlil: str) -> dict[str, set[str]]:
    """Return module -> its ports, and the registers that something reads, by their names."""
    names: dict[str, set[str]] = {}
    for name, module in parse(emit._readable(rtlil, "top", [])).items():
        netlist = Netlist(module)
        netlist.simplify()
        names[name] = {register for register in netlist.registers if not poor(register)}
        names[name] |= {wire.name for wire in module.wires.values() if wire.way and wire.width}
    return names


def missing(rtlil: str, body: str) -> list[str]:
    """Return the registers and ports of the source that no module of the text has."""
    words = [set(re.findall(r"\w+", block)) for block in re.split(r"(?m)^endmodule", body)]
    return sorted(
        name
        for names in registers(rtlil).values()
        for name in names
        if not any(name in words_of for words_of in words)
    )


def test_the_text_has_the_names_of_its_source(text):
    """Registers and ports keep their names; other signals may be written inside an expression."""
    module, body = text
    (unit,) = (unit for unit in PRESETS if variant(unit).module == module)
    chosen = variant(unit)
    rtlil = to_rtlil(chosen.build(), name=module, shared=chosen.unit.shared)
    names = registers(rtlil)[module]
    assert len(names) > 4 and not missing(rtlil, body)
    assert not re.search(r"\b_\d+_\b", body)
    name = max(names, key=len)
    assert missing(rtlil, re.sub(rf"\b{name}\b", "net", body))[0] == name


def test_no_line_is_longer_than_100_characters(text):
    assert max(map(len, text[1].splitlines())) <= 100


def test_every_part_has_a_name_and_no_path_of_this_machine(text, root: Path):
    """A comment above each group of statements says where it comes from, and not more."""
    body = text[1]
    files = set(re.findall(r"\[([\w/]+\.py)\]", body))
    assert len(files) > 3 and all(
        (root / file).is_file() for file in files if not file.startswith("amaranth/")
    )
    assert str(root) not in body and "site-packages" not in body
    aliases = re.findall(r"(?m)^  // \w+ is (?:also )?", body)
    assert not aliases


def test_the_products_of_a_dot_product_are_instances_of_one_module(text):
    if not text[0].startswith("dot_"):
        pytest.skip("only the dot product has products of its own")
    assert re.findall(r"(?m)^module (\w+)", text[1]) == [text[0], f"{text[0]}_p"]
    assert re.findall(rf"(?m)^  {text[0]}_p (\w+) \(", text[1]) == ["p0", "p1", "p2", "p3"]
    stages = re.findall(r"// ==== (Stage .*) ====", text[1])
    assert stages[0] == "Stage 1 of 4: from the inputs to register rank 1"
    assert stages[-1] == "Stage 4 of 4: from register rank 3 to the outputs" and len(stages) == 4
