"""The operators of a dataflow graph's iterations, with the sizes of their tensors.

An operator is a product, or an expression of element-wise nodes: a node together with the nodes
before it whose results nothing else uses. The inner results of an expression never leave a
processing element. Copies and swaps are renamings. Scalars and small tensors, which have no element
per row or column of a matrix, stay on chip.

Everything here follows from the graph and from shapes; no values are needed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from vitruvian.golden.sparse.elementwise import FUNCTIONS
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Operand, Reduce, Swap, Vxm

Shape = tuple[int, ...]

#: A matrix by its name, and whether a product reads its transpose
View = tuple[str, bool]


@dataclass(frozen=True)
class Operator:
    """An operator of one iteration.

    The names of tensors are those of a static single assignment form: no name is written twice.

    Attributes
    ----------
    iteration, position : int
        Iteration from 0, and position of its last node in the graph's body.
    view : View or None
        The matrix, if the operator is a product.
    vectors : tuple of str
        Distinct vectors that it reads element by element; of a product, its input.
    whole : tuple of str
        Scalars and small tensors that it needs before it starts.
    output : str
    reduces : bool
        True if the output needs the whole inputs.
    output_values : int
        Elements of the output; 0 if it stays on chip.
    operations : int
        Operations of processing elements; of a product, for each nonzero.
    """

    iteration: int
    position: int
    view: View | None
    vectors: tuple[str, ...]
    whole: tuple[str, ...]
    output: str
    reduces: bool
    output_values: int
    operations: int

    @property
    def swept(self) -> bool:
        """True if the operator reads or writes vectors."""
        return bool(self.vectors) or self.output_values > 0


@dataclass(frozen=True)
class _OperatorPart:
    """A node of the unrolled graph, before expressions are joined."""

    iteration: int
    position: int
    node: Vxm | Ewise | Reduce
    vectors: tuple[str, ...]
    whole: tuple[str, ...]
    output: str
    operations: int


class _Unrolling:
    """The symbolic execution of a graph: names and shapes instead of tensors."""

    def __init__(
        self, graph: Graph, shapes: Mapping[str, Shape], matrices: Mapping[str, Shape]
    ) -> None:
        self.graph, self.matrices = graph, matrices
        self.dimensions = {size for shape in matrices.values() for size in shape}
        self.current = {name: name for name in shapes}
        self.shapes = dict(shapes)
        self.parts: list[_OperatorPart] = []
        for position, node in enumerate(graph.setup):
            self.execute(node, -1, position)
        # The setup defines names and shapes; its operators run before the measurement.
        self.parts.clear()

    def is_vector(self, name: str) -> bool:
        """Return whether a tensor has an element, or a row, for each row or column of a matrix."""
        shape = self.shapes[name]
        return len(shape) > 0 and shape[0] in self.dimensions

    def execute(self, node: Node, iteration: int, position: int) -> None:
        """Give the node's output a name and a shape; record the node unless it is a renaming."""
        if isinstance(node, Swap):
            first, second = self.current[node.first], self.current[node.second]
            self.current[node.first], self.current[node.second] = second, first
            return
        operands = self.operands(node)
        if isinstance(node, Ewise) and node.function == "copy" and isinstance(operands[0], str):
            # A copy is another name for a tensor and moves no data.
            self.current[node.out] = operands[0]
            return
        output = f"{node.out}@{iteration}.{position}"
        shape = self.shape(node, operands)
        names = list(dict.fromkeys(name for name in operands if isinstance(name, str)))
        fixed = set(self.fixed(node, operands))
        # Vectors are read element by element; scalars and small tensors must be there as a whole.
        vectors = tuple(n for n in names if n not in fixed and self.is_vector(n))
        whole = tuple(name for name in names if name not in vectors)
        self.current[node.out] = output
        self.shapes[output] = shape
        operations = self.operations(node, operands, shape)
        self.parts.append(
            _OperatorPart(iteration, position, node, vectors, whole, output, operations)
        )

    def operands(self, node: Vxm | Ewise | Reduce) -> tuple[Operand, ...]:
        """Return the node's inputs by their current names."""
        given = (node.vector,) if isinstance(node, Vxm) else node.inputs
        return tuple(self.current[each] if isinstance(each, str) else each for each in given)

    def fixed(self, node: Vxm | Ewise | Reduce, operands: tuple[Operand, ...]) -> Iterator[str]:
        """Yield the operands that are not read element by element."""
        places = FUNCTIONS[node.function].whole if isinstance(node, Ewise) else ()
        if isinstance(node, Reduce) and node.function == "at":
            places = (0, 1)  # reads one element
        for place in places:
            name = operands[place]
            if isinstance(name, str):
                yield name

    def operand_shapes(self, operands: tuple[Operand, ...]) -> list[Shape]:
        """Return the shapes of operands; that of a number is empty."""
        return [self.shapes[each] if isinstance(each, str) else () for each in operands]

    def shape(self, node: Vxm | Ewise | Reduce, operands: tuple[Operand, ...]) -> Shape:
        """Return the shape of the node's output."""
        shapes = self.operand_shapes(operands)
        if isinstance(node, Vxm):
            rows, columns = self.matrices[node.matrix]
            return (rows if node.transposed else columns, *shapes[0][1:])
        if isinstance(node, Reduce):
            if node.function == "least_squares":
                return (len(operands) - 1,)
            # All other reductions give one number for all vertices.
            return shapes[0][1:] if node.function == "gram" else ()
        if node.function == "rows_by":
            return (shapes[0][0], *shapes[1][1:])
        if node.function == "put":
            return shapes[0]
        if max(map(len, shapes)) == 2:  # a number per vertex applies to each of its features
            shapes = [(*shape, 1) if len(shape) == 1 else shape for shape in shapes]
        return tuple(np.broadcast_shapes(*shapes))

    def operations(
        self, node: Vxm | Ewise | Reduce, operands: tuple[Operand, ...], shape: Shape
    ) -> int:
        """Return the operations of processing elements; of a product, for each nonzero."""
        shapes = self.operand_shapes(operands)
        if isinstance(node, Vxm):
            # One operation for each nonzero and each feature of the vector.
            return _count(shapes[0][1:])
        largest = max(map(_count, shapes))
        if isinstance(node, Ewise):
            # A product with a dense matrix multiplies and adds once for each of its rows.
            return _count(shape) * (shapes[1][0] if node.function == "rows_by" else 1)
        if node.function == "least_squares":
            # The Gram matrix of the columns, and their products with the right side
            columns = len(operands) - 1
            return largest * (columns * (columns + 1) // 2 + columns)
        return 0 if node.function == "at" else largest


def _count(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))


def unrolled(
    graph: Graph,
    shapes: Mapping[str, Shape],
    matrices: Mapping[str, Shape],
    iterations: int,
    *,
    begun: int = 0,
    joined: bool = True,
) -> tuple[list[Operator], dict[str, int], set[str]]:
    """Return the operators of the first iterations in their order.

    Parameters
    ----------
    shapes : dict of str to tuple of int
        Shapes of the tensors in ``graph.given``.
    matrices : dict of str to (int, int)
        Rows and columns of the matrices.
    begun : int
        Number of nodes of one more iteration that run too.
    joined : bool
        Join element-wise nodes to expressions; otherwise, each node is an operator.

    Returns
    -------
    operators : list of Operator
    values : dict of str to int
        Elements of each vector by its name.
    results : set of str
        Names of the graph's results after the last iteration.
    """
    run = _Unrolling(graph, shapes, matrices)
    results: set[str] = set()
    for iteration in range(iterations):
        for position, node in enumerate(graph.body):
            run.execute(node, iteration, position)
    # Before the nodes of the iteration that has only begun, which must not change the results.
    results.update(run.current[name] for name in graph.results if name in run.current)
    for position, node in enumerate(graph.body[:begun]):
        run.execute(node, iterations, position)
    inner = _inner(graph, shapes, matrices) if joined else set()
    values = {name: _count(shape) for name, shape in run.shapes.items() if run.is_vector(name)}
    return list(_joined(run.parts, inner, values, results)), values, results


def final_shapes(
    graph: Graph, shapes: Mapping[str, Shape], matrices: Mapping[str, Shape]
) -> dict[str, Shape]:
    """Return the shapes of all tensors of a graph after an iteration, by the graph's names."""
    run = _Unrolling(graph, shapes, matrices)
    for position, node in enumerate(graph.body):
        run.execute(node, 0, position)
    return {name: run.shapes[current] for name, current in run.current.items()}


def _inner(graph: Graph, shapes: Mapping[str, Shape], matrices: Mapping[str, Shape]) -> set[int]:
    """Return the positions of nodes that belong to the expression of the only node that uses them.

    Three iterations show every use of a tensor, except by the caller: results of any iteration may
    be those of the run.
    """
    run = _Unrolling(graph, shapes, matrices)
    kept: set[str] = set()
    for iteration in range(3):
        for position, node in enumerate(graph.body):
            run.execute(node, iteration, position)
        kept.update(run.current[name] for name in graph.results if name in run.current)
    uses = Counter(name for part in run.parts for name in (*part.vectors, *part.whole))
    user = {name: part for part in run.parts for name in part.vectors}
    inner: set[int] = set()
    for part in run.parts:
        consumer = user.get(part.output)
        if (
            part.iteration == 0
            and isinstance(part.node, Ewise)
            and run.is_vector(part.output)
            and part.output not in kept
            and uses[part.output] == 1
            and consumer is not None
            and consumer.iteration == 0
            and not isinstance(consumer.node, Vxm)
        ):
            inner.add(part.position)
    return inner


def _joined(
    parts: list[_OperatorPart], inner: set[int], values: Mapping[str, int], results: set[str]
) -> Iterator[Operator]:
    """Yield the operators: each part that is not an inner one, with the inner ones before it."""
    pending: dict[str, _OperatorPart] = {}
    for part in parts:
        vectors: list[str] = []
        whole = list(part.whole)
        operations = part.operations
        for name in part.vectors:
            within = pending.get(name)
            if within is None:
                vectors.append(name)
                continue
            vectors += within.vectors
            whole += within.whole
            operations += within.operations
        part = replace(
            part,
            vectors=tuple(dict.fromkeys(vectors)),
            whole=tuple(dict.fromkeys(whole)),
            operations=operations,
        )
        if part.position in inner and part.output not in results:
            # An inner expression needs no memory: its only user reads its operands instead.
            pending[part.output] = part
            continue
        node = part.node
        yield Operator(
            iteration=part.iteration,
            position=part.position,
            view=(node.matrix, node.transposed) if isinstance(node, Vxm) else None,
            vectors=part.vectors,
            whole=part.whole,
            output=part.output,
            reduces=isinstance(node, Reduce),
            output_values=values.get(part.output, 0),
            operations=part.operations,
        )
