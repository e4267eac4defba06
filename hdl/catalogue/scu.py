"""The storage conversion unit: Im2Col and Col2Im."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.hdl.catalogue.options import with_defaults
from vitruvian.hdl.catalogue.unit import (
    CataloguedPart,
    Configuration,
    Unit,
    listed,
    named,
    number,
)
from vitruvian.hdl.scu import AddressGenerator, Col2Im, ConversionConfig, Im2Col

#: Channels of a pixel by default, for every format (Rohwedder 2021, §3.2).
_CHANNELS = 16
_ROWS = listed("rows", (1, 2, 4, 8, 16))
_FORMATS = ("fp16", "fp32")


def conversion_config(c: Configuration) -> ConversionConfig:
    """Return the parameters of a complete configuration of a unit of this module."""
    width = FORMATS[c["format"]].storage_bits if "format" in c else 16
    channels = c.get("channels") or _CHANNELS
    return ConversionConfig(rows=c["rows"], c0_bytes=channels * width // 8, ahead=c["ahead"])


def _im2col(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    return Im2Col, {"config": conversion_config(c)}


def _col2im(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
    config = conversion_config(c)
    return Col2Im, {"config": config, "format": c["format"], "pipeline": c["pipeline"]}


_AHEAD = number("ahead", 2, 64)

UNITS = (
    Unit(
        name="scu-im2col",
        summary="Im2Col load: patches of an image as rows of fractals",
        package="hdl.scu",
        options={"rows": _ROWS, "ahead": _AHEAD, "channels": number("channels", 1, 32)},
        default=with_defaults(rows=1, ahead=4, channels=None),
        component=_im2col,
        rows=lambda: ({}, {"rows": 8}),
        checked=(
            {},
            {"rows": 2, "ahead": 2, "channels": 3},
            {"rows": 4},
            {"rows": 8, "channels": 4},
            {"rows": 16, "ahead": 7, "channels": 4},
        ),
        simulated=({}, {"rows": 4, "channels": 4}),
        documented={"one row a beat": {}},
    ),
    Unit(
        name="scu-col2im",
        summary="Col2Im: rows of fractals added to the pixels of an image",
        package="hdl.scu",
        options={
            "format": named("format", _FORMATS),
            "rows": _ROWS,
            "ahead": _AHEAD,
            "pipeline": number("pipeline", 0, 3),
            "channels": number("channels", 1, 32),
        },
        default=with_defaults(format="fp16", rows=1, ahead=4, pipeline=2, channels=None),
        component=_col2im,
        rows=lambda: ({}, {"format": "fp32"}),
        more=lambda: ({"rows": 8},),
        checked=(
            {},
            {"pipeline": 0},
            {"pipeline": 3, "rows": 2, "channels": 1},
            {"format": "fp32"},
            {"format": "fp32", "rows": 2, "pipeline": 1, "ahead": 2, "channels": 4},
            {"rows": 8, "channels": 4},
        ),
        simulated=({"channels": 4},),
        documented={"fp16, one row a beat": {}},
        shared=Col2Im.shared,
    ),
)

PARTS = (
    CataloguedPart(
        package="hdl.scu",
        words="one row a beat",
        build=lambda: AddressGenerator(config=ConversionConfig()),
    ),
)
