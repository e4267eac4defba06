"""The units with one or two operands: add, multiply, compare, minimum and maximum, convert."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS
from vitruvian.hdl.catalogue.options import MULTIPLIER, with_defaults
from vitruvian.hdl.catalogue.unit import Configuration, Unit, flag, named, number
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import Compare, MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.mul import Multiplier

_FORMAT = named("format", FORMATS)
_ROUNDING = named("rounding", ("RNE", "RZ"))
_ANY_FORMAT = (*FORMATS, *INT_FORMATS)
_EVERY_FORMAT = tuple({"format": name} for name in FORMATS)


def _multiplier(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    return Multiplier, {**c, "multiplier": c["multiplier"] or "booth"}


def _converter(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    names = {"from": "source", "to": "target"}
    return Converter, {names.get(name, name): value for name, value in c.items()}


def _conversion(source: str, target: str, **options: Any) -> Configuration:
    return {"from": source, "to": target, **options}


_CONVERSIONS = (
    # A conversion from or to fp64 is as large as all the others together.
    *(_conversion(a, b) for a in FORMATS for b in FORMATS if a != b and "fp64" not in (a, b)),
    _conversion("fp64", "fp32"),
    _conversion("fp32", "fp64"),
    _conversion("fp64", "fp16", rounding="RZ"),
    _conversion("fp32", "fp16", rounding="RZ"),
    _conversion("fp32", "fp16", pipeline=2),
    _conversion("fp16", "fp8e4m3", rounding="RZ"),
    _conversion("fp16", "fp8e4m3", saturate=True),
    _conversion("fp16", "fp8e5m2", saturate=True),
    _conversion("fp32", "fp16", saturate=True, pipeline=1),
    *(_conversion(a, b) for a in FORMATS for b in INT_FORMATS),
    _conversion("fp16", "int8", rounding="RZ"),
    _conversion("fp32", "int32", rounding="RZ"),
    _conversion("fp32", "int32", pipeline=2),
    *(_conversion(a, b) for a in INT_FORMATS for b in FORMATS),
    _conversion("int32", "fp32", rounding="RZ"),
    _conversion("int32", "fp16", pipeline=2),
)

UNITS = (
    Unit(
        name="add",
        summary="floating-point adder and subtractor",
        package="hdl.fp",
        options={
            "format": _FORMAT,
            "output": named("output", FORMATS),
            "rounding": _ROUNDING,
            "pipeline": number("pipeline", 0, 3),
        },
        default=with_defaults(format="fp32", output=None, rounding="RNE", pipeline=0),
        component=lambda c: (Adder, dict(c)),
        rows=lambda: (
            {"format": "fp16"},
            {"format": "fp32"},
            {"format": "fp32", "pipeline": 2},
        ),
        checked=(
            *_EVERY_FORMAT,
            {"format": "fp16", "pipeline": 1},
            {"format": "fp32", "pipeline": 2},
            {"format": "fp32", "pipeline": 3},
            {"format": "fp16", "rounding": "RZ"},
            {"format": "fp32", "rounding": "RZ"},
            {"format": "fp16", "output": "fp32"},
            {"format": "bf16", "output": "fp32"},
            {"format": "fp8e4m3", "output": "fp16"},
        ),
        documented={"fp32": {}},
    ),
    Unit(
        name="multiply",
        summary="floating-point multiplier",
        package="hdl.fp",
        options={
            "format": _FORMAT,
            "output": named("output", FORMATS),
            "rounding": _ROUNDING,
            "pipeline": number("pipeline", 0, 2),
            "multiplier": MULTIPLIER,
        },
        default=with_defaults(
            format="fp16", output=None, rounding="RNE", pipeline=0, multiplier=None
        ),
        component=_multiplier,
        rows=lambda: ({"format": "fp16"}, {"format": "fp16", "output": "fp32"}),
        checked=(
            {"format": "fp16", "output": "fp32"},
            *_EVERY_FORMAT,
            {"format": "fp16", "rounding": "RZ"},
            {"format": "fp8e4m3", "output": "fp8e5m2", "rounding": "RZ"},
            {"format": "bf16", "output": "fp32", "pipeline": 1},
            {"format": "fp32", "pipeline": 2},
        ),
        documented={"fp16 to fp32": {"output": "fp32"}},
    ),
    Unit(
        name="compare",
        summary="floating-point relation: less, equal, unordered",
        package="hdl.fp",
        options={"format": _FORMAT},
        default=with_defaults(format="fp32"),
        component=lambda c: (Compare, dict(c)),
        rows=lambda: ({"format": "fp16"}, {"format": "fp32"}),
        checked=_EVERY_FORMAT,
        documented={"fp32": {}},
    ),
    Unit(
        name="minmax",
        summary="minimumNumber and maximumNumber",
        package="hdl.fp",
        options={"format": _FORMAT},
        default=with_defaults(format="fp32"),
        component=lambda c: (MinMax, dict(c)),
        rows=lambda: ({"format": "fp16"}, {"format": "fp32"}),
        checked=_EVERY_FORMAT,
        documented={"fp32": {}},
    ),
    Unit(
        name="convert",
        summary="conversion between formats, rounded once",
        package="hdl.fp",
        options={
            "from": named("from", _ANY_FORMAT),
            "to": named("to", _ANY_FORMAT),
            "rounding": _ROUNDING,
            "saturate": flag("overflow becomes the largest number"),
            "pipeline": number("pipeline", 0, 2),
        },
        default=with_defaults(
            **_conversion("fp32", "fp16"), rounding="RNE", saturate=False, pipeline=0
        ),
        component=_converter,
        rows=lambda: (
            _conversion("fp32", "fp16"),
            _conversion("fp16", "fp32"),
            _conversion("fp32", "fp8e4m3"),
            _conversion("fp32", "int8"),
        ),
        checked=_CONVERSIONS,
        documented={"fp32 to fp16": {}},
    ),
)
