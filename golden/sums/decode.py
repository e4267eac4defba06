"""The text of the first stages: operands become numbers and exponents, and then products.

Every operand becomes the bits of an FP32 number, which has all numbers of the formats that are
generated. Its exponent is at least that of the format's subnormal numbers, so that it is not
normalised.
"""

from vitruvian.golden.sums.rule import CodeFacts, Facts, ScaleCode

#: Marks in place of the exponent of a zero, and of an infinity or NaN. A mark still shows after
#: another exponent or mark is added, and every such sum fits into 16 bits.
ZERO, SPECIAL = -6000, 16000
#: The sum of two exponents is below ``NONE`` for a zero product and above ``ANY`` for a special.
NONE, ANY = -4096, 4096
GROUP = 16  # products in an exact sum of the lanes "sixteens"

_FIELD = 0x7F800000  # the exponent field of FP32


def is_direct(code: CodeFacts) -> bool:
    """Return True if moving the bits of a code gives the FP32 number, infinities and NaNs too."""
    return code.exponent_bits == 8 or code.specials == "none"


def fp32_bits(code: CodeFacts, x: str, u: str, specials: bool = True) -> list[str]:
    """Return statements that set ``u`` to the bits of the FP32 number of the int32 code ``x``.

    Without ``specials``, infinities and NaNs become other numbers.
    """
    fraction, width = code.fraction_bits, code.width
    if code.exponent_bits == 8:
        kept = f"{x} >> {code.shift}" if code.shift else x
        moved = f"np.int32(np.int32({kept}) << {32 - width})" if width < 32 else x
        return [f"{u} = {moved}"]
    moved = f"{x} >> {code.shift}" if code.shift else x
    ones = (1 << (width - 1)) - 1
    special = {
        "ieee": (f"m >= {((1 << code.exponent_bits) - 1) << fraction}", f"w | {_FIELD:#x}"),
        "ocp_e4m3": (f"m == {ones}", f"{_FIELD | 1 << 22:#x}"),
        "fnuz": (f"np.int32({moved}) == {ones + 1}", f"{_FIELD | 1 << 22:#x}"),
    }.get(code.specials)
    # The product normalises a subnormal number.
    factor = f"np.float32({2.0 ** (127 - code.bias)!r})"
    lines = [
        f"m = np.int32({moved} & {ones})",
        f"w = np.int32(m << {23 - fraction})",
        f"{u} = np.float32(np.int32(w).view(np.float32) * {factor}).view(np.int32)",
    ]
    if special is not None and specials:
        condition, bits = special
        lines.append(f"{u} = np.int32({bits}) if {condition} else {u}")
    lines.append(f"{u} = np.int32({u} | np.int32(np.int32({moved}) >> {width - 1} << 31))")
    return lines


def _signed(code: CodeFacts, x: str, u: str) -> list[str]:
    """Return ``fp32_bits`` without specials for a code whose sign is the top bit of its word."""
    fraction, width = code.fraction_bits, code.width
    mask = np_int32(0x80000000 | ((1 << (width - 1)) - 1) << (23 - fraction))
    factor = f"np.float32({2.0 ** (127 - code.bias)!r})"
    return [
        # The copies of the sign above the exponent are cleared.
        f"w = np.int32(np.int32(np.int32(np.int{width}({x})) << {23 - fraction}) & {mask})",
        f"{u} = np.float32(np.int32(w).view(np.float32) * {factor}).view(np.int32)",
    ]


def np_int32(bits: int) -> str:
    """Return the text of an int32 with these 32 bits."""
    return f"np.int32({bits - (1 << 32) if bits >> 31 else bits})"


def own_exponent(code: CodeFacts, x: str, e: str) -> list[str]:
    """Return statements that set ``e`` to the exponent, or mark, of a code of at most 16 bits."""
    ones = (1 << (code.width - 1)) - 1
    top = ((1 << code.exponent_bits) - 1) << code.fraction_bits
    lines = [
        f"m = np.int16({x} & {ones})",
        f"{e} = np.int16(max(np.int16(m >> {code.fraction_bits}), np.int16(1)) - {code.bias})",
        f"{e} = np.int16({ZERO}) if m == 0 else {e}",
    ]
    special = {"ieee": f"m >= {top}", "ocp_e4m3": f"m == {ones}"}.get(code.specials)
    special = f"{x} == {ones + 1}" if code.specials == "fnuz" else special
    return lines + ([f"{e} = np.int16({SPECIAL}) if {special} else {e}"] if special else [])


def _rounded(code: CodeFacts, target: CodeFacts, u: str) -> list[str]:
    """Return statements that round FP32 bits to a format with the exponents of FP32 (RNE)."""
    drop = 23 - target.fraction_bits
    if code.fraction_bits <= target.fraction_bits:
        return []
    half = (1 << (drop - 1)) - 1
    return [
        f"w = np.int32(np.int32({u} + {half} + ({u} >> {drop} & 1)) >> {drop} << {drop})",
        f"{u} = w if np.int32({u} & 0x7FFFFFFF) <= {_FIELD:#x} else {u}",
    ]


def operand(code: CodeFacts, f: Facts, x: str, u: str, e: str) -> list[str]:
    """Return statements that set ``u`` and ``e`` to the FP32 bits and the exponent of a code."""
    lines = fp32_bits(code, x, u)
    target = f.convert or code
    lines += _rounded(code, target, u)
    if f.flush:
        lines += flushed(u, f.c.emin)
    return [*lines, *exponent(u, e, target.emin)]


def flushed(u: str, emin: int) -> list[str]:
    """Return statements that make numbers below 2^emin zeros of their sign."""
    least = max(emin + 127, 1) << 23
    small = f"np.int32({u} & 0x7FFFFFFF) < {least:#x}"
    return [f"{u} = np.int32({u} & np.int32(-0x80000000)) if {small} else {u}"]


def exponent(u: str, e: str, emin: int, special: int = SPECIAL) -> list[str]:
    """Return statements that set ``e`` to the exponent of FP32 bits, or to a mark."""
    return [
        f"{e} = np.int32(max(({u} >> 23 & 255) - 127, {emin}))",
        f"{e} = np.int32({ZERO}) if np.int32({u} & 0x7FFFFFFF) == 0 else {e}",
        f"{e} = np.int32({special}) if np.int32({u} & {_FIELD:#x}) == {_FIELD:#x} else {e}",
    ]


def scale(code: ScaleCode, x: str, value: str, e: str) -> list[str]:
    """Return statements that set the value (FP64) and the exponent, or a mark, of a scale."""
    fraction = code.fraction_bits
    ones = (1 << (code.exponent_bits + fraction)) - 1
    lines = [f"m = np.int32({x} & {ones})"]
    if code.subnormals:
        lines += [
            f"field = np.int32(max(m >> {fraction}, 1))",
            f"w = np.int32({1 << fraction} if m >> {fraction} else 0)",
            f"w = np.int32(w | m & {(1 << fraction) - 1})",
        ]
    else:
        lines += [
            f"field = np.int32(m >> {fraction})",
            f"w = np.int32(m & {(1 << fraction) - 1} | {1 << fraction})",
        ]
    return [
        *lines,
        f"{value} = np.float64(w) * power(np.int64(field) - {code.bias + fraction})",
        f"{e} = np.int32(field - {code.bias}) if w != 0 else np.int32({ZERO})",
        f"{value} = np.nan if m == {code.nan} else {value}",
        f"{e} = np.int32({SPECIAL}) if m == {code.nan} else {e}",
    ]


def part(u: str, mask: int, fraction: int, real: str) -> str:
    """Return the number of the masked significand of FP32 bits, or "" if it cannot be written."""
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length()
    kept = f"np.int32({u} & np.int32({-1 << (low + 23 - fraction)})).view(np.float32)"
    if high <= fraction:
        above = f"np.int32({u} & np.int32({-1 << (high + 23 - fraction)})).view(np.float32)"
        kept = f"({kept} - {above})"
    return f"np.{real}({kept})"


def is_contiguous(mask: int) -> bool:
    """Return True if the ones of a mask are neighbours."""
    low = mask & -mask
    return mask > 0 and (mask + low) & mask == 0


def is_simple(f: Facts) -> bool:
    """Return True if the exponents of products are sums of those that the codes have."""
    short = all(code.storage_bits <= 16 and not code.shift for code in (f.a, f.b))
    return short and not (f.convert or f.flush or f.leading or f.slices or f.scale)


def products(f: Facts, real: str) -> str:
    """Return the function ``products``, which sets products and exponents of a block of rows.

    If it leaves out infinities and NaNs, the function ``special_products`` sets products again.
    """
    if f.is_grouped:
        return _grouped(f)
    if not is_simple(f):
        return _general(f, real)
    value = f"np.{real}(np.int32({{}}).view(np.float32))"
    body = ["for i in range(n):"]
    for name, own, x, u in (("a", f.a, "x", "u"), ("b", f.b, "y", "v")):
        body.append(f"    {x} = np.int32({name}[i])")
        whole = own.width == own.storage_bits and own.exponent_bits < 8
        lines = _signed(own, x, u) if whole else fp32_bits(own, x, u, False)
        body += indented(lines)
    body += [f"    p[i] = {value.format('u')} * {value.format('v')}", "for i in range(n):"]
    for name, own, x, e in (("a", f.a, "x", "ea"), ("b", f.b, "y", "eb")):
        body += indented([f"{x} = np.int32({name}[i])", *own_exponent(own, x, e)])
    body.append("    e[i] = np.int16(ea + eb)")
    text = function("products(a, b, p, e, n)", body)
    if is_direct(f.a) and is_direct(f.b):
        return text
    again = [
        "x = np.int32(a[i])",
        *fp32_bits(f.a, "x", "u"),
        "y = np.int32(b[i])",
        *fp32_bits(f.b, "y", "v"),
        f"p[i] = {value.format('u')} * {value.format('v')}",
    ]
    return text + function("special_products(a, b, p, n)", ["for i in range(n):", *indented(again)])


def _general(f: Facts, real: str) -> str:
    """Return ``products`` with conversions, flushing, scales, slices or normalised exponents."""
    body = ["x = np.int32(a[i])", *operand(f.a, f, "x", "u", "ea")]
    body += ["y = np.int32(b[i])", *operand(f.b, f, "y", "v", "eb")]
    body += [f"va = np.{real}(np.int32(u).view(np.float32))"]
    body += [f"vb = np.{real}(np.int32(v).view(np.float32))"]
    body += ["total = np.int32(ea + eb)", "value = va * vb"]
    arguments = "a, b, p, e, n"
    if f.scale is not None:
        arguments = "a, b, p, e, n, factor, shift"
        body += [
            "value *= own",
            f"total = max(total, s) if max(total, s) > {ANY} else np.int32(total + s)",
        ]
    if f.leading:
        bits, bias = ("int64", 52) if real == "float64" else ("int32", 23)
        ones = 2047 if real == "float64" else 255
        lead = f"np.int32((np.{real}(value).view(np.{bits}) >> {bias} & {ones}) - {ones >> 1})"
        body.append(f"total = {lead} if {NONE} < total < {ANY} else total")
    if f.slices is None:
        body.append("p[i] = value")
    else:
        fraction = (f.convert or f.a).fraction_bits
        other = (f.convert or f.b).fraction_bits
        size = f.rows * f.k
        body.append(f"plain = {NONE} < total < {ANY}")
        for j, (mask_a, mask_b) in enumerate(f.slices):
            one = f"{part('u', mask_a, fraction, real)} * {part('v', mask_b, other, real)}"
            rest = "value" if j == 0 else f"np.{real}(-0.0)"
            body.append(f"p[{j * size} + i] = {one} if plain else {rest}")
    body.append("e[i] = np.int16(total)")
    loop = ["for i in range(n):", *indented(body)]
    if f.scale is not None:
        loop = [
            f"for j in range(n // {f.block}):",
            "    own, s = factor[j], shift[j]",
            f"    for i in range({f.block} * j, {f.block} * j + {f.block}):",
            *indented(indented(body)),
        ]
    return function(f"products({arguments})", loop)


def _grouped(f: Facts) -> str:
    """Return ``products`` for exact sums of 16 products, which are multiplied by their scales."""
    assert f.block is not None
    inner: list[str] = []
    for name, code, x in (("a", f.a, "x"), ("b", f.b, "y")):
        unit = 2.0 ** (code.fraction_bits - code.emin)
        inner += [f"{x} = np.int32({name}[i])", *fp32_bits(code, x, "u")]
        inner.append(f"{x} = np.int32(np.int32(u).view(np.float32) * np.float32({unit!r}))")
    inner += ["part = np.int32(x * y)", "value += part", "there |= part"]
    unit = 2.0 ** sum(code.emin - code.fraction_bits for code in (f.a, f.b))
    body = [
        "value = there = np.int32(0)",
        f"for i in range({GROUP} * g, {GROUP} * g + {GROUP}):",
        *indented(inner),
        f"s = g * {GROUP} // {f.block}",
        f"p[g] = np.float64(value) * {unit!r} * factor[s]",
        f"e[g] = np.int16(shift[s] if there != 0 or shift[s] > {ANY} else {2 * ZERO})",
    ]
    return function(
        "products(a, b, p, e, n, factor, shift)",
        [f"for g in range(n // {GROUP}):", *indented(body)],
    )


def scales(f: Facts) -> str:
    """Return the function ``scales``, which multiplies the scales of A and B, or nothing."""
    if f.scale is None:
        return ""
    body = [
        "x = np.int32(a[i])",
        *scale(f.scale, "x", "va", "ea"),
        "y = np.int32(b[i])",
        *scale(f.scale, "y", "vb", "eb"),
        "factor[i] = va * vb",
        f"e = np.int32({SPECIAL}) if ea + eb > {ANY} else np.int32(ea + eb)",
        f"shift[i] = np.int32({ZERO}) if ea + eb < {NONE} else e",
    ]
    return function("scales(a, b, factor, shift, n)", ["for i in range(n):", *indented(body)])


def indented(lines: list[str]) -> list[str]:
    """Return lines with one more level of indentation."""
    return [f"    {line}" for line in lines]


def function(head: str, body: list[str]) -> str:
    """Return the text of an inner function."""
    return "\n".join(["@one", f"def {head}:", *indented(body), ""])
