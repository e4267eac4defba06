"""Exact sums of integer products in C, and those of Tenstorrent's phases."""

from vitruvian.golden.fp.spec import IntDotSpec
from vitruvian.golden.machines.c99.file import declaration, head
from vitruvian.golden.machines.spec import IntPhaseSpec
from vitruvian.golden.machines.table import Machine


def source(row: Machine, spec: IntDotSpec) -> str:
    """Return the text of the C file of an exact sum."""
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
{head(row, f"The result is {what}.")}
{declaration(row)}
{{
    int64_t sum = c;
{bits}
    for (int i = 0; i < {spec.k}; i++)
        sum += (int32_t)a[i] * b[i];
{end}}}
"""


def phase_source(row: Machine, spec: IntPhaseSpec) -> str:
    """Return the text of the C file of MVMUL with integers."""
    how = "A phase multiplies slices of the magnitudes; after each, the sum is limited."
    return f"""\
{head(row, how)}
static int64_t value(uint32_t code, int bits)
{{
    const int64_t size = code & (((uint32_t)1 << (bits - 1)) - 1);
    return code >> (bits - 1) & 1 ? -size : size;
}}

{declaration(row)}
{{
    int64_t sum = value(c, 32);
    for (int phase = 0; phase < {spec.phases}; phase++) {{
        const uint32_t mask_a = phase & 1 ? 0x9F : 0xE0, mask_b = phase & 2 ? 0x8F : 0xF0;
        for (int i = 0; i < {spec.k}; i++)
            sum += value(a[i] & mask_a, 8) * value(b[i] & mask_b, 8);
        sum = sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : sum;
    }}
    return sum < 0 ? (uint32_t)-sum | 0x80000000u : (uint32_t)sum;
}}
"""
