"""The control bits that each operation sets in the elements and in the operand decoders.

The names of the bits are also names in the emitted Verilog.
"""

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

#: The control bits of an element, explained at ``mode_of``.
MODES = ("semiring", "plus", "larger", "truth", "turn", "norm")
#: The control bits of an operand decoder, explained at ``shape_of``.
SHAPES = ("product", "raised", "sum", "turn", "deal")


def operations_of(operations: Iterable[Op | str]) -> tuple[Op, ...]:
    """Return the operations in the order of their opcodes.

    Raises
    ------
    ValueError
        If there are no operations, if one of them is unknown, or if one is repeated.
    """
    ops = tuple(as_op(op) for op in operations)
    if not ops or len(set(ops)) != len(ops):
        raise ValueError(f"operations must be different names, at least one, not {operations!r}")
    return tuple(sorted(ops, key=lambda op: op.code))


def mode_of(op: Op) -> dict[str, int]:
    """Return the control bits of an element.

    - ``semiring``: ⊕ is min, max or "or", not a sum.
    - ``plus``, ``larger``, ``truth``: ⊗ of a semiring is +, or min or max, or "and". If none of
      these bits is set, ⊗ is ×.
    - ``turn``: the operands were negated (for ⊕ = max), so the result must be negated again.
    - ``norm``: ⊗ is the squared difference.
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
    """Return the control bits of the decoders of side ``a`` or ``b``.

    - ``product``: output significands, to be multiplied or compared. Otherwise they are 0.
    - ``raised``: normalise subnormal operands.
    - ``sum``: output fixed-point numbers. Otherwise they are 0.
    - ``turn``: negate the operand. ⊕ = max negates both operands, but of a product only A's.
    - ``deal``: replicate each operand to four lanes; in A two of the four are negated. The four
      products of a lane group then add up to (a - b)² = a·a - a·b - b·a + b·b.
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
    """Return for each control bit its values in the operations."""
    names, of = (MODES, mode_of) if side is None else (SHAPES, lambda op: shape_of(op, side))
    return {name: [of(op)[name] for op in operations] for name in names}


def bits_layout(operations: Sequence[Op], side: str | None = None) -> data.StructLayout:
    """Return the layout of the control bits of an element, or of the decoders of a side.

    A bit that has the same value in all operations is a constant and has a width of 0.
    """
    tables = _tables(operations, side)
    return data.StructLayout({name: int(len(set(bit)) > 1) for name, bit in tables.items()})


def bits(operations: Sequence[Op], view: data.View, side: str | None = None) -> dict[str, Value]:
    """Return the control bits of a ``bits_layout`` by name, including the constant ones.

    Parameters
    ----------
    operations : sequence of Op
        The operations of the unit.
    view : View of ``bits_layout``
    side : str, optional
        If given, return the bits of the decoders of this side, otherwise those of an element.
    """
    return {
        name: getattr(view, name) if len(set(bit)) > 1 else Const(bit[0], 1)
        for name, bit in _tables(operations, side).items()
    }


def decoded(operations: Sequence[Op], code: Value, side: str | None = None) -> dict[str, Value]:
    """Return the control bits of an opcode, except the constant ones.

    Parameters
    ----------
    operations : sequence of Op
        The operations of the unit.
    code : Value
        The opcode: an index into ``operations``.
    side : str, optional
        If given, return the bits of the decoders of this side, otherwise those of an element.
    """
    control: dict[str, Value] = {}
    for name, table in _tables(operations, side).items():
        if len(set(table)) > 1:
            codes = [index for index, bit in enumerate(table) if bit]
            control[name] = Value.cast(sum((code == index for index in codes), Const(0, 1)).any())
    return control
