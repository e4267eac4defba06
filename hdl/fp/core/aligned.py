"""Back end of the dot products of CDNA 3, which floor a sum of products before they add C.

The rule has four truncations; ``golden.fp.general`` defines it. ``[name]`` is a boundary between
pipeline stages:

1. E_d is the largest exponent of the products. Every product is truncated at 2^(E_d − 24)
   ``[product]`` and a carry-save tree leaves two rows ``[sum]``, which are added to T.
2. With E_m, the larger of E_d and the exponent of C, T is floored at 2^(E_m − 32) and C at
   2^(E_m − 24) ``[joined]``. S is their sum ``[total]``.
3. S is floored to 32 significant bits ``[normalised]`` and rounded to nearest even.

The lanes "parity" have two sums of products, each with an E_d of its own, which are floored at
2^(E_d − 24) of the larger one and added before step 2.

A floor of a two's complement word is a plain right shift. In step 3, where the word is a magnitude,
a negative S is kept as ~S = |S| − 1 with an endless row of ones below it, as in
``hdl.fp.core.dotcore``. The floor of S is then the upper 32 bits of the shifted ~S and one unit of
their last place more, which the rounding adds.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.golden.fp.formats import FloatFormat

from ..parts.align import clip, maximum, shift_right
from ..parts.carrysave import CarrySaveRow, add_plainly, add_rows, reduce_rows
from ..parts.normalise import Normalised, normalise, round_and_pack
from ..parts.pipeline import PipelineStages
from ..parts.unpack import UnpackedCode, store
from .geometry import Lane

#: The boundaries that have registers at each pipeline depth.
PIPELINES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("joined",),
    2: ("product", "total"),
    3: ("product", "joined", "total"),
    4: ("product", "sum", "joined", "total"),
    5: ("product", "sum", "joined", "total", "normalised"),
}

# Fraction bits of the products and of C, of their sum, and of the sum's floor
_OWN, _COMMON, _TOTAL = 24, 32, 31


class AlignedCore:
    """A builder of the back end; ``build`` adds its logic to ``m``.

    Parameters
    ----------
    m : Module
        The module that gets the logic.
    output : FloatFormat
        Format of C and D, with at most 24 significant bits.
    offset : int
        Difference of the scales: product scale + offset = biased exponent of ``output``.
    nan_code : int
        The code of every NaN result.
    stages : PipelineStages
        The stage boundaries and which of them have registers.
    parity : bool
        If True, even and odd lanes are summed apart, and a C below every bit of T is dropped.
    multiplier : {"booth", "dsp"}
        Form of the additions, as in ``DotCore``.
    """

    def __init__(
        self,
        m: Module,
        *,
        output: FloatFormat,
        offset: int,
        nan_code: int,
        stages: PipelineStages,
        parity: bool,
        multiplier: str = "booth",
    ):
        self.m, self.output, self.offset, self.nan_code = m, output, offset, nan_code
        self.stages, self.parity, self.plain = stages, parity, multiplier == "dsp"

    def build(self, lanes: Sequence[Lane], c: UnpackedCode) -> Value:
        """Return the code of ``c + sum(lanes)``.

        Parameters
        ----------
        lanes : sequence of Lane
            The products, in front of the stage ``product``.
        c : UnpackedCode
            The addend.
        """
        groups = [lanes[0::2], lanes[1::2]] if self.parity else [lanes]
        integer_bits = (4 * len(lanes) + 2).bit_length()  # products are below 4, and C below 2
        tops = [
            maximum(self.m, [lane.exponent for lane in group], name=f"largest{n}_")
            for n, group in enumerate(groups)
        ]
        largest = maximum(self.m, tops, name="largest")
        side = self._specials(lanes, c)
        totals = [
            self._truncated_sum(group, top, n, integer_bits)
            for n, (group, top) in enumerate(zip(groups, tops, strict=True))
        ]
        reference, t_gap, c_gap = self._exponents(largest, c)
        drops = [self._behind(largest - top, f"drop{n}") for n, top in enumerate(tops)]
        # None of these depends on the products' significands, so that they wait in registers while
        # the tree adds.
        words = {"reference": reference, "t_gap": t_gap, "c_gap": c_gap, "c_word": self._signed(c)}
        for stage in ("product", "sum"):
            words = self.stages.cross_all(stage, words, stage)
            side = self.stages.cross_all(stage, side, stage)
        total = self._joined_sum(totals, drops, integer_bits)
        words = self.stages.cross_all("joined", words, "joined")
        side = self.stages.cross_all("joined", side, "joined")
        total = self.stages.cross("joined", total, "joined_t").as_signed()
        floored = self._floored_sum(total, words, integer_bits)
        return self._rounded(floored, words["reference"], side, integer_bits)

    def _behind(self, distance: Value, name: str) -> Value:
        """Return a distance that is not negative, in 6 bits, behind ``product`` and ``sum``."""
        # The top bit is that of a sign, which is 0: E_d is at least each of the two largest
        # exponents.
        clipped = clip(distance[: len(distance) - 1], bits=6)
        return self.stages.cross("sum", self.stages.cross("product", clipped, name), f"{name}_sum")

    def _specials(self, lanes: Sequence[Lane], c: UnpackedCode) -> dict[str, Value]:
        """Return the flags of a special result and its sign."""
        positive = Cat(*[lane.inf & ~lane.sign for lane in lanes], c.inf & ~c.sign).any()
        negative = Cat(*[lane.inf & lane.sign for lane in lanes], c.inf & c.sign).any()
        nan = Cat(*[lane.nan for lane in lanes], c.nan).any() | (positive & negative)
        # Infinities of both signs are an invalid addition (IEEE 754, section 7.2), hence a NaN.
        return {"nan": nan, "special": positive | negative | nan, "minus": negative}

    def _exponents(self, largest: Value, c: UnpackedCode) -> tuple[Value, Value, Value]:
        """Return E_m on the output's scale, and the distances of T and of C below it."""
        bits = max(len(largest), len(c.exponent), (abs(self.offset) + 1).bit_length()) + 2
        above = Signal(signed(bits), name="t_above_c")
        dominates = Signal(name="c_dominates")
        self.m.d.comb += [
            above.eq(largest + self.offset - c.exponent),
            # Without a nonzero product E_m is the exponent of C.
            dominates.eq((above < 0) | ~largest.any()),
        ]
        reference = Mux(dominates, c.exponent, largest + self.offset)
        # The result is a new word of as many bits as E_m can need; E_m is never negative.
        wide = Signal(bits - 1, name="reference")
        self.m.d.comb += wide.eq(reference)
        distance = bits - 1
        t_gap = clip(((-above)[:distance]) & dominates.replicate(distance), bits=6)
        c_gap = clip(above[:distance] & (~dominates).replicate(distance), bits=6)
        return wide, t_gap, c_gap

    def _signed(self, c: UnpackedCode) -> Value:
        """Return C as a two's complement number in units of 2^(E_c − 24)."""
        width = len(c.significand) + 1
        word = Signal(width, name="c_word")
        # Two's complement, -x = ~x + 1, because a floor is a plain right shift in that form only.
        self.m.d.comb += word.eq((c.significand ^ c.sign.replicate(width)) + c.sign)
        return Cat(Const(0, _OWN - self.output.fraction_bits), word)

    def _truncated_sum(
        self, lanes: Sequence[Lane], top: Value, group: int, integer_bits: int
    ) -> tuple[list[CarrySaveRow], list[Value]]:
        """Return the rows of the sum of the products, truncated at 2^(top − 24), behind ``sum``.

        A negative row is inverted; its inverted sign bit makes it one unit of that bit too large,
        which one constant corrects for all rows, and the 1 that completes it goes to a free column
        of the tree.
        """
        m, cross = self.m, self.stages.cross
        width, sign_at = integer_bits + _OWN + 1, _OWN + 2
        rows: list[CarrySaveRow] = []
        ones: list[Value] = []
        for k, lane in enumerate(lanes):
            name = f"g{group}_{k}"
            distance = Signal(len(top), name=f"{name}_distance")
            m.d.comb += distance.eq(top - lane.exponent)
            # A product is below 4, so 26 places to the right nothing of it is left above 2^(E_d -
            # 24); five bits count to 31.
            distance = cross("product", clip(distance, bits=5), f"{name}_gap")
            word = cross("product", lane.significand, f"{name}_word")
            sign = cross("product", lane.sign, f"{name}_sign")
            word = Cat(Const(0, _OWN - lane.fraction), word)
            word = Cat(word, Const(0, sign_at - len(word)))
            shifted, _ = shift_right(m, word, distance, name=f"{name}_align", sticky=False)
            row = Signal(sign_at + 1, name=f"{name}_term")
            # The inverted sign is the sign extension less a constant, which is one row for all
            # lanes (below).
            m.d.comb += row.eq(Cat(shifted ^ sign.replicate(sign_at), ~sign))
            rows.append(CarrySaveRow(value=row, lsb=0))
            ones.append(sign)
        rows.append(
            # A top bit ~s of weight w is -s·w + w; the w of all lanes are taken off again here.
            CarrySaveRow(value=Const(-(len(lanes) << sign_at) % (1 << width), width), lsb=0)
        )
        if self.plain:
            rows, ones = add_plainly(m, rows, width=width, target=2, name=f"g{group}", ones=ones)
        else:
            rows, ones = reduce_rows(m, rows, width=width, name=f"g{group}", ones=ones)
        assert len(ones) <= 1, "one carry-in is left for the adder"
        behind = [
            CarrySaveRow(value=cross("sum", row.value, f"g{group}_row{i}"), lsb=row.lsb)
            for i, row in enumerate(rows)
        ]
        return behind, [cross("sum", one, f"g{group}_carry") for one in ones]

    def _joined_sum(
        self,
        totals: Sequence[tuple[list[CarrySaveRow], list[Value]]],
        drops: Sequence[Value],
        integer_bits: int,
    ) -> Value:
        """Return T in units of 2^(E_d − 24); two sums are floored at the larger E_d first."""
        width = integer_bits + _OWN + 1
        parts: list[Value] = []
        for n, ((rows, ones), drop) in enumerate(zip(totals, drops, strict=True)):
            part = Signal(width, name=f"sum{n}")
            carry = ones[0] if ones else None
            self.m.d.comb += part.eq(add_rows(self.m, rows, width=width, carry_in=carry))
            if len(totals) > 1:
                shifted, _ = shift_right(
                    self.m, part, drop, name=f"floor{n}", fill=part[-1], sticky=False
                )
                parts.append(shifted)
            else:
                parts.append(part)
        if len(parts) == 1:
            return parts[0]
        total = Signal(width, name="sum_of_both")
        self.m.d.comb += total.eq(parts[0] + parts[1])
        return total

    def _floored_sum(self, total: Value, words: dict[str, Value], integer_bits: int) -> Value:
        """Return S, behind the stage ``total``, in units of 2^(E_m − 32)."""
        m, below = self.m, _COMMON - _OWN
        width = integer_bits + _COMMON + 1
        wide = Cat(Const(0, below), total)
        aligned, _ = shift_right(
            m, wide, words["t_gap"], name="t_floor", fill=wide[-1], sticky=False
        )
        c_word, c_gap = words["c_word"], words["c_gap"]
        addend, _ = shift_right(m, c_word, c_gap, name="c_floor", fill=c_word[-1], sticky=False)
        if self.parity:
            # A negative C of which the floor leaves one unit only is dropped.
            keep = Signal(name="c_keep")
            m.d.comb += keep.eq(c_gap <= _OWN + 1)
            addend = addend & keep.replicate(len(addend))
        addend = Cat(Const(0, below), addend)
        addend = Cat(addend, addend[-1].replicate(width - len(addend)))
        floored = Signal(width, name="floored")
        m.d.comb += floored.eq(aligned + addend)
        return self.stages.cross("total", floored, "total_s")

    def _rounded(
        self, total: Value, reference: Value, side: dict[str, Value], integer_bits: int
    ) -> Value:
        """Return the code of S, floored to 32 significant bits and rounded once."""
        m, out, stages = self.m, self.output, self.stages
        reference = stages.cross("total", reference, "total_reference")
        side = stages.cross_all("total", side, "total")
        negative = total[-1]
        width = len(total) - 1
        # ~S = |S| - 1 of a negative S; the endless ones below it are the ``tail`` of the
        # normalisation.
        magnitude = total[:width] ^ negative.replicate(width)
        # E_m is at least emin, so the shift to the left can stop at emin.
        top = Signal(len(reference) + 1, name="top")
        m.d.comb += top.eq(reference + (integer_bits - 1))
        number = normalise(m, magnitude, limit=top - 1, tail=negative, name="normalise")
        packed = round_and_pack(
            m,
            Normalised(
                word=number.word[width - _TOTAL - 1 :],
                shift=number.shift,
                tail=negative,
                nonzero=number.nonzero,
            ),
            stages=stages,
            exponent=top,
            output=out,
            result_bits=out.fraction_bits,
            rounding="RNE",
            denormalise=False,
            saturate=True,
        )
        side = stages.cross_all("normalised", {**side, "below": negative}, "normalised")
        f, e = out.fraction_bits, out.exponent_bits
        fraction, field = packed.code[:f], packed.code[f : f + e]
        # An infinity or a NaN has a field of ones, whatever the sum of the other terms was.
        special, nan = side["special"], side["nan"]
        payload = Mux(nan, Const(self.nan_code & out.fraction_mask, f), 0)
        nan_sign = int(self.nan_code & out.sign_mask != 0)
        sign = Mux(nan, nan_sign, Mux(special, side["minus"], side["below"]))
        fraction = (fraction & (~special).replicate(f)) | payload
        return store(Cat(fraction, field | special.replicate(e), sign), out)
