"""What an integer SIMD² unit is: shape, width, operations; and the wires that follow from it."""

from dataclasses import dataclass, fields

from amaranth.lib import data

from vitruvian.golden.simd2.op import Op

from ..fp.multiply import check_multiplier
from ..parameters import without_booth

__all__ = ["BITS", "DEPTHS", "IntConfig"]

BITS = (8, 16, 32, 64)
DEPTHS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class IntConfig:
    """An integer unit of m × n elements with k lanes each.

    Parameters
    ----------
    m, n : int
        Elements of the tile, at least 1 each.
    k : int
        Lanes of an element, even.
    bits : {8, 16, 32, 64}
        Width W of operands and results.
    operations : tuple of Op
        What it can do, each once.
    pipeline : int
        Register ranks inside the elements before the accumulator, 0 to 2.
    multiplier : {"booth", "dsp"}
        Rows of partial products and carry-save trees, or ``*`` and ``+``, which an FPGA has blocks
        for.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """

    m: int = 4
    n: int = 4
    k: int = 4
    bits: int = 16
    operations: tuple[Op, ...] = tuple(Op)
    pipeline: int = 2
    multiplier: str = "booth"

    __repr__ = without_booth

    def __post_init__(self):
        check_multiplier(self.multiplier)
        for name, least in (("m", 1), ("n", 1), ("k", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value!r}")
        if self.k % 2:
            raise ValueError(f"k must be even, not {self.k!r}")
        for name, allowed in (("bits", BITS), ("pipeline", DEPTHS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, not {value!r}")
        if not self.operations or not all(isinstance(op, Op) for op in self.operations):
            raise TypeError(f"operations must be a tuple of Op, not {self.operations!r}")
        if len(set(self.operations)) < len(self.operations):
            raise ValueError(f"operations must be different ones, not {self.operations!r}")
        object.__setattr__(self, "operations", tuple(op for op in Op if op in self.operations))

    def settings(self) -> dict[str, object]:
        """Every parameter, for people."""
        values: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"operations": ", ".join(op.mnemonic for op in self.operations)}

    @property
    def macs(self) -> int:
        """⊗⊕ a cycle."""
        return self.m * self.n * self.k

    def times(self, *names: str) -> bool:
        """Whether an operation has one of these ⊗."""
        return any(op.times in names for op in self.operations)

    def plus(self, *names: str) -> bool:
        """Whether an operation has one of these ⊕."""
        return any(op.plus in names for op in self.operations)

    @property
    def extrema(self) -> bool:
        """Whether ⊕ can be min or max."""
        return self.plus("min", "max")

    @property
    def separate(self) -> bool:
        """Whether every product is needed by itself, not only their sum."""
        return any(op.times == "mul" and op.plus != "add" for op in self.operations)

    @property
    def adder(self) -> bool:
        """Whether a lane has an adder, for a + b or a − b."""
        return self.times("add", "sqdiff", "min", "max")

    @property
    def adder_feeds(self) -> bool:
        """Whether that adder's result is what the lane multiplies, also if it multiplies by B."""
        return self.adder and (self.separate or self.times("sqdiff"))

    @property
    def array(self) -> str:
        """How products are formed: "booth", "pairs" or "squares", or "none"."""
        if self.separate:
            return "booth"
        if self.times("mul"):
            return "pairs"
        return "squares" if self.times("sqdiff") else "none"

    @property
    def edge_recoded(self) -> bool:
        """Whether the edge of the tile prepares the multiplier for all elements of a column."""
        if self.multiplier == "dsp":
            return False
        return self.array in ("booth", "pairs") and not self.times("sqdiff")

    @property
    def a_layout(self) -> data.StructLayout:
        """A bus of a row: its operands; sums of two lanes; which operands are true."""
        fields = {"a": data.ArrayLayout(self.bits, self.k)}
        if self.array == "pairs" and self.edge_recoded:
            fields["both"] = data.ArrayLayout(self.bits, self.k // 2)
        if self.plus("or"):
            fields["truth"] = data.ArrayLayout(1, self.k)
        return data.StructLayout(fields)

    @property
    def b_layout(self) -> data.StructLayout:
        """A bus of a column: what is added to A; what A is multiplied by; what is true."""
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
        """Decoded opcode: what an operation asks of the elements."""
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
    def constant_controls(self) -> dict[str, bool]:
        """Control bits that are the same in all operations."""
        every = [self.control_bits(op) for op in self.operations]
        return {name: every[0][name] for name in every[0] if len({e[name] for e in every}) == 1}

    @property
    def control_layout(self) -> data.StructLayout:
        """Control bits of a stage: valid, first, and the decoded bits that differ."""
        names = [n for n in self.control_bits(Op.MMA) if n not in self.constant_controls]
        return data.StructLayout(dict.fromkeys(("valid", "first", *names), 1))
