"""Products of whole matrices in every precision on the compiled unit: bits and cycles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitruvian.golden.m3xu import PRECISIONS, operand_dtype, result_dtype
from vitruvian.golden.m3xu import gemm as golden_gemm
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.sim.rtl import cube, m3xu, tiles

SEED = 11
NARROW = ("fp16", "bf16", "tf32")
SMALL_FP64 = MatrixUnitConfig(
    m=2, n=2, k=10, precisions=("fp64",), output="fp64", multiplier_bits=12
)

#: Arguments of golden with which ``CONFIGS["m3xu"]`` computes every precision except FP64.
SETTINGS: dict[str, dict[str, Any]] = {
    **{name: {"window": 48} for name in (*NARROW, "fp32", "fp32c")},
    "fp64": {"k": 10, "m": 2, "n": 2},
}


def golden(a, b, c, precision):
    settings = {n: x for n, x in SETTINGS[precision].items() if n not in ("m", "n")}
    return golden_gemm(a, b, c, precision=precision, **settings)


def rtl(a, b, c, precision):
    return m3xu.gemm(a, b, c, precision=precision, **SETTINGS[precision])


def real(dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype == np.complex64 else dtype


def codes(values) -> np.ndarray:
    """Return bit patterns, of both parts for complex numbers."""
    part = real(values.dtype)
    return np.ascontiguousarray(values).view(part).view(f"u{part.itemsize}")


def same(result, expected) -> None:
    assert result.dtype == expected.dtype and result.shape == expected.shape
    wrong = np.flatnonzero(codes(result).ravel() != codes(expected).ravel())
    assert not wrong.size, (
        f"{wrong.size} of {result.size} differ (seed {SEED}), the first at {wrong[0]}: "
        f"RTL {codes(result).ravel()[wrong[0]]:x}, golden {codes(expected).ravel()[wrong[0]]:x}"
    )


def draw(rng, shape, dtype, kind: str) -> np.ndarray:
    """Return random operands: ``values`` over 17 binades, or ``codes`` of random bits."""
    part = real(dtype)
    shape = (*shape, 2) if dtype == np.complex64 else shape
    values = (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 9, shape)).astype(part)
    if kind == "zeros":
        values = np.where(rng.random(shape) < 0.9, -0.0, 0.0).astype(part)
    if kind in ("special", "subnormal"):
        unsigned = values.view(f"u{part.itemsize}")
        specials = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0], part).view(unsigned.dtype)
        sign = specials[3]
        pool = specials if kind == "special" else np.array([1, 2, 5, sign | 1, sign | 7, 0, sign])
        pick = rng.random(shape) < (0.05 if kind == "special" else 0.7)
        unsigned[pick] = rng.choice(pool.astype(unsigned.dtype), int(pick.sum()))
    if kind == "codes":
        raw = np.frombuffer(rng.bytes(values.nbytes), f"u{part.itemsize}")
        values = raw.reshape(shape).copy().view(part)
    return values.view(dtype).reshape(shape[:-1]) if dtype == np.complex64 else values


@pytest.mark.parametrize("kind", ["values", "zeros", "special", "subnormal", "codes"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_sizes_beside_multiples_of_a_tile_equal_golden(precision, kind):
    """M, N and K are no multiples of a tile, with and without C."""
    rng = np.random.default_rng(SEED)
    dtype, output = operand_dtype(precision), result_dtype(precision)
    for m, n, k in ((11, 7, 9), (1, 1, 1), (3, 9, 20), (8, 4, 7)):
        a, b = draw(rng, (m, k), dtype, kind), draw(rng, (k, n), dtype, kind)
        for c in (None, draw(rng, (m, n), output, kind)):
            same(rtl(a, b, c, precision), golden(a, b, c, precision))


@pytest.mark.parametrize("precision", ["fp16", "fp32", "fp32c", "fp64"])
def test_padding_keeps_a_negative_zero(precision):
    """−0 and products that are all −0 add up to −0, also with padding in the lanes."""
    dtype, output = operand_dtype(precision), result_dtype(precision)
    for k in range(1, 6):
        c = np.full((2, 2), -0.0, real(output)).astype(output)
        a, b = np.full((2, k), -0.0, real(dtype)), np.ones((k, 2), real(dtype))
        a, b = a.astype(dtype), b.astype(dtype)
        if PRECISIONS[precision].is_complex:
            c.imag = -0.0
            a.imag, b.imag = 0.0, 0.0  # −0·1 − 0·0 = −0 in the real part, −0·0 + 0·1 = +0
        result = rtl(a, b, c, precision)
        same(result, golden(a, b, c, precision))
        assert np.signbit(np.real(result)).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_batches_are_broadcast(precision):
    rng = np.random.default_rng(SEED)
    dtype, output = operand_dtype(precision), result_dtype(precision)
    a = draw(rng, (3, 1, 5, 6), dtype, "values")
    b = draw(rng, (2, 6, 3), dtype, "values")
    for lead in ((), (3, 2), (2, 1, 2)):
        c = draw(rng, (*lead, 5, 3), output, "values")
        result = rtl(a, b, c, precision)
        assert result.shape[:-2] == np.broadcast_shapes((3, 2), lead)
        wide = np.broadcast_to(a, (*np.broadcast_shapes((3, 2), lead), 5, 6))
        same(result, golden(wide, b, c, precision))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_nothing_to_do(precision, monkeypatch):
    monkeypatch.setattr(m3xu, "matmul", lambda *_, **__: pytest.fail("ran"))
    dtype, output = operand_dtype(precision), result_dtype(precision)
    c = np.full((2, 3), -0.0).astype(output)
    for m, n, k in ((2, 3, 0), (0, 3, 2), (2, 0, 2)):
        a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
        same(rtl(a, b, None, precision), golden(a, b, None, precision))
    same(rtl(np.ones((2, 0), dtype), np.ones((0, 3), dtype), c, precision), c)


def refusals():
    f32, f16, c64 = np.float32, np.float16, np.complex64
    one, square = np.ones, (2, 2)
    return [
        ({"a": one(square, f16)}, TypeError, "a must be float32, not float16"),
        ({"b": one(square)}, TypeError, "b must be float32, not float64"),
        ({"c": one(square)}, TypeError, "c must be float32, not float64"),
        ({"precision": "fp32c"}, TypeError, "a must be complex64, not float32"),
        (
            {"precision": "fp32c", "a": one(square, c64), "b": one(square, c64)}
            | {"c": one(square, f32)},
            TypeError,
            "c must be complex64, not float32",
        ),
        ({"a": one(square, np.uint32)}, TypeError, "a must be float32, not uint32"),
        ({"a": one(2, f32)}, ValueError, "a and b must be .* with the same K"),
        ({"b": one((3, 2), f32)}, ValueError, r"the same K, not \(2, 2\) and \(3, 2\)"),
        ({"c": one((2, 3), f32)}, ValueError, r"c must be \(..., 2, 2\), not \(2, 3\)"),
        ({"a": one((2, 2, 2), f32), "b": one((3, 2, 2), f32)}, ValueError, "broadcast"),
        ({"precision": "fp8"}, ValueError, "precision must be one of fp16"),
        ({"k": 7}, ValueError, "k must be a multiple of 2 for fp32"),
        ({"preset": "z9"}, ValueError, "preset must be one of"),
        ({"window": 3}, ValueError, "window must be"),
        ({"m": 65}, ValueError, "m must be"),
        ({"threads": 0}, ValueError, "threads must be a positive number, not 0"),
    ]


@pytest.mark.parametrize(("changes", "error", "text"), refusals())
def test_what_is_refused_before_anything_runs(monkeypatch, changes, error, text):
    monkeypatch.setattr(cube, "compile_unit", lambda *_, **__: pytest.fail("built"))
    cube._model.cache_clear()
    square = np.ones((2, 2), np.float32)
    with pytest.raises(error, match=text):
        m3xu.gemm(**({"a": square, "b": square} | changes))
    shared = {name: x for name, x in changes.items() if name not in ("m", "threads")}
    if shared == changes:
        with pytest.raises(error):
            golden_gemm(**({"a": square, "b": square} | changes))


def test_precisions_that_a_unit_lacks(monkeypatch):
    monkeypatch.setattr(cube, "compile_unit", lambda *_, **__: pytest.fail("built"))
    cube._model.cache_clear()
    words = np.ones((2, 2), np.uint64)
    with pytest.raises(ValueError, match=r"precision must be one of fp16, .*, fp32c, not 'fp64'"):
        cube.matmul(CONFIGS["m3xu"], words, words, precision="fp64")
    with pytest.raises(TypeError, match="a must be codes of 64 bits, not uint32"):
        cube.matmul(CONFIGS["m3xu"], *np.ones((2, 2, 2), np.uint32), precision="fp32c")
    with pytest.raises(TypeError, match="a must be codes of 32 bits, not float32"):
        cube.matmul(CONFIGS["m3xu"], *np.ones((2, 2, 2), np.float32), precision="fp32")
    with pytest.raises(ValueError, match=r"stall_rate must be within \[0, 1\), not 1"):
        cube.matmul(CONFIGS["m3xu"], words, words, precision="fp32c", stall_rate=1)
    alone = replace(CONFIGS["m3xu"], precisions=("fp32c",))
    with pytest.raises(ValueError, match="K must be a multiple of 2 on a unit with fp32c and with"):
        cube.matmul(alone, words[:, :1], words[:1], precision="fp32c")


def test_the_unit_for_golden_s_parameters():
    shared = CONFIGS["m3xu"]
    assert m3xu.unit_for("fp32") == m3xu.unit_for("fp32c") == shared
    assert m3xu.unit_for("bf16", window=48) == shared
    assert m3xu.unit_for("fp16", preset="a100") == replace(shared, preset="a100")
    assert m3xu.unit_for("fp32", m=4, n=2) == replace(shared, m=4, n=2)
    for name in NARROW:
        assert m3xu.unit_for(name).spec(name) == PRECISIONS[name].spec()
        assert m3xu.unit_for(name).precisions == (name,)
    assert replace(m3xu.unit_for("fp64", k=10), m=2, n=2) == replace(
        SMALL_FP64, assignment="edge", window=m3xu.unit_for("fp64", k=10).window
    )


# Cycles


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_cycle_is_a_step(precision):
    """The unit executes a step in every cycle until its pipeline drains."""
    rng = np.random.default_rng(SEED)
    dtype = operand_dtype(precision)
    unit = m3xu.unit_for(precision, **SETTINGS[precision])
    kind = PRECISIONS[precision]
    elements = kind.elements(unit.k, unit.lane_bits)
    m, n, k = 5 * unit.m, 6 * unit.n, 8 * elements
    a, b = draw(rng, (m, k), dtype, "values"), draw(rng, (k, n), dtype, "values")
    result = m3xu.compute(a, b, precision=precision, **SETTINGS[precision])
    assert result.beats == 5 * 6 * 8 and result.streams == 1
    assert result.steps == result.beats * kind.steps(unit.lane_bits)
    # The imaginary part of a complex result comes a cycle after the real part.
    assert result.cycles == result.steps + unit.latency_cycles
    assert result.steps / result.cycles > 0.97


def test_streams_do_not_depend_on_the_threads():
    rng = np.random.default_rng(SEED)
    a, b = (draw(rng, (112, 112), np.dtype(np.float32), "values") for _ in range(2))
    one, two = (m3xu.compute(a, b, threads=threads) for threads in (1, 2))
    same(one.d, golden(a, b, None, "fp32"))
    same(two.d, one.d)
    assert one.streams == two.streams == 3 and one.cycles == two.cycles
    unit = CONFIGS["m3xu"]
    assert one.beats == 14 * 28 * 28 and one.steps == 2 * one.beats
    assert one.cycles == one.steps + one.streams * unit.latency_cycles


# Mutations


def broken_order(config, a, b, precision, *rest, _cut=tiles.cut_operands):
    left, right = _cut(config, a, b, precision, *rest)
    return left, right[..., ::-1].copy()  # the words of a bus in reverse order


def broken_filler(words, terms, filler):
    more = -words.shape[-1] % terms
    return np.concatenate(
        [words, np.full((*words.shape[:-1], more), filler | 0x3F800000, words.dtype)], -1
    )


def plus_zero(words, terms, filler, _filled=tiles._filled):
    return _filled(words, terms, 0)


def unswapped(a, b, sign, _real=tiles.real_operands):
    (x, y), (z, _) = _real(a, b, sign)
    return (x, y), (z, b)


@pytest.mark.parametrize(
    ("module", "name", "fault", "precision", "kind"),
    [
        (cube, "cut_operands", broken_order, "fp32", "values"),
        (cube, "cut_operands", broken_order, "fp32c", "values"),
        (tiles, "_filled", broken_filler, "fp32", "values"),
        (tiles, "_filled", plus_zero, "fp32", "negative"),
        (tiles, "_filled", plus_zero, "fp64", "negative"),
        (tiles, "real_operands", unswapped, "fp32c", "values"),
        (tiles, "_bus", None, "fp32c", "values"),
    ],
)
def test_a_fault_on_the_way_is_noticed(monkeypatch, module, name, fault, precision, kind):
    if fault is None:  # the rows of a tile in reverse order
        right = tiles._bus
        fault = lambda words, *more: right(words[:, ::-1], *more)  # noqa: E731
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(AssertionError, match="differ"):
        if kind == "negative":
            test_padding_keeps_a_negative_zero(precision)
        else:
            test_sizes_beside_multiples_of_a_tile_equal_golden(precision, kind)
