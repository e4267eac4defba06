"""Features of audio signals: expansions, angles, and WAV files."""

import wave

import numpy as np
import pytest

from examples import audio_features
from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.kernels.series.build import build
from vitruvian.sim.papers.tang24.audio import (
    FEATURES,
    Signal,
    angles,
    evaluate,
    features_at,
    read_wave,
    synthetic,
)

C310 = load_chip("ascend310")


@pytest.mark.parametrize("middle", [0.2, 1.3, 3.5, 6.0])
def test_expansions_are_those_of_the_functions(middle):
    window = np.array([0.1, 2.0, 4.5])
    functions = features_at(middle, window)
    assert [f.name for f in functions] == list(FEATURES)
    for f in functions:
        d = np.linspace(-0.5, 0.5, 21) * min(f.radius, 1)
        sums = np.polynomial.polynomial.polyval(d, f.coefficients(60))
        assert np.allclose(sums, f.reference(d), rtol=0, atol=1e-13), f.name
    direct = np.mean(np.cos(window) * np.cos(window + middle + 0.25))
    assert functions[4].reference(np.array([0.25]))[0] == pytest.approx(direct, abs=1e-15)


def test_table_4_2_has_other_terms():
    """The printed terms of the log-amplitude and the power, and the derivatives."""
    t = 0.7
    log_amplitude, power = (features_at(t, np.zeros(1))[n].coefficients(5) for n in (1, 2))
    c, s = np.cos(t), np.sin(t)
    printed = [np.log(c), -s / c, -1 / (2 * c**2), s / c / (3 * c**2), -1 / (4 * c**4)]
    assert np.allclose(log_amplitude[:3], printed[:3])
    assert log_amplitude[3] == pytest.approx(-printed[3])
    assert log_amplitude[4] != pytest.approx(printed[4], rel=0.1)
    printed = [c**2, -2 * c * s, -(s**2), 2 * c * s / 3, s**4 / 24]
    assert np.allclose(power[:2], printed[:2]) and power[3] == pytest.approx(2 * printed[3])
    assert power[2] == pytest.approx(s**2 - c**2) and power[4] != pytest.approx(printed[4])


def test_angles_are_those_of_a_cosine():
    n = np.arange(512)
    exact = 2 * np.pi * 8 * n / 512 + 0.3
    found = angles(Signal(0.5 * np.cos(exact), 8000))
    assert np.allclose(np.exp(1j * found), np.exp(1j * exact), atol=1e-12)
    assert found.min() >= 0 and found.max() < 2 * np.pi


def test_features_on_the_chip_are_near_float64():
    signal = synthetic(3000)
    found = evaluate(signal, lambda x, f, order: build("horner", x, f, order, C310), 8)
    assert found.values.shape == (5, 3000) and found.total_s > 0
    # The angle is rounded to FP16 within a sector, by 2⁻¹⁴; values are below 2, so a sum of them is
    # rounded by 2⁻¹¹. The slope of the log-amplitude is up to tan(3π/8) = 2.4.
    assert (found.errors < [2.0**-10, 2.0**-9, 2.0**-10, 2.0**-10, 2.0**-10]).all()
    assert found.converged.mean() == pytest.approx(0.75, abs=0.05)
    # An order too small is seen.
    poor = evaluate(signal, lambda x, f, order: build("horner", x, f, order, C310), 2)
    assert (poor.errors > 5 * found.errors).sum() >= 4


def _write(path, samples: np.ndarray, width: int, channels: int = 1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        wide = samples.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
        file.writeframes(wide.tobytes())
    return path


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wave_files_of_all_widths(tmp_path, width):
    most = 1 << (8 * width - 1)
    numbers = np.array([0, 1, -1, most - 1, -most, 5])
    path = _write(tmp_path / "x.wav", numbers + (128 if width == 1 else 0), width)
    signal = read_wave(path)
    assert np.array_equal(signal.samples, numbers / most) and signal.rate_hz == 8000
    path = _write(tmp_path / "y.wav", np.array([3, 5, -4, -8]) + 128 * (width == 1), width, 2)
    assert np.array_equal(read_wave(path).samples, np.array([4, -6]) / most)


def test_mistakes_are_one_line(tmp_path, capsys):
    good = _write(tmp_path / "x.wav", np.arange(100), 2)
    short = tmp_path / "short.wav"
    short.write_bytes(good.read_bytes()[:-10])
    (tmp_path / "text.wav").write_text("hello")
    _write(tmp_path / "empty.wav", np.arange(0), 2)
    _write(tmp_path / "flat.wav", np.ones(50), 2)
    for name in ("short.wav", "text.wav", "empty.wav", "missing.wav", "flat.wav"):
        assert audio_features.main([str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1, name
    for more in (["--order", "0"], ["--chip", "x"], ["--size", "0"], ["--out", "x.txt"]):
        assert audio_features.main(more) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UserError, match="must have samples that differ"):
        angles(Signal(np.zeros(5), 1))


def test_the_example_writes_the_features(tmp_path, capsys):
    out = tmp_path / "features.npy"
    assert audio_features.main(["--size", "600", "--order", "8", "--out", str(out)]) == 0
    assert np.load(out).shape == (5, 600)
    assert "times as fast" in capsys.readouterr().out
