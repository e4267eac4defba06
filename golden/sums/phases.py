"""The text of Tenstorrent's MVMUL, which ``golden.machines.phases`` defines.

A number of the destination register (Dst) is an int32 with a sign, an exponent field of 8 bits and
23 fraction bits, whatever its format.
"""

from vitruvian.golden.sums import strips
from vitruvian.golden.sums.decode import function, indented
from vitruvian.golden.sums.rows import HEAD, array
from vitruvian.golden.sums.rule import CodeFacts, PhaseFacts

_TERMS, _GROUP = 16, 8  # terms of a step, and of a group that is aligned by itself
_ROWS = 64  # of a block
_NONE = -(1 << 12)  # the exponent field of a zero operand
_SCALE = 13  # low bits that give a group's significand the unit of Dst
_FAR = 30  # a right shift after which nothing is left but rounding


def computes(f: PhaseFacts) -> bool:
    """Return True if ``source`` has a form for this rule."""
    half = (5, 10) if f.narrow else (8, 7)
    return f.c.is_fp32 or (f.c.exponent_bits, f.c.fraction_bits, f.c.shift) == (*half, 0)


def source(f: PhaseFacts, title: str) -> str:
    """Return the text of the module of a rule that ``computes`` accepts."""
    stages = [
        HEAD.format(title=title),
        _operands(f),
        _largest(),
        _add(),
        _accumulate(f),
        _driver(f),
    ]
    return "\n".join(stages)


def _operands(f: PhaseFacts) -> str:
    """Return the function ``operands``: signed upper and lower slices, and exponent fields."""
    code = f.a
    fraction, width = code.fraction_bits, code.width
    moved = f"x >> {code.shift}" if code.shift else "x"
    ones = (1 << (width - 1)) - 1
    body = [
        "x = np.int32(a[i])",
        f"m = np.int32({moved} & {ones})",
        f"field = np.int32(m >> {fraction})",
        f"w = np.int32(np.int32(m & {(1 << fraction) - 1}) << {10 - fraction})",
    ]
    if code.specials == "ocp_e4m3":
        # The field is raised to the bias of fp16; NaN has a fraction of ones.
        body += ["field = np.int32(field + 8 if field != 0 else 0)"]
    if code.specials == "ocp_e4m3" or (width == 8 and fraction == 2 and f.blackhole):
        body.append(f"w = np.int32({0x3FF} if m == {ones} else w)")
    body += [
        "w = np.int32(w | 1024 if field != 0 else 0)",
        f"negative = np.int32({moved} >> {width - 1} & 1) != 0",
        "first = np.int32(w >> 6) if left else np.int32(w >> 4)",
        "second = np.int32(w >> 1 & 31) if left else np.int32((w & 15) << 3)",
        "upper[i] = np.int16(-first if negative else first)",
        "lower[i] = np.int16(-second if negative else second)",
        f"e[i] = np.int16(field if field != 0 else {_NONE})",
    ]
    return function(
        "operands(a, upper, lower, e, n, left)", ["for i in range(n):", *indented(body)]
    )


def _largest() -> str:
    """Return ``largest``: exponents of the products, and the largest one of each group."""
    body = [
        f"for i in range({_TERMS} * n):",
        "    e[i] = np.int16(ea[i] + eb[i])",
        f"for g in range({_TERMS // _GROUP} * n):",
        f"    top = np.int16({2 * _NONE})",
        f"    for k in range({_GROUP}):",
        f"        top = max(top, e[g * {_GROUP} + k])",
        "    tops[g] = top",
        f"for g in range({_TERMS // _GROUP} * n):",
        f"    for k in range({_GROUP}):",
        f"        i = g * {_GROUP} + k",
        f"        e[i] = np.int16(min(np.int16(tops[g] - e[i]), np.int16({_FAR})))",
    ]
    return function("largest(ea, eb, e, tops, n)", body)


def _add() -> str:
    """Return ``add``: the sums of groups, aligned and rounded half up in magnitude."""
    body = [
        f"for g in range({_TERMS // _GROUP} * n):",
        "    part = np.int32(0)",
        f"    for k in range({_GROUP}):",
        f"        i = g * {_GROUP} + k",
        "        product = np.int32(np.int32(p[i]) * np.int32(q[i]))",
        "        size = np.int32(np.int32(abs(product)) << 1)",
        "        size = np.int32(np.int32(np.int32(size >> np.int32(e[i])) + 1) >> 1)",
        "        part += np.int32(-size if product < 0 else size)",
        "    sums[g] = part",
    ]
    return function("add(p, q, e, sums, n)", body)


def _accumulate(f: PhaseFacts, second: str = "2 * r + 1", first: str = "2 * r") -> str:
    """Return ``accumulate``, which adds two groups to Dst, normalises and rounds half up.

    ``first`` and ``second`` are the places of the groups of ``r``.
    """
    fp16 = f.c.exponent_bits == 5
    # Too large a number becomes an infinity, or the largest code of fp16, whose fields all count.
    largest = 31 << 23 | 0x3FF << 13 if fp16 else 255 << 23
    limit = largest // (1 << 23) + fp16
    drop = 23 - f.c.fraction_bits
    text = function(
        "shifted(magnitude, places, down)",
        [
            "half = np.int32(np.int32(1) << places) >> 1",
            "return np.int32(magnitude + half - (down & (places > 0))) >> places",
        ],
    )
    short = [
        f"value = shifted(value, np.int32({_SCALE}), down & (value > 0)) << {_SCALE}",
    ]
    text += function(
        "term(magnitude, negative, places, down)",
        [
            f"value = shifted(magnitude, np.int32(min(places, {_FAR})), down)",
            *(short if drop else []),
            "return np.int32(-value if negative else value)",
        ],
    )
    body = [
        f"e0 = np.int32(max(np.int32(tops[{first}] + added), floor))",
        f"e1 = np.int32(max(np.int32(tops[{second}] + added), floor))",
        f"s0 = np.int32(sums[{first}] if e0 > 0 else 0)",
        f"s1 = np.int32(sums[{second}] if e1 > 0 else 0)",
        "c = z[r]",
        "field = np.int32(c >> 23 & 255)",
        "magnitude = np.int32(c & 0x7FFFFF | 0x800000 if field else 0)",
        "common = np.int32(max(max(e0, e1), field))",
        f"total = term(np.int32(abs(s0) << {_SCALE}), s0 < 0, common - e0, s0 < 0)",
        f"total += term(np.int32(abs(s1) << {_SCALE}), s1 < 0, common - e1, s1 < 0)",
        "total += term(magnitude, c < 0, common - field, False)",
        "total = np.int32(total)",
        # An FP64 number is normalised. Adding half of the last place that is kept rounds it, and a
        # carry raises the exponent. Exponent and fraction then stand where Dst has them.
        f"bits = np.float64(abs(total)).view(np.int64) - {1023 << 52}",
        "number = np.int64(bits + (1 << 28) >> 29)",
    ]
    if drop:
        body.append(f"number = number + {1 << (drop - 1)} >> {drop} << {drop}")
    if not f.blackhole:
        body.append(f"number = np.int64({27 << 23}) if total == -1 else number")  # the erratum
    body += [
        "number += np.int64(common - 23) << 23",
        f"number = number if number >> 23 < {limit} else np.int64({largest})",
        f"nothing = total == 0 or number < {1 << 23} or common <= 0",
        "code = np.int32(number) | np.int32(-0x80000000 if total < 0 else 0)",
        "z[r] = np.int32(0 if nothing else code)",
    ]
    loop = ["floor = np.int32(max(added, 0))", "for r in range(n):", *indented(body)]
    return text + function("accumulate(z, tops, sums, added, n)", loop)


def _moved(c: CodeFacts) -> tuple[str, str]:
    """Return the texts of Dst as an int32 of a code ``x``, and of the code of a Dst ``x``."""
    drop, width = 23 - c.fraction_bits, c.width
    sign = 1 << (width - 1)
    to_dst = f"np.int32(np.int32(x & {sign - 1}) << {drop} | np.int32(x >> {width - 1} & 1) << 31)"
    from_dst = f"(x & 0x7FFFFFFF) >> {drop} | (x >> 31 & 1) << {width - 1}"
    return to_dst, from_dst


def _added(f: PhaseFacts) -> list[int]:
    """Return what each phase adds to the sum of two exponent fields."""
    base = -127 if not f.narrow else 97 if f.c.is_fp32 else -15
    return [base - 5 * (phase & 1) - 7 * (phase >> 1) for phase in range(f.phases)]


def _driver(f: PhaseFacts) -> str:
    """Return the function ``rows``, which goes over blocks of rows and steps of 16 terms."""
    kinds = ", ".join(array(code.storage_bits) for code in (f.a, f.a, f.c))
    signature = f"types.void({kinds}, types.uint{f.c.storage_bits}[::1], types.int64)"
    to_dst, from_dst = _moved(f.c)
    size = _ROWS * _TERMS
    arrays = ("a0", "a1", "b0", "b1", "ea", "eb", "e")
    body = [f"{name} = np.empty({size}, np.int16)" for name in arrays]
    body += [
        f"left, right = np.empty({size}, a.dtype), np.empty({size}, b.dtype)",
        f"tops, sums = np.empty({2 * _ROWS}, np.int16), np.empty({2 * _ROWS}, np.int32)",
        f"z = np.empty({_ROWS}, np.int32)",
        f"for start in range(0, c.size, {_ROWS}):",
        f"    n = min({_ROWS}, c.size - start)",
        "    for r in range(n):",
        "        x = np.int32(c[start + r])",
        f"        z[r] = {to_dst}",
        "    for step in range(steps):",
        "        for r in range(n):",
        f"            at = ((start + r) * steps + step) * {_TERMS}",
        f"            for k in range({_TERMS}):",
        f"                left[r * {_TERMS} + k] = a[at + k]",
        f"                right[r * {_TERMS} + k] = b[at + k]",
        f"        operands(left, a0, a1, ea, n * {_TERMS}, True)",
        f"        operands(right, b0, b1, eb, n * {_TERMS}, False)",
        "        largest(ea, eb, e, tops, n)",
    ]
    for phase, added in enumerate(_added(f)):
        body += [
            f"        add(a{phase & 1}, b{phase >> 1}, e, sums, n)",
            f"        accumulate(z, tops, sums, np.int32({added}), n)",
        ]
    body += [
        "    for r in range(n):",
        "        x = z[r]",
        f"        d[start + r] = np.uint{f.c.storage_bits}({from_dst})",
    ]
    head = [
        f"@numba.njit({signature}, cache=True, nogil=True, error_model='numpy')",
        "def rows(a, b, c, d, steps):",
    ]
    return "\n".join([*head, *indented(body), ""])


# Matrices


def matrix_source(f: PhaseFacts, title: str) -> str:
    """Return the text of a module with the functions ``left``, ``right`` and ``rows``.

    ``golden.sums.matrix`` describes them.
    """
    stages = [
        HEAD.format(title=title),
        _operands(f),
        _decoded(f, "left"),
        _decoded(f, "right"),
        _strip_stages(),
        _accumulate(f, f"{strips.STRIP} + r", "r"),
        _coded(f),
        _matrix_driver(f),
    ]
    return "\n".join(stages)


def _decoded(f: PhaseFacts, name: str) -> str:
    """Return the function ``name``, which returns the slices of an operand and its exponents."""
    arrays = ", ".join(["types.int16[:, ::1]"] * 3)
    kind = f"types.Tuple(({arrays}))({strips.codes(f.a.storage_bits)})"
    body = ["m, n = codes.shape"]
    body += [f"{array} = np.empty((m, n), np.int16)" for array in ("upper", "lower", "fields")]
    body += [
        "for r in range(m):",
        f"    operands(codes[r], upper[r], lower[r], fields[r], n, {name == 'left'})",
        "return upper, lower, fields",
    ]
    head = f"@numba.njit({kind}, cache=True, nogil=True, error_model='numpy')"
    return "\n".join([head, f"def {name}(codes):", *indented(body), ""])


def _strip_stages() -> str:
    """Return ``largest`` and ``add`` of one group for the columns of a strip."""
    largest = [
        "for j in range(n):",
        f"    top[j] = {2 * _NONE}",
        f"for k in range(first, first + {_GROUP}):",
        "    e0, f0 = left[k], right[k]",
        "    for j in range(n):",
        f"        {strips.AT}",
        "        top[j] = max(top[j], np.int16(e0 + f0[at]))",
    ]
    add = [
        "for j in range(n):",
        "    total[j] = 0",
        f"for k in range(first, first + {_GROUP}):",
        "    e0, f0, p0, q0 = fields_left[k], fields_right[k], np.int32(left[k]), right[k]",
        "    for j in range(n):",
        f"        {strips.AT}",
        "        product = np.int32(p0 * np.int32(q0[at]))",
        "        places = np.int16(top[j] - np.int16(e0 + f0[at]))",
        f"        places = np.int32(min(places, np.int16({_FAR})))",
        "        size = np.int32(np.int32(abs(product)) << 1)",
        "        size = np.int32(np.int32(np.int32(size >> places) + 1) >> 1)",
        "        total[j] += np.int32(-size if product < 0 else size)",
    ]
    head = "add(left, fields_left, right, fields_right, first, start, top, total, n)"
    return function("largest(left, right, first, start, top, n)", largest) + function(head, add)


def _coded(f: PhaseFacts) -> str:
    """Return ``addends`` and ``codes``, which decode C and encode D."""
    to_dst, from_dst = _moved(f.c)
    before = ["x = np.int32(c[r])", f"z[r] = {to_dst}"]
    after = ["x = z[r]", f"d[r] = np.uint{f.c.storage_bits}({from_dst})"]
    return function("addends(c, z, n)", ["for r in range(n):", *indented(before)]) + function(
        "codes(z, d, n)", ["for r in range(n):", *indented(after)]
    )


def _matrix_driver(f: PhaseFacts) -> str:
    """Return the function ``rows``, which computes rows of D."""
    strip = strips.STRIP
    names = [f"{name}_{side}" for side in "ab" for name in ("upper", "lower", "fields")]
    arrays = [f"tops, sums = np.empty({2 * strip}, np.int16), np.empty({2 * strip}, np.int32)"]
    groups = [(g * _GROUP, f"[{g * strip} : {g * strip} + n]") for g in (0, 1)]
    body = [
        f"largest(fields_a[i], fields_b, first + {begin}, start, tops{part}, n)"
        for begin, part in groups
    ]
    for phase, added in enumerate(_added(f)):
        left, right = (("upper", "lower")[bit] for bit in (phase & 1, phase >> 1))
        operands = f"{left}_a[i], fields_a[i], {right}_b, fields_b"
        for begin, part in groups:
            body.append(f"add({operands}, first + {begin}, start, tops{part}, sums{part}, n)")
        body.append(f"accumulate(own, tops, sums, np.int32({added}), n)")
    kinds = ["types.int16[:, ::1]"] * len(names)
    return strips.driver(f.c, kinds, names, "int32", str(_TERMS), arrays, body)
