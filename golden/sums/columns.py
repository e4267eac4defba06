"""The text of the stages of one strip: a windowed sum for each column."""

from vitruvian.golden.sums import align
from vitruvian.golden.sums.align import how_to_add, passes, tree
from vitruvian.golden.sums.decode import ANY, GROUP, NONE, SPECIAL, ZERO, function, indented
from vitruvian.golden.sums.rule import Facts
from vitruvian.golden.sums.sides import number_type, unit_of
from vitruvian.golden.sums.strips import AT, over_columns

_UNROLLED = 4  # terms of one pass over a strip
_NOTHING = -20000  # the largest exponent of no terms
_BIAS = 2048  # makes the exponents of products positive


def _is_one_pass(terms: list[int]) -> bool:
    return len(terms) <= _UNROLLED


def _largest(f: Facts, name: str, terms: list[int]) -> str:
    """Return a function that finds the largest exponent of the products of some terms."""
    body: list[str] = []
    if _is_one_pass(terms):
        assign = "top[j] = {}"
    else:
        body = ["for j in range(n):", f"    top[j] = {'0' if f.leading else _NOTHING}"]
        assign = "top[j] = max(top[j], {})"
    bits, mask = (
        ("int64", (1 << 63) - 1) if number_type(f) == "float64" else ("int32", (1 << 31) - 1)
    )
    for loop in passes(terms, _UNROLLED):
        one = "np.int16(x{0} + y{0}[at])"
        if f.leading:  # the magnitudes of floating-point numbers have the order of their bits
            one = f"np.{bits}(np.{number_type(f)}(x{{0}} * y{{0}}[at]).view(np.{bits}) & {mask})"
        largest = tree([one.format(i) for i in range(len(loop[1]))], "max({}, {})")
        body += over_columns(loop, assign.format(largest))
    return function(f"{name}(left, right, first, start, top, n)", body)


def _begin(f: Facts) -> str:
    """Return the function ``begin``: E_max, scales, the first term, and if a sum is special."""
    top = "np.int32(tops[r])"
    lines: list[str] = []
    if f.leading:
        bias, ones = (52, 2047) if number_type(f) == "float64" else (23, 255)
        lines = [
            f"field = np.int32(tops[r] >> {bias})",
            f"lead = np.int32(field - {ones >> 1}) if field != 0 else np.int32({2 * ZERO})",
            f"lead = np.int32({2 * SPECIAL}) if field == {ones} else lead",
        ]
        top = "lead"
    lines += [*align.addend_exponent(f), f"emax[r] = max({top}, top)"]
    if f.accumulate != "aligned":
        lines += [*align.begin(f, number_type(f)), f"total[r] = {align.first(f)}"]
    lines.append(f"special |= np.int32({align.is_special(f)})")
    body = ["special = np.int32(0)", "for r in range(n):", *indented(lines), "return special"]
    return function("begin(tops, z, emax, scale, total, n)", body)


def _add(f: Facts, name: str, terms: list[int], into: str) -> str:
    """Return a function that adds the cut products of some terms to ``total``.

    Sums that fit into 32 bits are first made in ``part``; with ``into`` = "part", they stay there.
    """
    zero, term, group = align.cut_term(f)
    short = how_to_add(f) == "short"
    body: list[str] = []
    for start in range(0, len(terms), group):
        some = terms[start : start + group]
        here = "part" if short and (into == "part" or len(some) > _UNROLLED) else "total"
        plus = "+=" if here == "total" or not _is_one_pass(some) else "="
        if here == "part" and plus == "+=":
            body += ["for j in range(n):", f"    part[j] = {zero}"]
        for loop in passes(some, _UNROLLED):
            texts = [term.format(f"x{i} * y{i}[at] * s") for i in range(len(loop[1]))]
            line = f"{here}[j] {plus} {tree(texts, 'np.int32({} + {})' if short else '({} + {})')}"
            body += over_columns(loop, "s = scale[j]", line)
        if here == "part" and into == "total":
            body += ["for j in range(n):", "    total[j] += part[j]"]
    arguments = "scale, part, n" if into == "part" else "scale, part, total, n"
    return function(f"{name}(left, right, first, start, {arguments})", body)


def _specials(f: Facts) -> str:
    """Return the function ``specials``, which computes special sums again, as float sums."""
    column = "start + r"
    if f.is_grouped:
        loop = f"for k in range({f.summed}):"
        products = [f"np.float64(sums[k, r]) * (left[first + k] * right[first + k, {column}])"]
    else:
        loop = f"for k in range(first, first + {f.k}):"
        offsets = [""]
        if f.lanes == "halves":
            loop, offsets = f"for k in range(first + half, first + {f.k}, 4):", ["", " + 1"]
        one = "np.float64(left[k{0}]) * np.float64(right[k{0}, {1}])"
        products = [one.format(offset, column) for offset in offsets]
    text = [f"if {align.is_special(f)}:", *indented(align.float_sum(f, loop, products))]
    head = "specials(left, right, sums, first, start, z, emax, y, n, half)"
    return function(head, ["for r in range(n):", *indented(text)])


def _aligned(f: Facts) -> str:
    """Return the function ``lane``, which adds one sum of CDNA 3, floored at E_max, to ``total``.

    Without lanes, the sum has the exponent E_max and is not floored.
    """
    reach = 126 if number_type(f) == "float32" else 900
    own = f"np.int64(max(np.int32(tops[r]) if emax[r] <= {ANY} else 0, {align.LEAST}))"
    scale = ["for r in range(n):", f"    scale[r] = power(min(24 - {own}, {reach}))"]
    end = ["for r in range(n):"]
    if f.lanes == "parity":
        end += [
            f"    places = max({own} - np.int64({align.base(f)}), -900)",
            "    total[r] += np.floor(np.float64(part[r]) * power(places))",
        ]
    else:
        end.append("    total[r] += part[r]")
    text = ""
    for i, terms in enumerate(f.lane_terms):
        add = _add(f, f"products{i}", terms, "part")
        body = [*scale, f"products{i}(left, right, first, start, scale, part, n)", *end]
        head = f"lane{i}(left, right, first, start, tops, emax, scale, part, total, n)"
        text += add + function(head, body)
    return text


def _bounded(f: Facts) -> str:
    """Return the functions ``add`` and ``close`` of sums in FP64 with a bound of the error.

    A sum is rounded after adding and after subtracting the bound. Where the two differ, it is
    computed exactly. Terms whose last places all lie near the largest exponent are added exactly,
    so that ties are no reason to add again. The float sum has the infinities, NaNs and zeros of
    IEEE 754.
    """
    k = f.k
    if align.is_pair(f):
        value = "x0 * y0[at]" if k == 1 else "odd_sum(x0 * y0[at], x1 * y1[at])"
        body = over_columns(passes([*range(k)], _UNROLLED)[0], f"total[j] = {value}")
        return function("add(left, right, first, start, z, total, n)", body) + function(
            "close(left, right, first, start, z, total, scale, part, numbers, emax, y, n)",
            ["for r in range(n):", "    v = total[r]", "    y[r] = settled(v, rounded(v))"],
        )
    error, unit = align.bound(f)
    loops = passes([*range(k)], _UNROLLED)
    # Exponents of zeros, which are far below 0, are large as unsigned numbers.
    exponents = ["for j in range(n):", f"    top[j], low[j] = {_NOTHING}, {(1 << 16) - 1}"]
    sums = ["for j in range(n):", "    total[j] = np.float64(z[j])"]
    for loop in loops:
        each = range(len(loop[1]))
        lines = [f"e{i} = np.int16(x{i} + y{i}[at])" for i in each]
        largest = tree([f"e{i}" for i in each], "max({}, {})")
        least = tree([f"np.uint16(e{i} + {_BIAS})" for i in each], "min({}, {})")
        lines += [f"top[j] = max(top[j], {largest})", f"low[j] = min(low[j], {least})"]
        exponents += over_columns(loop, *lines)
        products = tree([f"x{i} * y{i}[at]" for i in each], "({} + {})")
        sums += over_columns(loop, f"total[j] += {products}")
    fraction = sum((f.convert or code).fraction_bits for code in (f.a, f.b))
    fraction += 2 * f.scale.fraction_bits if f.scale else 0
    begin = [
        *align.addend_exponent(f),
        "emax[r] = max(np.int32(top_p[r]), top)",
        f"base = np.int64({align.base(f)})",
        f"least = np.int32(low[r]) - {_BIAS + fraction}",
        f"least = min(least, top - {f.c.fraction_bits}) if top > {NONE} else least",
        f"scale[r] = power(base) * {error!r} if least < base - {unit} else 0.0",
    ]
    close = [
        "unsure = np.int32(0)",
        "for r in range(n):",
        f"    t, error = total[r]{'' if f.zero == 'ieee' else ' + 0.0'}, scale[r]",
        "    low, high = rounded(t - error), rounded(t + error)",
        "    u = np.float32(low).view(np.int32) ^ np.float32(high).view(np.int32)",
        # Without an error, the ends differ in the sign of a zero only, which is that of t.
        "    u = u if error > 0.0 else np.int32(0)",
        "    y[r] = settled(t, low)",
        "    part[r] = u",
        "    unsure |= u",
        "if unsure != 0:",
        "    for r in range(n):",
        "        if part[r] != 0:",
        f"            for k in range({k}):",
        "                numbers[k] = left[first + k] * right[first + k, start + r]",
        "            y[r] = exactly(numbers, np.int64(emax[r]), z[r])",
    ]
    return (
        function("largest(left, right, first, start, top, low, n)", exponents)
        + function("begin(top_p, low, z, emax, scale, n)", ["for r in range(n):", *indented(begin)])
        + function("add(left, right, first, start, z, total, n)", sums)
        + align.exactly(f)
        + function(
            "close(left, right, first, start, z, total, scale, part, numbers, emax, y, n)", close
        )
    )


def _grouped(f: Facts) -> str:
    """Return ``largest`` and ``add`` of exact sums of 16 products, which scales multiply."""
    real = number_type(f)
    unit = 1 / (unit_of(f.a)[1] * unit_of(f.b)[1])
    largest = [
        "for j in range(n):",
        f"    top[j] = {_NOTHING}",
        f"for g in range(first, first + {f.summed}):",
        "    e0, f0, p0, q0 = left[g], right[g], there_left[g], there_right[g]",
        "    for j in range(n):",
        f"        {AT}",
        "        e = np.int16(e0 + f0[at])",
        f"        e = e if p0 & q0[at] or e > {ANY} else np.int16({2 * ZERO})",
        "        top[j] = max(top[j], e)",
    ]
    text = function("largest(left, right, there_left, there_right, first, start, top, n)", largest)
    body: list[str] = []
    products = [f"np.{real}(x{i} * y{i}[at])" for i in range(_UNROLLED)]
    loop = (
        f"for k in range({GROUP} * g, {GROUP} * g + {GROUP}, {_UNROLLED}):",
        [f"k + {i}" for i in range(_UNROLLED)],
    )
    body = [
        f"for g in range(first, first + {f.summed}):",
        "    part = sums[g - first]",
        "    for j in range(n):",
        f"        part[j] = np.{real}(0)",
        *indented(over_columns(loop, f"part[j] += {tree(products, f'np.{real}({{}} + {{}})')}")),
        "    s0, t0 = factor_left[g], factor_right[g]",
        "    for j in range(n):",
        f"        {AT}",
        f"        value = np.float64(part[j]) * {unit!r} * (s0 * t0[at]) * scale[j]",
        "        total[j] += np.trunc(value)",
    ]
    head = "add(left, right, factor_left, factor_right, first, start, scale, sums, total, n)"
    return text + function(head, body)


def stages(f: Facts) -> list[str]:
    """Return the functions that the driver calls for each strip of a row of D."""
    if how_to_add(f) == "bounded":
        return [_bounded(f)]
    if f.is_grouped:
        return [_grouped(f), _begin(f), align.finish(f), _specials(f)]
    largest = [_largest(f, f"largest{i}", terms) for i, terms in enumerate(f.lane_terms)]
    ends = [_begin(f), align.finish(f)]
    if f.accumulate == "aligned":
        return [*largest, *ends, _aligned(f), _specials(f)]
    add = [_add(f, f"add{i}", terms, "total") for i, terms in enumerate(f.lane_terms)]
    return [*largest, *ends, *add, _specials(f)]
