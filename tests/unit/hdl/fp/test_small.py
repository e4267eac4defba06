"""Small floating-point units: RTL against golden and the scalar reference; mutants; errors."""

from dataclasses import replace

import numpy as np
import pytest

import vitruvian.golden.fp.reference as reference
import vitruvian.hdl.fp.add
import vitruvian.hdl.fp.compare
import vitruvian.hdl.fp.convert
import vitruvian.hdl.fp.core.finish
from vitruvian.golden.fp import FloatFormat
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import Compare, MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp_small.batch import (
    ALL,
    SmallUnit,
    compare_group,
    compile_group,
    groups,
    run_group,
)
from vitruvian.sim.bench.fp_small.stimuli import codes, every_code, pairs

SEED = 20261121
GROUPS = groups()


@pytest.mark.parametrize("name", GROUPS)
def test_against_golden(name):
    """Narrow operands are tested exhaustively, and the counts prove it."""
    units = GROUPS[name]
    result = run_group(units, 20_000, SEED)
    assert not result.mismatches, result.examples
    first, bits = units[0], {"int8": 8, "uint8": 8, "int32": 32}
    width = bits.get(first.source) or vitruvian.hdl.fp.add.as_format(first.source).code_bits
    if first.operands == 1:
        assert result.vectors == len(units) * (1 << width if width <= 16 else 20_000)
    else:
        assert result.vectors == 2 * len(units) * (1 << 2 * width if width <= 8 else 20_000)


def test_every_unit_has_a_group_and_a_name():
    assert sum(len(units) for units in GROUPS.values()) == len(ALL)
    assert len({unit.name for unit in ALL}) == len(ALL)


@pytest.mark.parametrize("format", ["fp16", "fp8e4m3", "fp32"])
def test_against_the_scalar_reference(format):
    """The scalar reference is the second model of golden and takes one number at a time."""
    a, b = pairs(format, 2000, seed=SEED)
    rows = np.random.default_rng(SEED).permutation(len(a))[:2000]
    a, b = a[rows], b[rows]
    units = [(Adder, reference.add), (Multiplier, reference.mul)]
    for unit, function in units:
        model = rtl.compile_unit(unit, format=format)
        held = {"subtract": 0} if unit is Adder else {}
        got = model.run(a=a, b=b, **held)
        expected = [function(int(x), int(y), format) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(got, np.array(expected, got.dtype))
    model = rtl.compile_unit(MinMax, format=format)
    for maximum, function in enumerate((reference.minimum_number, reference.maximum_number)):
        got = model.run(a=a, b=b, maximum=maximum)
        expected = [function(int(x), int(y), format) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(got, np.array(expected, got.dtype))


@pytest.mark.parametrize(("source", "target"), [("fp32", "fp16"), ("fp16", "int8")])
def test_converter_against_the_scalar_reference(source, target):
    a = codes(source, 4000, seed=SEED)[:4000]
    got = rtl.compile_unit(Converter, source=source, target=target).run(a=a)
    if target == "int8":
        expected = [reference.to_int(int(x), source, target) & 0xFF for x in a]
    else:
        expected = [reference.convert(int(x), source, target) for x in a]
    np.testing.assert_array_equal(got, np.array(expected, got.dtype))


def test_an_unnamed_format():
    """A format with 6 exponent and 9 fraction bits works, so nothing depends on named formats."""
    own = FloatFormat("own", 6, 9, 16)
    model = rtl.compile_unit(Adder, format=own)
    a = every_code("fp16")
    b = np.random.default_rng(SEED).permutation(a)
    got = model.run(a=a, b=b, subtract=0)
    for i in range(0, len(a), 37):
        assert got[i] == reference.add(int(a[i]), int(b[i]), own), (hex(a[i]), hex(b[i]))


# ------------------------------------------------------------------ mutants


def _sticky_dropped(m, word, distance, **rest):
    return shift_right(m, word, distance, **rest)[0], vitruvian.hdl.fp.add.Const(0, 1)


def _shift_off_by_one(m, word, distance, **rest):
    return shift_right(m, word, (distance + 1)[: len(distance) + 1], **rest)


def _ties_up(m, number, **rest):
    return round_and_pack(m, replace(number, word=number.word | 1), **rest)


def _limit_ignored(m, word, *, limit, **rest):
    return normalise(m, word, limit=None, **rest)


def _zeros_ordered(m, a, b, format):
    return order(m, a, b, format)._replace(both_zero=vitruvian.hdl.fp.add.Const(0, 1))


shift_right, round_and_pack = (
    vitruvian.hdl.fp.add.shift_right,
    vitruvian.hdl.fp.core.finish.round_and_pack,
)
normalise, order = vitruvian.hdl.fp.core.finish.normalise, vitruvian.hdl.fp.compare._order


@pytest.mark.parametrize(
    ("unit", "module", "name", "mutant"),
    [
        (Adder, vitruvian.hdl.fp.add, "shift_right", _sticky_dropped),
        (Adder, vitruvian.hdl.fp.add, "shift_right", _shift_off_by_one),
        (Adder, vitruvian.hdl.fp.core.finish, "normalise", _limit_ignored),
        (Adder, vitruvian.hdl.fp.core.finish, "round_and_pack", _ties_up),
        (Multiplier, vitruvian.hdl.fp.core.finish, "round_and_pack", _ties_up),
        (Compare, vitruvian.hdl.fp.compare, "_order", _zeros_ordered),
        (Converter, vitruvian.hdl.fp.convert, "shift_right", _sticky_dropped),
        (Converter, vitruvian.hdl.fp.core.finish, "round_and_pack", _ties_up),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_mutants_are_caught(monkeypatch, unit, module, name, mutant):
    if unit is Converter:
        target = "int8" if module is vitruvian.hdl.fp.convert else "fp16"
        parameters = {"source": "fp32", "target": target}
        operands = {"a": codes("fp32", 20_000, seed=SEED)}
    else:
        parameters = {"format": "fp16"}
        operands = dict(zip("ab", pairs("fp16", 20_000, seed=SEED), strict=True))
    source = "fp32" if unit is Converter else "fp16"
    tested = [
        SmallUnit(
            name=unit.__name__,
            unit=unit,
            parameters=parameters,
            source=source,
            operands=len(operands),
        )
    ]
    assert not compare_group(compile_group(tested), tested, operands).mismatches
    monkeypatch.setattr(module, name, mutant)
    assert compare_group(compile_group(tested), tested, operands).mismatches


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("unit", "parameters", "message"),
    [
        (Adder, {"format": "fp17"}, "format must be one of fp16, .*, not 'fp17'"),
        (Adder, {"format": "fp32", "output": "fp16"}, "output must hold every fp32 number"),
        (Adder, {"format": "fp16", "rounding": "RU"}, "rounding must be one of RNE, RZ, RTO, not"),
        (
            Multiplier,
            {"format": "fp16", "pipeline": 3},
            "pipeline must be one of 0, 1, 2, 4, 5, not 3",
        ),
        (Converter, {"source": "int8", "target": "int32"}, "target must be a floating-point"),
        (Converter, {"source": "int9", "target": "fp16"}, "source must be one of fp16, .*'int9'"),
    ],
)
def test_errors_say_what_is_allowed(unit, parameters, message):
    with pytest.raises(ValueError, match=message):
        unit(**parameters)


def test_wrong_types():
    with pytest.raises(TypeError, match="source must be a format or a name, not 16"):
        Converter(source=16, target="fp16")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="format must be a FloatFormat or a name"):
        MinMax(format=None)  # pyright: ignore[reportArgumentType]
