"""Elementwise operations against the scalar reference, and exhaustively on fp8."""

import inspect
from functools import partial

import numpy as np
import pytest

import vitruvian.golden.fp
from tests.support.golden_cases import directed_codes, random_codes, require_equal, stratified_fma
from vitruvian.golden.fp import (
    FORMATS,
    ROUNDINGS,
    UNORDERED,
    add,
    compare,
    convert,
    fma,
    from_float,
    from_int,
    maximum_number,
    minimum_number,
    mul,
    reference,
    to_float,
    to_int,
)

NAMES = list(FORMATS)


def operands(format, n, seed):
    """Return some triples of every class, and directed pairs."""
    rng = np.random.default_rng(seed)
    triples = stratified_fma(rng, 2000, format)
    pick = rng.choice(len(triples[0]), n, replace=False)
    return tuple(x[pick] for x in triples)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("format", NAMES)
def test_add_mul_fma_equal_the_reference(format, rounding):
    a, b, c = operands(format, 150, 1)
    named = {"a": a, "b": b, "c": c}
    x, y, z = a.tolist(), b.tolist(), c.tolist()
    for what, got, slow, columns in (
        ("fma", fma(a, b, c, format, rounding=rounding), reference.fma, (x, y, z)),
        ("mul", mul(a, b, format, rounding=rounding), reference.mul, (x, y)),
        ("add", add(a, c, format, rounding=rounding), reference.add, (x, z)),
    ):
        slow = partial(slow, format=format, rounding=rounding)
        require_equal(f"{format} {what} {rounding}", got, list(map(slow, *columns)), named, 1)


@pytest.mark.parametrize("rounding", ["RNE", "RD"])
@pytest.mark.parametrize("format", ["fp16", "bf16", "fp8e4m3", "fp8e5m2"])
def test_results_in_a_wider_format(format, rounding):
    a, b, _ = operands(format, 400, 2)
    c = random_codes(np.random.default_rng(3), "fp32", 400)
    named = {"a": a, "b": b, "c": c}
    x, y, z = a.tolist(), b.tolist(), c.tolist()
    for what, got, slow, columns in (
        ("add", add(a, b, format, "fp32", rounding), reference.add, (x, y)),
        ("mul", mul(a, b, format, "fp32", rounding), reference.mul, (x, y)),
        ("fma", fma(a, b, c, format, "fp32", rounding), reference.fma, (x, y, z)),
    ):
        slow = partial(slow, format=format, output="fp32", rounding=rounding)
        require_equal(f"{format} {what} to fp32", got, list(map(slow, *columns)), named, 2)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_convert_equals_the_reference(source, target):
    rng = np.random.default_rng(4)
    codes = np.concatenate([directed_codes(source), random_codes(rng, source, 60)])
    # Numbers next to those of the target, and half-way between two of them
    around = to_float(
        np.concatenate([directed_codes(target), random_codes(rng, target, 60)]), target
    )
    with np.errstate(over="ignore", invalid="ignore"):
        middle = around * (1 + 0.5 ** (FORMATS[target].fraction_bits + 1))
    codes = np.concatenate([codes, from_float(np.concatenate([around, middle]), source)])
    for rounding in ROUNDINGS:
        for saturate in (False, True):
            got = convert(codes, source, target, rounding, saturate=saturate)
            expected = [
                reference.convert(x, source, target, rounding, saturate=saturate)
                for x in codes.tolist()
            ]
            what = f"{source} to {target} {rounding} saturate={saturate}"
            require_equal(what, got, expected, {"x": codes}, 4)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("target", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("source", NAMES)
def test_to_int_equals_the_reference(source, target, rounding):
    rng = np.random.default_rng(5)
    near = from_float(rng.integers(-600, 600, 200) / 2.0, source)
    codes = np.concatenate([directed_codes(source), random_codes(rng, source, 100), near])
    got = to_int(codes, source, target, rounding)
    assert got.dtype == np.dtype(target)
    expected = [reference.to_int(x, source, target, rounding) for x in codes.tolist()]
    require_equal(f"{source} to {target} {rounding}", got, expected, {"x": codes}, 5)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("target", NAMES)
def test_from_int_equals_the_reference(target, rounding):
    rng = np.random.default_rng(6)
    values = np.concatenate([np.arange(-300, 300), rng.integers(-(1 << 31), 1 << 31, 200)])
    values = np.concatenate([values, rng.integers(-(1 << 60) + 1, 1 << 60, 100)])
    expected = [reference.from_int(x, target, rounding) for x in values.tolist()]
    got = from_int(values, target, rounding)
    require_equal(f"int to {target} {rounding}", got, expected, {"x": values}, 6)


@pytest.mark.parametrize("format", ["fp8e4m3", "fp8e5m2"])
def test_every_pair_of_fp8_is_ordered_as_the_reference(format):
    x, y = (g.ravel().astype(np.uint8) for g in np.meshgrid(np.arange(256), np.arange(256)))
    assert len(x) == 65536
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for fast, slow in (
        (minimum_number, reference.minimum_number),
        (maximum_number, reference.maximum_number),
        (compare, reference.compare),
    ):
        expected = np.array([slow(p, q, format) for p, q in pairs])
        require_equal(
            f"{format} {fast.__name__}", fast(x, y, format), expected, {"a": x, "b": y}, None
        )


@pytest.mark.parametrize("format", NAMES)
def test_order_equals_the_reference(format):
    d = np.concatenate([directed_codes(format), random_codes(np.random.default_rng(7), format, 30)])
    x, y = (g.ravel() for g in np.meshgrid(d, d))
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for fast, slow in (
        (minimum_number, reference.minimum_number),
        (maximum_number, reference.maximum_number),
        (compare, reference.compare),
    ):
        expected = [slow(p, q, format) for p, q in pairs]
        require_equal(
            f"{format} {fast.__name__}", fast(x, y, format), expected, {"a": x, "b": y}, 7
        )


def test_order_of_zeros_and_nans():
    zero, minus, nan, one = 0x0000, 0x8000, 0xFE01, 0x3C00
    assert minimum_number(zero, minus, "fp16") == minus
    assert maximum_number(minus, zero, "fp16") == zero
    assert compare(zero, minus, "fp16") == 0
    assert compare(nan, one, "fp16") == UNORDERED
    assert minimum_number(nan, one, "fp16") == maximum_number(one, nan, "fp16") == one
    assert minimum_number(nan, nan, "fp16") == 0x7E00


def test_saturating_conversions():
    assert int(from_float(1e9, "fp8e4m3")) == 0x7F
    assert int(from_float(-1e9, "fp8e4m3", saturate=True)) == 0xFE
    assert int(from_float(-np.inf, "fp8e5m2", saturate=True)) == 0xFB
    codes = from_float([np.inf, -np.inf, np.nan, 2.5, -2.5, 1e6], "fp32")
    assert to_int(codes, "fp32", "int8").tolist() == [127, -128, 0, 2, -2, 127]


def test_scalars_and_broadcasting():
    one = FORMATS["fp32"].one
    assert int(add(one, one, "fp32")) == 0x40000000
    assert mul(np.full((3, 1), one, np.uint32), np.full(4, one, np.uint32), "fp32").shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: add([0], [0], "fp32", "fp16"), "output must hold every fp32 number, not 'fp16'"),
        (lambda: add([0], [0], "fp8e5m2", "fp8e4m3"), "output must hold every fp8e5m2 number"),
        (lambda: fma([0], [0], [0], "fp16", rounding="RN"), "rounding must be one of RNE, .* 'RN'"),
        (lambda: convert([0], "fp16", "fp8"), "target must be one of"),
        (lambda: to_int([0], "fp16", "int4"), "target must be one of int8, uint8, int32"),
        (lambda: from_int([1 << 60], "fp32"), r"magnitudes of values must be below 2\*\*60"),
        (lambda: from_int([0.5], "fp32"), "values must be integers, not float64"),
        (lambda: mul([0x10000], [0], "fp16"), "a must be between 0 and 0xffff"),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_reference_functions_have_the_parameters_of_those_with_the_same_name():
    shared = {name for name in reference.__all__ if hasattr(vitruvian.golden.fp, name)}
    assert set(reference.__all__) - shared == {"Decoded", "decode", "encode", "fused_dot_reference"}
    for name in shared:
        scalar, vectorised = (
            inspect.signature(getattr(m, name)) for m in (reference, vitruvian.golden.fp)
        )
        singular = {"codes": "code", "values": "value"}
        assert [
            (singular.get(p.name, p.name), p.kind, p.default)
            for p in vectorised.parameters.values()
        ] == [(p.name, p.kind, p.default) for p in scalar.parameters.values()], name
