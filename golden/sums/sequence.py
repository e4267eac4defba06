"""The text of rules that round after every operation: chains of FMAs, and rounded products.

The processor's fused multiply-add of FP32 numbers is the rule of the machines itself. The terms of
a row depend on one another, but the rows do not, so that the processor overlaps them.
"""

from vitruvian.golden.sums import result, strips
from vitruvian.golden.sums.decode import flushed, fp32_bits, function, indented
from vitruvian.golden.sums.rows import HEAD, array
from vitruvian.golden.sums.rule import ChainFacts, CodeFacts, Facts

_TERMS = 8192  # of a block of rows
_STEP = 16  # terms of a step of a matrix, for a chain that may be cut anywhere
_MOST_TERMS = 1 << 12  # of a row, for a rule that takes any number of them

_FMA = """
from numba.extending import intrinsic

@intrinsic
def multiply_add(_, x, y, z):
    def generate(*code):  # context, builder, signature, arguments
        return code[1].fma(*code[3])
    return x(x, y, z), generate
"""


def single(f: Facts) -> ChainFacts:
    """Return the chain of a rule that is one fused multiply-add."""
    return ChainFacts(f, None, 1, False, "fused", "last", False)


def is_fma(f: Facts) -> bool:
    """Return True if a rule is the fused multiply-add of FP32, however flushed, or of FP64."""
    sums = 2 * f.a.fraction_bits
    if 2 * f.a.emin < f.c.emin:
        least = max(sums, f.a.fraction_bits + f.c.fraction_bits + 2)
    else:
        least = sums + f.c.fraction_bits + 2
    plain = (
        f.convert is None
        and f.slices is None
        and f.scale is None
        and not (f.leading or f.product_overflow)
    )
    named = (f.truncate, f.floor, f.lanes, f.accumulate, f.zero)
    flushed = f.flush or f.flush_result is not None
    return (
        plain
        and f.k == 1
        and f.a == f.b
        and ((f.c.is_fp32 and f.a.fits_fp32) or (f.c.is_fp64 and f.a.is_fp64 and not flushed))
        and f.bits == f.c.fraction_bits
        and f.window is not None
        and f.window >= least
        and named == ("floor", None, "together", "tree", "ieee")
    )


def computes(f: ChainFacts, terms: int) -> bool:
    """Return True if ``source`` has a form for this rule and rows of so many terms."""
    step, k = f.step, f.k or terms
    if not is_fma(step) or terms % k or k > _MOST_TERMS or f.products == "paired":
        return False
    if f.products == "fused":
        return (
            step.rounding == "RNE"
            and not f.zero_subnormals
            and (f.accumulators == 1 or (f.accumulators in (2, 4) and k % f.accumulators == 0))
        )
    power = k & (k - 1) == 0 and k <= 16 and step.c.is_fp32
    return power and step.flush_result != "unbounded" and step.rounding in ("RNE", "RTO")


def source(f: ChainFacts, title: str, terms: int) -> str:
    """Return the text of the module of a rule that ``computes`` accepts."""
    step, k = f.step, f.k or terms
    fused = f.products == "fused"
    stages = [
        *_common(f, title),
        _chain(f, k, _rows(k)) if fused else _tree(step) + _block(k, _rows(k)),
        _driver(f, k),
    ]
    return "\n".join(stage for stage in stages if stage)


def _common(f: ChainFacts, title: str) -> list[str]:
    """Return the parts that modules of rows and of matrices share."""
    step, fused = f.step, f.products == "fused"
    return [
        HEAD.format(title=title),
        _FMA if fused else "",
        result.HELPERS,
        result.addends(step),
        result.codes(step),
        "" if fused else result.rounding(step),
        _operands(f),
        _clear(step, f.zero_subnormals),
        _settle(step),
    ]


def _cleared(code: CodeFacts, x: str, u: str) -> str:
    """Return a statement that makes subnormal and zero codes +0."""
    mask = ((1 << code.exponent_bits) - 1) << (code.fraction_bits + code.shift)
    return f"{u} = np.int32({u} if {x} & {mask:#x} else 0)"


def _operands(f: ChainFacts) -> str:
    """Return the function ``operands``, which decodes to numbers of the results' format."""
    step = f.step
    if step.a.is_fp64:
        body = ["p[i] = np.uint64(a[i]).view(np.float64)"]
        return function("operands(a, p, n)", ["for i in range(n):", *indented(body)])
    body = ["x = np.int32(a[i])", *fp32_bits(step.a, "x", "u")]
    if f.zero_subnormals:
        body.append(_cleared(step.a, "x", "u"))
    if step.flush:
        body += flushed("u", step.c.emin)
    body.append("p[i] = np.int32(u).view(np.float32)")
    return function("operands(a, p, n)", ["for i in range(n):", *indented(body)])


def _clear(step: Facts, zero: bool) -> str:
    """Return the function ``cleared`` of C or of an accumulator before the next operation."""
    if step.c.is_fp64:  # of which nothing is flushed
        return function("cleared(t)", ["return t"])
    body = ["u = np.float32(t).view(np.int32)"]
    if zero:
        body.append("u = np.int32(u if u & 0x7F800000 else 0)")
    elif step.flush:
        body += flushed("u", step.c.emin)
    return function("cleared(t)", [*body, "return np.int32(u).view(np.float32)"])


def _settle(step: Facts) -> str:
    """Return the function ``settle`` of a rounded result ``t`` whose exact value is x · y + z."""
    least = 2.0**step.c.emin
    tiny = f"np.float32({least!r})"
    body: list[str] = []
    if step.flush_result == "unbounded":
        # Rounded to full precision, a value below this bound stays below the least normal number.
        bound = least - 2.0 ** (step.c.emin - 25)
        body += [
            f"if abs(t) == {tiny}:",
            "    v = odd_sum(np.float64(x) * np.float64(y), np.float64(z))",
            f"    if abs(v) < {bound!r}:",
            "        t = np.copysign(np.float32(0), t)",
        ]
    if step.flush_result == "before" and step.rounding != "RTO":
        body.append("v = odd_sum(np.float64(x) * np.float64(y), np.float64(z))")
        body.append(f"t = np.copysign(np.float32(0), t) if abs(v) < {least!r} else t")
    elif step.flush_result is not None:
        body.append(f"t = np.copysign(np.float32(0), t) if abs(t) < {tiny} else t")
    return function("settle(t, x, y, z)", [*body, "return t"])


def _real(step: Facts) -> str:
    """Return the type of operands and results."""
    return "float64" if step.c.is_fp64 else "float32"


def _quick(step: Facts) -> str:
    """Return ``quick``, which does what ``settle`` does unless |t| is the least normal number."""
    small = f"abs(t) < np.float32({2.0**step.c.emin!r})"
    return function("quick(t)", [f"return np.copysign(np.float32(0), t) if {small} else t"])


def _chain(f: ChainFacts, k: int, rows: int) -> str:
    """Return the function ``block``, which adds the terms of each row one after the other."""
    step, many = f.step, f.accumulators
    before = "cleared(z[r])" if step.flush and step.flush_result is None else "z[r]"
    body = [
        "rare = np.int32(0)",
        "for r in range(n):",
        f"    t = multiply_add(x[r], y[r], {before})",
        f"    rare |= np.int32(abs(t) == np.float32({2.0**step.c.emin!r}))",
        "    w[r] = t",
    ]
    if step.flush_result == "unbounded":  # which needs a second look at very few numbers
        body += [
            "if rare:",
            "    for r in range(n):",
            "        w[r] = settle(w[r], x[r], y[r], z[r])",
        ]
        end = "quick(w[r])"
    else:
        body = [line for line in body if "rare" not in line]
        end = "settle(w[r], x[r], y[r], z[r])"
    body += ["for r in range(n):", f"    z[r] = {end}"]
    text = function("fma(x, y, z, w, n)", body)
    if step.flush_result == "unbounded":
        text = _quick(step) + text
    row = f"p[{{0}} * {rows} : {{0}} * {rows} + n], q[{{0}} * {rows} : {{0}} * {rows} + n]"
    direction = f"range({k - 1}, -1, -1)" if f.descending else f"range({k})"
    clear = ["for r in range(n):", "    z[r] = cleared(z[r])"]
    if many == 1:
        inner = [*clear, f"for k in {direction}:", f"    fma({row.format('k')}, z, w, n)"]
        return text + function("block(p, q, z, w, s, n)", inner)
    inner = ["s[:] = 0", f"for k in {direction}:"]
    at = f"(k % {many}) * {rows}"
    inner.append(f"    fma({row.format('k')}, s[{at} : {at} + n], w, n)")
    sums = [f"s[{i * rows} : {i * rows} + n]" for i in range(many)]
    if f.add_c == "last":
        # x + y is x · 1 + y; a sum takes the place of its second number.
        while len(sums) > 1:
            pairs = list(zip(sums[::2], sums[1::2], strict=True))
            inner += [f"fma({x}, one_s[:n], {y}, w, n)" for x, y in pairs]
            sums = [y for _, y in pairs]
        inner += [*clear, f"fma({sums[0]}, one_s[:n], z, w, n)"]
        inner.insert(0, f"one_s = np.ones({rows}, np.{_real(step)})")
    else:  # K is a multiple of the accumulators, so the first of them comes first
        terms = [f"s[{i * rows} + r]" for i in range(many)]
        total = " + ".join(f"({x} + {y})" for x, y in zip(terms[::2], terms[1::2], strict=True))
        inner += ["for r in range(n):", f"    z[r] = {total}"]
    return text + function("block(p, q, z, w, s, n)", inner)


def _tree(step: Facts) -> str:
    """Return the functions ``plus`` and ``times`` of rounded sums and products."""
    clear = step.flush and step.flush_result is None
    x, y = ("cleared(x)", "cleared(y)") if clear else ("x", "y")
    if step.rounding == "RTO":
        plus = f"t = rounded(odd_sum(np.float64({x}), np.float64({y})))"
        product = "t = rounded(np.float64(x) * np.float64(y))"
    else:
        plus, product = f"t = np.float32({x} + {y})", "t = np.float32(x * y)"
    text = function("plus(x, y)", [plus, "return settle(t, x, np.float32(1), y)"])
    text += function("times(x, y)", [product, "return settle(t, x, y, np.float32(-0.0))"])
    return text


def _block(k: int, rows: int) -> str:
    """Return the function ``block``, which adds rounded products in pairs, and then to C."""
    body = _tree_sum(k, f"p[{{i}} * {rows} + r]", f"q[{{i}} * {rows} + r]", "z[r]")
    return function("block(p, q, z, w, s, n)", ["for r in range(n):", *indented(body)])


def _tree_sum(k: int, x: str, y: str, z: str) -> list[str]:
    """Return statements that add ``k`` products to C, given the texts of factors and of C."""
    names = [f"t{i}" for i in range(k)]
    body = [f"t{i} = times({x.format(i=i)}, {y.format(i=i)})" for i in range(k)]
    while len(names) > 1:
        names = [f"plus({a}, {b})" for a, b in zip(names[::2], names[1::2], strict=True)]
    return [*body, f"{z} = plus({names[0]}, cleared({z}))"]


def _driver(f: ChainFacts, k: int) -> str:
    """Return the function ``rows``, which goes over blocks of rows and steps of K terms.

    Operands are decoded to an array with a row for each term, along which the loops go.
    """
    step, rows, real = f.step, _rows(k), _real(f.step)
    kinds = ", ".join(array(code.storage_bits) for code in (step.a, step.b, step.c))
    signature = f"types.void({kinds}, types.uint{step.c.storage_bits}[::1], types.int64)"
    head = [
        f"@numba.njit({signature}, cache=True, nogil=True, error_model='numpy')",
        "def rows(a, b, c, d, steps):",
    ]
    size = rows * k
    body = [
        f"p, q = np.empty({size}, np.{real}), np.empty({size}, np.{real})",
        f"z, w = np.empty({rows}, np.{real}), np.empty({rows}, np.{real})",
        f"s = np.empty({rows * f.accumulators}, np.{real})",
        f"left, right = np.zeros({size}, a.dtype), np.zeros({size}, b.dtype)",
        f"for start in range(0, c.size, {rows}):",
        f"    n = min({rows}, c.size - start)",
        "    addends(c[start : start + n], z, n)",
        "    for step in range(steps):",
        "        for r in range(n):",
        f"            at = ((start + r) * steps + step) * {k}",
        f"            for k in range({k}):",
        f"                left[k * {rows} + r] = a[at + k]",
        f"                right[k * {rows} + r] = b[at + k]",
        f"        operands(left, p, {size})",
        f"        operands(right, q, {size})",
        "        block(p, q, z, w, s, n)",
        "    codes(z, d[start : start + n], n)",
    ]
    return "\n".join([*head, *indented(body), ""])


def _rows(k: int) -> int:
    """Return the rows of a block."""
    return min(max(_TERMS // k, 16), 256)


# Matrices


def matrix_source(f: ChainFacts, title: str) -> str:
    """Return the text of a module with the functions ``left``, ``right`` and ``rows``.

    ``golden.sums.matrix`` describes them.
    """
    step, fused = f.step, f.products == "fused"
    stages = [
        *_common(f, title),
        _decoded(step),
    ]
    if fused and step.flush_result == "unbounded":
        stages += [_quick(step), _strip(f, "quickly", "quick(t)")]
    stages.append(_strip(f, "carefully", "settle(t, {x}, {y}, v)") if fused else _tree(step))
    stages.append(_matrix_driver(f))
    return "\n".join(stage for stage in stages if stage)


def _decoded(step: Facts) -> str:
    """Return the functions ``left`` and ``right``, which are equal here."""
    real = _real(step)
    kind = f"types.Tuple((types.{real}[:, ::1],))({strips.codes(step.a.storage_bits)})"
    body = [
        "m, n = codes.shape",
        f"values = np.empty((m, n), np.{real})",
        "for r in range(m):",
        "    operands(codes[r], values[r], n)",
        "return (values,)",
    ]
    head = f"@numba.njit({kind}, cache=True, nogil=True, error_model='numpy')"
    return "\n".join([head, "def left(codes):", *indented(body), "", "right = left", ""])


def _strip(f: ChainFacts, name: str, follow: str) -> str:
    """Return the function ``name``, which adds a step to a strip; it returns if one is in doubt.

    ``follow`` is the text of what becomes of a rounded result.
    """
    step, many = f.step, f.accumulators
    before = "cleared({})" if step.flush and step.flush_result is None else "{}"
    rare = name == "quickly"
    tiny = f"np.float32({2.0**step.c.emin!r})"

    def operation(x: str, y: str, z: str) -> list[str]:
        lines = [f"v = {before.format(z)}", f"t = multiply_add({x}, {y}, v)"]
        lines += [f"rare |= np.int32(abs(t) == {tiny})"] if rare else []
        return [*lines, f"t = {follow.format(x=x, y=y)}"]

    def terms(count: int) -> list[str]:
        reads = [
            f"x{i}, y{i} = left[k + {i} * stride], right[k + {i} * stride]" for i in range(count)
        ]
        lines = [strips.AT, "t = z[j]"]
        for i in range(count):
            lines += operation(f"x{i}", f"y{i}[at]", "t")
        return [*reads, "for j in range(n):", *indented([*lines, "z[j] = t"])]

    head = ["rare = np.int32(0)"] if rare else []
    end = ["return rare"] if rare else ["return np.int32(0)"]
    body = [
        *head,
        "while count >= 4:",
        *indented([*terms(4), "k += 4 * stride", "count -= 4"]),
        "while count > 0:",
        *indented([*terms(1), "k += stride", "count -= 1"]),
        *end,
    ]
    text = function(f"{name}_chain(left, right, k, count, stride, start, z, n)", body)
    clear = ["for r in range(n):", "    z[r] = cleared(z[r])"]
    call = f"{name}_chain(left, right, "
    if many == 1:
        way = "last - 1, last - first, -1" if f.descending else "first, last - first, 1"
        inner = [*clear, f"return {call}{way}, start, z, n)"]
        return text + function(f"{name}(left, right, first, last, start, z, s, n)", inner)
    one = f"np.{_real(step)}(1)"
    plus = [*head, "for j in range(n):", *indented(operation("x[j]", one, "z[j]"))]
    text += function(f"{name}_plus(x, z, n)", [*plus, "    z[j] = t", *end])
    inner = ["rare = np.int32(0)", "s[:] = 0"]
    if f.add_c == "last":
        inner += clear
    for lane in range(many):
        # Several accumulators that replace D begin with the first term not taken.
        here = f"{lane}" if f.add_c == "last" else f"({lane} - (last - first)) % {many}"
        count = f"(last - first - {lane} + {many - 1}) // {many}"
        inner.append(f"rare |= {call}first + {lane}, {count}, {many}, start, s[{here}], n)")
    names = [f"s[{i}]" for i in range(many)]
    if f.add_c == "last":
        while len(names) > 1:  # a sum takes the place of its second number
            pairs = list(zip(names[::2], names[1::2], strict=True))
            inner += [f"rare |= {name}_plus({x}, {y}, n)" for x, y in pairs]
            names = [y for _, y in pairs]
        inner.append(f"rare |= {name}_plus({names[0]}, z, n)")
    else:
        total = " + ".join(
            f"({x}[r] + {y}[r])" for x, y in zip(names[::2], names[1::2], strict=True)
        )
        inner += ["for r in range(n):", f"    z[r] = {total}"]
    inner.append("return rare")
    return text + function(f"{name}(left, right, first, last, start, z, s, n)", inner)


def _matrix_driver(f: ChainFacts) -> str:
    """Return the function ``rows``, which computes rows of D."""
    step, real = f.step, _real(f.step)
    arrays = [f"s = np.empty(({f.accumulators}, {strips.STRIP}), np.{real})"]
    arrays.append(f"w = np.empty({strips.STRIP}, np.{real})")
    k = str(f.k) if f.k else "terms" if f.accumulators > 1 or f.descending else str(_STEP)
    if f.products == "rounded":
        assert f.k is not None
        names = range(f.k)
        body = [f"x{i}, y{i} = left[i, first + {i}], right[first + {i}]" for i in names]
        sums = _tree_sum(f.k, "x{i}", "y{i}[at]", "own[r]")
        body += ["for r in range(n):", *indented([strips.AT.replace("j", "r"), *sums])]
    else:
        body = ["last = min(first + step, terms)"]
        call = "left[i], right, first, last, start, own, s, n"
        if step.flush_result == "unbounded":
            body += ["for r in range(n):", "    w[r] = own[r]"]
            body += [f"if quickly({call}):", "    for r in range(n):", "        own[r] = w[r]"]
            body.append(f"    carefully({call})")
        else:
            body.append(f"carefully({call})")
    operand = f"types.{real}[:, ::1]"
    return strips.driver(step.c, [operand] * 2, ["left", "right"], real, k, arrays, body)
