"""Features of an audio signal by Taylor series about angles (Tang 2024, §4.4.4).

The Fourier transform gives the signal as A·cos(t), with an amplitude and an angle t for every
sample (the analytic signal). The features of Table 4.2 are functions of the angle of a cosine. The
circle is cut into sectors; each feature is expanded about the middle of each sector, and evaluated
at the distances of the samples from it.

The expansions are ours: those that Table 4.2 prints for the log-amplitude (from the third order on)
and for the power (from the second order on) are not the derivatives of the functions.
"""

import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import cos, factorial, inf, log, pi, sin, tan
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.sim.davinci import simulate
from vitruvian.sim.kernels.kernel import KernelInstance
from vitruvian.sim.kernels.series.functions import SeriesFunction

#: The features in the order of Table 4.2.
FEATURES = ("amplitude", "log amplitude", "power", "gradient", "autocorrelation")

#: Sectors of the circle. The distance from the middle of one is at most π/16.
SECTORS = 16

#: Samples of the window of the autocorrelation.
_WINDOW = 256

#: Largest number of samples of a file; 16M are the inputs of the thesis.
_MOST_SAMPLES = 1 << 24

#: Builds a program: (inputs, functions, order) → program and result "y".
Builder = Callable[[np.ndarray, Sequence[SeriesFunction], int], KernelInstance]


@dataclass(frozen=True, eq=False)
class Signal:
    """Samples of one channel.

    Attributes
    ----------
    samples : (N,) ndarray of float64
        In −1 … 1.
    rate_hz : int
    """

    samples: np.ndarray
    rate_hz: int


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the samples.

    Attributes
    ----------
    values : (5, N) ndarray of float16
        In the order of ``FEATURES``.
    exact : (5, N) ndarray of float64
        The functions at the same angles in float64.
    total_s : float
        The simulated seconds of all launches, one for each sector.
    converged : (N,) ndarray of bool
        False in the four sectors that touch a zero of the cosine, where the series of the
        log-amplitude converges slowly or not at all.
    """

    values: np.ndarray
    exact: np.ndarray
    total_s: float
    converged: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """The largest absolute error of each feature, that of the log-amplitude if converged."""
        error = np.abs(self.values.astype(float) - self.exact)
        error[FEATURES.index("log amplitude"), ~self.converged] = 0
        return error.max(axis=1)


def read_wave(path: str | Path) -> Signal:
    """Read a WAV file of integers (PCM); channels are averaged.

    Raises
    ------
    UserError
        If the file cannot be read, is no such WAV file, or has no samples or too many.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate, count = file.getparams()[:4]
            if not 1 <= count <= _MOST_SAMPLES:
                raise UserError(f"{path} must have 1 … {_MOST_SAMPLES:,} samples, not {count:,}")
            data = np.frombuffer(file.readframes(count), np.uint8)
    except OSError as error:
        raise UserError(f"{path} must be a WAV file: {error.strerror or error}") from error
    except (wave.Error, EOFError) as error:
        reason = str(error) or "it ends too early"
        raise UserError(f"{path} must be a WAV file of integers: {reason}") from error
    if len(data) != count * channels * width:
        raise UserError(f"{path} must have the {count:,} samples that it announces")
    data = data.reshape(-1, width)
    if width == 1:  # only samples of one byte are unsigned
        numbers = data[:, 0].astype(np.int64) - 128
    else:
        wide = np.zeros((len(data), 8), np.uint8)
        wide[:, 8 - width :] = data
        numbers = wide.view("<i8")[:, 0] >> (64 - 8 * width)
    samples = numbers.reshape(count, channels).mean(axis=1) / (1 << (8 * width - 1))
    return Signal(samples, rate)


def synthetic(count: int, rate_hz: int = 16000) -> Signal:
    """Return a tone of 440 Hz with vibrato and a slow beat.

    Parameters
    ----------
    count : int
        The number of samples.
    """
    check_int("the number of samples", count, 1, _MOST_SAMPLES)
    time = np.arange(count) / rate_hz
    angle = 2 * pi * 440 * time + 3 * np.sin(2 * pi * 5 * time)
    return Signal((0.6 + 0.3 * np.cos(2 * pi * 2 * time)) * np.cos(angle), rate_hz)


def angles(signal: Signal) -> np.ndarray:
    """Return the angle of each sample as (N,) float64 in 0 … 2π.

    The Fourier transform without its negative frequencies is that of the analytic signal, whose
    real part is the signal and whose angle is the result.

    Raises
    ------
    UserError
        If the signal is constant, and has no angles.
    """
    x = signal.samples - signal.samples.mean()
    if not x.any():
        raise UserError("signal must have samples that differ, not one value")
    spectrum = np.fft.fft(x)
    half = (len(x) + 1) // 2
    spectrum[1:half] *= 2
    spectrum[len(x) // 2 + 1 :] = 0
    return np.angle(np.fft.ifft(spectrum)) % (2 * pi)


def features_at(middle: float, window: np.ndarray) -> list[SeriesFunction]:
    """Return the features as functions of the distance of the angle from ``middle``.

    Parameters
    ----------
    middle : float
        The angle t about which the series are.
    window : (n,) ndarray of float64
        The angles whose cosines the autocorrelation has: its value at an angle τ is the mean of
        cos(t)·cos(t + τ) over them.
    """
    # cos(t)·cos(t + τ) = (cos τ + cos(2t + τ))/2; only two sums of the window remain.
    even, odd = float(np.cos(2 * window).mean()), float(np.sin(2 * window).mean())

    def autocorrelation(angle: float) -> float:
        return ((1 + even) * cos(angle) - odd * sin(angle)) / 2

    def tangents(order: int) -> list[float]:
        terms = [tan(middle)]
        while len(terms) < order:
            square = sum(p * q for p, q in zip(terms, reversed(terms), strict=True))
            terms.append((square + (len(terms) == 1)) / len(terms))
        return terms

    def logarithm(order: int) -> tuple[Fraction, ...]:
        slopes = tangents(order)
        rest = [-a / (n + 1) for n, a in enumerate(slopes[: order - 1])]
        return tuple(map(Fraction, [log(abs(cos(middle))), *rest]))

    def wave_of(amplitude: float, frequency: int, phase: Callable[[float], float], offset: float):
        """Return the terms of offset + amplitude·phase(frequency·t)."""

        def terms(order: int) -> tuple[Fraction, ...]:
            values = [
                amplitude * frequency**n * phase(frequency * middle + n * pi / 2) / factorial(n)
                for n in range(order)
            ]
            values[0] += offset
            return tuple(map(Fraction, values))

        return terms

    radius = abs(pi / 2 - middle % pi)
    return [
        SeriesFunction("amplitude", wave_of(1, 1, cos, 0), inf, lambda d: np.cos(middle + d)),
        SeriesFunction(
            "log amplitude", logarithm, radius, lambda d: np.log(np.abs(np.cos(middle + d)))
        ),
        SeriesFunction("power", wave_of(0.5, 2, cos, 0.5), inf, lambda d: np.cos(middle + d) ** 2),
        SeriesFunction("gradient", wave_of(-1, 1, sin, 0), inf, lambda d: -np.sin(middle + d)),
        SeriesFunction(
            "autocorrelation",
            wave_of(1, 1, autocorrelation, 0),
            inf,
            lambda d: ((1 + even) * np.cos(middle + d) - odd * np.sin(middle + d)) / 2,
        ),
    ]


def evaluate(signal: Signal, build: Builder, order: int = 16) -> Features:
    """Compute the features of all samples on a simulated chip.

    Parameters
    ----------
    build : callable
        Builds the programs; for example ``series.build.build`` with a method and a chip, or that of
        Cube-fx.
    order : int
        The number of coefficients of each series.

    Raises
    ------
    UserError
        If the signal is constant.
    """
    angle = angles(signal)
    sector = np.minimum((angle * (SECTORS / (2 * pi))).astype(int), SECTORS - 1)
    values = np.zeros((len(FEATURES), len(angle)), np.float16)
    exact = np.zeros(values.shape)
    converged = np.ones(len(angle), bool)
    total_s = 0.0
    for number in range(SECTORS):
        here = sector == number
        if not here.any():
            continue
        middle = (number + 0.5) * 2 * pi / SECTORS
        functions = features_at(middle, angle[:_WINDOW])
        distance = (angle[here] - middle).astype(np.float16)
        instance = build(distance, functions, order)
        report = simulate(instance.program, checks=False)
        values[:, here] = instance.views["y"](report.outputs["y"])
        with np.errstate(divide="ignore"):
            exact[:, here] = [f.reference(angle[here] - middle) for f in functions]
        converged[here] = functions[1].radius > 2 * pi / SECTORS
        total_s += float(report.total_s)
    return Features(values, exact, total_s, converged)
