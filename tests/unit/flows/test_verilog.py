"""The text has the names of its source, legal identifiers, and the operators of the source."""

import re
from typing import TYPE_CHECKING

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.flows import verilog
from vitruvian.flows.netlist import fold
from vitruvian.flows.netlist import write as netlist
from vitruvian.flows.netlist.keywords import KEYWORDS
from vitruvian.flows.synth import SynthesisError
from vitruvian.hdl.elaborate import to_rtlil


class Operators(wiring.Component):
    """A unit with every operator that Amaranth has, signed and unsigned, on few bits."""

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        c: Signal
        s: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(4), "b": In(4), "c": In(signed(3)), "s": In(2), "d": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, c, s = self.a, self.b, self.c, self.s
        inside = Signal(16, name="inside")
        with m.Switch(s):
            with m.Case(0):
                m.d.comb += inside.eq(Cat(a + c, (a - b)[1:4], a * b, c * c, -c))
            with m.Case("1-"):
                m.d.comb += inside.eq(Cat(a.as_signed() >> s, c >> s, a << s, c < 0, a >= b))
                with m.If(a == b):
                    m.d.comb += inside[3:9].eq(Mux(s[0], a ^ c, ~b))
                with m.Elif(c.any() & ~a[2]):
                    m.d.comb += inside[4].eq(a.xor())
            with m.Default():
                m.d.comb += inside.eq(Cat(a.bit_select(s, 2), a.word_select(s[0], 2), a.all()))
        m.d.comb += self.d.eq(inside + Cat(c, a & 6, b | 5) + c * a.as_signed())
        return m


class NoBits(wiring.Component):
    """A unit with an operator of no bits, and with a carry that only unread bits come from."""

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(4), "b": In(4), "d": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        carry, total = Signal(4), Signal(4)
        m.d.comb += [
            carry.eq(Cat(self.a[:0] & self.b[:0], self.a & self.b)),
            total.eq(Cat(self.a[0], carry[3] | self.b[3])),
            self.d.eq(Cat(total[0], self.a[1:])),
        ]
        return m


def proof(rtlil: str, text: str) -> None:
    """Raise SynthesisError unless the text computes what the RTLIL does, for every input."""
    (top,) = re.findall(r"attribute \\top 1\nmodule \\(\S+)", rtlil)
    gold = rtlil.replace(f"module \\{top}", "module \\gold").replace("\\top 1", "\\keep 1")
    script = ["read_verilog gate.v", "prep -flatten", f"rename {top} gate", "write_rtlil gate.il"]
    gate = verilog.run_yosys("gate.v", text, script, "gate.il", task="read the text")
    script = [
        *("read_rtlil both.il", "proc", "opt_clean", "miter -equiv -flatten gold gate miter"),
        *("hierarchy -top miter", "sat -verify -prove trigger 0 miter", "write_rtlil done.il"),
    ]
    verilog.run_yosys("both.il", gold + gate, script, "done.il", task="prove that both are equal")


def test_every_operator_is_written_as_it_is():
    rtlil = to_rtlil(Operators())
    text = netlist.verilog(verilog._readable(rtlil, "top", []), "top", ["a", "b", "c", "s", "d"])
    proof(rtlil, text)


def test_operators_without_bits_are_left_out():
    rtlil = to_rtlil(NoBits())
    proof(rtlil, netlist.verilog(verilog._readable(rtlil, "top", []), "top", ["a", "b", "d"]))


@pytest.mark.parametrize(
    ("old", "new"), [(" + ", " - "), (">>> ", ">> "), ("~b", "b"), ("$signed", ""), ("<", "<=")]
)
def test_the_proof_fails_on_a_changed_text(old: str, new: str):
    rtlil = to_rtlil(Operators())
    text = netlist.verilog(verilog._readable(rtlil, "top", []), "top", ["a", "b", "c", "s", "d"])
    assert old in text
    with pytest.raises(SynthesisError):
        proof(rtlil, text.replace(old, new))


def test_keywords_get_another_name():
    text = netlist.verilog(verilog._readable(to_rtlil(Operators()), "top", []), "top", [])
    assert "inside_v" in text and not re.search(r"\binside\b", text)
    assert {"inside", "module", "logic"} <= KEYWORDS and "like" not in KEYWORDS


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("negative", [False, True])
def test_a_value_is_extended_like_a_number(width: int, negative: bool):
    """Compare with Python's integers for every value."""
    for value in range(1 << width):
        sig = fold.extended(fold.constant(value, width), 5, negative)
        sign = value >> width - 1 & negative
        assert fold.number(sig) == (value - (sign << width)) % 32
