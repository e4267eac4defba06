"""Steps of AMD's RDNA 3 and RDNA 4 in C."""

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.machines.c99.file import declaration, head, word
from vitruvian.golden.machines.c99.general import format_table, shared
from vitruvian.golden.machines.rdna import OPERAND_NAN
from vitruvian.golden.machines.spec import RdnaSpec
from vitruvian.golden.machines.table import Machine

_HOW_3 = """\
Products and c are floored on one grid in the sign of c. The bits of a term of the other sign are
inverted, and no one is added. The sum is rounded once, and numbers below the normal ones of FP32
are zeros."""
_HOW_4 = """\
Groups of products are floored and added on grids of their own; their sums and c are floored on the
common grid. The sum is rounded once."""

_IN_FRAME = """\
    for (int i = 0; i < K; i++)
        if (length(&product[i])) {
            const int top = last[i] + length(&product[i]) - 1 - 26, own = exponent[i] - 24;
            grid = top > grid ? top : grid;
            grid = own > grid ? own : grid;
            nothing = 0;
        }
    total.size = shifted(wide(z.significand), z.exponent - C->fraction_bits - grid, &lost);
    for (int i = 0; i < K; i++) {
        struct sum term = {negative[i] != z.negative, shifted(product[i], last[i] - grid, &lost)};
        if (term.negative)
            term.size = plus(term.size, wide(1));
        total = add(total, term);
    }
    total = nothing ? (struct sum){0, {{0}}} : cut(total, 0, FLOOR, &lost);
    total.negative ^= z.negative;
"""
_TWO_COMPLEMENT = """\
    for (int i = 0; i < K; i++)
        if (length(&product[i]) && exponent[i] - 24 > grid)
            grid = exponent[i] - 24;
    total.negative = z.negative && z.significand;
    total.size = wide(z.significand);
    total = cut(total, z.exponent - C->fraction_bits - grid, FLOOR, &lost);
    size = shifted(wide(z.significand), z.exponent - C->fraction_bits - grid, &lost);
    if (!length(&size) && grid > LEAST) /* on a coarser grid, a C without a bit left is zero */
        total.negative = 0, total.size = wide(0);
    for (int first = 0; first < K; first += GROUP) {
        struct sum part = {0, {{0}}};
        int own = -1024;
        for (int i = first; i < first + GROUP; i++)
            if (length(&product[i]) && exponent[i] - 24 > own)
                own = exponent[i] - 24;
        for (int i = first; i < first + GROUP; i++) {
            const struct sum term = {negative[i] && length(&product[i]), product[i]};
            part = add(part, cut(term, last[i] - own, FLOOR, &lost));
        }
        total = add(total, cut(part, own - grid, FLOOR, &lost));
    }
"""


def source(row: Machine, spec: RdnaSpec) -> str:
    """Return the text of the C file of a rule."""
    out, single = spec.output, FORMATS["fp32"]
    own = out if out.name == "fp16" else single
    formats = {f.name.upper(): f for f in (spec.input, spec.input_b, out, own)}
    tables = "\n".join(format_table(name, f) for name, f in formats.items())
    least = out.emin if out.name == "fp16" else single.emin if spec.rdna4 else -1024
    operand = OPERAND_NAN[out.name]
    no_number = operand if spec.input.width == 8 else out.canonical_nan | out.sign_mask
    tiny = ""
    if own is single and not spec.rdna4:
        tiny = f"""\
    /* Twice the number is rounded to the same precision. */
    if (packed(0, total.size, grid + 1, OWN, TO_NEAREST, {own.fraction_bits}) < \
{2 * own.min_normal:#x}u)
        d = 0;
"""
    shift = " >> 16" if out.name == "bf16" else ""
    group = spec.k if spec.input.width == 8 else 2
    flushed = "" if spec.rdna4 else " || leading(&x, f) < -126"
    return f"""\
{head(row, _HOW_4 if spec.rdna4 else _HOW_3)}
enum {{ LIMBS = 4, K = {spec.k}, GROUP = {group}, LEAST = {least} }};

{shared("numbers.c")}
{tables}
static const struct format *const C = &{out.name.upper()}, *const OWN = &{own.name.upper()};

static struct number number(uint64_t code, const struct format *f)
{{
    struct number x = decode(code, f);
    if (x.kind != FINITE{flushed})
        x.significand = 0;
    return x;
}}

{declaration(row)}
{{
    const struct number z = number(c, C);
    const int top_c = z.significand ? leading(&z, C) : -1024;
    struct wide product[K]{", size" if spec.rdna4 else ""};
    struct sum total = {{0, {{{{0}}}}}};
    int negative[K], exponent[K], last[K], lost = 0, invalid = 0, operand = 0;
    int plus_infinity = 0, minus_infinity = 0{"" if spec.rdna4 else ", nothing = !z.significand"};
    int grid = (top_c > LEAST ? top_c : LEAST) - 26;
    uint64_t d;
    for (int i = 0; i < K; i++) {{
        const struct number x = number(a[i], &{spec.input.name.upper()});
        const struct number y = number(b[i], &{spec.input_b.name.upper()});
        const int infinite = x.kind == INFINITE || y.kind == INFINITE;
        operand |= x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER;
        invalid |= infinite && ((x.kind != INFINITE && !x.significand) ||
                                (y.kind != INFINITE && !y.significand));
        negative[i] = x.negative ^ y.negative;
        plus_infinity |= infinite && !negative[i];
        minus_infinity |= infinite && negative[i];
        product[i] = times(wide(x.significand), y.significand);
        exponent[i] = x.exponent + y.exponent;
        last[i] = exponent[i] - {spec.input.fraction_bits + spec.input_b.fraction_bits};
    }}
    invalid |= plus_infinity && minus_infinity;
    if (operand)
        return {operand:#x}u;
    if (invalid)
        return {no_number:#x}u;
    if (z.kind == NOT_A_NUMBER)
        return c | {1 << (out.fraction_bits - 1):#x}u;
    plus_infinity |= z.kind == INFINITE && !z.negative;
    minus_infinity |= z.kind == INFINITE && z.negative;
    if (plus_infinity && minus_infinity)
        return {no_number:#x}u;
    if (plus_infinity || minus_infinity)
        return minus_infinity ? {out.overflow | out.sign_mask:#x}u : {out.overflow:#x}u;
{_TWO_COMPLEMENT if spec.rdna4 else _IN_FRAME}\
    d = packed(total.negative, total.size, grid, OWN, TO_NEAREST, {own.fraction_bits});
{tiny}\
    if (d == OWN->sign)
        d = 0;
    return ({word(out)})(d{shift});
}}
"""
