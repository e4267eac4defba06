"""The nine operations D = C ⊕ (A ⊗ B) of SIMD², as data."""

from dataclasses import dataclass
from enum import Enum

#: 2:4 sparsity: the elements of a group along K, and how many of them are kept
GROUP, KEPT = 4, 2
#: Products that form one squared difference: a·a − a·b − a·b + b·b
PARTS = 4


@dataclass(frozen=True, kw_only=True)
class Semiring:
    """The two operators of an operation and their special elements.

    Attributes
    ----------
    plus : {"add", "min", "max", "or"}
        The reduction ⊕, which also adds C.
    times : {"mul", "add", "min", "max", "and", "sqdiff"}
        The operator ⊗ on an element of A and an element of B.
    identity : float
        The identity of ⊕ and the default of C. For "add" it is +0, so a sum of negative zeros
        becomes +0.
    no_edge : float or None
        The annihilator of ⊗: ``no_edge ⊗ x`` is the identity of ⊕ for every x that an ordinary
        problem has. It marks a missing edge in an adjacency matrix. None if the operands are not
        edges.
    row : str
        The problem that Zhang 2024, Table 3.1, gives for the operation.
    """

    plus: str
    times: str
    identity: float
    no_edge: float | None
    row: str


_INF = float("inf")


class Op(Enum):
    """An operation of the unit, in the order of the opcodes.

    The attributes of the operation's ``Semiring`` are also attributes of the operation.

    References
    ----------
    Zhang 2024, Tables 3.1 and 3.2; the order is that of Table 3.2.
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
        """The name of ⊕."""
        return self.value.plus

    @property
    def times(self) -> str:
        """The name of ⊗."""
        return self.value.times

    @property
    def identity(self) -> float:
        """The identity of ⊕."""
        return self.value.identity

    @property
    def no_edge(self) -> float | None:
        """The annihilator of ⊗, which marks a missing edge, or None."""
        return self.value.no_edge

    @property
    def code(self) -> int:
        """The opcode, 0 to 8."""
        return list(Op).index(self)

    @property
    def mnemonic(self) -> str:
        """The name in lower case, as in Zhang 2024, Table 3.2."""
        return self.name.lower()


def as_op(value: "Op | str") -> Op:
    """Return the operation with the mnemonic ``value``; an ``Op`` is returned unchanged.

    Raises
    ------
    ValueError
        If ``value`` is not a mnemonic.
    """
    if isinstance(value, Op):
        return value
    for op in Op:
        if op.mnemonic == value:
            return op
    names = ", ".join(op.mnemonic for op in Op)
    raise ValueError(f"op must be one of {names}, not {value!r}")
