"""Plain windowed sums of at most 60 bits in C: one tree of terms in ``int64_t``."""

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.c99.file import SPECIALS, declaration, head, word
from vitruvian.golden.machines.table import Machine


def source(row: Machine, spec: DotSpec) -> str:
    """Return the text of the C file of a rule."""
    how = f"""\
Every product, and c, is cut to a multiple of 2^(E - {spec.sum.window}), where E is the largest
exponent among them. The sum is exact, and rounded once."""
    return f"""\
{head(row, how)}
{_decoding()}
{_cutting(spec)}
{_rounding(spec)}
{declaration(row)}
{{
{_body(spec)}}}
"""


def _decoding() -> str:
    return """\
enum specials { IEEE, LAST, MINUS_ZERO, NONE };
enum kind { FINITE, INFINITE, NOT_A_NUMBER };

struct number {
    int negative, exponent;
    enum kind kind;
    int64_t significand; /* the value is significand * 2^(exponent - fraction bits) */
};

static struct number decode(uint64_t code, int exponent_bits, int fraction_bits, int unused,
                            int bias, enum specials specials)
{
    struct number x = {0, 0, FINITE, 0};
    const int64_t ones = ((int64_t)1 << exponent_bits) - 1;
    const int64_t all = ((int64_t)1 << fraction_bits) - 1;
    int64_t field, fraction;
    code >>= unused;
    x.negative = (int)(code >> (exponent_bits + fraction_bits) & 1);
    field = (int64_t)(code >> fraction_bits) & ones;
    fraction = (int64_t)code & all;
    if (specials == IEEE && field == ones)
        x.kind = fraction ? NOT_A_NUMBER : INFINITE;
    if (specials == LAST && field == ones && fraction == all)
        x.kind = NOT_A_NUMBER;
    if (specials == MINUS_ZERO && x.negative && !field && !fraction)
        x.kind = NOT_A_NUMBER;
    if (x.kind == FINITE)
        x.significand = fraction | (field ? (int64_t)1 << fraction_bits : 0);
    x.exponent = (int)(field ? field : 1) - bias;
    return x;
}
"""


def _cutting(spec: DotSpec) -> str:
    if spec.sum.truncate == "magnitude":
        cut = """\
/* Return value * 2^places, cut towards zero. */
static int64_t cut(int64_t value, int places)
{
    const int64_t size = value < 0 ? -value : value;
    const int64_t kept = places >= 0 ? size << places : places > -63 ? size >> -places : 0;
    return value < 0 ? -kept : kept;
}
"""
    else:
        cut = """\
/* Return the floor of value * 2^places, and note whether a bit is lost. */
static int64_t cut(int64_t value, int places, int *lost)
{
    int64_t kept;
    if (places >= 0)
        return value * ((int64_t)1 << places);
    if (places < -62)
        places = -62;
    kept = value < 0 ? ~(~value >> -places) : value >> -places;
    *lost |= kept * ((int64_t)1 << -places) != value;
    return kept;
}
"""
    return cut


def _rounding(spec: DotSpec) -> str:
    out = spec.output
    bits = spec.result.bits
    spare = out.fraction_bits - bits + out.storage_shift
    nearest = ""
    if spec.result.rounding == "RNE":
        nearest = """
        if (drop <= 62) {
            const int64_t unit = (int64_t)1 << drop, rest = size - (kept << drop);
            kept += 2 * rest + (kept & 1) > unit;
        }"""
    kind = word(out)
    limit = out.max_finite >> spare
    return f"""\
/* Return the code of size * 2^last, rounded {spec.result.rounding} to {bits} fraction bits. */
static {kind} rounded(int64_t size, int last)
{{
    int length = 0, top, place, drop;
    int64_t kept, code;
    while (length < 63 && size >> length)
        length++;
    top = size ? last + length - 1 : {out.emin};
    if (top > {out.emax})
        return ({kind}){out.overflow:#x}u;
    place = (top < {out.emin} ? {out.emin} : top) - {bits};
    drop = place - last;
    if (drop <= 0) {{
        kept = size << -drop;
    }} else {{
        kept = drop <= 62 ? size >> drop : 0;{nearest}
    }}
    code = ((int64_t)(place + {bits} - ({out.emin})) << {bits}) + kept;
    return code > {limit:#x} ? ({kind}){out.overflow:#x}u : ({kind})((uint64_t)code << {spare});
}}
"""


def _format(name: str, format: FloatFormat) -> str:
    return (
        f"decode({name}, {format.exponent_bits}, {format.fraction_bits}, {format.storage_shift}, "
        f"{format.bias}, {SPECIALS[format.specials]})"
    )


def _body(spec: DotSpec) -> str:
    out = spec.output
    floor = "-1000000" if spec.sum.floor is None else str(spec.sum.floor)
    last = spec.input.fraction_bits + spec.input_b.fraction_bits
    sticky = spec.sum.truncate == "floor"
    lost = ", &lost" if sticky else ""
    least = {"ieee": "all_negative ? {0} : 0", "positive": "0", "exact": "0"}[spec.result.zero]
    minus = f"{out.sign_mask:#x}u"
    positive = "    if (code == 0)\n        return 0;\n" if spec.result.zero == "positive" else ""
    unit = f"largest - {spec.sum.window}"
    return f"""\
    enum {{ K = {spec.k} }};
    const struct number z = {_format("c", out)};
    int64_t products[K], total = 0;
    int places[K], i, largest = {floor}, present = 0, all_negative = z.negative;
    int plus = z.kind == INFINITE && !z.negative, minus = z.kind == INFINITE && z.negative;
    int nan = z.kind == NOT_A_NUMBER;
{"    int lost = 0;" + chr(10) if sticky else ""}\
    {word(out)} code;
    if (z.significand) {{
        present = 1;
        if (z.exponent > largest)
            largest = z.exponent;
    }}
    for (i = 0; i < K; i++) {{
        const struct number x = {_format("a[i]", spec.input)};
        const struct number y = {_format("b[i]", spec.input_b)};
        const int negative = x.negative ^ y.negative, exponent = x.exponent + y.exponent;
        const int zero = (x.kind == FINITE && !x.significand) ||
                         (y.kind == FINITE && !y.significand);
        int64_t product = x.significand * y.significand;
        int shift = 0;
        if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER)
            nan = 1;
        else if (x.kind == INFINITE || y.kind == INFINITE) {{
            nan |= zero;
            plus |= !negative;
            minus |= negative;
        }}
        all_negative &= negative;
        present |= product != 0;
{_scaling(spec)}\
        products[i] = negative ? -product : product;
        places[i] = exponent + shift;
        if (product && places[i] > largest)
            largest = places[i];
        places[i] -= {last}{" + SCALE_BITS" if spec.scales else ""};
    }}
    if (nan || (plus && minus))
        return ({word(out)}){spec.nan_code:#x}u;
    if (plus || minus)
        return ({word(out)})({out.overflow:#x}u | (minus ? {minus} : 0u));
    if (!present)
        return ({word(out)})({least.format(minus)});
    for (i = 0; i < K; i++)
        if (products[i])
            total += cut(products[i], places[i] - ({unit}){lost});
    if (z.significand)
        total += cut(z.negative ? -z.significand : z.significand,
                     z.exponent - {out.fraction_bits} - ({unit}){lost});
{"    total = total * 2 + lost;" + chr(10) if sticky else ""}\
    code = rounded(total < 0 ? -total : total, {unit}{" - 1" if sticky else ""});
{positive}\
    return ({word(out)})(code | (total < 0 ? {minus} : 0u));
"""


def _scaling(spec: DotSpec) -> str:
    if spec.scales is None:
        return ""
    f, each = spec.scales.format, spec.scales.block
    mask = (1 << f.width) - 1
    field = f"(code >> {f.fraction_bits})"
    fraction = f"(code & {(1 << f.fraction_bits) - 1})"
    hidden = 1 << f.fraction_bits
    nan = "" if f.nan is None else f"            nan |= code == {f.nan:#x};\n"
    if f.subnormals:
        significand = f"{field} ? {fraction} | {hidden} : {fraction}"
        exponent = f"({field} ? {field} : 1) - {f.bias}"
    else:
        significand, exponent = f"{fraction} | {hidden}", f"{field} - {f.bias}"
    return f"""\
        enum {{ SCALE_BITS = {2 * f.fraction_bits} }};
        for (int side = 0; side < 2; side++) {{
            const int code = (side ? scale_b : scale_a)[i / {each}] & {mask:#x};
{nan}\
            product *= ({significand});
            shift += {exponent};
        }}
"""
