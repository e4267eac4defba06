"""Tenstorrent's MVMUL in C: phases of sliced products, each added to Dst."""

from vitruvian.golden.machines.c99.file import declaration, head, word
from vitruvian.golden.machines.spec import PhaseSpec
from vitruvian.golden.machines.table import Machine

_HOW = """\
A phase multiplies slices of the significands, aligns the products of eight terms among themselves,
and adds both sums to c. Halves are rounded up in magnitude."""

_COMMON = """\
struct operand {
    int negative, field, significand; /* 11 bits */
};

/* Return value / 2^places, rounded; halves go up, or down if ties_down is set. */
static int64_t divided(int64_t value, int places, int ties_down)
{
    if (places <= 0)
        return value;
    if (places > 62)
        places = 62;
    return (value + ((int64_t)1 << (places - 1)) - (ties_down && value > 0)) >> places;
}

static int length(int64_t value)
{
    int bits = 0;
    while (value >> bits)
        bits++;
    return bits;
}

/* Make a significand of 24 bits that became 2^24 a normal one again. */
static void carry(int64_t *field, int64_t *value)
{
    if (*value >= 1 << 24) {
        *field += 1;
        *value >>= 1;
    }
}
"""


def source(row: Machine, spec: PhaseSpec) -> str:
    """Return the text of the C file of a rule."""
    values = "a[i]", "b[i]"
    widen = ""
    if spec.shared_bits:
        values = "widened(a[i], scale_a[0])", "widened(b[i], scale_b[0])"
        widen = _widened(spec.shared_bits)
    x, y = (f"x[i] = operand({values[0]})", f"y[i] = operand({values[1]})")
    return f"""\
{head(row, _HOW)}
{_COMMON}
{widen}{_operand(spec)}
{_sum(spec)}
{_phase(spec)}
{declaration(row)}
{{
    struct operand x[{spec.k}], y[{spec.k}];
    for (int i = 0; i < {spec.k}; i++) {{
        {x};
        {y};
    }}
    for (int phase = 0; phase < {spec.phases}; phase++)
        c = one_phase(x, y, c, phase);
    return c;
}}
"""


def _widened(bits: int) -> str:
    """Return the function that makes a code of bf16 from one with a shared exponent."""
    return f"""\
/* Return the code of bf16 of a number with a shared exponent; the code of -0 becomes -infinity. */
static uint16_t widened(int code, int exponent)
{{
    const int negative = code >> {bits - 1} & 1;
    const int size = (code & {(1 << (bits - 1)) - 1}) << {8 - bits}, zeros = 7 - length(size);
    const int field = (exponent - zeros) & 0xFF;
    const int number = size ? field << 7 | (size << (zeros + 1) & 0x7F) : negative * 0x7F80;
    return (uint16_t)(number | negative << 15);
}}

"""


def _operand(spec: PhaseSpec) -> str:
    """Return the function that widens an operand to ten fraction bits."""
    f = spec.input
    special = ""
    if f.name == "fp8e4m3":  # the field gets the bias of fp16
        special = """\
    if (x.field)
        x.field += 8;
    if ((bits & 0x7F) == 0x7F)
        fraction = 0x3FF;
"""
    elif f.name == "fp8e5m2" and spec.blackhole:
        special = "    if ((bits & 0x7F) == 0x7F)\n        fraction = 0x3FF;\n"
    return f"""\
static struct operand operand(uint32_t code)
{{
    const uint32_t bits = code >> {f.storage_shift};
    struct operand x;
    int fraction = (int)(bits & {(1 << f.fraction_bits) - 1:#x}) << {10 - f.fraction_bits};
    x.negative = (int)(bits >> {f.width - 1} & 1);
    x.field = (int)(bits >> {f.fraction_bits} & {f.exponent_ones:#x});
{special}\
    x.significand = x.field ? fraction | 1 << 10 : 0;
    return x;
}}
"""


def _sum(spec: PhaseSpec) -> str:
    """Return the function that adds two groups to Dst, normalises and rounds."""
    out = spec.output
    wide = out.name == "fp32"
    narrow = "" if wide else "        value = divided(value, 13, down) * (1 << 13);\n"
    round_again = ""
    if not wide:
        drop = 24 - (11 if spec.narrow else 8)
        round_again = f"""\
    value = divided(value, {drop}, 0) * (1 << {drop});
    carry(&field, &value);
"""
    most, over = (
        (32, out.exponent_mask | out.fraction_mask) if out.name == "fp16" else (255, out.overflow)
    )
    erratum = (
        ""
        if spec.blackhole
        else """\
    if (total == -1) /* Wormhole's erratum */
        left = -4;
"""
    )
    return f"""\
static {word(out)} added(const int64_t *sums, const int *fields, {word(out)} c)
{{
    const int field_c = (int)(c >> {out.fraction_bits} & {out.exponent_ones:#x});
    const int64_t fraction_c = c & {(1 << out.fraction_bits) - 1:#x};
    const int64_t size_c = field_c ? (fraction_c | 1 << {out.fraction_bits}) << \
{23 - out.fraction_bits} : 0;
    int64_t total = 0, size, field, value, code;
    int most = field_c, left;
    for (int i = 0; i < 2; i++)
        if (fields[i] > most)
            most = fields[i];
    for (int i = 0; i < 3; i++) {{
        const int negative = i < 2 ? sums[i] < 0 : (int)(c >> {out.width - 1} & 1);
        const int down = negative && i < 2, places = most - (i < 2 ? fields[i] : field_c);
        value = i == 2 ? size_c : sums[i] < 0 ? -sums[i] : sums[i];
        value = places >= 31 ? 0 : divided(value, places, down);
{narrow}\
        total += negative ? -value : value;
    }}
    size = total < 0 ? -total : total;
    left = 24 - length(size);
{erratum}\
    field = most - left;
    value = left >= 0 ? size << left : divided(size, -left, 0);
    carry(&field, &value);
{round_again}\
    if (!size || field <= 0 || most <= 0)
        return 0;
    code = field << {out.fraction_bits} | (value & 0x7FFFFF) >> {23 - out.fraction_bits};
    if (field >= {most})
        code = {over:#x};
    return ({word(out)})(code | (total < 0 ? {out.sign_mask:#x} : 0));
}}
"""


def _phase(spec: PhaseSpec) -> str:
    """Return the function of a phase."""
    out = spec.output
    base = -127 if not spec.narrow else 97 if out.name == "fp32" else -15
    return f"""\
static {word(out)} one_phase(const struct operand *x, const struct operand *y, {word(out)} c,
                          int phase)
{{
    const int adjust = {base} - 5 * (phase & 1) - 7 * (phase >> 1);
    int64_t sums[2] = {{0, 0}};
    int fields[2];
    for (int group = 0; group < 2; group++) {{
        int product[8], exponent[8], top = 0;
        for (int i = 0; i < 8; i++) {{
            const struct operand *u = &x[8 * group + i], *v = &y[8 * group + i];
            const int p = phase & 1 ? u->significand >> 1 & 0x1F : u->significand >> 6;
            const int q = phase & 2 ? (v->significand & 0xF) << 3 : v->significand >> 4;
            const int zero = !u->field || !v->field;
            exponent[i] = zero ? (adjust > 0 ? adjust : 0) : u->field + v->field + adjust;
            product[i] = zero ? 0 : u->negative ^ v->negative ? -p * q : p * q;
            if (!i || exponent[i] > top)
                top = exponent[i];
        }}
        for (int i = 0; i < 8; i++) {{
            const int places = top - exponent[i] < 30 ? top - exponent[i] : 30;
            const int64_t size = divided(product[i] < 0 ? -product[i] : product[i], places, 0);
            sums[group] += product[i] < 0 ? -size : size;
        }}
        fields[group] = top <= 0 ? 0 : top;
        sums[group] = top <= 0 ? 0 : sums[group] * (1 << 13);
    }}
    return added(sums, fields, c);
}}
"""
