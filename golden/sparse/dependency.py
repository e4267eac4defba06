"""Sub-tensor dependency: which consecutive products may share one pass over the matrix.

Two products may be fused if element j of the second's input needs no more of the first's output
than element j. Then the first product runs output-stationary, the second input-stationary, and each
element of the matrix is read once for both. A reduction of the first's output on the way to the
second's input forbids it, because a reduction needs the whole vector.

References
----------
Zhang 2024, §4.3.1, Figs. 4.4 and 4.5.
"""

from dataclasses import dataclass, replace

from vitruvian.golden.sparse.elementwise import FUNCTIONS
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Reduce, Swap, Vxm, inputs

#: Times at which a tensor between two products is complete: before the pass over the matrix,
#: row by row during the pass, or after it
_BEFORE, _STREAMED, _AFTER = range(3)


@dataclass(frozen=True)
class Pair:
    """Two consecutive products and the nodes between them.

    The nodes are in static single assignment form: a tensor that is written again gets a new name,
    and swaps are gone. The names at the start are those of the graph.

    Attributes
    ----------
    position, next_position : int
        Positions of the two products in the graph's body.
    crosses : bool
        True if the second product belongs to the next iteration.
    kind : {"oei", "stream", None}
        "oei": both products read the same matrix; an element is held from its use by the first
        product until its use by the second. "stream": one reads the matrix and the other its
        transpose, so that each column is used twice at once and nothing is held. None: the products
        cannot be fused.
    reason : str
        The reason why the products can or cannot be fused.
    first, second : Vxm
    before, streamed, after : tuple of Node
        Nodes that run before the pass over the matrix, row by row during it, and after it.
    boundary : dict of str to str
        Names of the graph's tensors at the end of the iteration, if the pair crosses it.
    final : dict of str to str
        Names of the graph's tensors after the second product.
    """

    position: int
    next_position: int
    crosses: bool
    kind: str | None
    reason: str
    first: Vxm
    second: Vxm
    before: tuple[Node, ...]
    streamed: tuple[Node, ...]
    after: tuple[Node, ...]
    boundary: dict[str, str]
    final: dict[str, str]


class _Names:
    """Current names of the graph's tensors; every write makes a new one."""

    def __init__(self) -> None:
        self.current: dict[str, str] = {}
        self.writes = 0

    def read(self, name: str) -> str:
        return self.current.get(name, name)

    def write(self, name: str) -> str:
        self.writes += 1
        self.current[name] = f"{name}'{self.writes}"
        return self.current[name]

    def swap(self, node: Swap) -> None:
        first, second = self.read(node.first), self.read(node.second)
        self.current[node.first], self.current[node.second] = second, first


def _time(node: Ewise | Reduce, times: dict[str, int]) -> tuple[int, str | None]:
    """Return when a node's output is complete, and the tensor that delays it beyond the pass."""
    latest = max((times.get(name, _BEFORE) for name in inputs(node)), default=_BEFORE)
    if isinstance(node, Reduce):
        return (_BEFORE, None) if latest == _BEFORE else (_AFTER, node.out)
    for position in FUNCTIONS[node.function].whole:
        name = node.inputs[position]
        # This operand is needed as a whole, and is whole only after the pass.
        if isinstance(name, str) and times.get(name, _BEFORE) == _STREAMED:
            return _AFTER, name
    return latest, None


def analyse(graph: Graph, position: int) -> Pair:
    """Return the pair of the product at a position of the body and the next product.

    After the last product of the body follows the first product of the next iteration.
    """
    places = [place for place, _ in graph.products()]
    later = [place for place in places if place > position]
    crosses = not later
    following = places[0] if crosses else later[0]
    between: list[Node | None]
    if crosses:  # None marks the end of the iteration
        between = [*graph.body[position + 1 :], None, *graph.body[:following]]
    else:
        between = [*graph.body[position + 1 : following]]
    head, tail = graph.body[position], graph.body[following]
    assert isinstance(head, Vxm) and isinstance(tail, Vxm)

    names = _Names()
    first = replace(head, out=names.write(head.out))
    times = {first.out: _STREAMED}
    causes: dict[str, str] = {}
    parts: tuple[list[Node], list[Node], list[Node]] = ([], [], [])
    boundary: dict[str, str] = {}
    for node in between:
        if node is None:
            # These names are the state if the run ends here.
            boundary = dict(names.current)
        elif isinstance(node, Swap):
            names.swap(node)
        elif not isinstance(node, Vxm):
            operands = tuple(names.read(x) if isinstance(x, str) else x for x in node.inputs)
            node = replace(node, inputs=operands)
            time, cause = _time(node, times)
            # The first cause of a delay is told, and not the last tensor that it reaches.
            source = next((causes[name] for name in inputs(node) if name in causes), cause)
            original, node = node.out, replace(node, out=names.write(node.out))
            times[node.out] = time
            if time == _AFTER:
                causes[node.out] = source if source and source != original else node.out
            # The three lists have the order of the pass: before, row by row, after.
            parts[time].append(node)
    second = replace(tail, vector=names.read(tail.vector))
    second = replace(second, out=names.write(tail.out))
    kind, reason = _verdict(graph, first, second, times, causes, crosses)
    return Pair(
        position=position,
        next_position=following,
        crosses=crosses,
        kind=kind,
        reason=reason,
        first=first,
        second=second,
        before=tuple(parts[_BEFORE]),
        streamed=tuple(parts[_STREAMED]),
        after=tuple(parts[_AFTER]),
        boundary=boundary,
        final=dict(names.current),
    )


def _verdict(
    graph: Graph,
    first: Vxm,
    second: Vxm,
    times: dict[str, int],
    causes: dict[str, str],
    crosses: bool,
) -> tuple[str | None, str]:
    """Return the kind of a pair and the reason."""
    if crosses and graph.stop is None:
        return None, "the graph has one iteration"
    if first.matrix != second.matrix:
        return None, f"the products read different matrices, {first.matrix} and {second.matrix}"
    if times.get(second.vector, _BEFORE) == _AFTER:
        cause = causes[second.vector].split("'")[0]
        return None, f"the second product's input needs {cause}, which needs a whole vector"
    if first.transposed != second.transposed:
        return "stream", "each column is used by both products at once"
    return "oei", "element j of the second product's input needs element j of the first's output"


def pairs(graph: Graph) -> tuple[Pair, ...]:
    """Return the pairs of consecutive products of a graph, one for each product of the body."""
    return tuple(analyse(graph, position) for position, _ in graph.products())
