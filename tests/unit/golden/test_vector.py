"""``golden.vector`` against Berkeley SoftFloat, ``golden.fp`` and 40 decimal digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import vitruvian.golden.fp as fp
from tests.support.golden_softfloat import softfloat, softfloat_to_int
from vitruvian.golden import vector
from vitruvian.golden.vector import functions

ALL = np.arange(1 << 16, dtype=np.uint16)
FLOATS = {"fp16": np.float16, "fp32": np.float32}
BINARY = {"add": vector.add, "sub": vector.sub, "mul": vector.mul, "div": vector.div}


def patterns(rng, name, count):
    """Return codes of every class, including close exponents."""
    if name == "fp16":
        return rng.integers(0, 1 << 16, count, dtype=np.uint16)
    codes = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    special = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC12345, 0x7F812345, 1, 0x80000001]
    special = np.array(special, np.uint32)
    codes[:: max(count // 50, 1)] = rng.choice(special, len(codes[:: max(count // 50, 1)]))
    return codes


def bits(values):
    return np.asarray(values).view(np.dtype(f"u{np.asarray(values).dtype.itemsize}"))


@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("name", FLOATS)
def test_arithmetic_equals_softfloat(name, operation):
    rng = np.random.default_rng(1)
    a = ALL if name == "fp16" else patterns(rng, name, 30000)
    b = patterns(rng, name, len(a))
    if name == "fp32":
        near = slice(None, None, 2)  # exponents that are close
        b[near] = a[near] ^ rng.integers(0, 1 << 25, len(a[near]), dtype=np.uint32)
    result = bits(BINARY[operation](a.view(FLOATS[name]), b.view(FLOATS[name])))
    assert np.array_equal(result, softfloat(operation, (a, b), name))
    assert operation == "div" or np.count_nonzero(result == 0x7E00 if name == "fp16" else result)


@pytest.mark.parametrize("name", FLOATS)
def test_square_roots_equal_softfloat(name):
    a = ALL if name == "fp16" else patterns(np.random.default_rng(2), name, 30000)
    assert np.array_equal(bits(vector.sqrt(a.view(FLOATS[name]))), softfloat("sqrt", (a,), name))


@pytest.mark.parametrize("name", FLOATS)
def test_reciprocal_is_a_division(name):
    a = ALL if name == "fp16" else patterns(np.random.default_rng(3), name, 30000)
    one = np.full_like(a, fp.FORMATS[name].one)
    assert np.array_equal(bits(vector.rec(a.view(FLOATS[name]))), softfloat("div", (one, a), name))


@pytest.mark.parametrize("name", FLOATS)
def test_maximum_minimum_and_order_equal_golden_fp(name):
    rng = np.random.default_rng(4)
    a, b = patterns(rng, name, 20000), patterns(rng, name, 20000)
    b[::7] = a[::7]
    b[::11] = a[::11] ^ fp.FORMATS[name].sign_mask
    a[:4] = [0, fp.FORMATS[name].negative_zero] * 2
    b[:4] = [fp.FORMATS[name].negative_zero, 0, 0, fp.FORMATS[name].negative_zero]
    x, y = a.view(FLOATS[name]), b.view(FLOATS[name])
    assert np.array_equal(bits(vector.maximum(x, y)), fp.maximum_number(a, b, name))
    assert np.array_equal(bits(vector.minimum(x, y)), fp.minimum_number(a, b, name))
    assert np.array_equal(bits(vector.relu(x)), fp.maximum_number(a, np.zeros_like(a), name))
    order = fp.compare(a, b, name)
    masks = {"eq": order == 0, "ne": order != 0, "lt": order == -1, "gt": order == 1}
    masks |= {"le": (order == -1) | (order == 0), "ge": (order == 1) | (order == 0)}
    for condition, expected in masks.items():
        assert np.array_equal(vector.compare(x, y, condition), expected), condition


def test_multiply_add_is_softfloats():
    rng = np.random.default_rng(5)
    for name in FLOATS:
        a, b, c = (patterns(rng, name, 5000) for _ in range(3))
        result = vector.multiply_add(*(v.view(FLOATS[name]) for v in (a, b, c)))
        assert np.array_equal(bits(result), softfloat("mul_add", (a, b, c), name))
    a, b = (patterns(rng, "fp16", 5000) for _ in range(2))
    c = patterns(rng, "fp32", 5000)
    result = vector.multiply_add(a.view(np.float16), b.view(np.float16), c.view(np.float32))
    wide = [softfloat("to", (v,), "fp16", "fp32") for v in (a, b)]
    assert np.array_equal(bits(result), softfloat("mul_add", (*wide, c), "fp32"))


def test_half_multiply_add_rounds_once_near_ties():
    """Products near 1 and addends of their last bits, and pairs of very different size."""
    rng = np.random.default_rng(6)
    a, b, c = (rng.integers(0, 1 << 16, 60000, dtype=np.uint16) for _ in range(3))
    near = slice(0, 30000)
    a[near], b[near] = ((v[near] & 0x83FF) | 0x3C00 for v in (a, b))
    c[near] &= 0x8FFF
    # Large products with subnormal addends, and large addends with the smallest products.
    a[40000:50000] |= 0x7800
    b[40000:50000] = (b[40000:50000] & 0x83FF) | 0x3C00
    c[40000:50000] &= 0x83FF
    a[50000:], b[50000:] = a[50000:] & 0x83FF, b[50000:] & 0x83FF
    x, y, z = (v.view(np.float16) for v in (a, b, c))
    expected = fp.fma(a, b, c, "fp16")
    assert np.array_equal(bits(vector.multiply_add(x, y, z)), expected)
    # FP32 is too narrow: the sum would be rounded twice.
    with np.errstate(all="ignore"):
        twice = (x.astype(np.float32) * y + z).astype(np.float16)
    numbers = ~np.isnan(twice)
    assert (bits(twice)[numbers] != expected[numbers]).sum() > 10


EXACT = {"exp": Decimal.exp, "ln": Decimal.ln, "rsqrt": lambda x: 1 / x.sqrt()}


def neighbours(values):
    """Return the midpoints to the adjacent numbers; overflow begins at a power of two."""
    kind = values.dtype.type
    top = 2.0 ** np.finfo(kind).maxexp
    ends = [np.nextafter(values, kind(s)).astype(np.float64) for s in (-np.inf, np.inf)]
    own = np.clip(values.astype(np.float64), -top, top)
    low, high = [(own + np.clip(end, -top, top)) / 2 for end in ends]
    return np.where(values == -np.inf, -np.inf, low), np.where(values == np.inf, np.inf, high)


def wrongly_rounded(name, x, result) -> int:
    """Return how many results are not the number nearest to the exact value."""
    low, high = neighbours(result)
    wrong = 0
    with localcontext() as context:
        context.prec = 40
        for value, a, b in zip(x.astype(float), low, high, strict=True):
            exact = EXACT[name](Decimal(float(value)))
            wrong += not Decimal(float(a)) <= exact <= Decimal(float(b))
    return wrong


def domain(name, x):
    """Return arguments with nontrivial results: not too large, positive for roots and ln."""
    good = np.isfinite(x) & ((x > 0) | (name == "exp"))
    limit = {np.float16: 17.5, np.float32: 104.5}[x.dtype.type]
    return x[good & ((np.abs(x) < limit) | (name != "exp")) & (x != 0)]


@pytest.mark.parametrize("name", EXACT)
def test_every_fp16_result_is_correctly_rounded(name):
    x = domain(name, ALL.view(np.float16))
    assert len(x) == {"exp": 39102, "ln": 31743, "rsqrt": 31743}[name]
    assert wrongly_rounded(name, x, getattr(vector, name)(x)) == 0


@pytest.mark.parametrize("name", EXACT)
def test_fp32_results_are_correctly_rounded(name):
    rng = np.random.default_rng(6)
    x = patterns(rng, "fp32", 6000).view(np.float32)
    if name == "exp":
        x = np.concatenate([x, rng.uniform(-104, 89, 4000).astype(np.float32)])
    if name == "ln":
        x = np.concatenate([x, (1 + rng.uniform(-1e-3, 1e-3, 3000)).astype(np.float32)])
    x = domain(name, x)
    assert len(x) > 2500
    assert wrongly_rounded(name, x, getattr(vector, name)(x)) == 0


def test_the_arbiter_decides_what_float64_cannot(monkeypatch):
    """A float64 error of 2^-30 changes results, unless the doubt bound covers that error."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-20, 20, 20000).astype(np.float32)
    expected = vector.exp(x)
    with monkeypatch.context() as patch:
        patch.setattr(functions.np, "exp", lambda v, _exp=np.exp: _exp(v) * (1 + 2.0**-30))
        assert not np.array_equal(functions.exp(x), expected)
        patch.setattr(functions, "_DOUBT", 2.0**-29)
        assert np.array_equal(functions.exp(x), expected)
    tiny = np.float32(-103.97208)  # just above and below half of the smallest subnormal
    ends = np.array([np.nextafter(tiny, np.float32(0)), np.nextafter(tiny, np.float32(-200))])
    with monkeypatch.context() as patch:
        patch.setattr(functions, "_DOUBT", 2.0**-8)
        assert np.array_equal(vector.exp(ends), [2.0**-149, 0])


def test_special_values():
    for kind in (np.float16, np.float32):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1, 1], kind)
        nan = 0x7E00 if kind is np.float16 else 0x7FC00000
        inf = np.inf

        def is_now(result, expected, x=x, nan=nan):
            result, expected = np.asarray(result), np.asarray(expected, x.dtype)
            assert np.array_equal(np.isnan(result), np.isnan(expected))
            assert (bits(result)[np.isnan(result)] == nan).all()
            keep = ~np.isnan(result)
            assert np.array_equal(bits(result)[keep], bits(expected)[keep])

        is_now(vector.exp(x)[:5], [1, 1, inf, 0, np.nan])
        is_now(vector.ln(x), [-inf, -inf, inf, np.nan, np.nan, np.nan, 0])
        is_now(vector.rsqrt(x), [inf, -inf, 0, np.nan, np.nan, np.nan, 1])
        is_now(vector.rec(x), [inf, -inf, 0, -0.0, np.nan, -1, 1])
        is_now(vector.absolute(x), [0, 0, inf, inf, np.nan, 1, 1])
        is_now(vector.relu(x), [0, 0, inf, 0, 0, 0, 1])
        is_now(vector.leaky_relu(x, 0.5), [0, -0.0, inf, -inf, np.nan, -0.5, 1])
    assert vector.exp(np.float16(1)).dtype == np.float16


def test_integers_wrap():
    a = np.array([32767, -32768, 5], np.int16)
    assert vector.add(a, np.int16(1)).tolist() == [-32768, -32767, 6]
    assert vector.mul(a, a).tolist() == [1, 0, 25]
    assert vector.absolute(a).tolist() == [32767, -32768, 5]
    assert vector.maximum(a, np.int16(4)).tolist() == [32767, 4, 5]
    wide = np.array([-(2**31), 2**31 - 1], np.int32)
    assert vector.sub(wide, np.int32(1)).tolist() == [2**31 - 1, 2**31 - 2]
    rng = np.random.default_rng(8)
    x, y = (rng.integers(-(2**31), 2**31, 500).astype(np.int32) for _ in range(2))
    exact = [((int(p) * int(q) + 2**31) % 2**32) - 2**31 for p, q in zip(x, y, strict=True)]
    assert vector.mul(x, y).tolist() == exact


def test_bits_and_shifts():
    a, b = ALL.view(np.float16), ALL[::-1].view(np.float16)
    assert np.array_equal(bits(vector.bitwise_and(a, b)), ALL & ALL[::-1])
    assert np.array_equal(bits(vector.bitwise_or(a, b)), ALL | ALL[::-1])
    assert np.array_equal(bits(vector.bitwise_not(a)), ~ALL)
    for kind in (np.int16, np.uint16, np.int32, np.uint32):
        x = np.array([0, 1, 5, -7, np.iinfo(kind).min, np.iinfo(kind).max]).astype(kind)
        width = np.iinfo(kind).bits
        for amount in (0, 1, 3, width - 1, width, 32):
            left = [(int(v) << amount) % 2**width for v in x]
            assert [int(v) % 2**width for v in vector.shift_left(x, amount)] == left
            right = [int(v) >> amount for v in x]
            assert vector.shift_right(x, amount).tolist() == right
            half = 1 << amount >> 1
            nearest = [((int(v) + half) >> amount) for v in x]
            result = vector.shift_right(x, amount, nearest=True)
            assert [int(v) for v in result] == nearest, (kind, amount)


@pytest.mark.parametrize("rounding", "rafcz")
def test_conversions_to_integers_equal_softfloat(rounding):
    rng = np.random.default_rng(9)
    for source in FLOATS:
        codes = ALL if source == "fp16" else patterns(rng, source, 20000)
        if source == "fp32":
            codes[::3] = bits(
                (rng.uniform(-300, 300, len(codes[::3])) * 2).round().astype("f4") / 2
            )
        values = codes.view(FLOATS[source])
        keep = ~np.isnan(values)
        exact = softfloat_to_int(codes, source, vector.ROUNDINGS[rounding]).astype(np.int64)
        for target in ("int8", "uint8", "int16", "int32"):
            bounds = np.iinfo(target)
            result = vector.convert(values, source, target, rounding)
            expected = np.clip(exact, bounds.min, bounds.max)
            assert np.array_equal(result[keep], expected[keep]), (source, target)
            assert not result[~keep].any()
    if rounding == "r":
        wide = vector.convert(
            np.array([2.0**40 + 2**18, -1e30, np.inf], "f4"), "fp32", "int64", "r"
        )
        assert wide.tolist() == [2**40 + 2**18, -(2**63), 2**63 - 1]


def test_conversions_between_formats():
    rng = np.random.default_rng(10)
    codes = patterns(rng, "fp32", 30000)
    codes[::2] = bits(rng.normal(0, 1000, len(codes[::2])).astype(np.float32))
    codes[::50] = bits(rng.integers(-2048, 2048, 600).astype(np.float32))
    values = codes.view(np.float32)
    for rounding in "rafcz":
        mode = vector.ROUNDINGS[rounding]
        for target in ("fp16", "bf16"):
            result = vector.convert(values, "fp32", target, rounding)
            assert np.array_equal(bits(result), fp.convert(codes, "fp32", target, mode))
    exact = softfloat("to", (codes,), "fp32", "fp16")
    assert np.array_equal(bits(vector.convert(values, "fp32", "fp16")), exact)
    assert vector.convert(
        np.array([65519.9, 65520, -1e9], np.float32), "fp32", "fp16"
    ).tolist() == [
        65504,
        np.inf,
        -np.inf,
    ]
    back = vector.convert(ALL.view(np.float16), "fp16", "fp32")
    assert np.array_equal(bits(back), softfloat("to", (ALL,), "fp16", "fp32"))
    odd = vector.convert(values, "fp32", "fp16", "o").astype(np.float64)
    down = vector.convert(values, "fp32", "fp16", "f").astype(np.float64)
    up = vector.convert(values, "fp32", "fp16", "c").astype(np.float64)
    exact_too = np.isnan(values) | (odd == values)
    finite = ~exact_too & (np.abs(values) <= 65504)
    assert exact_too.sum() > 100 and finite.sum() > 1000
    assert (((odd == down) | (odd == up)) | exact_too | ~finite).all()
    assert (bits(vector.convert(values, "fp32", "fp16", "o"))[finite] & 1).all()


def test_conversions_from_and_between_integers():
    rng = np.random.default_rng(11)
    values = rng.integers(-(2**31), 2**31, 5000).astype(np.int32)
    values[:6] = [2**24 + 1, 2**24 + 3, -(2**31), 2**31 - 1, 65519, 65520]
    assert np.array_equal(vector.convert(values, "int32", "fp32"), values.astype(np.float32))
    result = vector.convert(values, "int32", "fp16")
    assert np.array_equal(bits(result), fp.from_int(values, "fp16"))
    assert result[4:6].tolist() == [65504, np.inf]
    assert vector.convert(values, "int32", "int16").tolist() == [
        min(max(int(v), -32768), 32767) for v in values
    ]
    small = np.arange(-128, 128, dtype=np.int8)
    assert np.array_equal(vector.convert(small, "int8", "fp16"), small.astype(np.float16))
    assert vector.convert(np.array([-5, 300], np.int16), "int16", "uint8").tolist() == [0, 255]


@pytest.mark.parametrize("target", ["fp16", "fp32"])
def test_int64_from_2_to_60_on_is_refused(target):
    top = (1 << 60) - 1
    near = np.array([top, -top], np.int64)
    assert np.array_equal(vector.convert(near, "int64", target), near.astype(FLOATS[target]))
    for value in (1 << 60, -(1 << 60), 1 << 61, -(1 << 63)):
        with pytest.raises(ValueError, match=r"of 64-bit integers must be below 2\*\*60"):
            vector.convert(np.array([0, value], np.int64), "int64", target)
    with pytest.raises(ValueError, match=r"of 64-bit integers must be below 2\*\*60"):
        vector.convert(np.array([2**64 - 5], np.uint64), "uint64", target)  # not read as −5


def tree(codes, name):
    """Return the sum by halves with ``golden.fp.add``, or None if no lane is enabled."""
    if len(codes) == 1:
        return codes[0]
    half = len(codes) // 2
    a, b = tree(codes[:half], name), tree(codes[half:], name)
    if a is None or b is None:
        return b if a is None else a
    return fp.add(a, b, name)


@pytest.mark.parametrize("name", FLOATS)
def test_sums_are_trees_of_rounded_additions(name):
    rng = np.random.default_rng(12)
    lanes = 16
    values = rng.normal(0, 100, (60, lanes)).astype(FLOATS[name])
    values[:5, 3] = np.inf
    values[:2, 9] = [np.nan, -np.inf]
    different = 0
    for row in values:
        mask = rng.random(lanes) < 0.7
        codes = [c if m else None for c, m in zip(bits(row), mask, strict=True)]
        expected = tree(codes, name)
        result = bits(vector.sum_tree(row, mask))
        assert expected is None or result == expected
        different += bits(np.add.reduce(row, where=mask, dtype=row.dtype)) != result
    assert different > 5  # the order matters
    whole = vector.sum_tree(values)
    assert whole.shape == (60,) and bits(whole)[7] == tree(list(bits(values[7])), name)
    assert vector.pair_sums(values).shape == (60, lanes // 2)
    assert bits(vector.sum_tree(values[0], np.zeros(lanes, bool))) == fp.FORMATS[name].negative_zero


@pytest.mark.parametrize("name", ["fp16", "fp32", "int16", "int32"])
def test_extremes_and_their_lanes(name):
    rng = np.random.default_rng(13)
    kind = FLOATS.get(name, name)
    a = rng.integers(-4, 5, (200, 32)).astype(kind)
    if name in FLOATS:
        a[rng.random(a.shape) < 0.1] = np.nan
        a[rng.random(a.shape) < 0.1] = -0.0
        a[0], a[1] = np.nan, [np.nan] * 31 + [-np.inf]
    mask = rng.random(32) < 0.6
    for reduce, pick in ((vector.largest, max), (vector.smallest, min)):
        values, lanes = reduce(a, mask)
        for row, value, lane in zip(a, values, lanes, strict=True):
            numbers = [i for i in range(32) if mask[i] and row[i] == row[i]]
            if not numbers:
                assert np.isnan(value) and lane == np.argmax(mask)
                continue
            best = pick((float(row[i]), not np.signbit(float(row[i]))) for i in numbers)
            expected = next(
                i for i in numbers if (float(row[i]), not np.signbit(float(row[i]))) == best
            )
            assert lane == expected and bits(value) == bits(row[expected])


def test_bits_are_packed_from_the_lowest():
    rng = np.random.default_rng(14)
    truth = rng.random((5, 128)) < 0.5
    packed = vector.pack(truth)
    assert packed.shape == (5, 16)
    for row, data in zip(truth, packed, strict=True):
        number = int.from_bytes(data.tobytes(), "little")
        assert [number >> lane & 1 for lane in range(128)] == row.astype(int).tolist()
    assert np.array_equal(vector.unpack_bits(packed, 100), truth[:, :100])
    a, b = np.arange(128, dtype=np.float32), -np.arange(128, dtype=np.float32)
    assert np.array_equal(vector.select(truth[0], a, b), np.where(truth[0], a, b))


def test_transposition():
    a = np.arange(3 * 256, dtype=np.uint16).reshape(3, 16, 16)
    result = vector.transpose(a)
    assert all(
        result[k, i, j] == a[k, j, i] for k in range(3) for i in range(16) for j in range(16)
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: vector.add(np.float16(1), np.float32(1)),
            TypeError,
            "the same vector element type",
        ),
        (lambda: vector.add(np.float64(1), np.float64(1)), TypeError, "not float64"),
        (lambda: vector.exp(np.int32(1)), TypeError, "all float16 or all float32, not int32"),
        (lambda: vector.div(np.int32(1), np.int32(1)), TypeError, "all float16 or all float32"),
        (lambda: vector.convert(np.float32(1), "fp16", "fp32"), TypeError, r"float16 \(fp16\)"),
        (lambda: vector.convert(np.float32(1), "fp32", "fp8"), ValueError, "format must be one of"),
        (lambda: vector.convert(np.float32(1), "fp32", "fp16", "x"), ValueError, "one of r, a, f"),
        (lambda: vector.convert(np.float32(1), "fp32", "int8", "o"), ValueError, "odd rounding"),
        (lambda: vector.compare(np.float16(1), np.float16(1), "lo"), ValueError, "one of eq, ne"),
        (lambda: vector.sum_tree(np.zeros(3, np.float16)), ValueError, "a power of two, not"),
        (lambda: vector.transpose(np.zeros((16, 8))), ValueError, r"must be \(..., 16, 16\)"),
        (lambda: vector.shift_left(np.float16(1), 1), TypeError, "must be integers"),
        (lambda: vector.multiply_add(np.float32(1), np.float32(1), np.float16(1)), TypeError, "c "),
    ],
)
def test_errors_name_the_mistake(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("dtype", "count"), [("uint16", 16), ("float16", 16), ("int32", 8)])
def test_blocks_are_filled(dtype, count):
    a = np.arange(24).astype(dtype).reshape(3, 8)
    blocks = vector.fill_blocks(a)
    assert blocks.shape == (3, 8, count) and blocks.dtype == a.dtype
    assert all((blocks[i, k] == a[i, k]).all() for i in range(3) for k in range(8))
    nan = np.array([0x7E01], np.uint16).view(np.float16)
    assert (vector.fill_blocks(nan).view(np.uint16) == 0x7E01).all()
    with pytest.raises(TypeError, match="elements must have 2 or 4 bytes, not 8"):
        vector.fill_blocks(np.zeros(8))
