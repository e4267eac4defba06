"""Batch checks of integer SIMD² tiles: all operations, several widths and subsets."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op
from vitruvian.golden.simd2.integer import int_mmo
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.semirings import int_config
from vitruvian.hdl.simd2.integer import IntConfig, IntTile
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

#: The checked tiles. The unit's tests cover the widths of 32 and 64 bits.
CONFIGURATIONS = tuple(
    int_config(c) for c in map(UNITS["simd2-int"].default, UNITS["simd2-int"].checked)
)


def tile_name(config: IntConfig) -> str:
    """Return the name of a configuration for tables."""
    names = "+".join(op.mnemonic for op in config.operations)
    names = "all" if len(config.operations) == len(Op) else names
    shape = f"{config.m}×{config.n}×{config.k}"
    name = f"int{config.bits} {shape} {names} pipeline={config.pipeline}"
    return name if config.multiplier == "booth" else f"{name} {config.multiplier}"


def int_vectors(config: IntConfig, count: int, *, seed: int) -> dict[str, np.ndarray]:
    """Return random beats, in which many words are zeros or edges of the range.

    Parameters
    ----------
    config : IntConfig
        Configuration of the tile.
    count : int
        Number of beats, N.

    Returns
    -------
    beats : dict of ndarray
        ``valid``, ``first`` and ``op`` (N,), and the codes ``a`` (N, m, k), ``b`` (N, n, k) and
        ``c`` (N, m, n).
    """
    rng = np.random.default_rng(seed)
    w = config.bits
    edges = np.array([0, 1, 2, (1 << w) - 1, (1 << w - 1) - 1, 1 << w - 1], np.uint64)

    def words(*shape: int) -> np.ndarray:
        bits = rng.integers(0, 1 << 64, shape, dtype=np.uint64, endpoint=False)
        kind = rng.random(shape)
        bits = np.where(kind < 0.2, rng.choice(edges, shape), bits)
        bits = np.where((kind > 0.2) & (kind < 0.3), np.uint64(0), bits)
        return (bits & np.uint64((1 << w) - 1)).astype(f"u{w // 8}")

    a, b = words(count, config.m, config.k), words(count, config.n, config.k)
    c = words(count, config.m, config.n)
    zero = rng.random((count, 3)) < 0.2  # operands that are all zeros, for orand
    a[zero[:, 0]], b[zero[:, 1]], c[zero[:, 2]] = 0, 0, 0
    near = rng.random(count) < 0.2
    pattern = a[near][:, :1, :]
    b[near] = pattern + rng.integers(-1, 2, (near.sum(), config.n, config.k)).astype(b.dtype)
    codes = [op.code for op in config.operations]
    first = rng.random(count) < 0.5
    first[0] = True
    valid = rng.random(count) < 0.8
    valid[0] = True
    return {
        "valid": valid.astype(np.uint8),
        "first": first.astype(np.uint8),
        "op": rng.choice(codes, count).astype(np.uint8),
        "a": a,
        "b": b,
        "c": c,
    }


def tile_results(config: IntConfig, beats: dict[str, np.ndarray]) -> np.ndarray:
    """Return golden's contents of the accumulators after each beat, (N, m, n)."""
    rows = {}
    signed = f"i{config.bits // 8}"
    a, b = beats["a"], np.swapaxes(beats["b"], 1, 2)
    held = beats["c"].view(signed).copy()
    todo = beats["valid"].astype(bool)
    # A chain is a beat with ``first`` and the beats that accumulate to it. Golden computes the
    # first beats of all chains at once, then the second ones, and so on.
    starts = np.maximum.accumulate(np.where(todo & (beats["first"] == 1), np.arange(len(a)), 0))
    order = np.zeros(len(a), int)
    position: dict[int, int] = {}
    for i in np.flatnonzero(todo):
        position[starts[i]] = order[i] = position.get(starts[i], -1) + 1
    state = {int(s): held[s] for s in np.unique(starts)}
    for step in range(order[todo].max() + 1):
        for op in config.operations:
            now = np.flatnonzero(todo & (order == step) & (beats["op"] == op.code))
            if len(now):
                c = np.stack([state[int(starts[i])] for i in now])
                for i, d in zip(now, int_mmo(op, a[now], b[now], c, config.bits), strict=True):
                    rows[int(i)] = d
        state = {int(starts[i]): rows[int(i)] for i in np.flatnonzero(todo & (order == step))}
    last = np.maximum.accumulate(np.where(todo, np.arange(len(a)), 0))
    return np.stack([rows[int(i)] for i in last]).view(f"u{config.bits // 8}")


def late_c(config: IntConfig, beats: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return beats as inputs of the tile, which reads C later than A and B.

    The delay is ``pipeline + 1`` cycles, the number of registers before the accumulator; the C of
    the last beats are therefore missing.
    """
    return {**beats, "c": np.roll(beats["c"], config.pipeline + 1, axis=0)}


def run_int_tile(config: IntConfig, vectors: int, seed: int, *, model: Any = None) -> Result:
    """Compare a tile with ``int_mmo``; every beat has a random operation.

    Parameters
    ----------
    config : IntConfig
        Configuration of the tile.
    vectors, seed : int
        Number of beats, and seed of the stimuli.
    model : CompiledModel, optional
        Model of the tile; by default it is compiled.
    """
    model = model or compile_unit(IntTile, config=config)
    beats = int_vectors(config, vectors, seed=seed)
    got = model.run(**late_c(config, beats))
    whole = slice(0, vectors - config.pipeline - 1)
    expected = tile_results(config, beats)
    result = compare(
        tile_name(config),
        got=got["d"][whole],
        expected=expected[whole],
        operands={name: array[whole] for name, array in beats.items()},
        seed=seed,
    )
    done = compare(
        f"{tile_name(config)} done",
        got=got["done"][whole],
        expected=beats["valid"][whole],
        operands={"valid": beats["valid"][whole]},
        seed=seed,
    )
    examples = result.examples + done.examples
    return Result(
        vectors=result.vectors, mismatches=result.mismatches + done.mismatches, examples=examples
    )


def checks() -> Iterator[Check]:
    """Yield a row for every configuration."""
    for config in CONFIGURATIONS:
        yield Check(
            unit="simd2.IntTile",
            configuration=tile_name(config),
            run=partial(run_int_tile, config),
            weight=8,
        )
