"""The clocks of a mapped netlist: which clock gate drives a register, and when its clock arrives.

The clock itself is ideal: it has zero slew, and it reaches every clock gate, and every register
without one, at time 0. A gated clock comes later by the delay of its gate at the real load.
"""

from collections.abc import Sequence

import numpy as np

from vitruvian.flows.asic.liberty import LibertyCell, LibertyError

#: Name, cell and pins of an instance; pins are nets.
Instance = tuple[str, LibertyCell, dict[str, int]]


def gates_of(instances: Sequence[Instance]) -> list[int]:
    """Return for each instance the number of the instance that gates its clock, or -1.

    Raises
    ------
    LibertyError
        If a clock passes two gates.
    """
    gated = {
        pins[cell.gate.output]: number
        for number, (_, cell, pins) in enumerate(instances)
        if cell.gate is not None and cell.gate.output in pins
    }
    found = [gated.get(pins.get(cell.clock or "", -1), -1) for _, cell, pins in instances]
    for gate, (name, cell, _) in zip(found, instances, strict=True):
        if gate >= 0 and cell.gate is not None:
            raise LibertyError(
                f"a clock must pass one gate, not {instances[gate][0]} and then {name}"
            )
    return found


def clock_arrivals(
    instances: Sequence[Instance], gates: Sequence[int], load: np.ndarray
) -> np.ndarray:
    """Return the arrival and the slew of the rising clock at each instance, ps.

    Parameters
    ----------
    gates : sequence of int
        Result of ``gates_of``.
    load : (2 N,) ndarray of float
        Load of each net at its falling and its rising edge, fF.

    Returns
    -------
    (I, 2) ndarray of float
    """
    times = np.zeros((len(instances), 2))
    known: dict[int, tuple[float, float]] = {}
    for number, gate in enumerate(gates):
        if gate < 0:
            continue
        if gate not in known:
            _, cell, pins = instances[gate]
            assert cell.gate is not None
            ff = float(load[2 * pins[cell.gate.output] + 1])
            arcs = [arc for arc in cell.arcs if arc.kind == "gate" and arc.target_edge == 1]
            if not arcs:
                raise LibertyError(f"clock gate {cell.name} must have a delay of its clock")
            known[gate] = (
                max(arc.delay(0.0, ff) for arc in arcs),
                max(arc.slew(0.0, ff) for arc in arcs if arc.slew is not None),
            )
        times[number] = known[gate]
    return times
