"""Parts of integer arithmetic modulo 2^W: adders, rows of truncated products, extrema.

Only the low W bits of a product are formed, so row j of an array has W − j bits.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..fp.parts.carrysave import CarrySaveRow, add_rows, reduce_rows, reduce_spans


def named(m: Module, value: Value, name: str) -> Signal:
    """Return ``value`` as a wire with the name ``name`` in ``m``."""
    wire = Signal(len(value), name=name)
    m.d.comb += wire.eq(value)
    return wire


def ripple(m: Module, x: Value, y: Value, carry: Value, *, name: str) -> tuple[Value, Value]:
    """Return ``x + y + carry`` and the carries out of all columns, from a ripple-carry adder.

    A ripple-carry adder is the smallest adder in standard cells.

    Parameters
    ----------
    x, y : Value
        Summands of the same width.
    carry : Value
        Carry-in.
    name : str
        First part of the new signals' names.
    """
    n = len(x)
    half = named(m, x ^ y, f"{name}_half")
    carries = [carry]  # separate wires, because a word of all carries would depend on itself
    for i in range(n):
        more = (half[i] & carries[i]) | (~half[i] & y[i])
        carries.append(named(m, more, f"{name}_carry{i}"))
    return half ^ Cat(*carries[:n]), Cat(*carries[1:])


def plain(m: Module, x: Value, y: Value, carry: Value, *, name: str) -> tuple[Value, Value]:
    """Return ``x + y + carry`` and the carry out of the top column, from an operator ``+``.

    This is ``ripple`` for FPGAs, where ``+`` becomes a carry chain.

    Parameters
    ----------
    x, y : Value
        Summands of the same width.
    carry : Value
        Carry-in.
    name : str
        First part of the new signals' names.
    """
    n = len(x)
    # The column below the sum adds 1 + carry, so it sends ``carry`` into column 0.
    total = named(m, Cat(Const(1, 1), x) + Cat(carry, y), f"{name}_total")
    return total[1 : n + 1], total[n + 1 :]


def less(x: Value, y: Value) -> Value:
    """Return 1 if ``x < y`` as two's complement numbers."""
    return x.as_signed() < y.as_signed()


def extremum(m: Module, x: Value, y: Value, largest: Value, *, name: str) -> Value:
    """Return the larger or the smaller of two signed numbers.

    Parameters
    ----------
    x, y : Value
        The numbers, in two's complement.
    largest : Value
        One bit. If set, the result is the larger number.
    name : str
        Name of the result's wire.
    """
    return named(m, Mux(less(x, y) ^ largest, x, y), name)


def booth_digits(b: Value) -> list[tuple[Value, Value, Value]]:
    """Return the radix-4 Booth digits −2 … 2 of a word, each as (one, two, negative)."""
    padded = Cat(Const(0, 1), b)
    digits = []
    for i in range(0, len(b), 2):
        low, mid, high = padded[i], padded[i + 1], padded[i + 2]
        digits.append((mid ^ low, ~(mid ^ low) & (high ^ mid), high))
    return digits


def booth_rows(
    m: Module, a: Value, digits: Sequence[Sequence[Value]], *, name: str
) -> list[CarrySaveRow]:
    """Return rows that add up to ``a * b`` modulo ``2**len(a)``.

    A negative row is a ones' complement, and the 1 that completes it is put into the free columns
    below the next row. The last row has only two bits and is negated completely.

    Parameters
    ----------
    a : Value
        First factor.
    digits : sequence of (Value, Value, Value)
        Second factor, from ``booth_digits``.
    name : str
        First part of the new signals' names.
    """
    width, rows = len(a), []
    below: list[Value] = []
    for i, (one, two, negative) in enumerate(digits):
        n = width - 2 * i
        plain = (a[:n] & one.replicate(n)) | (Cat(Const(0, 1), a)[:n] & two.replicate(n))
        if n > 2:
            word = plain ^ negative.replicate(n)
        else:  # no row follows that could take the 1; modulo 4, -x inverts bit 1 of an odd x
            plain = named(m, plain, f"{name}_last")
            word = Cat(plain[0], plain[1] ^ (negative & plain[0]))
        row = named(m, Cat(*below, word), f"{name}_row{i}")
        rows.append(CarrySaveRow(value=row, lsb=2 * i - len(below)))
        below = [negative, Const(0, 1)]
    return rows


def pair_selects(b: Sequence[Value]) -> list[Value]:
    """Return the bits that are set in b0 only, in b1 only, and in both."""
    return [b[0] & ~b[1], ~b[0] & b[1], b[0] & b[1]]


def pair_rows(
    m: Module, words: Sequence[Value], selects: Sequence[Value], *, name: str
) -> list[CarrySaveRow]:
    """Return rows that add up to ``a0 * b0 + a1 * b1`` modulo ``2**W``.

    Parameters
    ----------
    words : sequence of Value
        a0, a1 and a0 + a1. Bit j of b0 and bit j of b1 together select one of them, or 0, as row j.
    selects : sequence of Value
        The choices, from ``pair_selects``.
    name : str
        First part of the new signals' names.
    """
    width, rows = len(words[0]), []
    for j in range(width):
        n = width - j
        choice: Value = Const(0, n)
        for word, select in zip(words, selects, strict=True):
            choice = choice | (word[:n] & select[j].replicate(n))
        rows.append(CarrySaveRow(value=named(m, choice, f"{name}_row{j}"), lsb=j))
    return rows


def square_rows(m: Module, x: Value, *, name: str) -> list[CarrySaveRow]:
    """Return rows that add up to ``x * x`` modulo ``2**W``.

    The bit products x_i·x_j and x_j·x_i are equal, so one of them is used, with twice its weight.

    Parameters
    ----------
    x : Value
        The number.
    name : str
        First part of the new signals' names.
    """
    width, rows = len(x), []
    # x_i·x_i = x_i has the weight 2^(2i), and 2·x_i·x_j has the weight 2^(i + j + 1).
    for i in range(width // 2):
        above = x[i + 1 : width - i - 1]
        word = Cat(x[i], Const(0, 1), above & x[i].replicate(len(above)))
        rows.append(CarrySaveRow(value=named(m, word, f"{name}_row{i}"), lsb=2 * i))
    return rows


def two_rows(m: Module, rows: list[CarrySaveRow], *, width: int, name: str) -> list[CarrySaveRow]:
    """Return two rows with the same sum as rows of any weights.

    Parameters
    ----------
    width : int
        The sum is modulo ``2**width``.
    name : str
        First part of the new signals' names.
    """
    return reduce_spans(m, rows, width=width, target=2, name=name)


def sum_rows(m: Module, words: Sequence[Value], *, name: str) -> Value:
    """Return the sum of words of one width W, modulo ``2**W``.

    Parameters
    ----------
    name : str
        First part of the new signals' names.
    """
    width = len(words[0])
    rows = [CarrySaveRow(value=word, lsb=0) for word in words]
    rows, _ = reduce_rows(m, rows, width=width, name=name)
    return named(m, add_rows(m, rows, width=width), name)
