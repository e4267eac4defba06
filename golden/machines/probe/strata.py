"""The strata of the inputs: each separates some parameters of the rules from their neighbours.

A stratum is a function that appends rows. The strata come in the order of their size, so that the
first row that tells two rules apart is a small one.
"""

import numpy as np

from vitruvian.golden.machines.probe.operands import number, scale_codes
from vitruvian.golden.machines.probe.rows import Rows
from vitruvian.golden.machines.probe.strata_tiny import (
    floors,
    negative_zeros,
    subnormals,
    tiny_results,
)

_EIGHTH = 1  # 2.25 is 2 · (1 + 1/8)
_FAR = 44  # the largest window plus a few bits, for distances between exponents


def _middle(rows: Rows, n: int) -> np.ndarray:
    """Return exponents of products in the middle of the range."""
    low = max(rows.lowest + 2 * rows.fraction, rows.out.emin + rows.out.fraction_bits + 2)
    high = min(rows.highest, rows.out.emax) - 8
    low, high = (low, high) if low < high else ((low + high) // 2, (low + high) // 2 + 1)
    low, high = max(low, -12), min(high, 12)
    return rows.rng.integers(min(low, high), max(low, high) + 1, n)


def _upper(rows: Rows, n: int) -> np.ndarray:
    """Return exponents of products near the top of the range, so that others lie far below."""
    top = min(rows.highest, rows.out.emax - 8, 60)
    return top - rows.rng.integers(0, 3, n)


def _highest(rows: Rows, n: int) -> np.ndarray:
    """Return exponents at the top of the products' range, for products that cancel."""
    return min(rows.highest, 100) - rows.rng.integers(0, 3, n)


def single(rows: Rows) -> None:
    """One product and C at every distance: window, truncation, rounding."""
    distance = np.arange(-_FAR, _FAR + 1).repeat(2)
    part = rows.new(len(distance))
    exponent = _middle(rows, len(distance))
    exponent = np.where(distance > 4, _upper(rows, len(distance)), exponent)
    rows.put(part, 0, exponent)
    # In narrow formats, C is what lies far above or far below.
    rows.add(part, exponent - distance)


def pairs(rows: Rows) -> None:
    """Two products without C, and their difference with a small third term."""
    distance = np.arange(0, _FAR).repeat(2)
    n = len(distance)
    part = rows.new(n)
    exponent = _upper(rows, n)
    rows.put(part, 0, exponent)
    rows.put(part, 1, exponent - distance)
    for exact in (True, False):
        for late in (False, True):  # the small term is a product, or C
            part = rows.new(n)
            top = np.where(np.arange(n) % 2, exponent, _highest(rows, n))
            rows.put(part, 0, top, exact=exact)
            rows.negate(part, np.zeros(n, int), np.full(n, 1 % rows.terms))
            if late:
                rows.add(part, top - distance)
            else:
                rows.put(part, 2, top - distance)
        # Two terms may lose bits, of one sign or of both. The second places are in the same half.
        for place in (2, 4):
            part = rows.new(n)
            top = _highest(rows, n)
            rows.put(part, 0, top, exact=exact)
            rows.negate(part, np.zeros(n, int), np.full(n, 1 % rows.terms))
            low = np.maximum(top - distance, rows.lowest - rows.fraction // 2)
            rows.put(part, place, low)
            rows.put(part, place + 1, low - rows.rng.integers(0, 2, n))
            rows.add(part, low + rows.rng.integers(-2, 3, n))
        # C cancels the first product, and the second one is what is left.
        part = rows.new(n)
        rows.put(part, 0, exponent, 1, exact=True)
        rows.put(part, 1, exponent - distance)
        part["c"][:] = number(np.zeros(n, int), exponent, np.zeros(n, int), rows.out)
    # Likewise, with a first product of two or more, or one with a subnormal factor, whose own
    # exponent is not that of its leading one
    for position in (0, rows.terms - 2):
        for name, factors in (("a", (rows.a, rows.b)), ("b", (rows.b, rows.a))):
            part = rows.new(n)
            top = np.where(np.arange(n) % 2, exponent, _highest(rows, n))
            rows.put(part, position, top, 1, exact=True)
            rows.put(part, position + 1, top - distance)
            _double(part, position % rows.terms, rows)
            part["c"][:] = number(
                np.zeros(n, int),
                top + 1,
                np.full(n, _EIGHTH, int) << (rows.out.fraction_bits - 3),
                rows.out,
            )
            part = rows.new(n)
            rows.put(part, position, top, 1, exact=True)
            places = rows.rng.integers(1, factors[0].fraction_bits + 1, n)
            large = np.full(n, factors[1].emax) - rows.rng.integers(0, 2, n)
            zero = places * 0
            small = number(zero, factors[0].emin - places, zero, factors[0])
            part[name][:, position % rows.terms] = small
            other = "b" if name == "a" else "a"
            part[other][:, position % rows.terms] = number(zero + 1, large, zero, factors[1])
            of = factors[0].emin - places + large
            low = rows.rng.integers(0, 256, n)
            part["c"][:] = number(zero, of, np.where(distance % 2, low, 0), rows.out)
            rows.put(part, position + 1, of - distance)
            part["a"][1::4, (position + 1) % rows.terms] = 0  # C and the product alone


def _double(part: dict[str, np.ndarray], position: int, rows: Rows) -> None:
    """Make both significands of a product 1.5, so that it is 2.25 times as large."""
    for name, format in (("a", rows.a), ("b", rows.b)):
        half = 1 << (format.fraction_bits - 1 + format.storage_shift)
        part[name][:, position] |= np.array(half, part[name].dtype)


def order(rows: Rows) -> None:
    """Two large terms that cancel, with small ones elsewhere: blocks and their order."""
    k = rows.terms
    for shift in (8, 12, 16, 20, 24, 27, 32):
        other = np.arange(k)
        for of_c in (True, False):
            n = k
            part = rows.new(n)
            top = _upper(rows, n)
            for position in range(k):
                rows.put(part, position, top - shift - rows.rng.integers(0, 3, n))
            rows.put(part, other, top, 1, exact=True)
            if of_c:
                part["c"][:] = number(np.zeros(n, int), top, np.zeros(n, int), rows.out)
            else:
                rows.negate(part, other, (other + 1 + rows.rng.integers(0, k, n)) % k)


def full(rows: Rows) -> None:
    """All terms at random, at small and large distances of their exponents."""
    for spread in (1, 3, 8, 16, 30):
        n = 48
        part = rows.new(n)
        middle = _middle(rows, n)
        for position in range(rows.terms):
            rows.put(part, position, middle - rows.rng.integers(0, spread + 1, n))
        rows.add(part, middle + rows.rng.integers(-spread, spread + 1, n))
        part = rows.new(n // 2)
        for position in range(rows.terms):
            rows.put(part, position, middle[: n // 2] - rows.rng.integers(0, spread + 1, n // 2))


def carries(rows: Rows) -> None:
    """Terms of one sign and size, whose sum has as many bits as possible."""
    for same in (True, False):
        n = 48
        part = rows.new(n)
        middle = _middle(rows, n)
        sign = rows.rng.integers(0, 2, n)
        for position in range(rows.terms):
            rows.put(part, position, middle, sign)
        high = (1 << rows.out.fraction_bits) - 1 - rows.rng.integers(0, 64, n)
        part["c"][:] = number(sign, middle if same else middle + 1, high, rows.out)
    # The last terms are as large as terms of their exponent can be, C is, too, and others are zero.
    ones = [(1 << f.fraction_bits) - 1 for f in (rows.a, rows.b)]
    for count in [k for k in range(1, rows.terms + 1) if rows.terms % k == 0]:
        n = 24
        part = rows.new(n)
        middle = _middle(rows, n)
        sign = np.arange(n) % 2
        for position in range(rows.terms - count, rows.terms):
            rows.put(part, position, middle, sign, exact=True)
            for (name, format), fraction in zip((("a", rows.a), ("b", rows.b)), ones, strict=True):
                filled = np.array(fraction << format.storage_shift, part[name].dtype)
                part[name][:, position] |= filled
        low = np.where(np.arange(n) % 4 < 2, 0, rows.rng.integers(0, 64, n))
        high = (1 << rows.out.fraction_bits) - 1 - low
        part["c"][:] = number(sign, middle + np.arange(n) // 4 % 3, high, rows.out)


def ties(rows: Rows) -> None:
    """Append sums half-way between results of every precision, and just beside."""
    precision = np.arange(1, rows.out.fraction_bits + 3).repeat(4)
    n = len(precision)
    tiny = rows.rng.integers(1, 24, n)
    for of_c in (True, False):
        for beside in (False, True):
            part = rows.new(n)
            top = _upper(rows, n)
            sign = rows.rng.integers(0, 2, n)
            if of_c:
                shift = np.maximum(rows.out.fraction_bits - precision, 0)
                odd = rows.rng.integers(0, 1 << np.minimum(precision, rows.out.fraction_bits))
                part["c"][:] = number(sign, top, odd << shift, rows.out)
            else:
                rows.put(part, 0, top, sign, exact=True)
                rows.put(part, 2, top - precision, sign, exact=True)
            rows.put(part, 1, top - precision - 1, exact=True)
            if beside:
                rows.put(part, 3, top - precision - 1 - tiny, exact=True)
    # C or a product is half-way itself, and the other one is tiny.
    for of_c in (True, False):
        part = rows.new(n)
        top = _upper(rows, n)
        sign = rows.rng.integers(0, 2, n)
        bits = rows.out.fraction_bits if of_c else rows.a.fraction_bits
        last = np.maximum(bits - precision - 1, 0)
        halfway = (2 * rows.rng.integers(0, 1 << np.minimum(precision, bits - 1)) + 1) << last
        small = top - precision - 1 - rows.rng.integers(1, 40, n)
        rows.put(part, 0, small if of_c else top, exact=True)
        if of_c:
            part["c"][:] = number(sign, top, halfway & ((1 << bits) - 1), rows.out)
        else:
            fraction = (halfway & ((1 << bits) - 1)) << rows.a.storage_shift
            part["a"][:, 0] |= fraction.astype(part["a"].dtype)
            rows.add(part, small)


def overflows(rows: Rows) -> None:
    """Append sums beside the largest number, and products beyond it."""
    out = rows.out
    n = 40
    ones = (1 << out.fraction_bits) - 1
    part = rows.new(n)
    sign = rows.rng.integers(0, 2, n)
    part["c"][:] = number(sign, np.full(n, out.emax), ones - rows.rng.integers(0, 2, n), out)
    rows.put(part, 0, out.emax - out.fraction_bits - rows.rng.integers(-1, 3, n), sign)
    part = rows.new(n)
    for position in range(min(3, rows.terms)):
        rows.put(part, position, np.minimum(out.emax + rows.rng.integers(-2, 3, n), rows.highest))
    rows.add(part, np.full(n, out.emax))
    part = rows.new(n)
    first = np.minimum(out.emax + rows.rng.integers(0, 4, n), rows.highest)
    rows.put(part, 0, first, 0)
    rows.put(part, 1, first - rows.rng.integers(0, 2, n), 1)


def specials(rows: Rows) -> None:
    """Infinities, NaNs and their products."""
    n = 24
    codes = {
        "a": [rows.a.infinity, rows.a.canonical_nan if rows.a.has_nan else None],
        "b": [rows.b.infinity, rows.b.canonical_nan if rows.b.has_nan else None],
        "c": [rows.out.infinity, rows.out.canonical_nan if rows.out.has_nan else None],
    }
    masks = {"a": rows.a.sign_mask, "b": rows.b.sign_mask, "c": rows.out.sign_mask}
    for names in (("a",), ("b",), ("c",), ("a", "b"), ("a", "c")):
        part = rows.new(n)
        for position in range(min(rows.terms, 4)):
            rows.put(part, position, _middle(rows, n))
        for name in names:
            for code in codes[name]:
                if code is None:
                    continue
                chosen = rows.rng.random(n) < 0.6
                signs = rows.rng.integers(0, 2, n).astype(np.uint64) * np.uint64(masks[name])
                value = (signs | np.uint64(code)).astype(part[name].dtype)
                target = part[name] if name == "c" else part[name][:, rows.rng.integers(0, 2) - 1]
                target[chosen] = value[chosen]
        if "c" not in names:  # a product of an infinity and zero
            part["b" if "a" in names else "a"][: n // 4] = 0


def zeros(rows: Rows) -> None:
    """Zeros of both signs, and sums that cancel."""
    minus_one = rows.b.one | rows.b.sign_mask
    for combination in range(16):
        part = rows.new(2)
        part["c"][:] = rows.out.negative_zero * (combination & 1)
        part["a"][:] = rows.a.negative_zero * (combination >> 1 & 1)
        part["b"][:] = (0, rows.b.one, minus_one, rows.b.one)[combination >> 2 & 3]
        if combination >> 2 & 3 == 3:  # one product has the other sign
            part["b"][:, 0] = minus_one
    n = 16
    part = rows.new(n)
    middle = _middle(rows, n)
    rows.put(part, 0, middle, 0, exact=True)
    rows.negate(part, np.zeros(n, int), np.full(n, 1 % rows.terms))
    part["c"][: n // 2] = rows.out.negative_zero
    part = rows.new(n)
    sign = np.arange(n) & 1
    rows.put(part, 0, middle, 1 - sign, exact=True)
    part["c"][:] = number(sign, middle, np.zeros(n, int), rows.out)


def patterns(rows: Rows) -> None:
    """Random bits."""
    part = rows.new(160)
    for name, format in (("a", rows.a), ("b", rows.b), ("c", rows.out)):
        bits = rows.rng.integers(0, 1 << format.width, part[name].shape, np.uint64)
        part[name][:] = (bits << np.uint64(format.storage_shift)).astype(part[name].dtype)
    if rows.scale is not None:
        for name in ("scale_a", "scale_b"):
            part[name][:] = rows.rng.integers(0, 256, part[name].shape)


def scales(rows: Rows) -> None:
    """Blocks at every distance from each other and from C, and special scales."""
    if rows.scale is None or not rows.block:
        return
    blocks, n = rows.terms // rows.block, 96
    largest = max(rows.a.emax, rows.b.emax)
    for cancel in (False, True):
        for spread in (2, 12, 40):
            part = rows.new(n)
            for position in range(rows.terms):
                rows.put(part, position, rows.rng.integers(rows.lowest, rows.highest + 1, n))
            for name in ("scale_a", "scale_b"):
                exponent = rows.rng.integers(-spread, spread + 1, (n, blocks)) // 2
                part[name][:] = scale_codes(exponent, rows.scale)
                part[name] |= rows.rng.integers(
                    0, 1 << rows.scale.fraction_bits, (n, blocks), np.uint8
                )
            rows.add(part, rows.rng.integers(-spread, spread + 2 * largest, n))
            if cancel:  # C or another block takes the first block away
                part["a"][:, 1 : rows.block] = 0
                rows.put(part, 0, np.full(n, rows.highest), 1, exact=True)
                top = rows.rng.integers(0, 2, n) * 30
                part["scale_a"][:, 0] = scale_codes(top, rows.scale)
                part["scale_b"][:, 0] = scale_codes(top * 0, rows.scale)
                top = np.minimum(top, (1 << rows.scale.exponent_bits) - 2 - rows.scale.bias)
                part["c"][:] = number(top * 0, rows.highest + top, top * 0, rows.out)
    for far in (-1, 1):  # very small and very large blocks
        part = rows.new(2 * n)
        low = max(rows.lowest, -2)
        for position in range(rows.terms):
            rows.put(part, position, rows.rng.integers(low, rows.highest + 1, 2 * n))
        part["a"][: n // 2, 1:] = 0
        at = far * rows.rng.integers(30, 90, (2 * n, 1))
        for name in ("scale_a", "scale_b"):
            near = rows.rng.integers(-10, 11, (2 * n, blocks))
            part[name][:] = scale_codes(at + near, rows.scale)
    part = rows.new(16)
    part["a"][:], part["b"][:] = rows.a.one, rows.b.one
    for row, code in enumerate((0, 0x7F, 0xFE, 0xFF, 0x80, 1, 2, 0x7E)):
        part["scale_a"][row, 0] = part["scale_b"][row + 8, -1] = code


STRATA = (
    *(zeros, negative_zeros, single, pairs, ties, overflows, subnormals, tiny_results, floors),
    *(order, carries, full, scales, specials, patterns),
)
