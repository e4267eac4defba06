"""Names and lists of ports that need care when Yosys' Verilog is prepared for release."""

import re

import pytest

from vitruvian.flows import verilog
from vitruvian.flows.verilog_text import tidy


@pytest.mark.parametrize("count", [1, 20, 21, 45])
def test_a_list_of_any_number_of_ports_is_read(count: int):
    """Regression: Yosys breaks the list after 20 ports, and the next name had a line break."""
    ports = [f"p{n}" for n in range(count)]
    lines = [", ".join(ports[n : n + 20]) for n in range(0, count, 20)]
    declarations = "".join(f"  input {p};\n  wire {p};\n" for p in ports)
    listed = "\n, ".join(lines)
    text = tidy(f"module top({listed});\n{declarations}endmodule\n", {})
    assert re.findall(r"(?m)^  input  wire (p\d+),?$", text) == ports


def test_a_keyword_is_renamed_in_the_text_and_in_the_order():
    """Regression: a net named ``inside`` was escaped, which ended the declarations too early."""
    body = "module top();\n  wire \\inside ;\n  wire inside_v;\n  assign inside_v = \\inside ;\n"
    text, wires = verilog._without_keywords(body, {"top": ["inside", "inside_v"]})
    assert "\\" not in text and "assign inside_v = inside_v_v;" in text
    assert wires == {"top": ["inside_v_v", "inside_v"]}
