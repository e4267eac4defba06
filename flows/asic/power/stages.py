"""The energy of switched loads by pipeline stage, which shows where glitches arise."""

import numpy as np

from vitruvian.flows.asic.power.events import EventCounts
from vitruvian.flows.asic.power.network import MappedNetwork


def stages(mapped: MappedNetwork) -> np.ndarray:
    """Return the stage of each net: the largest number of registers between an input and it.

    Raises
    ------
    ValueError
        If a register is behind itself, so that there is no largest number.
    """
    network = mapped.network
    stage = np.zeros(len(network.truth), np.int64)
    source = np.repeat(np.arange(len(stage)), np.diff(network.first))
    output, register = network.launch[:, 1], network.launch[:, 0]
    # Each pass brings the number one gate further; a path has at most all nets.
    for _ in range(len(stage) + 1):
        following = stage.copy()
        np.maximum.at(following, network.target, stage[source])
        np.maximum.at(following, output, stage[network.data[register]] + 1)
        if (following == stage).all():
            return stage
        if following.max() > len(network.data):
            break
        stage = following
    raise ValueError("registers must form a pipeline without feedback")


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
