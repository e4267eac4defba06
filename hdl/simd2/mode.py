"""The control bits that each operation sets in the elements and in the operand decoders.

The names of the bits are also names in the emitted Verilog.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Value
from amaranth.lib import data

from vitruvian.golden.simd2.op import Op, as_op


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


@dataclass(frozen=True, kw_only=True)
class ControlTable:
    """The value of each control bit in each operation of a unit.

    A bit that has the same value in all operations is constant: it needs no wire and no decoder.

    Attributes
    ----------
    values : mapping of str to mapping of Op to int
        The value of a bit, 0 or 1, by its name and by the operation.
    """

    values: Mapping[str, Mapping[Op, int]]

    @classmethod
    def of(
        cls, operations: Sequence[Op], bits_of: Callable[[Op], Mapping[str, int]]
    ) -> "ControlTable":
        """Return the table of a unit.

        Parameters
        ----------
        operations : sequence of Op
            The operations of the unit.
        bits_of : callable
            Function that returns all control bits of an operation by name.
        """
        rows = {op: bits_of(op) for op in operations}
        names = rows[operations[0]]
        return cls(
            values={name: {op: int(row[name]) for op, row in rows.items()} for name in names}
        )

    @property
    def constants(self) -> dict[str, int]:
        """The bits that have the same value in all operations, and that value."""
        return {
            name: next(iter(column.values()))
            for name, column in self.values.items()
            if len(set(column.values())) == 1
        }

    @property
    def varying(self) -> tuple[str, ...]:
        """The bits that are not constant."""
        return tuple(name for name in self.values if name not in self.constants)

    def operations_with(self, name: str) -> list[Op]:
        """Return the operations that set a bit."""
        return [op for op, bit in self.values[name].items() if bit]


def _table(operations: Sequence[Op], side: str | None) -> ControlTable:
    """Return the control bits of an element, or those of the decoders of a side."""
    return ControlTable.of(operations, mode_of if side is None else lambda op: shape_of(op, side))


def bits_layout(operations: Sequence[Op], side: str | None = None) -> data.StructLayout:
    """Return the layout of the control bits of an element, or of the decoders of a side.

    A constant bit has a width of 0.
    """
    table = _table(operations, side)
    return data.StructLayout({name: int(name in table.varying) for name in table.values})


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
    table = _table(operations, side)
    constants = table.constants
    return {
        name: Const(constants[name], 1) if name in constants else getattr(view, name)
        for name in table.values
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
    table = _table(operations, side)
    control: dict[str, Value] = {}
    for name in table.varying:
        codes = [operations.index(op) for op in table.operations_with(name)]
        control[name] = Value.cast(sum((code == index for index in codes), Const(0, 1)).any())
    return control
