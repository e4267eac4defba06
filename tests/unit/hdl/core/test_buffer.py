"""Memories of a core in block RAM, without a bypass for reads in the cycle of a write."""

from vitruvian.flows.fpga import mapping
from vitruvian.flows.verilog.netlist.write import verilog
from vitruvian.hdl.core.buffer import BlockMemory
from vitruvian.hdl.elaborate import to_rtlil


def test_a_memory_is_in_block_ram():
    component = BlockMemory(blocks=512, readers=1, writers=1)
    ports = ["__".join(map(str, path)) for path, _, _ in component.signature.flatten(component)]
    rtlil = to_rtlil(component, name="dut", sources=True)
    text = verilog(rtlil, "dut", ["clk", "rst", *ports], plain=True)
    assert "  (* no_rw_check *) reg [255:0] memory [0:511];" in text
    counts = mapping.count(text, "dut", "ecp5", cache=False)
    assert counts.bram == 8
    # Without the attribute, the bypass has a register for each bit.
    assert counts.ff < 10
    bypassed = mapping.count(text.replace("(* no_rw_check *) ", ""), "dut", "ecp5", cache=False)
    assert bypassed.ff > 256


def test_dense_mapping_saves_wide_multiplexers():
    ecp5 = mapping.FAMILIES["ecp5"]
    dense, plain = (
        [step for step in ecp5.commands("top", dense=dense) if step.startswith("synth_ecp5")]
        for dense in (True, False)
    )
    assert dense and all("-nowidelut" in step for step in dense)
    assert plain and not any("-nowidelut" in step for step in plain)
    assert mapping.FAMILIES["gowin"].commands("top", dense=True) == ["synth_gowin -top top"]
