"""An event-driven simulation of gates with inertial delays, which Numba compiles.

Every cycle begins with the edge of the clock at time 0, at which the registers take their inputs
and the operands change. A register behind a clock gate keeps its state if the enable of the gate
was 0 at the end of the cycle before. Otherwise it takes its input at time 0, too, as a checked hold
time allows (``flows.asic.hold``), and changes its outputs later by the delay of the gate. A cycle
ends when no event is left; the caller makes sure that this is before the next edge. Times are whole
femtoseconds, so that the order of events is exact.

A gate schedules a change of its output as soon as its inputs ask for another value. If they ask
for the old value again before the change happens, the change is cancelled: a pulse that is shorter
than the delay of the gate does not pass it. Events at the same time happen in the order of nets.
"""

from typing import NamedTuple

import numpy as np

#: Bits of the number of a net in an event.
NET_BITS = 24


class GateNetwork(NamedTuple):
    """The gates, registers and ports of a netlist, as arrays.

    A gate has the number of its output net. N nets, E connections from nets to gates, R registers.

    Attributes
    ----------
    truth : (N,) ndarray of uint64
        Truth table of each gate; unused for nets that no gate drives.
    first : (N + 1,) ndarray of int64
        The connections of net n are first[n] to first[n + 1] - 1.
    target, mask : (E,) ndarray of int64
        Driven gate, and the bits of its input pattern that the net is.
    delay : (E, 2) ndarray of int64
        Delay to the falling and to the rising edge of the gate's output, fs.
    data, enable : (R,) ndarray of int64
        Net of the next state of each register, and of the enable of its clock gate; without a gate,
        a net that is 1.
    launch : (L, 3) ndarray of int64
        Register, output net, and 1 if this output is the complement of the state.
    launch_delay : (L, 2) ndarray of int64
        Delay from the clock to the falling and to the rising edge, fs.
    inputs, outputs : ndarray of int64
        Nets of the ports' bits.
    input_delay : (I, 2) ndarray of int64
        Delay of the driver of each input, fs.
    gates : (G,) ndarray of int64
        Net of the enable of each clock gate.
    """

    truth: np.ndarray
    first: np.ndarray
    target: np.ndarray
    mask: np.ndarray
    delay: np.ndarray
    data: np.ndarray
    enable: np.ndarray
    launch: np.ndarray
    launch_delay: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    input_delay: np.ndarray
    gates: np.ndarray


class EventCounts(NamedTuple):
    """What the simulation counts in the cycles behind its warm-up.

    Attributes
    ----------
    events, settled : (N, 2) ndarray of int64
        Falling and rising edges of each net: all of them, and those between settled values only.
    arcs : (E, 2) ndarray of int64
        Edges of a gate's output by the connection that caused them.
    states : (R, 4) ndarray of int64
        Clock edges of each register by 2 × next state + state.
    opened : (G, 4) ndarray of int64
        Cycles of each clock gate by 2 × its enable before the rising edge + that after the cycle.
    last : (1,) ndarray of int64
        Time of the latest event of any cycle, fs.
    """

    events: np.ndarray
    settled: np.ndarray
    arcs: np.ndarray
    states: np.ndarray
    opened: np.ndarray
    last: np.ndarray


def simulate(
    network: GateNetwork,
    pattern: np.ndarray,
    value: np.ndarray,
    state: np.ndarray,
    stimuli: np.ndarray,
    warm_up: int,
    counts: EventCounts,
    outputs: np.ndarray,
) -> None:
    """Simulate one cycle for each row of ``stimuli``.

    Parameters
    ----------
    pattern : (N,) ndarray of int64
        Input pattern of each gate at the start; changed.
    value : (N,) ndarray of int64
        Settled value of each net at the start; changed.
    state : (R,) ndarray of int64
        State of each register; changed.
    stimuli : (C, I) ndarray of uint8
        Values of the inputs.
    warm_up : int
        Number of cycles at the start that are not counted.
    counts : EventCounts
        Zeros, to which the counts are added.
    outputs : (C, O) ndarray of uint8
        Receives the values of the outputs at the end of each cycle.
    """
    nets = len(network.truth)
    due = np.full(nets, -1, np.int64)  # time of the pending change, -1 without one
    cause = np.full(nets, -1, np.int64)
    heap = np.zeros(1024, np.int64)
    one = np.uint64(1)
    before = value.copy()
    for cycle in range(len(stimuli)):
        counted = cycle >= warm_up
        size = 0
        # All registers take their inputs before any of them changes its outputs.
        taken = np.empty(len(state), np.int64)
        for r in range(len(state)):
            taken[r] = state[r]
            if value[network.enable[r]]:
                taken[r] = value[network.data[r]]
                if counted:
                    counts.states[r, 2 * taken[r] + state[r]] += 1
        for k in range(len(network.launch)):
            net = network.launch[k, 1]
            new = taken[network.launch[k, 0]] ^ network.launch[k, 2]
            if new != value[net]:
                due[net] = network.launch_delay[k, new]
                heap, size = _push(heap, size, due[net] << NET_BITS | net)
        state[:] = taken
        for k in range(len(network.inputs)):
            net = network.inputs[k]
            new = np.int64(stimuli[cycle, k])
            if new != value[net]:
                due[net] = network.input_delay[k, new]
                heap, size = _push(heap, size, due[net] << NET_BITS | net)
        time = np.int64(0)
        while size:
            event = heap[0]
            size = _pop(heap, size)
            net = event & ((1 << NET_BITS) - 1)
            if due[net] != event >> NET_BITS:
                continue  # cancelled, or replaced by an earlier one
            time = due[net]
            due[net] = -1
            new = 1 - value[net]
            value[net] = new
            if counted:
                counts.events[net, new] += 1
                if cause[net] >= 0:
                    counts.arcs[cause[net], new] += 1
            for e in range(network.first[net], network.first[net + 1]):
                gate = network.target[e]
                pattern[gate] ^= network.mask[e]
                wanted = np.int64(network.truth[gate] >> np.uint64(pattern[gate]) & one)
                if wanted == value[gate]:
                    due[gate] = -1
                else:
                    at = time + network.delay[e, wanted]
                    if due[gate] < 0 or at < due[gate]:
                        due[gate] = at
                        cause[gate] = e
                        heap, size = _push(heap, size, at << NET_BITS | gate)
        counts.last[0] = max(counts.last[0], time)
        for g in range(len(network.gates)):
            if counted:
                net = network.gates[g]
                counts.opened[g, 2 * before[net] + value[net]] += 1
        for net in range(nets):
            if value[net] != before[net]:
                if counted:
                    counts.settled[net, value[net]] += 1
                before[net] = value[net]
        for k in range(len(network.outputs)):
            outputs[cycle, k] = value[network.outputs[k]]


def _push(heap: np.ndarray, size: int, event: int) -> tuple[np.ndarray, int]:
    """Add an event to a binary heap, and return the heap, which grows if it is full."""
    if size == len(heap):
        larger = np.zeros(2 * size, np.int64)
        larger[:size] = heap
        heap = larger
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= event:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = event
    return heap, size + 1


def _pop(heap: np.ndarray, size: int) -> int:
    """Remove the first event of a binary heap, and return the number of events left."""
    size -= 1
    event = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if event <= heap[child]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = event
    return size
