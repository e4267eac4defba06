"""Fourier transforms by matrix products against NumPy's."""

import numpy as np
import pytest

from vitruvian.sim.studies import FFT, METHODS, BoundMethod, Engine, NumPy
from vitruvian.sim.studies import fft as module
from vitruvian.sim.studies.fft import fft, radices, roots


def signal(*shape, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((*shape, 2)).astype(np.float32).view(np.complex64)[..., 0]


def error(result, x) -> float:
    reference = np.fft.fft(x.astype(np.complex128), axis=0)
    return float(np.linalg.norm(result - reference) / np.linalg.norm(reference))


def test_radices():
    assert radices(1) == [] and radices(1 << 20) == [16] * 5
    assert radices(1 << 14) == [16, 16, 16, 4] and radices(64, 4) == [4, 4, 4]
    for length in (0, -2, 12):
        with pytest.raises(ValueError, match="length must be a power of two from 1 on"):
            radices(length)
    with pytest.raises(ValueError, match="largest radix must be a power of two from 2 on, not 3"):
        radices(8, 3)


def test_roots_are_rounded_once():
    n = np.arange(64)
    exact = np.exp(-2j * np.pi * n / 64)
    assert roots(n, 64)[[0, 16, 32, 48]].tolist() == [1, -1j, -1, 1j]
    assert np.abs(roots(n, 64) - exact).max() <= 2**0.5 * 2.0**-25
    assert np.array_equal(roots(n + 64 * 1000, 64), roots(n, 64))


@pytest.mark.parametrize("bits", range(13))
def test_every_length(bits):
    """A plain FP32 product tests the order and the twiddle factors of every mix of radices."""
    x = signal(1 << bits)
    assert error(fft(x, NumPy()), x) < 4e-7
    assert error(fft(x, NumPy(), largest_radix=2), x) < 1e-6


def test_several_at_once():
    x = signal(256, 3, 2)
    result = fft(x, NumPy())
    assert result.shape == x.shape and error(result, x) < 4e-7
    assert error(np.roll(result, 1, axis=0), x) > 1


def test_fp32c_is_at_fp32_level():
    """Each of three stages rounds at most 16/2 block sums and four times in the twiddle factors.

    The worst error is 3·12·2^-24, and the mean is far smaller; FP16 is 2^13 times coarser.
    """
    x = signal(1 << 10)
    e = {
        name: error(fft(x, BoundMethod(METHODS[name], Engine())), x)
        for name in METHODS
        if name != "FP64"
    }
    assert e["FP32C"] < 3 * 2.0**-24 and e["FP32"] == e["FP32C"]
    assert e["FP32C"] < 1.1 * e["3xTF32"] < 3 * e["FP32C"]
    assert e["3xTF32"] < e["3xBF16"] / 10 < e["TF32"] / 100
    assert 1e-4 < e["FP16"] < 1e-3


@pytest.mark.parametrize("fault", ["sign", "none"])
def test_wrong_twiddles_are_noticed(monkeypatch, fault):
    def wrong(x, factor):
        return x * (factor.conj() if fault == "sign" else np.float32(1))

    monkeypatch.setattr(module, "_times", wrong)
    x = signal(1 << 10)
    assert error(fft(x, NumPy()), x) > 0.1


def test_costs_of_1024_points():
    """The radices are 16, 16 and 4: products of 16×64×16 twice, and of 4×256×4 once."""
    engine = Engine()
    fft(signal(1 << 10), BoundMethod(METHODS["FP32C"], engine))
    cost = engine.costs["fp32c"]
    assert cost.instructions == 2 * (1 * 8 * 4) + 1 * 32 * 1
    assert cost.tiles == 2 * (2 * 16 * 8) + 1 * 64 * 2
    assert cost.model_cycles == 4 * cost.tiles
    assert cost.products == 2 * 16 * 16 * 64 + 4 * 4 * 256


def test_the_table():
    rows = {row.method: row for row in FFT(1 << 12).rows}
    # 16-bit samples overflow FP16 after two stages; scaled by a power of two, they do not.
    assert np.isnan(rows["FP16"].extras["SNR dB"]) and np.isnan(rows["FP16"].max_error)
    assert 60 < rows["FP16 scaled"].extras["SNR dB"] < 75
    assert 130 < rows["FP32C"].extras["SNR dB"] < 145
    assert rows["SciPy complex64"].cost is None and rows["SciPy complex64"].max_error < 1e-6
    fp32, fp32c, emulated = (rows[name].cost for name in ("FP32", "FP32C", "3xTF32"))
    assert fp32 and fp32c and emulated
    assert fp32.instructions == 2 * fp32c.instructions and fp32.model_cycles == fp32c.model_cycles
    assert emulated.instructions == 6 * fp32c.instructions


def test_what_is_refused():
    with pytest.raises(TypeError, match="x must be complex64, not float64"):
        fft(np.zeros(8), NumPy())
    with pytest.raises(ValueError, match="length must be a power of two"):
        fft(signal(12), NumPy())
    with pytest.raises(ValueError, match="x must have at least one axis"):
        fft(np.complex64(1), NumPy())
