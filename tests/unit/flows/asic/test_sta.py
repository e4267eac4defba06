"""Static timing agrees with sums done by hand on a library with linear delays."""

import numpy as np
import pytest

from vitruvian.flows.asic import liberty, sta
from vitruvian.flows.asic.liberty import LibertyError

# Every delay is a + b * load + c * slew, so that interpolation is exact everywhere.
INV = (10.0, 2.0, 0.5)  # a ps, b ps/fF, c
CLOCK_TO_Q = (30.0, 1.0, 0.0)
SETUP = 7.0
SLEW = (4.0, 3.0, 0.0)
CAP = {"INV.A": 1.5, "DFF.D": 1.1}


def plane(kind: str, a: float, b: float, c: float) -> str:
    rows = ", ".join(
        '"' + ", ".join(f"{a + b * load + c * slew}" for load in (0, 100)) + '"'
        for slew in (0, 100)
    )
    axes = 'index_1 ("0, 100"); index_2 ("0, 100");'
    return f"{kind} (t) {{ {axes} values ({rows}); }}"


def both(delay: tuple[float, ...], slew: tuple[float, ...]) -> str:
    parts = []
    for edge in ("rise", "fall"):
        parts += [plane(f"cell_{edge}", *delay), plane(f"{edge}_transition", *slew)]
    return "\n".join(parts)


LIBRARY = f"""
library (hand) {{
  /* comment */
  time_unit : "1ps"; capacitive_load_unit (1, ff);
  lu_table_template (t) {{ variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 1"); }}
  cell (INV) {{ area : 0.5;
    pin (A) {{ direction : input; capacitance : {CAP["INV.A"]}; }}
    pin (Y) {{ direction : output; function : "!A";
      timing () {{ related_pin : "A"; timing_sense : negative_unate; {both(INV, SLEW)} }} }} }}
  cell (BUF_X4) {{ area : 1.0;
    pin (A) {{ direction : input; capacitance : 3.0; }}
    pin (Z) {{ direction : output; function : "A";
      timing () {{ related_pin : "A"; timing_sense : positive_unate;
        {both((20.0, 0.25, 0.0), (2.0, 0.5, 0.0))} }} }} }}
  cell (DFF) {{ area : 4.0; ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    pin (D) {{ direction : input; capacitance : {CAP["DFF.D"]};
      timing () {{ related_pin : "CK"; timing_type : setup_rising;
        {plane("rise_constraint", SETUP, 0, 0)} {plane("fall_constraint", SETUP, 0, 0)} }} }}
    pin (CK) {{ direction : input; clock : true; capacitance : 0.9; }}
    pin (Q) {{ direction : output; function : "IQ";
      timing () {{ related_pin : "CK"; timing_type : rising_edge; {both(CLOCK_TO_Q, SLEW)} }} }} }}
}}
"""


@pytest.fixture(scope="module")
def library() -> liberty.Library:
    return liberty.parse(LIBRARY, name="hand")


def inverter(a: int, y: int) -> dict:
    return {"type": "INV", "connections": {"A": [a], "Y": [y]}}


def port(direction: str, *bits: int) -> dict:
    return {"direction": direction, "bits": list(bits)}


def test_chain_of_inverters(library: liberty.Library):
    """The path a -> INV -> INV -> INV -> y has a driver, three loads and three slews."""
    netlist = {
        "ports": {"a": port("input", 2), "y": port("output", 5)},
        "cells": {"u0": inverter(2, 3), "u1": inverter(3, 4), "u2": inverter(4, 5)},
        "netnames": {"a": [2], "first": [3], "second": [4], "y": [5]},
    }
    path = sta.analyse(netlist, library, load_ff=5.0).paths["input->output"]
    driver = 0.25 * CAP["INV.A"]  # beyond its unloaded 20 ps
    slew = 2.0 + 0.5 * CAP["INV.A"]
    first = 10 + 2 * CAP["INV.A"] + 0.5 * slew
    slew = 4.0 + 3.0 * CAP["INV.A"]
    second = 10 + 2 * CAP["INV.A"] + 0.5 * slew
    third = 10 + 2 * 5.0 + 0.5 * slew
    assert path.delay_ps == pytest.approx(driver + first + second + third)
    assert [step.net for step in path.steps] == ["first", "second", "y"]
    assert [step.edge for step in path.steps] in (
        ["fall", "rise", "fall"],
        ["rise", "fall", "rise"],
    )
    assert (path.start, path.end, path.setup_ps) == ("a", "y", 0.0)


def test_of_equal_paths_the_first_is_reported(library: liberty.Library):
    """The answer for two inverters side by side does not depend on which comes last."""
    netlist = {
        "ports": {
            "a": port("input", 2),
            "b": port("input", 3),
            "x": port("output", 4),
            "y": port("output", 5),
        },
        "cells": {"u0": inverter(2, 4), "u1": inverter(3, 5)},
        "netnames": {"a": [2], "b": [3], "x": [4], "y": [5]},
    }
    path = sta.analyse(netlist, library, load_ff=5.0).paths["input->output"]
    assert (path.start, path.end) == ("a", "x")


def test_registers_split_paths_into_classes(library: liberty.Library):
    """The path d -> DFF -> INV -> DFF -> q with one clock has three classes of path."""
    netlist = {
        "ports": {"clk": port("input", 2), "d": port("input", 3), "q": port("output", 6)},
        "cells": {
            "f0": {"type": "DFF", "connections": {"CK": [2], "D": [3], "Q": [4]}},
            "u0": inverter(4, 5),
            "f1": {"type": "DFF", "connections": {"CK": [2], "D": [5], "Q": [6]}},
        },
        "netnames": {},
    }
    paths = sta.analyse(netlist, library, load_ff=5.0).paths
    assert set(paths) == {"input->register", "register->register", "register->output"}
    assert paths["input->register"].delay_ps == pytest.approx(0.25 * CAP["DFF.D"] + SETUP)
    to_q = 30 + CAP["INV.A"]
    slew = 4 + 3 * CAP["INV.A"]
    inverted = 10 + 2 * CAP["DFF.D"] + 0.5 * slew
    assert paths["register->register"].delay_ps == pytest.approx(to_q + inverted + SETUP)
    assert paths["register->output"].delay_ps == pytest.approx(30 + 5.0)
    assert [step.kind for step in paths["register->register"].steps] == ["DFF", "INV"]


def test_wire_load_adds_capacitance_by_fanout():
    wires = """
      wire_load ("w") { capacitance : 2.0; resistance : 0; slope : 1.5;
        fanout_length (1, 1.0); fanout_length (3, 2.0); }
      default_wire_load : "w";"""
    text = LIBRARY.replace("/* comment */", wires)
    model = liberty.parse(text, name="wires").wire_load
    assert model is not None
    assert model.capacitance(np.array([0, 1, 2, 3, 5])).tolist() == [0, 2, 3, 4, 10]
    netlist = {
        "ports": {"a": port("input", 2), "y": port("output", 4)},
        "cells": {"u0": inverter(2, 3), "u1": inverter(3, 4)},
        "netnames": {},
    }
    without = sta.analyse(netlist, liberty.parse(LIBRARY, name="none")).delay_ps
    with_wires = sta.analyse(netlist, liberty.parse(text, name="wires")).delay_ps
    assert without is not None and with_wires is not None
    driver = 0.25 * 2 + 0.5 * 0.5 * 2  # delay and slew of the driver
    inner = 2 * 2 + 0.5 * 3 * 2  # the net between the inverters; the output has no pin, no wire
    assert with_wires - without == pytest.approx(driver + inner)


def test_constant_and_unreached_inputs_have_no_path(library: liberty.Library):
    netlist = {
        "ports": {"y": port("output", 3)},
        "cells": {"u0": {"type": "INV", "connections": {"A": ["1"], "Y": [3]}}},
        "netnames": {},
    }
    assert sta.analyse(netlist, library).delay_ps is None


def test_loop_and_unknown_cell_are_errors(library: liberty.Library):
    loop = {
        "ports": {},
        "cells": {"u0": inverter(2, 3), "u1": inverter(3, 2)},
        "netnames": {},
    }
    with pytest.raises(ValueError, match="combinational loop"):
        sta.analyse(loop, library)
    unknown = {"ports": {}, "cells": {"u": {"type": "NAND9", "connections": {}}}, "netnames": {}}
    with pytest.raises(LibertyError, match="'NAND9' must be in library 'hand'"):
        sta.analyse(unknown, library)
    with pytest.raises(LibertyError, match="driving cell must be in the library"):
        sta.analyse(loop, library, driving_cell="BUF_X9")


def test_a_table_interpolates_and_extends():
    table = liberty.LibertyTable(
        np.array([0.0, 1.0, 3.0]),
        np.array([0.0, 2.0]),
        np.array([[0.0, 2.0], [1.0, 3.0], [3.0, 5.0]]),
    )
    for slew, load in ((0.5, 1.0), (2.0, 0.5), (4.0, 3.0), (-1.0, -1.0)):
        assert table(slew, load) == pytest.approx(slew + load)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module x; endmodule", "must be a liberty file that starts with"),
        ("library (x) { cell (y) { area : 1; }", "must be closed by"),
        ("library (x) { }", "at least one cell with an area"),
        ("library (x) {\n  cell (y) { ) }\n}", "line 2: liberty statement expected, not '\\)'"),
        ('library (x) { time_unit : "1h"; cell (y) { area : 1; } }', "time_unit must be"),
        ("library (x) { cell (y) { area : big; } }", "missing or malformed"),
    ],
)
def test_text_that_is_not_liberty_is_refused(text: str, message: str):
    with pytest.raises(LibertyError, match=message):
        liberty.parse(text, name="bad.lib")


def test_units_are_converted():
    text = LIBRARY.replace('"1ps"', '"0.5ns"').replace("(1, ff)", "(2, pf)")
    cell = liberty.parse(text, name="x").cells["INV"]
    assert cell.caps["A"] == (3000.0, 3000.0)
    assert cell.arcs[0].delay(0.0, 0.0) == pytest.approx(5000.0)


def flip_flop(d: int, q: int) -> dict:
    return {"type": "DFF", "connections": {"D": [d], "CK": [9], "Q": [q]}}


def test_the_ends_of_a_path_are_signals_of_the_rtl(library: liberty.Library):
    """Regression: the ends were names such as ``$auto$ff.cc:337:slice$5686.D``."""
    names = [f"$auto$ff.cc:337:slice${n}" for n in range(3)]
    netlist = {
        "ports": {"clk": port("input", 9), "y": port("output", 7)},
        "cells": {
            names[0]: flip_flop(5, 3),  # bit 1 of a register of two bits
            "u": inverter(3, 4),
            names[1]: flip_flop(4, 5),  # stores the complement of count, which is 1 after a reset
            "v": inverter(5, 6),
            names[2]: flip_flop(6, 7),
        },
        "netnames": {"sum": [8, 3], "$abc$1$new": [4, 5], "count": [6], "y": [7]},
    }
    graph = sta.TimingGraph(netlist, library, "BUF_X4", 5.0)
    numbers = {name: number for number, (name, *_) in enumerate(graph.instances)}
    assert [graph._register(numbers[name]) for name in names] == ["sum[1]", "count", "y"]
    path = sta.analyse(netlist, library).paths["register->register"]
    assert {path.start, path.end} <= {"sum[1]", "count", "y"}
    # A register without any name of the RTL keeps the name of its cell.
    netlist["netnames"] = {}
    graph = sta.TimingGraph(netlist, library, "BUF_X4", 5.0)
    assert graph._register(numbers[names[0]]) == names[0]
