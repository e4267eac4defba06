"""The dot products of floating-point numbers and of 8-bit integers."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.table import find, machines
from vitruvian.hdl.catalogue.options import DEEP_PIPELINE, MULTIPLIER, with_defaults
from vitruvian.hdl.catalogue.unit import (
    CataloguedPart,
    Configuration,
    Option,
    Unit,
    flag,
    named,
    number,
)
from vitruvian.hdl.elaborate import only_described
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.multidot import MultiDot


def spec_of(c: Configuration) -> DotSpec:
    """Return the arithmetic of a complete configuration of the unit ``dot``."""
    if c["rule"] is not None:
        rule = find(c["rule"]).rule
        assert isinstance(rule, DotSpec), "the option accepts no other rules"
        return rule
    return PRESETS[c["preset"]].spec(c["input"], c["output"], k=c["k"], input_b=c["input_b"])


def _component(spec: DotSpec) -> type[ExactDotProduct | DotProduct]:
    exact = spec.sum.window is None and spec.addend.how == "tree"
    return ExactDotProduct if exact else DotProduct


def _rule(text: str) -> str:
    """Return the stem of a machine's rule that the hardware has."""
    row = find(text)
    if not isinstance(row.rule, DotSpec):
        raise UserError(f"rule must be of the kind dot, not {row.stem!r} of the kind {row.kind}")
    try:
        only_described(_component(row.rule)(spec=row.rule))
    except ValueError as error:
        raise UserError(
            f"rule must be one that the hardware has, not {row.stem!r}: {error}"
        ) from None
    return row.stem


def _rules() -> list[str]:
    """Return the rows of the table of machines that have the kind of rule of this unit."""
    return [stem for stem, row in machines().items() if isinstance(row.rule, DotSpec)]


def _default(given: Configuration) -> dict[str, Any]:
    c = {"rule": None, "preset": "a100", "input": "fp16", "input_b": None, "output": "fp32"}
    c |= {"k": None, "pipeline": 3, "multiplier": None, "low_power": False}
    if given.get("rule") is not None:
        chosen = [name for name in _OF_PRESETS if given.get(name) is not None]
        if chosen:
            raise UserError(f"rule must be given without {', '.join(chosen)}, which it determines")
        return {**c, **dict.fromkeys(_OF_PRESETS), **given}
    c |= given
    spec = spec_of(c)
    c["k"] = spec.k
    if spec.input_b == spec.input:
        c["input_b"] = None
    return c


def _dot(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    spec = spec_of(c)
    parameters = {"spec": spec, "pipeline": c["pipeline"]}
    component, multiplier = _component(spec), c["multiplier"] or "booth"
    if component is ExactDotProduct:
        if c["low_power"]:
            raise ValueError("low_power must be False with an exact sum")
        return component, parameters | {"multiplier": multiplier}
    return component, parameters | {"multiplier": multiplier, "low_power": c["low_power"]}


# The options that a rule determines
_OF_PRESETS = ("preset", "input", "input_b", "output", "k")

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
_MORE = (
    {"preset": "ieee", "input": "fp32"},
    {"preset": "exact", "input": "fp16"},
    {"preset": "a100", "k": 16},
    {"preset": "ieee", "k": 16},
)


def _rows() -> list[Configuration]:
    rows: list[Configuration] = []
    for preset in PRESETS.values():
        inputs = _REPORTED_INPUTS.get(preset.name, preset.inputs)
        rows += [{"preset": preset.name, "input": name} for name in inputs]
    rows += [{"preset": preset, "k": 4} for preset in ("a100", "ieee")]
    return list({str(_default(row)): row for row in rows}.values())


def _checked(
    preset: str, input: str, output: str, pipeline: int, k: int | None = None, **more: Any
) -> Configuration:
    return {"preset": preset, "input": input, "output": output, "k": k, "pipeline": pipeline} | more


#: Every preset in its own formats, each pipeline depth, and several numbers of terms.
_CHECKED = (
    _checked("v100", "fp16", "fp32", 0),
    _checked("v100", "fp16", "fp16", 1),
    _checked("a100", "fp16", "fp32", 0),
    _checked("a100", "fp16", "fp32", 3),
    _checked("a100", "fp16", "fp32", 3, 16),
    _checked("a100", "fp16", "fp16", 2),
    _checked("a100", "bf16", "fp32", 1),
    _checked("a100", "tf32", "fp32", 2),
    _checked("ada", "fp8e4m3", "fp32", 3),
    _checked("ada", "fp8e4m3", "fp32", 0, input_b="fp8e5m2"),
    _checked("h100", "fp16", "fp32", 3),
    _checked("h100", "tf32", "fp32", 1),
    _checked("h100", "fp8e5m2", "fp32", 3),
    _checked("ieee", "fp16", "fp16", 0, 1),
    _checked("ieee", "fp16", "fp32", 0, 1),
    _checked("ieee", "fp16", "fp32", 3),
    _checked("ieee", "bf16", "fp32", 2),
    _checked("ieee", "tf32", "fp32", 1),
    _checked("ieee", "fp8e5m2", "fp32", 3, input_b="fp8e4m3"),
    _checked("ieee", "fp32", "fp32", 0, 1),
    _checked("ieee", "fp32", "fp32", 3),
    _checked("ieee", "fp64", "fp64", 0, 1),
    _checked("a100", "fp16", "fp32", 3, 4, multiplier="dsp"),
    _checked("h100", "fp16", "fp32", 8, 4, multiplier="dsp"),
    _checked("ieee", "fp16", "fp32", 11, 4, multiplier="dsp"),
    _checked("exact", "fp8e4m3", "fp32", 0, 16),
    _checked("exact", "fp8e5m2", "fp16", 3, 2),
    _checked("exact", "fp8e4m3", "fp32", 2, 4, input_b="fp8e5m2"),
    _checked("exact", "fp16", "fp32", 0, 8),
    _checked("exact", "fp16", "fp32", 4, 1),
    _checked("exact", "fp16", "fp16", 1, 3),
    _checked("exact", "fp16", "fp64", 0, 2),
    _checked("a100", "fp16", "fp32", 3, low_power=True),
    _checked("ieee", "fp16", "fp32", 4, 5, low_power=True),
    _checked("h100", "fp8e5m2", "fp32", 2, low_power=True),
    {"rule": "rvbna_bf16_n8_fp32", "pipeline": 4},
    {"rule": "rvbna_e4m3xe5m2_n4_fp32", "pipeline": 0},
    {"rule": "h100_mmasync_e5m2_fp16", "pipeline": 6},
    {"rule": "b200_mmasync_e4m3_fp32", "pipeline": 3},
    {"rule": "gaudi3_e4m3i_fp32", "pipeline": 3},
    {"rule": "gaudi3_tf32_fp32", "pipeline": 0},
    {"rule": "gaudi3_fp32_fp32", "pipeline": 0},
)


def _int_dot(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    spec = IntDotSpec(
        k=c["k"],
        signed_a=not c["unsigned_a"],
        signed_b=not c["unsigned_b"],
        saturate=c["saturate"],
    )
    parameters = {"spec": spec, "pipeline": c["pipeline"]}
    return IntDotProduct, parameters | {"multiplier": c["multiplier"] or "booth"}


UNITS = (
    Unit(
        name="dot",
        summary="fused dot product D = C + sum A*B, one rounding",
        package="hdl.fp",
        options={
            "rule": Option(
                _rule, "a row of 'vitruvian machines', as rvbna_bf16_n8_fp32", samples=_rules
            ),
            "preset": named("preset", PRESETS),
            "input": named("input", FORMATS),
            "input_b": named("input-b", FORMATS),
            "output": named("output", FORMATS),
            "k": number("k", 1, 64),
            "pipeline": DEEP_PIPELINE,
            "multiplier": MULTIPLIER,
            "low_power": flag("fewer glitches, for a little more area"),
        },
        default=_default,
        component=_dot,
        macs=lambda c: spec_of(c).k,
        rows=_rows,
        more=lambda: _MORE,
        checked=_CHECKED,
        simulated=(_checked("a100", "fp16", "fp32", 3),),
        documented={
            "a100, fp16, K = 8": {},
            "fp8e4m3, K = 16": {"preset": "exact", "input": "fp8e4m3"},
        },
    ),
    Unit(
        name="intdot",
        summary="INT8 dot product with 32-bit accumulation",
        package="hdl.fp",
        options={
            "k": number("k", 1, 64),
            "unsigned_a": flag("A is UINT8"),
            "unsigned_b": flag("B is UINT8"),
            "saturate": flag("saturate instead of wrap"),
            "pipeline": DEEP_PIPELINE,
            "multiplier": MULTIPLIER,
        },
        default=with_defaults(
            k=16, unsigned_a=False, unsigned_b=False, saturate=False, pipeline=1, multiplier=None
        ),
        component=_int_dot,
        macs=lambda c: c["k"],
        rows=lambda: ({"pipeline": 0}, {"pipeline": 1}, {"saturate": True}),
        checked=(
            {"pipeline": 0},
            {"saturate": True, "pipeline": 3},
            {"k": 32, "unsigned_a": True, "pipeline": 2},
            {"k": 5, "unsigned_a": True, "unsigned_b": True, "saturate": True},
            {"saturate": True, "pipeline": 3, "multiplier": "dsp"},
            {"k": 5, "saturate": True, "pipeline": 6, "multiplier": "dsp"},
        ),
        documented={"K = 16": {}},
    ),
)

PARTS = (
    CataloguedPart(
        package="hdl.fp",
        words="fp16, bf16, tf32, int8, K = 8",
        build=lambda: MultiDot(
            specs={name: PRESETS["a100"].spec(name) for name in ("fp16", "bf16", "tf32")},
            int8_k=16,
        ),
        optional=frozenset({"precision", "precision_b", "valid"}),
    ),
)
