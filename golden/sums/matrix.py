"""The text of a module that computes matrices: D = C + A·B in steps of K terms.

Operands are decoded once. The sums then go along rows of D, in strips whose arrays stay in the
first-level cache; a stage of a strip does for its columns what ``golden.sums.rows`` does for rows.
"""

from vitruvian.golden.sums import align, decode, result
from vitruvian.golden.sums.align import how_to_add, passes, tree
from vitruvian.golden.sums.decode import ANY, GROUP, NONE, SPECIAL, ZERO, function, indented
from vitruvian.golden.sums.rows import HEAD
from vitruvian.golden.sums.rule import CodeFacts, Facts

STRIP = 256  # columns whose working arrays stay in the first-level cache
TILE = 64  # rows of D between two steps
_UNROLLED = 4  # terms of one pass over a strip
#: The place of column ``j`` in a row. Numba does not look for negative numbers among unsigned ones,
#: which would be a branch in the loop.
AT = "at = np.uint64(start + j)"
_NOTHING = -20000  # the largest exponent of no terms
_INT16 = 1 << 15
_BIAS = 2048  # makes the exponents of products positive


def source(f: Facts, title: str) -> str:
    """Return the text of the module of a rule that ``rows.computes`` accepts.

    The module has three functions. ``left`` and ``right`` return arrays of the decoded operands,
    with M rows of those of A, and ``rows`` computes D from any of these rows.
    """
    stages = [
        HEAD.format(title=title.replace('"', "'").replace("\\", "/")),
        result.HELPERS,
        result.addends(f),
        result.codes(f),
        result.rounding(f),
        result.settled(f),
        result.join(f),
        *_operands(f),
        *_stages(f),
        _driver(f),
    ]
    return "\n".join(stage for stage in stages if stage)


def codes(bits: int) -> str:
    """Return the type of a matrix of codes that is only read."""
    return f'types.Array(types.uint{max(bits, 8)}, 2, "C", readonly=True)'


def _is_bounded(f: Facts) -> bool:
    return how_to_add(f) == "bounded"


def _is_grouped(f: Facts) -> bool:
    return f.lanes == "sixteens"


def _real(f: Facts) -> str:
    """Return the type of the decoded operands."""
    if _is_grouped(f):
        sizes = [_unit(code)[0] for code in (f.a, f.b)]
        return "int16" if GROUP * sizes[0] * sizes[1] < _INT16 else "int32"
    wide = how_to_add(f) in ("bounded", "odd", "long")
    return "float32" if f.narrow and not wide and not f.slices else "float64"


def _unit(code: CodeFacts) -> tuple[int, float]:
    """Return the largest number of a format in units of its least one, and 1 / unit."""
    largest = ((2 << code.fraction_bits) - 1) << ((1 << code.exponent_bits) - 2)
    return largest, 2.0 ** (code.fraction_bits - code.emin)


# Operands


def _masks(f: Facts, side: int) -> list[int]:
    """Return the distinct masks of the slices of an operand."""
    return sorted({pair[side] for pair in f.slices or ()})


def _planes(f: Facts, side: int) -> int:
    """Return the number of arrays of an operand: its slices and, for special sums, the whole."""
    return len(_masks(f, side)) + 1


def _operands(f: Facts) -> list[str]:
    """Return the functions ``left`` and ``right``, which decode the operands."""
    if f.a == f.b and f.slices is None and f.scale is None:
        return [_side(f, 0), "right = left\n"]
    return [_side(f, 0), _side(f, 1)]


def _side(f: Facts, side: int) -> str:
    """Return the function that decodes one operand, with an inner function for each row."""
    code, name = (f.a, f.b)[side], ("left", "right")[side]
    real, masks, planes = _real(f), _masks(f, side), _planes(f, side)
    body = ["x = np.int32(codes[i])", *decode.operand(code, f, "x", "u", "e")]
    if _is_grouped(f):
        unit = _unit(code)[1]
        value = f"np.{real}(np.int32(u).view(np.float32) * np.float32({unit!r}))"
        body = ["x = np.int32(codes[i])", *decode.fp32_bits(code, "x", "u"), f"v0[i] = {value}"]
    else:
        fraction = (f.convert or code).fraction_bits
        for plane, mask in enumerate(masks):
            body.append(f"v{plane}[i] = {decode.part('u', mask, fraction, real)}")
        body += [
            f"v{planes - 1}[i] = np.{real}(np.int32(u).view(np.float32))",
            "exponents[i] = np.int16(e)",
        ]
    views = [f"v{plane}" for plane in range(planes)]
    head = f"{name}_row({', '.join(['codes', 'exponents', *views])})"
    text = function(head, ["for i in range(codes.size):", *indented(body)])
    if side == 0:
        rows = [f"values[r, {p} * n : {p + 1} * n]" for p in range(planes)]
        shape = f"(m, {planes} * n)"
    else:
        rows = [f"values[{p} * m + r]" for p in range(planes)]
        shape = f"({planes} * m, n)"
    call = f"{name}_row(codes[r], exponents[r], {', '.join(rows)})"
    results = [f"types.{real}[:, ::1]", "types.int16[:, ::1]"]
    kinds, arguments, returned = [codes(code.storage_bits)], "codes", "values, exponents"
    body = [
        "m, n = codes.shape",
        f"values, exponents = np.empty({shape}, np.{real}), np.empty((m, n), np.int16)",
        "for r in range(m):",
        f"    {call}",
    ]
    if f.scale is not None:
        kinds, arguments = [*kinds, codes(8)], "codes, scales"
        scaling, more = _scaling(f, side)
        text += scaling
        body += more
        if _is_grouped(f):
            results += ["types.float64[:, ::1]", "types.uint16[:, ::1]"]
            returned = "values, shift, factor, there"
    kind = f"types.Tuple(({', '.join(results)}))({', '.join(kinds)})"
    lines = [
        f"@numba.njit({kind}, cache=True, nogil=True, error_model='numpy')",
        f"def {name}({arguments}):",
        *indented([*body, f"return {returned}"]),
        "",
    ]
    return text + "\n".join(lines)


def _scaling(f: Facts, side: int) -> tuple[str, list[str]]:
    """Return a function, and statements of ``left`` or ``right``, that apply the scales."""
    assert f.scale is not None and f.block is not None
    name = ("left", "right")[side]
    one = ["x = np.int32(codes[i])", *decode.scale(f.scale, "x", "v", "e")]
    one += ["factor[i] = v", "shift[i] = np.int16(e)"]
    head = f"{name}_scales(codes, factor, shift)"
    text = function(head, ["for i in range(codes.size):", *indented(one)])
    body = [
        "h, w = scales.shape",
        "factor, shift = np.empty((h, w), np.float64), np.empty((h, w), np.int16)",
        "for r in range(h):",
        f"    {name}_scales(scales[r], factor[r], shift[r])",
    ]
    if _is_grouped(f):
        groups = f.block // GROUP
        if side == 0:
            shape, at, places = f"(m, {groups} * w)", f"r, g // {groups}", f"r, {GROUP} * g + k"
        else:
            shape, at, places = f"({groups} * h, n)", f"g // {groups}, r", f"{GROUP} * g + k, r"
        whole = ("r, g", "g, r")[side]
        body += [
            f"factors, shifts = np.empty({shape}, np.float64), np.empty({shape}, np.int16)",
            f"there = np.zeros({shape}, np.uint16)",
            f"for r in range({('m', 'n')[side]}):",
            f"    for g in range({('factors.shape[1]', 'factors.shape[0]')[side]}):",
            f"        factors[{whole}], shifts[{whole}] = factor[{at}], shift[{at}]",
            "        marks = np.uint16(0)",
            f"        for k in range({GROUP}):",
            f"            marks |= np.uint16(np.uint16(values[{places}] != 0) << k)",
            f"        there[{whole}] = marks",
            "factor, shift = factors, shifts",
        ]
        return text, body
    at = (f"r, k // {f.block}", f"r // {f.block}, k")[side]
    body += [
        "for r in range(m):",
        "    for k in range(n):",
        f"        values[r, k] *= factor[{at}]",
        f"        e, s = exponents[r, k], shift[{at}]",
        f"        e = np.int16({ZERO}) if min(e, s) == {ZERO} else np.int16(e + s)",
        f"        special = max(exponents[r, k], s) == {SPECIAL}",
        f"        exponents[r, k] = np.int16({SPECIAL}) if special else e",
    ]
    return text, body


# Stages of a strip


def _is_one_pass(terms: list[int]) -> bool:
    return len(terms) <= _UNROLLED


def _loop(loop: tuple[str, list[str]], *lines: str) -> list[str]:
    """Return a loop over terms, each pass of which computes ``lines`` for all columns.

    The numbers of A are x0, x1 …, those of B y0[at], y1[at] …
    """
    head, terms = loop
    body = [f"x{i}, y{i} = left[{term}], right[{term}]" for i, term in enumerate(terms)]
    body += ["for j in range(n):", *indented([AT, *lines])]
    return [head, *indented(body)]


def _lanes(f: Facts) -> list[list[int]]:
    """Return the terms of each sum."""
    if f.lanes == "halves":
        return [[i for i in range(f.k) if i % 4 in (half, half + 1)] for half in (0, 2)]
    if f.lanes == "parity":
        return [list(range(lane, f.k, 2)) for lane in (0, 1)]
    return [list(range(f.k))]


def _largest(f: Facts, name: str, terms: list[int]) -> str:
    """Return a function that finds the largest exponent of the products of some terms."""
    body: list[str] = []
    if _is_one_pass(terms):
        assign = "top[j] = {}"
    else:
        body = ["for j in range(n):", f"    top[j] = {'0' if f.leading else _NOTHING}"]
        assign = "top[j] = max(top[j], {})"
    bits, mask = ("int64", (1 << 63) - 1) if _real(f) == "float64" else ("int32", (1 << 31) - 1)
    for loop in passes(terms, _UNROLLED):
        one = "np.int16(x{0} + y{0}[at])"
        if f.leading:  # the magnitudes of floating-point numbers have the order of their bits
            one = f"np.{bits}(np.{_real(f)}(x{{0}} * y{{0}}[at]).view(np.{bits}) & {mask})"
        largest = tree([one.format(i) for i in range(len(loop[1]))], "max({}, {})")
        body += _loop(loop, assign.format(largest))
    return function(f"{name}(left, right, first, start, top, n)", body)


def _begin(f: Facts) -> str:
    """Return the function ``begin``: E_max, scales, the first term, and if a sum is special."""
    top = "np.int32(tops[r])"
    lines: list[str] = []
    if f.leading:
        bias, ones = (52, 2047) if _real(f) == "float64" else (23, 255)
        lines = [
            f"field = np.int32(tops[r] >> {bias})",
            f"lead = np.int32(field - {ones >> 1}) if field != 0 else np.int32({2 * ZERO})",
            f"lead = np.int32({2 * SPECIAL}) if field == {ones} else lead",
        ]
        top = "lead"
    lines += [*align.addend_exponent(f), f"emax[r] = max({top}, top)"]
    if f.accumulate != "aligned":
        lines += [*align.begin(f, _real(f)), f"total[r] = {align.first(f)}"]
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
            body += _loop(loop, "s = scale[j]", line)
        if here == "part" and into == "total":
            body += ["for j in range(n):", "    total[j] += part[j]"]
    arguments = "scale, part, n" if into == "part" else "scale, part, total, n"
    return function(f"{name}(left, right, first, start, {arguments})", body)


def _specials(f: Facts) -> str:
    """Return the function ``specials``, which computes special sums again, as float sums."""
    columns = "start + r"
    if _is_grouped(f):
        loop = f"for k in range({f.summed}):"
        products = [f"np.float64(sums[k, r]) * (left[first + k] * right[first + k, {columns}])"]
    else:
        loop = f"for k in range(first, first + {f.k}):"
        offsets = [""]
        if f.lanes == "halves":
            loop, offsets = f"for k in range(first + half, first + {f.k}, 4):", ["", " + 1"]
        one = "np.float64(left[k{0}]) * np.float64(right[k{0}, {1}])"
        products = [one.format(offset, columns) for offset in offsets]
    text = [f"if {align.is_special(f)}:", *indented(align.float_sum(f, loop, products))]
    head = "specials(left, right, sums, first, start, z, emax, y, n, half)"
    return function(head, ["for r in range(n):", *indented(text)])


def _aligned(f: Facts) -> str:
    """Return the function ``lane``, which adds one sum of CDNA 3, floored at E_max, to ``total``.

    Without lanes, the sum has the exponent E_max and is not floored.
    """
    reach = 126 if _real(f) == "float32" else 900
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
    for i, terms in enumerate(_lanes(f)):
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
        body = _loop(passes([*range(k)], _UNROLLED)[0], f"total[j] = {value}")
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
        exponents += _loop(loop, *lines)
        products = tree([f"x{i} * y{i}[at]" for i in each], "({} + {})")
        sums += _loop(loop, f"total[j] += {products}")
    fraction = sum((f.convert or code).fraction_bits for code in (f.a, f.b))
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
    real = _real(f)
    unit = 1 / (_unit(f.a)[1] * _unit(f.b)[1])
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
        *indented(_loop(loop, f"part[j] += {tree(products, f'np.{real}({{}} + {{}})')}")),
        "    s0, t0 = factor_left[g], factor_right[g]",
        "    for j in range(n):",
        f"        {AT}",
        f"        value = np.float64(part[j]) * {unit!r} * (s0 * t0[at]) * scale[j]",
        "        total[j] += np.trunc(value)",
    ]
    head = "add(left, right, factor_left, factor_right, first, start, scale, sums, total, n)"
    return text + function(head, body)


def _stages(f: Facts) -> list[str]:
    """Return the functions that the driver calls for each strip of a row of D."""
    if _is_bounded(f):
        return [_bounded(f)]
    if _is_grouped(f):
        return [_grouped(f), _begin(f), align.finish(f), _specials(f)]
    largest = [_largest(f, f"largest{i}", terms) for i, terms in enumerate(_lanes(f))]
    ends = [_begin(f), align.finish(f)]
    if f.accumulate == "aligned":
        return [*largest, *ends, _aligned(f), _specials(f)]
    add = [_add(f, f"add{i}", terms, "total") for i, terms in enumerate(_lanes(f))]
    return [*largest, *ends, *add, _specials(f)]


# The driver


def _driver(f: Facts) -> str:
    """Return the function ``rows``, which computes rows of D."""
    real, grouped = _real(f), _is_grouped(f)
    operand = [f"types.{real}[:, ::1]", "types.int16[:, ::1]"]
    names = ["values", "exponents"]
    if grouped:
        operand += ["types.float64[:, ::1]", "types.uint16[:, ::1]"]
        names += ["factor", "there"]
    arguments = [f"{name}_{side}" for side in ("left", "right") for name in names]
    top = "int16" if not f.leading else {"float64": "int64", "float32": "int32"}[real]
    arrays = [
        f"y, w = np.empty({STRIP}, np.float32), np.empty({STRIP}, np.float32)",
        f"top0, top1 = np.empty({STRIP}, np.{top}), np.empty({STRIP}, np.{top})",
        f"high = np.empty({STRIP}, np.{top})",
        f"emax, part = np.empty({STRIP}, np.int32), np.empty({STRIP}, np.int32)",
        f"scale = np.empty({STRIP}, np.{'float64' if grouped else real})",
        f"total, low = np.empty({STRIP}, np.float64), np.empty({STRIP}, np.uint16)",
        f"numbers = np.empty({f.k}, np.float64)",
        f"sums = np.empty(({f.summed if grouped else 1}, {STRIP}), np.{real})",
    ]
    step = str(f.summed if grouped else f.k)
    return strips(
        f.c, [*operand, *operand], arguments, "float32", step, arrays, _step(f), _views(f)
    )


def strips(
    c: CodeFacts,
    kinds: list[str],
    arguments: list[str],
    real: str,
    step: str,
    arrays: list[str],
    body: list[str],
    views: list[str] | None = None,
) -> str:
    """Return the function ``rows``, which computes rows of D, strip by strip and step by step.

    Parameters
    ----------
    c : CodeFacts
        The encoding of C and D.
    kinds, arguments : list of str
        Types and names of the arrays of the operands, of which the last one has K rows.
    real : str
        Type of C while it is computed.
    step : str
        Number of terms of a step.
    arrays, views : list of str
        Statements that allocate working arrays, and that name parts of the operands.
    body : list of str
        Statements that add terms ``first`` to ``first + step`` to the strip ``own`` of row ``i``,
        which has ``n`` columns from ``start`` on.
    """
    bits = c.storage_bits
    kinds = [*kinds, codes(bits), f"types.uint{bits}[:, ::1]"]
    text = [
        f"z = np.empty(({TILE}, {STRIP}), np.{real})",
        *arrays,
        f"terms, (m, columns) = {arguments[-1]}.shape[0], c.shape",
        f"step = {step}",
        *(views or []),
        f"for start in range(0, columns, {STRIP}):",
        f"    n = min({STRIP}, columns - start)",
        f"    for upper in range(0, m, {TILE}):",
        f"        lower = min(upper + {TILE}, m)",
        "        for i in range(upper, lower):",
        "            addends(c[i, start : start + n], z[i - upper], n)",
        "        for first in range(0, terms, step):",
        "            for i in range(upper, lower):",
        "                own = z[i - upper]",
        *indented(indented(indented(indented(body)))),
        "        for i in range(upper, lower):",
        "            codes(z[i - upper], d[i, start : start + n], n)",
    ]
    lines = [
        f"@numba.njit(types.void({', '.join(kinds)}), cache=True, nogil=True, error_model='numpy')",
        f"def rows({', '.join([*arguments, 'c', 'd'])}):",
        *indented(text),
        "",
    ]
    return "\n".join(lines)


def _views(f: Facts) -> list[str]:
    """Return statements that name the arrays of B."""
    if _is_grouped(f):
        return []
    parts = range(_planes(f, 1))
    return [f"right{p} = values_right[{p} * terms : {p + 1} * terms]" for p in parts]


def _step(f: Facts) -> list[str]:
    """Return the statements of one step for one row ``i`` of a strip."""
    late = f.accumulate == "late"
    given = "w" if late else "own"
    lines: list[str] = []
    if f.flush and not late:
        lines += [
            "for r in range(n):",
            "    u = np.float32(own[r]).view(np.int32)",
            *indented(decode.flushed("u", f.c.emin)),
            "    own[r] = np.int32(u).view(np.float32)",
        ]
    if late:  # the sum begins with the zero that does not change its sign
        nothing = "-0.0" if f.zero == "ieee" else "0.0"
        lines += ["for r in range(n):", f"    w[r] = np.float32({nothing})"]
    if not _is_grouped(f):
        parts = range(_planes(f, 0))
        lines += [f"left{p} = values_left[i, {p} * terms : {p + 1} * terms]" for p in parts]
    whole = f"left{_planes(f, 0) - 1}, right{_planes(f, 1) - 1}"
    end = [
        f"finish(emax, {given}, total, scale, y, n)",
        "if special:",
        f"    specials({whole}, sums, first, start, {given}, emax, y, n, 0)",
        "for r in range(n):",
        f"    {given}[r] = y[r]",
    ]
    if _is_bounded(f):
        exponents = "exponents_left[i], exponents_right, first, start, top0, low, n"
        if not align.is_pair(f):
            lines += [f"largest({exponents})", f"begin(top0, low, {given}, emax, scale, n)"]
        lines += [
            f"add({whole}, first, start, {given}, total, n)",
            f"close({whole}, first, start, {given}, total, scale, part, numbers, emax, y, n)",
            "for r in range(n):",
            f"    {given}[r] = y[r]",
        ]
    elif _is_grouped(f):
        exponents = "exponents_left[i], exponents_right, there_left[i], there_right"
        factors = "factor_left[i], factor_right, first, start"
        end[2] = f"    specials({factors.replace(', first, start', '')}, sums, first, start, "
        end[2] += f"{given}, emax, y, n, 0)"
        lines += [
            f"largest({exponents}, first, start, top0, n)",
            f"special = begin(top0, {given}, emax, scale, total, n)",
            f"add(values_left[i], values_right, {factors}, scale, sums, total, n)",
            *end,
        ]
    elif f.accumulate == "aligned":
        lanes = range(len(_lanes(f)))
        operands = "exponents_left[i], exponents_right, first, start"
        lines += [f"largest{lane}({operands}, top{lane}, n)" for lane in lanes]
        if len(lanes) == 2:
            lines += ["for r in range(n):", "    high[r] = max(top0[r], top1[r])"]
        high = "high" if len(lanes) == 2 else "top0"
        lines += [
            f"special = begin({high}, {given}, emax, scale, total, n)",
            "for r in range(n):",
            "    total[r] = 0.0",
        ]
        for lane in lanes:
            lines.append(
                f"lane{lane}({whole}, first, start, top{lane}, emax, scale, part, total, n)"
            )
        lines += end
    else:
        masks = [_masks(f, side) for side in (0, 1)]
        pairs = [(masks[0].index(a), masks[1].index(b)) for a, b in f.slices or ()] or [(0, 0)]
        operands = whole if f.leading else "exponents_left[i], exponents_right"
        for lane in range(len(_lanes(f))):
            end[2] = end[2].replace("n, 0)", f"n, {2 * lane})")
            lines += [
                f"largest{lane}({operands}, first, start, top0, n)",
                f"special = begin(top0, {given}, emax, scale, total, n)",
            ]
            for p, q in pairs:
                lines.append(f"add{lane}(left{p}, right{q}, first, start, scale, part, total, n)")
            lines += end  # the first sum is the C of the second
    if late:
        lines += [f"join({given}, own, n)", "for r in range(n):", f"    own[r] = {given}[r]"]
    return lines
