"""Parameters of an integer SIMD² unit (shape, width, operations) and its bus layouts."""

from dataclasses import dataclass, fields

from amaranth.lib import data

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.simd2.op import Op

from ..fp.parts.multiply import check_multiplier
from ..parameters import without_later_options
from .mode import ControlTable

BITS = (8, 16, 32, 64)
DEPTHS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class IntConfig:
    """The parameters of an integer unit of m × n elements with k lanes each.

    Parameters
    ----------
    m, n : int
        Rows and columns of the tile, at least 1 each.
    k : int
        Number of lanes of an element; it must be even.
    bits : {8, 16, 32, 64}
        Width W of operands and results.
    operations : tuple of Op
        The operations of the unit, without repetition.
    pipeline : int
        Number of register ranks in an element in front of the accumulator, 0 to 2.
    multiplier : {"booth", "dsp"}
        ``booth``: rows of partial products and carry-save trees, for standard cells. ``dsp``:
        ``*`` and ``+``, for the DSP blocks of an FPGA.

    Raises
    ------
    TypeError
        If a size is not an integer or an operation is not an ``Op``.
    ValueError
        If a parameter is outside its range.
    """

    m: int = 4
    n: int = 4
    k: int = 4
    bits: int = 16
    operations: tuple[Op, ...] = tuple(Op)
    pipeline: int = 2
    multiplier: str = "booth"

    __repr__ = without_later_options

    def __post_init__(self):
        check_multiplier(self.multiplier)
        for name, least in (("m", 1), ("n", 1), ("k", 2)):
            check_int(name, getattr(self, name), least)
        if self.k % 2:
            raise ValueError(f"k must be even, not {self.k!r}")
        one_of("bits", self.bits, BITS)
        one_of("pipeline", self.pipeline, DEPTHS)
        if not self.operations or not all(isinstance(op, Op) for op in self.operations):
            raise TypeError(f"operations must be a tuple of Op, not {self.operations!r}")
        if len(set(self.operations)) < len(self.operations):
            raise ValueError(
                f"operations must be different from each other, not {self.operations!r}"
            )
        object.__setattr__(self, "operations", tuple(op for op in Op if op in self.operations))

    def settings(self) -> dict[str, object]:
        """Return every parameter in a form for people to read."""
        values: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"operations": ", ".join(op.mnemonic for op in self.operations)}

    @property
    def macs(self) -> int:
        """Pairs of ⊗ and ⊕ per cycle."""
        return self.m * self.n * self.k

    def times(self, *names: str) -> bool:
        """Return True if some operation has one of these ⊗."""
        return any(op.times in names for op in self.operations)

    def plus(self, *names: str) -> bool:
        """Return True if some operation has one of these ⊕."""
        return any(op.plus in names for op in self.operations)

    @property
    def extrema(self) -> bool:
        """True if some operation has ⊕ = min or max."""
        return self.plus("min", "max")

    @property
    def separate(self) -> bool:
        """True if some operation needs every product by itself, not only their sum."""
        return any(op.times == "mul" and op.plus != "add" for op in self.operations)

    @property
    def adder(self) -> bool:
        """True if a lane has an adder, for a + b or a − b."""
        return self.times("add", "sqdiff", "min", "max")

    @property
    def adder_feeds(self) -> bool:
        """True if the multiplier of a lane takes its factor from the adder of the lane."""
        return self.adder and (self.separate or self.times("sqdiff"))

    @property
    def array(self) -> str:
        """The form of the multipliers.

        ``booth``: one Booth array per product. ``pairs``: two products share their rows.
        ``squares``: arrays that can only square. ``none``: no multipliers.
        """
        if self.separate:
            return "booth"
        if self.times("mul"):
            return "pairs"
        return "squares" if self.times("sqdiff") else "none"

    @property
    def edge_recoded(self) -> bool:
        """True if the edge of the tile recodes B once for all elements of a column."""
        if self.multiplier == "dsp":
            return False
        return self.array in ("booth", "pairs") and not self.times("sqdiff")

    @property
    def a_layout(self) -> data.StructLayout:
        """Layout of a row's bus: operands, sums of two lanes, and the operands that are true."""
        fields = {"a": data.ArrayLayout(self.bits, self.k)}
        if self.array == "pairs" and self.edge_recoded:
            fields["both"] = data.ArrayLayout(self.bits, self.k // 2)
        if self.plus("or"):
            fields["truth"] = data.ArrayLayout(1, self.k)
        return data.StructLayout(fields)

    @property
    def b_layout(self) -> data.StructLayout:
        """Layout of a column's bus: addends of A, factors of A, and the operands that are true."""
        fields = {}
        if self.adder:
            fields["addend"] = data.ArrayLayout(self.bits, self.k)
        if self.array in ("booth", "pairs"):
            each = 3 * self.bits // 2 if self.edge_recoded else self.bits
            fields["multiplier"] = data.ArrayLayout(each, self.k)
        if self.plus("or"):
            fields["truth"] = data.ArrayLayout(1, self.k)
        return data.StructLayout(fields)

    def control_bits(self, op: Op) -> dict[str, bool]:
        """Return the control bits that an operation sets in the elements."""
        return {
            "carry": op.times in ("sqdiff", "min", "max"),
            "square": op.times == "sqdiff",
            "pick": op.times in ("min", "max"),
            "pick_largest": op.times == "max",
            "extreme": op.plus in ("min", "max"),
            "largest": op.plus == "max",
            "truth": op.plus == "or",
        }

    @property
    def controls(self) -> ControlTable:
        """The control bits of all operations."""
        return ControlTable.of(self.operations, self.control_bits)

    @property
    def control_layout(self) -> data.StructLayout:
        """Layout of a stage's control: valid, first, and the bits that are not constant."""
        return data.StructLayout(dict.fromkeys(("valid", "first", *self.controls.varying), 1))
