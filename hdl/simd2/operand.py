"""Operands of a semiring unit, decoded once for a whole row or column of elements.

⊕ = max is done as min on numbers with the other sign, so signs are turned here, and turned back
when a result is written. Only +, × and max are left for ⊗ then.

Operand registers stand between `Decode` and `Spread`: a number in fixed point has twice the bits of
what it is made from. The fine shift is before them, the coarse one behind, which with the addition
takes no longer than a product.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.simd2.op import GROUP, KEPT, PARTS, Op
from vitruvian.validate import check_int

from ..fp.normalise import normalise
from ..fp.unpack import unpack
from .mode import bits, bits_layout, mode_of, operations_of, shape_of

__all__ = ["Decode", "Spread", "check_format", "fixed_bits", "held_layout", "lane_layout"]


#: Exponent bits of the shift before the operand registers.
_FINE = 4


def fixed_bits(format: FloatFormat) -> int:
    """A number in units of the smallest subnormal: a sign and all magnitude bits."""
    return 1 + format.emax - format.emin + 1 + format.fraction_bits


def check_format(format: FloatFormat) -> None:
    """Raise ValueError for a format that semirings are not built for."""
    if format.exponent_bits > 5 or not format.has_infinity:
        raise ValueError(
            f"format must have infinities and at most 5 exponent bits, not {format.name}"
        )


def lane_layout(format: FloatFormat, operations: Sequence[Op]) -> data.StructLayout:
    """A decoded operand; what none of the operations looks at has no bits.

    ``significand`` and ``exponent`` are as for a product, 0 where there is none; for semirings
    subnormals are normalised too, the exponent has ``fraction_bits`` more, and that of zero is 0.
    ``fixed`` is the number in ones' complement, in units of the smallest subnormal; of infinity it
    is beyond all finite ones.
    """
    widths, wants = _widths(format, operations)
    for name in ("significand", "exponent"):
        widths[name] *= wants["product"]
    return data.StructLayout({**widths, "fixed": fixed_bits(format) * wants["sum"]})


def held_layout(format: FloatFormat, operations: Sequence[Op]) -> data.StructLayout:
    """What an operand register holds: a `lane_layout` without ``fixed``, which is made from it.

    Of a sum, ``significand`` is in ones' complement and shifted by the low bits of the exponent,
    and ``exponent`` has the others. ``as_product`` and ``as_sum`` say what is wanted, of no NaN, if
    that differs: every operand has its own, so that none of them drives much.
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
    """Bits of what operands are made of, and which shapes there are."""
    shapes = [shape_of(op, side) for op in operations for side in "ab"]
    wants = {name: any(shape[name] for shape in shapes) for name in shapes[0]}
    widths = {
        "significand": format.fraction_bits + 1,
        "exponent": format.exponent_bits + wants["raised"],
    }
    return widths | dict.fromkeys(("sign", "zero", "inf", "nan"), 1), wants


class Decode(wiring.Component):
    """One operand bus in, decoded operands out; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Up to five exponent bits.
    k : int
        Operands, and lanes.
    operations : sequence of Op or str
    side : str
        ``a`` or ``b``.
    groups : bool
        Whether there are four operands for every two lanes, for a sparse A to choose from.

    Members
    -------
    bus : In(k × storage_bits)
    shape : In(bits_layout(operations, side))
    held : Out(k × held_layout)

    Raises
    ------
    ValueError
        For a format, operations or a side that there is not, and if k is no multiple of 4 with
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
        deal = shape["deal"]
        for k in range(self.k):
            code = Value.cast(self.bus[k])
            if not isinstance(deal, Const) or deal.value:
                code = Mux(deal, Value.cast(self.bus[self._dealt(k)]), code)
            other = deal if self.side == "a" and k % PARTS in (1, 2) else Const(0, 1)
            self._build_operand(m, code, shape, other, self.held[k], f"x{k}")
        return m

    def _dealt(self, k: int) -> int:
        """Which operand is where operand k was, if four lanes get the same one."""
        if not self.groups:
            return k // PARTS
        lanes = GROUP // KEPT * PARTS  # that share a group then
        return k // (lanes * KEPT) * GROUP + k % GROUP

    def _build_operand(
        self, m: Module, code: Value, shape, other: Value, held: data.View, name: str
    ) -> None:
        format = self.format
        f = format.fraction_bits
        view = unpack(m, code, format, name=name)
        sign = view.sign ^ shape["turn"] ^ other
        m.d.comb += [
            held.sign.eq(sign),
            held.zero.eq(view.zero),
            held.inf.eq(view.inf),
            held.nan.eq(view.nan),
            held.as_product.eq(shape["product"] & ~view.nan),
            held.as_sum.eq(shape["sum"] & ~view.nan),
        ]
        number = normalise(m, view.significand, limit=None, name=f"{name}_normalise")
        raised = Signal(format.exponent_bits + 1, name=f"{name}_raised")
        m.d.comb += raised.eq(view.exponent + f - number.shift)
        raised_or_zero = raised & (~view.zero).replicate(len(raised))
        significand = Mux(shape["raised"], number.word, view.significand)
        exponent = Mux(shape["raised"], raised_or_zero, view.exponent)
        if len(held.significand) > f + 1:
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
        """The magnitude before the coarse shift; of infinity ones, from where there are none."""
        f = self.format.fraction_bits
        coarse = ((1 << self.format.exponent_bits) - 2) >> _FINE << _FINE  # of infinity
        top = fixed_bits(self.format) - 1 - coarse
        word: Value = Cat(view.significand[:-1], view.significand[-1] & ~view.inf)
        for bit in range(_FINE):
            step = 1 << bit
            here = Signal(len(word) + step, name=f"{name}_up{step}")
            m.d.comb += here.eq(Mux(steps[bit], Cat(Const(0, step), word), word))
            word = here
        return (word | Cat(Const(0, top - f - 2), view.inf.replicate(f + 2)))[: len(word)]


class Spread(wiring.Component):
    """Decoded operands in, lanes out, as their operation wants them; combinational.

    Parameters
    ----------
    format, k, operations
        As of `Decode`.

    Members
    -------
    held : In(k × held_layout)
    lanes : Out(k × lane_layout)
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
                found = getattr(lane, name)
                m.d.comb += found.eq(_wanted(getattr(held, name)[: len(found)], held.as_product))
            if len(Value.cast(lane.fixed)):
                m.d.comb += lane.fixed.eq(self._fixed(m, held, f"x{k}"))
        return m

    def _fixed(self, m: Module, held: data.View, name: str) -> Value:
        """The number in ones' complement, or 0: what is shifted in is like its sign."""
        word, sign = _wanted(held.significand, held.as_sum), _wanted(held.sign, held.as_sum)
        for bit in range(self.format.exponent_bits - _FINE):
            step = 1 << (bit + _FINE)
            fill = sign.replicate(step)
            here = Signal(len(word) + step, name=f"{name}_up{step}")
            m.d.comb += here.eq(Mux(held.exponent[bit], Cat(fill, word), Cat(word, fill)))
            word = here
        return Cat(word[: fixed_bits(self.format) - 1], sign)


def _wanted(word: Value, flag: Value) -> Value:
    """The word where the flag is set, or there is none; else 0."""
    return word & flag.replicate(len(word)) if len(flag) else word
