"""Groups of operations beside the slices: division and roots, integers, multiply-add."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import one_of

from ..fp.parts.multiply import check_multiplier
from .divsqrt import BLOCK_BITS, DivSqrt, block_cycles
from .fused import LATENCY, FusedLanes
from .integer import AMOUNT_BITS, IntegerWord


class Extra(enum.Enum, shape=4):
    """The operation of a block; the first four have the codes of ``divsqrt.Root``."""

    DIVIDE = 0
    RECIPROCAL = 1
    SQRT = 2
    RSQRT = 3
    INTEGER_ADD = 4
    INTEGER_SUB = 5
    SHIFT_LEFT = 6
    SHIFT_RIGHT = 7
    #: c + a·b
    MULTIPLY_ADD = 8
    #: c·a + b
    MULTIPLY_TARGET = 9


#: The operations of each group.
EXTRA_GROUPS: Mapping[str, tuple[Extra, ...]] = MappingProxyType(
    {
        "divide": (Extra.DIVIDE, Extra.RECIPROCAL, Extra.SQRT, Extra.RSQRT),
        "integer": (Extra.INTEGER_ADD, Extra.INTEGER_SUB, Extra.SHIFT_LEFT, Extra.SHIFT_RIGHT),
        "fused": (Extra.MULTIPLY_ADD, Extra.MULTIPLY_TARGET),
    }
)


@dataclass(frozen=True, kw_only=True)
class ExtensionConfig:
    """The parameters of an extension.

    Parameters
    ----------
    groups : tuple of str
        Names in ``EXTRA_GROUPS``.
    engines : int
        Recurrences of the group "divide".
    multiplier : {"booth", "dsp"}
        Form of the multipliers.

    Raises
    ------
    ValueError
        If a name is unknown.
    """

    groups: tuple[str, ...] = tuple(EXTRA_GROUPS)
    engines: int = 4
    multiplier: str = "booth"

    def __post_init__(self) -> None:
        for group in self.groups:
            one_of("group", group, EXTRA_GROUPS)
        object.__setattr__(self, "groups", tuple(g for g in EXTRA_GROUPS if g in self.groups))
        check_multiplier(self.multiplier)

    @property
    def operations(self) -> tuple[Extra, ...]:
        """The operations that the extension has."""
        return tuple(op for group in self.groups for op in EXTRA_GROUPS[group])

    def cycles(self, operation: Extra, *, wide: bool) -> tuple[int, int]:
        """Return the cycles from a block to its result, and from one block to the next.

        The first number is 0 if the next block is taken behind the result.
        """
        if operation in EXTRA_GROUPS["divide"]:
            return 0, block_cycles(self.engines, wide)
        if operation in EXTRA_GROUPS["fused"]:
            return LATENCY, 2
        return 1, 1


def extension_layout() -> data.StructLayout:
    """Return the layout of a block of operands with its operation.

    ``wide`` is set for elements of 32 bits. ``relu`` is for multiply-adds. ``arithmetic``,
    ``nearest`` and ``amount`` are those of ``IntegerWord``. If ``from_scalar`` is set, every lane
    has ``scalar`` as its operand b; one of 16 bits is in the lower half of the word.
    """
    flags = ("wide", "relu", "arithmetic", "nearest", "from_scalar")
    return data.StructLayout(
        {"operation": Extra, **dict.fromkeys(flags, 1), "amount": AMOUNT_BITS, "scalar": 32}
        | dict.fromkeys("abc", BLOCK_BITS)
    )


class VectorExtension(wiring.Component):
    """Unit with a part for each group of operations.

    Parameters
    ----------
    config : ExtensionConfig

    Members
    -------
    i : In(stream.Signature(extension_layout()))
        Blocks. One of another group must come after the results of the earlier ones.
    o : Out(stream.Signature(256))
        Blocks of results.

    Latency
    -------
    That of ``DivSqrt`` and ``FusedLanes``; one cycle for integers, and a block in each cycle.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: ExtensionConfig):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(extension_layout())),
                "o": Out(stream.Signature(BLOCK_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = self.i.payload
        code = Value.cast(i.operation)
        pair = Mux(i.wide, i.scalar, Cat(i.scalar[:16], i.scalar[:16]))
        b = Signal(BLOCK_BITS, name="operand_b")
        m.d.comb += b.eq(Mux(i.from_scalar, pair.replicate(BLOCK_BITS // 32), i.b))
        build = {
            "divide": self._build_divide,
            "integer": self._build_integer,
            "fused": self._build_fused,
        }
        for group in self.config.groups:
            here = Cat(*(code == op.value for op in EXTRA_GROUPS[group])).any()
            inner, outer = build[group](m, i, b, here)
            with m.If(here):
                m.d.comb += self.i.ready.eq(inner)
            with m.If(outer.valid):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(outer.payload)]
            m.d.comb += outer.ready.eq(self.o.ready)
        return m

    def _build_divide(self, m: Module, i: Any, b: Value, here: Value) -> tuple[Value, Any]:
        m.submodules.divide = unit = DivSqrt(engines=self.config.engines)
        m.d.comb += [
            unit.i.valid.eq(self.i.valid & here),
            Value.cast(unit.i.payload.operation).eq(Value.cast(i.operation)[:2]),
            unit.i.payload.wide.eq(i.wide),
            unit.i.payload.a.eq(i.a),
            unit.i.payload.b.eq(b),
        ]
        return unit.i.ready, unit.o

    def _build_fused(self, m: Module, i: Any, b: Value, here: Value) -> tuple[Value, Any]:
        m.submodules.fused = unit = FusedLanes(multiplier=self.config.multiplier)
        target = Value.cast(i.operation) == Extra.MULTIPLY_TARGET.value
        payload = unit.i.payload
        m.d.comb += [
            unit.i.valid.eq(self.i.valid & here),
            payload.wide.eq(i.wide),
            payload.relu.eq(i.relu),
            payload.a.eq(i.a),
            payload.b.eq(Mux(target, i.c, b)),
            payload.c.eq(Mux(target, b, i.c)),
        ]
        return unit.i.ready, unit.o

    def _build_integer(self, m: Module, i: Any, b: Value, here: Value) -> tuple[Value, Any]:
        code = Value.cast(i.operation)
        shifts = (Extra.SHIFT_LEFT, Extra.SHIFT_RIGHT)
        words = []
        for n in range(BLOCK_BITS // 32):
            m.submodules[f"integer{n}"] = word = IntegerWord()
            part = slice(32 * n, 32 * n + 32)
            m.d.comb += [
                word.a.eq(i.a[part]),
                word.b.eq(b[part]),
                word.wide.eq(i.wide),
                word.subtract.eq(code == Extra.INTEGER_SUB.value),
                word.shift.eq(Cat(*(code == op.value for op in shifts)).any()),
                word.left.eq(code == Extra.SHIFT_LEFT.value),
                word.arithmetic.eq(i.arithmetic),
                word.nearest.eq(i.nearest),
                word.amount.eq(i.amount),
            ]
            words.append(word.d)
        result = stream.Signature(BLOCK_BITS).create()
        room = ~result.valid | result.ready
        with m.If(room):
            m.d.sync += [result.valid.eq(self.i.valid & here), result.payload.eq(Cat(*words))]
        return room, result
