"""Difficult operands and a comparison with a useful report, for the tests of ``golden.fp``."""

import numpy as np

from vitruvian.golden.fp import FORMATS, FloatFormat, convert, mul
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.reference import fused_dot_reference


def as_format(format) -> FloatFormat:
    return format if isinstance(format, FloatFormat) else FORMATS[format]


def random_codes(rng, format, shape):
    """Return uniformly distributed bit patterns."""
    f = as_format(format)
    words = rng.integers(0, 1 << 32, (2, *np.atleast_1d(shape)), dtype=np.uint64)
    bits = words[0] << np.uint64(32) | words[1]
    return (bits & np.uint64((1 << f.code_bits) - 1)).astype(code_dtype(f))


def directed_codes(format):
    """Return zeros, subnormals, ends of the normal range, ones, infinities and NaNs, both signs."""
    f = as_format(format)
    step = 1 << f.storage_shift
    codes = [
        f.zero,
        f.min_subnormal,
        3 * step,
        f.min_normal - step,
        f.min_normal,
        f.min_normal + step,
        f.one - step,
        f.one,
        f.one + step,
        f.one | f.fraction_mask & ~f.fraction_mask >> 1,  # 1.5
        f.max_finite & ~step,
        f.max_finite,
        f.canonical_nan,
    ]
    if f.infinity is not None:
        codes += [f.infinity, f.infinity + step]  # the second NaN is signalling
    codes += [code | f.sign_mask for code in codes]
    return np.array(codes, code_dtype(f))


def sparse_codes(rng, format, shape):
    """Return codes of all exponents with few significand bits set or clear, which give ties."""
    f = as_format(format)
    fraction = np.zeros(shape, np.uint64)
    for _ in range(2):
        bit = rng.integers(0, f.fraction_bits + 1, shape).astype(np.uint64)
        fraction |= np.uint64(1) << bit
    fraction = np.where(rng.random(shape) < 0.2, ~fraction, fraction)
    fraction &= np.uint64((1 << f.fraction_bits) - 1)
    exponent = rng.integers(0, f.exponent_ones + 1, shape).astype(np.uint64)
    sign = rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(f.width - 1)
    code = (sign | exponent << np.uint64(f.fraction_bits) | fraction) << np.uint64(f.storage_shift)
    return code.astype(code_dtype(f))


def near_exponent(rng, codes, format, reach):
    """Return random codes whose exponent field is within ``reach`` of that of ``codes``."""
    f = as_format(format)
    position = np.uint64(f.fraction_bits + f.storage_shift)
    field = (codes.astype(np.uint64) >> position & np.uint64(f.exponent_ones)).astype(np.int64)
    field = np.clip(field + rng.integers(-reach, reach + 1, codes.shape), 0, f.exponent_ones - 1)
    keep = np.uint64(f.sign_mask | f.fraction_mask)
    other = np.where(
        rng.random(codes.shape) < 0.5,
        random_codes(rng, f, codes.shape),
        sparse_codes(rng, f, codes.shape),
    ).astype(np.uint64)
    return ((other & keep) | field.astype(np.uint64) << position).astype(code_dtype(f))


def stratified_fma(rng, n, format):
    """Return about ``n`` triples of codes for a fused multiply-add in one format.

    There are five classes of equal size: bit patterns; sparse significands; addends near the
    product's exponent; addends that cancel the rounded product up to a few last places; small
    operands. All combinations of the directed codes follow.
    """
    f = as_format(format)
    m = n // 5
    x, y = random_codes(rng, f, m), random_codes(rng, f, m)
    classes = [(x, y, random_codes(rng, f, m))]
    x, y = sparse_codes(rng, f, m), sparse_codes(rng, f, m)
    classes.append((x, y, sparse_codes(rng, f, m)))
    x = near_exponent(rng, np.full(m, f.one, code_dtype(f)), f, f.bias)
    y = near_exponent(rng, np.full(m, f.one, code_dtype(f)), f, f.bias)
    product = mul(x, y, f)
    classes.append((x, y, near_exponent(rng, product, f, f.fraction_bits + 4)))
    places = rng.integers(-3, 4, m).astype(code_dtype(f)) << code_dtype(f).type(f.storage_shift)
    classes.append((x, y, (product + places) ^ code_dtype(f).type(f.sign_mask)))
    small = near_exponent(rng, np.zeros(m, code_dtype(f)), f, 3)
    middle = near_exponent(rng, np.full(m, f.one, code_dtype(f)), f, f.fraction_bits + 3)
    classes.append((small, middle, near_exponent(rng, mul(small, middle, f), f, 3)))
    d = directed_codes(f)
    x, y, z = np.meshgrid(d, d, d)
    classes.append((x.ravel(), y.ravel(), z.ravel()))
    return tuple(np.concatenate(part) for part in zip(*classes, strict=True))


def dot_cases(rng, n, k, spec):
    """Return operands (n, k), (n, k), (n,) of a fused dot product, class by class.

    The classes are bit patterns; directed codes; sparse significands near 1 with C around them;
    pairs of terms that cancel; products of small numbers; and zeros times large numbers beside
    small products.
    """
    a_format, b_format, out = spec.input, spec.input_b, spec.output
    m = max(n // 6, 1)

    def around_one(format, shape, reach):
        one = np.full(shape, format.one, code_dtype(format))
        return near_exponent(rng, one, format, reach)

    def small(format, shape):
        return near_exponent(rng, np.zeros(shape, code_dtype(format)), format, 2)

    a = [random_codes(rng, a_format, (m, k))]
    b = [random_codes(rng, b_format, (m, k))]
    c = [random_codes(rng, out, m)]
    a.append(rng.choice(directed_codes(a_format), (m, k)))
    b.append(rng.choice(directed_codes(b_format), (m, k)))
    c.append(rng.choice(directed_codes(out), m))
    a.append(around_one(a_format, (m, k), 6))
    b.append(around_one(b_format, (m, k), 6))
    c.append(around_one(out, m, 20))
    x, y = around_one(a_format, (m, k), 12), around_one(b_format, (m, k), 12)
    half = k // 2
    x[:, half : 2 * half] = x[:, :half] ^ x.dtype.type(a_format.sign_mask)
    y[:, half : 2 * half] = y[:, :half]
    x[:, 0] = small(a_format, m)
    a.append(x)
    b.append(y)
    c.append(np.where(rng.random(m) < 0.5, small(out, m), around_one(out, m, 30)))
    a.append(small(a_format, (m, k)))
    b.append(small(b_format, (m, k)))
    c.append(np.where(rng.random(m) < 0.5, small(out, m), np.zeros(m, code_dtype(out))))
    x, y = small(a_format, (m, k)), around_one(b_format, (m, k), 6)
    zero = (
        rng.random((m, k)) < 0.4
    )  # zero products whose exponents would be the largest if zeros counted
    x[zero] &= x.dtype.type(a_format.sign_mask)
    y[zero] = b_format.max_finite
    a.append(x)
    b.append(y)
    c.append(np.where(rng.random(m) < 0.5, small(out, m), np.zeros(m, code_dtype(out))))
    return np.concatenate(a), np.concatenate(b), np.concatenate(c)


def require_equal(what, got, expected, operands, seed):
    """Assert equality; a failure shows operation, operands in hex, both results and the seed."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape} against {expected.shape}"
    wrong = np.flatnonzero(got != expected)
    if len(wrong):
        i = wrong[0]

        def text(x):
            return " ".join(f"{int(v):#x}" for v in np.atleast_1d(x[i]))

        shown = ", ".join(f"{name} = {text(np.asarray(x))}" for name, x in operands.items())
        raise AssertionError(
            f"{what}: {len(wrong)} of {len(got)} differ; first at {i}: {shown}: "
            f"golden {text(got)}, expected {text(expected)} (seed {seed})"
        )


def check_against_reference(fused_dot, spec, n, k, seed):
    """Check that ``fused_dot`` and the scalar reference agree on ``n`` cases."""
    a, b, c = dot_cases(np.random.default_rng(seed), n, k, spec)
    expected = np.array(
        [
            fused_dot_reference(x, y, z, spec)
            for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        ],
        code_dtype(spec.output),
    )
    what = (
        f"fused_dot {spec.input} x {spec.input_b} -> {spec.output}, K = {k}, F = {spec.sum.window}"
    )
    require_equal(what, fused_dot(a, b, c, spec), expected, {"a": a, "b": b, "c": c}, seed)


def check_against_silicon(fused_dot, preset, inputs, input_b, data):
    """Check ``fused_dot`` against a data set's measured outputs; return how many were compared."""
    count = 0
    for output in ("fp32", "fp16"):
        if f"d_{output}" not in data:
            continue
        spec = preset.spec(inputs, output, input_b=input_b)
        a, b = convert(data["a"], "fp32", spec.input), convert(data["b"], "fp32", spec.input_b)
        c = convert(data["c"], "fp32", output)
        # The operands are values of the input format, so their conversion is exact.
        nan_a, nan_b = (np.isnan(data[x].view(np.float32)) for x in "ab")
        assert np.array_equal(convert(a, spec.input, "fp32")[~nan_a], data["a"][~nan_a])
        assert np.array_equal(convert(b, spec.input_b, "fp32")[~nan_b], data["b"][~nan_b])
        d = fused_dot(a, b, c, spec)
        measured = data[f"d_{output}"]
        if output == "fp16":
            nan = (d & 0x7C00 == 0x7C00) & (d & 0x3FF != 0)
            d = np.where(nan, np.uint32(0x7FFFFFFF), convert(d, "fp16", "fp32"))
            measured_nan = np.isnan(measured.view(np.float32))
            measured = np.where(measured_nan, np.uint32(0x7FFFFFFF), measured)
        require_equal(
            f"{preset.name} {inputs} -> {output}", d, measured, {"a": a, "b": b, "c": c}, None
        )
        count += len(d)
    return count
