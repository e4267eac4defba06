"""The top modules: components on pins, and the registered wrapper, which keeps every bit alive."""

import re

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.sim import Simulator

from vitruvian.flows.fpga import mapping, wrapper
from vitruvian.flows.fpga.board import load_board
from vitruvian.flows.fpga.place import check_fit, design, synth
from vitruvian.flows.fpga.wrapper import Top, WrapperPort
from vitruvian.flows.units import variants
from vitruvian.flows.yosys import run_yosys

INPUTS, OUTPUTS = (
    [WrapperPort("a", 3, False), WrapperPort("b", 2, False)],
    [WrapperPort("y", 2, True)],
)


def function(a, b):
    """The unit of the simulation: a combinational function of two bits."""
    return (a ^ b) & 3


class Stub(Elaboratable):
    """Stands for the instance of the unit's Verilog module, so that Amaranth can simulate it."""

    def __init__(self, name, **connections):
        self.connections = connections

    def elaborate(self, platform):
        m = Module()
        c = self.connections
        m.d.comb += c["o_y"].eq(function(c["i_a"], c["i_b"]))
        return m


def simulate(top, bits):
    """Return the levels of tx after each clock edge, for the levels of rx before it."""
    levels = []

    async def bench(ctx):
        for bit in bits:
            ctx.set(top.pins["rx"], bit)
            ctx.set(top._clk, 1)
            levels.append(ctx.get(top.pins["tx"]))
            ctx.set(top._clk, 0)

    simulator = Simulator(top)
    simulator.add_testbench(bench)
    simulator.run()
    return levels


def expected(bits, fold):
    groups = -(-2 // fold)
    chain, kept, folded, levels = [0] * 5, [0, 0], [0] * groups, []
    for bit in bits:
        a = chain[0] | chain[1] << 1 | chain[2] << 2
        y = function(a, chain[3] | chain[4] << 1)
        sums = [sum(kept[n : n + fold]) % 2 for n in range(0, 2, fold)]
        folded = [x ^ above for x, above in zip(sums, [*folded[1:], 0], strict=True)]
        chain, kept = [bit, *chain[:4]], [y & 1, y >> 1]
        levels.append(folded[0])
    return levels


@pytest.mark.parametrize(("fold", "groups"), [(1, 2), (2, 1), (3, 1)])
def test_the_registered_wrapper_is_a_chain_a_register_and_a_fold(monkeypatch, fold, groups):
    monkeypatch.setattr(wrapper, "Instance", Stub)
    monkeypatch.setattr(wrapper, "_FOLD", fold)
    top = Top(module="unit", ports=INPUTS + OUTPUTS, board=load_board("ulx3s"), controls=())
    assert top.wrapped and (top.own_luts, top.own_ffs) == (groups, 5 + 2 + groups)
    bits = [int(bit) for bit in f"{0x9E3779B97F4A7C15:064b}"]
    levels = simulate(top, bits)
    assert levels == expected(bits, fold)
    assert 10 < sum(levels) < 54


@pytest.mark.parametrize("unit", ["axi-stream", "axi-lite"])
def test_an_axi_bus_runs_on_the_clock_and_the_reset_of_the_board(unit):
    work = design(variants(unit, {})[0], load_board("ulx3s"))
    instance = re.search(r"(?s)axi_\w+ unit \(.*?\);", work.top_text)
    assert instance is not None and "chain[" in instance[0]
    wires = dict(re.findall(r"\.(\w+)\((.*?)\)", instance[0]))
    assert wires["aclk"] == "clk" and not {"clk", "rst"} & set(wires)
    assert f"assign {wires['aresetn']} = count[4];" in work.top_text  # active low
    assert "assign rst = ~ count[4];" in work.top_text


@pytest.mark.parametrize("index", range(5))
def test_every_input_bit_changes_the_output_pin(monkeypatch, index):
    """With one bit of the inputs removed, the simulation differs from the expected levels."""

    class Cut(Stub):
        def elaborate(self, platform):
            m = Module()
            a, b = self.connections["i_a"], self.connections["i_b"]
            cut = 0x1F & ~(1 << index)
            m.d.comb += self.connections["o_y"].eq(function(a & cut & 7, b & cut >> 3))
            return m

    monkeypatch.setattr(wrapper, "Instance", Cut)
    top = Top(module="unit", ports=INPUTS + OUTPUTS, board=load_board("ulx3s"), controls=())
    bits = [int(bit) for bit in f"{0x9E3779B97F4A7C15:064b}"]
    # Bit 2 of a is the only one that the function ignores.
    assert (simulate(top, bits) == expected(bits, wrapper._FOLD)) == (index == 2)


@pytest.mark.parametrize(("board", "lit"), [("ulx3s", 1), ("icebreaker", 0)])
def test_a_component_with_named_pins_is_on_the_pins(board, lit):
    ports = [WrapperPort("rx", 1, False), WrapperPort("tx", 1, True), WrapperPort("led", 1, True)]
    top = Top(module="unit", ports=ports, board=load_board(board), controls=())
    assert not top.wrapped and top.own_luts == top.own_ffs == 0
    unit = "module unit(input rx, output tx, led); assign tx = ~rx; assign led = rx; endmodule\n"
    script = ["read_verilog d.v", "hierarchy -top board_top", "proc", "flatten", "opt"]
    script += ["tee -o out eval -set rx 1 -show tx -show led"]
    out = run_yosys("d.v", top.text() + unit, script, "out", task="evaluate the top module")
    assert "\\tx = 1'0" in out and f"\\led = 1'{lit}" in out


@pytest.mark.parametrize(
    "port",
    [
        WrapperPort("rx", 1, True),
        WrapperPort("tx", 1, False),
        WrapperPort("led", 9, True),
        WrapperPort("x", 1, True),
    ],
)
def test_other_ports_get_the_wrapper(port):
    top = Top(module="unit", ports=[port], board=load_board("ulx3s"), controls=())
    assert top.wrapped and set(top.pins) == {"rx", "tx"}


def test_the_wrapper_keeps_the_whole_unit():
    """The unit under the wrapper takes the cells that it takes alone, and the wrapper its own."""
    unit = variants("intdot", {"k": [2]})[0]
    alone = mapping.resources(unit, "ice40")
    work = design(unit, load_board("icebreaker"))
    wrapped, _ = synth(work)
    check_fit(wrapped, work)
    # Registers of the unit that repeat the next bit of the chain are merged with it.
    assert work.own_ffs < wrapped.ff <= alone.ff + work.own_ffs
    assert abs(wrapped.lut - work.own_luts - alone.lut) <= 0.05 * alone.lut
    assert alone.lut > 150
