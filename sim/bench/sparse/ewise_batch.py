"""Batch checks of the element-wise core, which compare compiled RTL under stalls with golden."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.sparse.programs import OUTPUTS
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse import EwiseConfig, EwiseCore
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .ewise_traffic import EwiseTraffic, commands_payload, random_traffic
from .traffic import format_label

#: A vector is an executed instruction, and golden needs about a millisecond for one.
SHARE = 1 / 16


def compare_programs(
    model: CompiledModel,
    traffic: EwiseTraffic,
    *,
    seed: int,
    stall_rate: float = 0.2,
    **options: Any,
) -> Result:
    """Run programs on a compiled ``EwiseCore``, and compare every item that it stores with golden.

    Parameters
    ----------
    seed : int
        Seed of the stalls, and for messages.
    **options
        Further arguments of ``CompiledModel.stream``.
    """
    run = model.stream(
        inputs={"command": commands_payload(traffic.commands), **traffic.inputs},
        outputs={name: len(traffic.values[name]) for name in OUTPUTS},
        stall_rate=stall_rate,
        stall_seed=seed,
        **options,
    )
    total = Result(vectors=0, mismatches=0)
    for name in OUTPUTS:
        output, expected = run.outputs[name], traffic.values[name]
        lanes = np.arange(expected.shape[1])
        present = np.asarray(output["present"])[:, None] >> lanes & 1
        total += compare(
            f"items of {name}",
            got=np.concatenate([output["values"], present.astype(expected.dtype)], axis=1),
            expected=np.concatenate(
                [expected, traffic.present[name].astype(expected.dtype)], axis=1
            ),
            operands={"item": np.arange(len(expected))},
            seed=seed,
        )
    return total


def _run(config: EwiseConfig, vectors: int, seed: int) -> Result:
    model = compile_unit(EwiseCore, config=config)
    # A program has about four instructions.
    steps = int(vectors * SHARE / 4 / 8) + 100
    traffic = random_traffic(np.random.default_rng(seed), config, steps)
    return compare_programs(model, traffic, seed=seed)


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the unit ``sparse-ewise``."""
    unit = UNITS["sparse-ewise"]
    for partial_configuration in unit.checked:
        c: EwiseConfig = unit.component(unit.default(partial_configuration))[1]["config"]
        yield Check(
            unit="sparse.EwiseCore",
            configuration=(
                f"{c.lanes} lanes, {c.registers} registers, {format_label(c)}: "
                "random programs, stalls"
            ),
            run=partial(_run, c),
            weight=5 + c.lanes,
        )
