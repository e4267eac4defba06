"""The text of the middle stages: the largest exponent, and the sum of the terms cut at it.

A term is cut by the conversion of a floating-point number to an integer. A multiplication by a
power of two first moves the last bit that is kept to the place of 1.
"""

from vitruvian.golden.sums.decode import ANY, NONE, SPECIAL, ZERO, flushed, function, indented
from vitruvian.golden.sums.rule import Facts

#: E_max of terms that are all zero, below that of any others
LEAST = -700
_INT_BITS = 29  # a magnitude that is cut at a window below this fits into 32 bits with its sign
_UNROLLED = 8  # terms of a row in one pass
_EXACT_BITS = 53  # bits of an exact sum in FP64
_LIMB_BITS = 59  # bits of an exact sum in 64-bit integers


def how_to_add(f: Facts) -> str | None:
    """Return the way in which sums of this rule are computed, or None if there is none.

    "short": terms are 32-bit integers. "long": terms are whole numbers in FP64. "odd": likewise,
    rounded to odd. "bounded": FP64 with a bound of the error, and exactly where that is not enough.
    """
    if f.truncate == "floor":
        plain = not f.slices and not f.leading and f.accumulate in ("tree", "late")
        fits = f.window is None or f.window + f.k.bit_length() + 3 <= _LIMB_BITS
        return "bounded" if plain and fits else None
    if f.window is None:
        return None
    terms = f.summed * len(f.slices or (0,))
    if f.truncate == "odd":
        fits = f.window <= _INT_BITS and f.accumulate == "late"
        return "odd" if fits else None
    if f.window <= _INT_BITS - 2 and not f.is_grouped:
        return "short"
    return "long" if f.window + 3 + terms.bit_length() <= _EXACT_BITS else None


def largest(f: Facts) -> str:
    """Return the function ``largest``, which finds E_max and returns if a row is special.

    Without C in the tree, a special C is marked all the same.
    """
    body = ["special = np.int32(0)", "for r in range(n):"]
    body += indented([*addend_exponent(f), "emax[r] = top"])
    body += ["for r in range(n):", "    top = np.int16(-20000)"]
    for loop, terms in passes(summed_terms(f), _UNROLLED, ""):
        largest = tree([f"e[r * {f.summed} + half + {k}]" for k in terms], "max({}, {})")
        body += [f"    {loop}", f"        top = max(top, {largest})"]
    body.append("    emax[r] = max(emax[r], np.int32(top))")
    body += ["for r in range(n):", f"    special |= np.int32({is_special(f)})", "return special"]
    return function("largest(e, z, emax, n, half)", body)


def first_addend(f: Facts, z: str) -> list[str]:
    """Return statements before a sum: C in ``z`` is flushed, or a sum without C begins in ``w``."""
    if f.accumulate == "late":  # it begins with the zero that does not change its sign
        nothing = "-0.0" if f.zero == "ieee" else "0.0"
        return ["for r in range(n):", f"    w[r] = np.float32({nothing})"]
    if not f.flush:
        return []
    return [
        "for r in range(n):",
        f"    u = np.float32({z}[r]).view(np.int32)",
        *indented(flushed("u", f.c.emin)),
        f"    {z}[r] = np.int32(u).view(np.float32)",
    ]


def addend_exponent(f: Facts) -> list[str]:
    """Return statements that set ``top`` to the exponent that C gives to E_max, or to a mark."""
    own = f.accumulate in ("tree", "late")
    lines = [
        "u = np.float32(z[r]).view(np.int32)",
        f"top = np.int32(max((u >> 23 & 255) - 127, {f.c.emin}))" if own else f"top = {2 * ZERO}",
        f"top = np.int32({ZERO}) if np.int32(u & 0x7FFFFFFF) == 0 else top" if own else "",
        f"top = np.int32({2 * SPECIAL}) if np.int32(u & 0x7F800000) == 0x7F800000 else top",
    ]
    return [line for line in lines if line]


def is_special(f: Facts) -> str:
    """Return the test of a sum with an infinity, a NaN, or zeros that have signs."""
    test = f"emax[r] > {ANY}"
    if f.zero == "ieee":  # a sum of zeros needs the signs of its products
        test += f" or emax[r] < {NONE}"
    if f.product_overflow:
        test += f" or emax[r] >= {(1 << (f.c.exponent_bits - 1)) - 1}"
    return test


def specials(f: Facts) -> str:
    """Return ``specials``, which computes rows with an infinity, a NaN or nothing but zeros."""
    terms = f.summed  # those of the first slices, which are whole where they are not finite
    rows = is_special(f)
    loop, indices = f"for k in range({terms}):", [f"p[r * {terms} + k]"]
    if f.lanes == "halves":
        loop = f"for k in range(0, {terms}, 4):"
        indices = [f"p[r * {terms} + half + k]", f"p[r * {terms} + half + k + 1]"]
    body = float_sum(f, loop, indices)
    text = [f"if {rows}:", *indented(body)]
    if how_to_add(f) == "bounded" and not is_pair(f):
        rows = f"{ANY} < emax[r] < {1 << 19}" + rows.removeprefix(f"emax[r] > {ANY}")
        text = [f"if {rows}:", *indented(body)]
    return function("specials(p, z, emax, y, n, half)", ["for r in range(n):", *indented(text)])


def float_sum(f: Facts, loop: str, products: list[str]) -> list[str]:
    """Return statements that set a result to the float sum of C and the products of a loop.

    This sum has the infinities, NaNs and zeros of IEEE 754.
    """
    inner: list[str] = []
    for product in products:
        inner.append(f"value = np.float64({product})")
        if f.product_overflow:
            huge = 2.0 ** (1 << (f.c.exponent_bits - 1))
            inner.append(f"value = value * np.inf if abs(value) >= {huge!r} else value")
        inner.append("value_sum += value")
    body = ["value_sum = np.float64(z[r])", loop, *indented(inner)]
    if f.product_overflow:
        body += ["if not abs(value_sum) < np.inf:", "    y[r] = np.float32(value_sum)"]
    else:
        # C alone, beside products that are all zero, is rounded like any sum.
        after = f.accumulate == "after"
        value = "settled(value_sum, rounded(value_sum))" if after else "np.float32(value_sum)"
        body.append(f"y[r] = {value}")
    if f.zero == "positive":
        body.append("y[r] += np.float32(0)")
    return body


def add(f: Facts, real: str) -> str:
    """Return the functions that add the terms of each row and round the sum."""
    if f.accumulate == "aligned":
        return _aligned(f, real) + finish(f)
    if how_to_add(f) == "bounded":
        return _bounded(f)
    return finish(f) + _cut(f, real)


def base(f: Facts) -> str:
    """Return E_max of a row, at least its floor; the exponent of a special row does not matter."""
    floor = LEAST if f.floor is None else f.floor
    return f"max(emax[r] if emax[r] <= {ANY} else 0, {floor})"


def _cut(f: Facts, real: str) -> str:
    """Return ``add`` for sums of whole numbers, which are exact."""
    body = ["for r in range(n):", *indented([*begin(f, real), f"total[r] = {first(f)}"])]
    zero, term, group = cut_term(f)
    term = term.format("p[{}] * s")
    # Numba adds two int32 numbers as int64, unless it is told not to.
    plus = "np.int32({} + {})" if how_to_add(f) == "short" else "({} + {})"
    terms = summed_terms(f)
    for plane in range(len(f.slices or (0,))):
        row = f"{plane * f.rows * f.k} + " if plane else ""
        for start in range(0, len(terms), group):
            body += ["for r in range(n):", f"    part, s = {zero}, scale[r]"]
            for loop, places in passes(terms[start : start + group], _UNROLLED, ""):
                each = [term.format(f"{row}r * {f.summed} + half + {k}") for k in places]
                total = tree(each, plus)
                body += [f"    {loop}", f"        part = {plus.format('part', total)}"]
            body.append("    total[r] += part")
    return function("add(p, e, emax, z, total, scale, n, half)", body)


def summed_terms(f: Facts) -> list[int]:
    """Return the terms of one sum of a row; those of the second half lie two places further."""
    return [k for k in range(f.summed) if f.lanes != "halves" or k % 4 < 2]


def begin(f: Facts, real: str) -> list[str]:
    """Return statements that set the scale that moves the last bit of a sum to the place of 1."""
    reach = 126 if real == "float32" else 900
    return [
        f"places = np.int64({f.window} - {base(f)})",
        f"scale[r] = power(min(places, {reach}))",
    ]


def first(f: Facts) -> str:
    """Return the number with which a sum of whole numbers begins: C where it is a term."""
    if f.accumulate == "after":
        return "0.0"
    if f.accumulate == "tree" or f.lanes == "halves" or f.zero == "ieee":
        return f"np.trunc(np.float64(z[r]) * power(places) if emax[r] <= {ANY} else 0.0)"
    return "0.0"


def cut_term(f: Facts) -> tuple[str, str, int]:
    """Return the zero and the text of a term, a whole number, and how many terms fit into a sum."""
    how = how_to_add(f)
    if how == "short":
        return "np.int32(0)", "np.int32({})", max(1 << (_INT_BITS - (f.window or 0)), 1)
    return "0.0", "np.trunc({})" if how == "long" else "to_odd({})", f.summed


def finish(f: Facts) -> str:
    """Return the function ``finish``, which rounds sums of whole numbers."""
    if f.accumulate == "aligned":
        body = _finish_aligned(f)
    else:
        value = f"(total[r] + 0.0) * power(np.int64({base(f)} - {f.window}))"
        if f.accumulate == "after":
            value = f"odd_sum({value}, np.float64(z[r]))"
        body = [f"v = {value}", "y[r] = settled(v, rounded(v))"]
    text = function("finish(emax, z, total, scale, y, n)", ["for r in range(n):", *indented(body)])
    if how_to_add(f) == "odd":
        odd = ["low = np.floor(value)", "return np.float64(np.int32(low) | np.int32(low != value))"]
        text = function("to_odd(value)", odd) + text
    return text


def _bounded(f: Facts) -> str:
    """Return ``add`` for sums in FP64 whose error has a bound, and the exact sum of one row."""
    k = f.k
    if is_pair(f):
        value = "p[r]" if k == 1 else "odd_sum(p[2 * r], p[2 * r + 1])"
        head = "add(p, e, emax, z, total, scale, n, half)"
        text = function(head, ["for r in range(n):", f"    total[r] = {value}"])
        finish = ["v = total[r]", "y[r] = settled(v, rounded(v))"]
        loop = ["for r in range(n):", *indented(finish)]
        return text + function("finish(emax, z, total, scale, y, n)", loop)
    error, unit = bound(f)
    whole = k // 4 * 4
    lines = ["for r in range(n):", "    part = 0.0"]
    if whole:
        at = f"r * {k} + k"
        lines.append(f"    for k in range(0, {whole}, 4):")
        lines.append(f"        part += (p[{at}] + p[{at} + 1]) + (p[{at} + 2] + p[{at} + 3])")
    lines += [f"    part += p[r * {k} + {j}]" for j in range(whole, k)]
    lines += [
        f"    base = np.int64({base(f)})",
        f"    s = power({unit} - base)",
        "    value = np.float64(z[r]) * s",
        "    off = np.int64(value != np.rint(value))",
        f"    for k in range({k}):",
        f"        value = p[r * {k} + k] * s",
        "        off |= np.int64(value != np.rint(value))",
        "    total[r] = part + np.float64(z[r])",
        f"    scale[r] = power(base) * {error!r} if off != 0 else 0.0",
    ]
    text = function("add(p, e, emax, z, total, scale, n, half)", lines)
    finish = [
        "t = total[r]",
        "error = scale[r]",
        "low, high = rounded(t - error), rounded(t + error)",
        f"zero = emax[r] < {NONE}",
        "u = np.int32(np.float32(low).view(np.int32) ^ np.float32(high).view(np.int32)) != 0",
        f"u = u and emax[r] <= {ANY} and not zero",
        "y[r] = settled(t, np.float32(0) if zero else low)",
        "emax[r] = emax[r] + np.int32(1 << 20) if u else emax[r]",
        "unsure |= np.int32(u)",
    ]
    head = ["unsure = np.int32(0)", "for r in range(n):"]
    text += function(
        "finish(emax, z, total, scale, y, n)", [*head, *indented(finish), "return unsure"]
    )
    each = [
        f"if emax[r] > {1 << 19}:",
        f"    y[r] = exactly(p[r * {k} : r * {k} + {k}], np.int64(emax[r]) - {1 << 20}, z[r])",
    ]
    text += exactly(f)
    return text + function("again(p, emax, z, y, n)", ["for r in range(n):", *indented(each)])


def bound(f: Facts) -> tuple[float, int]:
    """Return the error of a sum in FP64, and n; all multiples of 2^(E_max − n) are added exactly.

    The error is one in units of 2^E_max.
    |term| < 4 · 2^E_max, so K + 1 terms are added with an error below (K + 1)(K + 2) · 2^-51 in
    these units. Each of them is cut by less than 2^(E_max − F), and the sticky bit is at most what
    was cut off.
    """
    k = f.k
    error = 4 * (k + 1) * (k + 2) * 2.0**-52
    unit = _EXACT_BITS - 3 - (k + 1).bit_length()
    if f.window is not None:
        error += (k + 1) * 2.0**-f.window
        unit = min(unit, f.window)
    return error * (1 + 2.0**-10), unit


def exactly(f: Facts) -> str:
    """Return the function ``exactly``, the result of one sum that FP64 leaves open."""
    exact = _in_integers(f) if f.window is not None else _in_parts(f)
    one = ["v = exact_sum(p, emax, z)", "return settled(v, rounded(v))"]
    return exact + function("exactly(p, emax, z)", one)


def is_pair(f: Facts) -> bool:
    """Return True if a sum has one or two products, whose sum rounded to odd is known."""
    return f.k <= 2 and f.window is None and f.accumulate == "late"


def _in_integers(f: Facts) -> str:
    """Return the exact sum of floored terms and a sticky bit, rounded to odd in FP64."""
    floor = LEAST if f.floor is None else f.floor
    body = [
        f"base = max(emax, {floor})",
        f"scale = power({f.window} - base)",
        "whole, lost = np.int64(0), False",
        f"for k in range({f.k + 1}):",
        f"    value = (np.float64(z) if k == {f.k} else np.float64(p[k])) * scale",
        "    kept = np.floor(value)",
        "    whole += np.int64(kept)",
        "    lost |= kept != value",
        "whole = 2 * whole + np.int64(lost)",
        f"size, unit = abs(whole), np.int64(base - {(f.window or 0) + 1})",
        "while size >= 1 << 53:",
        "    size = size >> 1 | size & 1",
        "    unit += 1",
        "value = np.float64(size) * power(unit)",
        "return -value if whole < 0 else value",
    ]
    return function("exact_sum(p, emax, z)", body)


def _in_parts(f: Facts) -> str:
    """Return the exact sum of terms, rounded to odd in FP64.

    The numbers are kept apart so that no two overlap; the errors of additions are numbers again
    (J. R. Shewchuk, 1997, section 2.4).
    """
    body = [
        f"numbers = np.empty({f.k + 1}, np.float64)",
        "numbers[0] = z",
        "count = 1",
        f"for k in range({f.k}):",
        "    value = np.float64(p[k])",
        "    kept = 0",
        "    for j in range(count):",
        "        other = numbers[j]",
        "        total = value + other",
        "        back = total - value",
        "        error = (value - (total - back)) + (other - back)",
        "        if error != 0:",
        "            numbers[kept] = error",
        "            kept += 1",
        "        value = total",
        "    numbers[kept] = value",
        "    count = kept + 1",
        "value, rest = np.float64(numbers[count - 1]), 0.0",
        "for j in range(count - 2, -1, -1):",
        "    total = value + numbers[j]",
        "    rest = numbers[j] - (total - value)",
        "    value = total",
        "    if rest != 0:",
        "        break",
        "if rest != 0 and np.float64(value).view(np.int64) & 1 == 0:",
        "    # The exact sum lies between two neighbours, of which the other one is odd.",
        "    away = (rest > 0) == (value > 0)",
        "    bits = np.float64(value).view(np.int64) + np.int64(1 if away else -1)",
        "    value = np.int64(bits).view(np.float64)",
        "return value",
    ]
    return function("exact_sum(p, emax, z)", body)


def _aligned(f: Facts, real: str) -> str:
    """Return ``add`` for the rule of CDNA 3, whose sums are floored one after the other.

    Fraction bits: 24 of the products and of C, 32 of their sum, 31 of the sum that is rounded.
    """
    k, reach = f.k, 126 if real == "float32" else 900
    body: list[str] = []
    lanes = 2 if f.lanes == "parity" else 1
    for lane in range(lanes):
        body += ["for r in range(n):"]
        if lanes == 1:
            body.append(f"    own = emax[r] if emax[r] <= {ANY} else 0")
        else:
            body += [
                "    low = np.int16(-20000)",
                f"    for k in range({lane}, {k}, 2):",
                f"        low = max(low, e[r * {k} + k])",
                f"    own = np.int32(low) if emax[r] <= {ANY} else 0",
            ]
        body += [
            f"    own = np.int64(max(own, {LEAST}))",
            f"    s = power(min(24 - own, {reach}))",
            "    part = np.int32(0)",
            f"    for k in range({lane}, {k}, {lanes}):",
            f"        part += np.int32(p[r * {k} + k] * s)",
        ]
        if lanes == 1:
            body.append("    total[r] = np.float64(part)")
        else:
            # A lane of zeros, or one that is far below the other, is floored to 0 or to −1.
            body += [
                f"    places = max(own - np.int64({base(f)}), -900)",
                "    value = np.floor(np.float64(part) * power(places))",
                "    total[r] = value" if lane == 0 else "    total[r] += value",
            ]
    return function("add(p, e, emax, z, total, scale, n, half)", body)


def _finish_aligned(f: Facts) -> list[str]:
    """Return statements that add C to the sum of the products, both floored, and round."""
    lines = [
        "u = np.float32(z[r]).view(np.int32)",
        f"ec = np.int64(max((u >> 23 & 255) - 127, {f.c.emin}))",
        f"own = np.int64({base(f)})",
        "common = max(own, ec)",
        "value = np.floor(total[r] * power(max(own - common + 8, -900)))",
        "addend = np.float64(z[r])",
        "addend = 0.0 if ec < common - 25 else addend" if f.lanes == "parity" else "",
        "value += np.floor(addend * power(24 - common)) * 256.0",
        "value = (value + 0.0) * power(common - 32)",
        "lead = np.int64((np.float64(value).view(np.int64) >> 52 & 2047) - 1023)",
        f"lead = max(lead, np.int64({f.c.emin}))",
        "v = np.floor(value * power(31 - lead)) * power(lead - 31)",
        "y[r] = settled(v, rounded(v))",
    ]
    return [line for line in lines if line]


def passes(terms: list[int], size: int, first: str = "first + ") -> list[tuple[str, list[str]]]:
    """Return the loops over some terms: a line, and the indices of the terms of one pass.

    A pass has at most ``size`` terms; the passes of one loop have equal distances. ``first`` is the
    text of the place of term 0 and a plus sign.
    """
    groups = [terms[i : i + size] for i in range(0, len(terms), size)]
    whole = [group for group in groups if len(group) == size]
    loops: list[tuple[str, list[str]]] = []
    if whole:
        begin = whole[0][0]
        stride = whole[1][0] - begin if len(whole) > 1 else 1
        line = f"for k in range({first}{begin}, {first}{begin + stride * len(whole)}, {stride}):"
        loops.append((line, [f"k + {term - begin}" for term in whole[0]]))
    if groups and len(groups[-1]) < size:
        line = f"for k in range({first}{groups[-1][0]}, {first}{groups[-1][0] + 1}):"
        loops.append((line, [f"k + {term - groups[-1][0]}" for term in groups[-1]]))
    return loops


def tree(texts: list[str], wrap: str) -> str:
    """Return the text of a sum, or of another operation, of numbers in pairs."""
    while len(texts) > 1:
        pairs = [texts[i : i + 2] for i in range(0, len(texts), 2)]
        texts = [wrap.format(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return texts[0]
