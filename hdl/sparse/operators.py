"""The operators of a semiring: the processing element (⊗) and the reduction (⊕)."""

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format

from ..fp.add import Adder
from ..fp.compare import MinMax
from ..fp.mul import Multiplier
from ..fp.parts.multiply import check_multiplier
from ..fp.parts.unpack import unpack
from .config import Plus, Times


def identity_of(m: Module, plus: Value, format: FloatFormat, *, name: str = "identity") -> Signal:
    """Return the identity of a reduction: +∞ of minimum, −∞ of maximum, otherwise +0."""
    identity = Signal(format.storage_bits, name=name)
    assert format.infinity is not None
    with m.If(plus == Plus.MIN):
        m.d.comb += identity.eq(format.infinity)
    with m.Elif(plus == Plus.MAX):
        # The code of −∞.
        m.d.comb += identity.eq(format.infinity | format.sign_mask)
    return identity


def truth(m: Module, code: Value, format: FloatFormat, *, name: str) -> Value:
    """Return 1 for a number that is neither zero nor NaN."""
    parts = unpack(m, code, format, name=name)
    return ~parts.zero & ~parts.nan


def one(condition: Value, format: FloatFormat) -> Value:
    """Return the code of 1 or of 0."""
    # 1.0 has the exponent 0, so that its code is the bias with an empty fraction.
    one = format.bias << format.fraction_bits
    return Mux(condition, Const(one, format.storage_bits), 0)


class Reduction(wiring.Component):
    """Reduction ``d = a ⊕ b``, bit-exact with ``golden.sparse.operators.combine``; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the numbers, which must have an infinity.

    Members
    -------
    a, b : In(format.storage_bits)
        Operands.
    plus : In(Plus)
        The operator.
    d : Out(format.storage_bits)
        The result, rounded to nearest, ties to even.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        plus: Signal
        d: Signal

    def __init__(self, *, format: FloatFormat | str):
        self.format = as_format(format)
        self.latency = 0
        bits = self.format.storage_bits
        super().__init__({"a": In(bits), "b": In(bits), "plus": In(Plus), "d": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f = self.format
        m.submodules.adder = adder = Adder(format=f)
        m.submodules.minmax = minmax = MinMax(format=f)
        m.d.comb += [
            adder.a.eq(self.a),
            adder.b.eq(self.b),
            minmax.a.eq(self.a),
            minmax.b.eq(self.b),
            minmax.maximum.eq(self.plus == Plus.MAX),
        ]
        # OR works on truth values; its result is a number again, 1 or 0.
        either = truth(m, self.a, f, name="x") | truth(m, self.b, f, name="y")
        with m.Switch(self.plus):
            with m.Case(Plus.ADD):
                m.d.comb += self.d.eq(adder.d)
            with m.Case(Plus.OR):
                m.d.comb += self.d.eq(one(either, f))
            with m.Default():
                m.d.comb += self.d.eq(minmax.d)
        return m


class ProcessingElement(wiring.Component):
    """Product ``d = a ⊗ b``, bit-exact with ``golden.sparse.operators.product``; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the numbers, which must have an infinity.
    multiplier : {"booth", "dsp"}
        Form of the multiplier: see ``hdl.fp.mul.Multiplier``.

    Members
    -------
    a, b : In(format.storage_bits)
        Operands: a matrix value and a vector element.
    plus : In(Plus)
        The reduction that follows. It determines the result of ``ARIL`` if ``a`` is false, and
        ``OR`` turns the result into 1 or 0.
    times : In(Times)
        The operator.
    d : Out(format.storage_bits)
        The result, rounded to nearest, ties to even.

    References
    ----------
    Zhang 2024, §4.4.3.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        plus: Signal
        times: Signal
        d: Signal

    def __init__(self, *, format: FloatFormat | str, multiplier: str = "booth"):
        self.format, self.multiplier = as_format(format), check_multiplier(multiplier)
        self.latency = 0
        bits = self.format.storage_bits
        super().__init__(
            {"a": In(bits), "b": In(bits), "plus": In(Plus), "times": In(Times), "d": Out(bits)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f = self.format
        m.submodules.adder = adder = Adder(format=f)
        m.submodules.multiplier = multiplier = Multiplier(format=f, multiplier=self.multiplier)
        m.submodules.minmax = minmax = MinMax(format=f)
        for unit in (adder, multiplier, minmax):
            m.d.comb += [unit.a.eq(self.a), unit.b.eq(self.b)]
        m.d.comb += [
            adder.subtract.eq(self.times == Times.SUB),
            minmax.maximum.eq(self.times == Times.MAX),
        ]
        a_true, b_true = (truth(m, x, f, name=n) for x, n in ((self.a, "x"), (self.b, "y")))
        result = Signal(f.storage_bits)
        with m.Switch(self.times):
            with m.Case(Times.MUL):
                m.d.comb += result.eq(multiplier.d)
            with m.Case(Times.ADD, Times.SUB):
                m.d.comb += result.eq(adder.d)
            with m.Case(Times.MIN, Times.MAX):
                m.d.comb += result.eq(minmax.d)
            with m.Case(Times.AND):
                m.d.comb += result.eq(one(a_true & b_true, f))
            with m.Case(Times.OR):
                m.d.comb += result.eq(one(a_true | b_true, f))
            with m.Case(Times.ARIL):
                # ARIL (Zhang 2024, §4.4.3): b where a is true; elsewhere a value that leaves the
                # reduction as it is.
                m.d.comb += result.eq(Mux(a_true, self.b, identity_of(m, self.plus, f)))
        is_true = truth(m, result, f, name="result")
        # Only 1 and 0 enter a reduction by OR, so that its result does not depend on the order.
        m.d.comb += self.d.eq(Mux(self.plus == Plus.OR, one(is_true, f), result))
        return m
