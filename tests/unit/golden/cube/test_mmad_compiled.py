"""Compiled matrix units with other machines, outputs, shapes, slots and saturation."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.sim.bench.cube.batch import run_unit
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.rtl import compile_unit

SEED = 20261121


@pytest.mark.parametrize(
    "config",
    [
        MatrixUnitConfig(m=1, n=2, k=2, precisions=("fp16", "fp8e4m3", "fp8e5m2"), preset="ada"),
        MatrixUnitConfig(m=2, n=1, k=4, precisions=("fp16",), preset="v100", output="fp16"),
        MatrixUnitConfig(m=3, n=2, k=3, precisions=("int8",), saturate=True, slots=5, pipeline=0),
        MatrixUnitConfig(m=1, n=1, k=2, precisions=("tf32", "bf16"), slots=1, dataflow="systolic"),
        MatrixUnitConfig(m=2, n=2, k=1, precisions=("fp16",), preset="h100", pipeline=4),
    ],
    ids=lambda config: f"{config.preset}-{'-'.join(config.precisions)}",
)
def test_any_configuration_equals_golden(config):
    result = run_unit(config, config.precisions, 6_000, SEED)
    assert result.vectors > 5_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("at", [3, 50, 333])
def test_a_reset_leaves_an_empty_unit(at):
    """After a reset, only beats sent later produce results, and all slots count as unwritten."""
    config = replace(CONFIGS["tiny"], precisions=("int8",), dataflow="systolic")
    traffic = make_traffic(config, beats=300, seed=SEED)
    model = compile_unit(MatrixUnit, config=config)
    result = model.stream(
        inputs=traffic.inputs,
        outputs={"o": len(traffic.d)},
        stall_rate=0.2,
        stall_seed=SEED,
        reset_at=at,
    )
    assert np.array_equal(result.outputs["o"], traffic.d)


def test_traffic_covers_all_cases():
    """The traffic has every start, slot and precision, lost results and few specials."""
    config = CONFIGS["tiny"]
    traffic = make_traffic(config, beats=2000, seed=SEED)
    assert set(traffic.start.tolist()) == {0, 1, 2}
    assert set(traffic.slot.tolist()) == set(range(config.slot_count))
    assert set(traffic.precision.tolist()) == set(range(len(config.precisions)))
    assert len(traffic.c) == (traffic.start == 1).sum() and len(traffic.d) == traffic.emit.sum()
    floats = traffic.precision[traffic.emit == 1] < len(config.floats)
    special = (traffic.d[floats] & 0x7F800000) == 0x7F800000
    assert special.any() and special.mean() < 0.3
    again = make_traffic(config, beats=2000, seed=SEED)
    assert all(np.array_equal(getattr(traffic, x), getattr(again, x)) for x in ("a", "b", "c", "d"))
