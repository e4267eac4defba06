"""Libraries with clock gates for tests: one has linear delays, one the built-in cells."""

from tests.unit.flows.asic.test_power import LIBRARY, clock_energy, internal
from tests.unit.flows.asic.test_sta import both, plane
from vitruvian.flows.asic.cells import writer

#: Area, capacitances of clock and enable (fF), and delay and slew of a gated clock (ps), as
#: a + b · load + c · slew.
AREA, CLOCK_CAP, ENABLE_CAP, MOST_FF = 2.0, 1.25, 1.1, 9.0
DELAY, SLEW = (9.0, 0.5, 0.0), (3.0, 0.25, 0.0)
SETUP, HOLD = 6.0, 2.0
#: Internal energy of a closed gate, fJ: rising edge, and falling edge by the enable behind it.
CLOSED_RISE, CLOSED_FALL = 0.4, (0.8, 1.6)
#: Clock to output, set-up and hold of the register by the slew of the clock, ps.
BY_SLEW, SETUP_BY_SLEW, REGISTER_HOLD = 0.3, 0.2, 3.0


def checks(kind: str, figure: float, by_slew: float = 0.0) -> str:
    tables = [plane(f"{edge}_constraint", figure, 0, by_slew) for edge in ("rise", "fall")]
    return f'timing () {{ related_pin : "CK"; timing_type : {kind}; {" ".join(tables)} }}'


def gate(name: str, size: int = 1) -> str:
    """Return a clock gate that drives ``size`` times as much."""
    delay = (DELAY[0], DELAY[1] / size, DELAY[2])
    slew = (SLEW[0], SLEW[1] / size, SLEW[2])
    return f"""
  cell ({name}) {{ area : {AREA + size - 1}; clock_gating_integrated_cell : latch_posedge;
    cell_leakage_power : 2.0;
    pin (CK) {{ direction : input; clock_gate_clock_pin : true; capacitance : {CLOCK_CAP};
      {clock_energy("!E & !GCK", CLOSED_FALL[0], CLOSED_RISE)}
      {clock_energy("E & !GCK", CLOSED_FALL[1], 0.0)} }}
    pin (E) {{ direction : input; clock_gate_enable_pin : true; capacitance : {ENABLE_CAP};
      {checks("setup_rising", SETUP)} {checks("hold_rising", HOLD)} }}
    pin (GCK) {{ direction : output; clock_gate_out_pin : true; state_function : "(CK & IQ)";
      max_capacitance : {MOST_FF * size};
      timing () {{ related_pin : "CK"; timing_sense : positive_unate; {both(delay, slew)} }}
      {internal("CK")} }} }}
"""


def _with_gates(text: str, *gates: str) -> str:
    end = text.rindex("}")
    return text[:end] + "".join(gates) + "}\n"


def _changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def hand() -> str:
    """Return the library of ``test_power`` with a clock gate, hold times and a buffer."""
    delay = both((12.0, 0.0, BY_SLEW), (1.0, 0.0, 0.0))
    text = _changed(LIBRARY, both((12.0, 0.0, 0.0), (1.0, 0.0, 0.0)), delay)
    old = f"{plane('rise_constraint', 1.0, 0, 0)} {plane('fall_constraint', 1.0, 0, 0)} }} }}"
    setups = [plane(f"{edge}_constraint", 1.0, 0, SETUP_BY_SLEW) for edge in ("rise", "fall")]
    new = f"{' '.join(setups)} }} {checks('hold_rising', REGISTER_HOLD)} }}"
    text = _changed(text, old, new)
    return _with_gates(text, gate("GATE"))


def built_in() -> str:
    """Return the built-in library with three sizes of a clock gate."""
    return _with_gates(writer.liberty(), *(gate(f"GATE_X{n}", n) for n in (1, 2, 4)))
