"""Operands and golden's results for units with semirings."""

from typing import NamedTuple

import numpy as np

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.golden.simd2.op import GROUP, KEPT
from vitruvian.hdl.cube.config import MatrixUnitConfig

from .operands import draw_addends, draw_operands
from .schedule import BeatSchedule

#: Zeros, infinities, NaN, ±1, and the smallest and largest numbers of both signs.
_SPECIALS = np.array(
    [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x3C00, 0xBC00, 1, 0x8001, 0x7BFF, 0xFBFF], np.uint16
)
_SHARE_OF_SPECIALS = 0.02
_SHARE_OF_CLOSE = 0.3  # of beats whose candidates are nearly equal


def compute_semirings(
    rng: np.random.Generator, config: MatrixUnitConfig, schedule: BeatSchedule
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands of beats, and the contents of the slots after them.

    Returns
    -------
    a, b : (beats, m or n, bytes) ndarray of uint8
        Contents of the buses.
    c : (beats, m, n) ndarray of uint32
        C fractals.
    d : (beats, m, n) ndarray of uint32
        Contents of each beat's slot after the beat.
    index : (beats, m, bytes) ndarray of uint8
        Contents of the bus of indices; empty without sparsity.
    """
    operands = _draw(rng, config, schedule)
    d = _accumulate(config, schedule, operands)
    a, b, c, indices = operands
    return a.view(np.uint8), b.view(np.uint8), c, d, _packed(config, indices)


class _SemiringOperands(NamedTuple):
    """The codes of A, B and C of every beat, and the indices of A's values in their groups."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    indices: np.ndarray


def _spec(config: MatrixUnitConfig) -> DotSpec:
    spec = config.spec("fp16")
    assert isinstance(spec, DotSpec)
    return spec


def _draw(
    rng: np.random.Generator, config: MatrixUnitConfig, schedule: BeatSchedule
) -> _SemiringOperands:
    """Draw operands: some beats have nearly equal candidates, and some codes are special."""
    spec, scale = _spec(config), schedule.scale
    a, b = draw_operands(rng, spec, scale, config.m, config.n)
    if config.sparsity:
        _, more = draw_operands(rng, spec, scale, config.m, config.n)
        b = np.concatenate([b, more], axis=-1)
    a, b = a.astype(np.uint16), b.astype(np.uint16)
    indices = rng.integers(0, GROUP, a.shape)
    close = rng.random(len(schedule)) < _SHARE_OF_CLOSE
    base = rng.integers(0x0400, 0x7800, (int(close.sum()), 1, 1)).astype(np.uint16)
    for codes in (a, b):
        shape = codes[close].shape
        near = base + rng.integers(0, 4, shape).astype(np.uint16)
        codes[close] = near | (rng.integers(0, 2, shape) << 15).astype(np.uint16)
        special = rng.random(codes.shape) < _SHARE_OF_SPECIALS
        codes[special] = rng.choice(_SPECIALS, int(special.sum()))
    c = draw_addends(rng, spec, scale, config.m, config.n).astype(np.uint32)
    chosen = rng.random(c.shape) < 0.1
    c[chosen] = rng.integers(0, 1 << 32, int(chosen.sum()), dtype=np.uint64).astype(np.uint32)
    return _SemiringOperands(a, b, c, indices)


def _accumulate(
    config: MatrixUnitConfig, schedule: BeatSchedule, operands: _SemiringOperands
) -> np.ndarray:
    """Return the contents of each beat's slot after the beat."""
    a, b, c, indices = operands
    run, step, spec = schedule.run, schedule.step, _spec(config)
    d = np.zeros_like(c)
    state = np.zeros((int(run.max()) + 1, config.m, config.n), np.uint32)
    # The beats of a run depend on each other: compute the first beats of all runs, then the second.
    for index in range(int(step.max()) + 1):
        for code, name in enumerate(config.operations):
            now = np.flatnonzero((step == index) & (schedule.operation == code))
            if not len(now):
                continue
            if index == 0:
                empty = np.float32(Op[name.upper()].identity).view(np.uint32)
                from_c = schedule.from_c[now][:, None, None]
                state[run[now]] = np.where(from_c, c[now], empty)
            pairs = config.pairs(name)
            x = a[now][..., :pairs].view(np.float16)[:, :, None, :]
            y = _rows(config, b[now], indices[now][..., :pairs]).view(np.float16)
            addend = state[run[now]].view(np.float32)[:, :, None, :]
            settings = {"k": spec.k, "window": spec.sum.window, "squares": "products"}
            result = mmo(name, x, np.swapaxes(y, 2, 3), addend, **settings)
            state[run[now]] = result[:, :, 0].view(np.uint32)
        now = np.flatnonzero(step == index)
        d[now] = state[run[now]]
    return d


def _rows(config: MatrixUnitConfig, b: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the codes of B that each row of A is combined with, (beats, M, N, pairs)."""
    m, pairs = config.m, indices.shape[-1]
    if not config.sparsity:
        return np.repeat(b[:, None, :, :pairs], m, axis=1)
    chosen = np.arange(pairs) // KEPT * GROUP + indices
    return np.take_along_axis(b[:, None], chosen[:, :, None, :], axis=-1)


def _packed(config: MatrixUnitConfig, indices: np.ndarray) -> np.ndarray:
    """Return indices, two bits each, as the bytes of the bus."""
    if not config.sparsity:
        return np.zeros((*indices.shape[:2], 0), np.uint8)
    bits = (indices[..., None] >> np.arange(2) & 1).reshape(*indices.shape[:2], -1)
    return np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little")
