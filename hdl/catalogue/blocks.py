"""The dot products with block scales."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.hdl.catalogue.options import DEEP_PIPELINE, MULTIPLIER
from vitruvian.hdl.catalogue.unit import Configuration, Unit, named, number
from vitruvian.hdl.fp.blocks import RULES, SMALL, block_spec
from vitruvian.hdl.fp.units import unit_of


def spec_of(c: Configuration) -> DotSpec:
    """Return the arithmetic of a complete configuration of the unit ``blockdot``."""
    return block_spec(c["rule"], c["input"], c["input_b"], k=c["k"])


def _default(given: Configuration) -> dict[str, Any]:
    c = {"rule": "mxf8f6f4", "input": None, "input_b": None, "k": None}
    c |= {"pipeline": 3, "multiplier": None, **given}
    try:
        spec = spec_of(c)
    except ValueError as error:
        raise UserError(f"blockdot: {error}") from error
    c |= {"input": spec.input.name, "k": spec.k}
    if spec.input_b == spec.input:
        c["input_b"] = None
    return c


def _component(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    spec = spec_of(c)
    parameters = {"spec": spec, "pipeline": c["pipeline"]}
    return unit_of(spec), parameters | {"multiplier": c["multiplier"] or "booth"}


UNITS = (
    Unit(
        name="blockdot",
        summary="dot product of blocks with shared scales (MXFP8, MXFP6, MXFP4, NVFP4)",
        package="hdl.fp",
        options={
            "rule": named("rule", RULES),
            "input": named("input", SMALL),
            "input_b": named("input-b", SMALL),
            "k": number("k", 1, 64),
            "pipeline": DEEP_PIPELINE,
            "multiplier": MULTIPLIER,
        },
        default=_default,
        component=_component,
        macs=lambda c: c["k"],
        rows=lambda: [{"rule": rule} for rule in RULES],
        checked=(
            {"rule": "mxf8f6f4", "pipeline": 3},
            {"rule": "mxf8f6f4", "input": "fp8e5m2", "input_b": "fp6e3m2", "k": 8, "pipeline": 0},
            {"rule": "mxf8f6f4", "input": "fp6e2m3", "k": 5, "pipeline": 4},
            {"rule": "mxf8f6f4", "input": "fp4e2m1", "k": 1, "pipeline": 1},
            {"rule": "mxf8f6f4", "k": 4, "pipeline": 11, "multiplier": "dsp"},
            {"rule": "mxf4", "pipeline": 2},
            {"rule": "nvf4_ue8m0", "k": 32, "pipeline": 0},
            {"rule": "nvf4_ue4m3", "pipeline": 3},
            {"rule": "nvf4_ue4m3", "k": 16, "pipeline": 9, "multiplier": "dsp"},
        ),
        documented={"mxf8f6f4, fp8e4m3": {}, "nvf4_ue4m3": {"rule": "nvf4_ue4m3"}},
    ),
)
