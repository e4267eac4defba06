"""Read a liberty file: areas, pin capacitances and the table-driven delays of every cell.

Only the data that synthesis and static timing need is kept. All figures are converted to
picoseconds, femtofarads and µm² here, so no other module needs to know the file's units.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole
from vitruvian.flows.asic.liberty_text import MOST_BYTES, Group, LibertyError, parse_groups

_NUMBER = re.compile(r"[\s,]+")
_TIME_PS = {"ns": 1e3, "ps": 1.0, "us": 1e6, "fs": 1e-3}


@dataclass(frozen=True)
class LibertyTable:
    """A look-up table.

    Its axes are input slew (ps) and load (fF); those of a set-up table are clock and data slew.
    """

    slews: np.ndarray
    loads: np.ndarray
    values: np.ndarray

    def __call__(self, slew: float, load: float) -> float:
        """Interpolate linearly in both directions; outside the table, extend the last segment."""
        slews, loads, values = self._lists
        i = min(max(bisect_right(slews, slew) - 1, 0), len(slews) - 2)
        j = min(max(bisect_right(loads, load) - 1, 0), len(loads) - 2)
        x = (slew - slews[i]) / (slews[i + 1] - slews[i])
        y = (load - loads[j]) / (loads[j + 1] - loads[j])
        low = values[i][j] + x * (values[i + 1][j] - values[i][j])
        high = values[i][j + 1] + x * (values[i + 1][j + 1] - values[i][j + 1])
        return low + y * (high - low)

    @cached_property
    def _lists(self) -> tuple[list[float], list[float], list[list[float]]]:
        """The axes and the values as lists, in which a single look-up is much faster."""
        return self.slews.tolist(), self.loads.tolist(), self.values.tolist()


@dataclass(frozen=True)
class Arc:
    """The delay in ps from an input edge to an output edge (rise = 1, fall = 0).

    ``kind`` is ``delay`` (logic), ``clock`` (clock to output), ``gate`` (clock to gated clock),
    ``setup`` or ``hold``. A set-up or hold arc has the data pin as its ``target``, a delay table
    indexed by (clock slew, data slew) and no ``slew`` table.
    """

    source: str
    target: str
    kind: str
    source_edge: int
    target_edge: int
    delay: LibertyTable
    slew: LibertyTable | None


@dataclass(frozen=True)
class ClockGate:
    """Pins of a cell that passes a clock while an enable is set.

    A latch in it takes the enable while the clock is low, so that only its value at the rising edge
    counts.
    """

    clock: str
    enable: str
    output: str


@dataclass
class LibertyCell:
    """A library cell.

    ``caps`` maps each input pin to its (fall, rise) capacitance in fF, and ``max_ff`` each output
    that has a limit to its largest load in fF. ``gate`` is set for a clock gate.
    """

    name: str
    area_um2: float
    caps: dict[str, tuple[float, float]]
    outputs: dict[str, str]
    arcs: list[Arc]
    clock: str | None
    is_latch: bool
    max_ff: dict[str, float] = field(default_factory=dict)
    gate: ClockGate | None = None


@dataclass(frozen=True)
class WireLoad:
    """A wire-load model: fF per unit of wire length, and the wire length for each fan-out."""

    ff_per_length: float
    slope: float
    lengths: tuple[tuple[int, float], ...]

    def capacitance(self, fanout: np.ndarray) -> np.ndarray:
        """Return the wire capacitance in fF of nets with ``fanout`` input pins each.

        Between the entries of the table the length is interpolated; beyond them it grows by
        ``slope`` for each further pin.
        """
        counts = np.array([count for count, _ in self.lengths] or [1], dtype=float)
        lengths = np.array([length for _, length in self.lengths] or [0.0])
        beyond = np.maximum(fanout - counts[-1], 0) * self.slope
        length = np.interp(fanout, counts, lengths) + beyond
        return np.where(fanout > 0, length * self.ff_per_length, 0.0)


@dataclass
class Library:
    """A parsed library in ps, fF and µm²; ``wire_load`` is the library's default model, if any."""

    name: str
    cells: dict[str, LibertyCell]
    wire_load: WireLoad | None


def load(path: Path) -> Library:
    """Read the liberty file ``path``.

    Raises
    ------
    LibertyError
        If the file is not valid liberty, or has no cells with an area.
    """
    try:
        data = read_whole(path, MOST_BYTES)
    except UserError as error:
        raise LibertyError(str(error)) from None
    if data.startswith(b"\x1f\x8b"):
        raise LibertyError(f"{path} must be a text file, not one compressed by gzip: unpack it")
    return parse(data.decode("utf-8", errors="replace"), name=str(path))


def parse(text: str, *, name: str) -> Library:
    """Parse liberty ``text``; ``name`` identifies the file in error messages.

    Raises
    ------
    LibertyError
        If the text is not valid liberty, or has no cells with an area.
    """
    root = parse_groups(text, name)
    try:
        return _library(root)
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        if isinstance(error, LibertyError):
            raise
        raise LibertyError(f"{name}: liberty attribute missing or malformed: {error}") from None


def units(group: Group) -> tuple[float, float]:
    """Return the picoseconds and the femtofarads of the units of a library."""
    unit = re.fullmatch(r"([\d.]+)\s*([a-z]+)", str(group.attributes.get("time_unit", "1ns")))
    if unit is None or unit[2] not in _TIME_PS:
        raise LibertyError(f"time_unit must be a number of {sorted(_TIME_PS)}")
    time = float(unit[1]) * _TIME_PS[unit[2]]
    amount, prefix = group.attributes.get("capacitive_load_unit", ["1", "pf"])
    return time, float(amount) * {"ff": 1.0, "pf": 1e3}[prefix.lower()]


def _library(root: Group) -> Library:
    # ``parse_groups`` accepts only a text that begins with its library.
    group = root.groups[0]
    time, load = units(group)
    templates = {
        t.arguments[0]: t for t in group.groups if t.name == "lu_table_template" and t.arguments
    }
    # A pin without a capacitance has the library's default.
    default = float(group.attributes.get("default_input_pin_cap", 0.0)) * load
    cells = {}
    for cell in group.all("cell"):
        if "area" in cell.attributes:
            cells[cell.arguments[0]] = _cell(cell, templates, time, load, default)
    if not cells:
        raise LibertyError("liberty file must hold at least one cell with an area")
    name = group.arguments[0] if group.arguments else ""
    return Library(name, cells, _wire_load(group, load))


def _wire_load(group: Group, load: float) -> WireLoad | None:
    default = group.attributes.get("default_wire_load")
    for wire in group.all("wire_load"):
        if wire.arguments[0] == default:
            lengths = sorted((int(n), float(x)) for n, x in wire.repeated["fanout_length"])
            return WireLoad(
                float(wire.attributes["capacitance"]) * load,
                float(wire.attributes["slope"]),
                tuple(lengths),
            )
    return None


def _cell(
    group: Group, templates: dict[str, Group], time: float, load: float, default: float
) -> LibertyCell:
    cell = LibertyCell(group.arguments[0], float(group.attributes["area"]), {}, {}, [], None, False)
    if not 0 <= cell.area_um2 < 1e9:
        raise ValueError(f"area of {cell.name} must be from 0 to 1e9, not {cell.area_um2}")
    cell.is_latch = bool(group.all("latch"))
    pins = group.all("pin") + [pin for bus in group.all("bus") for pin in bus.all("pin")]
    for pin in pins:
        name = pin.arguments[0]
        if pin.attributes.get("direction") == "output":
            cell.outputs[name] = str(pin.attributes.get("function", ""))
            if "max_capacitance" in pin.attributes:
                cell.max_ff[name] = float(pin.attributes["max_capacitance"]) * load
        else:
            whole = pin.attributes.get("capacitance")
            both = [pin.attributes.get(f"{edge}_capacitance", whole) for edge in ("fall", "rise")]
            fall, rise = (default if c is None else float(c) * load for c in both)
            cell.caps[name] = (fall, rise)
        if pin.attributes.get("clock") == "true":
            cell.clock = name
        for timing in pin.all("timing"):
            cell.arcs += _arcs(name, timing, templates, time, load)
    # Some libraries do not mark the clock pin; a clock-to-output arc identifies it.
    clocks = [arc.source for arc in cell.arcs if arc.kind == "clock"]
    if cell.clock is None and clocks and not cell.is_latch:
        cell.clock = clocks[0]
    cell.gate = clock_gate(group)
    if cell.gate is not None:
        cell.clock, cell.is_latch = cell.gate.clock, False
        cell.arcs = [
            replace(arc, kind="gate") if arc.target == cell.gate.output else arc
            for arc in cell.arcs
        ]
    return cell


def clock_gate(group: Group) -> ClockGate | None:
    """Return the pins of a clock gate for rising edges without a pin for tests, or None."""
    if group.attributes.get("clock_gating_integrated_cell") != "latch_posedge":
        return None
    roles = {
        role: pin.arguments[0]
        for pin in group.all("pin")
        for role in ("clock", "enable", "out")
        if pin.attributes.get(f"clock_gate_{role}_pin") == "true"
    }
    return ClockGate(clock=roles["clock"], enable=roles["enable"], output=roles["out"])


_KINDS = {
    "combinational": "delay",
    "rising_edge": "clock",
    "falling_edge": "clock",
    "setup_rising": "setup",
    "setup_falling": "setup",
    "hold_rising": "hold",
    "hold_falling": "hold",
}
_CHECKS = ("setup", "hold")


def _arcs(
    pin: str, timing: Group, templates: dict[str, Group], time: float, load: float
) -> list[Arc]:
    kind = _KINDS.get(timing.attributes.get("timing_type", "combinational"))
    if kind is None:
        return []
    tables = {
        part.name: read_table(part, templates, time, time if kind in _CHECKS else load)
        for part in timing.groups
        if part.name.startswith(("cell_", "rise_", "fall_"))
    }
    sense = timing.attributes.get("timing_sense", "non_unate")
    arcs = []
    for source in str(timing.attributes["related_pin"]).split():
        for edge, word in enumerate(("fall", "rise")):
            if kind in _CHECKS:
                if f"{word}_constraint" in tables:
                    arcs.append(Arc(source, pin, kind, 1, edge, tables[f"{word}_constraint"], None))
                continue
            if f"cell_{word}" not in tables:
                continue
            # An arc that is not unate starts at both input edges.
            starts = {"positive_unate": [edge], "negative_unate": [1 - edge]}.get(sense, [0, 1])
            if kind == "clock":
                starts = [1]
            arcs += [
                Arc(
                    source, pin, kind, s, edge, tables[f"cell_{word}"], tables[f"{word}_transition"]
                )
                for s in starts
            ]
    return arcs


def read_table(
    part: Group, templates: dict[str, Group], time: float, second: float
) -> LibertyTable:
    """Return a table ordered (slew, load) or (clock slew, data slew), at least 2 × 2 in size.

    Parameters
    ----------
    part : Group
        The table, with axes of its own or those of its template.
    time : float
        Picoseconds per time unit of the file.
    second : float
        Factor for the second axis: the time unit for set-up, else fF per load unit.
    """
    template = templates.get(part.arguments[0]) if part.arguments else None
    merged = {**(template.attributes if template else {}), **part.attributes}
    values = np.array([_numbers(row) for row in part.attributes["values"]], dtype=float) * time
    variables = [str(merged.get(f"variable_{n}", "")) for n in (1, 2)]
    axes = [np.array(_numbers(merged[f"index_{n}"][0])) for n in (1, 2) if f"index_{n}" in merged]
    # A template may have more axes than a table with one row or one value uses.
    axes = axes[: 0 if values.size == 1 else 1 if 1 in values.shape and len(axes) < 2 else 2]
    # The axes may come in either order; the load is the second one here.
    first_is_load = variables[0].startswith(("total_output", "constrained"))
    if len(axes) == 2 and first_is_load:
        values, axes = values.reshape(len(axes[0]), len(axes[1])).T, axes[::-1]
    elif len(axes) == 2:
        values = values.reshape(len(axes[0]), len(axes[1]))
    elif len(axes) == 1:
        axes = [np.array([0.0]), axes[0]] if first_is_load else [axes[0], np.array([0.0])]
        values = values.reshape(len(axes[0]), len(axes[1]))
    else:
        axes = [np.array([0.0]), np.array([0.0])]
        values = values.reshape(1, 1)
    # A table with one entry along an axis is repeated, so that interpolation has two points.
    scaled = [axes[0] * time, axes[1] * second]
    for axis in (0, 1):
        if len(scaled[axis]) == 1:
            scaled[axis] = scaled[axis][0] + np.array([0.0, 1.0])
            values = np.repeat(values, 2, axis=axis)
    return LibertyTable(scaled[0], scaled[1], values)


def _numbers(text: str) -> list[float]:
    numbers = [float(word) for word in _NUMBER.split(text.strip()) if word]
    if not all(map(isfinite, numbers)):
        raise ValueError("numbers of a table must be finite")
    return numbers
