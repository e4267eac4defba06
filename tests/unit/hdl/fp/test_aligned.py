"""The dot products of CDNA 3 against golden, and mutants that the comparison notices."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines import spec as rule_of
from vitruvian.hdl.fp.aligned import AlignedDotProduct
from vitruvian.hdl.fp.core import aligned
from vitruvian.hdl.fp.core.aligned import PIPELINES
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.stimuli import dot_vectors

SEED = 20261123


def rule(formats: str, k: int) -> DotSpec:
    found = rule_of("cdna3", "mfma", formats)
    assert isinstance(found, DotSpec)
    return found.replace(k=k)


def vectors(spec: DotSpec, count: int):
    """Return stratified operands, and rows whose C is far from the products or nearly cancels."""
    a, b, c = dot_vectors(spec, count, seed=SEED)
    rng = np.random.default_rng(SEED)
    near = np.asarray(fused_dot(a, b, np.zeros_like(c), spec))
    chosen = rng.random(count) < 0.3
    c = np.where(chosen, near ^ spec.output.sign_mask, c).astype(c.dtype)
    moved = (rng.integers(-34, 35, count).astype(np.int64) << spec.output.fraction_bits) + c
    far = rng.random(count) < 0.3
    c = np.where(far, moved & 0xFFFFFFFF, c).astype(c.dtype)
    if spec.k > 2:
        halves(a, b, c, spec, rng)
    return a, b, c


def halves(a, b, c, spec: DotSpec, rng) -> None:
    """Change rows to half a unit of C's last place, and bits that the last floor cuts off.

    The products are powers of two; C lies eight places above their largest.
    """
    rows = np.flatnonzero(rng.random(len(c)) < 0.1)
    n, f = len(rows), spec.input
    a[rows], b[rows] = 0, 0
    base = rng.integers(-4, 5, n)
    for lane, below in enumerate((0, 16, 24)):
        first = np.full(n, -(below // 2)) + base // 2
        for codes, exponent in ((a, first), (b, base - below - first)):
            code = (exponent + f.bias) << f.fraction_bits | rng.integers(0, 2, n) << (f.width - 1)
            codes[rows, lane] = code
    field = base + 8 + 127
    sign = rng.integers(0, 2, n)
    c[rows] = sign << 31 | field << 23 | rng.integers(0, 1 << 23, n)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("formats", "k", "pipeline"),
    [
        ("fp16", 3, 5),
        ("fp8", 4, 0),
        pytest.param("bf16", 2, 3, marks=LONG),
        pytest.param("xf32", 1, 1, marks=LONG),
        pytest.param("bf8xfp8", 5, 0, marks=LONG),
    ],
)
def test_the_unit_equals_golden(formats, k, pipeline):
    spec = rule(formats, k)
    a, b, c = vectors(spec, 60_000)
    expected = fused_dot(a, b, c, spec)
    got = rtl.compile(AlignedDotProduct(spec=spec, pipeline=pipeline)).run(a=a, b=b, c=c)
    np.testing.assert_array_equal(got, expected)
    # Every kind of result is there.
    assert len(np.unique(expected & 0x7F800000)) > 60
    for code in (0, 0x7F800000, 0xFF800000, 0x7FFFFFFF):
        assert np.sum(expected == code) >= 3, hex(code)


@pytest.mark.long
def test_every_depth_has_its_latency():
    spec = rule("fp8", 2)
    a, b, c = vectors(spec, 2000)
    expected = fused_dot(a, b, c, spec)
    for pipeline in (2, 4):
        unit = AlignedDotProduct(spec=spec, pipeline=pipeline, multiplier="dsp")
        assert unit.latency == len(PIPELINES[pipeline]) == pipeline
        np.testing.assert_array_equal(rtl.compile(unit).run(a=a, b=b, c=c), expected)


def _off_by_one(m, word, distance, **rest):
    if not rest["name"].startswith("c_floor"):
        return shift_right(m, word, distance, **rest)
    return shift_right(m, word, (distance + 1)[: len(distance) + 1], **rest)


def _truncated(m, word, distance, **rest):
    return shift_right(m, word, distance, **{**rest, "fill": None})


def _no_ones_below(m, word, **rest):
    return normalise(m, word, **{**rest, "tail": None})


def _ties_up(m, number, **rest):
    return round_and_pack(m, replace(number, word=number.word | 1), **rest)


def _only_even(m, values, **rest):
    return maximum(m, values[:1], **rest)


shift_right, normalise, maximum = aligned.shift_right, aligned.normalise, aligned.maximum
round_and_pack = aligned.round_and_pack


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        pytest.param("shift_right", _off_by_one, id="C off by one", marks=LONG),
        pytest.param("shift_right", _truncated, id="no sign shifted in"),
        pytest.param("normalise", _no_ones_below, id="no ones", marks=LONG),
        pytest.param("round_and_pack", _ties_up, id="ties up", marks=LONG),
        pytest.param("maximum", _only_even, id="maximum of one", marks=LONG),
        pytest.param("_TOTAL", 33, id="no last floor"),
    ],
)
def test_mutants_are_caught(monkeypatch, name, mutant):
    spec = rule("fp16", 3) if name == "_TOTAL" else rule("fp8", 2)
    a, b, c = vectors(spec, 60_000)
    monkeypatch.setattr(aligned, name, mutant)
    wrong = rtl.compile(AlignedDotProduct(spec=spec)).run(a=a, b=b, c=c)
    assert (wrong != fused_dot(a, b, c, spec)).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accumulate": "tree"}, "addend.how must be 'aligned', not 'tree'"),
        ({"rounding": "RZ"}, "rounding must be 'RNE', not 'RZ'"),
        ({"lanes": "halves"}, r"lanes must be together or parity \(k ≥ 2\), not 'halves'"),
        ({"output": "fp16", "result_bits": 10, "nan": None}, "output must be fp32 with all bits"),
        ({"input": "fp32"}, "input must be a format whose products have at most 24 fraction bits"),
    ],
)
def test_another_rule_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        AlignedDotProduct(spec=rule("fp16", 2).replace(**change))


def test_another_depth_is_refused():
    with pytest.raises(ValueError, match="pipeline must be one of 0, 1, 2, 3, 4, 5, not 6"):
        AlignedDotProduct(spec=rule("fp16", 2), pipeline=6)
