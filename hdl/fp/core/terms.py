"""The terms of a sum: align, truncate to the window, negate."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..parts.align import shift_right
from ..parts.carrysave import CarrySaveRow
from ..parts.unpack import UnpackedCode
from .geometry import Geometry, ShortWindow
from .pieces import first_cuts


class TermBuilder:
    """A builder of the aligned rows of a sum; it adds their logic to ``m``.

    Parameters
    ----------
    m : Module
        The module that gets the logic.
    geometry : Geometry
        The number of lanes and all widths.
    short : ShortWindow or None
        A shorter window that can be selected at run time.
    """

    def __init__(self, m: Module, geometry: Geometry, short: ShortWindow | None):
        self.m, self.g, self.short = m, geometry, short

    def addend_word(self, c: UnpackedCode, short: Value | None) -> Value:
        """Return C's significand; with floor, C as a two's complement number.

        ``short`` is set if the short window is in use, and None in a unit without one.
        """
        if not self.g.sticky:
            return c.significand
        width = len(c.significand) + 1
        word = Signal(width, name="c_word")
        # With truncated magnitudes C is never negated: all signs are inverted instead, and the
        # result's with them.
        negate = c.sign if short is None else c.sign & ~short
        self.m.d.comb += word.eq((c.significand ^ negate.replicate(width)) + negate)
        return word

    def flip(self, c_sign: Value | None, short: Value | None) -> Value:
        """Return 1 if all signs are inverted, that is, if magnitudes are truncated and C < 0.

        Without C no sign is inverted.
        """
        if c_sign is None:
            return Const(0, 1)
        if not self.g.sticky:
            return c_sign
        return Const(0, 1) if short is None else c_sign & short

    def build(
        self,
        lanes: Sequence[tuple[Value, int, Value, Value]],
        addend: tuple[Value, Value, Value] | None,
        short: Value | None,
        pieces: Mapping[int, Value],
    ) -> tuple[list[CarrySaveRow], list[Value], Value]:
        """Return the aligned rows, the carry-in bits of the negations, and the OR of all lost bits.

        If magnitudes are truncated, every sign is taken relative to C's sign, so C itself is never
        negated. A row holds magnitude XOR sign with the inverted sign above it. An inverted sign
        bit ~s has the value 1 - s, so each row is one unit of that bit too large; a constant
        corrects all rows together, and it is merged with C's sign extension to save a row.

        A negative product in pieces is rounded down once: if an upper piece lost bits, the lower
        ones are gone completely and must not be rounded down again.

        Parameters
        ----------
        lanes : sequence of (Value, int, Value, Value)
            Significand, its fraction bits, sign and distance below E_max of each product.
        addend : (Value, Value, Value) or None
            Word, sign and distance of C, or None if C is not a term.
        short : Value or None
            One bit. If set, the short window is in use.
        pieces : mapping of int to Value
            The selects of ``DotCore``.
        """
        m, g = self.m, self.g
        c_sign = None if addend is None else addend[1]
        sign_at = g.window + 2
        rows: list[CarrySaveRow] = []
        ones: list[Value] = []
        lost: list[Value] = []
        for k, (word, fraction, sign, distance) in enumerate(lanes):
            sign = sign ^ self.flip(c_sign, short) if addend is not None else sign
            shifted, cut = self._align(word, fraction, distance, short, name=f"align{k}")
            row = Signal(sign_at + 1, name=f"term{k}")
            # ~sign is the sign extension plus a constant 2^sign_at, which C's row takes off for all
            # lanes.
            m.d.comb += row.eq(Cat(shifted ^ sign.replicate(sign_at), ~sign))
            rows.append(CarrySaveRow(value=row, lsb=0))
            ones.append(sign)
            lost.append(cut)
        if g.sticky:
            # A negative term that lost bits needs no +1, because the floor of −x is ~t; of a
            # product in pieces the highest cut piece alone goes without.
            first = first_cuts(lost, pieces)
            floor = Const(1, 1) if short is None else ~short
            ones = [one & ~(cut & floor) for one, cut in zip(ones, first, strict=True)]
        if addend is None:
            constant = -(g.lanes << sign_at) % (1 << g.sum_bits)
            rows.append(CarrySaveRow(value=Const(constant, g.sum_bits), lsb=0))
        else:
            row, cut = self._addend_row(addend, short)
            rows.append(row)
            lost.append(cut)
        if not g.sticky:
            return rows, ones, Const(0, 1)
        return rows, ones, Cat(*lost).any() & (Const(1, 1) if short is None else ~short)

    def _addend_row(
        self, addend: tuple[Value, Value, Value], short: Value | None
    ) -> tuple[CarrySaveRow, Value]:
        """Return C's row, which contains the constant of all rows, and 1 if C lost bits."""
        g = self.g
        c_word, _, c_gap = addend
        fill = c_word[-1] if g.sticky else Const(0, 1)
        shifted, cut = self._align(
            c_word, g.addend_fraction, c_gap, short, name="align_c", fill=fill
        )
        low = g.window + 1
        shifted = shifted[:low]
        # The constant of all lanes, without the bits below C's sign.
        constant = -(g.lanes << (g.window + 2)) >> low
        # C's sign extension is 0 or -1, so the upper bits are those of ``constant`` or of
        # ``constant - 1``. Each bit is therefore 0, 1, C's sign or the inverse of C's sign.
        extension = [
            ((Const(0, 1), fill), (~fill, Const(1, 1)))[constant >> i & 1][(constant - 1) >> i & 1]
            for i in range(g.sum_bits - low)
        ]
        c_row = Signal(g.sum_bits, name="term_c")
        self.m.d.comb += c_row.eq(Cat(shifted, *extension))
        return CarrySaveRow(value=c_row, lsb=0), cut

    def _align(
        self,
        word: Value,
        fraction: int,
        distance: Value,
        short: Value | None,
        *,
        name: str,
        fill: Value | None = None,
    ) -> tuple[Value, Value]:
        """Return a word on the window's grid, shifted right, and 1 if a one was shifted out.

        ``fraction`` is the number of fraction bits of ``word``; ``fill`` is shifted in from above.
        If terms are truncated to odd, the last bit is also set if a one was shifted out.
        """
        g = self.g
        extra = max(fraction - g.window, 0)
        counted = g.sticky or g.odd
        if not counted:
            word, fraction, extra = word[extra:], fraction - extra, 0
        fill_bit = Const(0, 1) if fill is None else fill
        word = Cat(Const(0, g.window + extra - fraction), word)
        width = g.window + 2 + extra
        word = Cat(word, fill_bit.replicate(max(width - len(word), 0)))[:width]
        clear = None
        if short is not None and self.short is not None:
            clear = (extra + g.window - self.short.window, short)
        shifted, lost = shift_right(
            self.m, word, distance, name=name, fill=fill, sticky=counted, clear=clear
        )
        if extra:
            # These fraction bits are below the window even without a shift.
            lost = lost | shifted[:extra].any()
        if g.odd:
            # Truncation to odd keeps the lost bits in the last bit of the term.
            return Cat(shifted[extra] | lost, shifted[extra + 1 :]), Const(0, 1)
        return shifted[extra:], lost
