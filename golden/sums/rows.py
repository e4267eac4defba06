"""The text of a module that computes rows: one fused dot product for each row of A and of B.

The stages work on blocks of rows whose arrays stay in the first-level cache. Operands are decoded
one after the other whatever row they are of; the sums then go along each row.
"""

from vitruvian.golden.sums import align, decode, result
from vitruvian.golden.sums.decode import indented
from vitruvian.golden.sums.rule import Facts

HEAD = '''"""{title}"""
import numba
import numpy as np
from numba import types
one = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
'''


def array(bits: int) -> str:
    """Return the type of an array of codes that is only read."""
    return f'types.Array(types.uint{max(bits, 8)}, 1, "C", readonly=True)'


def computes(f: Facts) -> bool:
    """Return True if ``source`` has a form for this rule."""
    codes = (f.a, f.b) + ((f.convert,) if f.convert else ())
    if not all(code.fits_fp32 for code in codes) or not (f.c.is_fp32 or f.c.is_fp16):
        return False
    # A conversion keeps the exponent, or it is one to a format that holds every number.
    if f.convert is not None:
        for own in (f.a, f.b):
            wider = own.fraction_bits <= f.convert.fraction_bits
            if own.exponent_bits > f.convert.exponent_bits or not (wider or own.exponent_bits == 8):
                return False
    if f.slices is not None:
        masks = [mask for pair in f.slices for mask in pair]
        wide = all((f.convert or own).exponent_bits == 8 for own in (f.a, f.b))
        if not wide or not all(map(decode.is_contiguous, masks)) or f.scale or f.leading:
            return False
    if f.flush_result == "unbounded" or align.how_to_add(f) is None:
        return False
    bits = sum((f.convert or own).fraction_bits + 1 for own in (f.a, f.b))
    bits += 2 * f.scale.fraction_bits + 2 if f.scale else 0
    if bits > 53:
        return False
    if f.accumulate == "aligned":
        named = f.truncate == "magnitude" and f.zero == "exact" and f.floor is None
        plain = f.convert is None and not f.slices and not f.scale and not f.flush and not f.leading
        rounded = f.rounding == "RNE" and f.c.is_fp32 and f.flush_result is None
        short = align.how_to_add(f) == "short" and f.k <= 32
        return named and plain and rounded and short and f.lanes in ("together", "parity")
    if f.product_overflow or f.lanes == "parity" or (f.leading and f.scale is not None):
        return False
    if f.lanes == "halves":
        return (
            f.k % 4 == 0
            and f.accumulate in ("tree", "late")
            and not (f.slices or f.scale)
            and (align.how_to_add(f) == "short")
        )
    if f.is_grouped:
        short = all(o.exponent_bits <= 3 and o.fraction_bits <= 3 for o in (f.a, f.b))
        return (
            short
            and f.scale is not None
            and f.block is not None
            and f.block % 16 == 0
            and f.k % 16 == 0
            and f.accumulate == "tree"
            and not f.convert
            and not f.flush
            and not f.slices
            and not f.leading
        )
    return True


def source(f: Facts, title: str, many: bool = False) -> str:
    """Return the text of the module of a rule that ``computes`` accepts.

    With ``many``, K is any number of blocks, and otherwise one.
    """
    wide = align.how_to_add(f) in ("bounded", "odd", "long")
    real = "float32" if f.narrow and not wide and not f.slices else "float64"
    stages = [
        HEAD.format(title=title.replace('"', "'").replace("\\", "/")),
        result.HELPERS,
        result.addends(f),
        result.codes(f),
        result.rounding(f),
        result.settled(f),
        result.join(f),
        decode.scales(f),
        decode.products(f, real),
        align.largest(f),
        align.add(f, real),
        align.specials(f),
        _driver(f, real, many),
    ]
    return "\n".join(stage for stage in stages if stage)


def _driver(f: Facts, real: str, many: bool) -> str:
    """Return the function ``rows``, which goes over blocks of rows and steps of K terms."""
    kinds = [array(f.a.storage_bits), array(f.b.storage_bits), array(f.c.storage_bits)]
    arguments = "a, b, c, d, steps"
    if f.scale is not None:
        kinds += [array(8)] * 2
        arguments = "a, b, c, scale_a, scale_b, d, steps"
    kinds += [f"types.uint{f.c.storage_bits}[::1]", "types.int64"]
    text = [
        f"@numba.njit(types.void({', '.join(kinds)}), cache=True, nogil=True, error_model='numpy')",
        f"def rows({arguments}):",
    ]
    decoding, call = _decoding(f, many)
    body = [
        *_arrays(f, real, many),
        f"for start in range(0, c.size, {f.rows}):",
        f"    n = min({f.rows}, c.size - start)",
        "    addends(c[start : start + n], z, n)",
        "    for step in range(steps):",
        *indented(indented([*decoding, call, *_summing(f, call)])),
        "    codes(z, d[start : start + n], n)",
    ]
    return "\n".join([*text, *indented(body), ""])


def _arrays(f: Facts, real: str, many: bool) -> list[str]:
    """Return the statements that allocate the working arrays of a block of rows."""
    rows, products = f.rows, f.rows * f.summed
    planes = len(f.slices or (0,))
    lines = [
        f"p, e = np.empty({planes * products}, np.{real}), np.empty({products}, np.int16)",
        f"emax, scale = np.empty({rows}, np.int32), np.empty({rows}, np.{real})",
        f"total = np.empty({rows}, np.float64)",
        f"z, y, w = np.empty({rows}, np.float32), np.empty({rows}, np.float32), "
        f"np.empty({rows}, np.float32)",
    ]
    if many:
        size = rows * f.k
        lines.append(f"left, right = np.empty({size}, a.dtype), np.empty({size}, b.dtype)")
    if f.block is not None:
        size = rows * (f.k // f.block)
        lines += [
            f"factor, shift = np.empty({size}, np.float64), np.empty({size}, np.int32)",
            f"upper, lower = np.empty({size}, np.uint8), np.empty({size}, np.uint8)",
        ]
    return lines


def _decoding(f: Facts, many: bool) -> tuple[list[str], str]:
    """Return the statements that gather the operands of a step, and the call of ``products``."""
    k = f.k
    lines: list[str] = []
    if f.block is not None:
        blocks = k // f.block
        lines += [
            "for r in range(n):",
            f"    at = ((start + r) * steps + step) * {blocks}",
            f"    for k in range({blocks}):",
            f"        upper[r * {blocks} + k] = scale_a[at + k]",
            f"        lower[r * {blocks} + k] = scale_b[at + k]",
            f"scales(upper, lower, factor, shift, n * {blocks})",
        ]
    if many:
        lines += [
            "for r in range(n):",
            f"    at = ((start + r) * steps + step) * {k}",
            f"    for k in range({k}):",
            f"        left[r * {k} + k] = a[at + k]",
            f"        right[r * {k} + k] = b[at + k]",
        ]
        operands = f"left[: n * {k}], right[: n * {k}]"
    else:
        operands = ", ".join(f"{x}[start * {k} : (start + n) * {k}]" for x in "ab")
    more = ", factor, shift" if f.block is not None else ""
    return lines, f"products({operands}, p, e, n * {k}{more})"


def _summing(f: Facts, call: str) -> list[str]:
    """Return the statements that add the products of a step; ``call`` has made the products."""
    bounded = align.how_to_add(f) == "bounded" and not align.is_pair(f)
    again = decode.is_simple(f) and not (decode.is_direct(f.a) and decode.is_direct(f.b))
    late = f.accumulate == "late"
    given = "w" if late else "z"
    lines = align.first_addend(f, "z")
    for half in (0, 2) if f.lanes == "halves" else (0,):
        lines += [
            f"special = largest(e, {given}, emax, n, {half})",
            f"add(p, e, emax, {given}, total, scale, n, {half})",
        ]
        finish = f"finish(emax, {given}, total, scale, y, n)"
        lines += [f"if {finish}:", f"    again(p, emax, {given}, y, n)"] if bounded else [finish]
        lines.append("if special:")
        if again:
            lines.append(f"    special_{call}".replace(", e, ", ", "))
        lines.append(f"    specials(p, {given}, emax, y, n, {half})")
        if half == 0 and f.lanes == "halves":  # the first sum is the C of the second
            lines += ["for r in range(n):", f"    {given}[r] = y[r]"]
    if late:
        lines.append("join(y, z, n)")
    return [*lines, "for r in range(n):", "    z[r] = y[r]"]
