"""Matrix units with a format for each side: parameters, beats, traffic, a mutant."""

from dataclasses import replace
from itertools import product

import pytest

from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.cube import BLACKWELL, CONFIGS, MatrixUnit
from vitruvian.hdl.cube.datapath import CodeDatapath
from vitruvian.hdl.cube.mixed import MixedUnitConfig
from vitruvian.hdl.cube.ports import beat_layout
from vitruvian.hdl.fp.multidot import MultiDot
from vitruvian.sim import rtl
from vitruvian.sim.bench.cube.batch import compare_traffic, run_unit
from vitruvian.sim.bench.cube.traffic import make_traffic

TILE = BLACKWELL["tcgen05_tile"]
assert isinstance(TILE, MixedUnitConfig)
SMALL = replace(TILE, m=1, n=2, k=2)


def test_every_pair_of_formats_follows_the_machine():
    assert isinstance(TILE, MixedUnitConfig)
    pairs = list(product(TILE.precisions, repeat=2))
    assert len(pairs) == 25 and TILE.macs == 8 * 4 * 32
    for a, b in pairs:
        assert TILE.pair_spec(a, b) == PRESETS["b200"].spec(a, "fp32", k=32, input_b=b)
    with pytest.raises(ValueError, match="precision must be one of"):
        TILE.pair_spec("fp8e4m3", "fp16")


def test_only_such_units_have_a_precision_of_b():
    fields = dict(beat_layout(TILE))
    assert fields["precision_b"].shape is fields["precision"].shape
    assert "precision_b" not in dict(beat_layout(CONFIGS["tiny"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "ieee"}, "preset must be one of .*, not 'ieee'"),
        ({"precisions": ("fp8e4m3", "int8")}, "precisions must be floating-point with a format"),
        ({"precisions": ("fp16", "bf16"), "preset": "a100"}, "formats of preset a100 must be"),
        ({"precisions": ("fp8e4m3", "fp16")}, "formats of preset b200 must be one of"),
    ],
)
def test_wrong_parameters(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


@pytest.mark.parametrize("name", ["assignment", "fast", "window", "operations", "sparsity"])
def test_parameters_of_other_units_do_not_exist(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        replace(SMALL, **{name: getattr(CONFIGS["tiny"], name)})


def test_wrong_specs():
    spec = PRESETS["b200"].spec
    specs = {"fp8e4m3": spec("fp8e4m3", k=4), "fp16": spec("fp16", k=2)}
    with pytest.raises(ValueError, match="specs must have one K, one window"):
        MultiDot(specs=specs, mixed=True)


def test_traffic_agrees_with_golden():
    result = run_unit(SMALL, None, 2000, 1)
    assert result.vectors >= 2000 and not result.mismatches, result.examples


def test_traffic_mixes_all_formats():
    traffic = make_traffic(SMALL, beats=600, seed=1)
    assert (
        len(set(zip(traffic.precision.tolist(), traffic.precision_b.tolist(), strict=True))) == 25
    )


def test_a_precision_of_b_that_is_not_used_is_noticed(monkeypatch):
    connect = CodeDatapath.connect

    def wrong(self, m, beat):
        result = connect(self, m, beat)
        m.d.comb += self.dot.precision_b.eq(beat.control.precision)
        return result

    monkeypatch.setattr(CodeDatapath, "connect", wrong)
    model = rtl.compile(MatrixUnit(config=SMALL))
    result = compare_traffic(model, make_traffic(SMALL, beats=200, seed=3), stall_rate=0.2, seed=3)
    assert result.mismatches
