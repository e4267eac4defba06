"""Verilator, Icarus Verilog, Yosys and slang read the text of five units without a warning."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vitruvian.flows import verilog
from vitruvian.flows.netlist.keywords import KEYWORDS
from vitruvian.flows.synth import SynthesisError
from vitruvian.flows.units import variants
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
    return chosen.module, verilog.emit(chosen)


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
        verilog.run_yosys("design.v", path.read_text(), script, "design.il", task="read it")
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
    body = verilog.emit(chosen)
    old, new = MUTATIONS[reader]
    assert body.count(old) == 1
    path = tmp_path / f"{chosen.module}.v"
    path.write_text(body.replace(old, new))
    assert READERS[reader](path)


def named(rtlil: str) -> dict[str, set[str]]:
    """Return module -> the names that the source gives to signals of more than no bits."""
    names: dict[str, set[str]] = {}
    module = ""
    for line in rtlil.splitlines():
        if match := re.match(r"module \\(\S+)", line):
            module = match[1]
            names[module] = set()
        elif match := re.match(r"  wire width [1-9]\d* .*?\\([A-Za-z_]\w*)$", line):
            names[module].add(match[1])
    return names


def missing(rtlil: str, body: str) -> list[str]:
    """Return the names of the source that the text does not have, module by module."""
    blocks = re.findall(r"(?ms)^module (\w+).*?^endmodule", body)
    texts = re.findall(r"(?ms)^module \w+.*?^endmodule", body)
    words = [set(re.findall(r"\w+", block)) for block in texts]
    wanted = sorted(named(rtlil).values(), key=len)
    assert len(blocks) == len(wanted)
    return sorted(
        name
        for names in wanted
        for name in names
        if name not in KEYWORDS and not any(name in words_of for words_of in words)
    )


def test_the_text_has_the_names_of_its_source(text):
    module, body = text
    (unit,) = (unit for unit in PRESETS if variant(unit).module == module)
    chosen = variant(unit)
    rtlil = to_rtlil(chosen.build(), name=module, shared=chosen.unit.shared)
    absent = missing(rtlil, body)
    assert not absent
    assert not re.search(r"\b_\d+_\b", body)
    name = max(named(rtlil)[module], key=len)
    assert missing(rtlil, re.sub(rf"\b{name}\b", "net", body))[0] == name
