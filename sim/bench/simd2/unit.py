"""Batch checks of matrix units with semirings: all operations, subsets, and both dataflows."""

from collections.abc import Iterator
from functools import partial

from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.matrix import cube_config
from vitruvian.hdl.catalogue.semirings import float_config
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.sim.bench.cube.batch import SHARE_OF_ALL, SHARE_OF_ONE, build_seconds, run_share
from vitruvian.sim.verify.check import Check

#: The checked units with semirings. Those of the unit ``cube`` take one pair of FP32 operands in a
#: beat, unless ⊕ is a sum.
CONFIGURATIONS: tuple[TileConfig, ...] = tuple(
    config
    for unit, config_of in (("simd2", float_config), ("cube", cube_config))
    for config in map(config_of, map(UNITS[unit].default, UNITS[unit].checked))
    if config.operations != ("mma",)
)
_PIPELINE = MatrixUnitConfig.pipeline
#: Number of operations from which each of them has a row of its own.
_MANY = 8


def checks() -> Iterator[Check]:
    """Yield rows in which the operation changes, and rows for each operation of some units."""
    for config in CONFIGURATIONS:
        name = _name(config)
        groups: list[tuple[str, tuple[str, ...], float]]
        groups = [("in turn", config.operations, SHARE_OF_ALL)]
        plain = config.pipeline == _PIPELINE and not config.sparsity
        if plain and len(config.operations) >= _MANY:  # other units differ from these in one thing
            groups += [(op, (op,), SHARE_OF_ONE) for op in config.operations]
        for number, (label, operations, share) in enumerate(groups):
            yield Check(
                unit="simd2.MatrixUnit",
                configuration=f"{name} {label}",
                run=partial(run_share, config, share, operations=operations),
                # The first row builds the unit for the others.
                weight=1 if number else build_seconds(config),
            )


def _name(config: TileConfig) -> str:
    """Return the name of a configuration for tables."""
    words = [f"{config.m}×{config.n}×{config.k}", "m3xu" if config.wide else "", config.dataflow]
    words += ["" if config.preset == "ieee" else config.preset]
    words += ["" if config.pipeline == _PIPELINE else f"pipeline={config.pipeline}"]
    if len(config.operations) < _MANY:
        words.append("+".join(config.operations))
    words += ["sparse" if config.sparsity else ""]
    words += ["" if config.multiplier == "booth" else config.multiplier]
    return " ".join(filter(None, words))
