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


class _Placement:
    """The division of the nodes between two products: in the pass over the matrix, or elsewhere.

    Attributes
    ----------
    scalars : set of str
        Tensors that are known to be scalars.
    nodes, left : list of Node
        Nodes that the pass computes, and those that run elsewhere.
    """

    def __init__(self, scalars: Collection[str]) -> None:
        self.scalars = set(scalars)
        self.nodes: list[Node] = []
        self.left: list[Node] = []
        self._whole: set[str] = set()  # results of reductions of this pass, and scalars from them
        self._absent: set[str] = set()  # tensors that this pass does not compute

    def runs_elsewhere(self, node: Ewise | Reduce, time: str, *, scalar: bool) -> bool:
        """Return True if the pass cannot compute a node.

        Parameters
        ----------
        time : {"before", "streamed", "after"}
            When the node runs: before the pass, between the products, or after the pass.
        scalar : bool
            True if its result is a scalar.
        """
        needs = set(inputs(node))
        if not runs_on_the_core(node) or needs & self._absent:
            return True
        # A scalar of the prologue must not need what is computed elsewhere, and a reduction
        # before the pass has passed over its vector already.
        if time == "before":
            return isinstance(node, Reduce)
        return time == "after" and bool(needs & self._whole) and not scalar

    def place(self, node: Node, time: str) -> None:
        """Add a node to ``nodes`` or to ``left``.

        Raises
        ------
        ValueError
            If a node between the products cannot be computed by the pass.
        """
        assert isinstance(node, (Ewise, Reduce))
        scalar = isinstance(node, Reduce) or all(name in self.scalars for name in inputs(node))
        outside = self.runs_elsewhere(node, time, scalar=scalar)
        if time == "streamed" and outside:
            raise ValueError(f"nodes must be operations of the core, not {node!r}")
        if scalar:
            self.scalars.add(node.out)
            if not outside and (isinstance(node, Reduce) or set(inputs(node)) & self._whole):
                self._whole.add(node.out)
        (self.left if outside else self.nodes).append(node)
        # The host has a scalar before the pass, so that the prologue can load it.
        if outside and not (time == "before" and scalar):
            self._absent.add(node.out)


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
    placement = _Placement(scalars)
    for time, some in (("before", pair.before), ("streamed", pair.streamed), ("after", pair.after)):
        for node in some:
            placement.place(node, time)
    used = {pair.final.get(name, name) for name in live_after(graph, pair.next_position)}
    if pair.crosses:
        used |= {pair.boundary.get(name, name) for name in _ends(graph)}
    used |= {name for node in placement.left for name in inputs(node)}
    made = [node.out for node in placement.nodes if isinstance(node, (Ewise, Reduce))]
    if pair.first.out in used:
        made.insert(0, pair.first.out)
    program = compile_nodes(
        placement.nodes,
        scalars=placement.scalars,
        wanted=[name for name in made if name in used],
        product=pair.first.out,
        vector=pair.second.vector,
        **sizes,
    )
    return program, tuple(placement.left)


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
