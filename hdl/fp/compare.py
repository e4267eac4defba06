"""Comparison, minimum and maximum of codes, which have the order of sign-magnitude integers."""

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format

from .parts.unpack import store, unpack


class _Order(NamedTuple):
    """The order of two codes.

    ``below`` treats -0 as less than +0; ``both_zero`` is set for any two zeros.
    """

    below: Value
    same: Value
    both_zero: Value
    a_nan: Value
    b_nan: Value


def _order(m: Module, a: Value, b: Value, format: FloatFormat) -> _Order:
    """Return the order of two codes of a format."""
    x, y = unpack(m, a, format, name="a"), unpack(m, b, format, name="b")
    bits = slice(format.storage_shift, format.storage_shift + format.width - 1)
    smaller, equal = Signal(name="smaller_magnitude"), Signal(name="equal_magnitude")
    below = Signal(name="below")
    m.d.comb += [
        smaller.eq(a[bits] < b[bits]),
        equal.eq(a[bits] == b[bits]),
        # Of two negative numbers the one with the larger magnitude is less.
        below.eq(Mux(x.sign, ~y.sign | ~(smaller | equal), ~y.sign & smaller)),
    ]
    return _Order(
        below=below,
        same=equal & (x.sign == y.sign),
        both_zero=x.zero & y.zero,
        a_nan=x.nan,
        b_nan=y.nan,
    )


class Compare(wiring.Component):
    """Comparator of IEEE 754, bit-exact with ``golden.fp.compare``; combinational.

    At most one output is set. If ``a`` is greater than ``b``, all outputs are 0.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the operands.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    less, equal : Out(1)
        ``a < b``, ``a = b`` (-0 equals +0).
    unordered : Out(1)
        At least one operand is a NaN.

    Raises
    ------
    TypeError, ValueError
        If the format is unknown.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        less: Signal
        equal: Signal
        unordered: Signal

    def __init__(self, *, format: FloatFormat | str):
        self.format = as_format(format)
        self.latency = 0
        bits = self.format.storage_bits
        super().__init__(
            {
                "a": In(bits),
                "b": In(bits),
                "less": Out(1),
                "equal": Out(1),
                "unordered": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        order = _order(m, self.a, self.b, self.format)
        m.d.comb += [
            self.unordered.eq(order.a_nan | order.b_nan),
            self.equal.eq((order.same | order.both_zero) & ~self.unordered),
            self.less.eq(order.below & ~order.both_zero & ~self.unordered),
        ]
        return m


class MinMax(wiring.Component):
    """IEEE 754-2019 minimumNumber or maximumNumber; combinational.

    If one operand is a NaN, the result is the other one. Two NaNs give the canonical NaN. -0 is
    less than +0.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the operands.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    maximum : In(1)
        If set, the result is the larger operand, otherwise the smaller one.
    d : Out(format.storage_bits)
        Code of the result.

    Raises
    ------
    TypeError, ValueError
        If the format is unknown.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        maximum: Signal
        d: Signal

    def __init__(self, *, format: FloatFormat | str):
        self.format = as_format(format)
        self.latency = 0
        bits = self.format.storage_bits
        super().__init__({"a": In(bits), "b": In(bits), "maximum": In(1), "d": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f = self.format
        order = _order(m, self.a, self.b, f)
        take_a = Signal(name="take_a")
        # A NaN loses against any number.
        m.d.comb += take_a.eq(~order.a_nan & (order.b_nan | (order.below ^ self.maximum)))
        codes = [code[f.storage_shift : f.storage_shift + f.width] for code in (self.a, self.b)]
        chosen = Mux(take_a, codes[0], codes[1])
        both_nan = order.a_nan & order.b_nan
        nan = f.canonical_nan >> f.storage_shift
        m.d.comb += self.d.eq(store(Mux(both_nan, nan, chosen)[: f.width], f))
        return m
