"""The SIMD² units: by their command-line names, and as in Zhang 2024, Table 3.5."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import shortened
from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.catalogue.options import given
from vitruvian.hdl.catalogue.unit import Configuration, Option
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.simd2.intconfig import IntConfig

_BY_NAME = {op.mnemonic: op for op in Op}


def operations_of(text: str) -> tuple[Op, ...]:
    """Return the operations that a text names: ``all``, or names with ``-`` between them.

    Raises
    ------
    UserError
        If a name is unknown or repeated.
    """
    if text == "all":
        return tuple(Op)
    names = text.split("-")
    if len(set(names)) < len(names) or not set(names) <= set(_BY_NAME):
        raise UserError(
            f"operations must be all, or different ones of {', '.join(_BY_NAME)} with - between "
            f"them, not {shortened(text)}"
        )
    return tuple(_BY_NAME[name] for name in names)


def _read(text: str) -> str:
    operations_of(text)
    return text


OPERATIONS = Option(
    _read,
    f"all | {' | '.join(_BY_NAME)} | several, as mma-minplus",
    samples=lambda: ("all", *_BY_NAME),
)

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


def float_config(c: Configuration) -> MatrixUnitConfig:
    """Return the FP16 unit of a complete configuration.

    With ``mma`` as its only operation, it is the matrix unit without semirings.
    """
    return MatrixUnitConfig(
        m=c["m"] or c["size"],
        n=c["n"] or c["size"],
        k=c["k"],
        precisions=("fp16",),
        dataflow=c["dataflow"],
        pipeline=c["pipeline"],
        slots=c["slots"],
        operations=tuple(op.mnemonic for op in operations_of(c["operations"])),
        multiplier=c["multiplier"] or "booth",
        sparsity=c["sparse"],
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


#: The subsets are chosen so that each lacks a part of the datapath that others have: sums of
#: products, fixed-point sums, exponents and fractions, the comparison of operands, or candidates.
CHECKED: tuple[Configuration, ...] = (
    {"slots": None},
    {"slots": None, "dataflow": "systolic"},
    *(
        {"size": 2, "slots": None, **changes}
        for changes in (
            {"pipeline": 4},
            {"operations": "mma-minplus", "pipeline": 0},
            {"operations": "minplus-maxplus", "pipeline": 2},
            {"k": 3, "operations": "maxmul-minmax", "pipeline": 1},
            {"k": 2, "operations": "maxmin-orand"},
            {"operations": "mma-minplus-maxmul", "sparse": True},
            {"k": 8, "operations": "mma-minmul-addnorm", "sparse": True, "dataflow": "systolic"},
            {"k": 8, "operations": "mma-addnorm", "dataflow": "systolic"},
        )
    ),
    {"size": 1, "slots": None, "operations": "mma-maxmul-addnorm", "multiplier": "dsp"},
)


def int_config(c: Configuration) -> IntConfig:
    """Return the integer unit of a complete configuration."""
    return IntConfig(
        m=c["m"] or c["size"],
        n=c["n"] or c["size"],
        bits=c["width"],
        operations=operations_of(c["operations"]),
        pipeline=c["pipeline"],
        multiplier=c["multiplier"] or "booth",
        **given(c, "k"),
    )


def int_rows() -> Sequence[Mapping[str, Any]]:
    """Return the rows of Table 3.5; the first is the unit that all ratios refer to."""
    keys = [("mma", 16), *PUBLISHED]
    return [{"operations": operations, "width": width} for operations, width in keys]


#: Tiles with all operations, and with subsets that compute products in other ways. The unit's tests
#: cover the widths of 32 and 64 bits, whose models take longer to build than all of these together.
INT_CHECKED: tuple[Configuration, ...] = (
    {"m": 1, "n": 2, "k": 2, "width": 8, "pipeline": 1},
    {"m": 1, "n": 2, "k": 2},
    {"size": 2, "operations": "mma"},
    {"size": 1, "width": 8, "pipeline": 1, "operations": "mma-minplus-minmax-orand-addnorm"},
    {"size": 1, "k": 2, "multiplier": "dsp"},
)
