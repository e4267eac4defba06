"""The terms that a pair of operands gives: its product, or the partial products of slices."""

from dataclasses import replace

from amaranth.hdl import Module, Mux, Signal, Value

from vitruvian.golden.fp.spec import DotSpec

from ..parts.multiply import multiply
from ..parts.unpack import UnpackedCode
from .geometry import Lane
from .operands import OperandForm


def product_lane(
    m: Module,
    a: UnpackedCode,
    b: UnpackedCode,
    *,
    fraction: int,
    name: str,
    multiplier: str = "booth",
) -> Lane:
    """Return the exact product of two unpacked operands.

    Parameters
    ----------
    a, b : UnpackedCode
        The operands.
    fraction : int
        Sum of the operands' numbers of fraction bits.
    name : str
        First part of the new signals' names.
    multiplier : {"booth", "dsp", "quiet"}
        Form of the multiplier.
    """
    product = multiply(m, a.significand, b.significand, name=name, multiplier=multiplier)
    return lane(m, a, b, product, fraction, name)


def lane(
    m: Module, a: UnpackedCode, b: UnpackedCode, significand: Value, fraction: int, name: str
) -> Lane:
    """Return the product of two operands whose significands were multiplied elsewhere.

    Parameters
    ----------
    a, b : UnpackedCode
        The operands.
    significand : Value
        The product of their significands.
    fraction : int
        Number of fraction bits of ``significand``.
    name : str
        First part of the new signals' names.
    """
    zero = Signal(name=f"{name}_zero")
    exponent = Signal(max(len(a.exponent), len(b.exponent)) + 1, name=f"{name}_exponent")
    sign = Signal(name=f"{name}_sign")
    m.d.comb += [
        # A zero product gets the exponent 0, below all nonzero products, so it never sets E_max.
        zero.eq(a.zero | b.zero),
        exponent.eq((a.exponent + b.exponent) & (~zero).replicate(len(exponent))),
        sign.eq(a.sign ^ b.sign),
    ]
    return Lane(
        sign=sign,
        exponent=exponent,
        significand=significand,
        fraction=fraction,
        # 0 · ∞ is an invalid operation (IEEE 754, section 7.2).
        nan=a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf),
        inf=a.inf | b.inf,
    )


def product_lanes(
    m: Module,
    spec: DotSpec,
    a: UnpackedCode,
    b: UnpackedCode,
    forms: tuple[OperandForm, OperandForm],
    *,
    name: str,
    multiplier: str,
) -> list[Lane]:
    """Return the terms of one pair of operands.

    Parameters
    ----------
    a, b : UnpackedCode
        The operands.
    forms : (OperandForm, OperandForm)
        Their forms.
    name : str
        First part of the new signals' names.
    multiplier : {"booth", "dsp", "quiet"}
        Form of the multipliers.
    """
    fraction = forms[0].fraction_bits + forms[1].fraction_bits
    if spec.products.slices is None:
        product = product_lane(m, a, b, fraction=fraction, name=name, multiplier=multiplier)
        leading = spec.products.exponent == "leading"
        return [_normalised(m, product, name) if leading else product]
    whole = lane(m, a, b, Value.cast(0), 0, name)
    lanes: list[Lane] = []
    for i, masks in enumerate(spec.products.slices):
        words, low = [], 0
        for operand, form, mask in zip((a, b), forms, masks, strict=True):
            start, part = _slice(operand.significand, form, mask)
            words.append(part)
            low += start
        word = multiply(m, words[0], words[1], name=f"{name}_{i}", multiplier=multiplier)
        lanes.append(
            Lane(
                sign=whole.sign,
                exponent=whole.exponent,
                significand=word,
                fraction=fraction - low,
                nan=whole.nan,
                inf=whole.inf,
            )
        )
    return lanes


def _normalised(m: Module, product: Lane, name: str) -> Lane:
    """Return a product of normalised operands with the exponent of its leading one."""
    word = product.significand
    top = word[-1]
    exponent = Signal(len(product.exponent), name=f"{name}_leading")
    # A product of two numbers in [1, 2) is in [1, 4), so its leading one is in one of two places.
    m.d.comb += exponent.eq(product.exponent + top)
    moved = Mux(top, word, word << 1)[: len(word)]
    return replace(product, exponent=exponent, significand=moved, fraction=product.fraction + 1)


def _slice(significand: Value, form: OperandForm, mask: int) -> tuple[int, Value]:
    """Return the bits of a significand under a mask, and the place of the lowest one.

    The mask refers to the format in which the operands are multiplied. Bits below the significand
    of a narrower source are zero.
    """
    # Masks count the bits of the format that is multiplied; operands may have fewer.
    mask >>= form.format.fraction_bits - form.fraction_bits
    mask &= (1 << len(significand)) - 1
    # The isolated lowest one of the mask.
    low = (mask & -mask).bit_length() - 1
    return low, significand[low : mask.bit_length()]
