"""Batch checks of the buffer and of the OEI pipeline, which compare compiled RTL with golden."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.sparse.buffer import csr_beats
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import OEIConfig, Refusal
from vitruvian.sim.rtl import CompiledModel, compile, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .frame import BufferFrame
from .passes import Pass, beats_of, commands, counts_of, directed_passes, random_passes, stacked
from .traffic import format_label

#: Share of the requested vectors: a pass has some hundred elements.
SHARE = 1 / 4000


def _check_fit(passes: Sequence[Pass]) -> None:
    """Raise ``ValueError`` if a pass does not fit; it would leave inputs that nobody takes."""
    refused = [n for n, each in enumerate(passes) if each.refused]
    if refused:
        raise ValueError(f"passes must fit in the buffer, not be refused as {refused} are")


def compare_buffer(
    model: CompiledModel,
    config: OEIConfig,
    passes: Sequence[Pass],
    *,
    seed: int,
    stall_rate: float = 0.2,
    **options: Any,
) -> Result:
    """Run passes through a compiled ``BufferFrame``, and compare each beat of a row with golden.

    The passes must fit. The beats of columns must leave as they came.
    """
    c = config
    _check_fit(passes)
    plans = [csr_beats(p.columns, c.lanes, c.columns, c.capacity) for p in passes]
    # A pass is the index of all groups of rows, and then the command to run.
    entries = c.groups + 1
    groups = np.tile([*range(c.groups), 0], len(passes))
    counts = [np.vstack([counts_of(p.columns, c), np.zeros((1, c.lanes), int)]) for p in passes]
    run = np.tile([0] * c.groups + [1], len(passes))
    last = np.repeat([len(p.columns) // c.columns - 1 for p in passes], entries)
    sent = beats_of(passes, c)
    # The driver must know how many beats to wait for; golden says so.
    leaving = sum(len(plan.beats.rows) for plan in plans)
    result = model.stream(
        inputs={
            "command": {
                "index": {"group": groups, "counts": np.concatenate(counts)},
                "run": run,
                "last": last,
            },
            "i": sent,
        },
        outputs={"o": len(sent["lanes"]["row"]), "csr": leaving, "status": len(passes)},
        stall_rate=stall_rate,
        stall_seed=seed,
        **options,
    )
    rows = result.outputs["csr"]
    present = rows["lanes"]["present"].astype(bool)
    expected = {
        name: np.concatenate([getattr(plan.beats, name) for plan in plans])
        for name in ("values", "columns", "present", "rows")
    }

    def table(values: Any, at: Any, lanes: Any, row: Any) -> np.ndarray:
        # Lanes without an element have any content.
        parts = [np.where(lanes, values, 0), np.where(lanes, at, 0), lanes, row[:, None]]
        return np.concatenate([np.asarray(part, np.uint64) for part in parts], axis=1)

    got = table(rows["lanes"]["value"], rows["lanes"]["column"], present, rows["row"])
    want = table(expected["values"], expected["columns"], expected["present"], expected["rows"])
    same = compare(
        "beat of a row", got=got, expected=want, operands={"row": expected["rows"]}, seed=seed
    )
    out, sent_lanes = result.outputs["o"]["lanes"], sent["lanes"]
    names = ("value", "row", "present", "last")
    passed = compare(
        "beat of columns",
        got=np.concatenate([np.asarray(out[n], np.uint64) for n in names], axis=1),
        expected=np.concatenate([np.asarray(sent_lanes[n], np.uint64) for n in names], axis=1),
        operands={},
        seed=seed,
    )
    ends = compare(
        "status",
        got=np.asarray(result.outputs["status"]),
        expected=np.full(len(passes), Refusal.NONE.value),
        operands={},
        seed=seed,
    )
    return same + passed + ends


def compare_passes(
    model: CompiledModel,
    config: OEIConfig,
    passes: Sequence[Pass],
    *,
    seed: int,
    stall_rate: float = 0.2,
    **options: Any,
) -> Result:
    """Run passes through a compiled ``OEIPipeline``, and compare all its results with golden.

    The passes must fit.
    """
    _check_fit(passes)
    empty = np.zeros((0, config.lanes), code_dtype(config.number))
    expected = {
        name: np.concatenate([empty, *(getattr(p, name) for p in passes)])
        for name in ("v", "z", "z_present", "w", "w_present")
    }
    y = np.concatenate([p.y for p in passes]).reshape(-1, config.lanes)
    result = model.stream(
        inputs={
            "command": stacked(commands(passes, config)),
            "i": beats_of(passes, config),
            "v": expected["v"],
        },
        outputs={
            "z": len(expected["z"]),
            "w": len(expected["w"]),
            "y": len(y),
            "status": len(passes),
        },
        stall_rate=stall_rate,
        stall_seed=seed,
        **options,
    )
    total = compare(
        "group of y",
        got=result.outputs["y"].astype(y.dtype),
        expected=y,
        operands={},
        seed=seed,
    )
    for name in ("z", "w"):
        if not len(expected[name]):
            continue
        out, present = result.outputs[name], expected[f"{name}_present"].astype(bool)
        # A bit of a word for each lane becomes a column.
        got = np.asarray(out["present"]).astype(np.uint64)[:, None] >> np.arange(
            config.lanes, dtype=np.uint64
        )
        got = got & np.uint64(1)
        values = np.where(got == 1, out["values"], 0)
        total = total + compare(
            f"group of {name}",
            got=np.concatenate([got, values.astype(np.uint64)], axis=1),
            expected=np.concatenate([present, expected[name].astype(np.uint64)], axis=1),
            operands={},
            seed=seed,
        )
    return total + compare(
        "status",
        got=np.asarray(result.outputs["status"]),
        expected=np.full(len(passes), Refusal.NONE.value),
        operands={},
        seed=seed,
    )


def _run_buffer(config: OEIConfig, vectors: int, seed: int) -> Result:
    model = compile(BufferFrame(config=config))
    rng = np.random.default_rng(seed)
    passes = directed_passes(rng, config)
    passes += random_passes(rng, config, int(vectors * SHARE) + 10)
    # The buffer itself has no mistakes; only derived ones choose among them.
    return compare_buffer(model, config, passes, seed=seed, held={"mutant": 0})


def _run_passes(config: OEIConfig, vectors: int, seed: int) -> Result:
    model = compile_unit(OEIPipeline, config=config)
    rng = np.random.default_rng(seed)
    passes = directed_passes(rng, config)
    passes += random_passes(rng, config, int(vectors * SHARE) + 10)
    return compare_passes(model, config, passes, seed=seed)


def _size(config: OEIConfig) -> str:
    sizes = f"{config.rows} rows, {config.capacity} elements"
    return f"{config.lanes} lanes {format_label(config)}, {sizes}"


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the buffer and of the pipeline."""
    rows = (
        ("sparse-buffer", "sparse.DualBuffer", _run_buffer),
        ("sparse-oei", "sparse.OEIPipeline", _run_passes),
    )
    for name, label, run in rows:
        unit = UNITS[name]
        for partial_configuration in unit.checked:
            config: OEIConfig = unit.component(unit.default(partial_configuration))[1]["config"]
            yield Check(
                unit=label,
                configuration=f"{_size(config)}: random matrices, stalls",
                run=partial(run, config),
                weight=20 + 2 * config.lanes,
            )
