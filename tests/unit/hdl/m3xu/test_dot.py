"""Tests of the lanes' dot product with wide operands in limbs and with narrow operands."""

import numpy as np
import pytest

import vitruvian.hdl.fp.core.terms
import vitruvian.hdl.m3xu.dot
import vitruvian.hdl.m3xu.products
from vitruvian.golden.fp import dot_spec, fused_dot
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.m3xu import split
from vitruvian.hdl.m3xu.dot import LaneDot
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.bench.m3xu.lanes import lane_fields, run_lanes, unit_for
from vitruvian.sim.rtl import compile

COUNT = 3000


def unit_and_spec(format, a_bits, b_bits, n, window, pipeline, limbs):
    output = "fp64" if format == "fp64" else "fp32"
    spec = dot_spec(input=format, output=output, k=len(a_bits) // n, window=window)
    unit = unit_for(spec, a_bits=a_bits, b_bits=b_bits, limbs=limbs, pipeline=pipeline)
    return unit, spec


def mismatches(format, a_bits, b_bits, n, window, pipeline, limbs):
    unit, spec = unit_and_spec(format, a_bits, b_bits, n, window, pipeline, limbs)
    a, b, c = dot_vectors(spec, COUNT, seed=pipeline + n)
    got = run_lanes(compile(unit), unit, spec, n, a, b, c)
    return int((got != fused_dot(a, b, c, spec)).sum())


@pytest.mark.parametrize(
    ("format", "a_bits", "b_bits", "n", "window", "pipeline", "limbs"),
    [
        ("fp32", (11, 13) * 4, 12, 2, 48, 3, (2,)),
        ("fp32", (11, 13), 12, 2, 48, 0, (2,)),
        ("fp32", (11, 13) * 2, 12, 2, 26, 3, (2,)),
        ("fp32", (12, 12) * 2, 12, 2, 60, 4, (2,)),
        ("fp32", (8,) * 6, 8, 3, 48, 1, (3,)),
        ("fp32", (6,) * 4, 6, 4, 48, 2, (2, 4)),
        ("tf32", (11, 13) * 2, 12, 1, 48, 3, (2,)),
        ("bf16", (11,) * 3, 11, 1, 32, 2, ()),
        ("fp64", (27,) * 4, 27, 2, 106, 3, (2,)),
        ("fp64", (11, 13) * 5, 12, 5, 106, 4, (2, 5)),
        ("fp32", (11, 13) * 5, 12, 2, 48, 2, (2, 5)),
    ],
)
def test_lanes_and_limbs_equal_golden(format, a_bits, b_bits, n, window, pipeline, limbs):
    assert mismatches(format, a_bits, b_bits, n, window, pipeline, limbs) == 0


def test_the_reference_cuts_operands_as_golden_does():
    """``lane_fields`` and ``golden.m3xu.split`` are two definitions of a limb."""
    codes = np.array([0x3F812345, 0x7F7FFFFF, 0x00000001, 0xC0490FDB], np.uint32)
    for code in codes.tolist():
        significand = (code & 0x7FFFFF) | (0x800000 if code >> 23 & 0xFF else 0)
        fields = [
            lane_fields(np.array([code]), FORMATS["fp32"], place=12 * i, width=12, total=24)[
                "significand"
            ][0]
            for i in range(2)
        ]
        assert fields == split(significand, limbs=2, bits=12)


products = vitruvian.hdl.m3xu.products


def shift_by_sixteen(element, sums, lane):
    """Take the previous row four bits too high: shift it by 16 instead of 12."""
    low = element.digit + 4 + element.place(lane)
    return element.row(sums)[low : low + element.limbs[lane - element.base]]


def nothing_carried(element, sums, lane):
    """Ignore the previous steps."""
    return products._Element.row(element, sums)[:0]


@pytest.mark.parametrize("mutant", [shift_by_sixteen, nothing_carried])
def test_a_mutant_of_the_limbs_fails(monkeypatch, mutant):
    monkeypatch.setattr(products._Element, "carried", mutant)
    assert mismatches("fp32", (11, 13) * 2, 12, 2, 48, 3, (2,)) > COUNT // 10


def test_limbs_in_the_wrong_order_fail(monkeypatch):
    original = vitruvian.hdl.m3xu.dot.limb_products

    def swapped(m, a, b, **rest):
        return original(
            m, [x for pair in zip(a[1::2], a[::2], strict=True) for x in pair], b, **rest
        )

    monkeypatch.setattr(vitruvian.hdl.m3xu.dot, "limb_products", swapped)
    assert mismatches("fp32", (12, 12) * 2, 12, 2, 48, 3, (2,)) > COUNT // 10


def test_a_negative_product_cut_in_both_pieces_counts_once(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.fp.core.terms, "first_cuts", lambda lost, pieces: list(lost))
    # In a short window the last place that is kept reaches the result.
    assert mismatches("fp32", (11, 13) * 2, 12, 2, 26, 3, (2,)) > 0


def test_a_step_rounded_before_its_last_fails():
    """Two sums, one for each step and each rounded, are not the fused sum."""
    unit, spec = unit_and_spec("fp32", (11, 13) * 2, 12, 2, 48, 0, (2,))
    a, b, c = dot_vectors(spec, COUNT, seed=1)
    half = replace_k(spec, 1)
    twice = fused_dot(a[:, 1:], b[:, 1:], fused_dot(a[:, :1], b[:, :1], c, half), half)
    assert (run_lanes(compile(unit), unit, spec, 2, a, b, c) != twice).any()


def replace_k(spec, k):
    return dot_spec(input=spec.input, output=spec.output, k=k, window=spec.sum.window)


def test_errors_of_parameters():
    spec = dot_spec(input="fp32", output="fp32", k=3, window=48)
    with pytest.raises(ValueError, match="limbs must divide 3 lanes"):
        LaneDot(spec=spec, a_bits=(12,) * 3, limbs=(2,), exponent_bits=8, b_bits=12)
    with pytest.raises(ValueError, match="pipeline must be one of"):
        LaneDot(spec=spec, a_bits=(12,) * 4, pipeline=9, exponent_bits=8, b_bits=12)
    with pytest.raises(ValueError, match="window"):
        exact = dot_spec(input="fp32", output="fp32", k=4, window=None)
        LaneDot(spec=exact, a_bits=(12,) * 4, exponent_bits=8, b_bits=12)
