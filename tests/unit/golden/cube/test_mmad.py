"""Every element of ``golden.cube.mmad`` is a chain of dot products of ``golden.fp``."""

import re
from itertools import count

import numpy as np
import pytest

from vitruvian.golden.cube import mmad
from vitruvian.golden.cube.mmad import plain_mmad
from vitruvian.golden.cube.mmad_compiled import compiled_mmad
from vitruvian.golden.fp import IntDotSpec, fused_dot, int_dot
from vitruvian.golden.fp.reference import fused_dot_reference
from vitruvian.golden.machines.presets import PRESETS

SPEC = PRESETS["a100"].spec("fp16", k=4)


def operands(m, k, n, seed=1, lead=()):
    rng = np.random.default_rng(seed)
    # finite: one NaN would hide a row
    a, b = (
        rng.integers(0, 0x7800, (*lead, *shape), dtype=np.uint16)
        | rng.integers(0, 2, (*lead, *shape), dtype=np.uint16) << 15
        for shape in ((m, k), (k, n))
    )
    return a, b, rng.integers(0x30000000, 0x50000000, (*lead, m, n), dtype=np.uint32)


@pytest.mark.parametrize("k", [1, 3, 4, 12])
def test_elements_are_chains_of_dot_products(k):
    a, b, c = operands(3, k, 5)
    d = mmad(a, b, c, spec=SPEC)
    assert d.shape == (3, 5) and d.dtype == np.uint32
    for i in range(3):
        for j in range(5):
            value = int(c[i, j])
            for start in range(0, k, 4):
                block = slice(start, start + 4)
                value = fused_dot_reference(a[i, block].tolist(), b[block, j].tolist(), value, SPEC)
            assert d[i, j] == value


def test_no_c_is_positive_zero():
    a, b = np.full((2, 4), 0x8000, np.uint16), np.full((4, 2), 0x0000, np.uint16)
    assert (mmad(a, b, spec=SPEC) == 0).all()
    c = np.full((2, 2), 0x80000000, np.uint32)
    assert (mmad(a, b, c, spec=SPEC) == 0).all()
    assert (mmad(a, b, c, spec=SPEC.replace(zero="ieee")) == 0x80000000).all()


def test_leading_axes_broadcast():
    a, b, c = operands(2, 8, 3, lead=(4, 5))
    d = mmad(a, b[0, 0], c, spec=SPEC)
    for index in np.ndindex(4, 5):
        assert (d[index] == mmad(a[index], b[0, 0], c[index], spec=SPEC)).all()
    assert mmad(a, b, c[0, 0], spec=SPEC).shape == (4, 5, 2, 3)


def test_rows_in_parts_are_the_same(monkeypatch):
    a, b, c = operands(9, 8, 4)
    whole = mmad(a, b, c, spec=SPEC)
    monkeypatch.setitem(mmad.__globals__, "_TERMS", 40)
    assert (mmad(a, b, c, spec=SPEC) == whole).all()


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("signed_a", "signed_b"), [(True, True), (False, True), (False, False)])
def test_integers(signed_a, signed_b, saturate):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 256, (3, 8), dtype=np.uint8).view(np.int8 if signed_a else np.uint8)
    b = rng.integers(0, 256, (8, 4), dtype=np.uint8).view(np.int8 if signed_b else np.uint8)
    c = rng.choice(np.array([2**31 - 1, -(2**31), 0], np.int32), (3, 4))
    spec = IntDotSpec(k=4, signed_a=signed_a, signed_b=signed_b, saturate=saturate)
    d = mmad(a, b, c, spec=spec)
    assert d.dtype == np.int32
    signs = {"signed_a": signed_a, "signed_b": signed_b, "saturate": saturate}
    for i in range(3):
        for j in range(4):
            first = int_dot(a[i, :4], b[:4, j], c[i, j], **signs)
            assert d[i, j] == int_dot(a[i, 4:], b[4:, j], first, **signs)
    if not saturate:
        assert (d == (a.astype(np.int64) @ b + c).astype(np.int32)).all()


def test_saturation_is_per_block():
    a = np.array([[100, 100, -100, -100]], np.int8)
    b = np.full((4, 1), 100, np.int8)
    c = np.array([[2**31 - 1]])
    assert mmad(a, b, c, spec=IntDotSpec(k=4, saturate=True)) == 2**31 - 1
    assert mmad(a, b, c, spec=IntDotSpec(k=2, saturate=True)) == 2**31 - 1 - 20_000


@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ((2, 3), (4, 2), None, "a and b must be (..., M, K) and (..., K, N) with the same K"),
        ((2, 0), (0, 2), None, "same K of at least 1, not (2, 0) and (0, 2)"),
        ((4,), (4, 2), None, "not (4,) and (4, 2)"),
        ((2, 6), (6, 2), None, "K must be at most 4 or a multiple of it, not 6"),
        ((2, 4), (4, 3), (3, 2), "c must be (..., 2, 3), not (3, 2)"),
    ],
)
def test_wrong_shapes_are_rejected(a, b, c, message):
    zeros = [None if s is None else np.zeros(s, np.uint16) for s in (a, b, c)]
    with pytest.raises(ValueError, match=re.escape(message)):
        mmad(*zeros, spec=SPEC)  # pyright: ignore[reportArgumentType]


def test_spec_must_be_a_dot_spec():
    with pytest.raises(TypeError, match="spec must be a DotSpec or an IntDotSpec, not 'a100'"):
        mmad(np.zeros((1, 1)), np.zeros((1, 1)), spec="a100")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        IntDotSpec(k=0)
    assert IntDotSpec(k=1).k == 1  # the smallest allowed
    with pytest.raises(TypeError, match="saturate must be True or False, not 1"):
        IntDotSpec(k=1, saturate=1)  # pyright: ignore[reportArgumentType]


def test_agrees_with_one_fused_dot():
    a, b, c = operands(6, 4, 7)
    d = fused_dot(a[:, None, :], b.T[None], c, SPEC)
    assert (mmad(a, b, c, spec=SPEC) == d).all()


@pytest.mark.parametrize(
    ("preset", "first", "other"),
    [
        ("ieee", "fp16", "fp16"),
        ("a100", "bf16", "bf16"),
        ("h100", "fp8e4m3", "fp8e5m2"),
        ("a100", "tf32", "tf32"),
    ],
)
def test_tiles_in_the_compiled_version(preset, first, other):
    """A has every 16-bit code, including infinities and NaNs, with few of these in a row."""
    spec = PRESETS[preset].spec(first, k=1, input_b=other)
    turned = PRESETS[preset].spec(other, k=1, input_b=first)
    rng = np.random.default_rng(7)
    wide = spec.input.width
    a = np.arange(1 << wide) if wide <= 16 else rng.integers(0, 1 << wide, 1 << 16)
    a = a.astype(np.uint32).reshape(-1, 64, 1) << spec.input.storage_shift
    b = rng.integers(0, 1 << spec.input_b.width, (len(a), 1, 4)) << spec.input_b.storage_shift
    c = rng.choice(np.array([0, 0x3F800000, 0xC5000001], np.uint32), (len(a), 64, 4))
    plain = plain_mmad(a, b, c, spec)
    assert len(np.unique(plain)) > plain.size // 8
    for x, y, z, expected in zip(a, b, c, plain, strict=True):
        assert np.array_equal(compiled_mmad(x, y, z, spec), expected)
        assert np.array_equal(compiled_mmad(y.T, x.T, z.T, turned), expected.T)


def test_many_tiles_use_the_compiled_version(monkeypatch):
    a, b, c = operands(16, 16, 16)
    plain = mmad(a, b, c, spec=SPEC)
    monkeypatch.setitem(mmad.__globals__, "_tiles", count(1))
    monkeypatch.setitem(mmad.__globals__, "_TILES", 2)
    monkeypatch.setitem(mmad.__globals__, "plain_mmad", lambda *_: "plain")
    assert [mmad(a, b, c, spec=SPEC) for _ in range(2)] == ["plain"] * 2
    assert np.array_equal(mmad(a, b, c, spec=SPEC), plain)


@pytest.mark.parametrize("signed_a", [True, False])
@pytest.mark.parametrize("signed_b", [True, False])
def test_integer_products_in_doubles_are_those_of_the_definition(signed_a, signed_b):
    """Values, codes, extremes, and sums that wrap; the plain form sums 32 terms at a time."""
    rng = np.random.default_rng(5)
    spec = IntDotSpec(k=32, signed_a=signed_a, signed_b=signed_b)
    for draw in (lambda n: rng.integers(0, 256, n), lambda n: rng.choice([0, 127, 128, 255], n)):
        a, b = draw((2, 17, 96)).astype(np.uint8), draw((96, 13)).astype(np.uint8)
        c = rng.choice([-(2**31), -1, 0, 2**31 - 1], (17, 13)).astype(np.int32)
        expected = plain_mmad(a, b, c, spec)
        assert expected.dtype == np.int32 and np.array_equal(mmad(a, b, c, spec=spec), expected)
        x, y = (v.view(np.int8) if s else v for v, s in ((a, signed_a), (b, signed_b)))
        assert np.array_equal(mmad(x, y, c.view(np.uint32), spec=spec), expected)
    with pytest.raises(ValueError, match="a must be between -128 and 255, not 256"):
        mmad([[256]], [[1]], [[0]], spec=spec)
