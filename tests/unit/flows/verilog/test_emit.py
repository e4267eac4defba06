"""The text has the names of its source, legal identifiers, and the operators of the source."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.flows.verilog import emit
from vitruvian.flows.verilog.netlist import fold
from vitruvian.flows.verilog.netlist import write as netlist
from vitruvian.flows.verilog.netlist.express import literal
from vitruvian.flows.verilog.netlist.keywords import KEYWORDS
from vitruvian.flows.verilog.netlist.order import Node, ordered, ranks
from vitruvian.flows.verilog.netlist.source import part_of
from vitruvian.flows.verilog.netlist.wrap import WIDTH, wrapped
from vitruvian.flows.yosys import SynthesisError, run_yosys
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


class Lanes(wiring.Component):
    """A unit with three equal lanes, and with a fourth one that differs."""

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        c: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(12), "b": In(12), "c": In(2), "d": Out(12)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        names = ["sum", "signed", "mixed", "0_part", "last", *(f"more{step}" for step in range(6))]
        for k in range(4):
            a, b = self.a.word_select(k, 3), self.b.word_select(k, 3)
            total = a
            for step, name in enumerate(names):
                part = Signal(3, name=f"lane{k}_{name}")
                with m.If(a[step % 3]):
                    m.d.comb += part.eq((a & step) ^ (b | step) ^ (a << 1))
                with m.Else():
                    m.d.comb += part.eq((a | b) - step if k < 3 else a & b)
                total = total ^ part
            m.d.comb += self.d.word_select(k, 3).eq(total + self.c)
        return m


class Shifters(wiring.Component):
    """A unit with a shifter for each word, as a sum has for its terms."""

    if TYPE_CHECKING:
        a: Signal
        by: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(40), "by": In(20), "d": Out(40)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for k in range(5):
            word, distance = self.a.word_select(k, 8), self.by.word_select(k, 4)
            for step in range(4):
                shifted = Signal(8, name=f"align{k}_by{1 << step}")
                less = Signal(8, name=f"align{k}_less{1 << step}")
                filled = Signal(8, name=f"align{k}_filled{1 << step}")
                m.d.comb += [
                    shifted.eq(Mux(distance[step], word >> (1 << step), word)),
                    less.eq(shifted - 3),
                    filled.eq(shifted ^ (less << 1)),
                ]
                word = filled
            m.d.comb += self.d.word_select(k, 8).eq(word)
        return m


class Codes(wiring.Component):
    """A unit that compares, chooses and assigns codes of two enumerations of one name."""

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        x: Signal
        d: Signal

    class Kind(enum.Enum, shape=2):
        """The first enumeration."""

        ZERO = 0
        SAME = 1
        LAST_ONE = 3

    def __init__(self):
        other = enum.Enum("Kind", {"LAST_ONE": 1, "FIRST": 0})  # pyright: ignore
        super().__init__({"a": In(self.Kind), "b": In(other), "x": In(4), "d": Out(6)})
        self.other = other

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chosen = Signal(self.Kind, name="chosen")
        with m.Switch(self.x[:2]):
            with m.Case(0):
                m.d.comb += chosen.eq(self.Kind.LAST_ONE)
            with m.Case(1):
                m.d.comb += chosen.eq(self.a)
        with m.Switch(self.a):
            with m.Case(self.Kind.SAME):
                m.d.comb += self.d[:3].eq(self.x)
            with m.Case(self.Kind.LAST_ONE):
                m.d.comb += self.d[:3].eq(self.x[1:])
        m.d.comb += self.d[3].eq(chosen == self.Kind.SAME)
        m.d.comb += self.d[4].eq((self.b == self.other.LAST_ONE) & (chosen != self.Kind.ZERO))
        return m


class Pipeline(wiring.Component):
    """A unit with two ranks of registers, the second of which can wait."""

    if TYPE_CHECKING:
        a: Signal
        go: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(4), "go": In(1), "d": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, second, third = (Signal(4, name=f"s{k}_value") for k in (1, 2, 3))
        early, late = Signal(4, name="early"), Signal(4, name="late")
        m.d.comb += [early.eq(self.a * 3), late.eq(second - 5), self.d.eq(late ^ third)]
        m.d.sync += first.eq(early)
        with m.If(self.go):
            m.d.sync += [second.eq(first + 1), third.eq(first ^ 2)]
        return m


def proof(rtlil: str, text: str) -> None:
    """Raise SynthesisError unless the text computes what the RTLIL does, for every input."""
    (top,) = re.findall(r"attribute \\top 1\nmodule \\(\S+)", rtlil)
    gold = rtlil.replace(f"module \\{top}", "module \\gold").replace("\\top 1", "\\keep 1")
    script = ["read_verilog gate.v", "prep -flatten", f"rename {top} gate", "write_rtlil gate.il"]
    gate = run_yosys("gate.v", text, script, "gate.il", task="read the text")
    script = [
        *("read_rtlil both.il", "proc", "opt_clean", "miter -equiv -flatten gold gate miter"),
        *("hierarchy -top miter", "sat -verify -prove trigger 0 miter", "write_rtlil done.il"),
    ]
    run_yosys("both.il", gold + gate, script, "done.il", task="prove that both are equal")


def test_every_operator_is_written_as_it_is():
    rtlil = to_rtlil(Operators())
    text = netlist.verilog(emit._readable(rtlil, "top", []), "top", ["a", "b", "c", "s", "d"])
    proof(rtlil, text)


def test_operators_without_bits_are_left_out():
    rtlil = to_rtlil(NoBits())
    proof(rtlil, netlist.verilog(emit._readable(rtlil, "top", []), "top", ["a", "b", "d"]))


@pytest.mark.parametrize(
    ("old", "new"), [(" + ", " - "), (">>> ", ">> "), ("~b", "b"), ("$signed", ""), ("<", "<=")]
)
def test_the_proof_fails_on_a_changed_text(old: str, new: str):
    rtlil = to_rtlil(Operators())
    text = netlist.verilog(emit._readable(rtlil, "top", []), "top", ["a", "b", "c", "s", "d"])
    assert old in text
    with pytest.raises(SynthesisError):
        proof(rtlil, text.replace(old, new))


def lanes_text() -> str:
    return netlist.verilog(emit._readable(to_rtlil(Lanes()), "top", []), "top", list("abcd"))


def test_equal_lanes_are_instances_of_one_module():
    text = lanes_text()
    assert re.findall(r"(?m)^module (\w+)", text) == ["top", "top_lane"]
    assert re.findall(r"(?m)^  top_lane (\w+) \(", text) == ["lane0", "lane1", "lane2"]
    assert "// lanes lane0, lane1 and lane2" in text
    top, lane = text.split("endmodule")[:2]
    assert "lane3_mixed" in top and "lane0_mixed" not in top and "lane0_mixed" not in lane
    # The names in the lane have no number of a lane; keywords and digits are changed.
    assert {"sum", "signed_v", "mixed", "n0_part"} <= set(re.findall(r"\w+", lane))
    proof(to_rtlil(Lanes()), text)


def test_the_proof_fails_on_a_changed_lane():
    text = lanes_text()
    head, lane = text.split("module top_lane", 1)
    with pytest.raises(SynthesisError):
        proof(to_rtlil(Lanes()), f"{head}module top_lane{lane.replace(' - ', ' + ', 1)}")
    with pytest.raises(SynthesisError):
        proof(to_rtlil(Lanes()), text.replace("a[5:3]", "a[2:0]"))


def test_shifters_are_instances_on_short_lines():
    ports = ["a", "by", "d"]
    text = netlist.verilog(emit._readable(to_rtlil(Shifters()), "top", []), "top", ports)
    assert re.findall(r"(?m)^module (\w+)", text) == ["top", "top_align"]
    assert len(re.findall(r"(?m)^  top_align align\d \(\.\w+\(.*\);$", text)) == 5
    proof(to_rtlil(Shifters()), text)


def codes_text(*, plain: bool = False) -> str:
    rtlil = emit._readable(to_rtlil(Codes()), "top", [])
    return netlist.verilog(rtlil, "top", ["a", "b", "x", "d"], plain=plain)


def test_codes_of_enumerations_are_constants():
    text = codes_text()
    constants = re.findall(r"(?m)^  localparam (.*);$", text)
    assert {"[1:0] KIND_ZERO = 2'd0", "[1:0] KIND_SAME = 2'd1"} <= set(constants)
    assert "chosen_next = KIND_LAST_ONE;" in text or "chosen = KIND_LAST_ONE;" in text
    assert re.search(r"KIND_SAME: ", text) and "chosen == KIND_SAME" in text
    for constant in constants:
        name = constant.split("]")[-1].split()[0]
        assert len(re.findall(rf"\b{name}\b", text)) > 1, "a constant is declared in vain"
    proof(to_rtlil(Codes()), text)
    assert "localparam" not in codes_text(plain=True)


def test_the_proof_fails_on_a_wrong_constant():
    with pytest.raises(SynthesisError):
        proof(to_rtlil(Codes()), codes_text().replace("KIND_SAME = 2'd1", "KIND_SAME = 2'd2"))


def test_a_plain_text_has_the_order_of_the_netlist():
    """The recorded results of FPGA flows depend on it."""
    rtlil = to_rtlil(Lanes(), sources=True)
    text = netlist.verilog(emit._readable(rtlil, "top", []), "top", list("abcd"), plain=True)
    assert text.count("module top") == 1 and "lane2_mixed" in text
    assert not re.search(r"(?m)^ +//(?! Nothing else)", text) and "] =" not in text
    last = text.rindex("  reg [2:0]")
    assert last < text.index("  assign ") and last < text.index("  always")
    proof(to_rtlil(Lanes()), text)


def test_stages_follow_the_registers():
    rtlil = to_rtlil(Pipeline(), sources=True)
    ports = ["clk", "rst", "a", "go", "d"]
    text = netlist.verilog(emit._readable(rtlil, "top", []), "top", ports)
    places = [
        text.index(words)
        for words in (
            "// ==== Stage 1 of 3: from the inputs to register rank 1 ====",
            "// pipeline: A unit with two ranks of registers, the second of which can wait",
            "wire [3:0] early = ",
            "reg [3:0] s1_value;",
            "s1_value <= early;",
            "// ==== Stage 2 of 3: from register rank 1 to register rank 2 ====",
            "reg [3:0] s2_value;",
            "if (go)",
            "// ==== Stage 3 of 3: from register rank 2 to the outputs ====",
            "wire [3:0] late = ",
            "assign d = ",
        )
    ]
    assert places == sorted(places)
    # Without source locations there are stages but no names of parts.
    plain = netlist.verilog(emit._readable(to_rtlil(Pipeline()), "top", []), "top", ports)
    assert "// pipeline" not in plain and plain.count("// ==== Stage") == 3


def test_registers_in_loops_give_no_stages():
    def node(name: str, *reads: str, clocked: bool = False) -> Node:
        return Node(name, (name,), frozenset(reads), clocked=clocked)

    nodes = [
        node("next", "count", "enable"),
        node("count", "next", clocked=True),
        node("seen", "count", clocked=True),
        node("out", "seen", "enable"),
    ]
    rank, loops = ranks(nodes)
    assert rank == {"next": 1, "count": 1, "seen": 2, "out": 2} and loops == {"count"}


def test_statements_come_after_what_they_read_and_parts_stay_together():
    nodes = [
        Node("a1", ("a1",), frozenset({"x"}), part="a"),
        Node("b1", ("b1",), frozenset({"a1"}), part="b"),
        Node("a2", ("a2",), frozenset({"a1"}), part="a"),
        Node("b2", ("b2",), frozenset({"a2"}), part="b"),
    ]
    assert [node.key for node in ordered(nodes, set(), print)] == ["a1", "a2", "b1", "b2"]
    # Two instances that read each other: the nets of the first one are declared ahead, once.
    loop = [
        Node("use", ("use",), frozenset({"one"})),
        Node(1, ("one",), frozenset({"two"}), loose=True),
        Node(2, ("two",), frozenset({"one"}), loose=True),
    ]
    ahead: list[Node] = []
    assert [node.key for node in ordered(loop, set(), ahead.append)] == ["use", 2, 1]
    assert [node.key for node in ahead] == [1]


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("  assign d = a + b;", ["  assign d = a + b;"]),
        (
            "  assign d = {aaaaaaaa, bbbbbbbb, cccccccc, dddddddd};",
            ["  assign d = {", "    aaaaaaaa, bbbbbbbb,", "    cccccccc, dddddddd", "  };"],
        ),
        (
            "  wire x = (aaaaaaaa & bbbbbb) | cccccccc | ddd;",
            ["  wire x =", "    (aaaaaaaa & bbbbbb)", "    | cccccccc", "    | ddd;"],
        ),
        (
            "  wire x = aaaaaa ? bbbbbbb : cccccc ? dddddd : eeeeee;",
            ["  wire x =", "    aaaaaa ? bbbbbbb", "    : cccccc ? dddddd", "    : eeeeee;"],
        ),
        (
            "    if (aaaaaaaaaaaaaa & bbbbbbbbbb) begin",
            ["    if (", "      aaaaaaaaaaaaaa", "      & bbbbbbbbbb", "    ) begin"],
        ),
    ],
)
def test_long_statements_are_broken_at_operators(line: str, lines: list[str]):
    assert wrapped(line, 30) == lines


@pytest.mark.parametrize("width", [1, 255, 256, 257, 382, 1024])
@pytest.mark.parametrize("value", [0, -1, 0x1234_5678 << 300 | 5])
def test_a_constant_of_any_width_fits_into_lines(width: int, value: int):
    value &= (1 << width) - 1
    text = literal(value, width)
    assert max(map(len, wrapped(f"  assign d = {text};"))) <= WIDTH
    total = bits = 0
    if repeated := re.fullmatch(r"\{(\d+)\{1'b(.)\}\}", text):
        total, bits = int(repeated[2] * int(repeated[1]), 2), int(repeated[1])
    for size, base, digits in re.findall(r"(\d+)'([hb])(\w+)", "" if repeated else text):
        total = total << int(size) | int(digits, 16 if base == "h" else 2)
        bits += int(size)
    assert (total, bits) == (value, width)


def test_parts_of_the_source_are_described(tmp_path: Path):
    source = tmp_path / "vitruvian" / "hdl" / "unit.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        'class FastAdder:\n    """FastAdder of ``a`` · b: quick. More."""\n'
        "    def elaborate(self):\n        pass\n"
        '    def _build_first_row(self):\n        """Return the row\n        of x. And more."""\n'
    )
    assert part_of(f"{source}:4") == ("fast adder", "FastAdder of a * b", "hdl/unit.py")
    assert part_of(f"{source}:6") == ("first row", "the row of x", "hdl/unit.py")
    assert part_of(f"{source}:1") == ("", "", "hdl/unit.py")
    assert part_of("else/where/own.py:3") == ("", "", "own.py") and part_of("") == ("", "", "")


def test_keywords_get_another_name():
    text = netlist.verilog(emit._readable(to_rtlil(Operators()), "top", []), "top", [])
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


class Part(wiring.Component):
    """A unit whose output is a part of a wider value that an input chooses."""

    if TYPE_CHECKING:
        a: Signal
        s: Signal
        d: Signal

    def __init__(self):
        super().__init__({"a": In(32), "s": In(2), "d": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.d.eq(self.a.word_select(self.s, 8))
        return m


def test_an_output_is_no_wider_than_its_port():
    """A part was once a shift into the port itself, which was as wide as the value shifted."""
    rtlil = to_rtlil(Part())
    text = netlist.verilog(emit._readable(rtlil, "top", []), "top", ["a", "s", "d"])
    assert "output wire [7:0] d\n" in text and "assign d = d_shifted[7:0];" in text
    proof(rtlil, text)
