"""Batch checks of matrix units with semirings: all operations, subsets, and both dataflows."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.sim.bench.cube.batch import run_unit
from vitruvian.sim.rtl.simd2 import UNIT_FP32
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

__all__ = ["CONFIGURATIONS", "checks"]

_UNIT = CONFIGS["simd2_4x4"]
_SMALL = replace(_UNIT, m=2, n=2)
#: A unit that takes one pair of FP32 operands in a beat, and computes sums in every precision of
#: M³XU.
_FP32 = replace(CONFIGS["m3xu"], m=2, n=2, operations=UNIT_FP32.operations)

#: (name, unit, True if each operation has its own row). The subsets are chosen so that each lacks
#: a part of the datapath that others have: sums of products, fixed-point sums, exponents and
#: fractions, the comparison of operands, or candidates. The units called m3xu take one pair of FP32
#: operands in a beat, unless ⊕ is a sum.
CONFIGURATIONS: tuple[tuple[str, MatrixUnitConfig, bool], ...] = (
    ("simd2_4x4 broadcast", _UNIT, True),
    ("simd2_4x4 systolic", replace(_UNIT, dataflow="systolic"), True),
    ("2×2×8 pipeline=4", replace(_SMALL, k=8, pipeline=4), False),
    (
        "2×2×4 mma+minplus pipeline=0",
        replace(_SMALL, operations=("mma", "minplus"), pipeline=0),
        False,
    ),
    (
        "2×2×4 minplus+maxplus pipeline=2",
        replace(_SMALL, operations=("minplus", "maxplus"), pipeline=2),
        False,
    ),
    (
        "2×2×3 maxmul+minmax",
        replace(_SMALL, k=3, operations=("maxmul", "minmax"), pipeline=1),
        False,
    ),
    ("2×2×2 maxmin+orand", replace(_SMALL, k=2, operations=("maxmin", "orand")), False),
    ("2×2×4 sparse", replace(_SMALL, sparsity=True), False),
    (
        "2×2×8 sparse systolic mma+minmul+addnorm",
        replace(
            _SMALL, k=8, sparsity=True, dataflow="systolic", operations=("mma", "minmul", "addnorm")
        ),
        False,
    ),
    ("2×2×8 m3xu", _FP32, True),
    (
        "1×3×4 m3xu a100 systolic mma+minplus+maxmul pipeline=4",
        replace(
            _FP32,
            m=1,
            n=3,
            k=4,
            preset="a100",
            dataflow="systolic",
            assignment="pipelined",
            operations=("mma", "minplus", "maxmul"),
            pipeline=4,
        ),
        False,
    ),
    (
        "1×1×4 mma+maxmul+addnorm dsp",
        replace(_UNIT, m=1, n=1, operations=("mma", "maxmul", "addnorm"), multiplier="dsp"),
        False,
    ),
    (
        "2×2×8 mma+addnorm systolic",
        replace(_SMALL, k=8, operations=("mma", "addnorm"), dataflow="systolic"),
        False,
    ),
)
#: Shares of the requested vectors, as in ``sim.bench.cube.batch``.
SHARE_OF_ONE, SHARE_OF_ALL = 1 / 16, 1 / 8


def checks() -> Iterator[Check]:
    """Yield rows in which the operation changes, and rows for each operation of some units."""
    for name, config, each in CONFIGURATIONS:
        groups: list[tuple[str, tuple[str, ...], float]]
        groups = [("in turn", config.operations, SHARE_OF_ALL)]
        if each:
            groups += [(op, (op,), SHARE_OF_ONE) for op in config.operations]
        for number, (label, operations, share) in enumerate(groups):
            yield Check(
                unit="simd2.MatrixUnit",
                configuration=f"{name} {label}",
                run=partial(_run, config, operations, share),
                weight=1 if number else 10,  # the first row builds the unit for the others
            )


def _run(
    config: MatrixUnitConfig, operations: tuple[str, ...], share: float, vectors: int, seed: int
) -> Result:
    return run_unit(config, None, int(vectors * share), seed, operations=operations)
