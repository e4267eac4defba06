"""Rules for units with operations other than sums of products, and for their operands."""

from typing import TYPE_CHECKING

from vitruvian.golden.simd2.op import PARTS, Op

if TYPE_CHECKING:
    from .config import MatrixUnitConfig

__all__ = ["ONE_PAIR", "check_operations", "check_pair_lanes"]

#: The precisions that a unit may have whose semirings take one pair of FP32 operands per beat.
ONE_PAIR = ("fp16", "bf16", "tf32", "fp32", "fp32c")


def check_operations(config: "MatrixUnitConfig") -> str | None:
    """Check the operations of a unit and return where it decodes operands (``assignment``).

    Raises
    ------
    ValueError
        If the unit's elements do not support an operation in this configuration.
    """
    if not config.semirings:
        return config.assignment
    if config.one_pair:
        _check_one_pair(config)
        return config.assignment
    if config.sparsity and config.k % 2:
        raise ValueError(f"k must be even with sparsity, not {config.k!r}")
    for name, value, allowed in (
        ("precisions", config.precisions, ("fp16",)),
        ("preset", config.preset, "ieee"),
        ("output", config.output, "fp32"),
        ("multiplier_bits", config.multiplier_bits, None),
    ):
        if value != allowed:
            raise ValueError(
                f"{name} must be {allowed!r} with sparsity or operations other than mma, "
                f"not {value!r}"
            )
    if config.assignment not in (None, "edge"):
        raise ValueError(
            "assignment must be 'edge' with sparsity or operations other than mma, "
            f"not {config.assignment!r}"
        )
    if Op.ADDNORM in config.ops and config.k % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} with addnorm, not {config.k!r}")
    return "edge"


def _check_one_pair(config: "MatrixUnitConfig") -> None:
    """Check a unit whose semirings take one pair of FP32 operands per beat."""
    if config.sparsity:
        raise ValueError("sparsity must be False with fp32, not True")
    allowed = [op.mnemonic for op in Op if op is not Op.ADDNORM]
    for name in config.operations:
        if name not in allowed:
            raise ValueError(
                f"operation must be one of {', '.join(allowed)} on FP32 operands, not {name!r}"
            )
    if Op.MMA not in config.ops:
        raise ValueError(f"operations must have mma with fp32, not {config.operations!r}")
    for name in config.precisions:
        if name not in ONE_PAIR:
            raise ValueError(
                f"precision must be one of {', '.join(ONE_PAIR)} with operations other than mma "
                f"on FP32 operands, not {name!r}"
            )
    if config.output != "fp32":
        raise ValueError(
            f"output must be 'fp32' with operations other than mma, not {config.output!r}"
        )


def check_pair_lanes(config: "MatrixUnitConfig") -> None:
    """Check that a unit has lanes for two FP32 products, if ⊗ of an operation is +, min or max.

    Raises
    ------
    ValueError
        If it has too few lanes.
    """
    two = [op.mnemonic for op in config.ops if op.times in ("add", "min", "max")]
    if config.one_pair and two and config.terms("fp32") < 2:
        raise ValueError(
            f"k must be at least {2 * config.k // config.terms('fp32')} with {two[0]} on FP32 "
            f"operands, which takes two products, not {config.k!r}"
        )
