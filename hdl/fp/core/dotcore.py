"""Back end of every dot product: maximum exponent, align, add, normalise, round, specials.

A unit passes in *lanes* (exact products, not normalised) and an addend C. The result is the code of
C + sum(lanes), rounded once. The work has four steps; ``[name]`` is a boundary between pipeline
stages:

1. Find E_max, the largest exponent of all terms, and each term's distance from it. ``[product]``
2. Shift every term right by its distance. Only F fraction bits (the *window*) below E_max are kept.
   Lost bits are either forgotten, so that magnitudes are truncated, or the term is rounded down
   (floor) and a sticky bit is set.
3. Add: a carry-save tree leaves two rows ``[sum]``, and one adder adds these. ``[total]``
4. Take the magnitude, shift its leading one to the top ``[normalised]``, round, and insert zeros,
   infinities and NaNs.

An example with F = 3, 1.100₂·2⁴ - 1.010₂·2¹: E_max is 4, so the second term becomes 0.001|01₂·2⁴,
where the bar is the end of the window. Truncation computes 1.100 - 0.001 = 1.011. Floor computes
1.100 - 0.010 = 1.010 and a sticky bit: the exact 1.010|11 lies between 1.010 and 1.011.

A negative term needs no adder of its own: -x = ~x + 1, so its row is inverted, and the 1 goes to a
free carry position of the tree. With floor, an x that lost bits needs no 1 at all: if t are the
bits that are kept, -x lies between ~t and ~t + 1, and rounding down gives ~t. A negative total is
treated in the same way.

``Geometry`` derives the width of every signal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from ..parts.align import clip, maximum
from ..parts.carrysave import FAST_ADDER_BITS, CarrySaveRow, add_plainly, add_rows, reduce_rows
from ..parts.normalise import Normalised, normalise, round_and_pack
from ..parts.pipeline import PipelineStages
from ..parts.unpack import UnpackedCode
from .geometry import Bypass, BypassResult, Geometry, Lane, ShortWindow, SmallResult
from .nearest import has_early_distances, largest_and_near
from .pieces import distances_of, near_of
from .result import ZeroSigns, code_of, sign_beside, targets_of
from .sideband import BYPASS_ORDER, SideBand
from .stage_crossing import cross_lanes, cross_lists, cross_short
from .terms import TermBuilder


class DotCore:
    """A builder of the back end; ``build`` adds its logic to ``m``.

    Parameters
    ----------
    m : Module
        The module that gets the logic.
    geometry : Geometry
        The number of lanes and all widths.
    rounding : {"RNE", "RZ", "RTO"}
        Rounding of the result: to nearest even, towards zero, or to odd.
    nan_code : int
        The code of every NaN result.
    stages : PipelineStages
        The stage boundaries and which of them have registers.
    short : ShortWindow, optional
        A shorter window that can be selected at run time. In a unit with ``small`` it may only be
        selected together with the smaller format.
    small : SmallResult, optional
        A smaller format of C and D that can be selected at run time.
    pieces : mapping of int to Value, optional
        One-hot select with a key n: the lanes are grouped n at a time, and each group holds one
        product split into n pieces, least significant first. The lanes of a group have the same
        sign and exponent. If no bit is set, every lane holds a product of its own.
    bypass : Bypass, optional
        Candidates that can replace the sum at run time.
    multiplier : {"booth", "dsp"}
        Form of the additions: carry-save trees, or plain ``+`` for the carry chains of an FPGA
        (``hdl.fp.parts.multiply.MULTIPLIERS``).
    zero : {"ieee", "positive", "exact"}
        The rule for the sign of a zero result, as in ``golden.fp.DotSpec``.
    flush : bool
        If True, a rounded result below the least normal number is a zero of its sign.
    unbounded : bool
        If True, this judges the result as rounded without a lower bound of exponents.
    quiet : bool
        If True, E_max comes early for the registers of the boundary ``distance``; ``stages`` must
        not have ``product``.

    Raises
    ------
    ValueError
        If ``short``, ``small`` or ``bypass`` comes with a geometry, rounding or rule for zeros
        that it was not designed for.
    """

    def __init__(
        self,
        m: Module,
        *,
        geometry: Geometry,
        rounding: str,
        nan_code: int,
        stages: PipelineStages,
        short: ShortWindow | None = None,
        small: SmallResult | None = None,
        pieces: Mapping[int, Value] | None = None,
        bypass: Bypass | None = None,
        multiplier: str = "booth",
        zero: str = "ieee",
        flush: bool = False,
        unbounded: bool = False,
        quiet: bool = False,
    ):
        if short is not None and geometry.sticky == (rounding == "RZ"):
            raise ValueError("a short window must come with floor and RNE, or with neither")
        if small is not None and geometry.only_addend_subnormal:
            raise ValueError("a smaller result must come with products that may be subnormal")
        self.m, self.g, self.stages, self.short, self.small = m, geometry, stages, short, small
        self.rounding, self.nan_code = rounding, nan_code
        self.pieces, self.bypass = dict(pieces or {}), bypass
        self.plain = multiplier == "dsp"
        self.terms = TermBuilder(m, geometry, short)
        self.zeros, self.flush = ZeroSigns(whole=zero, short=short), flush
        self.unbounded, self.quiet = unbounded, quiet
        if bypass is not None and not geometry.sticky:
            raise ValueError("a bypass must come with floor and a sticky bit")
        if bypass is not None and zero != "ieee":
            raise ValueError(f"zero must be 'ieee' with a bypass, not {zero!r}")

    def build(
        self,
        lanes: Sequence[Lane],
        c: UnpackedCode | None,
        held: Sequence[tuple[Value, Value, Value]] | None = None,
    ) -> Value:
        """Return the code of ``c + sum(lanes)``; without an addend, of ``sum(lanes)``.

        Parameters
        ----------
        lanes : sequence of Lane
            The products, in front of the stage ``product``.
        c : UnpackedCode or None
            The addend; None if and only if the geometry has none.
        held : sequence of (Value, Value, Value), optional
            Significand, sign and exponent of every lane, from the caller's own registers.
        """
        return self._build_result(*self._build_rows(lanes, c, held))

    def build_total(self, lanes: Sequence[Lane]) -> Lane:
        """Return ``sum(lanes)`` without a rounding, as a single term of another sum.

        Parameters
        ----------
        lanes : sequence of Lane
            The products, in front of the stage ``product``. Their magnitudes are truncated.
        """
        m, g = self.m, self.g
        total, _, side, _ = self._build_sum(*self._build_rows(lanes, None, None))
        magnitude, nonzero = Signal(g.magnitude_bits, name="total_magnitude"), Signal()
        exponent = Signal((g.exponent_max + g.integer_bits).bit_length(), name="total_exponent")
        m.d.comb += [
            # A magnitude takes an adder here, because the next sum inverts its terms by itself.
            magnitude.eq((total[:-1] ^ side.below.replicate(g.magnitude_bits)) + side.below),
            nonzero.eq(total.any()),
            # Back from the output's scale to that of products, where a significand has two integer
            # bits; 0 is the exponent of a zero term, which never sets E_max.
            exponent.eq(Mux(nonzero, side.top - g.offset + (g.integer_bits - 2), 0)),
        ]
        return Lane(
            sign=Mux(nonzero & ~side.special, side.below, side.minus),
            exponent=exponent,
            significand=magnitude,
            fraction=g.magnitude_bits - 2,
            nan=side.nan,
            inf=side.special,
        )

    def _build_rows(
        self,
        lanes: Sequence[Lane],
        c: UnpackedCode | None,
        held: Sequence[tuple[Value, Value, Value]] | None,
    ):
        """Return the rows of the sum, their carry-ins, the lost bits, the flags and C's sign."""
        cross = self.stages.cross
        lanes, c = self._early("lane", lanes, c)
        # C is compared separately, as its exponent on the scale of products may be negative.
        own, near = [lane.exponent for lane in lanes], None
        if self.quiet and c is not None and has_early_distances(self.g, c):
            zero = self._exponent_of_zero()
            largest, near = largest_and_near(self.m, self.g, own, c, zero)
        else:
            largest = maximum(self.m, own, name="largest")
        lanes, c = self._early("largest", lanes, c)
        largest = self.stages.cross_extra("largest", largest, "s0_largest")
        reference, c_gap = self._build_exponents(largest, c)
        side = self._build_side(lanes, c, largest)
        if held is None:
            words = [cross("product", x.significand, f"s1_p{k}") for k, x in enumerate(lanes)]
            signs = [cross("product", x.sign, f"s1_sign{k}") for k, x in enumerate(lanes)]
            exponents = [cross("product", x.exponent, f"s1_e{k}") for k, x in enumerate(lanes)]
        else:
            words, signs, exponents = zip(*held, strict=True)
        addend = None if c is None else self._cross_addend(c, c_gap)
        reference = cross("product", reference, "s1_reference")
        side = side.cross(self.stages, "product", "s1")
        # The addition of a constant is not for the stage that finds E_max, if that is a long one.
        early_top = not self.quiet or "distance" not in self.stages.names
        side = replace(side, top=self._top(reference)) if early_top else side
        pieces = {n: cross("product", x, f"s1_pieces{n}") for n, x in self.pieces.items()}
        bits = [len(word) for word in words]
        near = near_of(self.g, reference) if near is None else near
        distances = distances_of(self.m, near, exponents, pieces, bits)
        if "distance" in self.stages.names:
            words, signs, distances = cross_lists(
                self.stages, "distance", words=words, signs=signs, distances=distances
            )
            if addend is not None:
                word, sign, gap = (cross("distance", x, f"d_c{i}") for i, x in enumerate(addend))
                addend = word, sign, gap
            side = side.cross(self.stages, "distance", "d")
            if not early_top:
                side = replace(side, top=self._top(cross("distance", reference, "d_reference")))
        rows, ones, lost = self.terms.build(
            list(zip(words, [x.fraction for x in lanes], signs, distances, strict=True)),
            addend,
            side.short,
            pieces,
        )
        c_sign = None if addend is None else addend[1]
        if "aligned" in self.stages.names:
            words = [row.value for row in rows]
            words, ones = cross_lists(self.stages, "aligned", rows=words, ones=ones)
            rows = [replace(row, value=word) for row, word in zip(rows, words, strict=True)]
            lost = cross("aligned", lost, "t_lost")
            c_sign = None if c_sign is None else cross("aligned", c_sign, "t_c_sign")
            side = side.cross(self.stages, "aligned", "t")
        bits = self.g.sum_bits
        if self.plain:
            rows, ones = add_plainly(self.m, rows, width=bits, target=2, name="sum", ones=ones)
        else:
            rows, ones = reduce_rows(self.m, rows, width=bits, name="sum", ones=ones)
        # The tree has put the other carries into free places at the low end of its rows.
        assert len(ones) <= 1, "one carry-in is left for the final adder"
        return rows, ones, lost, side, c_sign

    # ---------------------------------------------------------------- exponents

    def _early(self, stage: str, lanes: Sequence[Lane], c: UnpackedCode | None):
        """Return the products and the addend behind a boundary that few units have."""
        if stage not in self.stages.names:
            return lanes, c
        self.short = cross_short(self.stages, stage, self.short)
        self.zeros = replace(self.zeros, short=self.short)
        return cross_lanes(self.stages, stage, lanes, c)

    def _cross_addend(self, c: UnpackedCode, gap: Value) -> tuple[Value, Value, Value]:
        """Return word, sign and distance of C behind the stage ``product``."""
        cross = self.stages.cross
        short = self.short.select if self.short else None
        word = cross("product", self.terms.addend_word(c, short), "s1_c")
        sign = cross("product", c.sign, "s1_c_sign")
        # A distance of more than the window and two integer bits shifts everything out; clipped,
        # the shifter has fewer stages.
        gap = clip(gap, bits=(self.g.window + 2).bit_length())
        return word, sign, cross("product", gap, "s1_c_gap")

    def _build_exponents(self, largest: Value, c: UnpackedCode | None):
        """Return E_max (product scale) and C's distance from it."""
        m, g = self.m, self.g
        if c is None:
            reference = Signal(signed(g.scaled_bits), name="reference")
            least = g.floor
            m.d.comb += reference.eq(
                largest if least is None else Mux(largest > least, largest, least)
            )
            return reference, Const(0, 1)
        addend = Signal(signed(g.scaled_bits), name="c_scaled")
        reference = Signal(signed(g.scaled_bits), name="reference")
        dominates = Signal(name="c_dominates")
        of_zero = self._exponent_of_zero()
        if of_zero is None:
            m.d.comb += [
                # C's exponent is on the output's scale, and the comparison is on that of products.
                addend.eq(c.exponent - g.offset),
                dominates.eq(~c.zero & (~largest.any() | (addend > largest))),
            ]
        else:
            # C has a valid exponent even if it is zero, so one comparison decides: a nonzero C is
            # never below the floor, and a zero product has exponent 0.
            m.d.comb += [
                addend.eq(Mux(c.zero, of_zero, c.exponent - g.offset)),
                dominates.eq(addend > largest),
            ]
        gap = Signal(g.gap_bits, name="c_gap")
        above = Mux(dominates, addend, largest)
        if g.floor is None or g.floor_of_zero:
            m.d.comb += reference.eq(above)
            m.d.comb += gap.eq((largest - addend) & (~dominates).replicate(g.gap_bits))
        else:
            m.d.comb += reference.eq(Mux(above > g.floor, above, g.floor))
            # With an effective floor, E_max can be above both C and the largest product.
            m.d.comb += gap.eq(reference - addend)
        return reference, gap

    def _exponent_of_zero(self) -> Value | None:
        """Return the exponent of a zero C if that exponent is the floor of E_max, else None."""
        g, short = self.g, self.short
        low = g.floor if g.floor_of_zero else None
        if short is None or short.floor == low:
            return None if low is None else Const(low)
        return Mux(short.select, short.floor or 0, low or 0)

    def _top(self, reference: Value) -> Value:
        """Return E_max on the output's biased scale."""
        g = self.g
        if g.only_addend_subnormal and not g.can_overflow:
            return (reference + g.offset)[: g.output.exponent_bits]
        return reference + g.offset

    def _build_side(
        self, lanes: Sequence[Lane], c: UnpackedCode | None, largest: Value
    ) -> SideBand:
        """Return the flags that travel beside the sum: specials, signs and run-time selects."""
        terms = [*lanes] if c is None else [*lanes, c]
        positive = Cat(*[term.inf & ~term.sign for term in terms]).any()
        negative = Cat(*[term.inf & term.sign for term in terms]).any()
        # ∞ - ∞ is an invalid operation (IEEE 754, section 7.2).
        nan = Cat(*[term.nan for term in terms]).any() | (positive & negative)
        special = positive | negative | nan
        if not self.g.output.has_infinity:
            nan = special
        nan_sign = self.nan_code & self.g.output.sign_mask != 0
        minus_zero = self.zeros.minus(self.g, lanes, c, largest)
        subnormal = None
        if c is not None and self.g.only_addend_subnormal:
            # No nonzero product, and C without a hidden bit: the sum is C.
            subnormal = ~largest.any() & ~c.significand[-1]
        return SideBand(
            nan=nan,
            special=special,
            minus=sign_beside(nan, special, negative, minus_zero, code=nan_sign),
            subnormal=subnormal,
            short=self.short.select if self.short else None,
            small=self.small.select if self.small else None,
        )

    # ---------------------------------------------------------------- result

    def _build_sum(self, rows, ones, lost, side: SideBand, c_sign):
        """Return sum, lost bits, flags and bypass words behind the stage ``sum``."""
        m, g, stages = self.m, self.g, self.stages
        rows, words = self._registered(rows)
        carry = stages.cross("sum", ones[0], "s2_carry") if ones else None
        lost = stages.cross("sum", lost, "s2_lost")
        if c_sign is not None and (not g.sticky or side.short is not None):
            side = replace(side, flip=self.terms.flip(c_sign, side.short))
        side = side.cross(stages, "sum", "s2")

        total = Signal(g.sum_bits, name="total")
        fast = "total" in stages.names and g.sum_bits > FAST_ADDER_BITS and not self.plain
        # A parallel-prefix adder pays only where the addition has a pipeline stage of its own.
        m.d.comb += total.eq(add_rows(m, rows, width=g.sum_bits, carry_in=carry, fast=fast))
        return total, lost, replace(side, below=total[-1]), words

    def _build_result(self, rows, ones, lost, side: SideBand, c_sign) -> Value:
        total, lost, side, words = self._build_sum(rows, ones, lost, side, c_sign)
        g = self.g
        # ~S = |S| - 1 of a negative S; the missing one is added when the sticky bit is known.
        inverted = total[:-1] ^ total[-1].replicate(g.magnitude_bits)
        if self.bypass is not None:
            result = self.bypass.select(words)
            inverted, lost, side = self._replaced(inverted, lost, side, result)
        return self._build_rounded(inverted, lost, side)

    def _registered(self, rows: Sequence[CarrySaveRow]) -> tuple[list[CarrySaveRow], list[Value]]:
        """Return the sum's rows and the bypass words behind the stage ``sum``.

        A bypass word uses the registers of a row that is wide enough, and otherwise its own.
        """
        stages = self.stages
        bypass = list(self.bypass.words) if self.bypass else []
        registered: list[CarrySaveRow] = []
        words: list[Value] = []
        for i, row in enumerate(rows):
            value: Value = row.value
            fits = bool(bypass) and len(bypass[0]) <= len(value)
            if fits and self.bypass is not None:
                word, n = bypass.pop(0), len(value)
                # Upper bits that the word does not have need no multiplexer.
                word = Cat(word, value[len(word) :])
                value = Mux(self.bypass.enable, word, value)[:n]
            value = stages.cross("sum", value, f"s2_row{i}")
            registered.append(CarrySaveRow(value=value, lsb=row.lsb))
            if fits and self.bypass is not None:
                words.append(value[: len(self.bypass.words[len(words)])])
        words += [stages.cross("sum", word, f"s2_guest{i}") for i, word in enumerate(bypass)]
        return registered, words

    def _replaced(self, inverted: Value, lost: Value, side: SideBand, result: BypassResult):
        """Return the sum's word and flags, replaced by ``result`` where it is selected."""
        select, own = result.select, result.side.present
        # In the place of a negative sum there is its complement, which is one short.
        side = replace(side, missing=side.below)
        flags: dict[str, Any] = {
            name: Mux(select, value, getattr(side, name)) for name, value in own.items()
        }
        return Mux(select, result.magnitude, inverted), lost & ~select, replace(side, **flags)

    def build_bypass(self) -> Value:
        """Return the code of the bypass result, for a unit that has no sums."""
        assert self.bypass is not None
        result = self.bypass.select(self._registered([])[1])
        side = replace(result.side, order=BYPASS_ORDER)
        return self._build_rounded(result.magnitude, Const(0, 1), side)

    # ---------------------------------------------------------------- rounding

    def _build_rounded(self, inverted: Value, lost: Value, side: SideBand) -> Value:
        """Return the code of the number whose parts stand in front of the stage ``total``."""
        m, g, stages = self.m, self.g, self.stages
        inverted = stages.cross("total", inverted, "s3_folded")
        lost = stages.cross("total", lost, "s3_lost")
        side = side.cross(stages, "total", "s3")
        number = self._build_normalised(inverted, lost, side)
        for stage in ("magnitude", "leading"):
            if stage in stages.names:
                side = side.cross(stages, stage, stage)

        targets = targets_of(g, nan_code=self.nan_code, short=self.short, small=self.small)
        packed = [
            round_and_pack(
                m,
                number,
                stages=stages,
                # The top bit of the word is integer_bits - 1 places above 2^E_max; the smaller
                # format has another bias.
                exponent=side.top + (g.integer_bits - 1) - (g.output.bias - target.output.bias),
                output=target.packed,
                result_bits=target.result_bits,
                rounding=self.rounding,
                denormalise=target.denormalise and g.shifts_subnormals,
                saturate=target.saturate,
                chop=side.short if target.short else None,
                chopped_bits=target.short.result_bits if target.short else None,
                tells_zero=self.zeros.by_result(target),
                flush=self.flush,
                unbounded=self.unbounded,
            )
            for target in targets
        ]
        side = replace(side, nonzero=number.nonzero).cross(stages, stages.rounding, "s4")
        codes = [
            code_of(
                x, side, y, zeros=self.zeros, bypassed=self.bypass is not None, flush=self.flush
            )
            for x, y in zip(packed, targets, strict=True)
        ]
        return codes[0] if side.small is None else Mux(side.small, codes[1], codes[0])

    def _build_normalised(self, inverted: Value, lost: Value, side: SideBand) -> Normalised:
        """Return the magnitude of the sum with its leading one at the top."""
        word, tail, limit = self._magnitude(inverted, lost, side)
        cross = partial(self.stages.cross_extra, "magnitude")
        word = cross(word, "magnitude_word")
        tail = None if tail is None else cross(tail, "magnitude_tail")
        limit = None if limit is None else cross(limit, "magnitude_limit")
        return normalise(self.m, word, limit=limit, tail=tail, name="normalise", stages=self.stages)

    def _magnitude(
        self, inverted: Value, lost: Value, side: SideBand
    ) -> tuple[Value, Value | None, Value | None]:
        """Return |2S + sticky|, the bit that repeats below it, and the largest shift to the left.

        ``inverted`` is S, or ~S if S is negative. A negative S with a lost bit has the magnitude
        -S - ε, which is ~S and a sticky bit. Without a lost bit its magnitude is ~S + 1, so ~S is
        one short. If the unit rounds to nearest, this 1 has no adder: it is written as an endless
        row of ones below the word (0.111…₂ = 1), and the rounding adds it.
        """
        m, g = self.m, self.g
        below = side.below if side.missing is None else side.missing
        # With lost bits, |S| is between ~S and ~S + 1, so that ~S with a sticky bit is exact.
        one_short = below & ~lost
        tail: Value | None = None
        if g.only_addend_subnormal and self.rounding == "RNE" and self.short is None:
            word = Cat(lost | below, inverted)
            # No adder: ~S with ones without end below it rounds as |S| does, and the rounding has
            # an adder anyway.
            tail = one_short
        else:
            magnitude = Signal(g.magnitude_bits, name="magnitude")
            m.d.comb += magnitude.eq(inverted + one_short)
            word = Cat(lost, magnitude) if g.sticky else magnitude
        limit = None
        if side.subnormal is not None:
            # A subnormal C alone: E_max is emin, and the shift must stop where the hidden bit of
            # C would be, integer_bits - 1 below the top.
            limit = Mux(side.subnormal, g.integer_bits - 1, (1 << len(word).bit_length()) - 1)
        return word, tail, limit
