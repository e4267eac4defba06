"""Groups of operations beside the slices: division and roots, integers, multiply-add."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import one_of

from ..fp.parts.multiply import check_multiplier
from .divsqrt import BLOCK_BITS, DivSqrt, block_cycles
from .elements import absolute, from_bytes
from .fused import LATENCY, FusedLanes
from .integer import AMOUNT_BITS, IntegerWord

#: The codes of 1 in FP32 and FP16.
_ONE_32, _ONE_16 = 0x3F800000, 0x3C00


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
    #: a + b, a - b
    SUM = 10
    DIFFERENCE = 11
    #: a, or a·b if a is not above 0
    LEAKY = 12
    ABSOLUTE = 13
    #: FP16 of the bytes in the lower half of the block
    FROM_BYTES = 14


#: The operations of each group.
EXTRA_GROUPS: Mapping[str, tuple[Extra, ...]] = MappingProxyType(
    {
        "divide": (Extra.DIVIDE, Extra.RECIPROCAL, Extra.SQRT, Extra.RSQRT),
        "integer": (Extra.INTEGER_ADD, Extra.INTEGER_SUB, Extra.SHIFT_LEFT, Extra.SHIFT_RIGHT),
        "fused": (
            *(Extra.MULTIPLY_ADD, Extra.MULTIPLY_TARGET),
            *(Extra.SUM, Extra.DIFFERENCE, Extra.LEAKY),
        ),
        "elements": (Extra.ABSOLUTE, Extra.FROM_BYTES),
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

    ``wide`` is set for elements of 32 bits. ``relu`` is for multiply-adds and integers.
    ``arithmetic`` is set for signed integers; ``nearest`` and ``amount`` are those of
    ``IntegerWord``. If ``from_scalar`` is set, every lane
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
    That of ``DivSqrt`` and ``FusedLanes``; one cycle for integers and elements, and a block in each
    cycle.
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
            "elements": self._build_elements,
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
        target, leaky, difference, adds = (
            Cat(*(Value.cast(i.operation) == op.value for op in ops)).any()
            for ops in (
                (Extra.MULTIPLY_TARGET,),
                (Extra.LEAKY,),
                (Extra.DIFFERENCE,),
                (Extra.SUM, Extra.DIFFERENCE),
            )
        )
        payload = unit.i.payload
        signs = Mux(i.wide, *(_each(1 << size - 1, size) for size in (32, 16)))
        ones = Mux(i.wide, _each(_ONE_32, 32), _each(_ONE_16, 16))
        # A sum is a·1 + b, and a positive number a·1 - 0, which changes no zero.
        positive = _positive(i)
        own = ones & positive | b & ~positive
        factor = Mux(leaky, own, Mux(target, i.c, b))
        addend = Mux(adds, b ^ Mux(difference, signs, 0), Mux(target, b, i.c))
        m.d.comb += [
            unit.i.valid.eq(self.i.valid & here),
            payload.wide.eq(i.wide),
            payload.relu.eq(i.relu),
            payload.a.eq(i.a),
            payload.b.eq(Mux(adds, ones, factor)),
            payload.c.eq(Mux(leaky, signs, addend)),
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
            # With relu, a negative sum becomes 0.
            low = i.relu & Mux(i.wide, word.d[-1], word.d[15])
            high = i.relu & word.d[-1]
            words.append(word.d & ~Cat(low.replicate(16), high.replicate(16)))
        return self._build_result(m, here, Cat(*words))

    def _build_elements(self, m: Module, i: Any, b: Value, here: Value) -> tuple[Value, Any]:
        code = Value.cast(i.operation)
        half = from_bytes(i.a[: BLOCK_BITS // 2], i.arithmetic)
        whole = absolute(i.a, i.wide, i.arithmetic)
        return self._build_result(m, here, Mux(code == Extra.FROM_BYTES.value, half, whole))

    def _build_result(self, m: Module, here: Value, block: Value) -> tuple[Value, Any]:
        """Offer a result in the next cycle; return if a block can be taken, and the result."""
        result = stream.Signature(BLOCK_BITS).create()
        room = ~result.valid | result.ready
        with m.If(room):
            m.d.sync += [result.valid.eq(self.i.valid & here), result.payload.eq(block)]
        return room, result


def _each(element: int, size: int) -> Const:
    """Return a block of equal elements."""
    return Const(sum(element << low for low in range(0, BLOCK_BITS, size)), BLOCK_BITS)


def _positive(i: Any) -> Value:
    """Return ones for the elements of a that are above 0, or NaNs without a sign."""
    masks = []
    for size in (32, 16):
        parts = (i.a[low : low + size] for low in range(0, BLOCK_BITS, size))
        masks.append(Cat(*((~x[-1] & x.any()).replicate(size) for x in parts)))
    return Mux(i.wide, *masks)
