"""The rule of a row as one C99 file and its header, without dependencies, for other emulators."""

from typing import NamedTuple

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.formats import FloatFormat, Specials
from vitruvian.golden.fp.plain import sum_bits
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.table import Machine

#: Bits that a sum may have in the file, which computes with int64_t.
_MOST_BITS = 60
_SPECIALS = {Specials.IEEE: "IEEE", Specials.OCP_E4M3: "LAST", Specials.NONE: "NONE"}
_SPECIALS[Specials.FNUZ] = "MINUS_ZERO"


class CSource(NamedTuple):
    """The text of a header and of a source file."""

    header: str
    source: str


def function_name(row: Machine) -> str:
    """Return the name of the function of a row."""
    return f"vitruvian_{row.stem}"


def c_source(row: Machine) -> CSource:
    """Return the C99 files of a row of the table of machines.

    The function computes one step: ``K`` products and C. A longer K is a chain of such steps.

    Raises
    ------
    UserError
        If the rule has no such form: a sum of integers, or a windowed sum with a tree of terms and
        at most 60 bits.
    """
    spec = row.rule
    if isinstance(spec, IntDotSpec):
        return CSource(_header(row, spec), _integer_source(row, spec))
    if not isinstance(spec, DotSpec):
        raise UserError(f"{row.stem} must be a rule of windowed or integer sums to be written in C")
    others = [change for change in spec.changes if not change.startswith("scales=")]
    wide = sum_bits(spec, spec.k) >= _MOST_BITS
    if others or wide or not spec.output.has_infinity or spec.sum.lanes != "together":
        why = ", ".join(others) or ("its sum has too many bits" if wide else "its output or lanes")
        raise UserError(f"{row.stem} must be a plain windowed sum to be written in C, not {why}")
    return CSource(_header(row, spec), _source(row, spec))


def _declaration(row: Machine, spec: DotSpec | IntDotSpec) -> str:
    if isinstance(spec, IntDotSpec):
        a, b = _integers(spec)
        return f"int32_t {function_name(row)}(const {a} *a, const {b} *b, int32_t c)"
    scales = ", const uint8_t *scale_a, const uint8_t *scale_b" if spec.scales else ""
    a, b, out = (_word(f) for f in (spec.input, spec.input_b, spec.output))
    return f"{out} {function_name(row)}(const {a} *a, const {b} *b, {out} c{scales})"


def _word(format: FloatFormat) -> str:
    return f"uint{format.storage_bits}_t"


def _integers(spec: IntDotSpec) -> tuple[str, str]:
    """Return the types of A and B."""
    a, b = ("int8_t" if signed else "uint8_t" for signed in (spec.signed_a, spec.signed_b))
    return a, b


def _about(row: Machine, spec: DotSpec | IntDotSpec) -> str:
    first = f"{row.maker} {row.title}: evidence {row.evidence}."
    if isinstance(spec, IntDotSpec):
        a, b = _integers(spec)
        return f" * {first}\n * a and b: {spec.k} numbers of {a} and {b}; the sum is exact."
    lines = [
        first,
        f"a and b: {spec.k} codes of {spec.input} and {spec.input_b}; c and the result: codes of "
        f"{spec.output}.",
    ]
    if spec.scales is not None:
        count = spec.k // spec.scales.block
        lines.append(
            f"scale_a and scale_b: {count} codes of {spec.scales.format}, one for each "
            f"{spec.scales.block} terms."
        )
    return "\n".join(f" * {line}" for line in lines)


def _integer_source(row: Machine, spec: IntDotSpec) -> str:
    if spec.saturate:
        end = """\
    sum = sum > INT32_MAX ? INT32_MAX : sum;
    return (int32_t)(sum < INT32_MIN ? INT32_MIN : sum);
"""
        what = "limited to int32_t"
    else:
        end = """\
    bits = (uint32_t)sum;
    return bits <= INT32_MAX ? (int32_t)bits : -(int32_t)(UINT32_MAX - bits) - 1;
"""
        what = "cut to its lowest 32 bits"
    bits = "" if spec.saturate else "    uint32_t bits;\n"
    return f"""\
/* One step of {row.stem}, to the bit; written by Vitruvian.
{_about(row, spec)}
 * The result is {what}.
 */
#include "{row.stem}.h"

{_declaration(row, spec)}
{{
    int64_t sum = c;
{bits}
    for (int i = 0; i < {spec.k}; i++)
        sum += (int32_t)a[i] * b[i];
{end}}}
"""


def _header(row: Machine, spec: DotSpec | IntDotSpec) -> str:
    guard = f"VITRUVIAN_{row.stem.upper()}_H"
    return f"""\
/* One step of {row.stem}, to the bit; written by Vitruvian.
{_about(row, spec)}
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

enum {{ {function_name(row).upper()}_K = {spec.k} }};

#ifdef __cplusplus
extern "C" {{
#endif

{_declaration(row, spec)};

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source(row: Machine, spec: DotSpec) -> str:
    return f"""\
/* One step of {row.stem}, to the bit; written by Vitruvian.
{_about(row, spec)}
 *
 * Every product, and c, is cut to a multiple of 2^(E - {spec.sum.window}), where E is the largest
 * exponent among them. The sum is exact, and rounded once.
 */
#include "{row.stem}.h"

{_decoding()}
{_cutting(spec)}
{_rounding(spec)}
{_declaration(row, spec)}
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
    word = _word(out)
    limit = out.max_finite >> spare
    return f"""\
/* Return the code of size * 2^last, rounded {spec.result.rounding} to {bits} fraction bits. */
static {word} rounded(int64_t size, int last)
{{
    int length = 0, top, place, drop;
    int64_t kept, code;
    while (length < 63 && size >> length)
        length++;
    top = size ? last + length - 1 : {out.emin};
    if (top > {out.emax})
        return ({word}){out.overflow:#x}u;
    place = (top < {out.emin} ? {out.emin} : top) - {bits};
    drop = place - last;
    if (drop <= 0) {{
        kept = size << -drop;
    }} else {{
        kept = drop <= 62 ? size >> drop : 0;{nearest}
    }}
    code = ((int64_t)(place + {bits} - ({out.emin})) << {bits}) + kept;
    return code > {limit:#x} ? ({word}){out.overflow:#x}u : ({word})((uint64_t)code << {spare});
}}
"""


def _format(name: str, format: FloatFormat) -> str:
    return (
        f"decode({name}, {format.exponent_bits}, {format.fraction_bits}, {format.storage_shift}, "
        f"{format.bias}, {_SPECIALS[format.specials]})"
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
    {_word(out)} code;
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
        return ({_word(out)}){spec.nan_code:#x}u;
    if (plus || minus)
        return ({_word(out)})({out.overflow:#x}u | (minus ? {minus} : 0u));
    if (!present)
        return ({_word(out)})({least.format(minus)});
    for (i = 0; i < K; i++)
        if (products[i])
            total += cut(products[i], places[i] - ({unit}){lost});
    if (z.significand)
        total += cut(z.negative ? -z.significand : z.significand,
                     z.exponent - {out.fraction_bits} - ({unit}){lost});
{"    total = total * 2 + lost;" + chr(10) if sticky else ""}\
    code = rounded(total < 0 ? -total : total, {unit}{" - 1" if sticky else ""});
{positive}\
    return ({_word(out)})(code | (total < 0 ? {minus} : 0u));
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
