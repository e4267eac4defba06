"""The vector unit."""

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of, shortened
from vitruvian.hdl.catalogue.options import MULTIPLIER, given, with_defaults
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, named, number
from vitruvian.hdl.vector import VectorConfig, VectorUnit
from vitruvian.hdl.vector.config import MOST_LANES, SHARINGS
from vitruvian.hdl.vector.operations import GROUPS
from vitruvian.hdl.vector.tables import DESIGNS


def _lanes(text: str) -> int:
    lanes = [2**k for k in range(2, MOST_LANES.bit_length())]
    if text not in map(str, lanes):
        allowed = ", ".join(map(str, lanes))
        raise UserError(f"lanes must be one of {allowed}, not {shortened(text)}")
    return int(text)


def _groups(text: str) -> str:
    """Return a set of groups as names with dashes between them, in the order of ``GROUPS``."""
    chosen = GROUPS if text == "all" else text.split("-")
    for name in chosen:
        one_of("group", name, GROUPS)
    return "all" if set(chosen) == set(GROUPS) else "-".join(g for g in GROUPS if g in chosen)


def vector_config(c: Configuration) -> VectorConfig:
    """Return the parameters of a complete configuration of the unit ``vector``."""
    groups = GROUPS if c["groups"] == "all" else tuple(c["groups"].split("-"))
    return VectorConfig(
        lanes=c["lanes"],
        groups=groups,
        **given(c, "sharing", "functions", "pipeline", "multiplier", "passes"),
    )


_POOLING = "add-multiply-compare"

UNITS = (
    Unit(
        name="vector",
        summary="vector unit: lanes of FP16 and FP32 with mask, repeat and reductions",
        package="hdl.vector",
        options={
            "lanes": Option(_lanes, "power of two from 4 to 256", samples=lambda: ("4", "256")),
            "groups": Option(
                _groups,
                f"all or names joined by dashes: {', '.join(GROUPS)}",
                samples=lambda: ("all", *GROUPS),
            ),
            "sharing": named("sharing", SHARINGS),
            "functions": named("functions", DESIGNS),
            "pipeline": number("pipeline", 2, 5),
            "multiplier": MULTIPLIER,
            "passes": number("passes", 1, MOST_LANES // 2),
        },
        default=with_defaults(
            lanes=16,
            groups="all",
            sharing=None,
            functions=None,
            pipeline=None,
            multiplier=None,
            passes=None,
        ),
        component=lambda c: (VectorUnit, {"config": vector_config(c)}),
        rows=lambda: ({"lanes": 16}, {"lanes": 128}),
        more=lambda: ({"groups": _POOLING},),
        checked=(
            {"lanes": 16},
            {"lanes": 128},
            {"lanes": 4, "pipeline": 2},
            {"lanes": 8, "groups": _POOLING},
            {"lanes": 8, "groups": "add-reduce"},
            {"lanes": 4, "groups": "add-multiply-functions", "multiplier": "dsp"},
            {"lanes": 16, "groups": _POOLING + "-convert", "multiplier": "dsp", "passes": 2},
        ),
        simulated=({"lanes": 4, "groups": "add-compare-logic-reduce"},),
        documented={"16 lanes": {}},
        shared=VectorUnit.shared,
    ),
)
