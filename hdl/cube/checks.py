"""The rules for the parameters of a matrix unit. They raise an error, and change nothing.

``check_parameters`` looks at the parameters as they were given, each by itself.
``check_combination`` follows when the derived values of the unit are known: it looks at precisions,
operations, lanes and windows together.
"""

from typing import TYPE_CHECKING

from vitruvian.golden.fp.formats import as_format
from vitruvian.golden.fp.spec import PRESETS
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.golden.simd2.op import PARTS, Op
from vitruvian.validate import check_int, one_of

from ..fp.parts.multiply import check_multiplier
from ..fp.parts.pipeline import PIPELINES
from .choices import ASSIGNMENTS, DATAFLOWS, INT8, NARROW, ONE_PAIR, PRECISIONS

if TYPE_CHECKING:
    from .config import MatrixUnitConfig

__all__ = ["check_combination", "check_parameters"]


def check_parameters(config: "MatrixUnitConfig") -> None:
    """Check each parameter by itself.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is outside its range.
    """
    for name in ("m", "n", "k"):
        check_int(name, getattr(config, name), 1, 64)
    if config.slots is not None:
        check_int("slots", config.slots, 1, 64)
    check_int("pipeline", config.pipeline, min(PIPELINES), max(PIPELINES))
    one_of("dataflow", config.dataflow, DATAFLOWS)
    one_of("preset", config.preset, [name for name, p in PRESETS.items() if p.has_window])
    _check_flag("saturate", config.saturate)
    check_multiplier(config.multiplier)
    _check_precisions(config)
    # A str is a sequence as well, and each of its letters would count as an operation.
    if isinstance(config.operations, str):
        raise ValueError(f"operations must be different names, not {config.operations!r}")
    _check_flag("sparsity", config.sparsity)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def _check_precisions(config: "MatrixUnitConfig") -> None:
    """Check the precisions, and what k and the output must be for them."""
    names = config.precisions
    if isinstance(names, str) or not names or len(set(names)) != len(names):
        raise ValueError(f"precisions must be different names, at least one, not {names!r}")
    for name in names:
        one_of("precision", name, PRECISIONS)
    if "tf32" in names and config.k % 2:
        raise ValueError(f"k must be even with tf32, which takes two lanes, not {config.k!r}")
    output = as_format(config.output, "output")
    if INT8 in names and output.storage_bits != 32:
        raise ValueError(f"output must have 32 bits with int8, not {config.output!r}")


def check_combination(config: "MatrixUnitConfig") -> None:
    """Check that the elements support the parameters together.

    Raises
    ------
    TypeError
        If ``multiplier_bits`` or ``window`` is not an integer.
    ValueError
        If a parameter does not go with the others.
    """
    if config.one_pair:
        _check_one_pair(config)
    elif config.semirings:
        _check_semirings(config)
    _check_assignment(config)
    if config.multiplier_bits is not None:
        if config.assignment == "element":
            raise ValueError(
                "multiplier_bits must be None where elements decode, "
                f"not {config.multiplier_bits!r}"
            )
        check_int("multiplier_bits", config.multiplier_bits, config.one_step_bits, 64)
    if config.window is not None:
        if not config.ieee_floats and PRESETS[config.preset].is_machine:
            raise ValueError(
                f"window must be None with preset {config.preset}, not {config.window!r}"
            )
        check_int("window", config.window, config.least_window, 128)
    # The real and the imaginary part of a result are in a pair of slots.
    if config.complex_precisions and config.slot_count % 2:
        raise ValueError(f"slots must be even with fp32c, not {config.slots!r}")
    for name in config.floats:
        config.spec(name)  # raises ValueError if the preset or the lanes rule out the precision
    _check_pair_lanes(config)


def _check_semirings(config: "MatrixUnitConfig") -> None:
    """Check a unit with sparsity or with semirings on FP16 operands."""
    if config.sparsity and config.k % 2:
        raise ValueError(f"k must be even with sparsity, not {config.k!r}")
    for name, allowed in (
        ("precisions", ("fp16",)),
        ("preset", "ieee"),
        ("output", "fp32"),
        ("multiplier_bits", None),
        ("assignment", "edge"),
    ):
        value = getattr(config, name)
        if value != allowed:
            raise ValueError(
                f"{name} must be {allowed!r} with sparsity or operations other than mma, "
                f"not {value!r}"
            )
    if Op.ADDNORM in config.ops and config.k % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} with addnorm, not {config.k!r}")


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
    # ⊗ is computed by the fused sum of mma, so the unit has mma anyway.
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


def _check_pair_lanes(config: "MatrixUnitConfig") -> None:
    """Check that a unit has lanes for two FP32 products, if ⊗ of an operation is +, min or max."""
    two = [op.mnemonic for op in config.ops if op.times in ("add", "min", "max")]
    if config.one_pair and two and config.terms("fp32") < 2:
        raise ValueError(
            f"k must be at least {2 * config.k // config.terms('fp32')} with {two[0]} on FP32 "
            f"operands, which takes two products, not {config.k!r}"
        )


def _check_assignment(config: "MatrixUnitConfig") -> None:
    """Check that the position at which operands are decoded suits the precisions."""
    one_of("assignment", config.assignment, ASSIGNMENTS)
    inner = config.assignment == "element"
    allowed = NARROW if inner else (*M3XU, INT8)
    if not inner and not config.floats:
        raise ValueError(
            f"assignment must be 'element' without a floating precision, not {config.assignment!r}"
        )
    for name in config.precisions:
        if name not in allowed:
            raise ValueError(
                f"precision must be one of {', '.join(allowed)} "
                f"with assignment {config.assignment!r}, not {name!r}"
            )
