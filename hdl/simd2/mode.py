"""What the parts of a unit are told about an operation, one bit each."""

from collections.abc import Iterable, Sequence

from amaranth.hdl import Const, Value
from amaranth.lib import data

from vitruvian.golden.simd2.op import Op, as_op

__all__ = [
    "MODES",
    "SHAPES",
    "bits",
    "bits_layout",
    "decoded",
    "mode_of",
    "operations_of",
    "shape_of",
]

#: What an element is told, see `mode_of`.
MODES = ("semiring", "plus", "larger", "truth", "turn", "norm")
#: What a decoder is told, see `shape_of`.
SHAPES = ("product", "raised", "sum", "turn", "deal")


def operations_of(operations: Iterable[Op | str]) -> tuple[Op, ...]:
    """Different operations, in the order of their opcodes.

    Raises
    ------
    ValueError
        If there is none, or one twice, or one that does not exist.
    """
    given = tuple(as_op(op) for op in operations)
    if not given or len(set(given)) != len(given):
        raise ValueError(f"operations must be different names, at least one, not {operations!r}")
    return tuple(sorted(given, key=lambda op: op.code))


def mode_of(op: Op) -> dict[str, int]:
    """What an element is told.

    - semiring: ⊕ is not a sum.
    - plus, larger, truth: in a semiring, ⊗ is +, or the larger one, or and; else it is ×.
    - turn: signs were turned, and the result's is to be turned back.
    - norm: ⊗ is the square of the difference.
    """
    return {
        "semiring": int(op.plus != "add"),
        "plus": int(op.times == "add"),
        "larger": int(op.times in ("min", "max")),
        "truth": int(op.times == "and"),
        "turn": int(op.plus == "max"),
        "norm": int(op.times == "sqdiff"),
    }


def shape_of(op: Op, side: str) -> dict[str, int]:
    """How the operands of a side are decoded.

    - product: significands are wanted, to be multiplied or compared; else they are 0.
    - raised: subnormals are normalised.
    - sum: fixed-point numbers are wanted; else they are 0.
    - turn: the sign is turned. For ⊕ = max those of both operands are, of a product A's alone.
    - deal: four lanes get the same operand, two of them in A with the other sign.
    """
    product = op.plus != "add" and op.times == "mul"
    raised = product or op.times in ("min", "max")
    return {
        "product": int(op.plus == "add" or raised),
        "raised": int(raised),
        "sum": int(op.times == "add"),
        "turn": int(op.plus == "max" and (not product or side == "a")),
        "deal": int(op.times == "sqdiff"),
    }


def _tables(operations: Sequence[Op], side: str | None) -> dict[str, list[int]]:
    names, of = (MODES, mode_of) if side is None else (SHAPES, lambda op: shape_of(op, side))
    return {name: [of(op)[name] for op in operations] for name in names}


def bits_layout(operations: Sequence[Op], side: str | None = None) -> data.StructLayout:
    """`mode_of`, or `shape_of` of a side: as many bits as differ among the operations."""
    tables = _tables(operations, side)
    return data.StructLayout({name: int(len(set(bit)) > 1) for name, bit in tables.items()})


def bits(operations: Sequence[Op], view: data.View, side: str | None = None) -> dict[str, Value]:
    """The bits of a `bits_layout`, constants among them."""
    return {
        name: getattr(view, name) if len(set(bit)) > 1 else Const(bit[0], 1)
        for name, bit in _tables(operations, side).items()
    }


def decoded(operations: Sequence[Op], code: Value, side: str | None = None) -> dict[str, Value]:
    """The bits of a `bits_layout` for an opcode: an operation's place among the operations."""
    found: dict[str, Value] = {}
    for name, table in _tables(operations, side).items():
        if len(set(table)) > 1:
            places = [place for place, bit in enumerate(table) if bit]
            found[name] = Value.cast(sum((code == place for place in places), Const(0, 1)).any())
    return found
