"""The OEI dataflow: two products and the operations between them in one pass over the matrix.

In step s the output-stationary product reads column s of the matrix and completes element s of its
output. The element-wise operations turn it into element s of the next product's input. The
input-stationary product then uses all elements (r, c) of the matrix whose later index is s: those
of column s with r < s, which have just been read, and those of row s with c ≤ s, which the buffer
has held since step c. So each element is read once for two products.

The second product adds its terms in ascending order of the rows, as the plain execution does, and
the element-wise operations do not depend on how a vector is cut. So both give the same bits.

References
----------
Zhang 2024, §4.3.2, Figs. 4.9 and 4.10; the space reserved for each row follows §4.4.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.dependency import Pair, pairs
from vitruvian.golden.sparse.elementwise import FUNCTIONS, apply
from vitruvian.golden.sparse.execute import (
    Run,
    Tensors,
    Watch,
    begin,
    confirmed,
    ended,
    execute,
    finish,
    operand,
)
from vitruvian.golden.sparse.graph import Ewise, Graph
from vitruvian.golden.sparse.oei_compiled import hold
from vitruvian.golden.sparse.products import codes
from vitruvian.golden.sparse.products_compiled import gather, scatter, scatter_between
from vitruvian.golden.sparse.semirings import as_semiring
from vitruvian.golden.sparse.storage import Sparse


@dataclass
class Occupancy:
    """The elements of the matrix that the buffer holds during passes of kind "oei".

    Attributes
    ----------
    after_load : list of int
        Elements held in each step after the columns have been read, for the last pass.
    after_use : list of int
        The same after the second product has used its elements.
    fused : int
        Passes that served two products.
    """

    after_load: list[int] = field(default_factory=list[int])
    after_use: list[int] = field(default_factory=list[int])
    fused: int = 0


def _lanes(x: np.ndarray) -> np.ndarray:
    """Return a vector, or one with features, as a (F, N) array that is contiguous in N."""
    return np.ascontiguousarray(x[None] if x.ndim == 1 else x.T)


def _part(tensor: Any, begin: int, end: int, size: int) -> Any:
    """Return rows of a tensor that has one row per vertex; other tensors are returned whole."""
    if np.ndim(tensor) and len(tensor) == size:
        return tensor[begin:end]
    return tensor


def _stream(node: Ewise, tensors: Tensors, begin: int, end: int, size: int) -> None:
    """Compute rows of the output of an element-wise operation."""
    function = FUNCTIONS[node.function]
    operands: list[Any] = []
    for position, name in enumerate(node.inputs):
        whole = operand(tensors, name)
        cut = position not in function.whole
        operands.append(_part(whole, begin, end, size) if cut else whole)
    part = apply(function, tuple(operands))
    # The number of features is known only from the first part.
    if begin == 0:
        tensors[node.out] = np.full((size, *part.shape[1:]), np.nan)
    tensors[node.out][begin:end] = part


def sweep(
    pair: Pair,
    tensors: Tensors,
    matrix: Sparse,
    *,
    width: int,
    occupancy: Occupancy,
) -> None:
    """Run both products of a pair, and all that lies between them, in one pass.

    Parameters
    ----------
    pair : Pair
        A pair with a kind.
    tensors : dict
        Read, and extended by the tensors with the pair's names.
    width : int
        Columns per step.
    occupancy : Occupancy
        Receives the counts of this pass.
    """
    for node in pair.before:
        execute(node, tensors, {})
    view = matrix.transposed if pair.first.transposed else matrix
    columns = view.column_start, view.row_index, view.column_values
    size = view.shape[1]
    is_oei = pair.kind == "oei"
    if is_oei and view.shape[0] != size:
        raise ValueError(f"matrix must be square, not {matrix.shape[0]} by {matrix.shape[1]}")
    first, second = as_semiring(pair.first.semiring), as_semiring(pair.second.semiring)
    source = _lanes(tensors[pair.first.vector])
    output = np.full((len(source), size), np.nan)
    flat = tensors[pair.first.vector].ndim == 1
    tensors[pair.first.out] = output[0] if flat else output.T
    # Each row has its slots in the buffer, as many as it has elements; ``next_slot`` is the first
    # free one.
    next_slot = view.row_start[:-1].copy()
    held_column = np.empty(view.nonzeros, np.int32)
    held_value = np.empty(view.nonzeros)
    held = 0
    inputs = result = np.empty((0, 0))
    occupancy.fused += 1
    if is_oei:
        occupancy.after_load, occupancy.after_use = [], []
    for begin_at in range(0, max(size, 1), width):
        end = min(begin_at + width, size)
        for lane, out in zip(source, output, strict=True):
            gather(*columns, lane, out, begin_at, end, *codes(first), first.identity)
        for node in pair.streamed:
            assert isinstance(node, Ewise)
            _stream(node, tensors, begin_at, end, size)
        x = tensors[pair.second.vector]
        if begin_at == 0:
            lanes = 1 if x.ndim == 1 else x.shape[1]
            inputs = np.full((lanes, size), np.nan)
            result = np.full((lanes, view.shape[1 if is_oei else 0]), second.identity)
        inputs[:, begin_at:end] = x[begin_at:end].reshape(end - begin_at, len(inputs)).T
        # The second product of a stream uses the columns at once, as its matrix is the transposed
        # one.
        if not is_oei:
            for lane, out in zip(inputs, result, strict=True):
                scatter(*columns, lane, out, begin_at, end, *codes(second))
            continue
        held += hold(*columns, begin_at, end, next_slot, held_column, held_value)
        # The rows of this step are used now and leave the buffer; their later elements come from
        # the columns themselves.
        used = int((next_slot[begin_at:end] - view.row_start[begin_at:end]).sum())
        for lane, out in zip(inputs, result, strict=True):
            buffer = view.row_start, next_slot, held_column, held_value
            scatter_between(*columns, *buffer, lane, out, begin_at, end, *codes(second))
        occupancy.after_load.append(held)
        held -= used
        occupancy.after_use.append(held)
    tensors[pair.second.out] = result[0] if tensors[pair.second.vector].ndim == 1 else result.T
    for node in pair.after:
        execute(node, tensors, {})


def run_oei(
    graph: Graph,
    matrices: Mapping[str, Sparse],
    given: Mapping[str, ArrayLike],
    *,
    iterations: int = 1,
    width: int = 1,
    watch: Watch | None = None,
) -> tuple[Run, Occupancy]:
    """Run a graph; each pair of products that may be fused shares one pass over the matrix.

    If the run ends with the first iteration of a pair, the second product is discarded.

    Parameters
    ----------
    given : dict of str to array_like of float
    iterations : int
        Largest number of iterations.
    width : int
        Columns of the matrix that are read in one step.
    watch : callable, optional
        It is called after each iteration.

    Returns
    -------
    Run
        The results have the same bits as those of ``execute.run``.
    Occupancy

    Raises
    ------
    ValueError
        If a tensor or a matrix is missing or unknown, or if shapes do not fit.
    """
    check_int("iterations", iterations, 1)
    check_int("width", width, 1)
    tensors = begin(graph, matrices, given)
    by_position = {pair.position: pair for pair in pairs(graph)}
    occupancy = Occupancy()
    done = reads = position = confirmations = 0
    while done < iterations and not ended(graph, tensors):
        while position < len(graph.body):
            pair = by_position.get(position)
            if pair is None or pair.kind is None or (pair.crosses and done + 1 == iterations):
                execute(graph.body[position], tensors, matrices)
                reads += pair is not None
                position += 1
                continue
            # The pass writes names of two iterations; ``boundary`` and ``final`` say which are
            # whose.
            local = dict(tensors)
            sweep(pair, local, matrices[pair.first.matrix], width=width, occupancy=occupancy)
            reads += 1
            if pair.crosses:
                done += 1
                state = tensors | {name: local[new] for name, new in pair.boundary.items()}
                again = confirmed(graph, state, matrices)
                confirmations += again
                if watch:
                    watch(done, state)
                if ended(graph, state):
                    return finish(graph, state, done, reads, confirmations), occupancy
                if again:  # the second product began before the state was written anew
                    tensors, position = state, 0
                    continue
            tensors |= {name: local[new] for name, new in pair.final.items()}
            position = pair.next_position + 1
        done += 1
        position = 0
        confirmations += confirmed(graph, tensors, matrices)
        if watch:
            watch(done, tensors)
    return finish(graph, tensors, done, reads, confirmations), occupancy
