"""The printed pseudocode of RVBNA differs from the rule where, and only where, the page says."""

from pathlib import Path

import numpy as np
import pytest

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.general import evaluate
from vitruvian.golden.machines import find
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.rvbna import REPAIRS, accumulate, printed_dot, printed_run

SHARED = Path(__file__).resolve().parents[5] / "shared" / "data" / "machines"
#: Set, rows of finite operands, and rows in which the dot product differs: as printed, with the
#: mask repaired, with the subnormal path repaired.
COUNTS = [
    ("bf16_n2", 1820, 373, 183, 190),
    ("bf16_n8", 1826, 394, 194, 200),
    ("e4m3_n4", 1815, 62, 0, 62),
    ("e4m3_n8", 1812, 124, 0, 124),
    ("e5m2_n4", 1786, 146, 0, 146),
    ("e5m2xe4m3_n8", 1772, 163, 0, 163),
]


def rule_of(name):
    """Return the rule of a row of RVBNA."""
    rule = find(f"rvbna_{name}_fp32").rule
    assert isinstance(rule, DotSpec)
    return rule


def dot(a, b, rule):
    """Return the dot product of the rule without C."""
    return evaluate(a, b, np.zeros(len(a), np.uint32), rule.replace(accumulate="tree"))


def finite(a, b, rule):
    """Return True for rows without infinities and NaNs."""
    x, y = unpack(a, rule.input), unpack(b, rule.input_b)
    return ~(x.nan | x.infinity | y.nan | y.infinity).any(axis=1)


def is_subnormal(codes):
    """Return True for subnormal numbers of FP32."""
    return ((codes >> 23 & 255) == 0) & (codes << 1 != 0)


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data/machines is not there")
@pytest.mark.parametrize(("name", "rows", "printed", "masked", "subnormal"), COUNTS)
def test_the_printed_pseudocode_differs_in_so_many_rows(name, rows, printed, masked, subnormal):
    rule = rule_of(name)
    with np.load(SHARED / f"rvbna_{name}_fp32.npz") as data:
        a, b, expected = data["a"], data["b"], data["dot"]
    assert finite(a, b, rule).sum() == rows
    variants = [(), ("mask",), ("subnormal",), REPAIRS]
    wrong = [printed_dot(a, b, rule, repairs) != expected for repairs in variants]
    assert [w.sum() for w in wrong] == [printed, masked, subnormal, 0]
    # No infinity and no NaN is wrong; what the mask leaves is subnormal.
    assert not (wrong[0] & ~finite(a, b, rule)).any()
    assert is_subnormal(expected)[wrong[1]].all()
    # Between 2^−150 and 2^−126 all subnormal results are wrong but for chance, below it none.
    field = accumulate(a, b, rule).field
    reached = is_subnormal(expected) & (field >= -23)
    assert (wrong[1] <= reached).all() and (reached & ~wrong[1]).sum() <= 3


@pytest.mark.parametrize("name", ["bf16_n2", "bf16_n32", "e4m3_n4", "e5m2xe4m3_n8", "e5m2_n1"])
def test_the_repaired_pseudocode_is_the_rule(name):
    rule = rule_of(name)
    rng = np.random.default_rng(7)
    shape = 3000, rule.k
    a = rng.integers(0, 1 << rule.input.storage_bits, shape, dtype=np.uint64)
    b = rng.integers(0, 1 << rule.input_b.storage_bits, shape, dtype=np.uint64)
    a[:2000] &= rule.input.sign_mask | (rule.input.exponent_mask >> 1) | 7  # few infinities
    a[rng.random(shape) < 0.3] = 0
    c = rng.integers(0, 1 << 32, 3000).astype(np.uint32)
    expected = fused_dot(a, b, c, rule)
    got = printed_run(a, b, c, rule, REPAIRS)
    nan = unpack(expected, "fp32").nan
    np.testing.assert_array_equal(got[~nan], expected[~nan])
    assert unpack(got, "fp32").nan[nan].all() and nan.any() and not nan.all()
    np.testing.assert_array_equal(printed_dot(a, b, rule, REPAIRS), dot(a, b, rule))


@pytest.mark.parametrize("name", ["bf16_n2", "bf16_n8", "e5m2_n4"])
def test_a_normal_result_is_truncated_and_never_rounded_to_odd(name):
    """The printed mask covers only the zeros that the normalisation has shifted in."""
    rule = rule_of(name)
    rng = np.random.default_rng(8)
    shape = 5000, rule.k
    a = rng.integers(0, 1 << rule.input.storage_bits, shape, dtype=np.uint64)
    b = rng.integers(0, 1 << rule.input_b.storage_bits, shape, dtype=np.uint64)
    truncated = dot(a, b, rule.replace(rounding="RZ"))
    normal = finite(a, b, rule) & (truncated >> 23 & 255 != 0)
    assert normal.sum() > 500
    np.testing.assert_array_equal(printed_dot(a, b, rule)[normal], truncated[normal])
    assert (dot(a, b, rule) != truncated)[normal].any()


def powers_of_two(format):
    """Return the codes of all powers of two of a format."""
    codes = np.arange(1, 1 << (format.width - 1))
    m = unpack(codes, format).significand
    return codes[(m != 0) & (m & (m - 1) == 0)]


@pytest.mark.parametrize("name", ["e4m3_n2", "e5m2_n2", "e5m2xe4m3_n2", "bf16_n2"])
def test_one_product_is_never_hit_by_the_mask(name):
    """A product has at most 16 bits, so one alone is never rounded to a normal number of FP32."""
    rule = rule_of(name)
    all_codes = [np.arange(1 << f.storage_bits) for f in (rule.input, rule.input_b)]
    if name == "bf16_n2":
        all_codes = [powers_of_two(rule.input), powers_of_two(rule.input_b) | 0x7F]
    pairs = np.stack([x.ravel() for x in np.meshgrid(*all_codes)])
    a, b = np.zeros((2, pairs.shape[1], 2), np.uint64)
    a[:, 0], b[:, 0] = pairs
    expected = dot(a, b, rule)
    np.testing.assert_array_equal(printed_dot(a, b, rule, ["subnormal"]), expected)
    wrong = printed_dot(a, b, rule) != expected
    assert wrong.any() == (name == "bf16_n2") and is_subnormal(expected)[wrong].all()


#: The smallest cases: row, a, b, the printed result and the right one.
SMALLEST = [
    ("bf16_n2", [0x3F80, 0x3380], [0x3F80, 0x3F80], 0x3F800000, 0x3F800001),  # 1 + 2^−24
    ("e5m2_n2", [0x50, 0x04], [0x50, 0x3C], 0x44800000, 0x44800001),  # 2^10 + 2^−14
    ("e4m3_n2", [0x68, 0x08], [0x68, 0x08], 0x45800000, 0x45800001),  # 2^12 + 2^−12
    ("bf16_n1", [0x0080], [0x3F00], 0x00000001, 0x00400000),  # 2^−126 · 2^−1
    ("bf16_n2", [0x0080, 0], [0x3F00, 0], 0x00000002, 0x00400000),
    ("bf16_n8", [0x0080] + [0] * 7, [0x3F00] + [0] * 7, 0x00000008, 0x00400000),
]


@pytest.mark.parametrize(("name", "a", "b", "printed", "right"), SMALLEST)
def test_a_smallest_case(name, a, b, printed, right):
    rule = rule_of(name)
    assert printed_dot([a], [b], rule).tolist() == [printed]
    assert fused_dot([a], [b], [0], rule).tolist() == [right]


@pytest.mark.parametrize("name", ["e5m2_n2", "bf16_n2"])
def test_powers_of_two_need_24_places_between_them(name):
    """Both products of a case of the mask are powers of two; 24 places are the least distance."""
    rule = rule_of(name)
    codes = powers_of_two(rule.input)
    one = rule.input.bias << rule.input.fraction_bits
    first, second = (x.ravel() for x in np.meshgrid(codes, codes))
    a = np.stack([first, second], axis=1)
    b = np.stack([first, np.full_like(second, one)], axis=1)
    x = unpack(a, rule.input).exponent
    places = np.abs(2 * x[:, 0] - x[:, 1])
    wrong = printed_dot(a, b, rule, ["subnormal"]) != dot(a, b, rule)
    normal = (a >= one & -one).all(axis=1)  # no subnormal operand, so exponents are those of values
    assert wrong.any() and places[wrong & normal].min() == 24


def test_mistakes_are_named():
    rule = rule_of("bf16_n2")
    with pytest.raises(ValueError, match="repairs must be among mask, subnormal, not 'masks'"):
        printed_dot([[0, 0]], [[0, 0]], rule, ["masks"])
    with pytest.raises(ValueError, match="K must be 2, not 3"):
        printed_dot([[0] * 3], [[0] * 3], rule)
    with pytest.raises(ValueError, match="rule must be one of RVBNA"):
        printed_dot([[0] * 8], [[0] * 8], PRESETS["a100"].spec("bf16"))
