"""Limbs, steps and precisions of the M³XU model, and the errors of ``gemm``."""

import re
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from vitruvian.golden.m3xu import (
    PRECISIONS,
    as_precision,
    gemm,
    limb_pairs,
    limbs,
    operand_dtype,
    product_by_steps,
    result_dtype,
    split,
    step_shifts,
)

SIZES = [(bits, n) for bits in (1, 4, 8, 11, 12, 16, 24, 27, 32, 53, 64) for n in range(1, 8)]


def significands(bits, n, count=40):
    """Return zero, one, all ones, single bits, alternating bits, whole limbs and random numbers."""
    width, rng = bits * n, np.random.default_rng(bits * 100 + n)
    ones = (1 << width) - 1
    limb = (1 << bits) - 1
    edges = {0, 1, ones, ones - 1, ones >> 1, 1 << (width - 1), ones // 3, ones // 3 << 1}
    edges |= {limb << bits * i for i in range(n)} | {1 << bits * i for i in range(n)}
    random = {int.from_bytes(rng.bytes(64), "little") & ones for _ in range(count)}
    return sorted(x & ones for x in edges | random)


def check_products(bits, n):
    """Check that ``product_by_steps`` multiplies, and return the number of products compared."""
    values = significands(bits, n)
    pairs = list(zip(values, values[::-1], strict=True)) + [(x, values[-1]) for x in values]
    pairs += [(values[i], values[i * 7 % len(values)]) for i in range(len(values))]
    for a, b in pairs:
        got = product_by_steps(a, b, limbs=n, bits=bits)
        assert got == a * b, f"{n} limbs of {bits}: {a:#x}·{b:#x} differ: {got:#x}, not {a * b:#x}"
    return len(pairs)


def check_shifts(bits, n):
    """Check that the shifts of a step are w·t and w·(t + n), or one of them."""
    for step in range(n):
        shifts = step_shifts(step, n, bits)
        assert set(shifts) <= {bits * step, bits * (step + n)}, f"amounts differ: {shifts}"


def test_products_by_steps():
    assert sum(check_products(bits, n) for bits, n in SIZES) > 10_000


@pytest.mark.parametrize(("bits", "n"), SIZES)
def test_a_step_has_at_most_two_shifts(bits, n):
    check_shifts(bits, n)


@pytest.mark.parametrize("n", range(1, 9))
def test_every_limb_meets_every_limb_once(n):
    met = Counter(pair for step in range(n) for pair in limb_pairs(step, n))
    assert met == Counter({(i, j): 1 for i in range(n) for j in range(n)})
    for step in range(n):  # a lane keeps its limb of A
        assert [i for i, _ in limb_pairs(step, n)] == list(range(n))


def test_two_limbs_of_12_bits():
    """The cross products have the weight 2^12; the shift of 16 printed in the paper is wrong."""
    assert limb_pairs(0, 2) == [(0, 0), (1, 1)] and step_shifts(0, 2, 12) == [0, 24]
    assert limb_pairs(1, 2) == [(0, 1), (1, 0)] and step_shifts(1, 2, 12) == [12, 12]
    a, b = 0xC00001, 0xA00FFF
    low = (1 << 12) - 1
    straight = ((a >> 12) * (b >> 12) << 24) + (a & low) * (b & low)
    cross = (a & low) * (b >> 12) + (a >> 12) * (b & low)
    assert product_by_steps(a, b, limbs=2, bits=12) == straight + (cross << 12) == a * b
    assert straight + (cross << 16) != a * b


def test_split_rejects_significands_that_are_too_wide():
    assert split(0xABCDEF, limbs=2, bits=12) == [0xDEF, 0xABC]
    assert split(0xABCDEF, limbs=3, bits=12) == [0xDEF, 0xABC, 0]
    with pytest.raises(ValueError, match="significand must have at most 24 bits, not 16777216"):
        split(1 << 24, limbs=2, bits=12)
    with pytest.raises(ValueError, match="significand must have at most 24 bits, not -1"):
        product_by_steps(1, -1, limbs=2, bits=12)


def test_the_checks_notice_reversed_limbs(monkeypatch):
    monkeypatch.setattr(limbs, "split", lambda x, **sizes: split(x, **sizes)[::-1])
    with pytest.raises(AssertionError, match="differ"):
        check_products(12, 2)


def test_the_checks_notice_limbs_paired_upwards(monkeypatch):
    """All pairs are formed, but with three or more limbs a step has more than two shifts."""

    def upwards(step, n):
        return [(lane, (step + lane) % n) for lane in range(n)]

    monkeypatch.setattr(limbs, "limb_pairs", upwards)
    assert check_products(12, 5)
    with pytest.raises(AssertionError, match="amounts differ"):
        check_shifts(12, 5)


def test_the_checks_notice_a_shift_of_16(monkeypatch):
    def printed(step, n, bits):
        return [16 if shift == 12 else shift for shift in step_shifts(step, n, bits)]

    monkeypatch.setattr(limbs, "step_shifts", printed)
    with pytest.raises(AssertionError, match="differ"):
        check_products(12, 2)


@pytest.mark.parametrize(
    ("precision", "bits", "k", "limbs", "steps", "elements", "terms"),
    [
        ("fp16", 12, 8, 1, 1, 8, 8),
        ("bf16", 12, 8, 1, 1, 8, 8),
        ("tf32", 12, 8, 1, 1, 4, 4),
        ("fp32", 12, 8, 2, 2, 4, 4),
        ("fp32c", 12, 8, 2, 4, 2, 4),
        ("fp64", 12, 10, 5, 5, 2, 2),
        ("fp64", 27, 8, 2, 2, 4, 4),
        ("fp32", 24, 8, 1, 1, 4, 4),
        ("fp32", 11, 9, 3, 3, 3, 3),
        ("fp16", 4, 9, 3, 3, 3, 3),
    ],
)
def test_steps_of_a_precision(precision, bits, k, limbs, steps, elements, terms):
    p = PRECISIONS[precision]
    assert (p.limbs(bits), p.steps(bits)) == (limbs, steps)
    assert (p.elements(k, bits), p.terms(k, bits)) == (elements, terms)
    assert p.is_wide(bits) == (limbs > 1)
    spec = p.spec(k=k, multiplier_bits=bits)
    assert spec.k == terms and (spec.input, spec.output) == (p.format, p.output)


@pytest.mark.parametrize(
    ("precision", "bits", "k", "slower"),
    [
        ("bf16", 12, 8, 1),
        ("tf32", 12, 8, 2),
        ("fp32", 12, 8, 4),
        ("fp32c", 12, 8, 16),
        ("fp64", 27, 8, 4),
        ("fp64", 12, 10, 25),
    ],
)
def test_rates(precision, bits, k, slower):
    """Elements per step relative to fp16 on the same lanes are 1/n², or 1/(4·n²) if complex."""
    p = PRECISIONS[precision]
    assert slower * p.elements(k, bits) == k * p.steps(bits)


def test_windows():
    got = {name: p.spec(k=20).sum.window for name, p in PRECISIONS.items()}
    assert got == {"fp16": 45, "bf16": 32, "tf32": 35, "fp32": 48, "fp32c": 48, "fp64": 106}
    assert PRECISIONS["fp32"].spec(window=60).sum.window == 60
    a100 = PRECISIONS["fp16"].spec(preset="a100")
    assert (a100.sum.window, a100.result.rounding, a100.sum.truncate) == (24, "RZ", "magnitude")
    assert PRECISIONS["fp32"].spec(preset="a100") == PRECISIONS["fp32"].spec()


def test_types():
    got = {name: (operand_dtype(name), result_dtype(name)) for name in PRECISIONS}
    real, double, whole = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64)
    assert got == {
        "fp16": (np.dtype(np.float16), real),
        "bf16": (np.dtype(ml_dtypes.bfloat16), real),
        "tf32": (real, real),
        "fp32": (real, real),
        "fp32c": (whole, whole),
        "fp64": (double, double),
    }
    for name in PRECISIONS:
        a = np.ones((2, 3), operand_dtype(name))
        d = gemm(a, a.T, precision=as_precision(name), k=20)
        assert d.dtype == result_dtype(name) and (d == 3).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp32", "k": 7}, "k must be a multiple of 2 for fp32 on 12-bit multipliers"),
        ({"precision": "tf32", "k": 7}, "k must be a multiple of 2 for tf32 on 12-bit multipliers"),
        ({"precision": "fp32c", "k": 6}, "k must be a multiple of 4 for fp32c on 12-bit"),
        ({"precision": "fp64"}, "k must be a multiple of 5 for fp64 on 12-bit multipliers, not 8"),
        ({"precision": "fp16", "k": 0}, "k must be at least 1, not 0"),
        ({"multiplier_bits": 3}, "multiplier_bits must be between 4 and 64, not 3"),
        ({"precision": "fp128"}, "precision must be one of fp16, bf16, tf32, fp32, fp32c, fp64"),
        ({"preset": "p100"}, "preset must be one of v100, a100"),
        ({"precision": "fp16", "preset": "p100"}, "preset must be one of v100, a100"),
        ({"precision": "bf16", "preset": "v100"}, "formats of preset v100 must be one of"),
        ({"window": 47}, "window must be at least 48, not 47"),
        ({"precision": "fp64", "k": 5, "window": 105}, "window must be at least 106, not 105"),
        (
            {"precision": "fp16", "preset": "a100", "window": 24},
            "window must be None for fp16 with the preset a100, not 24",
        ),
        (
            {"precision": "bf16", "preset": "exact", "window": 60},
            "window must be None for bf16 with the preset exact, not 60",
        ),
    ],
)
def test_impossible_units_are_rejected(options: dict[str, Any], message):
    name = options.get("precision", "fp32")
    a = np.zeros((2, 2), operand_dtype(name) if name in PRECISIONS else np.float32)
    with pytest.raises(ValueError, match=re.escape(message)):
        gemm(a, a, **options)


@pytest.mark.parametrize(
    ("precision", "a", "b", "c", "message"),
    [
        ("fp32c", np.float32, np.complex64, None, "a must be complex64, not float32"),
        ("fp32c", np.complex64, np.float32, None, "b must be complex64, not float32"),
        ("fp32c", np.complex64, np.complex64, np.float32, "c must be complex64, not float32"),
        ("fp32c", np.complex128, np.complex64, None, "a must be complex64, not complex128"),
        ("fp32", np.float64, np.float32, None, "a must be float32, not float64"),
        ("fp32", np.uint32, np.float32, None, "a must be float32, not uint32"),
        ("fp16", np.float16, np.float16, np.float16, "c must be float32, not float16"),
        ("bf16", np.float16, np.float16, None, "a must be bfloat16, not float16"),
        ("fp64", np.float64, np.float64, np.float32, "c must be float64, not float32"),
    ],
)
def test_wrong_types_are_rejected(precision, a, b, c, message):
    a, b, c = (None if t is None else np.zeros((2, 2), t) for t in (a, b, c))
    with pytest.raises(TypeError, match=re.escape(message)):
        gemm(a, b, c, precision=precision, k=20)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ((2, 3), (4, 2), None, "with the same K, not (2, 3) and (4, 2)"),
        ((4,), (4, 2), None, "with the same K, not (4,) and (4, 2)"),
        ((2, 4), (4,), None, "with the same K, not (2, 4) and (4,)"),
        ((2, 4), (4, 3), (3, 2), "c must be (..., 2, 3), not (3, 2)"),
        ((2, 4), (4, 3), (3,), "c must be (..., 2, 3), not (3,)"),
        ((2, 2, 4), (3, 4, 3), None, "broadcast"),
    ],
)
def test_wrong_shapes_are_rejected(precision, a, b, c, message):
    a, b = np.zeros(a, operand_dtype(precision)), np.zeros(b, operand_dtype(precision))
    c = None if c is None else np.zeros(c, result_dtype(precision))
    with pytest.raises(ValueError, match=re.escape(message)):
        gemm(a, b, c, precision=precision, k=20)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_empty_matrices(precision):
    def zeros(*shape):
        return np.zeros(shape, operand_dtype(precision))

    for m, k, n in ((0, 3, 2), (2, 3, 0), (2, 0, 3), (0, 0, 0)):
        d = gemm(zeros(m, k), zeros(k, n), precision=precision, k=20)
        assert d.shape == (m, n) and d.dtype == result_dtype(precision) and not d.any()
    assert gemm(zeros(0, 2, 3), zeros(3, 4), precision=precision, k=20).shape == (0, 2, 4)
    c = np.full((2, 3), 5, result_dtype(precision))
    assert (gemm(zeros(2, 0), zeros(0, 3), c, precision=precision, k=20) == c).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_without_k_every_code_of_c_stays(precision):
    """With K = 0, codes that no sum gives also stay: −0, and NaNs with a sign and a payload."""
    dtype = result_dtype(precision)
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 256, (40, 30 * dtype.itemsize), np.uint8)
    raw[:20] = 0
    raw[:10, dtype.itemsize - 1 :: dtype.itemsize] = 0x80  # −0, in the imaginary part
    c = raw.view(dtype)
    a, b = (np.zeros(shape, operand_dtype(precision)) for shape in ((40, 0), (0, 30)))
    assert gemm(a, b, c, precision=precision, k=20).tobytes() == c.tobytes()


def test_wide_precisions_beside_a_machine_take_a_window():
    """Wide precisions are ``ieee`` beside any preset, so they take a window."""
    assert PRECISIONS["fp32"].spec(preset="a100", window=60).sum.window == 60
