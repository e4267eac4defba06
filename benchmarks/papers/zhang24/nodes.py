"""The baseline of single nodes: every element-wise node of a graph is an operator of its own.

The simulator's baseline joins nodes to expressions, as a compiler of any accelerator would. The one
of Zhang 2024 §4.5.2 "does not exploit inter-operator data reuse", which can mean single nodes.
"""

import numpy as np

from benchmarks.papers.zhang24.planning import plan, small_problem
from vitruvian.golden.sparse.graph import Ewise, Reduce, Vxm, inputs
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.report import SparseReport


def further_bytes(application: str, rows: int) -> int:
    """Return the bytes that single nodes move in a run beyond those of joined nodes."""
    planned = plan(application, rows)
    less = 8 * sum(w.read + w.written for w in planned.work if not w.product)
    return planned.iterations * (separate(application, rows) - less)


def separate(application: str, rows: int) -> int:
    """Return the bytes that element-wise nodes move in an iteration if each is an operator.

    The baseline of the simulator joins nodes to expressions, whose inner results stay on chip.
    """
    problem = small_problem(application)
    (few, _) = problem.matrices["A"].shape
    values = {name: np.size(each) * rows // few for name, each in problem.given.items()}
    # What is shorter than a column stays on chip.
    values = {name: count if count >= rows else 0 for name, count in values.items()}
    moved = 0
    for node in problem.graph.body:
        if isinstance(node, Vxm):
            values[node.out] = max(values.get(node.vector, 0), rows)
        elif isinstance(node, (Ewise, Reduce)):
            read = [values.get(name, 0) for name in set(inputs(node))]
            values[node.out] = max(read, default=0) if isinstance(node, Ewise) else 0
            moved += sum(read) + values[node.out]
    # Elements have eight bytes.
    return 8 * moved


def savings(figure: dict[str, float], more: int, machine_of: Architecture) -> list[float]:
    """Return what SIDA saves of energy, memory, buffer, and buffer without partial results.

    The first four shares are those of the baseline with joined nodes; the other four are those of
    the baseline of single nodes, which moves ``more`` bytes. Each of these crosses the memory's
    interface, is written to or read from the buffer by it, and is read or written by the operator.
    """
    memory = float(machine_of.memory_pj_per_byte * more) * 1e-12
    buffer = float(machine_of.buffer_pj_per_byte * 2 * more) * 1e-12
    found = []
    for extra_memory, extra_buffer in ((0.0, 0.0), (memory, buffer)):
        whole = figure["baseline_joules"] + extra_memory + extra_buffer
        chip = figure["baseline_buffer_joules"] + extra_buffer
        inner = figure["buffer_joules"] - figure["partial_joules"]
        found += [
            1 - figure["joules"] / whole,
            1 - figure["memory_joules"] / (figure["baseline_memory_joules"] + extra_memory),
            1 - figure["buffer_joules"] / chip,
            1 - inner / chip,
        ]
    return found


def partial_results(report: SparseReport) -> float:
    """Return the joules of the partial results that the IS core reads and writes."""
    accesses = sum(
        2 * count * sweep.is_features * report.stored[sweep.view].nonzeros
        for sweep, count in report.sweeps.items()
        if sweep.view
    )
    machine_of = report.architecture
    return float(machine_of.buffer_pj_per_byte * machine_of.value_bytes * accesses) * 1e-12
