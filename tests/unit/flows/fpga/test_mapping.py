"""A unit on an FPGA takes one DSP block per product and no more LUTs than a plain ``*`` does."""

import json

import pytest
from amaranth.hdl import Signal

import vitruvian.hdl.fp.core.dotcore
from vitruvian.cli import main
from vitruvian.flows.fpga import mapping
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import emit
from vitruvian.flows.yosys import SynthesisError
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.parts.carrysave import reduce_rows


def _variant(unit, **options):
    return variants(unit, {name: [value] for name, value in options.items()})[0]


def _luts(resources, family):
    """Return the number of LUTs, with those inside carry cells if the family has any."""
    return resources.lut + (2 * resources.carry if family == "ecp5" else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "family"),
    [
        (4, "ecp5"),
        pytest.param(8, "ecp5", marks=pytest.mark.long),
        pytest.param(4, "xilinx7", marks=pytest.mark.long),
    ],
)
def test_a_dot_product_takes_a_dsp_block_for_each_product(monkeypatch, k, family):
    """The reference is the unit for standard cells, with its products written as ``*``."""
    unit = _variant("dot", k=k, multiplier="dsp")
    resources = mapping.resources(unit, family)

    def carry_save(m, rows, *, target, **rest):
        return reduce_rows(m, rows, **rest)

    monkeypatch.setattr(vitruvian.hdl.fp.core.dotcore, "add_plainly", carry_save)
    text = emit.emit(unit, plain=True)
    assert " * " in text
    reference = mapping.count(text, unit.module, family)
    assert resources.dsp == reference.dsp == k
    assert 0 < resources.lut <= 1.05 * reference.lut
    assert 0 < _luts(resources, family) <= 1.05 * _luts(reference, family)


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_ice40_takes_products_with_any_registers_behind_them(stage):
    """Two registers end Yosys 0.70's own recipe; one of them then stays outside the block."""
    text = "module product(input clk, input [10:0] a, b, output [21:0] q);\n"
    text += "  wire [21:0] r0 = a * b;\n"
    for rank in range(stage):
        text += f"  reg [21:0] r{rank + 1};\n  always @(posedge clk) r{rank + 1} <= r{rank};\n"
    text += f"  assign q = r{stage};\nendmodule\n"
    counts = mapping.count(text, "product", "ice40")
    assert counts.dsp == 1 and counts.lut == 0
    assert counts.ff == (22 if stage == 2 else 0)


@pytest.mark.parametrize("family", ["ecp5", "ice40", "gowin", "xilinx7"])
def test_equal_modules_are_mapped_once_on_demand(family):
    """Yosys merges equal registers of different modules only if it maps them in one piece."""
    leaf = "module leaf(input clk, d, output reg q);\n  always @(posedge clk) q <= d;\nendmodule\n"
    top = "module both(input clk, d, output [1:0] q);\n"
    top += "".join(f"  leaf leaf{n}(.clk(clk), .d(d), .q(q[{n}]));\n" for n in range(2))
    text = f"{leaf}{top}endmodule\n"
    assert mapping.count(text, "both", family).ff == 1
    assert mapping.count(text, "both", family, by_module=True).ff == 2


def test_a_large_design_is_counted_by_modules(monkeypatch):
    unit = _variant("cube", preset="tiny", m=1, n=2, multiplier="dsp", precisions="int8")
    flat, text = mapping.resources(unit, "ecp5"), emit.emit(unit, plain=True)
    by_module = mapping.apart(text, unit.module, "ecp5")
    assert (
        by_module is not None
        and by_module == mapping.count(text, unit.module, "ecp5", by_module=True) != flat
    )
    assert flat == mapping.count(text, unit.module, "ecp5")
    monkeypatch.setattr(mapping, "MOST_FLAT", flat.lut // 2)
    assert mapping.resources(unit, "ecp5") == by_module
    assert by_module.dsp == flat.dsp == 8
    # One module, of any size, is mapped in one piece.
    single = emit.emit(_variant("compare", format="fp16"))
    monkeypatch.setattr(mapping, "count", None)  # not called
    assert mapping.apart(single, "compare_fp16", "ecp5") is None


@pytest.mark.parametrize(
    ("family", "carry", "dsp", "ff"),
    [
        ("ecp5", 32, 2, 32),
        ("xilinx7", 0, 2, 32),
        ("ice40", 0, 2, 32),  # the blocks contain the adders
        ("gowin", 64, 1, 32),  # two multipliers of 9 × 9 bits share the site of one of 18 × 18
    ],
)
def test_an_integer_dot_product_takes_dsp_blocks_and_no_lut(family, carry, dsp, ff):
    """On Xilinx and iCE40 the blocks also compute the sum."""
    found = mapping.resources(_variant("intdot", k=2, multiplier="dsp"), family)
    assert found == mapping.Resources(lut=0, carry=carry, ff=ff, dsp=dsp, bram=0)


def test_cells_are_counted_by_kind_and_weight():
    """The figures are sums that can be done by hand; unknown cells count nothing."""
    cells = {"LUT4": 5, "TRELLIS_DPR16X4": 2, "CCU2C": 3, "TRELLIS_FF": 4, "MULT18X18D": 6}
    cells |= {"DP16KD": 1, "PFUMX": 9, "$scopeinfo": 7}
    counts = mapping.FAMILIES["ecp5"].count(cells)
    assert counts == {"lut": 5 + 2 * 4, "carry": 3, "ff": 4, "dsp": 6, "bram": 1}
    gowin = mapping.FAMILIES["gowin"].count({"MULT9X9": 3, "MULT36X36": 1, "LUT1": 1, "LUT5": 1})
    assert (gowin["dsp"], gowin["lut"]) == (6, 1)  # 1.5 and 4, rounded up
    xilinx = mapping.FAMILIES["xilinx7"].count({"RAMB18E1": 3, "FDRE": 1, "FDSE": 1, "RAM32M": 1})
    assert (xilinx["bram"], xilinx["ff"], xilinx["lut"]) == (2, 2, 4)
    ice40 = mapping.FAMILIES["ice40"].count({"SB_DFFESR": 2, "SB_DFF": 1, "SB_RAM40_4K": 1})
    assert (ice40["ff"], ice40["bram"]) == (3, 1)


@pytest.mark.parametrize(("k", "pipeline"), [(4, 1), (16, 1), (16, 5)])
def test_an_integer_dot_product_takes_fewer_luts_than_one_expression(monkeypatch, k, pipeline):
    unit = _variant("intdot", k=k, pipeline=pipeline, multiplier="dsp")
    resources = mapping.resources(unit, "ecp5")

    def one_expression(self, m, stages, operands):
        products = (
            a.as_signed() * b.as_signed() for a, b in zip(operands.a, operands.b, strict=True)
        )
        total = Signal(32)
        m.d.sync += total.eq(sum(products, operands.c.as_signed()))
        return total

    monkeypatch.setattr(IntDotProduct, "_build_chain", one_expression)
    plain = _variant("intdot", k=k, pipeline=1, multiplier="dsp")
    reference = mapping.count(emit.emit(plain, plain=True), plain.module, "ecp5")
    assert resources.dsp == reference.dsp == k
    assert 0 < _luts(resources, "ecp5") <= 1.05 * _luts(reference, "ecp5")


def test_an_element_for_fpgas_has_a_dsp_block_for_each_product_and_slots_in_memories():
    in_memory = _variant("cube", preset="int8_8x8_dsp", m=1, n=2)
    memory = mapping.resources(in_memory, "ecp5", element=True)
    assert memory.dsp == 2
    # Nine slots in flip-flops would be 288 more, and their multiplexers over 500 LUTs.
    # The memory of the slots, which has two read ports, and that of C have 8 cells for each port.
    assert memory.ff < 200 and memory.lut < 3 * 8 * 4 + 50


def test_the_table_is_printed_and_stored(tmp_path, capsys):
    arguments = "fpga intdot --k 2 --multiplier booth,dsp --family ecp5 --json"
    assert main([*arguments.split(), str(tmp_path / "fpga.json")]) == 0
    booth, dsp = json.loads((tmp_path / "fpga.json").read_text())
    assert booth["dsp"] == 0 < booth["lut"] and dsp["dsp"] == 2 and dsp["lut"] == 0
    assert (booth["label"], dsp["label"]) == ("k2-p1", "k2-p1-dsp")
    assert "MULT18X18D" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fpga dot --family ice", "family must be one of ecp5, ice40, gowin, xilinx7, not 'ice'"),
        ("fpga dot --element", "unit must be a tile with --element, not 'dot'"),
        ("fpga dot --multiplier lut", "multiplier must be one of booth, dsp, not 'lut'"),
    ],
)
def test_unknown_families_and_options_are_refused(arguments, message, capsys):
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err


def test_yosys_errors_become_synthesis_errors():
    with pytest.raises(SynthesisError, match="Yosys could not map the design: "):
        mapping.count("module top(input a; endmodule", "top", "ecp5", cache=False)


def test_the_header_of_an_integer_tile_names_its_configuration():
    """Regression: ``verilog simd2-int`` raised an AttributeError."""
    text = emit.emit(_variant("simd2-int", operations="mma", size=1, width=8, multiplier="dsp"))
    assert "//   bits = 8" in text and "//   multiplier = dsp" in text and "booth" not in text
    assert "preset" not in text and "(* keep" in text
