"""Equal modules are emitted once, and the design keeps its function."""
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

import numpy as np
from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.sim import rtl
from vitruvian.sim.rtl.emit import to_rtlil, to_verilog


class Cell(wiring.Component):
    """A unit that adds a constant; its output uses ports that Amaranth numbers by itself."""

    def __init__(self, constant: int):
        self.constant = constant
        super().__init__({"a": In(8), "d": Out(8)})

    def elaborate(self, platform):
        m = Module()
        total = (self.a + self.constant)[:8]
        m.d.comb += self.d.eq(Cat(total[:4], total[4:] ^ 5))
        return m


class Pair(wiring.Component):
    """Two cells in series."""

    def __init__(self, constants: tuple[int, int]):
        self.constants = constants
        super().__init__({"a": In(8), "d": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Cell(self.constants[0])
        m.submodules.second = second = Cell(self.constants[1])
        m.d.comb += [first.a.eq(self.a), second.a.eq(first.d), self.d.eq(second.d)]
        return m


class Array(wiring.Component):
    """Several pairs in parallel, of which the last one differs."""

    a: In(data.ArrayLayout(8, 5))
    d: Out(data.ArrayLayout(8, 5))

    def elaborate(self, platform):
        m = Module()
        for i in range(5):
            m.submodules[f"pair{i}"] = pair = Pair((1, 2) if i < 4 else (2, 1))
            m.d.comb += [pair.a.eq(self.a[i]), self.d[i].eq(pair.d)]
        return m


def test_equal_modules_once():
    text = to_rtlil(Array())
    # Of 16 modules these remain: the top, two kinds of pairs, and the two cells of each pair. The
    # second cell differs because Amaranth splits its port like the output of the first one.
    assert text.count("\nmodule ") == 7
    assert text == to_rtlil(Array())
    assert to_verilog(Array()).count("endmodule") == 7


def test_the_design_is_the_same():
    a = np.random.default_rng(1).integers(0, 256, (1000, 5))

    def cell(x, constant):
        return ((x + constant) ^ 0x50) & 255

    expected = cell(cell(a, 1), 2)
    expected[:, 4] = cell(cell(a[:, 4], 2), 1)
    np.testing.assert_array_equal(rtl.compile(Array()).run(a=a), expected)
