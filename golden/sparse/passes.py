"""The element-wise work of a dataflow graph as passes of the element-wise core.

``compile_pair`` gives the program between two products that share a pass over the matrix.
``split`` divides a whole body for a run without fusion.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from vitruvian.golden.sparse.compiler import SparseProgram, compile_nodes, runs_on_the_core
from vitruvian.golden.sparse.dependency import Pair
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Reduce, Swap, inputs, outputs


def scalars_of(graph: Graph, given: Mapping[str, Any]) -> set[str]:
    """Return the tensors of a graph that are scalars.

    Parameters
    ----------
    given : dict of str to array_like
        The tensors in ``graph.given``.
    """
    scalars = {name for name in graph.given if np.ndim(given[name]) == 0}
    for node in (*graph.setup, *graph.body):
        if isinstance(node, Swap):
            continue
        if isinstance(node, Reduce) or (
            isinstance(node, Ewise) and all(name in scalars for name in inputs(node))
        ):
            scalars.add(node.out)
    return scalars


def live_after(graph: Graph, position: int) -> set[str]:
    """Return the tensors that may be read after a node of the body, in this or later iterations."""
    results = _ends(graph)
    start: set[str] = set()
    while True:
        live = results | start
        at_position = live
        for place in range(len(graph.body) - 1, -1, -1):
            if place == position:
                at_position = live
            live = _before(graph.body[place], live)
        if live <= start:
            return at_position
        start |= live


def _ends(graph: Graph) -> set[str]:
    """Return the tensors that are read after the body, by the caller or by a confirmation."""
    written = {name for node in graph.body for name in outputs(node)}
    ends = {*graph.results, *(written & {*graph.failures}), *([graph.stop] if graph.stop else [])}
    needed: set[str] = set()
    for node in reversed(graph.confirm):
        needed = _before(node, needed)
    return ends | needed


def _before(node: Node, live: set[str]) -> set[str]:
    """Return what is live before a node if ``live`` is what is live after it."""
    if isinstance(node, Swap):
        names = {node.first: node.second, node.second: node.first}
        return {names.get(name, name) for name in live}
    return live - {*outputs(node)} | {*inputs(node)}


def compile_pair(
    graph: Graph, pair: Pair, *, scalars: Collection[str], **sizes: int
) -> tuple[SparseProgram, tuple[Node, ...]]:
    """Compile the nodes between two fused products.

    Parameters
    ----------
    pair : Pair
        A pair that can be fused.
    scalars : collection of str
        Result of ``scalars_of``.
    **sizes
        Sizes of the core, as for ``compile_nodes``.

    Returns
    -------
    program : SparseProgram
        The product is in x, and the input of the second product in y. Tensors have the names of the
        pair.
    left : tuple of Node
        Nodes that run elsewhere: scalars before or after the pass over the matrix, and vectors
        after it that need a reduction.

    Raises
    ------
    ValueError
        If the pair cannot be fused, the core does not have an operation on the way from the first
        product to the second, or the core is too small.
    """
    if pair.kind is None:
        raise ValueError(f"pair must be one that can be fused, not one in which {pair.reason}")
    known = set(scalars)
    whole: set[str] = set()  # results of reductions of this pass, and scalars from them
    absent: set[str] = set()  # tensors that this pass does not compute
    nodes: list[Node] = []
    left: list[Node] = []
    between = (
        *((node, "before") for node in pair.before),
        *((node, "streamed") for node in pair.streamed),
        *((node, "after") for node in pair.after),
    )
    for node, time in between:
        assert isinstance(node, (Ewise, Reduce))
        scalar = isinstance(node, Reduce) or all(name in known for name in inputs(node))
        needs = set(inputs(node))
        outside = not runs_on_the_core(node) or bool(needs & absent)
        if time == "before":
            # A scalar of the prologue must not need what is computed elsewhere, and a reduction
            # before the pass has passed over its vector already.
            outside = outside or isinstance(node, Reduce)
        if time == "after":
            outside = outside or (bool(needs & whole) and not scalar)
        if time == "streamed" and outside:
            raise ValueError(f"nodes must be operations of the core, not {node!r}")
        if scalar:
            known.add(node.out)
            if not outside and (isinstance(node, Reduce) or needs & whole):
                whole.add(node.out)
        if outside:
            left.append(node)
            # The host has a scalar before the pass, so that the prologue can load it.
            if not (time == "before" and scalar):
                absent.add(node.out)
        else:
            nodes.append(node)
    used = {pair.final.get(name, name) for name in live_after(graph, pair.next_position)}
    if pair.crosses:
        used |= {pair.boundary.get(name, name) for name in _ends(graph)}
    used |= {name for node in left for name in inputs(node)}
    made = [node.out for node in nodes if isinstance(node, (Ewise, Reduce))]
    if pair.first.out in used:
        made.insert(0, pair.first.out)
    program = compile_nodes(
        nodes,
        scalars=known,
        wanted=[name for name in made if name in used],
        product=pair.first.out,
        vector=pair.second.vector,
        **sizes,
    )
    return program, tuple(left)


def split(
    graph: Graph, *, scalars: Collection[str], **sizes: int
) -> Iterator[tuple[tuple[Node, ...], SparseProgram | None]]:
    """Divide the body of a graph into groups of nodes that run in one pass each.

    All vectors of a group must have one length, which holds for graphs with square matrices.

    Parameters
    ----------
    scalars : collection of str
        Result of ``scalars_of``.
    **sizes
        Sizes of the core, as for ``compile_nodes``.

    Yields
    ------
    nodes : tuple of Node
    program : SparseProgram or None
        None for a product, a swap, or a node that the core does not have.
    """
    start = 0
    while start < len(graph.body):
        program, stop = None, start + 1
        for end in range(start + 1, len(graph.body) + 1):
            try:
                program = _compiled(graph, start, end, scalars, sizes)
            except ValueError:
                break
            stop = end
        yield graph.body[start:stop], program
        start = stop


def _compiled(
    graph: Graph, start: int, stop: int, scalars: Collection[str], sizes: Mapping[str, int]
) -> SparseProgram:
    """Compile a part of the body, which stores all that is read after it."""
    nodes = graph.body[start:stop]
    live = live_after(graph, stop - 1)
    made = dict.fromkeys(name for node in nodes for name in outputs(node))
    wanted = [name for name in made if name in live]
    return compile_nodes(nodes, scalars=scalars, wanted=wanted, product=None, vector=None, **sizes)
