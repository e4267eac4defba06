"""Unsigned product of two significands: radix-4 Booth rows, or ``*`` for a DSP block."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value

from vitruvian.validate import one_of

from .carrysave import Row, add_rows, reduce_rows

__all__ = ["MULTIPLIERS", "ORDERS", "arrange_rows", "booth_rows", "check_multiplier", "multiply"]

#: The two forms in which a unit multiplies and adds. ``booth`` uses Booth rows and carry-save
#: trees, which are smallest in standard cells. ``dsp`` uses ``*`` and ``+``, which become the DSP
#: blocks and carry chains of an FPGA. Both give the same results
#: (docs/decisions/0008-dsp-multipliers.md).
MULTIPLIERS = ("booth", "dsp")

#: The order in which rows enter the 3:2 compressors, for each number of rows. These orders mapped
#: to the smallest area among many random ones (docs/decisions/0002-dot-product-datapath.md).
ORDERS = {6: (1, 0, 3, 5, 2, 4), 7: (5, 6, 1, 4, 0, 2, 3)}


def booth_rows(m: Module, a: Value, b: Value, *, name: str) -> list[Row]:
    """Return partial products of ``a * b``, with ``b`` recoded to digits -2 … 2.

    This is the modified Booth recoding of radix 4. The rows add up to the product modulo
    ``2**(len(a) + len(b))``. A negative row is a ones' complement, and the 1 that completes it is
    put into the free columns below the next row. No row is sign-extended: the usual pair
    ``1, ~negative`` above a row (``~n, n, n`` above the first) replaces all sign bits.

    Parameters
    ----------
    m : Module
    a, b : Value
        Unsigned factors; ``b`` is recoded, two bits per row.
    name : str
        First part of the new signals' names.
    """
    n, width = len(a), len(a) + len(b)
    rows: list[Row] = []
    correction: Value | None = None
    digits = len(b) // 2 + 1
    padded = Cat(Const(0, 1), b, Const(0, 2))
    for digit in range(digits):
        low, mid, high = (padded[2 * digit + i] for i in range(3))
        can_be_negative = 2 * digit + 1 < len(b)
        has_two = 2 * digit < len(b)
        one = Signal(name=f"{name}_one{digit}")
        two = Signal(name=f"{name}_two{digit}")
        m.d.comb += one.eq(mid ^ low)
        word = Cat(a, Const(0, 1)) & one.replicate(n + 1)
        if has_two:
            m.d.comb += two.eq(~one & (high ^ mid) if can_be_negative else mid & low)
            word = word | (Cat(Const(0, 1), a) & two.replicate(n + 1))
        else:
            word = word[:n]
        if can_be_negative:
            word = word ^ high.replicate(n + 1)
            word = Cat(word, high, high, ~high) if digit == 0 else Cat(word, ~high, Const(1, 1))
        lsb = 2 * digit
        if correction is not None:
            word, lsb = Cat(correction, Const(0, 1), word), lsb - 2
        correction = high if can_be_negative else None
        row = Signal(min(len(word), width - lsb), name=f"{name}_row{digit}")
        m.d.comb += row.eq(word)
        rows.append(Row(value=row, lsb=lsb))
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


def multiply(m: Module, a: Value, b: Value, *, name: str, multiplier: str = "booth") -> Value:
    """Return the exact product of two unsigned words, which has ``len(a) + len(b)`` bits.

    Parameters
    ----------
    m : Module
    a, b : Value
        Unsigned factors.
    name : str
        First part of the new signals' names.
    multiplier : {"booth", "dsp"}
        Form of the multiplier.
    """
    width = len(a) + len(b)
    if multiplier == "dsp":
        product = Signal(width, name=f"{name}_product")
        m.d.comb += product.eq(a * b)
        return product
    rows = arrange_rows(booth_rows(m, a, b, name=name), ORDERS)
    rows, _ = reduce_rows(m, rows, width=width, name=name)
    product = Signal(width, name=f"{name}_product")
    m.d.comb += product.eq(add_rows(m, rows, width=width))
    return product


def arrange_rows(rows: list[Row], orders: Mapping[int, Sequence[int]]) -> list[Row]:
    """Return the rows in the order that ``orders`` has for their number, or unchanged."""
    order = orders.get(len(rows), range(len(rows)))
    return [rows[i] for i in order]
