"""The cores for sparse tensor algebra."""

from vitruvian.hdl.catalogue.options import MULTIPLIER, given, with_defaults
from vitruvian.hdl.catalogue.unit import Unit, listed, named
from vitruvian.hdl.sparse import EwiseConfig, EwiseCore, ISConfig, ISCore, OSConfig, OSCore
from vitruvian.hdl.sparse.config import DEPTHS, FORMATS, MOST_LANES
from vitruvian.hdl.sparse.ewise_config import REGISTERS, STORES

_LANES = listed("lanes", [1 << n for n in range(MOST_LANES.bit_length())])
_DEPTH = listed("depth", DEPTHS)
_FORMAT = named("format", FORMATS)


UNITS = (
    Unit(
        name="sparse-os",
        summary="output-stationary core: columns of any length reduced over a semiring",
        package="hdl.sparse",
        options={"lanes": _LANES, "format": _FORMAT, "multiplier": MULTIPLIER},
        default=with_defaults(lanes=8, format="fp32", multiplier=None),
        component=lambda c: (OSCore, {"config": OSConfig(**given(c, *c))}),
        rows=lambda: ({}, {"format": "fp16"}),
        more=lambda: ({"lanes": 16}, {"lanes": 32}),
        checked=(
            {},
            {"format": "fp16"},
            {"lanes": 1, "format": "bf16"},
            {"lanes": 16},
            {"lanes": 2, "format": "fp16", "multiplier": "dsp"},
        ),
        simulated=({"lanes": 4, "format": "fp16"},),
        documented={"8 lanes": {}},
        shared=OSCore.shared,
    ),
    Unit(
        name="sparse-ewise",
        summary="element-wise core: programs of a few dozen instructions on lanes of vectors",
        package="hdl.sparse",
        options={
            "lanes": _LANES,
            "registers": listed("registers", REGISTERS),
            "instructions": listed("instructions", STORES),
            "format": _FORMAT,
            "multiplier": MULTIPLIER,
        },
        default=with_defaults(
            lanes=8, registers=16, instructions=64, format="fp32", multiplier=None
        ),
        component=lambda c: (EwiseCore, {"config": EwiseConfig(**given(c, *c))}),
        rows=lambda: ({},),
        more=lambda: ({"format": "fp16"}, {"lanes": 16}),
        checked=(
            {},
            {"format": "fp16", "lanes": 4, "registers": 8, "instructions": 32},
            {"format": "bf16", "lanes": 1, "registers": 4, "instructions": 16},
            {"lanes": 16, "registers": 32, "instructions": 128, "format": "fp16"},
            {"lanes": 2, "registers": 4, "instructions": 16, "multiplier": "dsp"},
        ),
        simulated=({"lanes": 4, "registers": 8, "instructions": 32, "format": "fp16"},),
        documented={"8 lanes of 16 registers": {}},
        shared=EwiseCore.shared,
    ),
    Unit(
        name="sparse-is",
        summary="input-stationary core: rows scattered to banks and accumulated over a semiring",
        package="hdl.sparse",
        options={"lanes": _LANES, "depth": _DEPTH, "format": _FORMAT, "multiplier": MULTIPLIER},
        default=with_defaults(lanes=8, depth=64, format="fp32", multiplier=None),
        component=lambda c: (ISCore, {"config": ISConfig(**given(c, *c))}),
        rows=lambda: ({},),
        more=lambda: ({"format": "fp16"}, {"lanes": 16}),
        checked=(
            {},
            {"format": "fp16", "lanes": 4},
            {"lanes": 1, "depth": 2, "format": "bf16"},
            {"lanes": 2, "format": "fp16", "multiplier": "dsp"},
        ),
        simulated=({"lanes": 4, "depth": 8, "format": "fp16"},),
        documented={"8 lanes of 64 results": {}},
        shared=ISCore.shared,
    ),
)
