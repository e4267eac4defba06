"""Stimuli of the sparse units with golden's results, as the words of their streams."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.sparse.buffer import csr_beats, schedule
from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.programs import OUTPUTS
from vitruvian.golden.sparse.rows import is_rows
from vitruvian.hdl.sparse import EwiseCore, ISCore, OSCore
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import OEIConfig, Refusal
from vitruvian.sim.bench.arrays import Arrays

from . import passes as oei
from . import traffic
from .ewise_traffic import commands_payload, random_traffic

#: Mean number of words that a step of a random program stores.
_STORES_EACH = 1


def columns(unit: Any, count: int, seed: int) -> Arrays:
    """Return random columns for an output-stationary core; a lane without an end has no value."""
    assert isinstance(unit, OSCore)
    c, rng = unit.config, np.random.default_rng(seed)
    # A beat ends one column or more, unless a long column fills it.
    sizes = traffic.lengths(rng, count * (1 + c.lanes // 4), c.lanes)
    beats = traffic.columns(rng, sizes, c.lanes, c.format)
    values, beat, lane = os_columns(
        beats.a, beats.b, beats.present, beats.last, beats.plus, beats.times, c.format
    )
    ends = np.unique(beat)
    expected = np.zeros((len(ends), c.lanes), values.dtype)
    expected[np.searchsorted(ends, beat), lane] = values
    last = beats.last[ends]
    known = np.where(last, np.iinfo(values.dtype).max, 0).astype(values.dtype)
    every = np.ones_like(last, np.uint8)
    return Arrays(
        inputs={"i": beats.payload()},
        outputs={"o": {"last": last.astype(np.uint8), "value": expected}},
        care={"o": {"last": every, "value": known}},
    )


def rows(unit: Any, count: int, seed: int) -> Arrays:
    """Return random rows for an input-stationary core."""
    assert isinstance(unit, ISCore)
    c, rng = unit.config, np.random.default_rng(seed)
    size = c.lanes * c.depth
    # A fifth of the random beats are reads, and the last ones read every column.
    beats = traffic.rows(rng, max(count - c.depth, 20) * 5, c.lanes, size, c.format)
    expected, _ = is_rows(
        np.zeros(size, beats.a.dtype), beats.a, beats.x, beats.columns, beats.present, beats.kinds,
        beats.plus, beats.times, c.format,
    )  # fmt: skip
    return Arrays(inputs={"i": beats.payload()}, outputs={"o": expected})


def programs(unit: Any, count: int, seed: int) -> Arrays:
    """Return random programs for an element-wise core."""
    assert isinstance(unit, EwiseCore)
    rng = np.random.default_rng(seed)
    given = random_traffic(rng, unit.config, count // _STORES_EACH)
    outputs = {
        name: {"values": given.values[name], "present": _masks(given.present[name])}
        for name in OUTPUTS
    }
    inputs = {"command": commands_payload(given.commands), **given.inputs}
    return Arrays(inputs=inputs, outputs=outputs)


def passes(unit: Any, count: int, seed: int) -> Arrays:
    """Return random passes for the pipeline; a lane without an element has no value."""
    assert isinstance(unit, OEIPipeline)
    c = unit.config
    chosen = _passes(c, count, seed)
    dtype = code_dtype(c.number)
    empty = np.zeros((0, c.lanes), dtype)
    outputs: dict[str, Any] = {}
    care: dict[str, Any] = {}
    for name in ("z", "w"):
        values = np.concatenate([empty, *(getattr(p, name) for p in chosen)])
        there = np.concatenate([empty, *(getattr(p, f"{name}_present") for p in chosen)])
        present = _masks(there.astype(bool))
        outputs[name] = {"values": values, "present": present}
        known = np.where(there.astype(bool), np.iinfo(dtype).max, 0).astype(dtype)
        care[name] = {"values": known, "present": np.full_like(present, (1 << c.lanes) - 1)}
    outputs["y"] = np.concatenate([p.y for p in chosen]).reshape(-1, c.lanes)
    outputs["status"] = np.full(len(chosen), Refusal.NONE.value)
    inputs = {
        "command": oei.stacked(oei.commands(chosen, c)),
        "i": oei.beats_of(chosen, c),
        "v": np.concatenate([empty, *(p.v for p in chosen)]),
    }
    return Arrays(inputs=inputs, outputs=outputs, care=care)


def conversions(unit: Any, count: int, seed: int) -> Arrays:
    """Return matrices for the buffer, with the orders that a control would give.

    Lanes of a row without an element have no value.
    """
    assert isinstance(unit, DualBuffer)
    c = unit.config
    chosen = _passes(c, count, seed)
    plans = [csr_beats(p.columns, c.lanes, c.columns, c.capacity).beats for p in chosen]
    present = np.concatenate([plan.present for plan in plans])
    dtype = code_dtype(c.number)
    lanes = {
        "value": np.concatenate([plan.values for plan in plans]).astype(dtype),
        "column": np.concatenate([plan.columns for plan in plans]),
        "present": present.astype(np.uint8),
    }
    row = np.concatenate([plan.rows for plan in plans])
    known = {
        "value": np.where(present, np.iinfo(dtype).max, 0).astype(dtype),
        "column": np.where(present, (1 << c.row_bits) - 1, 0),
        "present": np.ones_like(lanes["present"]),
    }
    sent = oei.beats_of(chosen, c)
    orders: list[int] = []
    after = {
        (order, event): list[int]()
        for order in ("columns", "rows")
        for event in ("columns_done", "rows_done", "index")
    }
    begun: list[int] = []
    finished = 0
    for number, each in enumerate(chosen):
        subs = len(each.columns) // c.columns
        orders += range(subs)
        begun += [finished] * c.groups
        for k in range(subs):
            # Columns leave in step k and rows in step k + 2, after all of the earlier steps.
            for order, step in (("columns", k), ("rows", k + 2)):
                after[order, "columns_done"].append(finished + min(step, subs))
                after[order, "rows_done"].append(finished + max(step - 2, 0))
                after[order, "index"].append((number + 1) * c.groups)
        finished += subs
    return Arrays(
        inputs={
            "index": {
                "group": np.tile(np.arange(c.groups), len(chosen)),
                "counts": np.concatenate([oei.counts_of(p.columns, c) for p in chosen]),
            },
            "i": sent,
            "columns": np.array(orders),
            "rows": np.array(orders),
        },
        outputs={"o": sent, "csr": {"lanes": lanes, "row": row}},
        care={"csr": {"lanes": known, "row": np.full_like(row, (1 << c.row_bits) - 1)}},
        after={**after, ("index", "rows_done"): begun},
        zeros=("refusal",),
    )


def steps(unit: Any, count: int, seed: int) -> Arrays:
    """Return passes for the control, of which no stage may start before its step."""
    assert isinstance(unit, PipelineControl)
    c, rng = unit.config, np.random.default_rng(seed)
    stages = ("os", "ewise", "is_")
    # A pass of S sub-tensors gives 3 S indices and its end.
    subs = [1, c.subs]
    while 3 * sum(subs) + len(subs) < count:
        subs.append(int(rng.integers(1, c.subs + 1)))
    given: dict[str, list[int]] = {stage: [] for stage in stages}
    done = {stage: f"{stage.rstrip('_')}_done" for stage in stages}
    after = {(stage, port): list[int]() for stage in stages for port in done.values()}
    for number in subs:
        for step in schedule(number):
            before = {done[stage]: len(given[stage]) for stage in stages}
            for stage, index in zip(stages, step, strict=True):
                if index is not None:
                    given[stage].append(index)
                    for port, finished in before.items():
                        after[stage, port].append(finished)
    return Arrays(
        inputs={"command": np.array(subs) - 1},
        outputs={
            **{stage: np.array(each) for stage, each in given.items()},
            "status": np.full(len(subs), Refusal.NONE.value),
        },
        after=after,
        answers={port: stage for stage, port in done.items()},
    )


def _passes(config: OEIConfig, count: int, seed: int) -> list[oei.Pass]:
    """Return random passes that fit in the buffer, with about a number of columns in all."""
    rng = np.random.default_rng(seed)
    chosen = oei.random_passes(rng, config, 2)
    while sum(len(each.columns) for each in chosen) < count:
        chosen += oei.random_passes(rng, config, 1)
    return chosen


def _masks(present: np.ndarray) -> np.ndarray:
    """Return rows of flags as numbers, the first flag in the lowest bit."""
    lanes = np.arange(present.shape[1], dtype=np.uint64)
    return (present.astype(np.uint64) << lanes).sum(axis=1, dtype=np.uint64)


#: The function of each unit, which ``sim.bench.vectors`` takes.
MAKERS: dict[str, Callable[[Any, int, int], Arrays]] = {
    "sparse-os": columns,
    "sparse-is": rows,
    "sparse-ewise": programs,
    "sparse-oei": passes,
    "sparse-buffer": conversions,
    "sparse-control": steps,
}
