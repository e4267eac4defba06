"""Pieces behind their shells: the same bits as one design, also with combinational paths."""

import re

import numpy as np
import pytest

from vitruvian.sim import rtl
from vitruvian.sim.rtl import partition as pieces
from vitruvian.sim.rtl.once_per_cycle import Shell, can_be_wrapped

# A stage with a registered path, a combinational path from x, and a counter; three form a chain.
STAGE = """
module stage(x, y, wide, last, clk, rst);
  input [6:0] x;
  wire [6:0] x;
  output [6:0] y;
  wire [6:0] y;
  input [69:0] wide;
  wire [69:0] wide;
  output [69:0] last;
  wire [69:0] last;
  input clk;
  wire clk;
  input rst;
  wire rst;
  reg [6:0] held = 7'h3;
  reg [69:0] count = 0;
  always @(posedge clk)
    if (rst) held <= 7'h3;
    else held <= x + held;
  always @(posedge clk)
    if (rst) count <= 0;
    else count <= count + wide;
  assign y = held ^ x;
  assign last = count + {wide[34:0], wide[69:35]};
endmodule
"""
TOP = """
module top(x, y, wide, last, clk, rst);
  input [6:0] x;
  output [6:0] y;
  input [69:0] wide;
  output [69:0] last;
  input clk;
  input rst;
  wire [6:0] a, b;
  wire [69:0] c, d;
  stage first (.x(x), .y(a), .wide(wide), .last(c), .clk(clk), .rst(rst));
  stage second (.x(a), .y(b), .wide(c), .last(d), .clk(clk), .rst(rst));
  stage third (.x(b), .y(y), .wide(d), .last(last), .clk(clk), .rst(rst));
endmodule
"""


def outputs(monkeypatch, text: str, *, latency: int, smallest: int) -> dict[str, np.ndarray]:
    monkeypatch.setattr(pieces, "_MIN_TEXT", smallest)
    model = rtl.compile_verilog(f"// {smallest}\n{text}", latency=latency)
    rng = np.random.default_rng(4)
    x = rng.integers(0, 128, 2000, dtype=np.uint8)
    wide = rng.integers(0, 1 << 63, (2000, 2), dtype=np.uint64) & np.array([2**64 - 1, 63], "u8")
    x[np.arange(2000) % 500 < 250] = 5  # an input that is constant while the clock continues
    return model.run(x=x, wide=wide)


@pytest.mark.parametrize("latency", [0, 1])
def test_a_chain_of_pieces_is_one_design(monkeypatch, latency):
    text = STAGE + TOP
    assert len(pieces.split(text, "top")[1]) == 0
    whole = outputs(monkeypatch, text, latency=latency, smallest=10**9)
    cut = outputs(monkeypatch, text, latency=latency, smallest=100)
    assert len(pieces.split(text, "top")[1]) == 1
    assert len(set(whole["y"].tolist())) > 100
    for name in ("y", "last"):
        assert np.array_equal(whole[name], cut[name])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@(edge go) h0 <= i0;", "@* h0 = i0;"),  # registers see inputs of the next cycle
        ("(edge clk)", "(posedge clk)"),
    ],
)
def test_a_faulty_shell_is_noticed(monkeypatch, old, new):
    whole = outputs(monkeypatch, STAGE + TOP, latency=0, smallest=10**9)
    original = Shell.__init__

    def start(self, name, text):
        original(self, name, text)
        assert old in self.design
        self.design = self.design.replace(old, new)

    monkeypatch.setattr(Shell, "__init__", start)
    marked = STAGE.replace(
        "\nendmodule", f"\n// {new}\nendmodule"
    )  # a different entry of the cache
    cut = outputs(monkeypatch, marked + TOP, latency=0, smallest=100)
    assert not np.array_equal(whole["y"], cut["y"])


@pytest.mark.parametrize("event", ["negedge clk", "posedge clk, posedge rst", "posedge other"])
def test_other_clocks_stay_in_the_design(monkeypatch, event):
    monkeypatch.setattr(pieces, "_MIN_TEXT", 100)
    text = STAGE.replace("posedge clk", event, 1) + TOP
    assert not can_be_wrapped(text) and pieces.split(text, "top") == (text, {})


def test_the_texts():
    shell = Shell("stage", STAGE)
    assert [(p.name, p.width) for p in shell.inputs] == [("x", 7), ("wide", 70), ("rst", 1)]
    assert [(p.name, p.width) for p in shell.outputs] == [("y", 7), ("last", 70)]
    assert "posedge" not in shell.design and shell.design.count("(edge clk)") == 2
    assert re.search(r"always @\(posedge clk\) the_ticks", shell.wrapper)
    none = Shell("stage", STAGE.replace("[6:0] x", "[-1:0] x"))  # what Yosys writes for no bits
    assert none.inputs[0].width == 2 and "h0 <= i0" in none.design
    free = "module m(a, b);\n  input a;\n  output [2:0] b;\n  assign b = {3{a}};\nendmodule\n"
    assert "posedge" not in Shell("m", free).wrapper


# A piece that comes to rest: a shift register, and a bit that changes with every edge and is seen
# only while x is 1. So it has two states at rest, and the number of edges counts.
RESTING = """
module stage(x, y, clk, rst);
  input [6:0] x;
  wire [6:0] x;
  output [6:0] y;
  wire [6:0] y;
  input clk;
  wire clk;
  input rst;
  wire rst;
  reg [6:0] a = 0, b = 0, c = 0;
  reg turn = 0;
  always @(posedge clk)
    if (rst) begin a <= 0; b <= 0; c <= 0; turn <= 0; end
    else begin a <= x; b <= a + 1; c <= b ^ {c[5:0] & 6'h2, 1'h0}; turn <= ~turn; end
  assign y = c ^ ((x == 1) ? {turn, 6'h0} : 7'h0);
endmodule
module top(x, y, clk, rst);
  input [6:0] x;
  output [6:0] y;
  input clk;
  input rst;
  wire [6:0] a, b;
  stage first (.x(x), .y(a), .clk(clk), .rst(rst));
  stage second (.x(a), .y(b), .clk(clk), .rst(rst));
  stage third (.x(b), .y(y), .clk(clk), .rst(rst));
endmodule
"""


@pytest.mark.parametrize("latency", [0, 1])
def test_a_piece_at_rest_goes_on_as_if_it_had_been_evaluated(monkeypatch, latency):
    rng = np.random.default_rng(5)
    runs = [(int(rng.integers(4)), int(rng.integers(1, 40))) for _ in range(300)]
    x = np.concatenate([np.full(length, value, np.uint8) for value, length in runs])
    found = []
    for smallest in (10**9, 100):
        monkeypatch.setattr(pieces, "_MIN_TEXT", smallest)
        assert len(pieces.split(RESTING, "top")[1]) == (smallest == 100)
        model = rtl.compile_verilog(f"// {smallest}\n{RESTING}", latency=latency)
        found.append(model.run(x=x))
    assert len(set(found[0].tolist())) > 4
    assert np.array_equal(*found)


def test_the_number_of_edges_at_rest_counts(monkeypatch):
    """A piece that loses an edge at rest is found by the comparison above."""
    from vitruvian.sim.rtl import once_per_cycle

    wrong = once_per_cycle._DRIVER.replace("% 2 == 0) p.edge();", "% 2 == 1) p.edge();")
    assert wrong != once_per_cycle._DRIVER
    monkeypatch.setattr(once_per_cycle, "_DRIVER", wrong)
    with pytest.raises(AssertionError, match="array_equal"):
        # Another text, because the pieces of the right driver are in the cache.
        monkeypatch.setitem(globals(), "RESTING", RESTING.replace("7'h0", "7'h00"))
        test_a_piece_at_rest_goes_on_as_if_it_had_been_evaluated(monkeypatch, 1)
