"""The gates that a unit does not need while some of its inputs keep their values.

A unit with several precisions has gates that serve only some of them. While another precision is in
use, the input that names it is constant, and these gates cannot change a result. Their energy is
that of idle precisions.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from vitruvian.flows.asic.power.energy import EnergySplit, gated_net
from vitruvian.flows.asic.power.events import EventCounts
from vitruvian.flows.asic.power.network import MappedNetwork


def idle_instances(mapped: MappedNetwork, held: Mapping[tuple[str, int], int]) -> np.ndarray:
    """Return for each instance whether no output depends on it while inputs are held.

    A gate counts as needed if it drives, through needed gates and registers, an output whose value
    it can change. Registers have had the time to take values that became constant. A register whose
    clock gate stays closed keeps its value, which cannot change an output any more.

    Parameters
    ----------
    held : mapping of (str, int) to int
        Port and bit of the inputs that keep a value -> this value.

    Returns
    -------
    (I,) ndarray of bool
    """
    needed = _NeededNets(mapped, held).needed()
    return np.array(
        [
            not any(needed[instance.pins[p]] for p in instance.cell.outputs if p in instance.pins)
            for instance in mapped.instances
        ]
    )


def idle_energy(
    mapped: MappedNetwork,
    split: EnergySplit,
    counts: EventCounts,
    idle: np.ndarray,
    *,
    volts: float,
    cycles: int,
) -> float:
    """Return the energy of a cycle that idle instances take, in fJ.

    It is that of the instances and of the nets that they drive, and that of charging their input
    pins on the nets of other instances, of ports and of the clock.

    Parameters
    ----------
    split : EnergySplit
        The energy of all instances.
    counts : EventCounts
        The edges; those of glitches count too.
    idle : (I,) ndarray of bool
        Result of ``idle_instances``.
    """
    total = float(split.owned[:-1][idle].sum())
    switched = counts.events.copy()
    if mapped.clock >= 0:
        switched[mapped.clock] = cycles
    for number, opened in zip(mapped.gates, counts.opened, strict=True):
        net = gated_net(mapped.instances[number])
        if net >= 0:
            switched[net] = opened[2:].sum()
    for number in np.flatnonzero(idle):
        _, cell, pins = mapped.graph.instances[number]
        for pin, caps in cell.caps.items():
            net = pins.get(pin, -1)
            owner = -1 if net < 0 else mapped.owner[net]
            if net < 0 or (owner >= 0 and idle[owner]):
                continue
            total += 0.5 * volts**2 * float(switched[net] @ np.array(caps)) / cycles
    return total


class _NeededNets:
    """Constant nets under held inputs, and the nets that the outputs depend on."""

    def __init__(self, mapped: MappedNetwork, held: Mapping[tuple[str, int], int]) -> None:
        network = mapped.network
        self._mapped, self._count = mapped, len(network.truth)
        source = np.repeat(np.arange(self._count), np.diff(network.first))
        self._inputs: dict[int, list[tuple[int, int]]] = {}  # gate -> nets and their pattern bits
        self._fixed: dict[int, int] = {}
        for net, gate, mask in zip(source, network.target, network.mask, strict=True):
            self._inputs.setdefault(int(gate), []).append((int(net), int(mask)))
        for gate, pins in self._inputs.items():
            # The other bits of the pattern are those of pins at a constant.
            self._fixed[gate] = int(mapped.pattern[gate]) & ~sum(mask for _, mask in pins)
        self._value = {int(network.inputs[k]): value for k, value in self._held(held)}
        for constant in (0, 1):
            self._value[self._count - 2 + constant] = constant
        self._add_gates_without_inputs()
        self._settle()
        self._still = self._unchanging()

    def _held(self, held: Mapping[tuple[str, int], int]) -> Iterator[tuple[int, int]]:
        for column, port in enumerate(self._mapped.input_bits):
            if port in held:
                yield column, held[port]

    def _add_gates_without_inputs(self) -> None:
        """Note the values of gates whose pins are all constant."""
        for instance in self._mapped.instances:
            for pin in instance.cell.outputs:
                net = instance.pins.get(pin, -1)
                if instance.cell.is_logic and net >= 0 and net not in self._inputs:
                    self._value[net] = int(self._mapped.value[net])

    def _settle(self) -> None:
        """Find all constant nets: gates whose known inputs decide, and registers that take one."""
        changed = True
        while changed:
            changed = False
            for gate in self._inputs:
                if gate not in self._value:
                    values = {self._truth(gate, p) for p in self._patterns(gate)}
                    if len(values) == 1:
                        self._value[gate] = values.pop()
                        changed = True
            for register, net, inverted in self._mapped.network.launch.tolist():
                data = int(self._mapped.network.data[register])
                if self._is_closed(register):
                    continue
                if net not in self._value and data in self._value:
                    self._value[net] = self._value[data] ^ inverted
                    changed = True

    def _unchanging(self) -> set[int]:
        """Return the nets that keep a value which is not known: those behind closed clock gates."""
        network, still = self._mapped.network, set[int]()
        size = -1
        while len(still) > size:
            size = len(still)
            for register, net, _ in network.launch.tolist():
                if self._is_closed(register) or int(network.data[register]) in still:
                    still.add(net)
            for gate, pins in self._inputs.items():
                if still and all(net in still or net in self._value for net, _ in pins):
                    still.add(gate)
        return still - self._value.keys()

    def _is_closed(self, register: int) -> bool:
        """Return whether the clock gate of a register stays closed, so that it keeps its value."""
        return self._value.get(int(self._mapped.network.enable[register])) == 0

    def _truth(self, gate: int, pattern: int) -> int:
        return int(self._mapped.network.truth[gate]) >> pattern & 1

    def _patterns(self, gate: int) -> list[int]:
        """Return the input patterns of a gate that are possible."""
        patterns = [self._fixed[gate]]
        for net, mask in self._inputs[gate]:
            if net not in self._value:
                patterns += [pattern | mask for pattern in patterns]
            elif self._value[net]:
                patterns = [pattern | mask for pattern in patterns]
        return patterns

    def needed(self) -> np.ndarray:
        """Return for each net whether an output depends on it."""
        needed = np.zeros(self._count, bool)
        network = self._mapped.network
        register_of = {net: register for register, net, _ in network.launch.tolist()}
        waiting = [int(net) for net in self._mapped.network.outputs]
        while waiting:
            net = waiting.pop()
            register = register_of.get(net)
            if needed[net] or net in self._value or net in self._still:
                continue
            needed[net] = True
            if register is not None:
                waiting += [int(network.data[register]), int(network.enable[register])]
                self._add_clock_gate(register, needed)
            elif net in self._inputs:
                patterns = self._patterns(net)
                waiting += [
                    source
                    for source, mask in self._inputs[net]
                    if any(self._truth(net, p) != self._truth(net, p ^ mask) for p in patterns)
                ]
        return needed

    def _add_clock_gate(self, register: int, needed: np.ndarray) -> None:
        """Note that the gated clock of a register is needed, if it has one."""
        mapped = self._mapped
        number = mapped.graph.gates[mapped.registers[register]]
        if number >= 0:
            needed[gated_net(mapped.instances[number])] = True
