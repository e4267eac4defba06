"""Batch checks of the matrix unit, which compare compiled RTL under stalls with golden."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.matrix import cube_config
from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .traffic import CubeTraffic, make_traffic

EMIT_RATE = 0.5

#: Shares of the requested vectors. An accumulator is the sum of several beats, so that fewer
#: results test as much as the vectors of a dot product.
SHARE_OF_ONE, SHARE_OF_ALL = 1 / 16, 1 / 8


def run_unit(
    config: TileConfig,
    precisions: Sequence[str] | None,
    vectors: int,
    seed: int,
    *,
    operations: Sequence[str] | None = None,
) -> Result:
    """Send random traffic with stalls on every stream, and compare every result.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    precisions, operations : sequence of str or None
        Precisions and operations of the traffic; None means all of the unit's.
    vectors : int
        Approximate number of results to compare.
    """
    model = compile_unit(MatrixUnit, config=config)
    beats = int(vectors / (config.m * config.n * EMIT_RATE)) + 50
    traffic = make_traffic(
        config,
        beats=beats,
        seed=seed,
        precisions=precisions,
        operations=operations,
        emit_rate=EMIT_RATE,
    )
    return compare_traffic(model, traffic, stall_rate=0.2, seed=seed)


def compare_traffic(
    model: CompiledModel, traffic: CubeTraffic, *, stall_rate: float, seed: int
) -> Result:
    """Run traffic through a compiled unit and compare each element of the D fractals.

    Parameters
    ----------
    model : CompiledModel
        Model of a ``MatrixUnit``.
    stall_rate : float
        Probability that a stream is idle in a cycle.
    seed : int
        Seed of the stalls, and for messages.
    """
    result = model.stream(
        inputs=traffic.inputs,
        outputs={"o": len(traffic.d)},
        stall_rate=stall_rate,
        stall_seed=seed,
    )
    config = traffic.config
    emitting = np.repeat(np.arange(len(traffic)), traffic.emit * traffic.sums)
    beat, row, column = (
        axis.ravel()
        for axis in np.meshgrid(emitting, range(config.m), range(config.n), indexing="ij")
    )
    return compare(
        "last beat of an accumulator",
        got=result.outputs["o"].reshape(-1),
        expected=traffic.d.reshape(-1),
        operands={
            "beat": beat,
            "row": row.astype(np.uint8),
            "column": column.astype(np.uint8),
            "precision": traffic.precision[beat],
            "operation": traffic.operation[beat],
            "slot": traffic.slot[beat],
            "a": traffic.a[beat, row],
            "b": traffic.b[beat, column],
        },
        seed=seed,
    )


def checks() -> Iterator[Check]:
    """Yield rows for every checked unit without semirings: one for each precision, and for all."""
    for c in map(UNITS["cube"].default, UNITS["cube"].checked):
        config = cube_config(c)
        if config.operations != ("mma",):
            continue
        fast = "fast" if c["fast"] else None
        depth = f"pipeline={c['pipeline']}" if c["pipeline"] is not None else None
        name = " ".join(filter(None, (c["preset"], c["multiplier"], depth, fast)))
        groups: list[tuple[str, tuple[str, ...], float]]
        groups = [(p, (p,), SHARE_OF_ONE) for p in config.precisions]
        groups.append(("all in turn", config.precisions, SHARE_OF_ALL))
        for number, (label, precisions, share) in enumerate(groups):
            yield Check(
                unit="cube.MatrixUnit",
                configuration=f"{name} {config.dataflow} {label}",
                run=partial(run_share, config, share, precisions=precisions),
                weight=1
                if number
                else build_seconds(config),  # the first row builds the unit for the others
            )


def build_seconds(config: TileConfig) -> int:
    """Return the approximate duration of the first build of a unit in seconds."""
    return 10 + config.macs // 80 + (10 if config.wide else 0)


def run_share(
    config: TileConfig,
    share: float,
    vectors: int,
    seed: int,
    *,
    precisions: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
) -> Result:
    """Call ``run_unit`` with a share of the vectors."""
    return run_unit(config, precisions, int(vectors * share), seed, operations=operations)
