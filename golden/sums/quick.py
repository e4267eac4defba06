"""The text of windowed sums that fit into 32-bit integers and are cut to FP32, in matrices.

These are the rules of most tensor cores with results in FP32. All stages of a strip compute with
numbers of 32 bits, of which a processor's vector holds twice as many as of 64. A sum whose E_max
lies near an end of FP32's range, or that has an infinity or NaN, is computed again by itself, in
FP64.
"""

from vitruvian.golden.sums import align
from vitruvian.golden.sums.align import LEAST, passes, tree
from vitruvian.golden.sums.decode import ANY, NONE, SPECIAL, ZERO, function, indented
from vitruvian.golden.sums.rule import Facts
from vitruvian.golden.sums.strips import over_columns

_UNROLLED = 8  # terms of one pass over a strip, whose sum with C fits into 32 bits
_HIGHEST = 125  # the largest E_max with which no product and no sum leaves FP32's range
_SUM = (1 << 31) - (1 << 28)  # a sum below it is below 2^31 also when rounded to FP32
_LOW = 8  # bits of the lower part of a sum with more than 32 bits
_LARGE = 30  # the least exponent of such a sum with which its lowest bits do not matter


def computes(f: Facts) -> bool:
    """Return True if ``stages`` has a form for this rule."""
    a, b = (f.convert or code for code in (f.a, f.b))
    exact = a.fraction_bits + b.fraction_bits + 2 <= 24
    ranges = max(code.exponent_bits for code in (a, b, f.a, f.b)) <= 8
    named = (f.truncate, f.rounding, f.zero)
    return (
        named == ("magnitude", "RZ", "positive")
        and f.lanes in ("together", "halves")
        and f.accumulate in ("tree", "late")
        and (f.slices, f.scale, f.flush_result) == (None, None, None)
        and not (f.leading or f.product_overflow or f.flush)
        and exact
        and ranges
        and f.c.exponent_bits == 8
        and f.window is not None
        and _bound(f, min(_UNROLLED, len(f.lane_terms[0]))) <= _SUM
        and _bound(f, f.k) >> _LOW <= _SUM
    )


def _bound(f: Facts, terms: int) -> int:
    """Return a bound of the sum of so many terms and C."""
    return (4 * terms + 2) << (f.window or 0)


def _is_wide(f: Facts) -> bool:
    """Return True if a sum has two parts, of which the lower one has ``_LOW`` bits."""
    return _bound(f, len(f.lane_terms[0])) > _SUM


def stages(f: Facts) -> list[str]:
    """Return the functions that ``step`` calls for each strip of a row of D."""
    assert f.window is not None
    text = [_begin(f, f.window), _finish(f)]
    for lane, terms in enumerate(f.lane_terms):
        text += [_largest(lane, terms), _add(f, lane, terms), _slowly(f, lane, terms)]
    return text


def step(f: Facts) -> list[str]:
    """Return the statements of one step for one row ``i`` of a strip."""
    given = "w" if f.accumulate == "late" else "own"
    lines = [*align.first_addend(f, "own"), "left0 = values_left[i]"]
    for lane in range(len(f.lane_terms)):  # the first sum is the C of the second
        lines += [
            f"largest{lane}(exponents_left[i], exponents_right, first, start, top0, n)",
            f"rare = begin(top0, {given}, emax, scale, part, n)",
            "if rare:",
            "    for r in range(n):",
            f"        y[r] = {given}[r]",
            f"add{lane}(left0, right0, first, start, scale, part, rest, n)",
            f"finish(part, rest, scale, {given}, n)",
            "if rare:",
            f"    slowly{lane}(left0, right0, first, start, y, emax, {given}, n)",
        ]
    if f.accumulate == "late":
        lines += ["join(w, own, n)", "for r in range(n):", "    own[r] = w[r]"]
    return lines


def _least(f: Facts) -> int:
    """Return the least E_max with which the unit's reciprocal and every result are normal."""
    return (f.window or 0) - 126


def _largest(lane: int, terms: list[int]) -> str:
    """Return the function that finds the largest exponent of the products."""
    one = "np.int16(x{0} + y{0}[at])"
    body: list[str] = []
    line = "top[j] = {}"
    if len(terms) > _UNROLLED:
        body = ["for j in range(n):", "    top[j] = np.int16(-20000)"]
        line = "top[j] = max(top[j], {})"
    for loop in passes(terms, _UNROLLED):
        whole = tree([one.format(i) for i in range(len(loop[1]))], "max({}, {})")
        body += over_columns(loop, line.format(whole))
    return function(f"largest{lane}(left, right, first, start, top, n)", body)


def _begin(f: Facts, window: int) -> str:
    """Return the function that sets E_max and scales, and begins sums with C.

    It returns if a sum has to be computed again.
    """
    floor = LEAST if f.floor is None else f.floor
    lines = [
        "u = np.float32(z[r]).view(np.int32)",
        f"top = np.int32(max(np.int32(np.int32(u >> 23) & 255) - 127, {f.c.emin}))",
        f"top = np.int32({ZERO}) if np.int32(u & 0x7FFFFFFF) == 0 else top",
        f"top = np.int32({2 * SPECIAL}) if np.int32(u & 0x7F800000) == 0x7F800000 else top",
        "top = np.int32(max(np.int32(tops[r]), top))",
        "emax[r] = top",
        # A sum of zeros is zero at any scale.
        f"base = np.int32(0) if top < {NONE} else np.int32(max(top, {floor}))",
        f"kept = np.int32(min(np.int32(max(base, {_least(f)})), {_HIGHEST}))",
        "rare |= np.int32(base != kept)",
        f"s = np.int32(np.int32({window} + 127 - kept) << 23).view(np.float32)",
        "scale[r] = s",
        f"part[r] = np.int32(np.float32(z[r] * s) if top <= {_HIGHEST} else np.float32(0))",
    ]
    body = ["rare = np.int32(0)", "for r in range(n):", *indented(lines), "return rare"]
    return function("begin(tops, z, emax, scale, part, n)", body)


def _add(f: Facts, lane: int, terms: list[int]) -> str:
    """Return the function that adds the cut products to ``part``, and the lowest bits to ``rest``.

    A sum of at most 32 bits has no ``rest``.
    """
    one, plus = "np.int32(np.float32(x{0} * y{0}[at]) * scale[j])", "np.int32({} + {})"
    lines = ["part[j] = np.int32(part[j] + {})"]
    body: list[str] = []
    if _is_wide(f):
        lines = [
            "value = {}",
            f"part[j] = np.int32(part[j] + np.int32(value >> {_LOW}))",
            f"rest[j] = np.int32(rest[j] + np.int32(value & {(1 << _LOW) - 1}))",
        ]
        body = [
            "for j in range(n):",
            f"    rest[j] = np.int32(part[j] & {(1 << _LOW) - 1})",
            f"    part[j] = np.int32(part[j] >> {_LOW})",
        ]
    for loop in passes(terms, _UNROLLED):
        whole = tree([one.format(i) for i in range(len(loop[1]))], plus)
        body += over_columns(loop, *(line.format(whole) for line in lines))
    return function(f"add{lane}(left, right, first, start, scale, part, rest, n)", body)


def _finish(f: Facts) -> str:
    """Return the function that cuts sums to FP32 numbers of the result's fraction bits."""
    mask = -1 << (23 - f.bits)
    lines = ["total = part[r]", "size = np.int32(abs(total))"]
    large = "np.int32(0)"
    if _is_wide(f):
        ones = (1 << _LOW) - 1
        lines = [
            f"total = np.int32(part[r] + np.int32(rest[r] >> {_LOW}))",
            f"low = np.int32(rest[r] & {ones})",
            # The magnitude of a negative sum
            "more = np.int32(low != 0)",
            "high = np.int32(-total - more) if total < 0 else total",
            f"low = np.int32(np.int32({ones + 1} - low) & {ones}) if total < 0 else low",
            f"large = np.int32(high >= {1 << (_LARGE - _LOW)})",
            f"fine = np.int32(np.int32(high << {_LOW}) | low)",
            f"coarse = np.int32(np.int32(high << 1) | np.int32(low >> {_LOW - 1}))",
            "size = coarse if large else fine",
        ]
        large = f"np.int32(np.int32(large * {_LOW - 1}) << 23)"
    lines += [
        "t = np.float32(size)",
        # Where it was rounded up, the number before it is what the sum is cut to.
        "u = np.int32(np.float32(t).view(np.int32) - np.int32(np.int32(t) > size))",
        f"u = np.int32(u & np.int32({mask}))" if mask != -1 else "",
        "u = np.int32(u | np.int32(total & np.int32(-0x80000000)))",
        # The unit is 1 / scale: its exponent field is 254 minus that of the scale.
        "unit = np.int32(np.int32(254 << 23) - np.float32(scale[r]).view(np.int32))",
        f"unit = np.int32(unit + {large})" if _is_wide(f) else "",
        "y[r] = np.int32(u).view(np.float32) * np.int32(unit).view(np.float32)",
    ]
    body = ["for r in range(n):", *indented([line for line in lines if line])]
    return function("finish(part, rest, scale, y, n)", body)


def _slowly(f: Facts, lane: int, terms: list[int]) -> str:
    """Return the function that computes rare sums again, in FP64."""
    floor = LEAST if f.floor is None else f.floor
    loop, offsets = f"for k in range(first, first + {f.k}):", [""]
    if f.lanes == "halves":
        loop, offsets = f"for k in range(first + {terms[0]}, first + {f.k}, 4):", ["", " + 1"]
    one = "np.float64(left[k{0}]) * np.float64(right[k{0}, start + r])"
    products = [one.format(offset) for offset in offsets]
    exact = [
        f"base = np.int64(max(emax[r], {floor}))",
        f"s = power({f.window} - base)",
        "total = np.trunc(np.float64(z[r]) * s)",
        loop,
        *indented([f"total += np.trunc({product} * s)" for product in products]),
        f"v = (total + 0.0) * power(base - {f.window})",
        "y[r] = settled(v, rounded(v))",
    ]
    lines = [
        f"base = np.int32(0) if emax[r] < {NONE} else np.int32(max(emax[r], {floor}))",
        f"if emax[r] > {ANY}:",
        *indented(align.float_sum(f, loop, products)),
        f"elif base < {_least(f)} or base > {_HIGHEST}:",
        *indented(exact),
    ]
    head = f"slowly{lane}(left, right, first, start, z, emax, y, n)"
    return function(head, ["for r in range(n):", *indented(lines)])
