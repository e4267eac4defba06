"""Products of limbs: n lanes with narrow multipliers form one wide product in n steps.

This is long multiplication with one row per cycle. Lane l holds limb l of A. In step t all n lanes
multiply by digit t of B, which has w bits, and add the sum of the previous steps, shifted down by
w bits. Lane l keeps as many low bits of its sum as its limb has, and passes the other w bits to the
lane above in the same cycle; so no sum is longer than a product. After each step the w lowest bits
of all lanes are a finished digit of the result.

An example with n = 2 and decimal digits, 47 · 36. Step 0 multiplies by 6: lane 0 computes
7 · 6 = 42, keeps 2 and passes 4 on; lane 1 computes 4 · 6 + 4 = 28. The row is 282, and its lowest
digit, 2, is finished. Step 1 multiplies by 3 and adds the row shifted down, 28: lane 0 computes
7 · 3 + 8 = 29, keeps 9 and passes 2 on; lane 1 computes 4 · 3 + 2 + 2 = 16. The row is 169, and
with the finished digit the product is 1692.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..fp.parts.carrysave import CarrySaveRow, add_plainly, add_rows, reduce_rows
from ..fp.parts.multiply import arrange_rows, booth_rows, multiply

#: Orders of rows as in ``hdl.fp.parts.multiply``, for a pair of limbs of 11 and 13 bits. The lower
#: lane has six rows and the sum of the previous steps; the upper lane has seven rows, that sum, and
#: the bits from the lower lane (docs/decisions/0005-limbs-by-long-multiplication.md).
ORDERS = {7: (3, 6, 0, 1, 2, 5, 4), 9: (0, 1, 2, 6, 8, 7, 4, 3, 5)}


@dataclass(frozen=True, kw_only=True)
class _Element:
    """A group of lanes ``base … base + n - 1`` that holds one operand while ``chosen`` is set."""

    base: int
    limbs: tuple[int, ...]  # their widths
    digit: int  # w
    chosen: Value

    @property
    def n(self) -> int:
        """The number of limbs."""
        return len(self.limbs)

    def place(self, lane: int) -> int:
        """Return the position of the lane's limb in A."""
        return sum(self.limbs[: lane - self.base])

    def row(self, sums: Sequence[Value]) -> Value:
        """Return the row, the sum of all lanes; bits that a lane passes on are counted once."""
        lower = [sums[self.base + i][:bits] for i, bits in enumerate(self.limbs[:-1])]
        return Cat(*lower, sums[self.base + self.n - 1])

    def carried(self, sums: Sequence[Value], lane: int) -> Value:
        """Return the part of the previous row that the lane adds."""
        low = self.digit + self.place(lane)
        return self.row(sums)[low : low + self.limbs[lane - self.base]]


def _elements(widths: Sequence[int], digit: int, wide: Mapping[int, Value]) -> Iterator[_Element]:
    """Yield all groups of lanes, for every number of limbs."""
    for n, chosen in wide.items():
        for base in range(0, len(widths), n):
            limbs = tuple(widths[base : base + n])
            yield _Element(base=base, limbs=limbs, digit=digit, chosen=chosen)


def limb_products(
    m: Module,
    a: Sequence[Value],
    b: Sequence[Value],
    *,
    wide: Mapping[int, Value],
    again: Value,
    last: Value,
    multiplier: str = "booth",
    recoded: Sequence[int] | None = None,
) -> list[Value]:
    """Return the output of every lane: its own product, or its piece of a wide product.

    Parameters
    ----------
    a, b : sequence of Value
        Operands, one pair for each lane. Those of B have w bits; those of A may have any width.
    wide : mapping of int to Value
        One-hot select with a key n: in this cycle, lane l holds limb ``l % n``. If no bit is set,
        every lane holds an operand of its own. The number of lanes is a multiple of each n.
    again : Value
        One bit, set in all steps of a product but the first.
    last : Value
        One bit, set in the last step of a product.
    multiplier : {"booth", "dsp"}
        Form of the multipliers.
    recoded : sequence of int, optional
        Widths of the operands of A, if ``a`` has their digits from ``recode`` instead.

    Returns
    -------
    list of Value
        One word per lane, as long as the lane's product. In the last step of a wide product, the
        words of its lanes are the product in n pieces, least significant in the lowest lane.
    """
    widths, digit = list(recoded or map(len, a)), len(b[0])
    lanes = range(len(a))
    elements = {
        lane: [e for e in _elements(widths, digit, wide) if e.base <= lane < e.base + e.n]
        for lane in lanes
    }
    # The contents are used only while ``again`` is set, after a first step has written them.
    previous = [Signal(widths[k] + digit, name=f"previous{k}", reset_less=True) for k in lanes]
    sums: list[Value] = []
    for lane in lanes:
        width = widths[lane] + digit
        carried: Value = Const(0, 1)
        for element in elements[lane]:
            word = element.carried(previous, lane)
            carried = carried | (word & (element.chosen & again).replicate(len(word)))
        # (2^p − 1)(2^w − 1) + (2^p − 1) + (2^w − 1) = 2^(p+w) − 1: the product of a p-bit limb and
        # a w-bit digit, plus both carried words, has no overflow bit.
        rows = [CarrySaveRow(value=carried, lsb=0)]
        upper = [element.chosen for element in elements[lane] if element.base < lane]
        if upper:
            handed = sums[lane - 1][widths[lane - 1] :]
            rows.append(CarrySaveRow(value=handed & Cat(*upper).any().replicate(digit), lsb=0))
        if multiplier == "dsp":
            word = multiply(m, a[lane], b[lane], name=f"p{lane}_step", multiplier=multiplier)
            rows.append(CarrySaveRow(value=word, lsb=0))
            rows, _ = add_plainly(m, rows, width=width, target=1, name=f"p{lane}")
        else:
            # The limb is recoded, because a shorter limb then has fewer rows.
            bits = widths[lane] if recoded else None
            rows = [*booth_rows(m, b[lane], a[lane], name=f"p{lane}", bits=bits), *rows]
            late: list[CarrySaveRow] = []
            if recoded and upper:
                # The bits from the lower lane are the last to arrive.
                late.append(rows.pop())
            rows, _ = reduce_rows(m, arrange_rows(rows, ORDERS), width=width, name=f"p{lane}")
            rows, _ = reduce_rows(m, [*late, *rows], width=width, name=f"p{lane}_late")
        product = Signal(width, name=f"p{lane}_product")
        m.d.comb += product.eq(add_rows(m, rows, width=width))
        sums.append(product)
    words = [_word(lane, sums, previous, elements[lane], last) for lane in lanes]
    # If the caller registers the words as well, synthesis merges the two registers.
    m.d.sync += [kept.eq(word) for kept, word in zip(previous, words, strict=True)]
    return words


def _word(
    lane: int,
    sums: Sequence[Value],
    previous: Sequence[Signal],
    elements: Sequence[_Element],
    last: Value,
) -> Value:
    """Return the lane's sum, or the bits of a wide product that take its place.

    The finished digits of a wide product wait in the lanes' registers: the newest in the low bits
    of lane 0, and the older ones, one each, in the upper bits of lanes 0 … n-3, whose contents have
    been passed on already.
    """
    word = sums[lane]
    for element in elements:
        place = lane - element.base
        if place == element.n - 1:
            continue  # the uppermost piece is its own sum
        below = [previous[element.base + i][element.limbs[i] :] for i in range(element.n - 2)]
        below.append(element.row(previous)[: element.digit])
        # The finished digits, oldest first, and the last row are the whole product.
        product = Cat(*below, element.row(sums))
        low = element.place(lane) + place * element.digit
        word = Mux(element.chosen & last, product[low : low + len(sums[lane])], word)
        if place < element.n - 2:
            waiting = Cat(sums[lane][: element.limbs[place]], below[place + 1])
            word = Mux(element.chosen & ~last, waiting, word)
    return word
