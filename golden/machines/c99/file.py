"""What the C files of all kinds of rules have: names, declarations, headers and comments."""

from typing import NamedTuple

from vitruvian.golden.fp.formats import FloatFormat, Specials
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.spec import ChainSpec, IntPhaseSpec, PhaseSpec
from vitruvian.golden.machines.table import Machine

#: Kind of specials -> its name in C.
SPECIALS = {
    Specials.IEEE: "IEEE",
    Specials.OCP_E4M3: "LAST",
    Specials.NONE: "NONE",
    Specials.FNUZ: "MINUS_ZERO",
}


class CSource(NamedTuple):
    """The text of a header and of a source file."""

    header: str
    source: str


def function_name(row: Machine) -> str:
    """Return the name of the function of a row."""
    return f"vitruvian_{row.stem}"


def word(format: FloatFormat) -> str:
    """Return the type of a code."""
    return f"uint{format.storage_bits}_t"


def declaration(row: Machine) -> str:
    """Return the declaration of the function of a row, without a semicolon."""
    a, b, c = _types(row)
    scales = ", const uint8_t *scale_a, const uint8_t *scale_b" if _scales(row) else ""
    scales += ", int k" if row.rule.k is None else ""
    return f"{c} {function_name(row)}(const {a} *a, const {b} *b, {c} c{scales})"


def _types(row: Machine) -> tuple[str, str, str]:
    """Return the types of the values of A, B and C."""
    rule = row.rule
    if isinstance(rule, IntDotSpec):
        a, b = ("int8_t" if signed else "uint8_t" for signed in (rule.signed_a, rule.signed_b))
        return a, b, "int32_t"
    if isinstance(rule, IntPhaseSpec):
        return "uint8_t", "uint8_t", "uint32_t"
    if isinstance(rule, PhaseSpec) and rule.shared_bits:
        return "uint8_t", "uint8_t", word(rule.output)
    return word(rule.input), word(rule.input_b), word(rule.output)


def _scales(row: Machine) -> str:
    """Return what scales are, or "" if there are none."""
    rule = row.rule
    if isinstance(rule, DotSpec) and rule.scales is not None:
        count, each = rule.k // rule.scales.block, rule.scales.block
        return f"{count} codes of {rule.scales.format}, one for each {each} terms"
    if isinstance(rule, PhaseSpec) and rule.shared_bits:
        return "the exponent of all numbers of a and of b"
    return ""


def about(row: Machine) -> str:
    """Return the lines of a comment that say what the operands are."""
    rule = row.rule
    a, b, _ = _types(row)
    k = "k" if rule.k is None else rule.k
    lines = [f"{row.maker} {row.title}: evidence {row.evidence}."]
    if isinstance(rule, IntDotSpec):
        lines.append(f"a and b: {k} numbers of {a} and {b}; the sum is exact.")
    elif isinstance(rule, IntPhaseSpec):
        lines.append(f"a and b: {k} integers of 8 bits, c of 32, in sign and magnitude.")
    elif isinstance(rule, PhaseSpec) and rule.shared_bits:
        bits = rule.shared_bits
        lines.append(f"a and b: {k} numbers of {bits} bits in sign and magnitude;")
        lines.append(f"c and the result: codes of {rule.output}.")
    else:
        lines.append(f"a and b: {k} codes of {rule.input} and {rule.input_b};")
        lines.append(f"c and the result: codes of {rule.output}.")
    if isinstance(rule, ChainSpec) and rule.add_c == "none":
        lines.append("c is ignored.")
    if scales := _scales(row):
        lines.append(f"scale_a and scale_b: {scales}.")
    return "\n".join(f" * {line}" for line in lines)


def header(row: Machine) -> str:
    """Return the text of the header."""
    guard = f"VITRUVIAN_{row.stem.upper()}_H"
    name = function_name(row).upper()
    k = "" if row.rule.k is None else f"enum {{ {name}_K = {row.rule.k} }};\n\n"
    return f"""\
/* One step of {row.stem}, to the bit; written by Vitruvian.
{about(row)}
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

{k}#ifdef __cplusplus
extern "C" {{
#endif

{declaration(row)};

#ifdef __cplusplus
}}
#endif

#endif
"""


def head(row: Machine, how: str) -> str:
    """Return the beginning of the source file; ``how`` says how the sum is computed."""
    lines = "\n".join(f" * {line}" for line in how.splitlines())
    return f"""\
/* One step of {row.stem}, to the bit; written by Vitruvian.
{about(row)}
 *
{lines}
 */
#include "{row.stem}.h"
"""
