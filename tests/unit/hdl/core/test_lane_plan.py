"""What unit V plans for the rows of Col2Im, at every number of blocks of a beat."""

from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, UNITS
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.lane_plan import LanePlan
from vitruvian.hdl.core.record import RECORD_BITS
from vitruvian.hdl.vector.config import VectorConfig


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("lanes", [16, 32, 64, 128])
def test_a_row_of_col2im_has_a_block_for_each_16_lanes_of_fp16(lanes, dtype):
    """Each beat adds one block: one of FP16 for a row, or two of FP32."""
    config = replace(
        CORES["davinci"], vector=VectorConfig(lanes=lanes, groups=("add",)), ub_banks=1
    )
    values = {"unit": UNITS.index("V"), "repeat": 3}
    for name in ("dst", "src"):
        values |= {f"{name}.buffer": BUFFERS.index("UB"), f"{name}.dtype": DTYPES.index(dtype)}
    words = ENCODINGS["col2im"].pack(values)
    m = Module()
    record = Signal(RECORD_BITS, init=sum(word << 64 * i for i, word in enumerate(words)))
    plan = LanePlan(m, record, config)
    found = {}

    async def bench(ctx):
        found.update(
            mask=ctx.get(plan.mask),
            counts=[ctx.get(count) for count in plan.counts],
            steps=[ctx.get(step) for step in plan.steps[2]],
        )

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    halves = 2 if dtype == "fp32" else 1
    there, enabled = lanes // halves, 16 // halves  # lanes of this dtype
    assert found["mask"] & ((1 << there) - 1) == (1 << enabled) - 1
    assert found["counts"] == [3, 16, halves]
    assert found["steps"] == [16 * 32 * halves, 32, 32 if halves == 2 else found["steps"][2]]
