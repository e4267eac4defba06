"""The dot product of a Cube element with several precisions, as a unit whose power is measured."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.catalogue.options import PIPELINE, PRECISIONS, given, with_defaults
from vitruvian.hdl.catalogue.unit import Configuration, Unit, flag, named, number
from vitruvian.hdl.cube.choices import INT8, NARROW
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.fp.multidot import MultiDot


def _config(c: Configuration) -> MatrixUnitConfig:
    """Return a matrix unit with one such element.

    Raises
    ------
    ValueError
        If the unit does not have the precision that is in use.
    """
    config = MatrixUnitConfig(
        m=1,
        n=1,
        precisions=tuple(c["precisions"].split("-")),
        **given(c, "k", "preset", "pipeline"),
    )
    if config.assignment != "element":
        raise ValueError(f"precisions must be of {', '.join(NARROW)}, not {c['precisions']!r}")
    config.spec(_mode(c))
    return config


def _mode(c: Configuration) -> str:
    return c["mode"] or c["precisions"].split("-")[0]


def _component(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    config = _config(c)
    return MultiDot, {
        "specs": config.float_specs,
        "int8_k": config.terms(INT8) if INT8 in config.precisions else 0,
        "pipeline": config.pipeline,
        "isolated": c["isolated"],
        "gated": c["gated"],
    }


#: A complete configuration names the precision that is in use as its ``mode``.
ELEMENT = Unit(
    name="element",
    summary="dot product of a Cube element with several precisions, of which one is in use",
    package="hdl.cube",
    options={
        "preset": named("preset", (name for name in PRESETS if name != "exact")),
        "precisions": PRECISIONS,
        "mode": named("mode", NARROW),
        "k": number("k", 1, 64),
        "pipeline": PIPELINE,
        "isolated": flag("hold the operands of precisions that are not in use at zero"),
        "gated": flag("let registers keep their values while their precision is not in use"),
    },
    default=with_defaults(
        preset="a100",
        precisions="fp16-int8",
        mode=None,
        k=8,
        pipeline=3,
        isolated=False,
        gated=False,
    ),
    component=_component,
    macs=lambda c: _config(c).terms(_mode(c)),
    rows=lambda: [{"mode": mode} for mode in ("fp16", INT8)],
)
