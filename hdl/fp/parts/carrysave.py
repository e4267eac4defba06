"""Carry-save arithmetic on word slices: rows, 3:2 compression, reduction to two rows.

All operations work on whole words (a few operations per row), so the compiled simulation model is
fast. They cover only the columns that hold data, so synthesis has no constant adders to remove.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Signal, Value

#: Wider sums get a Kogge-Stone adder if the adder has a pipeline stage of its own.
FAST_ADDER_BITS = 30


@dataclass(frozen=True, kw_only=True)
class CarrySaveRow:
    """An unsigned word with a weight: ``value * 2**lsb``.

    Parameters
    ----------
    value : Value
        The bits, least significant first.
    lsb : int
        Weight of bit 0, as an exponent of two.
    """

    value: Value
    lsb: int

    @property
    def msb(self) -> int:
        """One past the weight of the highest bit."""
        return self.lsb + len(self.value)

    def bits(self, low: int, high: int) -> Value:
        """Return the columns ``low … high-1``; columns that the row does not have read as zero."""
        inside_low, inside_high = max(low, self.lsb), min(high, self.msb)
        if inside_low >= inside_high:
            return Const(0, max(high - low, 0))
        return Cat(
            Const(0, inside_low - low),
            self.value[inside_low - self.lsb : inside_high - self.lsb],
            Const(0, high - inside_high),
        )


def compress(m: Module, rows: list[CarrySaveRow], *, width: int, name: str) -> list[CarrySaveRow]:
    """Return two rows with the same sum (modulo ``2**width``) as the three ``rows``.

    Columns with three bits get full adders. A column with two bits passes them through, unless the
    column below it sends a carry: then it gets a half adder to make room for the carry.

    Parameters
    ----------
    rows : list of CarrySaveRow
        Up to three rows.
    width : int
        Columns from here on are dropped.
    name : str
        First part of the new signals' names.
    """
    bounds = sorted({row.lsb for row in rows} | {row.msb for row in rows})
    # Between two bounds the same rows are present in every column.
    segments = []
    for low, high in pairwise(bounds):
        present = [row for row in rows if row.lsb <= low and row.msb >= high]
        segments.append((low, min(high, width), present))
    sums: list[tuple[int, Value]] = []
    carries: list[tuple[int, Value]] = []
    carry_reaches = -1  # first column into which no carry has been sent
    for low, high, present in segments:
        if high <= low:
            continue
        words = [row.bits(low, high) for row in present]
        if len(words) == 3 or (len(words) == 2 and carry_reaches == low):
            # Three bits, or two bits and a carry from the column below.
            length = high - low
            half = Signal(length, name=f"{name}_half{low}")
            m.d.comb += half.eq(words[0] ^ words[1])
            if len(words) == 3:
                sums.append((low, half ^ words[2]))
                # The majority of three bits: if the first two differ, the third decides.
                carry = (half & words[2]) | (~half & words[1])
            else:
                sums.append((low, half))
                carry = words[0] & words[1]
            carries.append((low + 1, carry))
            carry_reaches = high
        elif len(words) == 2:
            sums.append((low, words[0]))
            carries.append((low, words[1]))
        elif len(words) == 1:
            sums.append((low, words[0]))
    return [
        _assemble(m, parts, width=width, name=f"{name}_{kind}")
        for kind, parts in (("sum", sums), ("carry", carries))
        if parts
    ]


def _assemble(m: Module, parts: list[tuple[int, Value]], *, width: int, name: str) -> CarrySaveRow:
    """Return the row made of ``parts``, each a first column and its bits."""
    parts = sorted(parts, key=lambda part: part[0])
    low = parts[0][0]
    pieces: list[Value] = []
    column = low
    for start, value in parts:
        if start > column:
            pieces.append(Const(0, start - column))
        pieces.append(value)
        column = start + len(value)
    word = Cat(*pieces)[: width - low]
    signal = Signal(len(word), name=name)
    m.d.comb += signal.eq(word)
    return CarrySaveRow(value=signal, lsb=low)


def reduce_rows(
    m: Module, rows: list[CarrySaveRow], *, width: int, name: str, ones: Sequence[Value] = ()
) -> tuple[list[CarrySaveRow], list[Value]]:
    """Compress any number of rows to at most two with a balanced tree of 3:2 compressors.

    Parameters
    ----------
    rows : list of CarrySaveRow
        The rows to add.
    width : int
        The sum is modulo ``2**width``.
    name : str
        First part of the new signals' names.
    ones : sequence of Value
        Single bits of weight 1 to add in. The carry row of a compressor leaves its lowest column
        free, and one of these bits fits there at no cost. Every row must then start at column 0.

    Returns
    -------
    rows : list of CarrySaveRow
        At most two rows with the same sum.
    ones : list of Value
        The bits that found no free column.
    """
    waiting = list(ones)
    level = 0
    while len(rows) > 2:
        following: list[CarrySaveRow] = []
        for index in range(0, len(rows), 3):
            group = rows[index : index + 3]
            if len(group) < 3:
                following += group
                continue
            packed = compress(m, group, width=width, name=f"{name}_l{level}_{index // 3}")
            # The carry row starts in column 1, so its column 0 is free. A compression without
            # carries leaves a sum row only, which starts in column 0.
            if waiting and packed[-1].lsb == 1:
                packed[-1] = CarrySaveRow(value=Cat(waiting.pop(0), packed[-1].value), lsb=0)
            following += packed
        rows = following
        level += 1
    return rows, waiting


def add_plainly(
    m: Module,
    rows: Sequence[CarrySaveRow],
    *,
    width: int,
    target: int,
    name: str,
    ones: Sequence[Value] = (),
) -> tuple[list[CarrySaveRow], list[Value]]:
    """Add rows in pairs, with a balanced tree of adders, until ``target`` rows are left.

    This is ``reduce_rows`` for FPGAs, where an adder is a carry chain and half as large as a
    compressor. Each adder takes one of the bits ``ones`` as its carry-in.

    Parameters
    ----------
    rows : sequence of CarrySaveRow
        The rows to add.
    width : int
        The sum is modulo ``2**width``.
    target : int
        Number of rows to leave.
    name : str
        First part of the new signals' names.
    ones : sequence of Value
        Single bits of weight 1 to add in.

    Returns
    -------
    rows : list of CarrySaveRow
        The rows that are left.
    ones : list of Value
        The bits that no adder took.

    Notes
    -----
    Yosys merges additions that feed each other into full adders in LUTs, which are larger. It does
    not do so if the adder has a carry-in (which occupies a column below the sum) or if its result
    has the attribute ``keep``.
    """
    # The shortest rows come first, so that the adders stay narrow.
    rows, waiting, number = sorted(rows, key=lambda row: len(row.value)), list(ones), 0
    while len(rows) > target:
        x, y, *rest = rows
        total_bits = min(max(x.msb, y.msb) + 1, width)
        carry = waiting.pop(0) if waiting else None
        attributes = {"keep": 1} if carry is None else {}
        total = Signal(total_bits, name=f"{name}_add{number}", attrs=attributes)
        m.d.comb += total.eq(add_rows(m, [x, y], width=total_bits, carry_in=carry))
        rows = sorted([*rest, CarrySaveRow(value=total, lsb=0)], key=lambda row: len(row.value))
        number += 1
    return rows, waiting


def reduce_spans(
    m: Module, rows: list[CarrySaveRow], *, width: int, target: int, name: str
) -> list[CarrySaveRow]:
    """Compress rows of many different weights to at most ``target`` rows (2 or more).

    Each level first compresses rows that cover the same columns. Their sum covers these columns
    again, and their carry the same columns moved up by one, where it meets the next rows. Nothing
    is padded, so no half adder is needed until few rows are left. The oldest of three rows goes to
    the compressor input with a single XOR in its path; this order mapped well for every K
    (docs/decisions/0003-int8-dot.md).

    Parameters
    ----------
    rows : list of CarrySaveRow
        The rows to add.
    width : int
        The sum is modulo ``2**width``.
    target : int
        Largest number of rows to leave.
    name : str
        First part of the new signals' names.
    """
    level = 0
    while len(rows) > target:
        spans: dict[tuple[int, int], list[CarrySaveRow]] = {}
        for row in sorted(rows, key=lambda row: (row.lsb, row.msb)):
            spans.setdefault((row.lsb, row.msb), []).append(row)
        groups = [
            group[index : index + 3]
            for group in spans.values()
            for index in range(0, len(group), 3)
        ]
        full = [group for group in groups if len(group) == 3]
        rest = [row for group in groups if len(group) < 3 for row in group]
        # No three rows cover the same columns, so neighbours are grouped.
        if not full:
            full, rest = (
                [rest[i : i + 3] for i in range(0, len(rest) - 2, 3)],
                rest[len(rest) // 3 * 3 :],
            )
        rows = rest
        for index, group in enumerate(full):
            rows = rows + compress(m, group[::-1], width=width, name=f"{name}_l{level}_{index}")
        level += 1
    return rows


def add_rows(
    m: Module,
    rows: list[CarrySaveRow],
    *,
    width: int,
    carry_in: Value | None = None,
    fast: bool = False,
) -> Value:
    """Return the sum of one or two rows, the carry-propagate addition that ends a reduction.

    Columns with a single row need no adder.

    Parameters
    ----------
    rows : list of CarrySaveRow
        One or two rows.
    width : int
        The sum is modulo ``2**width``.
    carry_in : Value, optional
        A bit of weight 1 to add.
    fast : bool
        If True, write a Kogge-Stone adder. Otherwise write ``+`` and let synthesis choose the form.
    """
    if len(rows) == 1:
        return rows[0].bits(0, width)
    if carry_in is not None:
        # A column below with 1 + carry_in sends the carry into column 0.
        x = Cat(Const(1, 1), rows[0].bits(0, width))
        y = Cat(carry_in, rows[1].bits(0, width))
        return (kogge_stone(m, x, y) if fast else x + y)[1 : width + 1]
    # Below the higher of the two rows, the bits of the other one are already the sum.
    split = max(row.lsb for row in rows)
    low = [row.bits(0, split) for row in rows if row.lsb < split]
    high = [row.bits(split, width) for row in rows]
    total = kogge_stone(m, *high) if fast else (high[0] + high[1])[: width - split]
    return Cat(low[0], total) if low else total


def kogge_stone(m: Module, x: Value, y: Value) -> Value:
    """Return ``x + y`` modulo ``2**len(x)`` from a parallel-prefix adder (Kogge-Stone).

    It computes all carries in log2(len(x)) steps with the least fan-out.

    Parameters
    ----------
    x, y : Value
        Summands of the same width.
    """
    width = len(x)
    generate = Signal(width, name="carry_generate")
    propagate = Signal(width, name="carry_propagate")
    m.d.comb += [generate.eq(x & y), propagate.eq(x ^ y)]
    # After each step, bit i of g and p covers the columns i - distance + 1 … i (Kogge and Stone,
    # "A parallel algorithm for the efficient solution of a general class of recurrence equations",
    # 1973).
    g, p, distance = generate, propagate, 1
    while distance < width:
        g_next = Signal(width, name=f"carry_generate{distance}")
        p_next = Signal(width, name=f"carry_propagate{distance}")
        m.d.comb += [g_next.eq(g | (p & (g << distance))), p_next.eq(p & (p << distance))]
        g, p, distance = g_next, p_next, 2 * distance
    return (propagate ^ (g << 1))[:width]
