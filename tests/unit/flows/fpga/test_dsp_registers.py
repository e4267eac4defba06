"""Registers inside DSP blocks: mapped netlists before and after, simulated cell by cell."""

import json
from typing import Any

import numpy as np
import pytest

from vitruvian.flows.fpga import carry_chains, mapping
from vitruvian.flows.fpga.dsp_registers import absorb
from vitruvian.flows.fpga.netlist import changed
from vitruvian.flows.units import UNITS
from vitruvian.flows.verilog import emit
from vitruvian.flows.yosys import run_yosys
from vitruvian.golden.fp.intdot import int_dot
from vitruvian.hdl.catalogue.unit import Variant

K = 2
SEED = 16


def netlist_of(pipeline):
    """Return the netlist of an integer dot product on an ECP5, and its module."""
    unit = UNITS["intdot"]
    given = {"k": K, "pipeline": pipeline, "multiplier": "dsp"}
    variant = Variant(unit, unit.default(given))
    script = [
        "read_verilog unit.v",
        f"{mapping.FAMILIES['ecp5'].recipe} -top {variant.module}",
        "write_json netlist.json",
    ]
    text = emit.emit(variant)
    return run_yosys("unit.v", text, script, "netlist.json", task="map"), variant.module


class Simulation:
    """A netlist in which every net is an array of bits, one for each of many executions."""

    def __init__(self, netlist, top):
        self.module = json.loads(netlist)["modules"][top]
        self.cells = self.module["cells"]
        self.state: dict[str, Any] = {}

    def bit(self, net):
        if isinstance(net, str):
            return net == "1"
        if net not in self.nets:
            # Unused outputs have no driver here, so a missing one is an error.
            self.run(self.driver[net])
        return self.nets[net]

    def cycle(self, inputs):
        """Return the outputs of a cycle with these inputs, words by port, and clock once."""
        self.nets, self.driver = {}, {}
        for port, word in inputs.items():
            for n, net in enumerate(self.module["ports"][port]["bits"]):
                self.nets[net] = (word >> n) & 1 != 0
        for name, cell in self.cells.items():
            for port, nets in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    self.driver |= dict.fromkeys(nets, name)
        outputs = {
            port: sum(
                np.asarray(self.bit(net), dtype=np.int64) << n for n, net in enumerate(p["bits"])
            )
            for port, p in self.module["ports"].items()
            if p["direction"] == "output"
        }
        later = {name: self.clocked(name) for name in self.cells}
        self.state = {name: value for name, value in later.items() if value is not None}
        return outputs

    def clocked(self, name):
        """Return what a cell will hold after the clock."""
        cell = self.cells[name]
        if cell["type"] == "TRELLIS_FF":
            return self.bit(cell["connections"]["DI"][0])
        if cell["type"] != "MULT18X18D":
            return None
        operands = self.operands(cell)
        a, b = self.held(name, "INPUTA", operands)
        return {"INPUTA": operands, "OUTPUT": a * b}

    def operands(self, cell):
        """Return the signed operands at the pins of a multiplier."""
        words = []
        for side in "AB":
            bits = [self.bit(cell["connections"][f"{side}{n}"][0]) for n in range(18)]
            word = sum(np.asarray(x, dtype=np.int64) << n for n, x in enumerate(bits))
            assert cell["connections"][f"SIGNED{side}"] == ["1"]
            words.append(word - ((word >> 17) << 18))
        return words

    def held(self, name, side, value):
        """Return ``value``, or a register's content if the register is on."""
        if self.cells[name]["parameters"].get(f"REG_{side}_CLK", "NONE") == "NONE":
            return value
        assert self.cells[name]["connections"]["CE0"] == ["1"]
        zero: dict[str, Any] = {"INPUTA": (0, 0), "OUTPUT": 0}
        return self.state.get(name, zero)[side]

    def run(self, name):
        """Set the outputs of a cell."""
        cell = self.cells[name]
        c = {port: nets[0] for port, nets in cell["connections"].items() if nets}
        kind, given = cell["type"], cell["parameters"]
        if kind == "TRELLIS_FF":
            self.nets[c["Q"]] = self.state.get(name, False)
        elif kind == "LUT4":
            self.nets[c["Z"]] = self.look(given["INIT"], [self.bit(c[p]) for p in "ABCD"])
        elif kind == "CCU2C":
            carry = self.bit(c["CIN"])
            for n in "01":
                assert given[f"INJECT1_{n}"] == "NO"
                pins = [self.bit(c[f"{p}{n}"]) for p in "ABCD"]
                lut = self.look(given[f"INIT{n}"], pins)
                self.nets[c[f"S{n}"]] = lut ^ carry
                generate = self.look(given[f"INIT{n}"], [*pins[:2], False, False])
                carry = np.where(lut, carry, generate)
            self.nets[c["COUT"]] = carry
        else:
            assert kind == "MULT18X18D", kind
            a, b = self.held(name, "INPUTA", None) or self.operands(cell)
            product = self.held(name, "OUTPUT", None)
            product = a * b if product is None else product
            for n in range(36):
                if f"P{n}" in c:
                    self.nets[c[f"P{n}"]] = (product >> n) & 1 != 0

    def look(self, table, pins):
        """Return the entries of a look-up table."""
        index = sum(np.asarray(pin, dtype=np.int64) << n for n, pin in enumerate(pins))
        return (int(table, 2) >> index) & 1 != 0


def words(values, bits):
    return sum((values[:, n].astype(np.int64) & ((1 << bits) - 1)) << bits * n for n in (0, 1))


def check(netlist, top, pipeline, cycles=9, count=200):
    """Compare a netlist with golden in every cycle."""
    random = np.random.default_rng(SEED)
    a, b = random.integers(-128, 128, (2, cycles, count, K))
    c = random.integers(-(1 << 31), 1 << 31, (cycles, count))
    simulation = Simulation(netlist, top)
    found = [
        simulation.cycle({"a": words(x, 8), "b": words(y, 8), "c": z & 0xFFFFFFFF})["d"]
        for x, y, z in zip(a, b, c, strict=True)
    ]
    for t in range(cycles - pipeline):
        expected = int_dot(a[t], b[t], c[t])
        assert np.array_equal(found[t + pipeline].astype(np.uint32), expected.astype(np.uint32))


def switched_on(netlist, top):
    cells = json.loads(netlist)["modules"][top]["cells"].values()
    return [
        sorted(p[4:-4] for p, v in cell["parameters"].items() if v == "CLK0")
        for cell in cells
        if cell["type"] == "MULT18X18D"
    ]


def flip_flops(netlist, top):
    cells = json.loads(netlist)["modules"][top]["cells"].values()
    return sum(cell["type"] == "TRELLIS_FF" for cell in cells)


@pytest.mark.parametrize(
    ("pipeline", "registers", "moved"),
    [
        (1, [], 0),  # the only rank stands behind the sum
        (2, ["OUTPUT"], 2 * 16),
        (4, ["OUTPUT"], 2 * 16),
    ],
)
def test_blocks_take_up_the_registers_around_them(pipeline, registers, moved):
    netlist, top = netlist_of(pipeline)
    absorbed = changed(netlist, top, [absorb])
    assert switched_on(netlist, top) == [[], []]
    assert switched_on(absorbed, top) == [registers] * 2
    assert flip_flops(netlist, top) - flip_flops(absorbed, top) == moved
    check(netlist, top, pipeline)
    check(absorbed, top, pipeline)
    closed = changed(absorbed, top, [carry_chains.close])
    assert '"CIN": ["x"]' in closed
    check(closed, top, pipeline)


def test_the_simulation_notices_a_register_too_many():
    netlist, top = netlist_of(2)
    design = json.loads(changed(netlist, top, [absorb]))
    cell = next(x for x in design["modules"][top]["cells"].values() if x["type"] == "MULT18X18D")
    cell["parameters"]["REG_INPUTA_CLK"] = "CLK0"
    with pytest.raises(AssertionError):
        check(json.dumps(design), top, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"CEMUX": "CE"}},
        {"parameters": {"REGSET": "SET"}},
        {"connections": {"LSR": [2]}},
    ],
)
def test_registers_with_an_enable_a_reset_or_a_one_stay(change):
    netlist, top = netlist_of(2)
    design = json.loads(netlist)
    cells = design["modules"][top]["cells"].values()
    block = next(cell for cell in cells if cell["type"] == "MULT18X18D")
    register = next(
        cell
        for cell in cells
        if cell["type"] == "TRELLIS_FF" and cell["connections"]["DI"] == block["connections"]["P3"]
    )
    for group, values in change.items():
        register[group] |= values
    found = switched_on(changed(json.dumps(design), top, [absorb]), top)
    assert sorted(found) == [[], ["OUTPUT"]]


def test_a_product_that_is_also_used_at_once_stays():
    netlist, top = netlist_of(2)
    design = json.loads(netlist)
    module = design["modules"][top]
    block = next(c for c in module["cells"].values() if c["type"] == "MULT18X18D")
    module["ports"]["early"] = {"direction": "output", "bits": block["connections"]["P0"]}
    found = switched_on(changed(json.dumps(design), top, [absorb]), top)
    assert sorted(found) == [[], ["OUTPUT"]]
