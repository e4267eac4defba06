"""Integers and multiply-add of the vector unit's extension: golden, exact numbers, and mutants."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vitruvian.hdl.vector.fused
import vitruvian.hdl.vector.integer
from vitruvian.golden import vector
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.vector.extension import EXTRA_GROUPS, ExtensionConfig, Extra, VectorExtension
from vitruvian.hdl.vector.fused import FusedLanes
from vitruvian.hdl.vector.integer import IntegerWord
from vitruvian.sim.rtl import compile, compile_unit

KINDS = ("int16", "uint16", "int32", "uint32")
FLAGS = ("subtract", "shift", "left", "nearest")


def integers(model, a, b, amount=0, **flags):
    """Return the results of words of integers."""
    count = a.nbytes // 4
    given = {name: np.full(count, flags.get(name, 0), np.uint8) for name in FLAGS}
    given["amount"] = np.full(count, amount, np.uint8)
    given["wide"] = np.full(count, a.itemsize == 4, np.uint8)
    given["arithmetic"] = np.full(count, a.dtype.kind == "i", np.uint8)
    words = model.run(a=a.view(np.uint32), b=b.view(np.uint32), **given)
    return np.asarray(words).astype(np.uint32).view(a.dtype)


def operands(kind, seed=1, words=2000):
    """Return random integers, and all pairs of the smallest, the largest, and those around 0."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(kind)
    edges = np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2], kind)
    a, b = (x.ravel() for x in np.meshgrid(np.append(edges, edges[:1]), edges[:6]))
    random = (rng.integers(0, 1 << 32, words, np.uint32).view(kind) for _ in range(2))
    return [np.concatenate(pair) for pair in zip((a, b), random, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_goldens_and_pythons(kind):
    model = compile_unit(IntegerWord)
    a, b = operands(kind)
    bits = 8 * a.itemsize
    wrap = 1 << bits
    for subtract, golden, sign in ((0, vector.add, 1), (1, vector.sub, -1)):
        found = integers(model, a, b, subtract=subtract)
        assert (found == golden(a, b)).all()
        exact = [(int(x) + sign * int(y)) % wrap for x, y in zip(a, b, strict=True)]
        assert [int(x) % wrap for x in found] == exact
    for amount in range(64):
        left = integers(model, a, b, amount, shift=1, left=1)
        assert (left == vector.shift_left(a, amount)).all(), amount
        assert [int(x) % wrap for x in left] == [(int(x) << amount) % wrap for x in a]
        for nearest in (0, 1):
            right = integers(model, a, b, amount, shift=1, nearest=nearest)
            assert (right == vector.shift_right(a, amount, nearest=bool(nearest))).all(), amount
            half = (1 << amount >> 1) * nearest
            assert [int(x) % wrap for x in right] == [(int(x) + half >> amount) % wrap for x in a]


def test_a_carry_between_halves_is_noticed(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.vector.integer, "_HALF", 15)
    model = compile(IntegerWord(), name="mutant")
    a, b = operands("int16")
    assert (integers(model, a, b) != vector.add(a, b)).any()


def multiply_adds(model, a, b, c, relu=0, **options):
    count = a.nbytes // 32
    given = {
        name: np.ascontiguousarray(x).view(np.uint64).reshape(count, 4)
        for name, x in zip("abc", (a, b, c), strict=True)
    }
    given["wide"] = np.full(count, a.itemsize == 4, np.uint8)
    given["relu"] = np.full(count, relu, np.uint8)
    done = model.stream(inputs={"i": given}, outputs={"o": count}, **options)
    return np.ascontiguousarray(done.outputs["o"]).view(a.dtype).reshape(-1), done.cycles


def same(found, expected):
    kind = f"u{found.itemsize}"
    return (found.view(kind) == np.asarray(expected).view(kind)).all()


def numbers(kind, seed, cancel):
    """Return random codes; with ``cancel``, c is near -a·b, or an infinity or NaN."""
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, 1 << 32, 32_000, np.uint32).view(kind) for _ in range(3))
    if cancel:
        with np.errstate(all="ignore"):
            c = (-(a.astype(np.float64) * b)).astype(kind)
        codes = c.view(f"u{c.itemsize}")
        c = (codes ^ rng.integers(0, 4, c.size).astype(codes.dtype)).view(kind)
    return a, b, c


@pytest.mark.parametrize("cancel", [False, True])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_multiply_adds_are_goldens(kind, cancel):
    model = compile_unit(FusedLanes)
    a, b, c = numbers(kind, 1, cancel)
    expected = vector.multiply_add(a, b, c)
    assert same(multiply_adds(model, a, b, c)[0], expected)
    relu = multiply_adds(model, a, b, c, relu=1, stall_rate=0.2, stall_seed=2)[0]
    assert same(relu, vector.relu(expected))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_multiply_adds_are_the_nearest_numbers_to_exact_rationals(kind):
    a, b, c = (x[:4000] for x in numbers(kind, 3, True))
    found, _ = multiply_adds(compile_unit(FusedLanes), a, b, c)
    checked = 0
    for *three, result in zip(a, b, c, found, strict=True):
        if not all(np.isfinite(x) for x in (*three, result)):
            continue
        x, y, z = (Fraction(float(value)) for value in three)
        ends = [np.nextafter(result, kind(way)) for way in (-np.inf, np.inf)]
        if not all(map(np.isfinite, ends)):
            continue
        low, high = ((Fraction(float(result)) + Fraction(float(end))) / 2 for end in ends)
        even = not result.view(f"u{result.itemsize}") & 1
        exact = x * y + z
        assert low <= exact <= high and (even or low < exact < high), (three, result)
        checked += 1
    assert checked > 1000


def test_a_block_takes_two_cycles():
    model = compile_unit(FusedLanes)
    a, b, c = numbers(np.float16, 4, False)
    few, many = (multiply_adds(model, a[:n], b[:n], c[:n])[1] for n in (160, 1760))
    assert many - few == 2 * 100


def test_two_roundings_are_noticed(monkeypatch):
    """A sum with fewer bits than IEEE's is not rounded once."""
    ieee = PRESETS["ieee"]

    def narrow(*formats, k):
        return ieee.spec(*formats, k=k).replace(window=12)

    narrowed = {"ieee": SimpleNamespace(spec=narrow)}
    monkeypatch.setattr(vitruvian.hdl.vector.fused, "PRESETS", narrowed)
    model = compile(FusedLanes(), name="mutant")
    a, b, c = numbers(np.float16, 1, True)
    assert not same(multiply_adds(model, a, b, c)[0], vector.multiply_add(a, b, c))


def bytes_of(a):
    """Return the bytes in the lower halves of blocks."""
    return a.view(np.int8).reshape(-1, 32)[:, :16].reshape(-1)


KINDS_OF = {
    **dict.fromkeys(Extra, (np.float16, np.float32)),
    **dict.fromkeys(EXTRA_GROUPS["integer"], (np.int16, np.int32)),
    Extra.ABSOLUTE: (np.float16, np.float32, np.int16),
    Extra.FROM_BYTES: (np.int16,),
}


@pytest.mark.parametrize(
    ("operation", "kind", "relu"),
    [
        (operation, kind, relu)
        for operation, kinds in KINDS_OF.items()
        for kind in kinds
        for relu in (False, True)
        if not relu or operation in (*EXTRA_GROUPS["integer"][:2], *EXTRA_GROUPS["fused"])
    ],
)
def test_every_operation_of_the_extension(operation, kind, relu):
    """The operands, the scalar and the flags reach the part of the operation."""
    model = compile_unit(VectorExtension, config=ExtensionConfig(engines=8))
    rng = np.random.default_rng(operation.value)
    a, b, c = (rng.integers(0, 1 << 32, 320, np.uint32).view(kind) for _ in range(3))
    for n, edges in enumerate(((0.0, -0.0, np.inf, -np.inf, np.nan), (2.0, -0.5, 0.0, 1.0, -1.0))):
        if kind in (np.float16, np.float32):
            (a, b)[n][-5:] = edges
    scalar, count, wide = b[:1], a.nbytes // 32, int(a.itemsize == 4)
    positive = vector.relu if relu else np.asarray
    golden = {
        Extra.DIVIDE: lambda b: vector.div(a, b),
        Extra.RECIPROCAL: lambda b: vector.rec(a),
        Extra.SQRT: lambda b: vector.sqrt(a),
        Extra.RSQRT: lambda b: vector.rsqrt(a),
        Extra.INTEGER_ADD: lambda b: positive(vector.add(a, b)),
        Extra.INTEGER_SUB: lambda b: positive(vector.sub(a, b)),
        Extra.SHIFT_LEFT: lambda b: vector.shift_left(a, 3),
        Extra.SHIFT_RIGHT: lambda b: vector.shift_right(a, 3, nearest=True),
        Extra.MULTIPLY_ADD: lambda b: positive(vector.multiply_add(a, b, c)),
        Extra.MULTIPLY_TARGET: lambda b: positive(vector.multiply_add(c, a, b)),
        Extra.SUM: lambda b: positive(vector.add(a, b)),
        Extra.DIFFERENCE: lambda b: positive(vector.sub(a, b)),
        Extra.LEAKY: lambda b: positive(vector.leaky_relu(a, b)),
        Extra.ABSOLUTE: lambda b: vector.absolute(a),
        Extra.FROM_BYTES: lambda b: bytes_of(a).astype(np.float16).view(kind),
    }[operation]
    for from_scalar in (0, 1):
        given: dict[str, Any] = {
            name: np.ascontiguousarray(x).view(np.uint64).reshape(count, 4)
            for name, x in zip("abc", (a, b, c), strict=True)
        }
        given |= {
            name: np.full(count, value, np.uint8)
            for name, value in (
                *(("operation", operation.value), ("wide", wide), ("relu", int(relu))),
                ("arithmetic", int(np.dtype(kind).kind == "i")),
                *(("nearest", 1), ("amount", 3), ("from_scalar", from_scalar)),
            )
        }
        code = scalar.view(f"u{scalar.itemsize}")[0]
        given["scalar"] = np.full(count, code, np.uint32)
        done = model.stream(inputs={"i": given}, outputs={"o": count})
        found = np.ascontiguousarray(done.outputs["o"]).view(kind).reshape(-1)
        assert same(found, golden(np.broadcast_to(scalar, b.shape) if from_scalar else b))


def test_parameters_are_checked():
    with pytest.raises(
        ValueError, match="group must be one of divide, integer, fused, elements, not 'div'"
    ):
        ExtensionConfig(groups=("div",))
    assert ExtensionConfig(groups=("fused", "divide")).groups == ("divide", "fused")
    assert len(ExtensionConfig().operations) == len(Extra)
