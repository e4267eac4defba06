"""The energy of switched loads by pipeline stage, which shows where glitches arise."""

import numpy as np

from vitruvian.flows.asic.power.events import EventCounts
from vitruvian.flows.asic.power.network import MappedNetwork

#: The most gates of a path from a register to itself.
_DEPTH = 6


def stages(mapped: MappedNetwork) -> np.ndarray:
    """Return the stage of each net: the largest number of registers between an input and it.

    A register may be in front of its own logic, as one is that keeps its value by a multiplexer.

    Raises
    ------
    ValueError
        If registers form a longer loop, so that there is no largest number.
    """
    network = mapped.network
    stage = np.zeros(len(network.truth), np.int64)
    source = np.repeat(np.arange(len(stage)), np.diff(network.first))
    output, register = network.launch[:, 1], network.launch[:, 0]
    kept = _kept(mapped)
    others = np.array([pair not in kept for pair in zip(source, network.target, strict=True)], bool)
    source, target = source[others], network.target[others]
    # Each pass brings the number one gate further; a path has at most all nets.
    for _ in range(len(stage) + 1):
        following = stage.copy()
        np.maximum.at(following, target, stage[source])
        np.maximum.at(following, output, stage[network.data[register]] + 1)
        if (following == stage).all():
            return stage
        if following.max() > len(network.data):
            break
        stage = following
    raise ValueError("registers must form a pipeline without feedback")


def _kept(mapped: MappedNetwork) -> set[tuple[int, int]]:
    """Return net and gate where the output of a register enters the logic in front of itself."""
    network = mapped.network
    inputs: dict[int, list[int]] = {}
    source = np.repeat(np.arange(len(network.truth)), np.diff(network.first))
    for net, gate in zip(source.tolist(), network.target.tolist(), strict=True):
        inputs.setdefault(gate, []).append(net)
    kept: set[tuple[int, int]] = set()
    for register, output, _ in network.launch.tolist():
        level = {int(network.data[register])}
        for _ in range(_DEPTH):
            kept |= {(output, gate) for gate in level if output in inputs.get(gate, ())}
            level = {net for gate in level for net in inputs.get(gate, ())}
    return kept


def switching_by_stage(
    mapped: MappedNetwork, counts: EventCounts, *, volts: float, cycles: int
) -> list[dict[str, float]]:
    """Return the energy of the nets of each stage in a cycle, without delays and with them, fJ."""
    loads = mapped.graph.load.reshape(-1, 2)
    stage = stages(mapped)[: len(loads)]
    found = []
    for number in range(int(stage.max()) + 1):
        own = stage == number
        energy = {
            name: 0.5 * volts**2 * float((edges[: len(loads)][own] * loads[own]).sum()) / cycles
            for name, edges in (("zero_delay_fj", counts.settled), ("timed_fj", counts.events))
        }
        found.append(energy)
    return found
