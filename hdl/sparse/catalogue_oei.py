"""The pipeline of the OEI dataflow, its buffer and its control."""

from vitruvian.hdl.catalogue.options import MULTIPLIER, given, with_defaults
from vitruvian.hdl.catalogue.unit import Option, Unit, listed, named
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.config import FORMATS, MOST_LANES
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.ewise_config import REGISTERS, STORES
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import MOST_BEATS, MOST_ELEMENTS, MOST_ROWS, OEIConfig


def _power(what: str, most: int) -> Option:
    """Return an option that takes a power of two."""
    return listed(what, [1 << n for n in range(most.bit_length())])


_OPTIONS = {
    "lanes": _power("lanes", MOST_LANES),
    "rows": _power("rows", MOST_ROWS),
    "columns": _power("columns", MOST_ROWS),
    "capacity": _power("capacity", MOST_ELEMENTS),
    "beats": _power("beats", MOST_BEATS),
    "format": named("format", FORMATS),
}
_SIZES = {"lanes": 8, "rows": 64, "columns": 8, "capacity": 256, "beats": 16, "format": "fp32"}
_DEFAULT = with_defaults(**_SIZES)
#: The element-wise core, which only the whole pipeline has.
_EWISE = {
    "registers": listed("registers", REGISTERS),
    "instructions": listed("instructions", STORES),
}
_SMALL = {"lanes": 2, "rows": 16, "columns": 2, "capacity": 32, "beats": 2, "format": "fp16"}
_WIDE = {"lanes": 4, "rows": 32, "columns": 8, "capacity": 128, "beats": 4, "format": "bf16"}
_ONE = {"lanes": 1, "rows": 4, "columns": 1, "capacity": 16, "beats": 1, "format": "fp16"}
_WORDS = "8 lanes, 64 rows, 256 elements"

UNITS = (
    Unit(
        name="sparse-buffer",
        summary="buffer of a matrix in CSC and CSR form, which converts columns to rows",
        package="hdl.sparse",
        options=_OPTIONS,
        default=_DEFAULT,
        component=lambda c: (DualBuffer, {"config": OEIConfig(**c)}),
        rows=lambda: (_SMALL,),
        more=lambda: ({},),
        checked=({}, _SMALL, _WIDE, _ONE),
        documented={_WORDS: {}},
    ),
    Unit(
        name="sparse-control",
        summary="control of the OEI pipeline, which gives each stage a sub-tensor in each step",
        package="hdl.sparse",
        options=_OPTIONS,
        default=_DEFAULT,
        component=lambda c: (PipelineControl, {"config": OEIConfig(**c)}),
        rows=lambda: ({},),
        # The rows of both kinds come from the bench that runs cycle by cycle.
        checked=({},),
        simulated=({}, _SMALL, _WIDE, _ONE),
        documented={_WORDS: {}},
    ),
    Unit(
        name="sparse-oei",
        summary="OEI pipeline: two products with a sparse matrix that is read once",
        package="hdl.sparse",
        options=_OPTIONS | _EWISE | {"multiplier": MULTIPLIER},
        default=with_defaults(**_SIZES, registers=16, instructions=64, multiplier=None),
        component=lambda c: (OEIPipeline, {"config": OEIConfig(**given(c, *c))}),
        rows=lambda: (_SMALL,),
        more=lambda: ({},),
        checked=(
            {},
            _SMALL,
            _WIDE | {"registers": 32, "instructions": 128},
            _ONE | {"multiplier": "dsp"},
        ),
        simulated=(_SMALL,),
        documented={_WORDS: {}},
        shared=OEIPipeline.shared,
    ),
)
