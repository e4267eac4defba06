"""Every unit that the flows know by name, and the configurations of it that are reported.

A new unit needs one new entry in ``UNITS``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from amaranth.lib import wiring

from vitruvian.errors import UserError
from vitruvian.flows.simd2 import OPERATIONS, SLOTS, float_config, float_rows, int_config, int_rows
from vitruvian.flows.unit import Configuration, Option, Unit, Variant, flag, named, number
from vitruvian.flows.variants import REPORTED, TABLE, VARIANTS, variant
from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS
from vitruvian.golden.fp.spec import PRESETS, DotSpec, IntDotSpec
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.cube.choices import DATAFLOWS
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import Compare, MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.hdl.fp.parts.multiply import MULTIPLIERS
from vitruvian.hdl.fp.parts.pipeline import PIPELINES
from vitruvian.hdl.mma.unit import UNITS as MMA_UNITS
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.hdl.simd2.intconfig import BITS, DEPTHS
from vitruvian.hdl.simd2.integer import IntTile
from vitruvian.validate import one_of

#: Rows, columns and 16-bit lanes of a matrix unit; without them, those of the preset apply.
_SHAPE = {name: number(name, 1, 64) for name in "mnk"}
_NO_SHAPE = dict.fromkeys("mnk")
#: The largest number of configurations of one unit that a command accepts at once.
MOST = 1000
_PIPELINE = number("pipeline", min(PIPELINES), max(PIPELINES))
#: The default, booth, is stored as None, so that labels do not mention it.
_MULTIPLIER = Option(
    lambda text: None if one_of("multiplier", text, MULTIPLIERS) == "booth" else text,
    " | ".join(MULTIPLIERS),
)


def _dot_spec(c: Configuration) -> DotSpec:
    return PRESETS[c["preset"]].spec(c["input"], c["output"], k=c["k"], input_b=c["input_b"])


def _dot_default(given: Configuration) -> dict[str, Any]:
    c = {"preset": "a100", "input": "fp16", "input_b": None, "output": "fp32", "k": None}
    c |= {"pipeline": 3, "multiplier": None, **given}
    spec = _dot_spec(c)
    c["k"] = spec.k
    if spec.input_b == spec.input:
        c["input_b"] = None
    return c


def _dot_build(c: Configuration) -> wiring.Component:
    spec = _dot_spec(c)
    component = ExactDotProduct if spec.window is None else DotProduct
    return component(spec=spec, pipeline=c["pipeline"], multiplier=c["multiplier"] or "booth")


# Some presets compute as an older machine does, so only the inputs that differ are reported.
_REPORTED_INPUTS = {
    "a2": ("fp16",),  # the same as a100
    "ada": ("fp16", "fp8e4m3"),  # the same as a100, with fp8 added
    "h100": ("fp16", "tf32", "fp8e4m3"),
    "b200": ("fp16",),  # the same as h100
    "ieee": ("fp16", "bf16", "fp8e4m3"),
    "exact": ("fp8e4m3",),
}
#: The largest units; synthesis of these takes 1.5 times as long as of all the others.
_MORE_DOTS = (
    {"preset": "ieee", "input": "fp32"},
    {"preset": "exact", "input": "fp16"},
    {"preset": "a100", "k": 16},
    {"preset": "ieee", "k": 16},
)


def _dot_rows() -> list[Configuration]:
    rows: list[Configuration] = []
    for preset in PRESETS.values():
        inputs = _REPORTED_INPUTS.get(preset.name, preset.inputs)
        rows += [{"preset": preset.name, "input": name} for name in inputs]
    rows += [{"preset": preset, "k": 4} for preset in ("a100", "ieee")]
    return list({str(_dot_default(row)): row for row in rows}.values())


def _int_default(given: Configuration) -> dict[str, Any]:
    return {
        "k": 16,
        "unsigned_a": False,
        "unsigned_b": False,
        "saturate": False,
        "pipeline": 1,
        "multiplier": None,
        **given,
    }


def _int_build(c: Configuration) -> wiring.Component:
    spec = IntDotSpec(
        k=c["k"],
        signed_a=not c["unsigned_a"],
        signed_b=not c["unsigned_b"],
        saturate=c["saturate"],
    )
    return IntDotProduct(
        spec=spec,
        pipeline=c["pipeline"],
        multiplier=c["multiplier"] or "booth",
    )


def _with_defaults(**defaults: Any):
    return lambda given: {**defaults, **given}


def _adder(c: Configuration) -> wiring.Component:
    return Adder(
        format=c["format"], output=c["output"], rounding=c["rounding"], pipeline=c["pipeline"]
    )


def _multiplier(c: Configuration) -> wiring.Component:
    return Multiplier(
        format=c["format"],
        output=c["output"],
        rounding=c["rounding"],
        pipeline=c["pipeline"],
        multiplier=c["multiplier"] or "booth",
    )


def _converter(c: Configuration) -> wiring.Component:
    return Converter(
        source=c["from"],
        target=c["to"],
        rounding=c["rounding"],
        saturate=c["saturate"],
        pipeline=c["pipeline"],
    )


def _cube_config(c: Configuration) -> MatrixUnitConfig:
    changes = _given(c, "m", "n", "k", "dataflow", "pipeline", "multiplier")
    if c["accuracy"] is not None:
        changes["preset"] = c["accuracy"]
    return replace(CONFIGS[c["preset"]], **changes)


def _m3xu_config(c: Configuration) -> MatrixUnitConfig:
    config = variant(c["variant"], pipeline=c["pipeline"], window=c["window"])
    return replace(config, **_given(c, "m", "n", "k", "multiplier"))


def _mma_config(c: Configuration) -> MatrixUnitConfig:
    changes = _given(c, "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    return replace(MMA_UNITS[c["preset"]], **changes)


def _given(c: Configuration, *names: str) -> dict[str, Any]:
    """Return those of the named settings that override the preset."""
    return {name: c[name] for name in names if c[name] is not None}


def _cube_rows() -> list[Configuration]:
    # The m3xu presets are reported as the unit m3xu, beside the units they are compared with.
    presets = [name for name, config in CONFIGS.items() if not config.wide]
    return [*({"preset": name} for name in presets), {"preset": "tiny", "dataflow": "systolic"}]


_FORMAT = named("format", FORMATS)
_ROUNDING = named("rounding", ("RNE", "RZ"))
_ANY_FORMAT = (*FORMATS, *INT_FORMATS)

UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit(
            name="dot",
            summary="fused dot product D = C + sum A*B, one rounding",
            options={
                "preset": named("preset", PRESETS),
                "input": named("input", FORMATS),
                "input_b": named("input-b", FORMATS),
                "output": named("output", FORMATS),
                "k": number("k", 1, 64),
                "pipeline": _PIPELINE,
                "multiplier": _MULTIPLIER,
            },
            default=_dot_default,
            build=_dot_build,
            macs=lambda c: c["k"],
            rows=_dot_rows,
            more=lambda: _MORE_DOTS,
        ),
        Unit(
            name="intdot",
            summary="INT8 dot product with 32-bit accumulation",
            options={
                "k": number("k", 1, 64),
                "unsigned_a": flag("A is UINT8"),
                "unsigned_b": flag("B is UINT8"),
                "saturate": flag("saturate instead of wrap"),
                "pipeline": _PIPELINE,
                "multiplier": _MULTIPLIER,
            },
            default=_int_default,
            build=_int_build,
            macs=lambda c: c["k"],
            rows=lambda: ({"pipeline": 0}, {"pipeline": 1}, {"saturate": True}),
        ),
        Unit(
            name="cube",
            summary="M x N x K matrix unit with accumulators and streams",
            options={
                "preset": named("preset", CONFIGS),
                **_SHAPE,
                "dataflow": named("dataflow", DATAFLOWS),
                "accuracy": named("accuracy", (name for name in PRESETS if name != "exact")),
                "pipeline": _PIPELINE,
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(
                preset="cube_4x4x4",
                **_NO_SHAPE,
                dataflow=None,
                accuracy=None,
                pipeline=None,
                multiplier=None,
            ),
            build=lambda c: MatrixUnit(config=_cube_config(c)),
            macs=lambda c: _cube_config(c).macs,
            rows=_cube_rows,
            shared=MatrixUnit.shared,
        ),
        Unit(
            name="m3xu",
            summary="matrix units of 8x4 outputs and 8 lanes, with and without M3XU",
            options={
                "variant": named("variant", VARIANTS),
                **_SHAPE,
                "pipeline": _PIPELINE,
                "window": number("window", 48, 128),
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(
                variant="fp32c", **_NO_SHAPE, pipeline=4, window=None, multiplier=None
            ),
            build=lambda c: MatrixUnit(config=_m3xu_config(c)),
            macs=lambda c: _m3xu_config(c).macs,
            rows=lambda: tuple({"variant": name} for name in REPORTED),
            more=lambda: tuple({"variant": name} for name in TABLE if name not in REPORTED),
            shared=MatrixUnit.shared,
        ),
        Unit(
            name="mma",
            summary="matrix unit that runs instructions: issue, queue, tile",
            options={
                "preset": named("preset", MMA_UNITS),
                **_SHAPE,
                "dataflow": named("dataflow", DATAFLOWS),
                "pipeline": _PIPELINE,
                "slots": number("slots", 1, 64),
                "ahead": number("ahead", 2, 64),
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(
                preset="m3xu",
                **_NO_SHAPE,
                dataflow=None,
                pipeline=None,
                slots=None,
                ahead=None,
                multiplier=None,
            ),
            build=lambda c: MmaUnit(config=_mma_config(c), ahead=c["ahead"] or 4),
            macs=lambda c: _mma_config(c).macs,
            rows=lambda: (),  # its tile is that of m3xu, and the rest is small
            more=lambda: [{"preset": name} for name in MMA_UNITS if name.startswith("m3xu")],
            shared=MmaUnit.shared,
        ),
        Unit(
            name="simd2",
            summary="FP16 matrix unit for nine semirings",
            options={
                "operations": named("operations", OPERATIONS),
                "size": number("size", 1, 16),
                "k": number("k", 1, 64),
                "dataflow": named("dataflow", DATAFLOWS),
                "pipeline": _PIPELINE,
                "slots": number("slots", 1, 64),
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(
                operations="all",
                size=4,
                k=4,
                dataflow="broadcast",
                pipeline=3,
                slots=SLOTS,
                multiplier=None,
            ),
            build=lambda c: MatrixUnit(config=float_config(c)),
            macs=lambda c: float_config(c).macs,
            rows=lambda: ({"operations": "mma"}, {"operations": "all"}),
            more=float_rows,
            shared=MatrixUnit.shared,
        ),
        Unit(
            name="simd2-int",
            summary="tile of integer elements for nine semirings",
            options={
                "operations": named("operations", OPERATIONS),
                "width": number("width", min(BITS), max(BITS)),
                "size": number("size", 1, 16),
                "pipeline": number("pipeline", min(DEPTHS), max(DEPTHS)),
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(operations="all", width=16, size=4, pipeline=2, multiplier=None),
            build=lambda c: IntTile(config=int_config(c)),
            macs=lambda c: int_config(c).macs,
            rows=lambda: (),  # synthesis of 64-bit multipliers is slow
            more=int_rows,
            shared=IntTile.shared,
        ),
        Unit(
            name="add",
            summary="floating-point adder and subtractor",
            options={
                "format": _FORMAT,
                "output": named("output", FORMATS),
                "rounding": _ROUNDING,
                "pipeline": number("pipeline", 0, 3),
            },
            default=_with_defaults(format="fp32", output=None, rounding="RNE", pipeline=0),
            build=_adder,
            rows=lambda: (
                {"format": "fp16"},
                {"format": "fp32"},
                {"format": "fp32", "pipeline": 2},
            ),
        ),
        Unit(
            name="multiply",
            summary="floating-point multiplier",
            options={
                "format": _FORMAT,
                "output": named("output", FORMATS),
                "rounding": _ROUNDING,
                "pipeline": number("pipeline", 0, 2),
                "multiplier": _MULTIPLIER,
            },
            default=_with_defaults(
                format="fp16", output=None, rounding="RNE", pipeline=0, multiplier=None
            ),
            build=_multiplier,
            rows=lambda: ({"format": "fp16"}, {"format": "fp16", "output": "fp32"}),
        ),
        Unit(
            name="compare",
            summary="floating-point relation: less, equal, unordered",
            options={"format": _FORMAT},
            default=_with_defaults(format="fp32"),
            build=lambda c: Compare(format=c["format"]),
            rows=lambda: ({"format": "fp16"}, {"format": "fp32"}),
        ),
        Unit(
            name="minmax",
            summary="minimumNumber and maximumNumber",
            options={"format": _FORMAT},
            default=_with_defaults(format="fp32"),
            build=lambda c: MinMax(format=c["format"]),
            rows=lambda: ({"format": "fp16"}, {"format": "fp32"}),
        ),
        Unit(
            name="convert",
            summary="conversion between formats, rounded once",
            options={
                "from": named("from", _ANY_FORMAT),
                "to": named("to", _ANY_FORMAT),
                "rounding": _ROUNDING,
                "saturate": flag("overflow becomes the largest number"),
                "pipeline": number("pipeline", 0, 2),
            },
            default=lambda given: {
                "from": "fp32",
                "to": "fp16",
                "rounding": "RNE",
                "saturate": False,
                "pipeline": 0,
                **given,
            },
            build=_converter,
            rows=lambda: (
                {"from": "fp32", "to": "fp16"},
                {"from": "fp16", "to": "fp32"},
                {"from": "fp32", "to": "fp8e4m3"},
                {"from": "fp32", "to": "int8"},
            ),
        ),
    )
}


def variants(unit: str, given: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """Return ``unit`` in every combination of the given option values.

    Parameters
    ----------
    unit : str
        A key of ``UNITS``.
    given : mapping of str to sequence
        Option -> its values; the other options keep their defaults.

    Raises
    ------
    UserError
        If the unit or an option is unknown, if a combination is not possible, or if there are
        more than ``MOST`` combinations.
    """
    chosen = UNITS[one_of("unit", unit, UNITS)]
    for name in given:
        options = [f"--{o.replace('_', '-')}" for o in chosen.options]
        one_of(f"option of {unit}", f"--{name.replace('_', '-')}", options)
    many = prod(map(len, given.values()))
    if many > MOST:
        raise UserError(f"at most {MOST} configurations must be asked for at once, not {many}")
    sets = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    try:
        result = [Variant(chosen, chosen.default(options)) for options in sets]
    except (TypeError, ValueError) as error:
        raise UserError(f"{unit}: {error}") from error
    return result


def reported(unit: str, *, everything: bool = True) -> list[Variant]:
    """Return the variants of ``unit`` that have baselines.

    If ``everything`` is False, return only those that are measured without naming the unit.

    Raises
    ------
    UserError
        If the unit is unknown.
    """
    chosen = UNITS[one_of("unit", unit, UNITS)]
    rows = [*chosen.rows(), *(chosen.more() if everything else ())]
    return [Variant(chosen, chosen.default(row)) for row in rows]
