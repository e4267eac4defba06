"""Products of limbs: lanes with narrow multipliers that together form wide products in n steps.

Lane l of an element holds limb l of A. In step t all lanes of the element multiply by digit t of B
(w bits), and to the products of a step the sum of the steps before is added, w bits further down:
long multiplication, a row of it a cycle. Lane l keeps as many low bits of its sum as its limb has
and hands the rest, w bits, to the lane above in the same cycle; no sum is longer than a product.
The w lowest bits of all are a finished digit of the result after each step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..fp.carrysave import Row, add_plainly, add_rows, reduce_rows
from ..fp.multiply import arrange_rows, booth_rows, multiply

__all__ = ["limb_products"]

#: As in :mod:`hdl.fp.multiply`, for the lanes of a pair of limbs of 11 and 13 bits: six rows and
#: what is carried over; seven rows, that, and what is handed up (docs/decisions/0005).
ORDERS = {7: (3, 6, 0, 1, 2, 5, 4), 9: (0, 1, 2, 6, 8, 7, 4, 3, 5)}


@dataclass(frozen=True, kw_only=True)
class _Element:
    """Lanes ``base … base + n - 1`` as limbs of one operand, while ``chosen`` is set."""

    base: int
    limbs: tuple[int, ...]  # their widths
    digit: int  # w
    chosen: Value

    @property
    def n(self) -> int:
        return len(self.limbs)

    def place(self, lane: int) -> int:
        """Where its limb begins in A."""
        return sum(self.limbs[: lane - self.base])

    def row(self, sums: Sequence[Value]) -> Value:
        """The sum of all lanes, each at its place; what a lane hands up is not in it twice."""
        lower = [sums[self.base + i][:bits] for i, bits in enumerate(self.limbs[:-1])]
        return Cat(*lower, sums[self.base + self.n - 1])

    def carried(self, sums: Sequence[Value], lane: int) -> Value:
        """What the lane adds of the row before."""
        low = self.digit + self.place(lane)
        return self.row(sums)[low : low + self.limbs[lane - self.base]]


def _elements(widths: Sequence[int], digit: int, wide: Mapping[int, Value]) -> Iterator[_Element]:
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
) -> list[Value]:
    """What every lane hands on: its own product, or its share of a wide one.

    Parameters
    ----------
    a, b : sequence of Value
        Operands, one pair a lane; those of B have w bits, those of A any width.
    wide : mapping of int to Value
        By the number of limbs n, whether lanes are limbs in this cycle: lane l is limb ``l % n``.
        At most one is set. The number of lanes is a multiple of each n.
    again : Value
        Whether this is a step after an element's first.
    last : Value
        Whether it is the last.
    multiplier : {"booth", "dsp"}

    Returns
    -------
    list of Value
        Words as long as the lanes' products. In the last step of a wide product those of its lanes
        are the product in n pieces, the least significant in the lowest lane.
    """
    widths, digit = [len(limb) for limb in a], len(b[0])
    lanes = range(len(a))
    elements = {
        lane: [e for e in _elements(widths, digit, wide) if e.base <= lane < e.base + e.n]
        for lane in lanes
    }
    previous = [Signal(widths[k] + digit, name=f"previous{k}", reset_less=True) for k in lanes]
    sums: list[Value] = []
    for lane in lanes:
        width = widths[lane] + digit
        carried: Value = Const(0, 1)
        for element in elements[lane]:
            word = element.carried(previous, lane)
            carried = carried | (word & (element.chosen & again).replicate(len(word)))
        rows = [Row(value=carried, lsb=0)]
        upper = [element.chosen for element in elements[lane] if element.base < lane]
        if upper:
            handed = sums[lane - 1][widths[lane - 1] :]
            rows.append(Row(value=handed & Cat(*upper).any().replicate(digit), lsb=0))
        if multiplier == "dsp":
            word = multiply(m, a[lane], b[lane], name=f"p{lane}_step", multiplier=multiplier)
            rows.append(Row(value=word, lsb=0))
            rows, _ = add_plainly(m, rows, width=width, target=1, name=f"p{lane}")
        else:
            # the limb is recoded: a short one has a row less
            rows = [*booth_rows(m, b[lane], a[lane], name=f"p{lane}"), *rows]
            rows, _ = reduce_rows(m, arrange_rows(rows, ORDERS), width=width, name=f"p{lane}")
        product = Signal(width, name=f"p{lane}_product")
        m.d.comb += product.eq(add_rows(m, rows, width=width))
        sums.append(product)
    words = [_word(lane, sums, previous, elements[lane], last) for lane in lanes]
    # Where the words are registered anyway, synthesis finds one register for both.
    m.d.sync += [kept.eq(word) for kept, word in zip(previous, words, strict=True)]
    return words


def _word(
    lane: int,
    sums: Sequence[Value],
    previous: Sequence[Signal],
    elements: Sequence[_Element],
    last: Value,
) -> Value:
    """The lane's own sum, except where a wide product needs something else of it.

    Finished digits wait: the newest where it came about, the older ones in what the lanes 0 … n-3
    have handed up, one digit each.
    """
    word = sums[lane]
    for element in elements:
        place = lane - element.base
        if place == element.n - 1:
            continue  # the uppermost piece is its own sum
        below = [previous[element.base + i][element.limbs[i] :] for i in range(element.n - 2)]
        below.append(element.row(previous)[: element.digit])
        product = Cat(*below, element.row(sums))
        low = element.place(lane) + place * element.digit
        word = Mux(element.chosen & last, product[low : low + len(sums[lane])], word)
        if place < element.n - 2:
            waiting = Cat(sums[lane][: element.limbs[place]], below[place + 1])
            word = Mux(element.chosen & ~last, waiting, word)
    return word
