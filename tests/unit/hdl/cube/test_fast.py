"""Units built for a short cycle: every bit equals golden, under stalls, and mutants fail."""

from dataclasses import replace

import pytest
from amaranth.hdl import Cat, Const, Module, Signal

import vitruvian.hdl.cube.assign
import vitruvian.hdl.m3xu.products
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.fp.parts import multiply
from vitruvian.hdl.fp.parts.pipeline import PipelineStages
from vitruvian.sim.bench.cube.batch import compare_traffic
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.rtl import compile

FAST = replace(CONFIGS["m3xu_pipelined"], m=1, n=1, k=4, pipeline=4, fast=True)
SMALL = replace(FAST, k=2, precisions=("fp16", "tf32", "fp32"))


def failures(config: MatrixUnitConfig, beats: int = 1500) -> int:
    traffic = make_traffic(config, beats=beats, seed=3, emit_rate=0.5)
    result = compare_traffic(compile(MatrixUnit(config=config)), traffic, stall_rate=0.3, seed=3)
    assert result.vectors > beats // 3
    return result.mismatches


@pytest.mark.parametrize(
    "config",
    [
        FAST,
        replace(SMALL, preset="a100"),
        replace(FAST, precisions=("fp16", "bf16"), k=3),
    ],
    ids=["fp32c", "a100", "16-bit"],
)
def test_a_fast_unit_equals_golden_under_stalls(config: MatrixUnitConfig):
    assert failures(config) == 0


def digits_without_sign(m: Module, b, *, name: str):
    """Recode as the RTL does, but forget that the lowest digit can be negative."""
    word = multiply.recode(m, b, name=name)
    return Cat(word[:2], Const(0, 1), word[3:])


def test_a_lost_sign_of_a_digit_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vitruvian.hdl.cube.assign, "recode", digits_without_sign)
    assert failures(SMALL, 400) > 40


def test_a_flag_that_misses_the_last_rank_fails(monkeypatch: pytest.MonkeyPatch):
    """The flags beside a sum must cross the same ranks as the sum."""
    cross_all = PipelineStages.cross_all

    def early(self, stage, values, prefix):
        return dict(values) if stage == "retimed" else cross_all(self, stage, values, prefix)

    monkeypatch.setattr(PipelineStages, "cross_all", early)
    assert failures(SMALL, 400) > 40


def test_bits_that_the_lower_lane_does_not_pass_on_fail(monkeypatch: pytest.MonkeyPatch):
    products = vitruvian.hdl.m3xu.products
    reduce_rows = products.reduce_rows

    def forgetful(m, rows, *, width, name):
        return reduce_rows(m, rows[-2:] if name.endswith("_late") else rows, width=width, name=name)

    monkeypatch.setattr(products, "reduce_rows", forgetful)
    assert failures(SMALL, 400) > 20


@pytest.mark.parametrize("bits", [1, 4, 5, 11, 13])
def test_digits_have_as_many_bits_as_their_word(bits: int):
    word = multiply.recode(Module(), Signal(bits), name="x")
    assert len(word) == multiply.recoded_bits(bits)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline": 3}, "pipeline must be 4 in a fast unit, not 3"),
        ({"assignment": "edge"}, "assignment must be 'pipelined' in a fast unit, not 'edge'"),
        ({"operations": ("mma", "minplus")}, "operations must be"),
        ({"multiplier": "dsp"}, "multiplier must be 'booth' in a fast unit, not 'dsp'"),
    ],
)
def test_what_a_fast_unit_cannot_have_is_refused(changes: dict, message: str):
    with pytest.raises(ValueError, match=message):
        replace(FAST, **changes)
    with pytest.raises(TypeError, match="fast must be True or False, not 1"):
        replace(FAST, fast=1)


def test_the_name_of_a_unit_that_is_not_fast_does_not_change():
    assert "fast" not in repr(CONFIGS["m3xu_pipelined"])
    assert repr(FAST).endswith("fast=True)")
    assert FAST.latency_cycles == replace(FAST, fast=False).latency_cycles
