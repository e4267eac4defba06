"""The nine operations D = C ⊕ (A ⊗ B) of SIMD², as data."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["GROUP", "KEPT", "PARTS", "Op", "Semiring", "as_op"]

#: 2:4 sparsity: elements of a group along K, and how many of them are kept.
GROUP, KEPT = 4, 2
#: Products of one square of a difference: a·a − a·b − a·b + b·b.
PARTS = 4


@dataclass(frozen=True, kw_only=True)
class Semiring:
    """What an operation is made of.

    Attributes
    ----------
    plus : {"add", "min", "max", "or"}
        ⊕, which reduces and takes C in.
    times : {"mul", "add", "min", "max", "and", "sqdiff"}
        ⊗, of an element of A and one of B.
    identity : float
        What changes nothing under ⊕, and what C is where none is given. Under "add" it is +0, which
        turns a sum of zeros with the sign − into +0.
    no_edge : float or None
        What ⊗ with makes the identity of ⊕, whatever the other operand of an ordinary problem is:
        the entry of an adjacency matrix where there is no edge. None where operands are no edges.
    row : str
        The problem that Table 3.1 of the thesis names for it.
    """

    plus: str
    times: str
    identity: float
    no_edge: float | None
    row: str


_INF = float("inf")


class Op(Enum):
    """An operation of the unit; the order is that of the opcodes and of the thesis' Table 3.2.

    Attributes of its ``Semiring`` are attributes of the operation.

    References
    ----------
    Zhang, Democratizing Tensor Processors (UC Riverside 2024), Tables 3.1 and 3.2.
    """

    MMA = Semiring(plus="add", times="mul", identity=0.0, no_edge=0.0, row="matrix product")
    MINPLUS = Semiring(
        plus="min", times="add", identity=_INF, no_edge=_INF, row="all-pairs shortest paths"
    )
    MAXPLUS = Semiring(plus="max", times="add", identity=-_INF, no_edge=-_INF, row="critical path")
    MINMUL = Semiring(
        plus="min", times="mul", identity=_INF, no_edge=_INF, row="minimum reliability paths"
    )
    MAXMUL = Semiring(
        plus="max", times="mul", identity=-_INF, no_edge=0.0, row="maximum reliability paths"
    )
    MINMAX = Semiring(
        plus="min", times="max", identity=_INF, no_edge=_INF, row="minimum spanning tree"
    )
    MAXMIN = Semiring(
        plus="max", times="min", identity=-_INF, no_edge=-_INF, row="maximum capacity paths"
    )
    ORAND = Semiring(plus="or", times="and", identity=0.0, no_edge=0.0, row="transitive closure")
    ADDNORM = Semiring(plus="add", times="sqdiff", identity=0.0, no_edge=None, row="L2 distance")

    @property
    def plus(self) -> str:
        """⊕."""
        return self.value.plus

    @property
    def times(self) -> str:
        """⊗."""
        return self.value.times

    @property
    def identity(self) -> float:
        """Of ⊕."""
        return self.value.identity

    @property
    def no_edge(self) -> float | None:
        """The entry of an adjacency matrix where there is no edge."""
        return self.value.no_edge

    @property
    def code(self) -> int:
        """The opcode, 0 to 8."""
        return list(Op).index(self)

    @property
    def mnemonic(self) -> str:
        """The name in lower case, as in Table 3.2."""
        return self.name.lower()


def as_op(value: "Op | str") -> Op:
    """Look up a mnemonic; operations pass through.

    Raises
    ------
    ValueError
        If there is no such operation.
    """
    if isinstance(value, Op):
        return value
    for op in Op:
        if op.mnemonic == value:
            return op
    names = ", ".join(op.mnemonic for op in Op)
    raise ValueError(f"op must be one of {names}, not {value!r}")
