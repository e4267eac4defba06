"""Matrix units with block scales: parameters, buses, traffic against golden, a mutant."""

from dataclasses import replace

import pytest

from vitruvian.hdl.cube import BLACKWELL, CONFIGS, MatrixUnit
from vitruvian.hdl.cube.blocks import BlockDatapath
from vitruvian.sim import rtl
from vitruvian.sim.bench.cube.batch import compare_traffic, run_unit
from vitruvian.sim.bench.cube.traffic import make_traffic

NVFP4 = replace(BLACKWELL["nvfp4_8x4"], m=1, n=2, k=4)


def test_the_presets_have_the_terms_of_their_instructions():
    terms = {name: c.terms(c.precisions[0]) for name, c in BLACKWELL.items()}
    assert terms == {"tcgen05_tile": 32, "mxfp8_8x4": 32, "mxfp4_8x4": 64, "nvfp4_8x4": 64}
    assert all(BLACKWELL["tcgen05_tile"].terms(p) == 32 for p in ("fp6e3m2", "fp4e2m1"))


def test_the_scales_are_above_the_codes():
    widths = {name: c.bus_bits for name, c in BLACKWELL.items()}
    expected = {"mxfp8_8x4": 256 + 8, "mxfp4_8x4": 256 + 16, "nvfp4_8x4": 256 + 32}
    assert widths == {"tcgen05_tile": 256} | expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precisions": ("fp16",)}, "input must be one of fp4e2m1, not 'fp16'"),
        ({"precisions": ("fp4e2m1", "fp8e4m3")}, "precisions must be one format with block scales"),
        ({"k": 5}, "block must divide k = 20, not be 16"),
        ({"rule": "mx"}, "rule must be one of mxf8f6f4, mxf4, nvf4_ue8m0, nvf4_ue4m3, not 'mx'"),
    ],
)
def test_wrong_parameters(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(NVFP4, **changes)


@pytest.mark.parametrize("name", ["output", "assignment", "fast", "window", "operations"])
def test_parameters_of_other_units_do_not_exist(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        replace(NVFP4, **{name: getattr(CONFIGS["tiny"], name)})


def test_the_machine_cannot_be_chosen():
    assert NVFP4.preset == "b200"
    with pytest.raises(ValueError, match="field preset is declared with init=False"):
        replace(NVFP4, preset="h100")


def test_traffic_agrees_with_golden():
    result = run_unit(NVFP4, None, 2000, 1)
    assert result.vectors >= 2000 and not result.mismatches, result.examples


@pytest.mark.long
@pytest.mark.parametrize("name", BLACKWELL)
def test_every_preset_agrees_with_golden(name):
    for dataflow in ("broadcast", "systolic"):
        config = replace(BLACKWELL[name], dataflow=dataflow)
        result = run_unit(config, None, 4000, 2)
        assert result.vectors >= 4000 and not result.mismatches, result.examples


def test_a_scale_that_is_not_connected_is_noticed(monkeypatch):
    connect = BlockDatapath.connect

    def wrong(self, m, beat):
        result = connect(self, m, beat)
        m.d.comb += self.dot.scale_b.eq(self.dot.scale_a)
        return result

    monkeypatch.setattr(BlockDatapath, "connect", wrong)
    model = rtl.compile(MatrixUnit(config=NVFP4))
    result = compare_traffic(model, make_traffic(NVFP4, beats=200, seed=3), stall_rate=0.2, seed=3)
    assert result.mismatches
