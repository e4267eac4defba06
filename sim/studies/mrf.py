"""Magnetic resonance fingerprinting: a dictionary of signals, and the search of measured signals.

The model is an extended phase graph. It describes the transverse and longitudinal magnetisation of
a tissue with the relaxation times T1 and T2 by Fourier coefficients over the phase that the
gradients spread: F⁺ₖ, conj F⁻ₖ and Zₖ, for orders k from 0. Each repetition of a gradient-spoiled
sequence has three steps:

1. RF pulse: a 3 × 3 complex matrix is multiplied by the three coefficients of every order of every
   tissue. This is the matrix product that generates the dictionary.
2. Relaxation, element by element: first until the echo, whose F⁺₀ is the signal, then until the
   next pulse.
3. Gradient: F⁺ moves up by one order, F⁻ moves down.

The pulses act as in Weigel, J. Magn. Reson. Imaging 41 (2015) 266. The sequence of pulses is our
own. Orders above the last one are dropped.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.sim.studies.gemm import COMPLEX
from vitruvian.sim.studies.methods import NumPy
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel

#: Measured voxels in the case study, and the standard deviation of their noise.
VOXELS, NOISE = 256, 0.01


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """A sequence: an inversion, then P pulses at equal intervals.

    Attributes
    ----------
    flips, phases : (P,) ndarray of float
        Flip angles and phases of the pulses in rad.
    repetition_ms, echo_ms, inversion_ms : float
        Times between two pulses, from a pulse to its echo, and from the inversion to the first
        pulse, in ms.
    orders : int
        Number of dephasing orders that the model keeps.
    """

    flips: np.ndarray
    phases: np.ndarray
    repetition_ms: float = 12.0
    echo_ms: float = 3.0
    inversion_ms: float = 20.0
    orders: int = 20

    @classmethod
    def lobes(cls, pulses: int, **others) -> "Sequence":
        """Return a sequence with flip angles in lobes and quadratic phases.

        Parameters
        ----------
        pulses : int
            Number of pulses. The flip angles form lobes of 60 pulses between 5° and 60°.
        **others
            Other fields of the sequence.
        """
        p = np.arange(pulses)
        flips = np.deg2rad(5 + 55 * np.sin(np.pi * p / 60) ** 2)
        return cls(flips=flips, phases=np.deg2rad(1.5 * p**2 % 360), **others)


def rf_matrix(flip: float, phase: float) -> np.ndarray:
    """Return the matrix of a pulse, which acts on (F⁺ₖ, conj F⁻ₖ, Zₖ).

    Parameters
    ----------
    flip, phase : float
        Flip angle and phase in rad.

    Returns
    -------
    (3, 3) ndarray of complex128
    """
    # Weigel 2015, the transition matrix of a pulse with the flip angle α and the phase φ.
    c, s, i = np.cos(flip / 2) ** 2, np.sin(flip / 2) ** 2, 1j
    sine, rotation = np.sin(flip), np.exp(1j * phase)
    return np.array(
        [
            [c, rotation**2 * s, -i * rotation * sine],
            [s / rotation**2, c, i / rotation * sine],
            [-i / 2 / rotation * sine, i / 2 * rotation * sine, np.cos(flip)],
        ]
    )


def dictionary(t1_ms, t2_ms, sequence: Sequence, gemm, *, dtype: Any = np.complex64) -> np.ndarray:
    """Return the signals of tissues under a sequence.

    Parameters
    ----------
    t1_ms, t2_ms : (A,) ndarray of float
        Relaxation times of A tissues in ms.
    gemm : callable
        Function ``gemm(a, b)``. A contains the coefficients, (A · orders, 3), and B the transposed
        matrix of the pulse.
    dtype : complex dtype
        Dtype of the coefficients and of all steps outside the product. Constants are computed in
        double precision and rounded to it.

    Returns
    -------
    (A, P) ndarray of dtype

    Raises
    ------
    ValueError
        If a time is not positive, or the arrays have different shapes.
    """
    t1, t2 = np.asarray(t1_ms, float), np.asarray(t2_ms, float)
    if t1.shape != t2.shape or t1.ndim != 1 or not (t1 > 0).all() or not (t2 > 0).all():
        raise ValueError("t1_ms and t2_ms must be (A,) arrays of positive times")
    state = np.zeros((len(t1), sequence.orders, 3), dtype)
    state[:, 0, 2] = -1  # the equilibrium magnetisation 1 after the inversion
    _relax(state, sequence.inversion_ms, t1, t2)
    echo = np.exp(-sequence.echo_ms / t2).astype(state.real.dtype)
    signals = np.empty((len(t1), len(sequence.flips)), dtype)
    for p, (flip, phase) in enumerate(zip(sequence.flips, sequence.phases, strict=True)):
        pulse = np.ascontiguousarray(rf_matrix(flip, phase).T, dtype)
        state = gemm(state.reshape(-1, 3), pulse).reshape(state.shape)
        # Order 0 of F⁺ is what a coil measures; it decays with T2 until the echo.
        signals[:, p] = state[:, 0, 0] * echo
        _relax(state, sequence.repetition_ms, t1, t2)
        _spoil(state)
    return signals


def _relax(state, time, t1, t2) -> None:
    """Let the magnetisation relax for a time in ms; order 0 of Z recovers towards 1."""
    real = state.real.dtype
    # T2 reduces F⁺ and F⁻, T1 reduces Z; only order 0 of Z recovers.
    recovered, kept = np.exp(-time / t1), np.exp(-time / t2)
    state[:, :, :2] *= kept.astype(real)[:, None, None]
    state[:, :, 2] *= recovered.astype(real)[:, None]
    state[:, 0, 2] += (1 - recovered).astype(real)


def _spoil(state) -> None:
    """Apply the gradient: shift F⁺ up and F⁻ down by one order; F⁻₁ becomes F⁺₀."""
    state[:, 1:, 0] = state[:, :-1, 0].copy()
    state[:, :-1, 1] = state[:, 1:, 1].copy()
    # Nothing comes from orders beyond those that the model keeps.
    state[:, -1, 1] = 0
    state[:, 0, 0] = state[:, 0, 1].conj()


def match_scores(atoms, signals, gemm) -> np.ndarray:
    """Return |⟨atom, signal⟩| for every pair; the largest score identifies the tissue.

    Parameters
    ----------
    atoms : (A, P) ndarray of complex
        Signals of the dictionary, with unit norm.
    signals : (V, P) ndarray of complex
        Measured signals of V voxels.
    gemm : callable
        Function ``gemm(a, b)``.

    Returns
    -------
    (A, V) ndarray of float
    """
    return np.abs(gemm(np.conj(atoms), np.ascontiguousarray(signals.T)))


def tissues(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of relaxation times (T1, T2) in ms, without the pairs with T2 ≥ T1.

    T1 is from 100 to 3000 ms and T2 from 10 to 300 ms, with ``side`` values of each on a
    logarithmic scale.
    """
    t1, t2 = np.meshgrid(np.geomspace(100, 3000, side), np.geomspace(10, 300, side), indexing="ij")
    return t1[t2 < t1], t2[t2 < t1]


def _generate(size: int, options: RunOptions) -> Study:
    t1, t2 = tissues(size)
    sequence = Sequence.lobes(120)
    wide = dictionary(t1, t2, sequence, NumPy(), dtype=np.complex128)

    def compute(gemm):
        return dictionary(t1, t2, sequence, gemm)

    return Study(
        kernel="mrf",
        title="fingerprint dictionary: RF pulses of a phase graph as matrix products",
        setting=f"{len(t1)} tissues, {len(sequence.flips)} pulses, {sequence.orders} orders: "
        f"{len(sequence.flips)} products of {len(t1) * sequence.orders}×3×3",
        reference="the same model in complex128",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(compute, wide, baselines={"NumPy complex64": lambda: compute(NumPy())}),
        notes=("relaxation and gradients are computed in FP32 outside the matrix unit",),
    )


def _match(size: int, options: RunOptions) -> Study:
    random = np.random.default_rng(options.seed)
    t1, t2 = tissues(size)
    sequence = Sequence.lobes(120)
    atoms = dictionary(t1, t2, sequence, NumPy(), dtype=np.complex128)
    # Unit norm, so that the score compares shapes of signals and not their strengths.
    atoms = (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(np.complex64)
    voxel_t1 = np.exp(random.uniform(np.log(100), np.log(3000), VOXELS))
    # A tissue has T2 < T1.
    voxel_t2 = np.minimum(np.exp(random.uniform(np.log(10), np.log(300), VOXELS)), voxel_t1 / 2)
    signals = dictionary(voxel_t1, voxel_t2, sequence, NumPy(), dtype=np.complex128)
    noise = random.standard_normal((*signals.shape, 2)).view(np.complex128)[..., 0]
    signals = (signals + NOISE * noise).astype(np.complex64)
    wide = match_scores(atoms.astype(np.complex128), signals.astype(np.complex128), NumPy())

    def compute(gemm):
        return match_scores(atoms, signals, gemm)

    def extras(scores, _):
        return {"other %": 100 * float((scores.argmax(0) != wide.argmax(0)).mean())}

    return Study(
        kernel="mrf-match",
        title="fingerprints matched with the dictionary",
        setting=f"{len(t1)} tissues, {VOXELS} voxels of {len(sequence.flips)} samples with noise "
        f"of {NOISE} of the equilibrium magnetisation",
        reference="complex128 products of the same complex64 numbers",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            compute,
            wide,
            extras=extras,
            baselines={"NumPy complex64": lambda: compute(NumPy())},
        ),
        notes=("other: voxels matched with a tissue that differs from the reference's",),
    )


_METHODS = ("FP16", "BF16", "TF32", "3xBF16", "3xTF32", "FP32", "FP32C")

MRF = StudyKernel(
    name="mrf",
    title="fingerprint dictionary",
    run=_generate,
    size="values of T1 and of T2",
    default=16,
    low=2,
    high=128,
    methods=_METHODS,
    supported=COMPLEX,
)

MATCH = StudyKernel(
    name="mrf-match",
    title="fingerprint matching",
    run=_match,
    size="values of T1 and of T2",
    default=32,
    low=2,
    high=128,
    methods=_METHODS,
    supported=COMPLEX,
)
