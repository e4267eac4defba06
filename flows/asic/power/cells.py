"""Read from a liberty file what power needs: functions, registers, internal energy and leakage.

Energies are converted to femtojoules and leakage to nanowatts. The unit of energy of a liberty file
is its unit of capacitance times the square of its unit of voltage.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from vitruvian.common.files import read_whole
from vitruvian.flows.asic.liberty import ClockGate, LibertyTable, clock_gate, read_table, units
from vitruvian.flows.asic.liberty_text import MOST_BYTES, Group, LibertyError, parse_groups

_WATTS = {"mW": 1e6, "uW": 1e3, "nW": 1.0, "pW": 1e-3}
_VOLTS = {"V": 1.0, "mV": 1e-3}


@dataclass(frozen=True)
class InternalEnergy:
    """The energy in fJ of one edge (rise = 1, fall = 0) of a pin, by slew and load.

    ``source`` is the input that causes the edge of an output, and empty for an input. ``when`` is
    the condition on the other pins, and empty if there is none.
    """

    pin: str
    source: str
    when: str
    edge: int
    table: LibertyTable


@dataclass(frozen=True)
class RegisterFunction:
    """The state of a flip-flop: names of the state and its complement, and the expressions."""

    state: str
    complement: str
    next_state: str
    clocked_on: str
    has_reset: bool


@dataclass(frozen=True)
class PowerCell:
    """Functions, energies and leakage of a library cell."""

    name: str
    outputs: dict[str, str]
    register: RegisterFunction | None
    energies: tuple[InternalEnergy, ...]
    leakage_nw: float
    gate: ClockGate | None = None

    @property
    def is_logic(self) -> bool:
        """Whether the outputs are functions of the inputs: no register and no clock gate."""
        return self.register is None and self.gate is None


@dataclass(frozen=True)
class PowerLibrary:
    """The cells of a library; ``has_internal`` is False if no cell has tables of energy."""

    volts: float
    cells: dict[str, PowerCell]
    has_internal: bool
    has_leakage: bool


def load(path: Path) -> PowerLibrary:
    """Read the liberty file ``path``.

    Raises
    ------
    LibertyError
        If the file is not valid liberty or states no voltage.
    """
    text = read_whole(path, MOST_BYTES).decode("utf-8", errors="replace")
    return parse(text, name=str(path))


def parse(text: str, *, name: str) -> PowerLibrary:
    """Parse liberty ``text``; ``name`` identifies the file in error messages.

    Raises
    ------
    LibertyError
        If the text is not valid liberty or states no voltage.
    """
    group = parse_groups(text, name, power=True).groups[0]
    try:
        return _library(group, name)
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise LibertyError(f"{name}: liberty attribute missing or malformed: {error}") from None


def _library(group: Group, name: str) -> PowerLibrary:
    if "nom_voltage" not in group.attributes:
        raise LibertyError(f"{name} must state nom_voltage, without which there is no energy")
    volt = _unit(group, "voltage_unit", "1V", _VOLTS)
    watt = _unit(group, "leakage_power_unit", "1nW", _WATTS)
    time, load_ff = units(group)
    templates = {
        t.arguments[0]: t for t in group.groups if t.name.endswith("lut_template") and t.arguments
    }
    default = float(group.attributes.get("default_cell_leakage_power", 0.0))
    cells = {}
    for cell in group.all("cell"):
        if "area" in cell.attributes:
            energies = tuple(_energies(cell, templates, time, load_ff, load_ff * volt * volt))
            cells[cell.arguments[0]] = PowerCell(
                name=cell.arguments[0],
                outputs={
                    pin.arguments[0]: str(pin.attributes.get("function", ""))
                    for pin in cell.all("pin")
                    if pin.attributes.get("direction") == "output"
                },
                register=_register(cell),
                energies=energies,
                leakage_nw=_leakage(cell, default) * watt,
                gate=clock_gate(cell),
            )
    return PowerLibrary(
        volts=float(group.attributes["nom_voltage"]) * volt,
        cells=cells,
        has_internal=any(cell.energies for cell in cells.values()),
        has_leakage=any(cell.leakage_nw for cell in cells.values()),
    )


def _unit(group: Group, attribute: str, default: str, known: dict[str, float]) -> float:
    text = str(group.attributes.get(attribute, default))
    unit = re.fullmatch(r"([\d.]+)\s*(\w+)", text)
    if unit is None or unit[2] not in known:
        raise LibertyError(f"{attribute} must be a number of {', '.join(known)}, not {text!r}")
    return float(unit[1]) * known[unit[2]]


def _leakage(cell: Group, default: float) -> float:
    """Return the stated leakage of a cell, or else the mean of that of its states."""
    if "cell_leakage_power" in cell.attributes:
        return float(cell.attributes["cell_leakage_power"])
    states = [float(state.attributes["value"]) for state in cell.all("leakage_power")]
    return sum(states) / len(states) if states else default


def _register(cell: Group) -> RegisterFunction | None:
    for ff in cell.all("ff"):
        return RegisterFunction(
            state=ff.arguments[0],
            complement=ff.arguments[1],
            next_state=str(ff.attributes["next_state"]),
            clocked_on=str(ff.attributes["clocked_on"]),
            has_reset=bool(ff.attributes.keys() & {"clear", "preset"}),
        )
    return None


def _energies(
    cell: Group, templates: dict[str, Group], time: float, load_ff: float, energy_fj: float
) -> list[InternalEnergy]:
    found = []
    for pin in cell.all("pin"):
        for power in pin.all("internal_power"):
            sources = str(power.attributes.get("related_pin", "")).split() or [""]
            for part in power.groups:
                for edge in {"fall_power": (0,), "rise_power": (1,), "power": (0, 1)}.get(
                    part.name, ()
                ):
                    table = read_table(part, templates, time, load_ff)
                    # The reader scales values as times.
                    values = table.values * (energy_fj / time)
                    table = LibertyTable(table.slews, table.loads, values)
                    when = str(power.attributes.get("when", ""))
                    found += [
                        InternalEnergy(pin.arguments[0], source, when, edge, table)
                        for source in sources
                    ]
    return found
