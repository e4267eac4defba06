"""The engine: counts against numbers worked out by hand, back ends, and errors."""

import subprocess
import sys

import numpy as np
import pytest

from vitruvian.golden.m3xu import PRECISIONS, gemm, operand_dtype
from vitruvian.sim.studies import (
    BACKENDS,
    INSTRUCTIONS,
    KERNELS,
    Cost,
    Engine,
    Unit,
    register_backend,
)

# 17×9×17 is not a whole number of instructions or tiles in any direction: 2×2 instructions of 16×8,
# 3×3 tiles of 8×4, and along K 17/16, 17/8 or 17/4 instructions and 17/8, 17/4 or 17/2 tiles.
PARTIAL = {
    "fp16": Cost(2601, 2 * 2 * 2, 3 * 3 * 3, 27),
    "bf16": Cost(2601, 2 * 2 * 2, 3 * 3 * 3, 27),
    "tf32": Cost(2601, 2 * 2 * 3, 3 * 3 * 5, 45),
    "fp32": Cost(2601, 2 * 2 * 3, 3 * 3 * 5, 90),
    "fp32c": Cost(2601, 2 * 2 * 5, 3 * 3 * 9, 324),
    "fp64": Cost(2601, 2 * 2 * 5, 3 * 3 * 9, 405),
}


def unit_of(precision: str) -> Unit:
    return Unit(k=10) if precision == "fp64" else Unit()


def operands(precision: str, m: int, n: int, k: int, seed: int = 0):
    random = np.random.default_rng(seed)
    dtype = operand_dtype(precision)
    return random.integers(-9, 9, (m, k)).astype(dtype), random.integers(-9, 9, (k, n)).astype(
        dtype
    )


@pytest.mark.parametrize("precision", INSTRUCTIONS)
def test_costs_by_hand(precision):
    engine = Engine(unit_of(precision))
    a, b = operands(precision, 17, 9, 17)
    d = engine.gemm(a, b, precision=precision)
    assert np.array_equal(d, a.astype(complex) @ b.astype(complex))
    assert engine.costs == {precision: PARTIAL[precision]}
    twice = Cost(*(2 * n for n in vars(PARTIAL[precision]).values()))
    assert engine.unit.cost(precision, 17, 9, 17, batch=2) == twice
    engine.gemm(np.stack([a, b.T.copy()[:, :17].repeat(2, 0)[:17]]), b, precision=precision)
    assert engine.total.products == 3 * 2601


def test_the_precisions_are_those_of_golden():
    assert set(INSTRUCTIONS) == set(PRECISIONS) == set(PARTIAL)


def test_rates_are_those_of_the_limbs():
    """Relative to FP16, FP32 has 1/4 of the rate, FP32C 1/16, TF32 1/2, five-limb FP64 1/25."""
    size = 80, 80, 80
    cycles = {name: unit_of(name).cost(name, *size).model_cycles for name in INSTRUCTIONS}
    assert cycles["fp16"] == cycles["bf16"] == 80**3 // (8 * 4 * 8)
    assert cycles["tf32"] == 2 * cycles["fp16"]
    assert cycles["fp32"] == 4 * cycles["fp16"]
    assert cycles["fp32c"] == 16 * cycles["fp16"]
    assert cycles["fp64"] == 25 * Unit(k=10).cost("fp16", *size).model_cycles


def test_an_instruction_takes_as_long_as_its_steps():
    """16×8×K on 8×4 has eight tiles, so FP16 takes 8 cycles and FP32 16 (Zhang 2024, §2.5.2)."""
    costs = {name: unit_of(name).cost(name, *INSTRUCTIONS[name]) for name in INSTRUCTIONS}
    assert {cost.instructions for cost in costs.values()} == {1}
    assert {cost.tiles for cost in costs.values()} == {8}
    assert {name: cost.model_cycles for name, cost in costs.items()} == {
        "fp16": 8,
        "bf16": 8,
        "tf32": 8,
        "fp32": 16,
        "fp32c": 32,
        "fp64": 40,
    }


def test_other_units():
    assert Unit(m=16, n=16, k=16).cost("fp16", 16, 16, 16) == Cost(4096, 2, 1, 1)
    # 27-bit multipliers: FP64 has two limbs and four elements on eight lanes; FP32 has one limb.
    assert Unit(multiplier_bits=27).cost("fp64", 8, 4, 8).model_cycles == 2 * 2
    assert Unit(multiplier_bits=27).cost("fp32", 8, 4, 8).model_cycles == 2
    assert Unit().cost("fp16", 0, 4, 8) == Cost()


def test_products_have_the_bits_of_golden():
    random = np.random.default_rng(5)
    a, b = (random.standard_normal((9, 9)).astype(np.float32) for _ in range(2))
    c = random.standard_normal((9, 9)).astype(np.float32)
    unit = Unit(preset="a100")
    d = Engine(unit, check=True).gemm(a, b, c, precision="tf32")
    assert np.array_equal(d, gemm(a, b, c, precision="tf32", preset="a100"))
    assert not np.array_equal(d, gemm(a, b, c, precision="tf32"))


def test_a_registered_back_end_is_used_and_checked(monkeypatch):
    monkeypatch.setattr("vitruvian.sim.studies.engine.BACKENDS", dict(BACKENDS))
    settings_seen = []

    def faulty(a, b, c=None, **settings):
        settings_seen.append(settings)
        d = np.array(gemm(a, b, c, **settings))
        d[0, 1] = -d[0, 1]
        return d

    register_backend("rtl", faulty)
    engine = Engine(backend="rtl", check=True)
    a, b = operands("fp32", 4, 4, 4)
    engine.gemm(a, b, precision="fp32")
    assert engine.mismatches == 1
    settings = {"precision": "fp32", "k": 8, "multiplier_bits": 12, "preset": "ieee"}
    assert settings_seen == [settings]
    assert Engine(backend="rtl").gemm(a, b)[0, 1] == -gemm(a, b)[0, 1]
    zero = np.zeros((4, 4), np.float32)
    engine = Engine(backend="rtl", check=True)
    engine.gemm(zero, zero)
    assert engine.mismatches == 1, "-0 is not +0"
    register_backend("rtl", lambda a, b, c=None, **settings: gemm(a, b, c, **settings)[:1])
    engine = Engine(backend="rtl", check=True)
    engine.gemm(a, b)
    assert engine.mismatches == 16


def test_a_back_end_for_a_unit_returns_its_clock_cycles(monkeypatch):
    monkeypatch.setattr("vitruvian.sim.studies.engine.BACKENDS", dict(BACKENDS))

    class Meter:
        def __call__(self, *_, **__):
            raise AssertionError("on(unit) must be preferred")

        def on(self, unit):
            return lambda a, b, c=None, **settings: (gemm(a, b, c, **settings), 7 * unit.m)

    register_backend("meter", Meter())
    engine = Engine(Unit(m=4), backend="meter", check=True)
    a, b = operands("fp32", 17, 9, 17)
    for _ in range(2):
        engine.gemm(a, b)
    assert (
        engine.total.measured_cycles == engine.costs["fp32"].measured_cycles == 2 * 28
        and not engine.mismatches
    )


def test_errors_of_engines_and_units():
    with pytest.raises(ValueError, match=r"must be one of golden, rtl, not 'gpu' .*register_b"):
        Engine(backend="gpu")
    with pytest.raises(TypeError, match="gemm must be a callable"):
        register_backend("rtl", 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="m must be"):
        Unit(m=0)
    with pytest.raises(ValueError, match="multiplier_bits must be"):
        Unit(multiplier_bits=3)
    with pytest.raises(ValueError, match="preset must be one of v100"):
        Unit(preset="z9")
    with pytest.raises(ValueError, match="k must be a multiple of 5 for fp64 on 12-bit"):
        Unit().check("fp64")
    with pytest.raises(ValueError, match="k must be a multiple of 3 for fp32 on 11-bit"):
        Engine(Unit(multiplier_bits=11)).gemm(*operands("fp32", 2, 2, 2))
    with pytest.raises(ValueError, match="precision must be one of fp16"):
        Engine().gemm(*operands("fp32", 2, 2, 2), precision="fp8")
    engine = Engine()
    with pytest.raises(TypeError, match="a must be float16, not float32"):
        engine.gemm(*operands("fp32", 2, 2, 2), precision="fp16")
    assert engine.total == Cost(), "a refused product costs nothing"


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_every_kernel_runs_small(kernel):
    seen = []
    size = max(kernel.low, 4)
    study = kernel(size, check=True, watch=lambda method, cost: seen.append((method, cost)))
    assert study.kernel == kernel.name and study.title and study.setting and study.reference
    assert [row.method for row in study.rows if row.cost] == list(kernel.methods)
    for row in study.rows:
        assert row.mismatches == 0
        if row.cost:
            assert row.cost.products and row.cost.model_cycles and row.cost.instructions
            assert (row.method, None) in seen
    assert len({tuple(row.extras) for row in study.rows}) == 1
    best = min(row.mean_error for row in study.rows if row.method in ("FP32", "FP32C", "FP64"))
    assert best < (1e-15 if kernel.name == "dgemm" else 1e-5)


def test_errors_of_kernels():
    sgemm, fft, dgemm = (KERNELS[name] for name in ("sgemm", "fft", "dgemm"))
    with pytest.raises(ValueError, match=r"size of sgemm .* a whole number from 2 to 1024, not 1"):
        sgemm(1)
    with pytest.raises(ValueError, match=r"a power of two from 2 to 1048576, not 100"):
        fft(100)
    with pytest.raises(ValueError, match="method of dgemm must be one of FP64, not 'FP32'"):
        dgemm(8, methods=("FP32",))
    with pytest.raises(ValueError, match="k must be a multiple of 5"):
        dgemm(8, unit=Unit())


def test_kernels_need_no_amaranth(root):
    code = (
        "import sys, vitruvian.sim.studies;"
        "sys.exit(bool({'amaranth', 'vitruvian.hdl', 'sklearn'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
