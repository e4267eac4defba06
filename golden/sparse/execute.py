"""Plain execution of dataflow graphs: one node after the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.elementwise import FUNCTIONS, REDUCTIONS, apply
from vitruvian.golden.sparse.fusion import FusedPair, compute_pair, fused
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Operand, Swap, Vxm
from vitruvian.golden.sparse.products import vxm
from vitruvian.golden.sparse.storage import Sparse

#: Tensors of a running graph by name
Tensors = dict[str, Any]

#: A function that is told the number of finished iterations and the tensors after each of them
Watch = Callable[[int, Tensors], None]


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of a graph.

    Attributes
    ----------
    values : dict of str to ndarray
        The results that the graph names.
    iterations : int
    converged : bool
        True if the graph's stop condition ended the run, or if the graph has none.
    failure : str or None
        The message of the failure that ended the run.
    reads : int
        Passes over a matrix in the iterations and confirmations; the setup is left out.
    confirmations : int
        How often the graph's nodes ``confirm`` ran.
    """

    values: dict[str, np.ndarray]
    iterations: int
    converged: bool
    failure: str | None
    reads: int
    confirmations: int = 0


def execute(node: Node, tensors: Tensors, matrices: Mapping[str, Sparse]) -> None:
    """Run one node: read and replace entries of ``tensors``."""
    if isinstance(node, Vxm):
        matrix, x = matrices[node.matrix], tensors[node.vector]
        tensors[node.out] = vxm(x, matrix, node.semiring, transposed=node.transposed)
    elif isinstance(node, Swap):
        first, second = tensors[node.first], tensors[node.second]
        tensors[node.first], tensors[node.second] = second, first
    else:
        table = FUNCTIONS if isinstance(node, Ewise) else REDUCTIONS
        operands = tuple(operand(tensors, each) for each in node.inputs)
        tensors[node.out] = apply(table[node.function], operands)


def operand(tensors: Tensors, name: Operand) -> Any:
    """Return the tensor with a name; a number is returned unchanged."""
    return tensors[name] if isinstance(name, str) else name


def begin(graph: Graph, matrices: Mapping[str, Sparse], given: Mapping[str, ArrayLike]) -> Tensors:
    """Check what the caller gives, run the setup and return the tensors.

    Raises
    ------
    ValueError
        If a tensor or a matrix is missing or unknown.
    """
    for thing, names, wanted in (
        ("tensors", given, graph.given),
        ("matrices", matrices, graph.matrices),
    ):
        if set(names) != set(wanted):
            raise ValueError(f"{thing} must be {', '.join(wanted)}, not {', '.join(names)}")
    tensors: Tensors = {name: np.asarray(given[name], np.float64) for name in graph.given}
    for node in graph.setup:
        execute(node, tensors, matrices)
    return tensors


def ended(graph: Graph, tensors: Tensors) -> bool:
    """Return whether the run stops, with success or with a failure.

    A setup that writes these scalars can end the run before the first iteration.
    """
    names = (*graph.failures, *([graph.stop] if graph.stop else []))
    return any(bool(tensors.get(name, False)) for name in names)


def confirmed(graph: Graph, tensors: Tensors, matrices: Mapping[str, Sparse]) -> int:
    """Run the nodes ``confirm`` if the stop condition is true and nothing failed.

    Returns
    -------
    int
        1 if they ran, else 0.
    """
    failed = any(bool(tensors.get(name, False)) for name in graph.failures)
    if not graph.confirm or failed or not (graph.stop and tensors[graph.stop]):
        return 0
    for node in graph.confirm:
        execute(node, tensors, matrices)
    return 1


def finish(
    graph: Graph, tensors: Tensors, iterations: int, reads: int, confirmations: int = 0
) -> Run:
    """Return the outcome after the last iteration."""
    failed = (text for name, text in graph.failures.items() if tensors.get(name, False))
    failure = next(failed, None)
    stopped = graph.stop is None or bool(tensors[graph.stop])
    values = {name: np.asarray(tensors[name]) for name in graph.results}
    # A confirmation reads the matrix for its own products.
    reads += confirmations * sum(isinstance(node, Vxm) for node in graph.confirm)
    converged = stopped and failure is None
    return Run(values, iterations, converged, failure, reads, confirmations)


def run(
    graph: Graph,
    matrices: Mapping[str, Sparse],
    given: Mapping[str, ArrayLike],
    *,
    iterations: int = 1,
    watch: Watch | None = None,
) -> Run:
    """Run a graph, one node after the other.

    Parameters
    ----------
    given : dict of str to array_like of float
        The tensors in ``graph.given``.
    iterations : int
        Largest number of iterations.
    watch : callable, optional
        It is called after each iteration.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If a tensor or a matrix is missing or unknown, or if shapes do not fit.
    """
    check_int("iterations", iterations, 1)
    tensors = begin(graph, matrices, given)
    reads = sum(1 for _ in graph.products())
    body = fused(graph)
    done = confirmations = 0
    while done < iterations and not ended(graph, tensors):
        for step in body:
            if not isinstance(step, FusedPair):
                execute(step, tensors, matrices)
            elif not compute_pair(step, tensors):
                execute(step.product, tensors, matrices)
                execute(step.reader, tensors, matrices)
        done += 1
        confirmations += confirmed(graph, tensors, matrices)
        if watch:
            watch(done, tensors)
    return finish(graph, tensors, done, reads * done, confirmations)
