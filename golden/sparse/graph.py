"""Tensor dataflow graphs: an algorithm as products, element-wise operations and reductions.

A graph names tensors and holds no data. From the same graph follow its plain execution
(``execute``), the pairs of products that may share one pass over the matrix (``dependency``), the
execution of such pairs (``oei``), and the schedule of a simulated machine.

A tensor is a vector with one number or one row of features per vertex, a scalar, or a small dense
matrix. All numbers are float64, and a truth value is 1 or 0.

References
----------
Zhang 2024, §4.2.1, Figs. 4.2 and 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2.op import Semiring
from vitruvian.golden.sparse.elementwise import FUNCTIONS, REDUCTIONS
from vitruvian.golden.sparse.semirings import as_semiring

#: An input of an element-wise operation: the name of a tensor, or a number
Operand = str | float


@dataclass(frozen=True)
class Vxm:
    """The product of a vector and a sparse matrix; see ``products.vxm``.

    Attributes
    ----------
    out, vector, matrix : str
    semiring : Semiring or str
    transposed : bool
    """

    out: str
    vector: str
    matrix: str = "A"
    semiring: Semiring | str = "mma"
    transposed: bool = False

    def __post_init__(self) -> None:
        as_semiring(self.semiring)


@dataclass(frozen=True)
class Ewise:
    """An element-wise operation; scalars and numbers apply to each element.

    Attributes
    ----------
    out : str
    function : str
        A key of ``elementwise.FUNCTIONS``.
    inputs : tuple of str or float
    """

    out: str
    function: str
    inputs: tuple[Operand, ...]

    def __post_init__(self) -> None:
        one_of("function", self.function, FUNCTIONS)
        _check_arity(self.function, FUNCTIONS[self.function].arity, self.inputs)


@dataclass(frozen=True)
class Reduce:
    """An operation that needs whole vectors and gives a scalar or a small tensor.

    Attributes
    ----------
    out : str
    function : str
        A key of ``elementwise.REDUCTIONS``.
    inputs : tuple of str or float
    """

    out: str
    function: str
    inputs: tuple[Operand, ...]

    def __post_init__(self) -> None:
        one_of("function", self.function, REDUCTIONS)
        _check_arity(self.function, REDUCTIONS[self.function].arity, self.inputs)


@dataclass(frozen=True)
class Swap:
    """Two tensors that exchange their names; no data move.

    Attributes
    ----------
    first, second : str
    """

    first: str
    second: str


Node = Vxm | Ewise | Reduce | Swap


def _check_arity(function: str, arity: int | None, operands: tuple[Operand, ...]) -> None:
    if arity is not None and len(operands) != arity:
        raise ValueError(f"inputs of {function} must be {arity} operands, not {operands!r}")


def inputs(node: Node) -> tuple[str, ...]:
    """Return the names of the tensors that a node reads; matrices are left out."""
    if isinstance(node, Vxm):
        return (node.vector,)
    if isinstance(node, Swap):
        return node.first, node.second
    return tuple(each for each in node.inputs if isinstance(each, str))


def outputs(node: Node) -> tuple[str, ...]:
    """Return the names of the tensors that a node writes."""
    return (node.first, node.second) if isinstance(node, Swap) else (node.out,)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """An iterative algorithm.

    Attributes
    ----------
    name : str
    given : tuple of str
        Tensors that the caller gives.
    matrices : tuple of str
        Sparse matrices that the caller gives.
    setup : tuple of Node
        Nodes that run once, before the first iteration.
    body : tuple of Node
        Nodes of one iteration.
    results : tuple of str
        Tensors that are the result.
    stop : str or None
        Scalar that ends the run after the iteration in which it becomes true. If it is None, the
        body runs as often as the caller says, once by default.
    confirm : tuple of Node
        Nodes that run after an iteration in which ``stop`` becomes true, and write it anew. If it
        is false then, the run goes on: a method whose body updates a residual by recursion computes
        it here from its definition.
    failures : dict of str to str
        Scalars that end the run as a failure when they become true, and their messages.

    Raises
    ------
    ValueError
        If a node reads a tensor that nothing has written, or a result is never written.
    """

    name: str
    given: tuple[str, ...]
    body: tuple[Node, ...]
    results: tuple[str, ...]
    matrices: tuple[str, ...] = ("A",)
    setup: tuple[Node, ...] = ()
    stop: str | None = None
    confirm: tuple[Node, ...] = ()
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        # Nodes run in this order, so that one pass over them finds every tensor that is read too
        # early.
        known = set(self.given)
        for node in (*self.setup, *self.body, *self.confirm):
            for name in inputs(node):
                if name not in known:
                    raise ValueError(
                        f"inputs of {node!r} must be given or written before, not {name!r}"
                    )
            if isinstance(node, Vxm):
                one_of("matrix", node.matrix, self.matrices)
            known.update(outputs(node))
        for name in (*self.results, *self.failures, *([self.stop] if self.stop else [])):
            one_of("result", name, sorted(known))

    def products(self) -> Iterator[tuple[int, Vxm]]:
        """Yield the products of the body with their positions."""
        for position, node in enumerate(self.body):
            if isinstance(node, Vxm):
                yield position, node
