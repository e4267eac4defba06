"""Unsigned product of two significands: radix-4 Booth rows, or ``*`` for a DSP block."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value

from vitruvian.common.validate import one_of

from .carrysave import CarrySaveRow, add_rows, reduce_rows

#: The two forms in which a unit multiplies and adds. ``booth`` uses Booth rows and carry-save
#: trees, which are smallest in standard cells. ``dsp`` uses ``*`` and ``+``, which become the DSP
#: blocks and carry chains of an FPGA. Both give the same results
#: (docs/decisions/0008-dsp-multipliers.md).
MULTIPLIERS = ("booth", "dsp")
#: A form of Booth rows with fewer glitches, in the place of ``booth`` where a unit offers it.
QUIET = "quiet"

#: The order in which rows enter the 3:2 compressors, for each number of rows. These orders mapped
#: to the smallest area among many random ones (docs/decisions/0002-dot-product-datapath.md).
ORDERS = {6: (1, 0, 3, 5, 2, 4), 7: (5, 6, 1, 4, 0, 2, 3)}


def recoded_bits(bits: int) -> int:
    """Return the length of ``recode``'s word for a factor of ``bits`` bits."""
    return sum(1 + has_two + signed for has_two, signed in _digits(bits))


def recode(m: Module, b: Value, *, name: str) -> Value:
    """Return the digits -2 … 2 of ``b`` for ``booth_rows``, which then needs no recoders.

    A digit has a bit for the magnitude 1, one for 2 and one for the sign; the uppermost digits have
    no sign, or only the magnitude 1.
    """
    padded = Cat(Const(0, 1), b, Const(0, 2))
    bits: list[Value] = []
    for digit, (has_two, signed) in enumerate(_digits(len(b))):
        low, mid, high = (padded[2 * digit + i] for i in range(3))
        one = Signal(name=f"{name}_one{digit}")
        m.d.comb += one.eq(mid ^ low)
        bits.append(one)
        if has_two:
            bits.append(~one & (high ^ mid) if signed else mid & low)
        if signed:
            bits.append(high)
    return Cat(*bits)


def _digits(bits: int) -> list[tuple[bool, bool]]:
    """Return, for each digit of a factor, whether it can be 2 and whether it can be negative."""
    return [(2 * d < bits, 2 * d + 1 < bits) for d in range(bits // 2 + 1)]


def booth_rows(
    m: Module, a: Value, b: Value, *, name: str, bits: int | None = None, quiet: bool = False
) -> list[CarrySaveRow]:
    """Return partial products of ``a * b``, with ``b`` recoded to digits -2 … 2.

    This is the modified Booth recoding of radix 4. The rows add up to the product modulo
    ``2**(len(a) + len(b))``. A negative row is a ones' complement, and the 1 that completes it is
    put into the free columns below the next row. No row is sign-extended: the usual pair
    ``1, ~negative`` above a row (``~n, n, n`` above the first) replaces all sign bits.

    Parameters
    ----------
    a, b : Value
        Unsigned factors; ``b`` is recoded, two bits per row.
    name : str
        First part of the new signals' names.
    bits : int, optional
        Length of the second factor, if ``b`` is not this factor but its digits from ``recode``.
    quiet : bool
        If True, the sign of a digit inverts ``a`` before its magnitude, which comes later, selects
        a multiple. Then an edge of the sign passes only if the digit is not zero, and it does not
        come a second time with the magnitude. This is not for digits from ``recode``.
    """
    length = len(b) if bits is None else bits
    n, width = len(a), len(a) + length
    rows: list[CarrySaveRow] = []
    correction: Value | None = None
    padded = Cat(Const(0, 1), b, Const(0, 2))
    recoded = iter([b[i] for i in range(len(b))])
    for digit, (has_two, can_be_negative) in enumerate(_digits(length)):
        one = Signal(name=f"{name}_one{digit}")
        two = Signal(name=f"{name}_two{digit}")
        if bits is None:
            low, mid, high = (padded[2 * digit + i] for i in range(3))
            m.d.comb += one.eq(mid ^ low)
            twice = ~one & (high ^ mid) if can_be_negative else mid & low
        else:
            m.d.comb += one.eq(next(recoded))
            twice = next(recoded) if has_two else Const(0, 1)
            high = next(recoded) if can_be_negative else Const(0, 1)
        early = high if quiet and can_be_negative else Const(0, 1)
        factor = a
        if quiet and can_be_negative:
            factor = Signal(n, name=f"{name}_turned{digit}")
            m.d.comb += factor.eq(a ^ high.replicate(n))
        word = Cat(factor, early) & one.replicate(n + 1)
        if has_two:
            m.d.comb += two.eq(twice)
            word = word | (Cat(early, factor) & two.replicate(n + 1))
        else:
            word = word[:n]
        if can_be_negative:
            if quiet:
                # The digit -0 is +0: its row is zero as well.
                high = high & ~(padded[2 * digit + 1] & padded[2 * digit])
            else:
                word = word ^ high.replicate(n + 1)
            word = Cat(word, high, high, ~high) if digit == 0 else Cat(word, ~high, Const(1, 1))
        lsb = 2 * digit
        if correction is not None:
            word, lsb = Cat(correction, Const(0, 1), word), lsb - 2
        correction = high if can_be_negative else None
        row = Signal(min(len(word), width - lsb), name=f"{name}_row{digit}")
        m.d.comb += row.eq(word)
        rows.append(CarrySaveRow(value=row, lsb=lsb))
    assert correction is None, "the last digit of an unsigned number is not negative"
    return rows


def check_multiplier(multiplier: object) -> str:
    """Return ``multiplier`` unchanged if it is one of ``MULTIPLIERS``.

    Raises
    ------
    ValueError
        If it is not.
    """
    one_of("multiplier", multiplier, MULTIPLIERS)
    return str(multiplier)


def multiply(
    m: Module,
    a: Value,
    b: Value,
    *,
    name: str,
    multiplier: str = "booth",
    bits: int | None = None,
) -> Value:
    """Return the exact product of two unsigned words, which has ``len(a) + len(b)`` bits.

    Parameters
    ----------
    a, b : Value
        Unsigned factors.
    name : str
        First part of the new signals' names.
    multiplier : {"booth", "dsp", "quiet"}
        Form of the multiplier.
    bits : int, optional
        Length of the second factor, if ``b`` is not this factor but its digits from ``recode``;
        for ``booth`` only.
    """
    width = len(a) + (len(b) if bits is None else bits)
    if multiplier == "dsp":
        product = Signal(width, name=f"{name}_product")
        m.d.comb += product.eq(a * b)
        return product
    rows = booth_rows(m, a, b, name=name, bits=bits, quiet=multiplier == QUIET)
    rows = arrange_rows(rows, ORDERS)
    rows, _ = reduce_rows(m, rows, width=width, name=name)
    product = Signal(width, name=f"{name}_product")
    m.d.comb += product.eq(add_rows(m, rows, width=width))
    return product


def arrange_rows(
    rows: list[CarrySaveRow], orders: Mapping[int, Sequence[int]]
) -> list[CarrySaveRow]:
    """Return the rows in the order that ``orders`` has for their number, or unchanged."""
    order = orders.get(len(rows), range(len(rows)))
    return [rows[i] for i in order]
