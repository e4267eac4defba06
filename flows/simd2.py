"""The SIMD² units of Zhang 2024, Table 3.5, integer and FP16, by their command-line names."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.simd2.intconfig import IntConfig

__all__ = [
    "OPERATIONS",
    "PUBLISHED",
    "SLOTS",
    "float_config",
    "float_rows",
    "int_config",
    "int_rows",
]

#: Option value -> operations: "all", one operation alone, or "mma-" and one beside mma.
OPERATIONS: dict[str, tuple[Op, ...]] = {
    "all": tuple(Op),
    **{op.mnemonic: (op,) for op in Op},
    **{f"mma-{op.mnemonic}": (Op.MMA, op) for op in Op if op is not Op.MMA},
}

#: (operations, bits) -> published area relative to the 16-bit matrix-product unit (Table 3.5).
PUBLISHED: dict[tuple[str, int], float] = {
    ("all", 16): 1.69,
    ("mma-minplus", 16): 1.21,
    ("mma-maxplus", 16): 1.21,
    ("mma-minmul", 16): 1.12,
    ("mma-maxmul", 16): 1.12,
    ("mma-minmax", 16): 1.01,
    ("mma-maxmin", 16): 1.01,
    ("mma-orand", 16): 1.04,
    ("mma-addnorm", 16): 1.18,
    ("minplus", 16): 0.26,
    ("maxplus", 16): 0.26,
    ("minmul", 16): 1.03,
    ("maxmul", 16): 1.03,
    ("minmax", 16): 0.06,
    ("maxmin", 16): 0.06,
    ("orand", 16): 0.08,
    ("addnorm", 16): 0.19,
    ("mma", 8): 0.25,
    ("mma", 32): 4.04,
    ("mma", 64): 11.17,
    ("all", 8): 0.69,
    ("all", 32): 6.42,
    ("all", 64): 17.01,
}


#: Accumulators of an element in the tables: the default of the matrix-product unit.
SLOTS = 6


def float_config(c: Mapping[str, Any]) -> MatrixUnitConfig:
    """Return the FP16 unit of a complete configuration.

    With ``mma`` as its only operation, it is the matrix unit without semirings.
    """
    return MatrixUnitConfig(
        m=c["size"],
        n=c["size"],
        k=c["k"],
        precisions=("fp16",),
        dataflow=c["dataflow"],
        pipeline=c["pipeline"],
        slots=c["slots"],
        operations=tuple(op.mnemonic for op in OPERATIONS[c["operations"]]),
        multiplier=c["multiplier"] or "booth",
    )


def float_rows() -> Sequence[Mapping[str, Any]]:
    """Return the rows of Table 3.5 (a) and (b), a deeper pipeline and a larger tile.

    A larger tile shares the decoding among more elements. The list leaves out the unit for the
    matrix product alone and the unit for all nine operations, because those are always reported.
    """
    names = dict.fromkeys(operations for operations, _ in PUBLISHED)
    rows: list[dict[str, Any]] = [{"operations": x} for x in names if x not in ("mma", "all")]
    for change in ({"pipeline": 4}, {"size": 8}):
        rows += [{"operations": name, **change} for name in ("mma", "all")]
    return rows


def int_config(c: Mapping[str, Any]) -> IntConfig:
    """Return the integer unit of a complete configuration."""
    return IntConfig(
        m=c["size"],
        n=c["size"],
        bits=c["width"],
        operations=OPERATIONS[c["operations"]],
        pipeline=c["pipeline"],
        multiplier=c["multiplier"] or "booth",
    )


def int_rows() -> Sequence[Mapping[str, Any]]:
    """Return the rows of Table 3.5; the first is the unit that all ratios refer to."""
    keys = [("mma", 16), *PUBLISHED]
    return [{"operations": operations, "width": width} for operations, width in keys]
