"""Operand decoders of a semiring unit, one for a whole row or column of elements.

⊕ = max is computed as min on negated numbers: the decoders negate the operands, and the sign is
restored when a result is written. Only +, × and max remain as ⊗.

A sum a + b needs its operands in fixed point. The operand registers stand between ``Decode`` and
``Spread``, in the middle of the shift that converts a number to fixed point, because a fixed-point
number has twice the bits of the number that it is made from. The fine shift, by the low exponent
bits, comes before the registers, and the coarse shift after them. The coarse shift and the addition
together take no longer than a multiplication.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.simd2.op import GROUP, KEPT, PARTS, Op

from ..fp.parts.normalise import normalise
from ..fp.parts.unpack import unpack
from .mode import bits, bits_layout, mode_of, operations_of, shape_of

#: Number of exponent bits that the fine shift, before the operand registers, uses.
_FINE = 4


def fixed_bits(format: FloatFormat) -> int:
    """Return the bits of a number in units of the smallest subnormal: sign and magnitude."""
    return 1 + format.emax - format.emin + 1 + format.fraction_bits


def check_format(format: FloatFormat) -> None:
    """Check that semirings support a format.

    Raises
    ------
    ValueError
        If the format has no infinities or more than 5 exponent bits.
    """
    if format.exponent_bits > 5 or not format.has_infinity:
        raise ValueError(
            f"format must have infinities and at most 5 exponent bits, not {format.name}"
        )


def lane_layout(format: FloatFormat, operations: Sequence[Op]) -> data.StructLayout:
    """Return the layout of a decoded operand. A field that no operation uses has a width of 0.

    ``significand`` and ``exponent`` are those of a factor, or 0 if the operation has no product.
    In a semiring, subnormal operands are normalised as well: the exponent is larger by
    ``fraction_bits``, and it is 0 for a zero operand. ``fixed`` is the number in ones' complement,
    in units of the smallest subnormal number; an infinity is larger than all finite numbers.
    """
    widths, wants = _widths(format, operations)
    for name in ("significand", "exponent"):
        widths[name] *= wants["product"]
    return data.StructLayout({**widths, "fixed": fixed_bits(format) * wants["sum"]})


def held_layout(format: FloatFormat, operations: Sequence[Op]) -> data.StructLayout:
    """Return the layout of an operand register, from which ``Spread`` makes a ``lane_layout``.

    For a sum, ``significand`` is in ones' complement and already shifted by the low bits of the
    exponent, and ``exponent`` has the other bits. ``as_product`` and ``as_sum`` are enables, both 0
    for a NaN; they exist in units that have both forms. Every operand has its own pair of enables
    to limit their fan-out.
    """
    widths, wants = _widths(format, operations)
    for name in ("significand", "exponent"):
        widths[name] *= wants["product"] | wants["sum"]
    widths["significand"] += ((1 << _FINE) - 1) * wants["sum"]
    both = int(wants["product"] and wants["sum"])
    return data.StructLayout({**widths, "as_product": both, "as_sum": both})


def _widths(
    format: FloatFormat, operations: Sequence[Op]
) -> tuple[dict[str, int], dict[str, bool]]:
    """Return the widths of an operand's fields, and the control bits that some operation sets."""
    shapes = [shape_of(op, side) for op in operations for side in "ab"]
    wants = {name: any(shape[name] for shape in shapes) for name in shapes[0]}
    widths = {
        "significand": format.fraction_bits + 1,
        "exponent": format.exponent_bits + wants["raised"],
    }
    return widths | dict.fromkeys(("sign", "zero", "inf", "nan"), 1), wants


class Decode(wiring.Component):
    """Decoder of one operand bus, the part before the operand registers; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the operands; it must have infinities and at most five exponent bits.
    k : int
        Number of operands and of lanes.
    operations : sequence of Op or str
        The operations of the unit.
    side : str
        ``a`` or ``b``.
    groups : bool
        If True, the bus has four operands for every two lanes, from which a sparse A selects.

    Members
    -------
    bus : In(k × storage_bits)
        Codes of the operands.
    shape : In(bits_layout(operations, side))
        Control bits of the operation.
    held : Out(k × held_layout)
        Input of the operand registers.

    Raises
    ------
    ValueError
        If the format, an operation or the side is unknown, or if ``k`` is not a multiple of 4 with
        addnorm.
    """

    if TYPE_CHECKING:
        bus: Signal
        shape: data.View
        held: data.View

    def __init__(
        self,
        *,
        format: FloatFormat | str = "fp16",
        k: int,
        operations: Sequence[Op | str],
        side: str,
        groups: bool = False,
    ):
        self.format = as_format(format)
        check_int("k", k, 1)
        check_format(self.format)
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        self.operations = operations_of(operations)
        if any(mode_of(op)["norm"] for op in self.operations) and k % PARTS:
            raise ValueError(f"k must be a multiple of {PARTS} with addnorm, not {k!r}")
        self.k, self.side, self.groups = k, side, groups
        super().__init__(
            {
                "bus": In(data.ArrayLayout(self.format.storage_bits, k)),
                "shape": In(bits_layout(self.operations, side)),
                "held": Out(data.ArrayLayout(held_layout(self.format, self.operations), k)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape = bits(self.operations, self.shape, self.side)
        replicate = shape["deal"]
        for k in range(self.k):
            code = Value.cast(self.bus[k])
            if not isinstance(replicate, Const) or replicate.value:
                code = Mux(replicate, Value.cast(self.bus[self._replicated(k)]), code)
            # The factors of -a·b and -b·a in (a - b)².
            negate = replicate if self.side == "a" and k % PARTS in (1, 2) else Const(0, 1)
            self._build_operand(m, code, shape, negate, self.held[k], f"x{k}")
        return m

    def _replicated(self, k: int) -> int:
        """Return the index of the operand of lane k if four lanes get the same operand."""
        if not self.groups:
            return k // PARTS
        lanes = GROUP // KEPT * PARTS  # lanes that share a group
        return k // (lanes * KEPT) * GROUP + k % GROUP

    def _build_operand(
        self, m: Module, code: Value, shape, negate: Value, held: data.View, name: str
    ) -> None:
        """Decode one operand into its register."""
        format = self.format
        f = format.fraction_bits
        view = unpack(m, code, format, name=name)
        sign = view.sign ^ shape["turn"] ^ negate
        m.d.comb += [
            held.sign.eq(sign),
            held.zero.eq(view.zero),
            held.inf.eq(view.inf),
            held.nan.eq(view.nan),
            # A NaN must not reach the arithmetic; its flag alone decides the result.
            held.as_product.eq(shape["product"] & ~view.nan),
            held.as_sum.eq(shape["sum"] & ~view.nan),
        ]
        # Keys are compared by their exponents first, which works for normalised numbers only. With
        # f added, the exponent of the smallest subnormal is still 1.
        number = normalise(m, view.significand, limit=None, name=f"{name}_normalise")
        raised = Signal(format.exponent_bits + 1, name=f"{name}_raised")
        m.d.comb += raised.eq(view.exponent + f - number.shift)
        raised_or_zero = raised & (~view.zero).replicate(len(raised))
        significand = Mux(shape["raised"], number.word, view.significand)
        exponent = Mux(shape["raised"], raised_or_zero, view.exponent)
        if len(held.significand) > f + 1:
            # In units of the smallest subnormal, a number is its significand shifted left by its
            # biased exponent less 1.
            steps = Signal(format.exponent_bits, name=f"{name}_steps")
            m.d.comb += steps.eq(view.exponent - 1)
            fine = self._fine(m, view, steps[:_FINE], name) ^ sign.replicate(len(held.significand))
            significand = Mux(shape["sum"], fine, significand)
            coarse = steps[_FINE:]
            exponent = Cat(
                Mux(shape["sum"], coarse, exponent[: len(coarse)]), exponent[len(coarse) :]
            )
        m.d.comb += [held.significand.eq(significand), held.exponent.eq(exponent)]

    def _fine(self, m: Module, view, steps: Value, name: str) -> Value:
        """Return the magnitude after the fine shift.

        An infinity has ``f + 2`` ones at the top, so that it exceeds all finite numbers.
        """
        f = self.format.fraction_bits
        coarse = ((1 << self.format.exponent_bits) - 2) >> _FINE << _FINE  # shift of an infinity
        top = fixed_bits(self.format) - 1 - coarse
        word: Value = Cat(view.significand[:-1], view.significand[-1] & ~view.inf)
        for bit in range(_FINE):
            step = 1 << bit
            shifted = Signal(len(word) + step, name=f"{name}_up{step}")
            m.d.comb += shifted.eq(Mux(steps[bit], Cat(Const(0, step), word), word))
            word = shifted
        return (word | Cat(Const(0, top - f - 2), view.inf.replicate(f + 2)))[: len(word)]


class Spread(wiring.Component):
    """Decoder of operands, the part behind the operand registers; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the operands.
    k : int
        Number of lanes.
    operations : sequence of Op or str
        The operations of the unit.

    Members
    -------
    held : In(k × held_layout)
        Contents of the operand registers.
    lanes : Out(k × lane_layout)
        Operands of the lanes, in the form that the operation needs.
    """

    if TYPE_CHECKING:
        held: data.View
        lanes: data.View

    def __init__(
        self,
        *,
        format: FloatFormat | str = "fp16",
        k: int,
        operations: Sequence[Op | str],
    ):
        self.format, self.k = as_format(format), k
        self.operations = operations_of(operations)
        super().__init__(
            {
                "held": In(data.ArrayLayout(held_layout(self.format, self.operations), k)),
                "lanes": Out(data.ArrayLayout(lane_layout(self.format, self.operations), k)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for k in range(self.k):
            held, lane = self.held[k], self.lanes[k]
            for name in ("sign", "zero", "inf", "nan"):
                m.d.comb += getattr(lane, name).eq(getattr(held, name))
            for name in ("significand", "exponent"):
                field = getattr(lane, name)
                m.d.comb += field.eq(_gated(getattr(held, name)[: len(field)], held.as_product))
            if len(Value.cast(lane.fixed)):
                m.d.comb += lane.fixed.eq(self._fixed(m, held, f"x{k}"))
        return m

    def _fixed(self, m: Module, held: data.View, name: str) -> Value:
        """Return the number in ones' complement, or 0 if the operation has no sum.

        The bits that the coarse shift inserts equal the sign, because -x is ~x.
        """
        word, sign = _gated(held.significand, held.as_sum), _gated(held.sign, held.as_sum)
        for bit in range(self.format.exponent_bits - _FINE):
            step = 1 << (bit + _FINE)
            fill = sign.replicate(step)
            shifted = Signal(len(word) + step, name=f"{name}_up{step}")
            m.d.comb += shifted.eq(Mux(held.exponent[bit], Cat(fill, word), Cat(word, fill)))
            word = shifted
        return Cat(word[: fixed_bits(self.format) - 1], sign)


def _gated(word: Value, enable: Value) -> Value:
    """Return ``word`` if ``enable`` is set or has no bits, and otherwise 0."""
    return word & enable.replicate(len(word)) if len(enable) else word
