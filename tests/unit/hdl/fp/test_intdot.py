"""Integer dot product RTL against golden: signs, K, pipeline depths, all pairs, mutants."""

import numpy as np
import pytest

import vitruvian.hdl.fp.intdot
from vitruvian.golden.fp import IntDotSpec, int_dot
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.batch import run_int_dot

SEED = 20261121
DEPTHS = sorted(vitruvian.hdl.fp.intdot._PIPELINES)


@pytest.mark.parametrize("signed_a", [True, False])
@pytest.mark.parametrize("signed_b", [True, False])
@pytest.mark.parametrize("saturate", [True, False])
def test_signs_and_overflow(signed_a, signed_b, saturate):
    """K = 3 has one pair of products and one single product."""
    spec = IntDotSpec(k=3, signed_a=signed_a, signed_b=signed_b, saturate=saturate)
    result = run_int_dot(spec, 20_000, SEED, pipeline=0)
    assert result.vectors == 20_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("pipeline", DEPTHS)
def test_depths(pipeline):
    assert IntDotProduct(spec=IntDotSpec(k=2), pipeline=pipeline).latency == pipeline
    spec = IntDotSpec(k=6, saturate=pipeline % 2 == 1)
    result = run_int_dot(spec, 20_000, SEED, pipeline=pipeline)
    assert result.vectors == 20_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("k", [1, 2, 9, 16])
def test_lengths(k):
    result = run_int_dot(IntDotSpec(k=k), 10_000, SEED, pipeline=0)
    assert not result.mismatches, result.examples


@pytest.mark.parametrize("signed_a", [True, False])
@pytest.mark.parametrize("signed_b", [True, False])
def test_all_pairs_in_both_places_of_a_pair(signed_a, signed_b):
    """Every product of two bytes occurs beside every kind of neighbour: 2 x 65536 x 5 results.

    The operands of the third lane are zero; the unit is that of ``test_signs_and_overflow``.
    """
    spec = IntDotSpec(k=3, signed_a=signed_a, signed_b=signed_b)
    model = rtl.compile_unit(IntDotProduct, spec=spec)
    x = np.repeat(np.arange(256, dtype=np.uint8), 256)
    y = np.tile(np.arange(256, dtype=np.uint8), 256)
    checked = 0
    for other in ((0, 0), (255, 255), (128, 128), (128, 127), (85, 170)):
        for place in (0, 1):
            a, b = (np.full((65536, 3), value, np.uint8) for value in other)
            a[:, 2] = b[:, 2] = 0
            a[:, place], b[:, place] = x, y
            c = np.full(65536, -(2**31) + 7, np.int32)
            want = int_dot(a, b, c, signed_a=signed_a, signed_b=signed_b)
            np.testing.assert_array_equal(
                model.run(a=a, b=b, c=c), np.asarray(want).view(np.uint32)
            )
            checked += len(x)
    assert checked == 2 * 5 * 65536


def test_saturation_is_decided_on_the_exact_sum():
    """C is at the limits; partial sums leave the range and return, or just stay inside."""
    model = rtl.compile_unit(IntDotProduct, spec=IntDotSpec(k=3, saturate=True))
    low, high = -(2**31), 2**31 - 1
    a = np.array([[127, -127, 0], [127, 0, 0], [-128, 0, 0], [1, 0, 0]], np.int8)
    b = np.array([[127, 127, 0], [127, 0, 0], [127, 0, 0], [1, 0, 0]], np.int8)
    c = np.array([high, high, low, high - 1], np.int32)
    got = np.asarray(model.run(a=a, b=b, c=c)).view(np.int32)
    assert got.tolist() == [high, high, low, high]


def _constant_off(constant, width):
    return constant_row(constant + 1, width)


def _carry_lost(m, rows, *, width, name):
    packed = compress(m, rows, width=width, name=name)
    if len(packed) == 2 and name == "sum_c":
        packed[1] = vitruvian.hdl.fp.intdot.CarrySaveRow(
            value=packed[1].value[:-4], lsb=packed[1].lsb
        )
    return packed


constant_row, compress = vitruvian.hdl.fp.intdot._constant_row, vitruvian.hdl.fp.intdot.compress


@pytest.mark.parametrize(
    ("name", "mutant"), [("_constant_row", _constant_off), ("compress", _carry_lost)]
)
def test_mutants_are_caught(monkeypatch, name, mutant):
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(-128, 128, (2, 10_000, 3)).astype(np.int8)
    c = rng.integers(-(2**31), 2**31, 10_000).astype(np.int32)
    expected = np.asarray(int_dot(a, b, c)).view(np.uint32)
    unit = IntDotProduct(spec=IntDotSpec(k=3))
    assert np.array_equal(rtl.compile(unit).run(a=a, b=b, c=c), expected)
    monkeypatch.setattr(vitruvian.hdl.fp.intdot, name, mutant)
    wrong = rtl.compile(IntDotProduct(spec=unit.spec)).run(a=a, b=b, c=c)
    assert (wrong != expected).any()


def test_errors_say_what_is_allowed():
    with pytest.raises(ValueError, match=r"pipeline must be one of 0, 1, .*, 10, 11, not 12"):
        IntDotProduct(spec=IntDotSpec(k=4), pipeline=12)
    with pytest.raises(ValueError, match="multiplier must be one of booth, dsp, not 'lut'"):
        IntDotProduct(spec=IntDotSpec(k=4), multiplier="lut")
