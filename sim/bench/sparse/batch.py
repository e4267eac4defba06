"""Batch checks of the sparse cores, which compare compiled RTL under stalls with golden."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.names import PLUS, TIMES
from vitruvian.golden.sparse.rows import is_rows
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse import ISConfig, ISCore, OSConfig, OSCore
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .traffic import Beats, RowBeats, columns, format_label, lengths, rows, zeros

#: Golden computes every operator on arrays of a few beats, so a check gets a share of the vectors.
SHARE = 1 / 8


def compare_columns(
    model: CompiledModel,
    config: OSConfig,
    beats: Beats,
    *,
    seed: int,
    stall_rate: float = 0.2,
    **options: Any,
) -> Result:
    """Run beats through a compiled ``OSCore``, and compare every column with golden.

    Parameters
    ----------
    seed : int
        Seed of the stalls, and for messages.
    **options
        Further arguments of ``CompiledModel.stream``.
    """
    values, beat, lane = os_columns(
        beats.a, beats.b, beats.present, beats.last, beats.plus, beats.times, config.format
    )
    ends = np.unique(beat)
    result = model.stream(
        inputs={"i": beats.payload()},
        outputs={"o": len(ends)},
        stall_rate=stall_rate,
        stall_seed=seed,
        **options,
    )
    output = result.outputs["o"]
    last = output["last"].astype(bool)
    # A lane in which no column ends has an undefined value.
    got = np.where(last, output["value"], 0)
    expected = np.zeros_like(got)
    # The place of a beat in ``ends`` is the number of its output.
    expected[np.searchsorted(ends, beat), lane] = values
    wide = got.dtype
    return compare(
        "columns of a beat",
        got=np.concatenate([last.astype(wide), got], axis=1),
        expected=np.concatenate([beats.last[ends].astype(wide), expected], axis=1),
        operands={
            "plus": np.array([PLUS.index(str(name)) for name in beats.plus])[ends],
            "times": np.array([TIMES.index(str(name)) for name in beats.times])[ends],
            "a": beats.a[ends],
            "b": beats.b[ends],
            "present": beats.present[ends],
            "marks": beats.last[ends],
        },
        seed=seed,
    )


def compare_rows(
    model: CompiledModel,
    config: ISConfig,
    beats: RowBeats,
    *,
    seed: int,
    stall_rate: float = 0.2,
    **options: Any,
) -> Result:
    """Run beats through a compiled ``ISCore``, and compare every group that it reads with golden.

    Parameters
    ----------
    beats : RowBeats
        Beats that write every column before they add to it.
    seed, stall_rate, **options
        The same as those of ``compare_columns``.
    """
    # The first beats write all columns, so the start is never seen.
    start = np.zeros(config.lanes * config.depth, beats.a.dtype)
    expected, _ = is_rows(
        start, beats.a, beats.x, beats.columns, beats.present, beats.kinds, beats.plus,
        beats.times, config.format,
    )  # fmt: skip
    result = model.stream(
        inputs={"i": beats.payload()},
        outputs={"o": len(expected)},
        stall_rate=stall_rate,
        stall_seed=seed,
        **options,
    )
    at = np.flatnonzero(beats.kinds == "read")
    return compare(
        "group of columns",
        got=result.outputs["o"].astype(expected.dtype),
        expected=expected,
        operands={"beat": at, "column": beats.columns[at, 0]},
        seed=seed,
    )


def _run_rows(config: ISConfig, vectors: int, seed: int) -> Result:
    model = compile_unit(ISCore, config=config)
    rng = np.random.default_rng(seed)
    count = int(vectors * SHARE / config.lanes / 8) + 200
    beats = rows(rng, count, config.lanes, config.lanes * config.depth, config.format)
    return compare_rows(model, config, beats, seed=seed)


def _run_columns(config: OSConfig, vectors: int, seed: int) -> Result:
    model = compile_unit(OSCore, config=config)
    rng = np.random.default_rng(seed)
    # A column has about 1.5 beats, and a beat of narrow cores about one column.
    count = int(vectors * SHARE / config.lanes) + 200
    beats = columns(rng, lengths(rng, count, config.lanes), config.lanes, config.format)
    result = compare_columns(model, config, beats, seed=seed)
    return result + compare_columns(model, config, zeros(beats, config.format), seed=seed)


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the units of the catalogue."""
    unit = UNITS["sparse-os"]
    for partial_configuration in unit.checked:
        config: OSConfig = unit.component(unit.default(partial_configuration))[1]["config"]
        yield Check(
            unit="sparse.OSCore",
            configuration=f"{config.lanes} lanes {format_label(config)}: random columns, stalls",
            run=partial(_run_columns, config),
            weight=5 + config.lanes,
        )
    unit = UNITS["sparse-is"]
    for partial_configuration in unit.checked:
        core: ISConfig = unit.component(unit.default(partial_configuration))[1]["config"]
        yield Check(
            unit="sparse.ISCore",
            configuration=(
                f"{core.lanes} lanes of {core.depth} {format_label(core)}: conflicts, stalls"
            ),
            run=partial(_run_rows, core),
            weight=5 + core.lanes,
        )
