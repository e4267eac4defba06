"""Back end of every dot product: maximum exponent, align, add, normalise, round, specials.

A unit hands over *lanes* (exact products, not normalised) and an addend; what comes back is the
code of the fused sum. Each width is derived in :class:`Geometry`, where it is declared.
"""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from .align import clip, maximum, shift_right
from .carrysave import Row, add_plainly, add_rows, reduce_rows
from .geometry import Geometry, Guests, Lane, ShortWindow, SmallResult, Winner
from .normalise import Normalised, normalise, round_and_pack
from .pipeline import Cuts
from .result import Target, ZeroSigns, code_of, sign_beside
from .unpack import Unpacked

__all__ = ["DotCore", "PIPELINES"]

#: The places that are registered at each pipeline depth.
PIPELINES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("sum",),
    2: ("product", "total"),
    3: ("product", "sum", "total"),
    4: ("product", "sum", "total", "normalised"),
}

#: Sums wider than this get a Kogge-Stone adder where the adder has a stage to itself.
FAST_ADDER_BITS = 30


class DotCore:
    """Builds the back end into ``m``.

    Parameters
    ----------
    m : Module
    geometry : Geometry
    rounding : {"RNE", "RZ"}
    nan_code : int
        The code of every NaN result.
    cuts : Cuts
        Where registers stand.
    short : ShortWindow, optional
        Run-time shortening; with ``small`` only together with it.
    small : SmallResult, optional
        Run-time choice of a smaller format of C and D.
    pieces : mapping of int to Value, optional
        By a number n, whether n lanes at a time are the pieces of a product, side by side, the
        least significant first, with one sign and exponent. At most one is set.
    guests : Guests, optional
        Run-time choice of one number in place of the sum.
    multiplier : {"booth", "dsp"}
        With ``dsp`` the sum is made of plain additions too (`hdl.fp.multiply.MULTIPLIERS`).
    zero : {"ieee", "positive"}
        The sign of a zero result, as in `golden.fp.DotSpec`.
    """

    def __init__(
        self,
        m: Module,
        *,
        geometry: Geometry,
        rounding: str,
        nan_code: int,
        cuts: Cuts,
        short: ShortWindow | None = None,
        small: SmallResult | None = None,
        pieces: Mapping[int, Value] | None = None,
        guests: Guests | None = None,
        multiplier: str = "booth",
        zero: str = "ieee",
    ):
        if short is not None and geometry.sticky == (rounding == "RZ"):
            raise ValueError("a short window must come with floor and RNE, or with neither")
        if small is not None and geometry.only_addend_subnormal:
            raise ValueError("a smaller result must come with products that may be subnormal")
        self.m, self.g, self.cuts, self.short, self.small = m, geometry, cuts, short, small
        self.rounding, self.nan_code = rounding, nan_code
        self.pieces, self.guests = dict(pieces or {}), guests
        self.plain = multiplier == "dsp"
        self.zeros = ZeroSigns(whole=zero, short=short)
        if guests is not None and not geometry.sticky:
            raise ValueError("a winner must come with floor and a sticky bit")
        if guests is not None and zero != "ieee":
            raise ValueError(f"zero must be 'ieee' with a winner, not {zero!r}")

    def build(
        self,
        lanes: Sequence[Lane],
        c: Unpacked,
        held: Sequence[tuple[Value, Value, Value]] | None = None,
    ) -> Value:
        """The code of ``c + sum(lanes)``.

        ``held`` has the lanes' significands, signs and exponents behind the place "product", where
        whoever builds the lanes keeps them.
        """
        cuts = self.cuts
        largest, reference, c_gap = self._build_exponents(lanes, c)
        side: dict[str, Value] = self._build_side(lanes, c, largest)
        if held is None:
            words = [cuts.cross("product", x.significand, f"s1_p{k}") for k, x in enumerate(lanes)]
            signs = [cuts.cross("product", x.sign, f"s1_sign{k}") for k, x in enumerate(lanes)]
            exponents = [cuts.cross("product", x.exponent, f"s1_e{k}") for k, x in enumerate(lanes)]
        else:
            words, signs, exponents = zip(*held, strict=True)
        c_word = cuts.cross("product", self._addend_word(c), "s1_c")
        c_sign = cuts.cross("product", c.sign, "s1_c_sign")
        c_gap = clip(c_gap, bits=(self.g.window + 2).bit_length())
        c_gap = cuts.cross("product", c_gap, "s1_c_gap")
        reference = cuts.cross("product", reference, "s1_reference")
        side = cuts.cross_all("product", side, "s1")
        side["top"] = self._top(reference)
        pieces = {n: side.pop(f"pieces{n}") for n in self.pieces}
        bits = [len(word) for word in words]
        distances = self._build_distances(reference, exponents, pieces, bits)
        rows, ones, lost = self._build_terms(
            list(zip(words, [x.fraction for x in lanes], signs, distances, strict=True)),
            (c_word, c_sign, c_gap),
            side.get("short"),
            pieces,
        )
        bits = self.g.sum_bits
        if self.plain:
            rows, ones = add_plainly(self.m, rows, width=bits, target=2, name="sum", ones=ones)
        else:
            rows, ones = reduce_rows(self.m, rows, width=bits, name="sum", ones=ones)
        assert len(ones) <= 1, "one carry-in is left for the final adder"
        return self._build_result(rows, ones, lost, side, c_sign)

    # ---------------------------------------------------------------- exponents

    def _build_exponents(self, lanes: Sequence[Lane], c: Unpacked):
        """The largest product exponent, E_max on the product scale, C's distance from it."""
        m, g = self.m, self.g
        largest = maximum(m, [lane.exponent for lane in lanes], name="largest")
        addend = Signal(signed(g.scaled_bits), name="c_scaled")
        reference = Signal(signed(g.scaled_bits), name="reference")
        dominates = Signal(name="c_dominates")
        of_zero = self._exponent_of_zero()
        if of_zero is None:
            m.d.comb += [
                addend.eq(c.exponent - g.offset),
                dominates.eq(~c.zero & (~largest.any() | (addend > largest))),
            ]
        else:  # no nonzero C lies below the floor, and so none below 0, where no product is
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
            m.d.comb += gap.eq(reference - addend)
        return largest, reference, gap

    def _exponent_of_zero(self) -> Value | None:
        """The exponent that C has while it is zero, where that bounds E_max from below."""
        g, short = self.g, self.short
        low = g.floor if g.floor_of_zero else None
        if short is None or short.floor == low:
            return None if low is None else Const(low)
        return Mux(short.select, short.floor or 0, low or 0)

    def _top(self, reference: Value) -> Value:
        """E_max on the output's biased scale, in the bits it can need."""
        g = self.g
        if g.only_addend_subnormal and not g.can_overflow:
            return (reference + g.offset)[: g.output.exponent_bits]
        return reference + g.offset

    def _near(self, reference: Value) -> Value:
        """E_max in as few bits as a lane needs: clipped, it still shifts every product out.

        Negative only when there is no product, and then the distance does not matter.
        """
        g = self.g
        return clip(reference[:-1], bits=(g.exponent_max + g.window + 3).bit_length())

    def _build_side(self, lanes: Sequence[Lane], c: Unpacked, largest: Value):
        """What travels beside the sum: specials and signs."""
        positive = Cat(*[lane.inf & ~lane.sign for lane in lanes], c.inf & ~c.sign).any()
        negative = Cat(*[lane.inf & lane.sign for lane in lanes], c.inf & c.sign).any()
        nan = Cat(*[lane.nan for lane in lanes], c.nan).any() | (positive & negative)
        special = positive | negative | nan
        if not self.g.output.has_infinity:
            nan = special
        nan_sign = self.nan_code & self.g.output.sign_mask != 0
        minus_zero = self.zeros.minus(self.g, lanes, c, largest)
        side = {
            "nan": nan,
            "special": special,
            "minus": sign_beside(nan, special, negative, minus_zero, code=nan_sign),
        }
        if self.g.only_addend_subnormal:
            side["subnormal"] = ~largest.any() & ~c.significand[-1]
        if self.short is not None:
            side["short"] = self.short.select
        if self.small is not None:
            side["small"] = self.small.select
        side |= {f"pieces{n}": chosen for n, chosen in self.pieces.items()}
        return side

    def _build_distances(self, reference: Value, exponents, pieces, bits) -> list[Value]:
        """How far each lane is below E_max, pieces of a product under all those above them."""
        near = self._near(reference)
        tops: dict[tuple[int, ...], Value] = {}
        distances: list[Value] = []
        for k, exponent in enumerate(exponents):
            shifts = tuple(sum(bits[k + 1 : k - k % n + n]) for n in pieces)
            if shifts not in tops:
                tops[shifts] = self._lowered(near, list(zip(shifts, pieces.values(), strict=True)))
            top = tops[shifts]
            distance = Signal(len(top), name=f"distance{k}")
            self.m.d.comb += distance.eq(top - exponent)
            distances.append(distance)
        return distances

    def _lowered(self, near: Value, shifts: Sequence[tuple[int, Value]]) -> Value:
        """``near`` plus the shift that is chosen, if any."""
        most = max([shift for shift, _ in shifts], default=0)
        if not most:
            return near
        added: Value = Const(0, most.bit_length())
        for shift, chosen in shifts:
            added = added | (Const(shift, len(added)) & chosen.replicate(len(added)))
        lowered = Signal(len(near) + 1, name=f"near{most}")
        self.m.d.comb += lowered.eq(near + added)
        return lowered

    # ---------------------------------------------------------------- terms

    def _addend_word(self, c: Unpacked) -> Value:
        """C's significand; in two's complement where cutting means floor."""
        if not self.g.sticky:
            return c.significand
        width = len(c.significand) + 1
        word = Signal(width, name="c_word")
        negate = c.sign if self.short is None else c.sign & ~self.short.select
        self.m.d.comb += word.eq((c.significand ^ negate.replicate(width)) + negate)
        return word

    def _build_terms(self, lanes, addend, short: Value | None, pieces):
        """Aligned rows, the ones that complete the negations, the OR of all cut bits.

        With chopped magnitudes every sign is taken relative to C's, so C itself is never negated.
        A lane's row is its magnitude XOR sign under the inverted sign; the constant that makes up
        for all the inverted signs is added to C's sign extension. A negative product in pieces is
        cut once: if an upper piece was, a lower one, which is gone then, does not count again.
        """
        m, g = self.m, self.g
        c_word, c_sign, c_gap = addend
        sign_at = g.window + 2
        rows: list[Row] = []
        ones: list[Value] = []
        lost: list[Value] = []
        for k, (word, fraction, sign, distance) in enumerate(lanes):
            sign = sign ^ self._flip(c_sign, short)
            shifted, cut = self._align(word, fraction, distance, short, name=f"align{k}")
            row = Signal(sign_at + 1, name=f"term{k}")
            m.d.comb += row.eq(Cat(shifted ^ sign.replicate(sign_at), ~sign))
            rows.append(Row(value=row, lsb=0))
            ones.append(sign)
            lost.append(cut)
        if g.sticky:
            cuts = self._first_cuts(lost, pieces)
            floor = Const(1, 1) if short is None else ~short
            ones = [one & ~(cut & floor) for one, cut in zip(ones, cuts, strict=True)]
        fill = c_word[-1] if g.sticky else Const(0, 1)
        shifted, cut = self._align(
            c_word, g.output.fraction_bits, c_gap, short, name="align_c", fill=fill
        )
        lost.append(cut)
        low = g.window + 1
        shifted = shifted[:low]
        constant = -(g.lanes << sign_at) >> low  # two cases, C positive and negative, bit by bit
        extension = [
            ((Const(0, 1), fill), (~fill, Const(1, 1)))[constant >> i & 1][(constant - 1) >> i & 1]
            for i in range(g.sum_bits - low)
        ]
        c_row = Signal(g.sum_bits, name="term_c")
        m.d.comb += c_row.eq(Cat(shifted, *extension))
        rows.append(Row(value=c_row, lsb=0))
        if not g.sticky:
            return rows, ones, Const(0, 1)
        return rows, ones, Cat(*lost).any() & (Const(1, 1) if short is None else ~short)

    def _flip(self, c_sign: Value, short: Value | None) -> Value:
        """Whether all signs are turned: they are relative to C's where magnitudes are chopped."""
        if not self.g.sticky:
            return c_sign
        return Const(0, 1) if short is None else c_sign & short

    def _first_cuts(self, lost: Sequence[Value], pieces) -> list[Value]:
        """Whether each lane was cut and no piece of the same product above it was."""
        found: list[Value] = []
        above: Value = Const(0, 1)
        for k in reversed(range(len(lost))):
            linked = Cat(*[select for n, select in pieces.items() if (k + 1) % n]).any()
            above = above & linked if pieces else Const(0, 1)
            found.insert(0, lost[k] & ~above)
            above = above | lost[k]
        return found

    def _align(
        self,
        word: Value,
        fraction: int,
        distance: Value,
        short: Value | None,
        *,
        name: str,
        fill: Value | None = None,
    ):
        """A word on the window's grid, shifted right by its distance from E_max."""
        g = self.g
        extra = max(fraction - g.window, 0)
        if not g.sticky:
            word, fraction, extra = word[extra:], fraction - extra, 0
        fill_bit = Const(0, 1) if fill is None else fill
        word = Cat(Const(0, g.window + extra - fraction), word)
        width = g.window + 2 + extra
        word = Cat(word, fill_bit.replicate(max(width - len(word), 0)))[:width]
        clear = None
        if short is not None and self.short is not None:
            clear = (extra + g.window - self.short.window, short)
        shifted, lost = shift_right(
            self.m, word, distance, name=name, fill=fill, sticky=g.sticky, clear=clear
        )
        if extra:
            lost = lost | shifted[:extra].any()
        return shifted[extra:], lost

    # ---------------------------------------------------------------- result

    def _build_result(self, rows, ones, lost, side, c_sign) -> Value:
        m, g, cuts = self.m, self.g, self.cuts
        rows, words = self._crossed(rows)
        carry = cuts.cross("sum", ones[0], "s2_carry") if ones else None
        lost = cuts.cross("sum", lost, "s2_lost")
        if not g.sticky or "short" in side:
            side = side | {"flip": self._flip(c_sign, side.get("short"))}
        side = cuts.cross_all("sum", side, "s2")

        total = Signal(g.sum_bits, name="total")
        fast = "total" in cuts.names and g.sum_bits > FAST_ADDER_BITS and not self.plain
        m.d.comb += total.eq(add_rows(m, rows, width=g.sum_bits, carry_in=carry, fast=fast))
        side["below"] = total[-1]
        folded = total[:-1] ^ total[-1].replicate(g.magnitude_bits)
        if self.guests is not None:
            winner = self.guests.winner(words)
            folded, lost, side = self._replaced(folded, lost, side, winner)
        return self._build_rounded(folded, lost, side)

    def _crossed(self, rows: Sequence[Row]) -> tuple[list[Row], list[Value]]:
        """Rows and guests behind the place "sum"; a guest has a row's registers if it fits."""
        cuts = self.cuts
        guests = list(self.guests.words) if self.guests else []
        hosts: list[Row] = []
        words: list[Value] = []
        for i, row in enumerate(rows):
            value: Value = row.value
            fits = bool(guests) and len(guests[0]) <= len(value)
            if fits and self.guests is not None:
                guest, n = guests.pop(0), len(value)
                guest = Cat(guest, value[len(guest) :])
                value = Mux(self.guests.early, guest, value)[:n]
            value = cuts.cross("sum", value, f"s2_row{i}")
            hosts.append(Row(value=value, lsb=row.lsb))
            if fits and self.guests is not None:
                words.append(value[: len(self.guests.words[len(words)])])
        words += [cuts.cross("sum", word, f"s2_guest{i}") for i, word in enumerate(guests)]
        return hosts, words

    def _replaced(self, folded: Value, lost: Value, side, winner: Winner):
        """The winner in place of the sum, where it is chosen."""
        select, own = winner.select, self._winner_side(winner)
        side = side | {"missing": side["below"]}
        chosen = {name: Mux(select, own[name], side[name]) for name in own}
        return Mux(select, winner.folded, folded), lost & ~select, side | chosen

    @staticmethod
    def _winner_side(winner: Winner) -> dict[str, Value]:
        return {
            "nan": winner.nan,
            "special": winner.nan | winner.inf,
            "minus": winner.minus,
            "below": winner.below,
            "missing": winner.missing,
            "top": winner.top,
            "subnormal": Const(0, 1),
        }

    def build_winner(self) -> Value:
        """The code of the winner, in a unit without sums."""
        assert self.guests is not None
        winner = self.guests.winner(self._crossed([])[1])
        return self._build_rounded(winner.folded, Const(0, 1), self._winner_side(winner))

    # ---------------------------------------------------------------- rounding

    def _build_rounded(self, folded: Value, lost: Value, side) -> Value:
        m, g, cuts = self.m, self.g, self.cuts
        folded = cuts.cross("total", folded, "s3_folded")
        lost = cuts.cross("total", lost, "s3_lost")
        side = cuts.cross_all("total", side, "s3")
        number = self._build_normalised(folded, lost, side)

        targets = self._targets()
        packed = [
            round_and_pack(
                m,
                number,
                cuts=cuts,
                exponent=side["top"] + (g.integer_bits - 1) - (g.output.bias - target.output.bias),
                output=target.packed,
                result_bits=target.result_bits,
                rounding=self.rounding,
                denormalise=target.denormalise,
                saturate=target.saturate,
                chop=side.get("short") if target.short else None,
                chopped_bits=target.short.result_bits if target.short else None,
                tells_zero=self.zeros.by_result(target),
            )
            for target in targets
        ]
        side["nonzero"] = number.nonzero
        side = cuts.cross_all("normalised", side, "s4")
        codes = [
            code_of(x, side, y, zeros=self.zeros, of_winner=self.guests is not None)
            for x, y in zip(packed, targets, strict=True)
        ]
        return codes[0] if self.small is None else Mux(side["small"], codes[1], codes[0])

    def _targets(self) -> list[Target]:
        """The formats that results can have, the larger one first."""
        g, small = self.g, self.small
        whole = Target(
            output=g.output,
            result_bits=g.result_bits,
            nan_code=self.nan_code,
            denormalise=not g.only_addend_subnormal,
            saturate=g.can_overflow,
            short=self.short if small is None else None,
        )
        if small is None:
            return [whole]
        return [
            whole,
            Target(
                output=small.output,
                result_bits=small.output.fraction_bits,
                nan_code=small.nan_code,
                denormalise=True,
                saturate=True,
                short=self.short,
            ),
        ]

    def _build_normalised(self, folded: Value, lost: Value, side) -> Normalised:
        """|2S + sticky| with its leading one on top.

        ``folded`` is S or its ones' complement. With a lost bit the complement is already the
        magnitude; without, a one is missing. Where the result is rounded to nearest the missing one
        is not added but written as ones without end below the word, and the rounding adds it.
        """
        m, g = self.m, self.g
        below = side.get("missing", side["below"])
        missing = below & ~lost
        tail: Value | None = None
        if g.only_addend_subnormal and self.rounding == "RNE" and self.short is None:
            word = Cat(lost | below, folded)
            tail = missing
        else:
            magnitude = Signal(g.magnitude_bits, name="magnitude")
            m.d.comb += magnitude.eq(folded + missing)
            word = Cat(lost, magnitude) if g.sticky else magnitude
        limit = None
        if g.only_addend_subnormal:
            # C alone: E_max is emin, and its hidden position is integer_bits - 1 below the top
            limit = Mux(side["subnormal"], g.integer_bits - 1, (1 << len(word).bit_length()) - 1)
        return normalise(m, word, limit=limit, tail=tail, name="normalise")
