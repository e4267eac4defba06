"""``gemm`` against SoftFloat, the scalar reference and exact rationals."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.golden_cases import (
    directed_codes,
    dot_cases,
    near_exponent,
    random_codes,
    require_equal,
    stratified_fma,
)
from tests.support.golden_softfloat import softfloat
from tests.unit.golden.fp.test_dot import exact_sum, largest_exponent
from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import FORMATS, fma
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.reference import (
    decode,
    encode,
    floor_log2,
    fused_dot_reference,
    power_of_two,
)
from vitruvian.golden.m3xu import PRECISIONS, gemm, operand_dtype, product_by_steps


class Unit(NamedTuple):
    """The arguments of ``gemm`` besides the matrices."""

    precision: str
    k: int = 8
    multiplier_bits: int = 12
    preset: str = "ieee"
    window: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        return self._asdict()

    @property
    def form(self):
        return PRECISIONS[self.precision]

    @property
    def spec(self):
        return self.form.spec(**{n: x for n, x in self.options.items() if n != "precision"})

    @property
    def elements(self):
        return self.form.elements(self.k, self.multiplier_bits)

    def __str__(self):
        return "-".join(str(x) for x in self if x is not None)


UNITS = [
    Unit("fp16"),
    Unit("fp16", k=4, preset="v100"),
    Unit("fp16", preset="a100"),
    Unit("fp16", k=16, preset="h100"),
    Unit("fp16", k=9, multiplier_bits=4),
    Unit("bf16"),
    Unit("bf16", preset="a100"),
    Unit("bf16", k=16, preset="h100"),
    Unit("tf32"),
    Unit("tf32", preset="a100"),
    Unit("tf32", k=16, preset="h100"),
    Unit("fp32"),
    Unit("fp32", k=2),
    Unit("fp32", k=16, window=60),
    Unit("fp32", preset="a100"),
    Unit("fp32c"),
    Unit("fp32c", k=4),
    Unit("fp32c", k=16, window=55),
    Unit("fp64", k=5),
    Unit("fp64", k=10),
    Unit("fp64", multiplier_bits=27),
    Unit("fp64", multiplier_bits=27, window=110),
]
KINDS = ["near one", "far apart", "subnormal", "specials", "bit patterns", "cancelling"]


def choose_form(monkeypatch, compiled):
    """Use the compiled or the plain form of ``mmad`` for all sizes."""
    monkeypatch.setitem(mmad.__globals__, "_LONG", 0)
    monkeypatch.setitem(mmad.__globals__, "_MANY", 0 if compiled else 1 << 60)
    monkeypatch.setitem(mmad.__globals__, "_TILE", 1 << 60)


def codes_of(rng, format, shape, kind):
    """Return codes of one kind."""
    dtype = code_dtype(format)
    one = np.full(shape, format.one, dtype)
    if kind == "bit patterns":
        return random_codes(rng, format, shape)
    if kind in ("far apart", "cancelling"):
        return near_exponent(rng, one, format, 40)
    usual = near_exponent(rng, one, format, 5)
    if kind == "subnormal":
        small = near_exponent(rng, np.zeros(shape, dtype), format, 2)
        return np.where(rng.random(shape) < 0.6, small, usual)
    if kind == "specials":
        special = rng.random(shape) < (0.05 if rng.random() < 0.5 else 0.5)
        return np.where(special, rng.choice(directed_codes(format), shape), usual)
    return usual


def matrices(rng, unit, m, k, n, kind):
    """Return codes of A, B and C; complex matrices have a last axis (real, imaginary)."""
    part = (2,) if unit.form.is_complex else ()
    format = unit.form.format
    a = codes_of(rng, format, (m, k, *part), kind)
    b = codes_of(rng, format, (k, n, *part), kind)
    c = codes_of(rng, unit.form.output, (m, n, *part), kind)
    if kind == "cancelling":
        cancel(rng, np.moveaxis(a, 1, 0), b, c, format, unit.form.output)
    return a, b, c


def cancel(rng, columns, rows, c, format, output):
    """Make every fourth term cancel the one before, and sometimes set C to zero."""
    for i in range(0, len(rows) - 1, 4):
        columns[i + 1] = columns[i] ^ columns.dtype.type(format.sign_mask)
        rows[i + 1] = rows[i]
    if rng.random() < 0.5:
        c &= c.dtype.type(output.sign_mask)


def values(codes, unit, of_result=False):
    """Return codes as an array that ``gemm`` accepts."""
    complex_ = unit.form.is_complex
    dtype = unit.form.output.storage_bits // 8
    kind = np.dtype(f"f{dtype}") if of_result and not complex_ else operand_dtype(unit.precision)
    array = np.ascontiguousarray(codes).view(kind)
    return array[..., 0] if complex_ else array


def gemm_on_codes(gemm, a, b, c, unit):
    """Return the codes of D."""
    d = gemm(values(a, unit), values(b, unit), values(c, unit, of_result=True), **unit.options)
    if unit.form.is_complex:
        return d[..., None].view(np.uint32)
    return d.view(code_dtype(unit.form.output))


def as_dots(a, b, c, unit):
    """Return A·B + C as n real dot products (n, terms), (n, terms), (n,), and D's shape.

    A complex element gives two dot products: a_r·b_r + (−a_i)·b_i + … for the real part and
    a_r·b_i + a_i·b_r + … for the imaginary part.
    """
    shape = (a.shape[0], b.shape[1], *a.shape[1:])
    x = np.broadcast_to(a[:, None], shape)
    y = np.broadcast_to(np.swapaxes(b, 0, 1)[None], shape)
    if unit.form.is_complex:
        sign = a.dtype.type(unit.form.format.sign_mask)
        real = np.stack([x[..., 0], x[..., 1] ^ sign], axis=-1)
        x = np.stack([real, x], axis=2)
        y = np.stack([y, y[..., ::-1]], axis=2)
    terms = int(np.prod(shape[2:]))
    return x.reshape(-1, terms), y.reshape(-1, terms), c.reshape(-1)


def check_against_reference(gemm, unit, seed, kinds=KINDS, m=3, n=4, expected=fused_dot_reference):
    """Check that ``gemm`` equals the reference; return the number of dot products."""
    rng, count = np.random.default_rng(seed), 0
    for kind in kinds:
        for k in (1, unit.elements, 2 * unit.elements + 1):
            a, b, c = matrices(rng, unit, m, k, n, kind)
            x, y, z = as_dots(a, b, c, unit)
            right = [
                expected(p, q, r, unit.spec)
                for p, q, r in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
            ]
            got = gemm_on_codes(gemm, a, b, c, unit).reshape(-1)
            what = f"gemm {unit}, {kind}, K = {k}"
            operands = {"a": x, "b": y, "c": z}
            require_equal(what, got, np.array(right, got.dtype), operands, seed)
            count += len(z)
    return count


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_gemm_is_the_reference(monkeypatch, unit, compiled):
    choose_form(monkeypatch, compiled)
    assert check_against_reference(gemm, unit, seed=1) >= 200


def check_fma(gemm, precision, n, seed, **options):
    """Check that K = 1 is SoftFloat's fused multiply-add; return the number of cases."""
    a, b, c = stratified_fma(np.random.default_rng(seed), n, precision)
    unit = Unit(precision, **options)
    got = gemm_on_codes(gemm, a[:, None, None], b[:, None, None], c[:, None, None], unit)
    expected = softfloat("mul_add", (a, b, c), precision)
    what = f"gemm {unit}, K = 1, against SoftFloat"
    require_equal(what, got[:, 0, 0], expected, {"a": a, "b": b, "c": c}, seed)
    return len(c)


@pytest.mark.parametrize(
    ("precision", "options", "compiled"),
    [
        ("fp32", {"k": 8}, True),
        ("fp32", {"k": 2}, False),
        ("fp64", {"k": 5}, True),
        ("fp64", {"k": 8, "multiplier_bits": 27}, False),
    ],
)
def test_one_term_is_a_fused_multiply_add(monkeypatch, precision, options, compiled):
    choose_form(monkeypatch, compiled)
    assert check_fma(gemm, precision, 200_000, seed=2, **options) >= 200_000


@pytest.mark.parametrize(("precision", "k"), [("fp32", 8), ("fp64", 10)])
def test_outer_products_are_fused_multiply_adds(precision, k):
    rng, f = np.random.default_rng(3), FORMATS[precision]
    a = np.concatenate([directed_codes(f), random_codes(rng, f, 40)])
    b = np.concatenate([directed_codes(f), near_exponent(rng, a[:40], f, 3)])
    c = near_exponent(rng, np.full((len(a), len(b)), f.one, a.dtype), f, f.bias)
    got = gemm_on_codes(gemm, a[:, None], b[None, :], c, Unit(precision, k=k)).reshape(-1)
    x, y = np.repeat(a, len(b)), np.tile(b, len(a))
    operands = {"a": x, "b": y, "c": c.reshape(-1)}
    expected = softfloat("mul_add", tuple(operands.values()), precision)
    require_equal(f"{precision} outer product", got, expected, operands, 3)


# Complex


@pytest.mark.parametrize("elements", [1, 4, 8])
def test_complex_parts_are_exact_sums_rounded_once(elements):
    """If all operands have one exponent, nothing is cut, and the parts equal exact rationals."""
    unit, f = Unit("fp32c", k=4 * elements), FORMATS["fp32"]
    rng = np.random.default_rng(4)
    a, b = (
        near_exponent(rng, np.full((*shape, 2), f.one, np.uint32), f, 0)
        for shape in ((6, elements), (elements, 7))
    )
    c = near_exponent(rng, np.full((6, 7, 2), f.one, np.uint32), f, 3)
    d = gemm_on_codes(gemm, a, b, c, unit)
    x, y = ([[[decode(int(p), f).value for p in z] for z in row] for row in m] for m in (a, b))
    for i, j in np.ndindex(6, 7):
        real, imaginary = (decode(int(p), f).value for p in c[i, j])
        for e in range(elements):
            (a_r, a_i), (b_r, b_i) = x[i][e], y[e][j]
            real += a_r * b_r - a_i * b_i
            imaginary += a_r * b_i + a_i * b_r
        assert d[i, j].tolist() == [encode(real, f), encode(imaginary, f)], (i, j)


def test_complex_blocks_come_in_rising_k():
    unit = Unit("fp32c")
    rng = np.random.default_rng(5)
    a, b, c = (values(x, unit) for x in matrices(rng, unit, 8, 6, 8, "near one"))
    d, falling = c, c
    for i in (0, 2, 4):
        d = gemm(a[:, i : i + 2], b[i : i + 2], d, precision="fp32c")
        falling = gemm(a[:, 4 - i : 6 - i], b[4 - i : 6 - i], falling, precision="fp32c")
    assert (gemm(a, b, c, precision="fp32c") == d).all()
    assert (d != falling).any()


def test_complex_with_zero_parts_is_real():
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, 6), (6, 4), (5, 4)))
    d = gemm(a + 0j, b + 0j, c + 0j, precision="fp32c")
    assert (np.real(d) == gemm(a, b, c, precision="fp32", k=4)).all() and not np.imag(d).any()
    d = gemm(a * np.complex64(1j), b + 0j, precision="fp32c")
    assert (np.imag(d) == gemm(a, b, precision="fp32", k=4)).all() and not np.real(d).any()


# Shapes


@pytest.mark.parametrize("precision", PRECISIONS)
def test_leading_axes_and_c(precision):
    rng = np.random.default_rng(7)
    unit = Unit(precision, k=20)

    def draw(*shape):
        x = rng.standard_normal((*shape, 2)).view(np.complex128)[..., 0]
        return (x if unit.form.is_complex else x.real).astype(operand_dtype(precision))

    a, b = draw(2, 1, 3, 23), draw(4, 23, 5)
    d = gemm(a, b, precision=precision, k=20)
    assert d.shape == (2, 4, 3, 5)
    for i, j in np.ndindex(2, 4):
        assert (d[i, j] == gemm(a[i, 0], b[j], precision=precision, k=20)).all()
    zero = np.zeros((3, 5), d.dtype)
    assert (gemm(a, b, zero, precision=precision, k=20) == d).all()
    c = np.stack([zero, zero + 1])[:, None]
    with_c = gemm(a[0], b, c, precision=precision, k=20)
    assert with_c.shape == (2, 4, 3, 5) and (with_c[0] == d[0]).all()
    assert (with_c[1] == gemm(a[0], b, c[1], precision=precision, k=20)).all()
    strided = gemm(
        np.moveaxis(a, 3, 2).copy().swapaxes(2, 3), b[:, :, ::-1], precision=precision, k=20
    )
    assert (strided[..., ::-1] == d).all()


# Accuracy


def blocks_of(unit, terms, cases, seed):
    """Return ``dot_cases`` of one block as lists, and D's codes."""
    spec = unit.spec
    assert spec.k == terms
    a, b, c = dot_cases(np.random.default_rng(seed), cases, terms, spec)
    d = gemm_on_codes(gemm, a[:, None, :], b[:, :, None], c[:, None, None], unit)
    return a.tolist(), b.tolist(), c.tolist(), d[:, 0, 0].tolist()


@pytest.mark.parametrize(
    ("unit", "terms"),
    [
        (Unit("fp32"), 4),
        (Unit("fp32", k=16), 8),
        (Unit("fp64", multiplier_bits=27), 4),
        (Unit("fp64", k=40), 8),
        (Unit("tf32", k=16), 8),
        (Unit("bf16"), 8),
    ],
    ids=str,
)
def test_bound(unit, terms):
    """The result is within half a last place + K·q of the exact sum."""
    spec, checked, cut = unit.spec, 0, 0
    for x, y, z, code in zip(*blocks_of(unit, terms, 1200, seed=8), strict=True):
        result = decode(code, spec.output)
        if result.kind != "finite":
            continue
        checked += 1
        place = power_of_two(result.exponent - spec.output.fraction_bits)
        q = power_of_two(largest_exponent(x, y, z, spec) - (spec.sum.window or 0))
        error = abs(result.value - exact_sum(x, y, z, spec))
        assert error <= place / 2 + terms * q, (x, y, z, code)
        cut += error > place / 2
    assert checked > 500
    assert cut > 0  # the second part of the bound is needed


def errors(exact, codes, format):
    """Return the mean distance from exact sums, in last places of the exact sum."""
    total = Fraction(0)
    for x, code in zip(exact, codes, strict=True):
        place = power_of_two(max(floor_log2(abs(x)), format.emin) - format.fraction_bits)
        total += abs(decode(code, format).value - x) / place
    return float(total / len(exact))


@pytest.mark.parametrize("terms", [4, 8])
@pytest.mark.parametrize(("precision", "bits", "lanes"), [("fp32", 12, 2), ("fp64", 27, 2)])
def test_better_than_a_chain_of_fused_multiply_adds(precision, bits, lanes, terms):
    rng, f = np.random.default_rng(9), FORMATS[precision]
    unit = Unit(precision, k=terms * lanes, multiplier_bits=bits)
    dtype = code_dtype(f)
    a, b, c = (
        rng.standard_normal((1500, terms)[:axes]).astype(f"f{dtype.itemsize}").view(dtype)
        for axes in (2, 2, 1)
    )
    d = gemm_on_codes(gemm, a[:, None, :], b[:, :, None], c[:, None, None], unit)[:, 0, 0]
    chain = c
    for i in range(terms):
        chain = fma(a[:, i], b[:, i], chain, precision)
    exact = [
        exact_sum(x, y, z, unit.spec)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    fused, chained = errors(exact, d.tolist(), f), errors(exact, chain.tolist(), f)
    assert fused < 0.26 and chained > 2.5 * fused, (fused, chained)


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_worse_where_large_terms_cancel_exactly(precision):
    """2^60 − 2^60 + 1, with 1 below the window, leaves a sticky bit; a chain of FMAs gives 1."""
    dtype = operand_dtype(precision)
    unit = Unit(precision, multiplier_bits=27 if precision == "fp64" else 12)
    window = unit.spec.sum.window
    assert window is not None
    large = 2.0 ** (window // 2 + 6)
    a = np.array([[large, -large, 1, 0]], dtype)
    b = np.array([[large], [large], [1], [0]], dtype)
    got = float(gemm(a, b, **unit.options)[0, 0])
    q = large * large / 2.0**window
    assert q == 2.0**12 and got == q / 2  # only the sticky bit, of weight q/2
    assert abs(got - 1) <= q * unit.spec.k
    codes = [x.view(code_dtype(precision)) for x in (a[0], b[:, 0])]
    chain = np.zeros(1, codes[0].dtype)
    for x, y in zip(*codes, strict=True):
        chain = fma(np.array([x]), np.array([y]), chain, precision)
    assert chain.view(dtype)[0] == 1
    small = 2.0 ** (window // 2 - 6)  # with 1 inside the window
    a[0, :2], b[:2, 0] = (small, -small), small
    assert gemm(a, b, **unit.options)[0, 0] == 1


# Limbs


def rounded_sum(terms, spec):
    """Truncate finite terms (exponent, exact value) in the ``ieee`` window and round their sum."""
    largest = max((exponent for exponent, value in terms if value), default=0)
    q = power_of_two(largest - spec.sum.window)
    units = [value / q for _, value in terms]
    sticky = any(u.denominator != 1 for u in units)
    total = sum(u.numerator // u.denominator for u in units) + Fraction(int(sticky), 2)
    return encode(total * q, spec.output)


def dot_by_limbs(a, b, c, spec, multiplier_bits=12):
    """Return the fused sum of finite operands, with products formed in steps."""
    if len(a) > spec.k:
        last = (len(a) - 1) // spec.k * spec.k
        c = dot_by_limbs(a[:last], b[:last], c, spec, multiplier_bits)
        a, b = a[last:], b[last:]
    sizes = {"limbs": -(-spec.input.significand_bits // multiplier_bits), "bits": multiplier_bits}
    z = decode(c, spec.output)
    terms = [(z.exponent, z.value)]
    for p, q in zip(a, b, strict=True):
        x, y = decode(p, spec.input), decode(q, spec.input)
        product = product_by_steps(x.significand, y.significand, **sizes)
        exponent = x.exponent + y.exponent
        value = product * power_of_two(exponent - 2 * spec.input.fraction_bits)
        terms.append((exponent, -value if x.sign != y.sign else value))
    return rounded_sum(terms, spec)


@pytest.mark.parametrize("unit", [u for u in UNITS if u.form.is_wide(u.multiplier_bits)], ids=str)
def test_gemm_is_the_sum_of_limb_products(unit):
    def expected(a, b, c, spec):
        return dot_by_limbs(a, b, c, spec, unit.multiplier_bits)

    kinds = ["near one", "far apart"]
    assert check_against_reference(gemm, unit, 10, kinds=kinds, expected=expected) >= 72
