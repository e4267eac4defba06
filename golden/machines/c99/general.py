"""Fused dot products of any rule, and chains of them, in C.

The file has exact numbers (``numbers.c``), the steps of all rules (``rule.c``), and tables with the
parameters of its own rule.
"""

from functools import lru_cache
from pathlib import Path

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.general import addition, late_addition
from vitruvian.golden.fp.scales import ScaleFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.c99.file import SPECIALS, declaration, head, word
from vitruvian.golden.machines.spec import ChainSpec
from vitruvian.golden.machines.table import Machine

_ROUNDINGS = {"RNE": "TO_NEAREST", "RZ": "TO_ZERO", "RTO": "TO_ODD"}
_ZEROS = {"ieee": "SIGNED", "positive": "POSITIVE", "exact": "EXACT"}
_FLUSHES = {
    None: "NEVER",
    "after": "AFTER_ROUNDING",
    "before": "BEFORE_ROUNDING",
    "unbounded": "UNBOUNDED",
}
_SPARE_BITS = 34  # of a sum: a carry for each of up to 2^32 terms, and the sticky bit


@lru_cache
def shared(name: str) -> str:
    """Return a part of the files that is the same for all rules."""
    return (Path(__file__).parent / name).read_text()


def source(row: Machine, spec: DotSpec) -> str:
    """Return the text of the C file of a fused dot product."""
    scales = "scale_a, scale_b" if spec.scales is not None else "0, 0"
    many = spec.k
    body = f"    return ({word(spec.output)})dot(&RULE, {many}, x, y, c, {scales});\n"
    return _file(row, {"RULE": spec}, str(spec), many, body)


def chain_source(row: Machine, spec: ChainSpec) -> str:
    """Return the text of the C file of a sequence of rounded operations."""
    step, add = spec.step, spec.step
    if spec.add_c == "none":
        add = step.replace(flush_result=None, flush=False)
    rules = {"STEP": step}
    helpers = _helpers(spec)
    if helpers:
        rules["SUM"] = addition(add)
    body = {"fused": _fused, "rounded": _rounded, "paired": _paired}[spec.products](spec)
    text = repr(spec).replace("step=dot_spec", "\nstep=dot_spec")
    return _file(row, rules, text, spec.k, body, helpers)


def _file(
    row: Machine, rules: dict[str, DotSpec], how: str, k: int | None, body: str, helpers: str = ""
) -> str:
    """Return the text of a file with the tables of ``rules`` and the body of the function."""
    texts: list[str] = []
    named: dict[str, DotSpec] = {}
    for name, rule in rules.items():
        if rule.addend.how == "late":
            named[f"{name}_ADD"] = late_addition(rule)
        named[name] = rule
    formats: dict[str, FloatFormat] = {}
    for rule in named.values():
        for format in (rule.input, rule.input_b, rule.output, rule.a.convert):
            if format is not None:
                formats[format.name.upper()] = format
    texts += [format_table(name, format) for name, format in formats.items()]
    texts += [_rule(name, rule) for name, rule in named.items()]
    terms = max(rule.k * len(rule.products.slices or (0,)) for rule in named.values())
    limbs = max(2, *(-(-_bits(rule) // 32) for rule in named.values()))
    least = min(_least(rule) for rule in named.values())
    copy = ""
    if k is not None:
        copy = f"""\
    uint64_t x[{k}], y[{k}];
    for (int i = 0; i < {k}; i++) {{
        x[i] = a[i];
        y[i] = b[i];
    }}
"""
    tables = "\n".join(texts)
    return f"""\
{head(row, _wrapped(how))}
/* Limbs of a sum, terms of a sum, and the exponent of the last bit that a term can have. */
enum {{ LIMBS = {limbs}, TERMS = {terms}, LEAST = {least} }};

{shared("numbers.c")}
{shared("rule.c")}
{tables}{helpers}
{declaration(row)}
{{
{copy}{body}}}
"""


def _wrapped(text: str) -> str:
    """Return the parameters of a rule in lines of a comment."""
    lines: list[str] = []
    line = ""
    for part in text.replace("\n", "").split(", "):
        if line and len(line) + len(part) > 90:
            lines.append(line)
            line = ""
        line += f"{part}, "
    return "\n".join([*(each.rstrip() for each in lines), line[:-2]])


def _operands(spec: DotSpec) -> tuple[FloatFormat, FloatFormat]:
    """Return the formats in which operands are multiplied."""
    return spec.a.convert or spec.input, spec.b.convert or spec.input_b


def _ends(format: FloatFormat | ScaleFormat) -> tuple[int, int]:
    """Return the exponents of the last bit of the least number, and above the largest one."""
    if isinstance(format, ScaleFormat):
        most = (1 << format.exponent_bits) - format.bias
        return -format.bias - format.fraction_bits, most
    return format.emin - format.fraction_bits, format.emax + 1


def _least(spec: DotSpec) -> int:
    """Return the exponent of the last bit that a product or C can have."""
    scale = 0 if spec.scales is None else 2 * _ends(spec.scales.format)[0]
    products = sum(_ends(format)[0] for format in _operands(spec)) + scale
    return min(products, _ends(spec.output)[0])


def _bits(spec: DotSpec) -> int:
    """Return the bits of the largest number that is computed exactly."""
    scale = 0 if spec.scales is None else 2 * (spec.scales.format.fraction_bits + 1)
    product = sum(format.fraction_bits + 1 for format in _operands(spec)) + scale
    if spec.sum.lanes == "sixteens":  # added exactly before they are scaled
        product = sum(high - low for low, high in map(_ends, _operands(spec))) + scale
    if spec.sum.window is None or spec.addend.how == "after":
        scale = 0 if spec.scales is None else 2 * _ends(spec.scales.format)[1]
        most = sum(_ends(format)[1] for format in _operands(spec)) + scale
        window = max(most, _ends(spec.output)[1]) - _least(spec)
        window += spec.sum.window or 0
    else:
        window = max(spec.sum.window, 32)
    return max(product, window + 4, spec.output.fraction_bits + 2) + _SPARE_BITS


def format_table(name: str, f: FloatFormat) -> str:
    """Return the table of a format."""
    return f"""\
static const struct format {name} = {{
    {f.exponent_bits}, {f.fraction_bits}, {f.storage_shift}, {f.bias}, {SPECIALS[f.specials]}, \
{f.emax}, {f.sign_mask:#x}u,
    {f.max_finite:#x}u, {f.overflow:#x}u, {f.canonical_nan:#x}u,
}};
"""


def _rule(name: str, spec: DotSpec) -> str:
    """Return the table of a rule, after those of its slices and its scales."""
    slices = spec.products.slices or ((-1, -1),)
    masks = ", ".join(f"{{{_mask(p)}, {_mask(q)}}}" for p, q in slices)
    text = f"static const uint64_t {name}_MASKS[][2] = {{{masks}}};\n"
    scale, block = "0", 0
    if spec.scales is not None:
        f, block = spec.scales.format, spec.scales.block
        nan = -1 if f.nan is None else f.nan
        values = (f.fraction_bits, f.bias, (1 << f.width) - 1, int(f.subnormals), nan)
        text += f"static const struct scale_format {name}_SCALE = "
        text += f"{{{', '.join(map(str, values))}}};\n"
        scale = f"&{name}_SCALE"
    formats = (spec.input, spec.input_b, spec.output)
    convert = "0" if spec.a.convert is None else f"&{spec.a.convert.name.upper()}"
    window = -1 if spec.sum.window is None else spec.sum.window
    floor = "NO_TERM" if spec.sum.floor is None else str(spec.sum.floor)
    add = f"&{name}_ADD" if spec.addend.how == "late" else "0"
    rows = (
        f"{', '.join(f'&{format.name.upper()}' for format in formats)}, {convert}",
        f"{window}, {spec.sum.truncate.upper()}, {floor}, {spec.sum.lanes.upper()}",
        f"{int(spec.products.exponent == 'leading')}, {int(spec.products.overflow)}, "
        f"{len(slices)}, {name}_MASKS",
        f"{spec.addend.how.upper()}, {_ROUNDINGS[spec.result.rounding]}, {spec.result.bits}, "
        f"{_ZEROS[spec.result.zero]}",
        f"{int(spec.flush)}, {_FLUSHES[spec.result.flush]}, {spec.nan_code:#x}u, {scale}, {block}, "
        f"{add}",
    )
    lines = "".join(f"    {row},\n" for row in rows)
    return f"{text}static const struct rule {name} = {{\n{lines}}};\n"


def _mask(value: int) -> str:
    return "UINT64_MAX" if value == -1 else f"{value:#x}u"


# Chains


def _cleared(name: str, format: FloatFormat) -> str:
    """Return an expression: a code in which every zero and every subnormal is +0."""
    return f"({name} & {format.exponent_mask:#x}u ? {name} : 0)"


def _prepared(spec: ChainSpec) -> str:
    """Return statements that change the operands x and y of a block."""
    lines: list[str] = []
    if spec.complex == "real":  # i² is −1
        lines.append(f"    x[i] ^= i % 2 ? {spec.input.sign_mask:#x}u : 0;")
    paired = spec.products == "paired"
    for name, format in (("x[i]", spec.input), ("y[i]", spec.input_b)):
        if spec.zero_subnormals and not (paired and format.emin > -14):
            lines.append(f"    {name} = {_cleared(name, format)};")
    text = "".join(f"    {line}\n" for line in lines)
    loop = f"    for (int i = 0; i < {spec.k}; i++) {{\n{text}    }}\n" if text else ""
    if spec.complex == "imaginary":
        loop = f"""\
    for (int i = 0; i < {spec.k}; i += 2) {{
        const uint64_t real = x[i];
        x[i] = x[i + 1];
        x[i + 1] = real;
    }}
{loop}"""
    return loop


def _pairwise(many: int) -> str:
    """Return statements that add ``many`` values of s in neighbouring pairs; s[0] is the sum."""
    lines: list[str] = []
    step = 1
    while step < many:
        lines += [f"    s[{i}] = sum(s[{i}], s[{i + step}]);\n" for i in range(0, many, 2 * step)]
        step *= 2
    return "".join(lines)


def _fused(spec: ChainSpec) -> str:
    """Return the body of a chain of fused multiply-adds, perhaps with several accumulators."""
    many, kind = spec.accumulators, word(spec.output)
    k = "k" if spec.k is None else str(spec.k)
    loop = f"int i = {k} - 1; i >= 0; i--" if spec.descending else f"int i = 0; i < {k}; i++"
    start = "c" if many == 1 else "0"
    x, y = ("&x[i]", "&y[i]") if spec.k is not None else ("&x", "&y")
    load = "        const uint64_t x = a[i], y = b[i];\n" if spec.k is None else ""
    body = f"""\
    uint64_t s[{many}] = {{{start}}};
{_prepared(spec)}\
    for ({loop}) {{
{load}\
        s[i % {many}] = dot(&STEP, 1, {x}, {y}, s[i % {many}], 0, 0);
    }}
"""
    if many == 1:
        return f"{body}    return ({kind})s[0];\n"
    if spec.add_c == "none":  # the sum begins with the accumulator of the first term not taken
        terms = ", ".join(f"s[({k} + {i}) % {many}]" for i in range(many))
        moved = f"    uint64_t first[{many}] = {{{terms}}};\n    (void)c;\n"
        return (
            f"{body}{moved}{_pairwise(many).replace('s[', 'first[')}    return ({kind})first[0];\n"
        )
    return f"{body}{_pairwise(many)}    return ({kind})sum(s[0], c);\n"


def _rounded(spec: ChainSpec) -> str:
    """Return the body of a sum in pairs of rounded products."""
    c = _cleared("c", spec.output) if spec.zero_subnormals else "c"
    return f"""\
    uint64_t s[{spec.k}];
{_prepared(spec)}\
    for (int i = 0; i < {spec.k}; i++)
        s[i] = product(x[i], y[i]);
{_pairwise(spec.k or 1)}\
    return ({word(spec.output)})sum(s[0], {c});
"""


def _paired(spec: ChainSpec) -> str:
    """Return the body of a sum of rounded products, whose neighbours are added first."""
    many = spec.accumulators
    return f"""\
    uint64_t s[{many}] = {{0}};
{_prepared(spec)}\
    for (int i = 0; i < {spec.k}; i += 2) {{
        const uint64_t pair = sum(product(x[i], y[i]), product(x[i + 1], y[i + 1]));
        s[i / 2 % {many}] = sum(s[i / 2 % {many}], pair);
    }}
{_pairwise(many)}\
    return ({word(spec.output)})sum(s[0], c);
"""


def _helpers(spec: ChainSpec) -> str:
    """Return the functions of a sum and of a product that the body calls."""
    out = spec.output
    texts = ""
    if spec.accumulators > 1 or spec.products != "fused":
        texts += f"""
static uint64_t sum(uint64_t x, uint64_t y)
{{
    const uint64_t one = {out.one:#x}u;
    return dot(&SUM, 1, &one, &x, y, 0, 0);
}}
"""
    if spec.products != "fused":  # a product alone is the fused multiply-add with -0
        texts += f"""
static uint64_t product(uint64_t x, uint64_t y)
{{
    return dot(&STEP, 1, &x, &y, {out.negative_zero:#x}u, 0, 0);
}}
"""
    return texts
