"""The picture in the tutorial about Verilog shows the current behaviour of the dot product."""

import numpy as np

from vitruvian.common.timing_diagram import text
from vitruvian.golden.fp import fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.bench.fp.waveform import PICTURE, rows, simulate


def test_the_picture_is_up_to_date():
    """Run ``python -m vitruvian.sim.bench.fp.waveform`` if this test fails."""
    samples = simulate()
    assert text(rows(samples)) == PICTURE.read_text(encoding="utf-8")
    spec = PRESETS["a100"].spec("fp16", "fp32", k=8)
    entered = [s for s in samples if s["a"] is not None]
    assert [s["d"] for s in samples[:3]] == [None] * 3
    for sample, later in zip(entered, samples[3:], strict=True):
        a, b = (np.full((1, 8), sample[name], np.uint16) for name in "ab")
        assert later["d"] == int(fused_dot(a, b, np.array([sample["c"]], np.uint32), spec)[0])
