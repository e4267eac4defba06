"""The stimuli of the benches have the properties that their docstrings promise."""

from fractions import Fraction

import numpy as np
import pytest

from vitruvian.golden.fp import FORMATS, DotSpec
from vitruvian.golden.fp.reference import decode, floor_log2
from vitruvian.golden.fp.spec import IntDotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.simd2 import IntConfig
from vitruvian.sim.bench.cube.operands import draw_addends, draw_operands, make_near_ties
from vitruvian.sim.bench.fp.stimuli import CLASSES, _Draw, dot_vectors, int_vectors, special_codes
from vitruvian.sim.bench.simd2.integer import int_vectors as tile_vectors

A100 = PRESETS["a100"].spec("fp16", "fp32")
IEEE_BF16 = PRESETS["ieee"].spec("bf16", "fp32", k=4)
TF32 = PRESETS["a100"].spec("tf32", "fp32")
SPECS = [A100, IEEE_BF16, TF32]


def draw(spec: DotSpec, seed: int = 1) -> _Draw:
    return _Draw(np.random.default_rng(seed), spec)


def exponents(codes: np.ndarray, format) -> np.ndarray:
    """Return the unbiased exponent fields of codes."""
    field = (codes & np.uint64(format.exponent_mask)) >> np.uint64(
        format.fraction_bits + format.storage_shift
    )
    return field.astype(np.int64) - format.bias


def fractions(codes: np.ndarray, format) -> np.ndarray:
    """Return the fraction fields of codes."""
    return (codes & np.uint64(format.fraction_mask)) >> np.uint64(format.storage_shift)


def decode_value(code, format) -> Fraction:
    """Return the exact value of a finite code."""
    return decode(int(code), format).value


@pytest.mark.parametrize("spec", SPECS, ids=["a100", "ieee", "tf32"])
def test_products_and_addend_lie_around_their_target(spec):
    """Every distance up to the spread occurs in both directions, and no larger one."""
    n, spread = 4000, 3
    a, b, c = draw(spec).around(n, np.zeros((n, 1), np.int64), spread)
    products = exponents(a, spec.input) + exponents(b, spec.input_b)
    assert set(products.ravel()) == set(range(-spread, spread + 1))
    assert set(exponents(c, spec.output)) == set(range(-spread, spread + 1))
    for codes, format in ((a, spec.input), (b, spec.input_b), (c, spec.output)):
        assert {0, format.sign_mask} == set((codes & np.uint64(format.sign_mask)).ravel())
        assert len(np.unique(fractions(codes, format))) > min(500, 1 << format.fraction_bits) / 2


def test_operands_take_their_share_of_an_exponent_in_every_way():
    """The exponents of the factors cover their range; only their sum is fixed."""
    n = 4000
    a, b, _ = draw(A100).around(n, np.zeros((n, 1), np.int64), 1)
    low, high = A100.input.emin, A100.input.emax
    for codes in (a, b):
        seen = set(exponents(codes, A100.input).ravel())
        assert set(range(low + 1, high)) <= seen <= set(range(low - 1, high + 2))


@pytest.mark.parametrize("spec", SPECS, ids=["a100", "ieee", "tf32"])
def test_targets_are_what_products_and_addend_can_have(spec):
    middle = draw(spec).middle(20_000)
    low = max(spec.input.emin + spec.input_b.emin, spec.output.emin)
    high = min(spec.input.emax + spec.input_b.emax, spec.output.emax)
    assert middle.shape == (20_000, 1)
    assert middle.min() == low and middle.max() == high


@pytest.mark.parametrize("spec", SPECS, ids=["a100", "ieee", "tf32"])
def test_sparse_fractions_have_two_bits_or_lack_two(spec):
    n, format = 4000, spec.input
    whole = (1 << format.fraction_bits) - 1
    drawn = draw(spec).sparse(format, (n,)) & np.uint64(whole)
    set_bits = np.array([int(x).bit_count() for x in drawn])
    few, many = set_bits <= 2, set_bits >= format.fraction_bits - 2
    assert (few | many).all()
    assert {0, 1, 2} <= set(set_bits) and 0.1 < many.mean() < 0.3
    assert int(np.bitwise_or.reduce(drawn[few])) == whole


def test_aligned_has_narrow_and_wide_rows():
    """Half of the rows have exponents within three positions, half span more than the window."""
    n = 2000
    a, b, _ = draw(A100).aligned(n)
    products = exponents(a, A100.input) + exponents(b, A100.input_b)
    width = products.max(axis=1) - products.min(axis=1)
    assert width[: n // 2].max() <= 6
    assert width[n // 2 :].max() > 2 * A100.output.fraction_bits


def test_cancel_has_pairs_that_cancel_but_for_the_last_bit():
    n = 2000
    a, b, c = draw(A100).cancel(n)
    half, sign = A100.k // 2, np.uint64(A100.input_b.sign_mask)
    assert (b[:, half:] == b[:, :half] ^ sign).all()
    flipped = a[:, half:] ^ a[:, :half]
    assert set(flipped.ravel()) == {0, 1} and 0.2 < (flipped == 1).mean() < 0.4
    products = (exponents(a, A100.input) + exponents(b, A100.input_b)).max(axis=1)
    near = np.abs(exponents(c, A100.output) - products) <= 6
    assert 0.4 < near.mean() < 0.75  # the other addends are far smaller


def test_specials_hold_every_edge_rows_of_zeros_and_minus_zero_alone():
    spec, n = A100, 20_000
    a, b, c = draw(spec).specials(n)
    for codes, format in ((a, spec.input), (b, spec.input_b), (c, spec.output)):
        assert set(special_codes(format)) <= set(codes.ravel())
    none = (a & ~np.uint64(spec.input.sign_mask) == 0).all(axis=1)
    assert 0.15 < none.mean() < 0.35
    minus = (a == spec.input.sign_mask).all(axis=1) & (b == 0).all(axis=1)
    minus &= c == spec.output.sign_mask
    assert 0.03 < minus.mean() < 0.08


@pytest.mark.parametrize("spec", SPECS[:2], ids=["a100", "ieee"])
def test_subnormal_operands_are_subnormal_and_results_are_near_the_bottom(spec):
    a, b, c = draw(spec).subnormal(4000)
    for codes, format in ((a, spec.input), (b, spec.input_b), (c, spec.output)):
        below = codes & np.uint64(format.exponent_mask) == 0
        assert 0.2 < below.mean()
    bottom = max(spec.output.emin, spec.input.emin + spec.input_b.emin)
    assert exponents(c, spec.output).max() <= bottom + 6


def test_large_sums_are_around_the_largest_number():
    spec = IEEE_BF16
    a, b, c = draw(spec).large(4000)
    top = min(spec.output.emax, spec.input.emax + spec.input_b.emax)
    seen = exponents(c, spec.output)
    assert seen.min() == top - 5 and seen.max() == spec.output.emax
    assert (exponents(a, spec.input) + exponents(b, spec.input_b)).min() >= top - 5


def test_every_class_has_its_share_in_an_order_that_mixes_them():
    count = 70
    a, b, c = dot_vectors(A100, count, seed=3)
    assert a.shape == b.shape == (count, A100.k) and c.shape == (count,)
    assert (a.dtype, b.dtype, c.dtype) == (np.uint16, np.uint16, np.uint32)
    again = dot_vectors(A100, count, seed=3)
    assert all((x == y).all() for x, y in zip((a, b, c), again, strict=True))
    with pytest.raises(ValueError, match=f"at least {len(CLASSES)}"):
        dot_vectors(A100, len(CLASSES) - 1, seed=3)
    assert dot_vectors(A100, len(CLASSES), seed=3)[2].shape == (len(CLASSES),)


@pytest.mark.parametrize("name", ["fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", "fp32"])
def test_special_codes_are_the_edges_of_a_format(name):
    format = FORMATS[name]
    drawn = special_codes(format)
    values = [decode(int(code), format) for code in drawn]
    finite = sorted({x.value for x in values if x.kind == "finite"})
    top, least = Fraction(finite[-1]), min(Fraction(x) for x in finite if x > 0)
    ulp = Fraction(2) ** (format.emin - format.fraction_bits)
    assert least == ulp and Fraction(2) ** format.emin - ulp in finite and 0 in finite
    assert 1 in finite and 1 + Fraction(2) ** -format.fraction_bits in finite
    assert floor_log2(top) == format.emax and len(finite) == 15
    signs = np.uint64(format.sign_mask)
    assert set(drawn ^ signs) == set(drawn) and any(x.kind == "nan" for x in values)


@pytest.mark.parametrize("spec", SPECS, ids=["a100", "ieee", "tf32"])
def test_near_ties_are_half_a_last_place_and_something_below_the_window(spec):
    count, m, n = 200, 2, 3
    rng = np.random.default_rng(5)
    scale = np.zeros(count, np.int64)
    a, b = draw_operands(rng, spec, scale, m, n)
    c = draw_addends(rng, spec, scale, m, n)
    before = c.copy()
    make_near_ties(rng, spec, a, b, c)
    kept = np.uint32(spec.output.fraction_mask | spec.output.sign_mask)
    assert (c & kept == before & kept).all()
    signs = set()
    for beat in range(count):
        size = exponents(c[beat].astype(np.uint64), spec.output)
        assert len(np.unique(size)) == 1
        exponent = int(size.flat[0])
        for row, column in np.ndindex(m, n):
            factors = zip(a[beat, row], b[beat, column], strict=True)
            products = [
                decode_value(x, spec.input) * decode_value(y, spec.input_b) for x, y in factors
            ]
            half, small, *rest = products
            assert abs(half) == Fraction(2) ** (exponent - spec.result.bits - 1)
            assert not any(rest)
            if spec.sum.window is not None:
                assert 0 < abs(small) < Fraction(2) ** (exponent - spec.sum.window)
            signs.add((half > 0, small > 0))
    assert len(signs) == 4


def test_sparse_addends_of_tiles_have_two_bits_of_any_place():
    """Three beats in ten are sparse, and their fractions together have every bit set."""
    rng = np.random.default_rng(6)
    c = draw_addends(rng, A100, np.zeros(2000, np.int64), 3, 3).astype(np.uint64)
    drawn = fractions(c, A100.output).reshape(2000, 9)
    counts = np.array([[int(x).bit_count() for x in beat] for beat in drawn])
    edges = fractions(special_codes(A100.output), A100.output)  # some of them are in any beat
    sparse = ((counts <= 2) | np.isin(drawn, edges)).all(axis=1)
    assert 0.25 < sparse.mean() < 0.35
    thin = drawn[sparse][counts[sparse] <= 2]
    assert int(np.bitwise_or.reduce(thin)) == A100.output.fraction_mask
    assert (counts[sparse] == 2).mean() > 0.7


def test_half_of_the_integer_tiles_have_addends_that_may_saturate():
    """The addends lie within 2^18 of a limit, which the products can exceed."""
    rng = np.random.default_rng(7)
    spec = IntDotSpec(k=4)
    c = draw_addends(rng, spec, np.zeros(4000, np.int64), 2, 2).view(np.int32).astype(np.int64)
    room = np.minimum(2**31 - 1 - c, c + 2**31)
    near, close = room < 2**18, room < 2**20
    assert near[close].mean() > 0.99 and 0.45 < near.all(axis=(1, 2)).mean() < 0.55
    assert room[near].max() > 0.99 * 2**18 and (c < 0).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("signed_a", "signed_b"), [(True, True), (False, True), (False, False)])
def test_integers_have_the_largest_products_and_addends_near_both_limits(signed_a, signed_b):
    a, b, c = int_vectors(4, signed_a, signed_b, 20_000, seed=1)
    for codes, signed in ((a, signed_a), (b, signed_b)):
        assert codes.dtype == (np.int8 if signed else np.uint8) and codes.shape == (20_000, 4)
        largest = codes == (-128 if signed else 255)
        assert 0.08 < largest.all(axis=1).mean() < 0.12
        assert len(np.unique(codes)) == 256
    wide = c.astype(np.int64)
    for room in (2**31 - 1 - wide, wide + 2**31):
        near = room < 2**17
        assert 0.23 < near.mean() < 0.27 and room[near].max() > 0.99 * 2**17 - 2
        assert (room < 2**20).mean() < near.mean() + 0.005


@pytest.mark.parametrize("bits", [8, 16])
def test_words_of_integer_tiles_are_often_at_an_edge(bits):
    config = IntConfig(m=1, n=2, k=2, bits=bits)
    vectors = tile_vectors(config, 20_000, seed=1)
    top = (1 << bits) - 1
    for words in (vectors["a"], vectors["b"], vectors["c"]):
        for edge in (0, 1, 2, top, top >> 1, (top >> 1) + 1):
            assert (words == edge).mean() > 0.015
        assert (words == 3).mean() < 0.01
