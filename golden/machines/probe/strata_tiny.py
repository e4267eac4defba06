"""The strata of tiny numbers: floors of E_max, subnormal numbers, flushed results."""

import numpy as np

from vitruvian.golden.machines.probe.operands import number, scale_codes
from vitruvian.golden.machines.probe.rows import Rows


def floors(rows: Rows) -> None:
    """Products far below one without C: the floor of E_max."""
    low = rows.lowest - rows.fraction
    tiny = np.arange(low, min(low + 420, 12))
    part = rows.new(len(tiny))
    rows.put(part, 0, tiny)
    _tiny_terms(rows, tiny, tiny * 0)
    part = rows.new(len(tiny))
    rows.put(part, 0, tiny + rows.rng.integers(1, 50, len(tiny)))
    rows.put(part, 1, tiny)
    rows.put(part, 2, tiny + rows.rng.integers(1, 50, len(tiny)))
    if rows.scale is None:
        return
    # Tiny terms by their scales: the products of a block, and then terms of several blocks
    tiny = np.arange(rows.out.emin - 60, rows.out.emin + 30)
    _tiny_terms(rows, tiny, tiny - rows.lowest - 2)
    n = len(tiny)
    for apart in range(1, 4):
        for sign in (0, 1):
            above = tiny + rows.rng.integers(1, 40, n)
            _put_blocks(rows, rows.new(n), [tiny, tiny - apart, above], sign)
        _put_blocks(rows, rows.new(n), [tiny + rows.rng.integers(1, 36, n), tiny], 1)


def _tiny_terms(rows: Rows, tiny: np.ndarray, shift: np.ndarray) -> None:
    """Append tiny terms beside others; the scales of all blocks are 2^shift together."""
    least = rows.out.emin - rows.out.fraction_bits
    n = len(tiny)

    def new() -> dict[str, np.ndarray]:
        part = rows.new(n)
        if rows.scale is not None:
            part["scale_a"][:] = scale_codes(shift // 2, rows.scale)[:, None]
            part["scale_b"][:] = scale_codes(shift - shift // 2, rows.scale)[:, None]
        return part

    # A tiny term of the other sign changes the result wherever it is kept at all.
    for repetition in range(2):
        above = np.maximum(tiny + rows.rng.integers(1, 30, n), least) - shift
        part = new()
        rows.put(part, 0, above, 0, exact=True)
        rows.put(part, 1, tiny - shift, 1, exact=True)
        # Beside a tie, which such a term decides
        part = new()
        rows.put(part, 0, above, 0, exact=True)
        rows.put(part, 1, least - 1 - shift, 0, exact=True)
        rows.put(part, 2 + repetition, tiny - shift, exact=True)
    # Two tiny terms of opposite signs, of which one or both are cut, alone and beside a tie
    for beside in (False, True):
        part = new()
        rows.put(part, 0, tiny - shift, 0, exact=True)
        rows.put(part, 1, tiny - rows.rng.integers(1, 3, n) - shift, 1, exact=True)
        if beside:
            rows.put(part, 2, least - shift, 0, exact=True)
            rows.put(part, 3, least - 1 - shift, 0, exact=True)


def _put_blocks(
    rows: Rows, part: dict[str, np.ndarray], exponents: list[np.ndarray], sign: int
) -> None:
    """Set one product in each of the first blocks by its scales; the second one has a sign."""
    assert rows.scale is not None and rows.block is not None
    for block, exponent in enumerate(exponents[: rows.terms // rows.block]):
        rows.put(part, block * rows.block, exponent * 0, sign * (block == 1), exact=True)
        part["scale_a"][:, block] = scale_codes(exponent // 2, rows.scale)
        part["scale_b"][:, block] = scale_codes(exponent - exponent // 2, rows.scale)


def subnormals(rows: Rows) -> None:
    """Subnormal operands and addends: flushing, and the exponents of their products."""
    n = 64
    for both in (False, True):
        for count in (1, 2, rows.terms):
            part = rows.new(n)
            exponent = np.zeros(n, int)
            for position in range(count):
                rows.put(part, position, np.zeros(n, int))
                for name, format, other in (("a", rows.a, rows.b), ("b", rows.b, rows.a)):
                    if name == "b" and not both:
                        continue
                    bits = rows.rng.integers(0, format.fraction_bits, n)
                    small = rows.rng.integers(0, 2 << bits)
                    codes = number(
                        rows.rng.integers(0, 2, n), np.full(n, format.emin), small, format
                    )
                    codes &= ~np.array(format.exponent_mask, codes.dtype)
                    part[name][:, position % rows.terms] = codes
                    exponent = format.emin + other.emax - rows.rng.integers(0, 30, n)
            if count == 2:
                rows.put(part, 1, exponent + rows.rng.integers(-6, 24, n))
            if count > 1:
                rows.add(part, exponent + rows.rng.integers(-30, 20, n))
    # A product with a subnormal factor, which another one cancels, has the largest exponent.
    for name, format, other in (("a", rows.a, rows.b), ("b", rows.b, rows.a)):
        part = rows.new(n)
        top = np.full(n, format.emin + other.emax) - rows.rng.integers(0, 3, n)
        rows.put(part, 0, top)
        places = rows.rng.integers(1, format.fraction_bits + 1, n)
        part[name][:, 0] = number(places * 0, format.emin - places, places * 0, format)
        large = np.full(n, other.emax) - rows.rng.integers(0, 2, n)
        part["b" if name == "a" else "a"][:, 0] = number(places * 0, large, places * 0, other)
        rows.negate(part, np.zeros(n, int), np.full(n, 1 % rows.terms))
        low = np.maximum(rows.lowest - rows.fraction, top - 50)
        rows.put(part, 2, rows.rng.integers(low, top))
        rows.put(part, 3, rows.rng.integers(low, top))
    # A product of two subnormals beside a C of its size
    part = rows.new(2 * n)
    leading = np.zeros(2 * n, int)
    for name, format in (("a", rows.a), ("b", rows.b)):
        places = rows.rng.integers(1, format.fraction_bits + 1, 2 * n)
        sign = rows.rng.integers(0, 2, 2 * n)
        part[name][:, 0] = number(sign, format.emin - places, places * 0, format)
        leading += format.emin - places
    rows.add(part, leading - rows.rng.integers(0, 7, 2 * n))
    # A subnormal C alone, and with products of its size
    part = rows.new(32)
    rows.add(part, rows.out.emin - rows.rng.integers(0, rows.out.fraction_bits, 32))
    later = np.arange(rows.terms) >= rows.rng.integers(0, rows.terms + 1, (16, 1))
    signs = np.array([0, rows.a.negative_zero], part["a"].dtype)
    part["a"][16:] = signs[later.astype(int)]  # products of −0 after those of +0
    for near in (2, 30):
        part = rows.new(n)
        for position in range(2):
            at = rows.out.emin - rows.out.fraction_bits + rows.rng.integers(-3, near, n)
            rows.put(part, position, at)
        rows.add(part, rows.out.emin - rows.rng.integers(1, rows.out.fraction_bits + 1, n))


def tiny_results(rows: Rows) -> None:
    """Results at the least normal and at the least positive number: rounding and flushing."""
    out = rows.out
    least = out.emin - out.fraction_bits
    for count in (1, 2):
        exponent = np.arange(least - 4, out.emin + 3).repeat(6)
        part = rows.new(len(exponent))
        for position in range(count):
            rows.put(part, position, exponent - 3 * position * rows.rng.integers(0, 8))
    # The last terms alone, which the last block takes, whatever the order
    for position in range(-3, 0):
        exponent = np.arange(least - 4, out.emin + 3).repeat(4)
        part = rows.new(len(exponent))
        rows.put(part, position, exponent)
    # C alone
    part = rows.new(len(exponent))
    rows.add(part, exponent)
    # Just below the least normal number, and just above the largest subnormal one
    below = np.arange(1, 30).repeat(4)
    n = len(below)
    sign = rows.rng.integers(0, 2, n)
    for exact in (True, False):
        part = rows.new(n)
        part["c"][:] = number(sign, np.full(n, out.emin), np.zeros(n, int), out)
        rows.put(part, 0, out.emin - below, 1 - sign, exact=exact)
        part = rows.new(n)
        rows.put(part, 0, np.full(n, out.emin), sign, exact=True)
        rows.put(part, 1 + np.arange(n) % 2, out.emin - below, 1 - sign, exact=exact)
        part = rows.new(n)
        part["c"][:] = number(sign, np.full(n, out.emin), np.zeros(n, int), out)
        part["c"] -= np.array(1 << out.storage_shift, part["c"].dtype)
        rows.put(part, 0, out.emin - out.fraction_bits - below % 4, sign, exact=exact)


def negative_zeros(rows: Rows) -> None:
    """Negative products that are flushed, or one positive zero, among products of −0."""
    n = 6
    blocks = [k for k in range(1, rows.terms + 1) if rows.terms % k == 0]
    starts = [(rows.terms - k, count) for k in blocks for count in (0, 1, 2, 4) if count <= k]
    for first, count in (*starts, *((rows.terms - 1, count) for count in (0, 1))):
        part = rows.new(n)
        part["a"][:], part["b"][:] = rows.a.negative_zero, rows.b.one
        part["a"][:, first] = 0
        for position in range(first, first + count):
            rows.put(part, position, np.full(n, rows.out.emin - 3), 1, exact=True)
        one, zero = np.ones(n, int), np.zeros(n, int)
        part["c"][:] = number(one, rows.out.emin - np.arange(n), zero, rows.out)
        part["c"][:2] = 0, rows.out.negative_zero
