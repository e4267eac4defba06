"""The SystemVerilog package of a unit has every field at the bits of Amaranth's layout."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Shape, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.cli import main
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import bundle, sv_package
from vitruvian.flows.verilog.header import header
from vitruvian.hdl.elaborate import only_described
from vitruvian.sim.rtl import toolchain


class Code(enum.Enum, shape=3):
    """Three codes in three bits."""

    FIRST = 0
    SECOND = 1
    LAST = 6


INNER = data.StructLayout({"low": 3, "inside": signed(5), "nothing": 0, "code": Code})
OUTER = data.StructLayout(
    {
        "one": 1,
        "words": data.ArrayLayout(7, 3),
        "lanes": data.ArrayLayout(INNER, 2),
        "inner": INNER,
        "grid": data.ArrayLayout(data.ArrayLayout(4, 2), 3),
    }
)


class Fields(wiring.Component):
    """A unit with every kind of field."""

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(OUTER)),
                "several": Out(data.ArrayLayout(INNER, 4)),
                "plain": Out(data.ArrayLayout(8, 4)),
                "bit": In(1),
            }
        )


def component(unit: str) -> Any:
    if unit == "fields":
        return only_described(Fields())
    given = {"cube": {"preset": ["tiny"]}}.get(unit, {})
    return only_described(variants(unit, given)[0].build())


def unwrapped(shape: Any) -> Any:
    """Return the layout of a structure that is a class."""
    struct: Any = shape
    is_class = isinstance(shape, type) and issubclass(shape, data.Struct)
    return data.Layout.cast(struct) if is_class else shape


def leaves(shape: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path of each field in SystemVerilog, with the value that has only its bits set."""
    shape = unwrapped(shape)
    if isinstance(shape, data.StructLayout):
        for name, field in shape:
            for path, value in leaves(field.shape) if field.width else ():
                word = f"{name}_v" if name in ("inside", "end", "repeat") else name
                yield f".{word}{path}", {name: value}
    elif isinstance(shape, data.ArrayLayout):
        for index in {0, shape.length - 1}:
            for path, value in leaves(shape.elem_shape):
                yield f"[{index}]{path}", Element(index, value)
    else:
        yield "", Ones()


class Ones:
    """All bits of a field."""


class Element:
    """One element of an array."""

    def __init__(self, index: int, value: Any):
        self.index, self.value = index, value


def mask(shape: Any, value: Any) -> int:
    """Return the bits of a field, from Amaranth's own layout."""
    shape = unwrapped(shape)
    if isinstance(value, Ones):
        return (1 << Shape.cast(shape).width) - 1
    key, inner = (
        (value.index, value.value) if isinstance(value, Element) else next(iter(value.items()))
    )
    field = shape[key]
    return mask(field.shape, inner) << field.offset


def checks(unit: Any) -> str:
    """Return a module that stops the elaboration if a field has other bits than in Amaranth."""
    lines = ["module check;", "  import unit_pkg::*;"]
    count = 0
    for path, _, value in unit.signature.flatten(unit):
        shape = value.shape()
        name = "__".join(map(str, path))
        kind = f"{name.replace('__', '_')}_t"
        bits = Shape.cast(shape).width
        if name not in {found.path[0] for found in sv_package.ranges(unit)}:
            continue
        lines.append(f'  if ($bits({kind}) != {bits}) $error("{name}: not {bits} bits");')
        for field, chosen in leaves(shape):
            lines += [
                f"  function automatic logic [{bits - 1}:0] f{count}();",
                f"    {kind} x;",
                "    x = '0;",
                f"    x{field} = '1;",
                "    return x;",
                "  endfunction",
                f"  if (f{count}() != {bits}'h{mask(shape, chosen):x})"
                f' $error("{name}{field} is elsewhere");',
            ]
            count += 1
    assert count
    return "\n".join([*lines, "endmodule", ""])


def slang(folder: Path) -> str:
    """Return what slang reports as an error in the package and the checks."""
    pyslang = pytest.importorskip("pyslang", reason="needs pyslang, of the extra test")
    syntax = getattr(pyslang, "syntax", pyslang)
    ast = getattr(pyslang, "ast", pyslang)
    compilation = ast.Compilation()
    for name in ("unit_pkg.sv", "check.sv"):
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(folder / name)))
    engine = pyslang.DiagnosticEngine(compilation.sourceManager)
    return "\n".join(
        engine.formatMessage(item) for item in compilation.getAllDiagnostics() if item.isError()
    )


def verilator(folder: Path) -> str:
    """Return what Verilator says about the package and the checks under ``-Wall``."""
    tool = toolchain.verilator()
    command = [*tool.command, "--lint-only", "-Wall", "-Wno-GENUNNAMED", "unit_pkg.sv"]
    command.append("check.sv")
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **dict(tool.environment)},
        check=False,
    )
    return done.stderr + done.stdout if done.returncode else ""


READERS: dict[str, Callable[[Path], str]] = {r.__name__: r for r in (slang, verilator)}


def written(unit: Any, folder: Path, old: str = "", new: str = "") -> Path:
    text = sv_package.package("unit", unit)
    assert old in text
    (folder / "unit_pkg.sv").write_text(text.replace(old, new, 1))
    (folder / "check.sv").write_text(checks(unit))
    return folder


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("unit", ["fields", "cube", "scu-im2col", "sparse-oei"])
def test_every_field_has_the_bits_of_the_layout(unit: str, reader: str, tmp_path: Path):
    assert READERS[reader](written(component(unit), tmp_path)) == ""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("old", "new"),
    [("[2:0] [6:0] words", "[6:0] [2:0] words"), ("logic [2:0] low", "logic [3:0] low")],
)
def test_a_field_elsewhere_is_noticed(old: str, new: str, reader: str, tmp_path: Path):
    assert READERS[reader](written(component("fields"), tmp_path, old, new))


def test_codes_are_constants_and_keywords_get_another_name():
    text = sv_package.package("unit", component("fields"))
    assert "    I_PAYLOAD_INNER_CODE_LAST = 3'd6\n  } i_payload_inner_code_e;" in text
    assert " inside_v;  // [3 +: 5]" in text and "nothing" not in text
    assert "plain" not in text and "bit" not in text.replace("bits", "")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("unit", "line"),
    [
        ("axi-lite", "  S_AXI_BRESP_SLVERR = 2'd2"),
        ("simd2-int", "  OP_MINPLUS = 4'd1,"),
        ("mma", "  I_PAYLOAD_OPCODE_MMA_16X8X16_BF16 = 7'd2,"),
    ],
)
def test_codes_of_ports_and_instructions_are_constants(
    unit: str, line: str, reader: str, tmp_path: Path
):
    text = sv_package.package("unit", component(unit))
    assert f"  {line}\n" in text
    (tmp_path / "unit_pkg.sv").write_text(text)
    (tmp_path / "check.sv").write_text("module check;\n  import unit_pkg::*;\nendmodule\n")
    assert READERS[reader](tmp_path) == ""


def test_a_unit_without_fields_has_no_package():
    assert sv_package.package("unit", component("add")) == ""
    assert sv_package.files(variants("dot", {"preset": ["a100"], "k": [4]})[0]) == {}


def test_the_header_has_the_bits_as_constants():
    (variant,) = variants("cube", {"preset": ["tiny"]})
    text = header(variant, variant.build())
    assert "localparam I_PAYLOAD_PRECISION_LSB = 128, I_PAYLOAD_PRECISION_BITS = 3;" in text
    assert "I_PAYLOAD_B_LSB = 64, I_PAYLOAD_B_BITS = 64, I_PAYLOAD_B_STRIDE = 32;" in text
    (variant,) = variants("dot", {"preset": ["a100"], "k": [4]})
    assert "localparam" not in header(variant, variant.build())


def test_the_package_is_written_beside_the_unit_and_into_bundles(tmp_path: Path):
    assert main(["verilog", "scu-im2col", "--rows", "1", "--out", str(tmp_path)]) == 0
    module = "scu_im2col_r1_a4"
    assert {path.name for path in tmp_path.iterdir()} == {f"{module}.v", f"{module}_pkg.sv"}
    (variant,) = variants("scu-im2col", {"rows": [1]})
    texts = bundle.files(variant, vectors=20)
    assert texts[f"rtl/{module}_pkg.sv"] == (tmp_path / f"{module}_pkg.sv").read_text()
    assert f"`rtl/{module}_pkg.sv`" in texts["README.md"]
