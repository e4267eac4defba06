"""Operands as a rule multiplies them: converted, normalised, flushed."""

from dataclasses import dataclass, replace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.golden.fp.formats import FloatFormat, Specials
from vitruvian.golden.fp.spec import DotSpec

from ..parts.normalise import normalise
from ..parts.unpack import UnpackedCode, unpack


@dataclass(frozen=True, kw_only=True)
class OperandForm:
    """The form in which the operands of one side are multiplied.

    Attributes
    ----------
    source : FloatFormat
        Format of the codes.
    format : FloatFormat
        Format of the significands, which the masks of slices refer to.
    normalised : bool
        If True, subnormal numbers are shifted until they have a hidden bit, and their exponents
        are lowered accordingly.
    rounded : bool
        If True, the codes are rounded to ``format``, which has fewer fraction bits.
    flushed : bool
        If True, subnormal numbers are zeros.
    """

    source: FloatFormat
    format: FloatFormat
    normalised: bool = False
    rounded: bool = False
    flushed: bool = False

    @property
    def bias(self) -> int:
        """The bias of the exponents, with which the least one is at least 1."""
        # A normalised subnormal number has an exponent lower by up to its fraction's bits.
        return self.source.bias + (self.source.fraction_bits if self.normalised else 0)

    @property
    def fraction_bits(self) -> int:
        """Number of fraction bits of the significands."""
        return min(self.source.fraction_bits, self.format.fraction_bits)

    @property
    def largest(self) -> int:
        """Largest exponent of a number, with ``bias``."""
        return self.source.emax + self.bias

    def unpack(self, m: Module, code: Value, *, name: str) -> UnpackedCode:
        """Return the parts of a code.

        Parameters
        ----------
        code : Value
            The code, ``source.storage_bits`` wide.
        name : str
            First part of the new signals' names.
        """
        if self.rounded:
            number = self._rounded(m, code, name)
        else:
            number = unpack(m, code, self.source, name=name)
        if self.flushed:
            # The hidden bit is 0 in subnormal numbers only.
            normal = number.significand[-1]
            significand = number.significand & normal.replicate(len(number.significand))
            number = replace(number, significand=significand, zero=~normal)
        if not self.normalised:
            return number
        moved = normalise(m, number.significand, limit=None, name=f"{name}_normalise")
        exponent = Signal(self.largest.bit_length(), name=f"{name}_lowered")
        m.d.comb += exponent.eq(number.exponent + self.source.fraction_bits - moved.shift)
        return replace(number, exponent=exponent, significand=moved.word)

    def _rounded(self, m: Module, code: Value, name: str) -> UnpackedCode:
        """Return the parts of a code that is rounded to nearest even.

        Fraction and exponent field are incremented together, so a carry raises the exponent, up to
        that of infinity. A NaN is recognised before the rounding.
        """
        source, cut = self.source, self.source.fraction_bits - self.format.fraction_bits
        code = code[source.storage_shift :]
        bits = source.width - 1
        # Nearest, ties to even: more than half of the last place, or half and an odd last bit.
        up = code[cut - 1] & (code[: cut - 1].any() | code[cut])
        kept = Signal(bits - cut, name=f"{name}_kept")
        field = code[source.fraction_bits : bits]
        fraction = code[: source.fraction_bits]
        nan = field.all() & fraction.any()
        # A carry out of the fraction goes on into the exponent, as it should; specials are not
        # rounded, since a NaN could become an infinity or a zero.
        m.d.comb += kept.eq(code[cut:bits] + (up & ~field.all()))
        word = Cat(Const(0, self.format.storage_shift), kept, code[bits])
        padding = self.format.storage_bits - len(word)
        number = unpack(m, Cat(word, Const(0, padding)), self.format, name=name)
        # A NaN whose fraction is in the cut bits only looks like an infinity, so the flags come
        # from the whole code.
        return replace(number, nan=nan, inf=Mux(nan, 0, number.inf))


def form_of(spec: DotSpec, source: FloatFormat) -> OperandForm:
    """Return the form of the operands of a rule that are stored in a format.

    Raises
    ------
    ValueError
        If the hardware cannot convert or flush the format as the rule says.
    """
    target = source if spec.a.convert is None else spec.a.convert
    lowest = source.emin - source.fraction_bits
    form = OperandForm(source=source, format=target)
    if target.fraction_bits < source.fraction_bits:
        alike = (target.emin, target.emax, target.specials) == (
            source.emin,
            source.emax,
            Specials.IEEE,
        )
        if not alike:
            raise ValueError(
                f"convert must be a format with the exponents of {source.name!r} or with as many "
                f"fraction bits in hardware, not {target.name!r}"
            )
        form = replace(form, rounded=True)
    elif target.emin != source.emin:
        if target.emin > lowest or target.emax < source.emax:
            raise ValueError(
                f"convert must be a format in which every number of {source.name!r} is normal, or "
                f"one with its exponents, not {target.name!r}"
            )
        form = replace(form, normalised=True)
    # A format without numbers below the normal ones of the output has nothing to flush.
    flushed = spec.flush and lowest < spec.output.emin
    if not flushed:
        # The leading one of a product is in one of two places if both operands have a hidden bit.
        leading = spec.products.exponent == "leading"
        return replace(form, normalised=form.normalised or leading)
    if target.emin != spec.output.emin or form.normalised:
        raise ValueError(
            f"flush must be False in hardware for {source.name!r} and {spec.output.name!r}"
        )
    return replace(form, flushed=True)


def form_of_addend(spec: DotSpec) -> OperandForm:
    """Return the form of C."""
    return OperandForm(source=spec.output, format=spec.output, flushed=spec.flush)
