"""Division and roots: golden for every FP16 code, exact rationals, cycles, and mutants."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from amaranth.hdl import Const

import vitruvian.hdl.vector.divsqrt
from vitruvian.golden import vector
from vitruvian.hdl.vector.divsqrt import DivSqrt, Root
from vitruvian.hdl.vector.recurrence import STEPS
from vitruvian.sim.rtl import compile, compile_unit

GOLDEN = {
    Root.DIVIDE: vector.div,
    Root.RECIPROCAL: lambda a, b: vector.rec(a),
    Root.SQRT: lambda a, b: vector.sqrt(a),
    Root.RSQRT: lambda a, b: vector.rsqrt(a),
}
EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
#: Zeros, subnormals, ones and neighbours, the largest numbers, infinities and NaNs, of both signs.
CORNERS = {
    np.float16: (0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7C01),
    np.float32: (
        *(0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000),
        *(0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7E800000, 0x7E800001, 0x00200000),
    ),
}


def codes(x):
    return np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")


def corners(kind):
    size = 8 * np.dtype(kind).itemsize
    both = [c | sign for c in CORNERS[kind] for sign in (0, 1 << size - 1)]
    return np.array(both, f"u{size // 8}").view(kind)


def run(model, operation, a, b, **options):
    """Return the results of lanes that fill whole blocks."""
    count = a.nbytes // 32

    def blocks(x):
        return np.ascontiguousarray(x).view(np.uint64).reshape(count, 4)

    given = {
        "operation": np.full(count, operation.value, np.uint8),
        "wide": np.full(count, a.itemsize == 4, np.uint8),
        "a": blocks(a),
        "b": blocks(b),
    }
    done = model.stream(inputs={"i": given}, outputs={"o": count}, **options)
    return np.ascontiguousarray(done.outputs["o"]).view(a.dtype).reshape(-1), done.cycles


def wrong(model, operation, a, b, **options):
    """Return the operands and results that differ from golden's."""
    found, _ = run(model, operation, a, b, **options)
    expected = np.asarray(GOLDEN[operation](a, b))
    bad = np.flatnonzero(codes(found) != codes(expected))
    return [tuple(hex(codes(x)[i]) for x in (a, b, found, expected)) for i in bad[:5]]


@pytest.fixture(scope="module")
def model():
    return compile_unit(DivSqrt, engines=4)


@pytest.mark.parametrize("operation", Root)
def test_every_fp16_code(model, operation):
    rng = np.random.default_rng(7)
    assert not wrong(model, operation, EVERY, rng.permutation(EVERY), stall_rate=0.1, stall_seed=1)


@pytest.mark.parametrize("operation", Root)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_corners_and_random_codes(model, operation, kind):
    edges = corners(kind)
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    assert not wrong(model, operation, a[: a.size // 16 * 16], b[: b.size // 16 * 16])
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 32, 40_000, np.uint32).view(kind) for _ in range(2))
    assert not wrong(model, operation, a, b)
    # Quotients near 1, where most digits of a remainder count.
    near = rng.integers(0, 1 << 10, (2, 40_000)).astype(codes(a).dtype)
    a, b = (codes(kind(1)) + near).view(kind)
    assert not wrong(model, operation, a, b)


def _is_rounded(operation, a, b, result):
    """Return True if a result is the nearest number to the exact value, in rationals."""
    kind = type(result)
    x = Fraction(float(a))
    if operation is Root.DIVIDE:
        value = x / Fraction(float(b))
    else:
        value = x if operation is Root.SQRT else 1 / x
    if np.isinf(result):
        return abs(value) >= _middle(np.finfo(kind).max, None)
    below, above = (np.nextafter(result, kind(way)) for way in (-np.inf, np.inf))
    low, high = _middle(below, result), _middle(result, above)
    if operation in (Root.SQRT, Root.RSQRT):
        low, high = low * low, high * high
    even = not codes(result) & 1
    return low <= value <= high and (even or low < value < high)


def _middle(low, high):
    """Return the middle of two neighbours; behind the largest number comes a power of two."""
    kind = type(low)
    top = Fraction(2) ** int(np.finfo(kind).maxexp)
    ends = [top if x is None or np.isposinf(x) else -top if np.isneginf(x) else Fraction(float(x))
            for x in (low, high)]  # fmt: skip
    return sum(ends) / 2


@pytest.mark.parametrize("operation", Root)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_results_are_the_nearest_numbers_to_exact_rationals(model, operation, kind):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 1 << 32, 4_000, np.uint32).view(kind) for _ in range(2))
    found, _ = run(model, operation, a, b)
    checked = 0
    for x, y, result in zip(a, b, found, strict=True):
        operands = (x, y) if operation is Root.DIVIDE else (x,)
        if not all(np.isfinite(z) and z for z in operands) or np.isnan(result):
            continue
        checked += 1
        assert _is_rounded(operation, x, y, result), (operation, x, y, result)
    assert checked > 1000


def test_the_exact_check_notices_a_neighbour():
    one, three = np.float32(1), np.float32(3)
    third = np.float32(1) / np.float32(3)
    assert _is_rounded(Root.DIVIDE, one, three, third)
    for way in (0, 1):
        assert not _is_rounded(Root.DIVIDE, one, three, np.nextafter(third, np.float32(way)))


@pytest.mark.parametrize("engines", [1, 2, 8])
def test_cycles_do_not_depend_on_the_operands(engines):
    model, unit = compile_unit(DivSqrt, engines=engines), DivSqrt(engines=engines)
    rng = np.random.default_rng(2)
    for kind in (np.float16, np.float32):
        a, b = (rng.integers(0, 1 << 32, 160, np.uint32).view(kind) for _ in range(2))
        few, many = (run(model, Root.DIVIDE, a[:n], b[:n])[1] for n in (32, len(a)))
        blocks = (len(a) - 32) * a.itemsize // 32
        assert many - few == blocks * unit.cycles(kind is np.float32)
        assert not wrong(model, Root.RSQRT, a, b)


@pytest.mark.parametrize(
    "steps", [{"fp32": STEPS["fp32"] - 1}, {"fp16": STEPS["fp16"] - 1}], ids=str
)
def test_a_missing_step_is_noticed(monkeypatch, steps):
    """A result with one bit less cannot be rounded."""
    import vitruvian.hdl.vector.recurrence as recurrence

    mutant = STEPS | steps
    monkeypatch.setattr(recurrence, "STEPS", mutant)
    model = compile(DivSqrt(engines=2), name="mutant")
    kind = np.float32 if "fp32" in steps else np.float16
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 1 << 32, 160, np.uint32).view(kind) for _ in range(2))
    assert wrong(model, Root.DIVIDE, a, b) and wrong(model, Root.RSQRT, a, b)


def test_an_exponent_of_subnormals_that_is_not_moved_is_noticed(monkeypatch):
    normalise = vitruvian.hdl.vector.divsqrt.normalise

    def unmoved(m, word, **options):
        return replace(normalise(m, word, **options), shift=Const(0, 5))

    monkeypatch.setattr(vitruvian.hdl.vector.divsqrt, "normalise", unmoved)
    model = compile(DivSqrt(engines=2), name="mutant")
    assert wrong(model, Root.DIVIDE, EVERY[1:1025], EVERY[1025:2049])


def test_engines_are_a_power_of_two():
    with pytest.raises(ValueError, match="engines must be 1, 2, 4 or 8, not 3"):
        DivSqrt(engines=3)
    with pytest.raises(ValueError, match="engines must be between 1 and 8, not 16"):
        DivSqrt(engines=16)
