"""The matrix units: the Cube tile, M³XU with its comparison units, the MMA unit, SIMD² tiles."""

from dataclasses import fields, replace

from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.catalogue.m3xu import REPORTED, SEMIRINGS, TABLE, VARIANTS, variant
from vitruvian.hdl.catalogue.options import (
    DEEP_PIPELINE,
    MULTIPLIER,
    NO_SHAPE,
    PIPELINE,
    PRECISIONS,
    SHAPE,
    given,
    with_defaults,
)
from vitruvian.hdl.catalogue.semirings import (
    CHECKED,
    INT_CHECKED,
    OPERATIONS,
    SLOTS,
    float_config,
    float_rows,
    int_config,
    int_rows,
    operations_of,
)
from vitruvian.hdl.catalogue.unit import (
    CataloguedPart,
    Configuration,
    Unit,
    flag,
    named,
    number,
)
from vitruvian.hdl.cube import BLACKWELL, CONFIGS, MatrixUnit, MatrixUnitConfig, ProcessingElement
from vitruvian.hdl.cube.assign import DataAssignment
from vitruvian.hdl.cube.choices import ASSIGNMENTS, DATAFLOWS
from vitruvian.hdl.cube.control import Sequencer
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.hdl.m3xu.dot import LaneDot
from vitruvian.hdl.mma.issue import Issue
from vitruvian.hdl.mma.unit import UNITS as MMA_UNITS
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.hdl.simd2.intconfig import BITS, DEPTHS
from vitruvian.hdl.simd2.integer import IntTile


def cube_config(c: Configuration) -> TileConfig:
    """Return the parameters of a complete configuration of the unit ``cube``.

    Raises
    ------
    ValueError
        If the units of the preset do not have one of the options.
    """
    names = ("m", "n", "k", "dataflow", "pipeline", "multiplier", "assignment")
    changes = given(c, *names)
    if c["accuracy"] is not None:
        changes["preset"] = c["accuracy"]
    if c["fast"]:
        changes["fast"] = True
    if c["operations"] is not None:
        changes["operations"] = tuple(op.mnemonic for op in operations_of(c["operations"]))
    if c["precisions"] is not None:
        changes["precisions"] = tuple(c["precisions"].split("-"))
    # Without the flag, the preset decides.
    changes |= {name: True for name in ("slot_memory", "buffered") if c[name]}
    config = (CONFIGS | BLACKWELL)[c["preset"]]
    absent = [name for name in changes if name not in {f.name for f in fields(config) if f.init}]
    if absent:
        option = "accuracy" if absent[0] == "preset" else absent[0]
        raise ValueError(f"{option} must be left out with the preset {c['preset']}")
    return replace(config, **changes)


def m3xu_config(c: Configuration) -> MatrixUnitConfig:
    """Return the parameters of a complete configuration of the unit ``m3xu``."""
    config = variant(c["variant"], pipeline=c["pipeline"], window=c["window"])
    return replace(config, **given(c, "m", "n", "k", "multiplier"))


def mma_config(c: Configuration) -> MatrixUnitConfig:
    """Return the parameters of the tile of a complete configuration of the unit ``mma``."""
    changes = given(c, "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    return replace(MMA_UNITS[c["preset"]], **changes)


def _cube_rows() -> list[Configuration]:
    # The m3xu presets are reported as the unit m3xu, beside the units they are compared with.
    # The presets for FPGAs are in the table of FPGA resources.
    presets = [name for name, c in CONFIGS.items() if not c.wide and c.multiplier == "booth"]
    return [*({"preset": name} for name in presets), {"preset": "tiny", "dataflow": "systolic"}]


_BROADCAST, _SYSTOLIC = {"dataflow": "broadcast"}, {"dataflow": "systolic"}
_IN_MEMORY = {"slot_memory": True, "buffered": True}
_TINY = ({"preset": "tiny", **_BROADCAST}, {"preset": "tiny", **_SYSTOLIC})
#: The operations of a tile that takes one pair of FP32 operands in a beat, unless ⊕ is a sum.
_FP32_OPERATIONS = "-".join(SEMIRINGS)

UNITS = (
    Unit(
        name="cube",
        summary="M x N x K matrix unit with accumulators and streams",
        package="hdl.cube",
        options={
            "preset": named("preset", CONFIGS | BLACKWELL),
            **SHAPE,
            "dataflow": named("dataflow", DATAFLOWS),
            "accuracy": named("accuracy", (name for name in PRESETS if name != "exact")),
            "pipeline": DEEP_PIPELINE,
            "multiplier": MULTIPLIER,
            "assignment": named("assignment", ASSIGNMENTS),
            "operations": OPERATIONS,
            "fast": flag("a shorter cycle with four pipeline stages and a pipelined assignment"),
            "precisions": PRECISIONS,
            "slot_memory": flag("keep the slots in memories, for FPGAs"),
            "buffered": flag("add register ranks before and behind the array, for FPGAs"),
        },
        default=with_defaults(
            preset="cube_4x4x4",
            **NO_SHAPE,
            dataflow=None,
            accuracy=None,
            pipeline=None,
            multiplier=None,
            assignment=None,
            operations=None,
            fast=False,
            precisions=None,
            slot_memory=False,
            buffered=False,
        ),
        component=lambda c: (MatrixUnit, {"config": cube_config(c)}),
        macs=lambda c: cube_config(c).macs,
        rows=_cube_rows,
        more=lambda: [{"preset": name} for name in BLACKWELL],
        checked=(
            *_TINY,
            {"preset": "cube_4x4x4", **_BROADCAST},
            {"preset": "cube_4x4x4", **_SYSTOLIC},
            {"preset": "tensorcore_a100", **_BROADCAST},
            {"preset": "tensorcore_a100", **_SYSTOLIC},
            {"preset": "cube_davinci", **_BROADCAST},
            {"preset": "m3xu", **_BROADCAST},
            {"preset": "m3xu_pipelined", **_BROADCAST},
            {"preset": "m3xu_pipelined", "m": 2, "n": 2, "pipeline": 4, "fast": True},
            {"preset": "m3xu", **_SYSTOLIC},
            {"preset": "m3xu_fp64", **_BROADCAST},
            {"preset": "m3xu_fp64", **_SYSTOLIC},
            {"preset": "tiny", **_BROADCAST, "multiplier": "dsp"},
            {"preset": "tiny", **_BROADCAST, "pipeline": 9, "multiplier": "dsp", **_IN_MEMORY},
            {"preset": "int8_8x8_dsp"},
            {"preset": "fp16_4x4x4_dsp"},
            *({"preset": name, **_BROADCAST} for name in BLACKWELL),
            {"preset": "nvfp4_8x4", **_SYSTOLIC, "m": 2, "n": 3, "k": 4},
            {"preset": "m3xu", "m": 2, "n": 2, "operations": _FP32_OPERATIONS},
            {
                "preset": "m3xu",
                "m": 1,
                "n": 3,
                "k": 4,
                **_SYSTOLIC,
                "accuracy": "a100",
                "assignment": "pipelined",
                "operations": "mma-minplus-maxmul",
                "pipeline": 4,
            },
        ),
        # The tests simulate more of them; the elements of a larger unit are all equal.
        simulated=(
            *_TINY,
            {"preset": "nvfp4_8x4", **_SYSTOLIC, "m": 1, "n": 2, "k": 4},
            {"preset": "m3xu_pipelined", **_SYSTOLIC, "m": 4, "n": 2},
        ),
        documented={"tensorcore_a100": {"preset": "tensorcore_a100"}},
        shared=MatrixUnit.shared,
    ),
    Unit(
        name="m3xu",
        summary="matrix units of 8x4 outputs and 8 lanes, with and without M3XU",
        package="hdl.m3xu",
        options={
            "variant": named("variant", VARIANTS),
            **SHAPE,
            "pipeline": PIPELINE,
            "window": number("window", 48, 128),
            "multiplier": MULTIPLIER,
        },
        default=with_defaults(
            variant="fp32c", **NO_SHAPE, pipeline=4, window=None, multiplier=None
        ),
        component=lambda c: (MatrixUnit, {"config": m3xu_config(c)}),
        macs=lambda c: m3xu_config(c).macs,
        rows=lambda: tuple({"variant": name} for name in REPORTED),
        more=lambda: tuple({"variant": name} for name in TABLE if name not in REPORTED),
        shared=MatrixUnit.shared,
    ),
    Unit(
        name="mma",
        summary="matrix unit that runs instructions: issue, queue, tile",
        package="hdl.m3xu",
        options={
            "preset": named("preset", MMA_UNITS),
            **SHAPE,
            "dataflow": named("dataflow", DATAFLOWS),
            "pipeline": PIPELINE,
            "slots": number("slots", 1, 64),
            "ahead": number("ahead", 2, 64),
            "multiplier": MULTIPLIER,
        },
        default=with_defaults(
            preset="m3xu",
            **NO_SHAPE,
            dataflow=None,
            pipeline=None,
            slots=None,
            ahead=None,
            multiplier=None,
        ),
        component=lambda c: (MmaUnit, {"config": mma_config(c), "ahead": c["ahead"] or 4}),
        macs=lambda c: mma_config(c).macs,
        rows=lambda: (),  # its tile is that of m3xu, and the rest is small
        more=lambda: [{"preset": name} for name in MMA_UNITS if name.startswith("m3xu")],
        checked=tuple(
            {"preset": name} for name in ("m3xu", "m3xu_pipelined", "m3xu_systolic", "m3xu_fp64")
        ),
        documented={"m3xu": {}},
        shared=MmaUnit.shared,
    ),
    Unit(
        name="simd2",
        summary="FP16 matrix unit for nine semirings",
        package="hdl.simd2",
        options={
            "operations": OPERATIONS,
            "size": number("size", 1, 16),
            "k": number("k", 1, 64),
            "dataflow": named("dataflow", DATAFLOWS),
            "pipeline": PIPELINE,
            "slots": number("slots", 1, 64),
            "multiplier": MULTIPLIER,
            "m": SHAPE["m"],
            "n": SHAPE["n"],
            "sparse": flag("A has at most two nonzeros in each group of four"),
        },
        default=with_defaults(
            operations="all",
            size=4,
            k=4,
            dataflow="broadcast",
            pipeline=3,
            slots=SLOTS,
            multiplier=None,
            m=None,
            n=None,
            sparse=False,
        ),
        component=lambda c: (MatrixUnit, {"config": float_config(c)}),
        macs=lambda c: float_config(c).macs,
        rows=lambda: ({"operations": "mma"}, {"operations": "all"}),
        more=float_rows,
        checked=CHECKED,
        shared=MatrixUnit.shared,
    ),
    Unit(
        name="simd2-int",
        summary="tile of integer elements for nine semirings",
        package="hdl.simd2",
        options={
            "operations": OPERATIONS,
            "width": number("width", min(BITS), max(BITS)),
            "size": number("size", 1, 16),
            "pipeline": number("pipeline", min(DEPTHS), max(DEPTHS)),
            "multiplier": MULTIPLIER,
            **SHAPE,
        },
        default=with_defaults(
            operations="all", width=16, size=4, pipeline=2, multiplier=None, **NO_SHAPE
        ),
        component=lambda c: (IntTile, {"config": int_config(c)}),
        macs=lambda c: int_config(c).macs,
        rows=lambda: (),  # synthesis of 64-bit multipliers is slow
        more=int_rows,
        checked=INT_CHECKED,
        documented={"16 bits, 4 × 4 elements": {}},
        shared=IntTile.shared,
    ),
)

_TENSORCORE, _M3XU = CONFIGS["tensorcore_a100"], CONFIGS["m3xu"]

PARTS = (
    CataloguedPart(
        package="hdl.cube",
        words="tensorcore_a100",
        build=lambda: ProcessingElement(config=_TENSORCORE),
    ),
    CataloguedPart(
        package="hdl.cube", words="tensorcore_a100", build=lambda: Grid(config=_TENSORCORE)
    ),
    CataloguedPart(
        package="hdl.cube", words="tensorcore_a100", build=lambda: Sequencer(config=_TENSORCORE)
    ),
    CataloguedPart(package="hdl.m3xu", words="m3xu", build=lambda: Issue(config=_M3XU)),
    CataloguedPart(
        package="hdl.m3xu",
        words="m3xu, a row of A",
        build=lambda: DataAssignment(config=_M3XU, side="a"),
    ),
    CataloguedPart(
        package="hdl.m3xu",
        words="fp32 in 2 steps on 12 bits, 8 lanes",
        build=lambda: LaneDot(
            spec=dot_spec(input="fp32", output="fp32", k=8, window=48),
            exponent_bits=8,
            a_bits=_M3XU.limb_bits,
            b_bits=_M3XU.lane_bits,
            limbs=_M3XU.limb_counts,
            pipeline=_M3XU.pipeline,
        ),
        optional=frozenset({"chop", "small"}),
    ),
)
