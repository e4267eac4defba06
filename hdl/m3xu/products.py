"""Products of limbs: lanes with multipliers of w bits that together form wide products in n steps.

Lane l of an element holds limb l of A. In step t all lanes of the element multiply by limb t of B
and add two digits of w bits: what the lane above left in its lower half a step earlier, and the
upper half of the lane below. That is long multiplication, a row a cycle. No sum passes 2·w bits,
for ``(2**w - 1)**2 + 2*(2**w - 1) = 2**(2*w) - 1``. The lowest lane's lower half is a finished
digit of the product after each step.
"""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..fp.carrysave import Row, add_rows, reduce_rows
from ..fp.multiply import booth_rows

__all__ = ["limb_products"]


def limb_products(
    m: Module,
    a: Sequence[Value],
    b: Sequence[Value],
    *,
    wide: Mapping[int, Value],
    again: Value,
    last: Value,
) -> list[Value]:
    """What every lane hands on: its own product, or its share of a wide one.

    Parameters
    ----------
    a, b : sequence of Value
        Operands of w bits, one pair a lane.
    wide : mapping of int to Value
        By the number of limbs n, whether lanes are limbs in this cycle: lane l is limb ``l % n``.
        At most one is set.
    again : Value
        Whether this is a step after an element's first.
    last : Value
        Whether it is the last.

    Returns
    -------
    list of Value
        Words of 2·w bits. In the last step of a wide product those of its lanes are the product,
        cut into n pieces, the least significant in the lowest lane.
    """
    w, count = len(a[0]), len(a)
    previous = [Signal(2 * w, name=f"previous{lane}", reset_less=True) for lane in range(count)]
    sums: list[Value] = []
    for lane in range(count):
        rows = booth_rows(m, a[lane], b[lane], name=f"p{lane}")
        rows, _ = reduce_rows(m, rows, width=2 * w, name=f"p{lane}")
        joined = [chosen for n, chosen in wide.items() if lane % n]
        inner = [chosen for n, chosen in wide.items() if lane % n < n - 1]
        outer = [chosen for n, chosen in wide.items() if lane % n == n - 1]
        digit: Value = Const(0, w)
        if inner and lane + 1 < count:
            digit = previous[lane + 1][:w] & (Cat(*inner).any() & again).replicate(w)
        if outer:
            digit = digit | (previous[lane][w:] & (Cat(*outer).any() & again).replicate(w))
        rows.append(Row(value=digit, lsb=0))
        if joined:
            upper = sums[lane - 1][w:] & Cat(*joined).any().replicate(w)
            rows.append(Row(value=upper, lsb=0))
        rows, _ = reduce_rows(m, rows, width=2 * w, name=f"p{lane}_digits")
        product = Signal(2 * w, name=f"p{lane}_product")
        m.d.comb += product.eq(add_rows(m, rows, width=2 * w))
        sums.append(product)
    words = [_word(lane, sums, previous, wide, last) for lane in range(count)]
    for lane in range(count):
        # Where the words are registered anyway, synthesis finds one register for both.
        m.d.sync += previous[lane].eq(words[lane])
    return words


def _word(
    lane: int,
    sums: Sequence[Value],
    previous: Sequence[Signal],
    wide: Mapping[int, Value],
    last: Value,
) -> Value:
    """The lane's own sum, except where a wide product needs something else of it.

    Finished digits wait: the newest in the lower half of the lowest lane, where it came about, the
    older ones in the upper halves of the lanes 0 … n-3, which are free as long as there are steps.
    """
    w = len(sums[lane]) // 2
    word = sums[lane]
    for n, chosen in wide.items():
        place, base = lane % n, lane - lane % n
        if base + n > len(sums) or place == n - 1:
            continue  # no whole element, or its top lane, whose sum is where it belongs
        waiting = [previous[base + i][w:] for i in range(n - 2)]
        newest = previous[base][:w]
        digits = [*waiting, newest, *(sums[base + i][:w] for i in range(n))]
        finished = Cat(digits[2 * place], digits[2 * place + 1])
        word = Mux(chosen & last, finished, word)
        if place < n - 2:
            older = [*waiting[1:], newest]
            word = Mux(chosen & ~last, Cat(sums[lane][:w], older[place]), word)
    return word
