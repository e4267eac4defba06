"""Fingerprints: the phase graph against an ensemble of spins, and its products in FP32C."""

import numpy as np
import pytest

from vitruvian.sim.studies import MATCH, METHODS, MRF, BoundMethod, Engine, NumPy
from vitruvian.sim.studies import mrf as module
from vitruvian.sim.studies.mrf import Sequence, dictionary, match_scores, rf_matrix, tissues
from vitruvian.sim.studies.study import errors


def ensemble(t1: float, t2: float, sequence: Sequence, spins: int) -> np.ndarray:
    """Return the signals of spins that a gradient rotates by 2πj/spins, by the Bloch equations."""
    turn = np.exp(2j * np.pi * np.arange(spins) / spins)
    m = np.zeros((spins, 3))
    m[:, 2] = -1

    def relax(m, time):
        m = m * [np.exp(-time / t2), np.exp(-time / t2), np.exp(-time / t1)]
        m[:, 2] += 1 - np.exp(-time / t1)
        return m

    m, signals = relax(m, sequence.inversion_ms), []
    for flip, phase in zip(sequence.flips, sequence.phases, strict=True):
        x, y = np.cos(phase), np.sin(phase)
        cross = np.array([[0, 0, y], [0, 0, -x], [-y, x, 0]])
        rotation = np.eye(3) + np.sin(flip) * cross + (1 - np.cos(flip)) * cross @ cross
        m = m @ rotation.T
        transverse = m[:, 0] + 1j * m[:, 1]
        signals.append(transverse.mean() * np.exp(-sequence.echo_ms / t2))
        m = relax(m, sequence.repetition_ms)
        transverse = (m[:, 0] + 1j * m[:, 1]) * turn
        m = np.stack([transverse.real, transverse.imag, m[:, 2]], axis=1)
    return np.array(signals)


TISSUES = np.array([800.0, 250.0, 3000.0]), np.array([80.0, 40.0, 290.0])


def distance_from_spins() -> float:
    """Return the largest difference of the two models.

    With as many orders as pulses no order is dropped, and 64 spins distinguish 32 orders.
    """
    sequence = Sequence.lobes(30, orders=31)
    signals = dictionary(*TISSUES, sequence, NumPy(), dtype=np.complex128)
    spins = [ensemble(t1, t2, sequence, 64) for t1, t2 in zip(*TISSUES, strict=True)]
    return float(np.abs(signals - spins).max())


def test_the_graph_is_the_ensemble_of_spins():
    assert distance_from_spins() < 1e-14


@pytest.mark.parametrize("fault", ["spoil", "pulse"])
def test_a_fault_of_the_model_is_noticed(monkeypatch, fault):
    if fault == "spoil":
        monkeypatch.setattr(module, "_spoil", lambda state: None)
    else:
        monkeypatch.setattr(module, "rf_matrix", lambda flip, phase: rf_matrix(flip, -phase))
    assert distance_from_spins() > 1e-3


def test_a_pulse_keeps_the_magnetisation():
    """In the coordinates (F⁺, conj F⁻, √2·Z) a pulse is unitary, and 2π is the identity."""
    weights = np.diag([1, 1, np.sqrt(2)])
    for flip, phase in [(0.3, 0.0), (1.0, 2.0), (3.0, -1.0)]:
        t = weights @ rf_matrix(flip, phase) @ np.linalg.inv(weights)
        assert np.allclose(t @ t.conj().T, np.eye(3))
        assert np.allclose(rf_matrix(flip, phase) @ rf_matrix(-flip, phase), np.eye(3))
    assert np.allclose(rf_matrix(2 * np.pi, 1.0), np.eye(3))


def test_fp32c_computes_the_dictionary():
    t1, t2 = tissues(6)
    sequence = Sequence.lobes(40, orders=10)
    wide = dictionary(t1, t2, sequence, NumPy(), dtype=np.complex128)
    e = {}
    for name in ("FP16", "TF32", "3xBF16", "3xTF32", "FP32", "FP32C"):
        signals = dictionary(t1, t2, sequence, BoundMethod(METHODS[name], Engine()))
        assert signals.dtype == np.complex64
        e[name] = errors(signals, wide)[1]
    # Forty pulses, each with about eight roundings of numbers below 1, which partly cancel.
    assert e["FP32C"] == e["FP32"] < 40 * 2.0**-24
    assert e["3xTF32"] < e["3xBF16"] / 10 < e["TF32"] / 100 and e["FP16"] > 1e-4


def test_costs_by_hand():
    """10 tissues with 5 orders take 50×3×3 for each of 7 pulses."""
    engine = Engine()
    t1 = np.full(10, 500.0)
    dictionary(t1, t1 / 10, Sequence.lobes(7, orders=5), BoundMethod(METHODS["FP32C"], engine))
    cost = engine.costs["fp32c"]
    assert (cost.products, cost.instructions) == (7 * 450, 7 * 4)
    assert cost.model_cycles == 4 * 7 * (7 * 1 * 2)


def test_a_signal_is_matched_with_its_own_atom():
    t1, t2 = tissues(8)
    atoms = dictionary(t1, t2, Sequence.lobes(60), NumPy())
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    turned = atoms * np.complex64(3j)
    scores = match_scores(atoms, turned, BoundMethod(METHODS["FP32C"], Engine()))
    assert np.array_equal(scores.argmax(axis=0), np.arange(len(t1)))
    assert np.allclose(scores.max(axis=0), 3, rtol=1e-6)


def test_tables():
    rows = {row.method: row for row in MRF(6, methods=("FP16", "FP32C")).rows}
    assert rows["FP32C"].max_error < 4e-6 < 4e-4 < rows["FP16"].max_error
    rows = {row.method: row for row in MATCH(16).rows}
    assert rows["FP32C"].extras["other %"] <= 1 < rows["BF16"].extras["other %"]


def test_tissues_and_errors():
    t1, t2 = tissues(4)
    assert len(t1) == len(t2) and (t2 < t1).all() and t1.max() == pytest.approx(3000)
    for t1_ms, t2_ms in [([1.0, 2.0], [1.0]), ([0.0], [1.0]), ([[1.0]], [[1.0]])]:
        with pytest.raises(ValueError, match=r"must be \(A,\) arrays of positive times"):
            dictionary(t1_ms, t2_ms, Sequence.lobes(3), NumPy())
