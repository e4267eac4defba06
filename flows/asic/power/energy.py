"""The energy of counted events: switched loads, the library's internal energy, and leakage."""

from dataclasses import dataclass, field

import numpy as np

from vitruvian.flows.asic.power.cells import InternalEnergy, PowerCell, PowerLibrary
from vitruvian.flows.asic.power.events import EventCounts
from vitruvian.flows.asic.power.functions import truth_table
from vitruvian.flows.asic.power.network import GateInstance, MappedNetwork

#: The parts of the energy of a cycle.
PARTS = ("inputs", "clock", "registers", "combinational", "leakage")


@dataclass(frozen=True)
class EnergySplit:
    """The energy of a cycle in fJ.

    Attributes
    ----------
    parts : dict of str to float
        Energy by part, of ``PARTS``.
    switching_fj : float
        The share of the energy that charges loads.
    owned : (I + 1,) ndarray of float
        Energy of each instance of the netlist and, in the last row, of the inputs.
    """

    parts: dict[str, float]
    switching_fj: float
    owned: np.ndarray = field(repr=False, compare=False)

    @property
    def total_fj(self) -> float:
        """The energy of a cycle in fJ."""
        return sum(self.parts.values())


def energies(
    mapped: MappedNetwork,
    library: PowerLibrary,
    counts: EventCounts,
    *,
    cycles: int,
    period_ps: float,
) -> tuple[EnergySplit, EnergySplit]:
    """Return the energy of a cycle without delays and with them.

    Each edge of a net costs half of C·V², with the capacitance of the load for this edge. The
    clock has both edges in every cycle. Internal energy is that of the input which caused an edge
    of an output; if the library gives it for conditions on other pins, their mean counts, except
    for the clock of a register, whose conditions are evaluated. Without delays no input is the
    cause, and the mean of all inputs counts.

    A clock gate passes both edges of the clock in the cycles in which it is open, in which the load
    behind it is switched and its registers take their clock. Its own energy depends on its enable
    at each edge of the clock, which is that of the following cycle at the falling edge.

    Parameters
    ----------
    cycles : int
        Number of cycles that were counted.
    period_ps : float
        Period of the clock, during which the cells leak.
    """
    return (
        _split(mapped, library, counts, counts.settled, None, cycles, period_ps),
        _split(mapped, library, counts, counts.events, counts.arcs, cycles, period_ps),
    )


def _split(
    mapped: MappedNetwork,
    library: PowerLibrary,
    counts: EventCounts,
    edges: np.ndarray,
    arcs: np.ndarray | None,
    cycles: int,
    period_ps: float,
) -> EnergySplit:
    owned = np.zeros((len(mapped.instances) + 1, len(PARTS)))
    loads = mapped.graph.load.reshape(-1, 2)
    switched = 0.5 * library.volts**2 * edges[: len(loads)] * loads
    for net, energy in enumerate(switched.sum(1)):
        owned[mapped.owner[net], _column(_owner_part(mapped, net))] += energy
    if mapped.clock >= 0:
        # The simulation has no events of the clock, whose edges are known.
        clock = 0.5 * library.volts**2 * cycles * loads[mapped.clock].sum()
        owned[-1, _column("clock")] += clock
    for number, opened in zip(mapped.gates, counts.opened, strict=True):
        net = gated_net(mapped.instances[number])
        if net >= 0:
            energy = 0.5 * library.volts**2 * opened[2:].sum() * loads[net].sum()
            owned[number, _column("clock")] += energy
    switching = float(owned.sum())
    caused = _caused(mapped, arcs)
    for number, instance in enumerate(mapped.instances):
        part = _column(_part(instance.cell))
        for pin, net in instance.pins.items():
            if instance.cell.register is not None and pin == instance.cell.register.clocked_on:
                continue
            if instance.cell.gate is not None and pin != instance.cell.gate.enable:
                continue
            for edge in (0, 1):
                many = int(edges[net, edge])
                if not many:
                    continue
                known = [e for e in instance.cell.energies if e.pin == pin and e.edge == edge]
                causes = caused.get((number, pin, edge), {})
                owned[number, part] += _pin_energy(mapped, instance, known, net, many, causes)
    # Cell, gate of its clock, 2 × next state + state -> fJ of a cycle
    clocked: dict[tuple[str, int, int], float] = {}
    for register, number in enumerate(mapped.registers):
        cell, gate = mapped.instances[number].cell, mapped.graph.gates[number]
        for index, many in enumerate(counts.states[register]):
            if (cell.name, gate, index) not in clocked:
                slew = float(mapped.graph.clock[number, 1])
                clocked[cell.name, gate, index] = _clock_cycle(cell, index >> 1, index & 1, slew)
            owned[number, _column("clock")] += int(many) * clocked[cell.name, gate, index]
    for number, opened in zip(mapped.gates, counts.opened, strict=True):
        instance = mapped.instances[number]
        net = gated_net(instance)
        ff = loads[net] if net >= 0 else np.zeros(2)
        for index, many in enumerate(opened):
            energy = _gate_cycle(instance.cell, index >> 1, index & 1, ff) if many else 0.0
            owned[number, _column("clock")] += int(many) * energy
    owned /= cycles
    leakage_nw = [instance.cell.leakage_nw for instance in mapped.instances]
    owned[:-1, _column("leakage")] = np.array(leakage_nw) * period_ps * 1e-6  # nW · ps = 1e-6 fJ
    parts: dict[str, float] = dict(zip(PARTS, map(float, owned.sum(0)), strict=True))
    return EnergySplit(parts=parts, switching_fj=switching / cycles, owned=owned.sum(1))


def _column(part: str) -> int:
    return PARTS.index(part)


def _owner_part(mapped: MappedNetwork, net: int) -> str:
    if net == mapped.clock:
        return "clock"
    owner = mapped.owner[net]
    if owner < 0:
        return "inputs"
    return _part(mapped.instances[owner].cell)


def _part(cell: PowerCell) -> str:
    if cell.gate is not None:
        return "clock"
    return "combinational" if cell.register is None else "registers"


def gated_net(instance: GateInstance) -> int:
    """Return the net behind a clock gate, or -1."""
    assert instance.cell.gate is not None
    return instance.pins.get(instance.cell.gate.output, -1)


def _caused(
    mapped: MappedNetwork, arcs: np.ndarray | None
) -> dict[tuple[int, str, int], dict[str, int]]:
    """Return instance, output and edge -> number of edges by the input that caused them."""
    found: dict[tuple[int, str, int], dict[str, int]] = {}
    if arcs is not None:
        for (number, source, output), edges in zip(mapped.arcs, arcs, strict=True):
            for edge in (0, 1):
                if edges[edge]:
                    found.setdefault((number, output, edge), {})[source] = int(edges[edge])
    return found


def _pin_energy(
    mapped: MappedNetwork,
    instance: GateInstance,
    known: list[InternalEnergy],
    net: int,
    many: int,
    caused: dict[str, int],
) -> float:
    """Return the internal energy of ``many`` edges of a pin, in fJ."""
    if not known:
        return 0.0
    load = mapped.graph.load.reshape(-1, 2)[net, known[0].edge]
    means: dict[str, list[float]] = {}
    for energy in known:
        source = instance.pins.get(energy.source, -1)
        if not energy.source:
            slew = float(mapped.slew[2 * net + energy.edge])
        elif source < 0 or source == mapped.clock:
            slew = 0.0
        else:
            slew = float(mapped.slew[2 * source : 2 * source + 2].mean())
        means.setdefault(energy.source, []).append(energy.table(slew, load))
    each = {source: sum(values) / len(values) for source, values in means.items()}
    default = sum(each.values()) / len(each)
    counted = sum(caused.values())
    total = sum(number * each.get(source, default) for source, number in caused.items())
    return total + (many - counted) * default


def _clock_cycle(cell: PowerCell, data: int, state: int, slew: float) -> float:
    """Return the internal energy of both edges of a register's clock in a cycle, in fJ."""
    register = cell.register
    assert register is not None
    pins = {register.next_state: data, register.clocked_on: 0}
    for output, function in cell.outputs.items():
        pins[output] = state ^ int(function.strip("()") == register.complement)
    total = 0.0
    for edge in (0, 1):
        known = [e for e in cell.energies if e.pin == register.clocked_on and e.edge == edge]
        valid = [e for e in known if not e.when or _holds(e.when, pins)]
        if valid:
            total += sum(e.table(slew, 0.0) for e in valid) / len(valid)
    return total


def _gate_cycle(cell: PowerCell, opened: int, following: int, load: np.ndarray) -> float:
    """Return the internal energy of a clock gate for both edges of its clock in a cycle, in fJ.

    Where it is open, its output has the edge too, and the energy is that of the output.
    """
    gate = cell.gate
    assert gate is not None
    total = 0.0
    for edge, enable in ((1, opened), (0, following)):
        pins = {gate.enable: enable, gate.output: opened, gate.clock: edge}
        known = [
            e
            for e in cell.energies
            if e.pin == (gate.output if opened else gate.clock)
            and e.edge == edge
            and (not e.when or _holds(e.when, pins))
        ]
        if known:
            total += sum(e.table(0.0, float(load[edge])) for e in known) / len(known)
    return total


def _holds(condition: str, pins: dict[str, int]) -> bool:
    names = tuple(pins)
    pattern = sum(value << k for k, value in enumerate(pins.values()))
    return bool(truth_table(condition, names).word >> pattern & 1)
