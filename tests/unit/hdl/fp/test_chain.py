"""Chains of fused multiply-adds and trees of rounded products against golden, with mutants."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines import ChainSpec, compute, find
from vitruvian.hdl.fp import chain, fma
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.chain import ChainDot
from vitruvian.hdl.fp.fma import FusedMultiplyAdd
from vitruvian.hdl.machines import NoUnit, realise
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.rtl.dedupe import deduplicate

SEED = 20261124
COUNT = 20_000


def rule(stem: str, **changes) -> ChainSpec:
    found = find(stem).rule
    assert isinstance(found, ChainSpec)
    return replace(found, **changes)


def vectors(spec: ChainSpec, k: int):
    """Return stratified operands; many products and addends are subnormal, zero or cancel."""
    return dot_vectors(spec.step.replace(k=k), COUNT, seed=SEED)


def differing(spec: ChainSpec, k: int, pipeline: int = 0, multiplier: str = "booth") -> int:
    """Return the number of results in which RTL and golden differ."""
    a, b, c = vectors(spec, k)
    unit = ChainDot(spec=spec, k=k, pipeline=pipeline, multiplier=multiplier)
    got = rtl.compile(unit).run(a=a, b=b, c=c)
    expected = np.asarray(compute(spec, a, b, c))
    assert np.sum(expected & 0x7FFFFFFF == 0) > 100 < np.sum((expected & 0x7F800000) == 0)
    return int(np.sum(got != expected))


@pytest.mark.parametrize(
    ("stem", "k", "pipeline"),
    [
        ("avx512_vdpbf16ps", 2, 0),
        ("cdna2_mfma_bf16_fp32", 2, 3),
        ("arm_bfdot_ebf0", 2, 1),
        pytest.param("amx_tdpbf16ps", 3, 2, marks=pytest.mark.long),
        pytest.param("amx_tdpfp16ps", 2, 0, marks=pytest.mark.long),
        pytest.param("amx_tmmultf32ps", 2, 1, marks=pytest.mark.long),
        pytest.param("gaudi1_fp16_fp32", 6, 1, marks=pytest.mark.long),
        pytest.param("cdna2_mfma_fp16_fp32", 4, 1, marks=pytest.mark.long),
    ],
)
def test_a_chain_equals_golden(stem, k, pipeline):
    spec = rule(stem)
    assert differing(spec if spec.k is None else replace(spec, k=k), k, pipeline) == 0


@pytest.mark.parametrize("stem", ["avx512_vdpbf16ps", "arm_bfdot_ebf0"])
def test_a_chain_with_multipliers_of_an_fpga_equals_golden(stem):
    assert differing(rule(stem), 2, multiplier="dsp") == 0


def test_every_unit_of_a_machine_takes_multipliers_of_an_fpga():
    for stem in ("avx512_vdpbf16ps", "cdna2_mfma_fp64_fp64", "cdna3_mfma_fp16_fp32"):
        found = realise(find(stem).rule, multiplier="dsp")
        assert found.parameters["multiplier"] == "dsp"
        with pytest.raises(NoUnit, match="multiplier must be one of booth, dsp"):
            realise(find(stem).rule, multiplier="wallace")


def test_latency_counts_the_operations_that_depend_on_each_other():
    for stem, k, pipeline, latency in (
        ("avx512_vdpbf16ps", 2, 3, 6),  # two fused multiply-adds
        ("cdna2_mfma_fp16_fp32", 4, 3, 2 + 9),  # a product and three additions
        ("amx_tdpbf16ps", 32, 2, 2 * (16 + 2)),  # 16 in each chain, and two additions
        ("gaudi1_bf16_fp32", 10, 1, 3 + 2),  # 3 in the longest chain, and two additions
    ):
        spec = rule(stem)
        assert ChainDot(spec=spec, k=k, pipeline=pipeline).latency == latency


def _unflushed(code, format):
    return code


def _to_nearest(**parameters):
    parameters["rounding"] = "RNE"
    return Adder(**parameters)


def _signed(code, format):
    return fma.flushed(code, format)


@pytest.mark.parametrize(
    ("stem", "module", "name", "mutant"),
    [
        pytest.param("avx512_vdpbf16ps", fma, "flushed", _unflushed, id="no flushing"),
        pytest.param("arm_bfdot_ebf0", chain, "Adder", _to_nearest, id="sums not odd"),
        pytest.param(
            *("cdna2_mfma_bf16_fp32", chain, "cleared", _signed),
            id="zeros keep their signs",
            marks=pytest.mark.long,
        ),
    ],
)
def test_mutants_are_caught(monkeypatch, stem, module, name, mutant):
    monkeypatch.setattr(module, name, mutant)
    assert differing(rule(stem), 2) > 0


@pytest.mark.parametrize("stem", ["avx512_vdpbf16ps", "amx_tdpbf16ps"])
def test_tiny_results_are_judged_with_unbounded_exponents(stem):
    """Sums beside the least normal number tell this from judging the rounded result."""
    rng = np.random.default_rng(SEED)
    signs = rng.integers(0, 2, (5, COUNT))
    c = (signs[0] << 31 | 0x00800000 + rng.integers(-3, 4, COUNT)).astype(np.uint32)
    first = rng.integers(37, 67, (2, COUNT))
    second = rng.integers(101, 129, (2, COUNT)) - first  # products from 2^−153 to 2^−123
    a = np.where(rng.random((2, COUNT)) < 0.4, 0, signs[1:3] << 15 | first << 7)
    b = signs[3:] << 15 | second << 7
    a, b = ((x | rng.integers(0, 128, (2, COUNT))).astype(np.uint16).T for x in (a, b))
    spec = rule(stem)
    if spec.k != 2:  # here C comes last, so each chain begins with the product 2^−63 · 2^−63
        spec = replace(spec, k=4)
        a, b = (np.concatenate([np.full_like(x, 0x2000), x], axis=1) for x in (a, b))
    expected = np.asarray(compute(spec, a, b, c))
    after = replace(spec, step=spec.step.replace(flush_result="after"))
    assert np.sum(compute(after, a, b, c) != expected) > 20
    for each, right in ((spec, True), (after, False)):
        got = rtl.compile(ChainDot(spec=each, k=a.shape[1])).run(a=a, b=b, c=c)
        assert np.array_equal(got, expected) == right


def test_another_order_is_noticed():
    spec = rule("avx512_vdpbf16ps")
    a, b, c = vectors(spec, 2)
    got = rtl.compile(ChainDot(spec=spec, k=2)).run(a=a, b=b, c=c)
    assert (got != compute(replace(spec, descending=False), a, b, c)).any()


@pytest.mark.long
def test_a_flushing_multiply_add_equals_golden():
    spec = find("gaudi2_fp32ieee_fp32").rule
    assert isinstance(spec, DotSpec)
    a, b, c = dot_vectors(spec, COUNT, seed=SEED)
    got = rtl.compile(FusedMultiplyAdd(spec=spec, pipeline=1)).run(a=a, b=b, c=c)
    np.testing.assert_array_equal(got, fused_dot(a, b, c, spec))


@pytest.mark.parametrize(
    ("stem", "changes", "k", "message"),
    [
        ("avx512_vdpbf16ps", {}, 3, "k must be 2, not 3"),
        ("gaudi1_bf16_fp32", {}, None, "k must be 4 or more, not None"),
        ("cdna2_mfma_fp16_fp32", {"k": 3}, 3, "k must be a power of two for rounded products"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(stem, changes, k, message):
    with pytest.raises(ValueError, match=message):
        ChainDot(spec=rule(stem, **changes), k=k)


def test_flushing_before_rounding_is_refused():
    step = rule("avx512_vdpbf16ps").step.replace(flush_result="before")
    with pytest.raises(
        ValueError, match="flush_result must be None or 'after' with RNE, not 'before'"
    ):
        FusedMultiplyAdd(spec=step)
    with pytest.raises(ValueError, match="k must be 1, not 2"):
        FusedMultiplyAdd(spec=step.replace(k=2))


def test_a_port_and_the_wire_at_it_may_have_the_same_number():
    # The parent connects its own \port$5$0 to a port of that name and to another one.
    child = "module \\top.x\n  wire width 8 input 1 \\port$5$0\n  wire output 2 \\port$9$0\nend\n"
    cell = "    connect \\port$5$0 \\port$9$0 [7:0]\n    connect \\port$9$0 \\port$5$0\n  end\n"
    top = "module \\top\n  wire width 8 \\port$9$0\n  wire width 1 \\port$5$0\n"
    text = deduplicate(f"{child}{top}  cell \\top.x \\x\n{cell}end\n")
    assert "connect \\port$0 \\port$0 [7:0]" in text and "connect \\port$1 \\port$1" in text
