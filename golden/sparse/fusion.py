"""Scalar products and sums x ± s·y of plain execution, each in one loop instead of two.

A product that only the next node reads need not be stored as a whole vector. The loops round it as
the node does, so the results have the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Reduce, Swap, inputs, outputs
from vitruvian.golden.sparse.products_compiled import add_scaled, dot


@dataclass(frozen=True)
class FusedPair:
    """An element-wise product and the next node, the only one that reads it.

    Attributes
    ----------
    product : Ewise
    reader : Ewise or Reduce
        The sum of the product's elements, or another vector plus or minus the product.
    """

    product: Ewise
    reader: Ewise | Reduce


def fused(graph: Graph) -> list[Node | FusedPair]:
    """Return the nodes of a graph's body in their order, with the pairs that fit into one loop."""
    private = _private(graph)
    result: list[Node | FusedPair] = []
    for node in graph.body:
        pair = _pair(result[-1], node) if result else None
        if pair and pair.product.out in private:
            result[-1] = pair
        else:
            result.append(node)
    return result


def _private(graph: Graph) -> set[str]:
    """Return the tensors that are read only by the node after the one that writes them."""
    private: set[str] = set()
    public = {*graph.given, *graph.results, *graph.failures, graph.stop}
    for nodes in (graph.setup, graph.body, graph.confirm):
        written: tuple[str, ...] = ()
        for node in nodes:
            private.update(outputs(node))
            if isinstance(node, Swap):
                public.update(outputs(node))
            public.update(set(inputs(node)) - set(written))
            written = outputs(node)
    return private - public


def _pair(product: Node | FusedPair, reader: Node) -> FusedPair | None:
    """Return the pair of a product and a sum that reads it once; None for other nodes."""
    if not isinstance(product, Ewise) or product.function != "mul":
        return None
    if isinstance(reader, Reduce) and reader.function == "add":
        return FusedPair(product, reader) if reader.inputs[0] == product.out else None
    if isinstance(reader, Ewise) and reader.function in ("add", "sub"):
        fits = reader.inputs[1] == product.out != reader.inputs[0]
        return FusedPair(product, reader) if fits else None
    return None


def compute_pair(pair: FusedPair, tensors: dict[str, Any]) -> bool:
    """Compute the output of a pair's reader, if the operands have the shapes of a loop.

    Parameters
    ----------
    tensors : dict
        Read, and extended by the output of the reader alone.

    Returns
    -------
    bool
        False if nothing has been computed, so that the nodes have to run one after the other.
    """
    reader = pair.reader
    first, second = (_tensor(tensors, name) for name in pair.product.inputs)
    if isinstance(reader, Reduce):
        if not _are_vectors(first, second):
            return False
        tensors[reader.out] = np.float64(dot(first, second))
        return True
    start = _tensor(tensors, reader.inputs[0])
    if first.ndim or not _are_vectors(start, second):
        return False
    result = np.empty(len(second))
    add_scaled(start, np.float64(first), second, result, reader.function == "sub")
    tensors[reader.out] = result
    return True


def _tensor(tensors: dict[str, Any], name: str | float) -> np.ndarray:
    return np.asarray(tensors[name] if isinstance(name, str) else name, np.float64)


def _are_vectors(x: np.ndarray, y: np.ndarray) -> bool:
    return x.ndim == 1 and x.shape == y.shape
