"""The text of the last stages: rounding, C that is added afterwards, and codes of results."""

from vitruvian.golden.sums.decode import flushed, fp32_bits, function, indented
from vitruvian.golden.sums.rule import Facts

#: 2^e in FP64, and a sum that is rounded to odd, so that rounding it again is rounding once.
HELPERS = """
@one
def power(e):
    return np.int64(np.int64(e + 1023) << 52).view(np.float64)

@one
def odd_sum(x, y):
    total = x + y
    back = total - x
    error = (x - (total - back)) + (y - back)  # exact (Knuth's TwoSum), NaN for an infinity
    bits = np.float64(total).view(np.int64)
    away = (error > 0) == (total > 0)
    changed = np.int64(bits + np.int64(1 if away else -1))
    bits = changed if abs(error) > 0 and bits & 1 == 0 else bits
    return np.int64(bits).view(np.float64)
"""


def rounding(
    f: Facts, name: str = "rounded", how: str | None = None, bits: int | None = None
) -> str:
    """Return the function that rounds an FP64 number to an FP32 number of the result's format.

    Zeros, infinities and NaNs stay what they are. A number that is too large becomes an infinity.
    """
    how = how or f.rounding
    bits = f.bits if bits is None else bits
    body: list[str] = []
    exact = how == "RNE" and f.c.is_fp32 and bits == 23
    if not exact:
        body += [
            "exponent = np.int64((np.float64(v).view(np.int64) >> 52 & 2047) - 1023)",
            f"place = np.int64(max(exponent, {f.c.emin}) - {bits})",
        ]
    if exact:
        body.append("t = v")
    elif how == "RNE":
        # 1.5 · 2^(place + 52) has the last place 2^place, so the addition rounds to it.
        body += ["large = 1.5 * power(place + 52)", "t = np.copysign((v + large) - large, v)"]
        body.append("t = t if abs(v) < np.inf else v")
    elif how == "RZ":
        body += [
            # Below the last place, all bits but the sign are cleared.
            "drop = np.int64(52 - exponent + place if exponent >= place else 63)",
            "w = np.float64(v).view(np.int64)",
            "t = np.int64(w >> drop << drop).view(np.float64)",
            "t = t if abs(v) < np.inf else v",
        ]
    elif f.flush_result is not None:  # what is below the least normal number becomes a zero
        ones = (1 << (52 - bits)) - 1
        body = [
            "w = np.float64(v).view(np.int64)",
            f"t = np.int64(w & {~ones} | ({ones + 1} if w & {ones} else 0)).view(np.float64)",
            "t = t if abs(v) < np.inf else v",
        ]
    else:  # below 2^place, the odd number is 2^place itself
        body += [
            "low = abs(v) * power(-place)",
            "whole = np.floor(low)",
            "kept = np.int64(whole) | np.int64(whole != low)",
            "t = np.copysign(np.float64(kept) * power(place), v)",
            "t = t if abs(v) < np.inf else v",
        ]
    limit = 2.0 ** (1 << (f.c.exponent_bits - 1))
    if not f.c.is_fp32:
        body.append(f"t = t if abs(t) < {limit!r} or t != t else np.copysign(np.inf, t)")
    return function(f"{name}(v)", [*body, "return np.float32(t)"])


def settled(f: Facts) -> str:
    """Return the function ``settled`` of an FP64 sum and its rounding: what the result is.

    It flushes numbers below the least normal one and gives zeros their sign.
    """
    body: list[str] = []
    least = 2.0**f.c.emin
    if f.flush_result == "after":
        body.append(f"t = np.copysign(np.float32(0), t) if abs(t) < np.float32({least!r}) else t")
    elif f.flush_result == "before":
        body.append(f"t = np.copysign(np.float32(0), t) if abs(v) < {least!r} else t")
    if f.zero == "positive":
        body.append("t = np.float32(t + np.float32(0))")
    return function("settled(v, t)", [*body, "return t"])


def join(f: Facts) -> str:
    """Return the function ``join``, which adds C to rounded sums, or nothing."""
    if f.accumulate != "late":
        return ""
    body = ["x, y = total[r], c[r]"]
    if f.flush:
        for name in "xy":
            body += [f"u = np.float32({name}).view(np.int32)", *flushed("u", f.c.emin)]
            body.append(f"{name} = np.int32(u).view(np.float32)")
    if f.rounding == "RTO":
        body += ["v = odd_sum(np.float64(x), np.float64(y))", "t = added(v)"]
    elif f.c.is_fp32:
        body += ["v = np.float64(x) + np.float64(y)", "t = np.float32(x + y)"]
    else:
        body += ["v = np.float64(x) + np.float64(y)", "t = added(v)"]
    least = 2.0**f.c.emin
    if f.flush_result is not None:
        size = "v" if f.flush_result == "before" else "t"
        number = f"{least!r}" if f.flush_result == "before" else f"np.float32({least!r})"
        body.append(f"t = np.copysign(np.float32(0), t) if abs({size}) < {number} else t")
    how = "RTO" if f.rounding == "RTO" else "RNE"
    text = rounding(f, "added", how, f.c.fraction_bits)
    loop = ["for r in range(n):", *indented([*body, "total[r] = t"])]
    return text + function("join(total, c, n)", loop)


def addends(f: Facts) -> str:
    """Return the function ``addends``, which decodes the codes of C to FP32 or FP64 numbers."""
    if f.c.is_fp64:
        body = ["z[r] = np.uint64(c[r]).view(np.float64)"]
        return function("addends(c, z, n)", ["for r in range(n):", *indented(body)])
    body = ["x = np.int32(c[r])", *fp32_bits(f.c, "x", "u"), "z[r] = np.int32(u).view(np.float32)"]
    return function("addends(c, z, n)", ["for r in range(n):", *indented(body)])


def codes(f: Facts) -> str:
    """Return the function ``codes``, which encodes numbers as codes of results."""
    if f.c.is_fp64:
        bits = "np.float64(t).view(np.uint64)"
        body = ["t = z[r]", f"d[r] = np.uint64({f.nan:#x}) if t != t else {bits}"]
        return function("codes(z, d, n)", ["for r in range(n):", *indented(body)])
    body = ["t = z[r]", "u = np.float32(t).view(np.int32)"]
    if f.c.is_fp32:
        body.append("code = np.uint32(u)")
    else:
        # Times 2^-112, the exponent field of FP32 is that of FP16, also for subnormal numbers.
        body += [
            f"w = np.float32(abs(t) * np.float32({2.0 ** (f.c.bias - 127)!r})).view(np.int32)",
            f"w = np.int32(w >> {23 - f.c.fraction_bits})",
            f"w = np.int32({((1 << f.c.exponent_bits) - 1) << f.c.fraction_bits}) "
            "if abs(t) == np.inf else w",
            f"code = np.uint16(w | (u >> 31 & 1) << {f.c.width - 1})",
        ]
    kind = "np.uint32" if f.c.is_fp32 else "np.uint16"
    body.append(f"d[r] = {kind}({f.nan:#x}) if t != t else code")
    return function("codes(z, d, n)", ["for r in range(n):", *indented(body)])
