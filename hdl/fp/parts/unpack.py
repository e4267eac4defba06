"""Decoding of a code into sign, exponent, significand and class; storage of a result's code."""

from dataclasses import dataclass, fields

from amaranth.hdl import Cat, Const, Module, Signal, Value

from vitruvian.golden.fp.formats import FloatFormat, Specials

from .pipeline import PipelineStages


@dataclass(frozen=True, kw_only=True)
class UnpackedCode:
    """A decoded operand.

    Attributes
    ----------
    sign, zero, inf, nan : Value
        One bit each.
    exponent : Value
        Exponent, biased by ``format.bias``; 1 for subnormal numbers and zero.
    significand : Value
        Significand of ``fraction_bits + 1`` bits, with the hidden bit at the top.
    """

    sign: Value
    exponent: Value
    significand: Value
    zero: Value
    inf: Value
    nan: Value

    def cross(self, stages: PipelineStages, stage: str, prefix: str) -> "UnpackedCode":
        """Return the operand behind a boundary, in signals called ``prefix_field``.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        prefix : str
            First part of every new signal's name.
        """
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return UnpackedCode(**stages.cross_all(stage, parts, prefix))


def unpack(m: Module, code: Value, format: FloatFormat, *, name: str) -> UnpackedCode:
    """Return the parts of a code.

    Parameters
    ----------
    code : Value
        The code, ``format.storage_bits`` wide.
    format : FloatFormat
        Format of the code.
    name : str
        First part of the new signals' names.
    """
    f, e = format.fraction_bits, format.exponent_bits
    code = code[format.storage_shift :]
    fraction, field, sign = code[:f], code[f : f + e], code[f + e]
    normal = Signal(name=f"{name}_normal")
    fraction_zero = Signal(name=f"{name}_fraction_zero")
    special = Signal(name=f"{name}_special")
    m.d.comb += [
        normal.eq(field.any()),
        fraction_zero.eq(~fraction.any()),
        special.eq(field.all()),
    ]
    conditions = format.classify(fraction_zero, ~fraction_zero, fraction.all())
    inf, nan = (Value.cast(0) if x is None else special & x for x in conditions)
    if format.specials is Specials.FNUZ:
        nan = sign & ~normal & fraction_zero  # the code that other formats have for −0
    return UnpackedCode(
        sign=sign,
        exponent=Cat(field[0] | ~normal, field[1:]),
        significand=Cat(fraction, normal),
        zero=~normal & fraction_zero,
        inf=inf,
        nan=nan,
    )


def store(code: Value, format: FloatFormat) -> Value:
    """Return a code of ``format.width`` bits, moved to its position in the storage word."""
    padding = format.storage_bits - format.storage_shift - format.width
    return Cat(Const(0, format.storage_shift), code, Const(0, padding))
