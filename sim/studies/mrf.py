"""Magnetic resonance fingerprinting: a dictionary of signals, and the match of measured ones.

The model is an extended phase graph: transverse and longitudinal magnetisation of a tissue (T1, T2)
as Fourier coefficients over the phase that the gradients spread, F⁺ₖ, conj F⁻ₖ and Zₖ, for orders k
from 0. Each repetition of a gradient-spoiled sequence is

1. an RF pulse: a 3 × 3 complex matrix times the three coefficients of every order of every tissue,
   which is the matrix product of the dictionary's generation;
2. relaxation to the echo, whose F⁺₀ is the signal, and to the next pulse: element by element;
3. the gradient: F⁺ moves up by one order, F⁻ down.

Pulses act as in Weigel, J. Magn. Reson. Imaging 41 (2015) 266. The train of pulses is our own;
orders past the last are dropped.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.sim.studies.gemm import COMPLEX
from vitruvian.sim.studies.methods import NumPy
from vitruvian.sim.studies.study import Kernel, Setting, Study

__all__ = ["MATCH", "MRF", "Sequence", "dictionary", "match_scores", "rf_matrix", "tissues"]

VOXELS, NOISE = 256, 0.01


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """An inversion, then a train of pulses that are all apart by the repetition time.

    Attributes
    ----------
    flips, phases : (P,) ndarray of float
        Angles of the pulses in rad.
    repetition_ms, echo_ms, inversion_ms : float
        From pulse to pulse, from pulse to echo, from the inversion to the first pulse.
    orders : int
        Orders of dephasing that are kept.
    """

    flips: np.ndarray
    phases: np.ndarray
    repetition_ms: float = 12.0
    echo_ms: float = 3.0
    inversion_ms: float = 20.0
    orders: int = 20

    @classmethod
    def lobes(cls, pulses: int, **others) -> "Sequence":
        """Flip angles in lobes of 60 pulses between 5° and 60°, phases that grow as a square."""
        p = np.arange(pulses)
        flips = np.deg2rad(5 + 55 * np.sin(np.pi * p / 60) ** 2)
        return cls(flips=flips, phases=np.deg2rad(1.5 * p**2 % 360), **others)


def rf_matrix(flip: float, phase: float) -> np.ndarray:
    """What a pulse does to (F⁺ₖ, conj F⁻ₖ, Zₖ): a (3, 3) ndarray of complex128."""
    c, s, i = np.cos(flip / 2) ** 2, np.sin(flip / 2) ** 2, 1j
    sine, turn = np.sin(flip), np.exp(1j * phase)
    return np.array(
        [
            [c, turn**2 * s, -i * turn * sine],
            [s / turn**2, c, i / turn * sine],
            [-i / 2 / turn * sine, i / 2 * turn * sine, np.cos(flip)],
        ]
    )


def dictionary(t1_ms, t2_ms, sequence: Sequence, gemm, *, dtype: Any = np.complex64) -> np.ndarray:
    """Signals of tissues under a sequence.

    Parameters
    ----------
    t1_ms, t2_ms : (A,) ndarray of float
    sequence : Sequence
    gemm : callable
        ``gemm(a, b)``: A is (A · orders, 3), the coefficients; B the pulse, transposed.
    dtype : complex dtype
        Of the coefficients and of everything else that is done to them. Constants are computed in
        double precision and rounded to it.

    Returns
    -------
    (A, P) ndarray of dtype

    Raises
    ------
    ValueError
        For times that are not positive, or arrays of different shape.
    """
    t1, t2 = np.asarray(t1_ms, float), np.asarray(t2_ms, float)
    if t1.shape != t2.shape or t1.ndim != 1 or not (t1 > 0).all() or not (t2 > 0).all():
        raise ValueError("t1_ms and t2_ms must be (A,) arrays of positive times")
    state = np.zeros((len(t1), sequence.orders, 3), dtype)
    state[:, 0, 2] = -1  # inverted
    _relax(state, sequence.inversion_ms, t1, t2)
    echo = np.exp(-sequence.echo_ms / t2).astype(state.real.dtype)
    signals = np.empty((len(t1), len(sequence.flips)), dtype)
    for p, (flip, phase) in enumerate(zip(sequence.flips, sequence.phases, strict=True)):
        pulse = np.ascontiguousarray(rf_matrix(flip, phase).T, dtype)
        state = gemm(state.reshape(-1, 3), pulse).reshape(state.shape)
        signals[:, p] = state[:, 0, 0] * echo
        _relax(state, sequence.repetition_ms, t1, t2)
        _spoil(state)
    return signals


def _relax(state, time, t1, t2) -> None:
    real = state.real.dtype
    recovered, kept = np.exp(-time / t1), np.exp(-time / t2)
    state[:, :, :2] *= kept.astype(real)[:, None, None]
    state[:, :, 2] *= recovered.astype(real)[:, None]
    state[:, 0, 2] += (1 - recovered).astype(real)


def _spoil(state) -> None:
    state[:, 1:, 0] = state[:, :-1, 0].copy()
    state[:, :-1, 1] = state[:, 1:, 1].copy()
    state[:, -1, 1] = 0
    state[:, 0, 0] = state[:, 0, 1].conj()


def match_scores(atoms, signals, gemm) -> np.ndarray:
    """|⟨atom, signal⟩| for every pair; the largest names the tissue.

    Parameters
    ----------
    atoms : (A, P) ndarray of complex
        Of unit norm.
    signals : (V, P) ndarray of complex
    gemm : callable

    Returns
    -------
    (A, V) ndarray of float
    """
    return np.abs(gemm(np.conj(atoms), np.ascontiguousarray(signals.T)))


def tissues(side: int) -> tuple[np.ndarray, np.ndarray]:
    """T1 from 100 to 3000 ms and T2 from 10 to 300 ms, ``side`` of each (log.), where T2 < T1."""
    t1, t2 = np.meshgrid(np.geomspace(100, 3000, side), np.geomspace(10, 300, side), indexing="ij")
    return t1[t2 < t1], t2[t2 < t1]


def _generate(size: int, setting: Setting) -> Study:
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
        unit=str(setting.unit),
        backend=setting.backend,
        rows=setting.rows(compute, wide, yardsticks={"NumPy complex64": lambda: compute(NumPy())}),
        notes=("relaxation and gradients are in FP32 outside the matrix unit",),
    )


def _match(size: int, setting: Setting) -> Study:
    random = np.random.default_rng(setting.seed)
    t1, t2 = tissues(size)
    sequence = Sequence.lobes(120)
    atoms = dictionary(t1, t2, sequence, NumPy(), dtype=np.complex128)
    atoms = (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(np.complex64)
    some = np.exp(random.uniform(np.log(100), np.log(3000), VOXELS))
    other = np.minimum(np.exp(random.uniform(np.log(10), np.log(300), VOXELS)), some / 2)
    signals = dictionary(some, other, sequence, NumPy(), dtype=np.complex128)
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
        unit=str(setting.unit),
        backend=setting.backend,
        rows=setting.rows(
            compute,
            wide,
            extras=extras,
            yardsticks={"NumPy complex64": lambda: compute(NumPy())},
        ),
        notes=("other: voxels matched with another tissue than the reference's",),
    )


_METHODS = ("FP16", "BF16", "TF32", "3xBF16", "3xTF32", "FP32", "FP32C")

MRF = Kernel(
    name="mrf",
    title="fingerprint dictionary",
    run=_generate,
    size="values of T1 and of T2",
    default=16,
    low=2,
    high=128,
    methods=_METHODS,
    able=COMPLEX,
)

MATCH = Kernel(
    name="mrf-match",
    title="fingerprint matching",
    run=_match,
    size="values of T1 and of T2",
    default=32,
    low=2,
    high=128,
    methods=_METHODS,
    able=COMPLEX,
)
