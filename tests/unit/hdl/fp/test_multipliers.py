"""Units with DSP blocks equal golden and units with Booth multipliers; mutants fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.core.products
import vitruvian.hdl.m3xu.products
import vitruvian.hdl.simd2.integer
from vitruvian.golden.fp import IntDotSpec, dot_spec, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import Op
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.hdl.fp.multidot import MultiDot
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.hdl.simd2.integer import IntTile
from vitruvian.sim import rtl
from vitruvian.sim.bench.cube.batch import compare_traffic, run_unit
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.bench.fp.batch import run_dot, run_int_dot
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.bench.m3xu.batch import LaneUnit, run_check
from vitruvian.sim.bench.m3xu.lanes import run_lanes, unit_for
from vitruvian.sim.bench.simd2.integer import run_int_tile

SEED = 20261122
BOTH = ("booth", "dsp")
_LIMBS = dot_spec(input="fp32", output="fp32", k=2, window=48)


@pytest.mark.parametrize(
    ("preset", "input", "k", "pipeline"),
    [
        ("ieee", "bf16", 2, 4),
        ("h100", "tf32", 3, 2),
    ],
)
def test_dot_products_with_dsp_blocks_equal_golden(preset, input, k, pipeline):
    spec = PRESETS[preset].spec(input, k=k)
    result = run_dot("dsp", spec, 6000, SEED, pipeline=pipeline, multiplier="dsp")
    assert result.vectors >= 6000 and not result.mismatches, result.examples


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        (ExactDotProduct, {"spec": PRESETS["exact"].spec("fp8e5m2", k=3), "pipeline": 1}),
        (MultiDot, {"specs": {"fp16": PRESETS["a100"].spec("fp16", k=2)}, "int8_k": 4}),
    ],
    ids=["exact", "multi"],
)
def test_both_multipliers_give_the_same_bits(unit, parameters):
    spec = parameters.get("spec") or parameters["specs"]["fp16"]
    a, b, c = dot_vectors(spec, 6000, seed=SEED)
    inputs: dict[str, Any] = {"a": a, "b": b, "c": c}
    if unit is MultiDot:
        inputs |= {"a": a.view(np.uint32)[:, 0], "b": b.view(np.uint32)[:, 0]}
        inputs["precision"] = np.arange(len(c), dtype=np.uint8) % 2
    first, second = (
        rtl.compile_unit(unit, **parameters, multiplier=multiplier).run(**inputs)
        for multiplier in BOTH
    )
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) > 1000


@pytest.mark.parametrize(
    ("signed_a", "signed_b", "saturate", "pipeline"),
    [
        (True, True, False, 0),
        (True, False, True, 4),
        (False, True, False, 2),
        (False, False, True, 1),
    ],
)
def test_chains_of_dsp_blocks_equal_golden(signed_a, signed_b, saturate, pipeline):
    spec = IntDotSpec(k=5, signed_a=signed_a, signed_b=signed_b, saturate=saturate)
    result = run_int_dot(spec, 10_000, SEED, pipeline=pipeline, multiplier="dsp")
    assert result.vectors == 10_000 and not result.mismatches, result.examples


def test_small_multipliers_give_the_same_bits():
    codes = np.arange(256, dtype=np.uint8)
    a, b = np.repeat(codes, 256), np.tile(codes, 256)
    first, second = (
        rtl.compile_unit(Multiplier, format="fp8e4m3", multiplier=multiplier).run(a=a, b=b)
        for multiplier in BOTH
    )
    np.testing.assert_array_equal(first, second)


def test_limbs_on_dsp_blocks_equal_golden():
    lanes = LaneUnit(a_bits=(11, 13) * 2, b_bits=12, limbs=(2,), pipeline=1, multiplier="dsp")
    result = run_check(_LIMBS, lanes, 2, 3000, SEED)
    assert result.vectors >= 3000 and not result.mismatches, result.examples


@pytest.mark.parametrize(
    "config",
    [
        CONFIGS["tiny"],
        pytest.param(
            replace(CONFIGS["simd2_4x4"], operations=("mma", "maxmul", "addnorm")),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["narrow", "semirings"],
)
def test_matrix_units_with_dsp_blocks_equal_golden(config):
    result = run_unit(replace(config, m=1, n=1, multiplier="dsp"), None, 3000, SEED)
    assert result.vectors > 1000 and not result.mismatches, result.examples


@pytest.mark.parametrize(
    "operations",
    [tuple(Op), (Op.MMA,), (Op.MINMUL,), (Op.ADDNORM,), (Op.MMA, Op.MINMAX, Op.ADDNORM)],
    ids=lambda operations: "-".join(op.mnemonic for op in operations[:4]),
)
def test_integer_tiles_with_dsp_blocks_equal_golden(operations):
    """Every form of products: separate, sums, no adder, squares, sums or squares."""
    config = IntConfig(m=1, n=1, bits=8, pipeline=1, operations=operations, multiplier="dsp")
    result = run_int_tile(config, 4000, SEED)
    assert not result.mismatches, result.examples


@pytest.mark.parametrize("value", ["DSP", None, "lut"])
def test_another_multiplier_is_refused(value):
    message = f"multiplier must be one of booth, dsp, not {value!r}"
    for build in (
        lambda: DotProduct(spec=PRESETS["a100"].spec("fp16"), multiplier=value),
        lambda: IntDotProduct(spec=IntDotSpec(k=2), multiplier=value),
        lambda: replace(CONFIGS["tiny"], multiplier=value),
        lambda: IntConfig(multiplier=value),
    ):
        with pytest.raises(ValueError, match=message):
            build()


def test_names_of_units_with_booths_multipliers_stay():
    """The configuration's text, which names modules, omits the default multiplier."""
    for config in (CONFIGS["tiny"], IntConfig()):
        assert "multiplier=" not in repr(config)
        assert "multiplier='dsp'" in repr(replace(config, multiplier="dsp"))
        assert config.settings()["multiplier"] == "booth"


# ------------------------------------------------------------------ mutants


class _Dot(DotProduct):
    """Dot product of a class of this file, so that no cached model of another file is used."""


class _Chain(IntDotProduct):
    """Integer dot product whose blocks take B without its sign; see ``_Dot`` for the class."""

    def _build_chain(self, m, stages, operands):
        self.spec = replace(self.spec, signed_b=False)
        return super()._build_chain(m, stages, operands)


def _bit_off(m, a, b, *, name, multiplier="booth"):
    """Clear the lowest bit of one operand of the multiplier."""
    return multiply(m, a[1:], b, name=name, multiplier=multiplier) << 1


def _carry_lost(m, rows, *, width, target, name, ones=()):
    """Ignore the carries of the adders; an adder without a carry loses its lowest bit."""
    rows, _ = add_plainly(m, rows, width=width, target=target, name=name)
    return rows if ones else [replace(row, value=row.value[:-1]) for row in rows], []


def _odd(self, m, sums, k):
    x, y = factors(self, m, sums, k)
    return x | 1, y


multiply, add_plainly = (
    vitruvian.hdl.fp.core.products.multiply,
    vitruvian.hdl.fp.core.dotcore.add_plainly,
)
factors = vitruvian.hdl.simd2.integer.IntElement._factors


def _limbs_built_anew():
    sizes = {"a_bits": (11, 13) * 2, "b_bits": 12, "limbs": (2,), "pipeline": 1}
    unit = unit_for(_LIMBS, **sizes, multiplier="dsp")
    a, b, c = dot_vectors(_LIMBS, 3000, seed=SEED)
    got = run_lanes(rtl.compile(unit), unit, _LIMBS, 2, a, b, c)
    return int((got != fused_dot(a, b, c, _LIMBS)).sum())


def _cube_built_anew():
    config = replace(CONFIGS["tiny"], m=1, n=1, precisions=("fp16",), multiplier="dsp")
    traffic = make_traffic(config, beats=500, seed=SEED, emit_rate=0.5)
    model = rtl.compile(MatrixUnit(config=config))
    return compare_traffic(model, traffic, stall_rate=0.2, seed=SEED).mismatches


def _tile_built_anew():
    config = IntConfig(m=1, n=1, k=2, bits=8, multiplier="dsp")
    model = rtl.compile(IntTile(config=config))
    return run_int_tile(config, 2000, SEED, model=model).mismatches


def _dot_built_anew():
    spec = PRESETS["a100"].spec("fp16", k=3)
    return run_dot("dsp", spec, 6000, SEED, pipeline=1, multiplier="dsp", unit=_Dot).mismatches


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "run"),
    [
        (vitruvian.hdl.fp.core.products, "multiply", _bit_off, _dot_built_anew),
        (vitruvian.hdl.fp.core.dotcore, "add_plainly", _carry_lost, _dot_built_anew),
        (vitruvian.hdl.m3xu.products, "multiply", _bit_off, _limbs_built_anew),
        (vitruvian.hdl.m3xu.products, "add_plainly", _carry_lost, _limbs_built_anew),
        (vitruvian.hdl.fp.core.products, "multiply", _bit_off, _cube_built_anew),
        (vitruvian.hdl.simd2.integer.IntElement, "_factors", _odd, _tile_built_anew),
    ],
    ids=["dot", "sum", "limbs", "sum of limbs", "matrix unit", "integer tile"],
)
def test_wrong_dsp_multipliers_are_caught(monkeypatch, owner, name, mutant, run):
    monkeypatch.setattr(owner, name, mutant)
    assert run() > 0


def test_a_wrong_chain_of_dsp_blocks_is_caught():
    spec = IntDotSpec(k=4)
    assert run_int_dot(spec, 2000, SEED, pipeline=1, unit=_Chain, multiplier="dsp").mismatches
