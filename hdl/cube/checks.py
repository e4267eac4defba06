"""The rules for the parameters of a matrix unit. They raise an error, and change nothing.

``check_parameters`` looks at the parameters as they were given, each by itself. The other functions
check parameters that must suit each other. ``MatrixUnitConfig`` calls them when it has derived the
values that they need.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.fp.formats import as_format
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2.op import PARTS, Op

from ..fp.parts.pipeline import PIPELINES, RETIMED
from .choices import ASSIGNMENTS, INT8, NARROW, ONE_PAIR, PRECISIONS


def check_parameters(given: Mapping[str, Any]) -> None:
    """Check each parameter by itself, but for those that every tile has.

    Parameters
    ----------
    given : mapping
        The parameters of ``MatrixUnitConfig`` by name. A value may have any type.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is outside its range.
    """
    one_of("preset", given["preset"], [name for name, p in PRESETS.items() if p.has_window])
    check_flag("saturate", given["saturate"])
    check_precisions(given["precisions"], given["k"], given["output"])
    # A str is a sequence as well, and each of its letters would count as an operation.
    if isinstance(given["operations"], str):
        raise ValueError(f"operations must be different names, not {given['operations']!r}")
    check_flag("sparsity", given["sparsity"])
    check_flag("fast", given["fast"])


def check_flag(name: str, value: object) -> None:
    """Raise ``TypeError`` unless a parameter is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def check_precisions(names: Any, k: int, output: Any) -> None:
    """Check the precisions, and what k and the output must be for them."""
    if isinstance(names, str) or not names or len(set(names)) != len(names):
        raise ValueError(f"precisions must be different names, at least one, not {names!r}")
    for name in names:
        one_of("precision", name, PRECISIONS)
    if "tf32" in names and k % 2:
        raise ValueError(f"k must be even with tf32, which takes two lanes, not {k!r}")
    output_bits = as_format(output, "output").storage_bits
    if INT8 in names and output_bits != 32:
        raise ValueError(f"output must have 32 bits with int8, not {output!r}")


def check_buffered(buffered: bool, limbs: Mapping[str, int]) -> None:
    """Check the complex precisions of a buffered unit.

    Parameters
    ----------
    limbs : mapping of str to int
        Complex precision -> steps of each part of its results.

    Raises
    ------
    ValueError
        If a part takes one step, because a slot is read one cycle before the decision about a beat,
        and the slot of such a beat changes in every cycle.
    """
    short = [precision for precision, steps in limbs.items() if steps == 1]
    if buffered and short:
        raise ValueError(f"buffered must be False if {short[0]} takes one step for a part")


def check_fpga(given: Mapping[str, Any]) -> None:
    """Check the options that suit FPGAs against the others.

    Parameters
    ----------
    given : mapping
        The parameters of ``MatrixUnitConfig`` by name, with the assignment that is in use.

    Raises
    ------
    ValueError
        If the elements are too deep, or have a memory, and cannot.
    """
    if given["assignment"] != "element":
        most = max(PIPELINES)
        if given["pipeline"] > most:
            raise ValueError(
                f"pipeline must be at most {most} with the assignment {given['assignment']!r}, "
                f"not {given['pipeline']!r}"
            )
    if given["slot_memory"]:
        for name, needed in (("assignment", "element"), ("dataflow", "broadcast")):
            if given[name] != needed:
                raise ValueError(f"{name} must be {needed!r} with slot_memory, not {given[name]!r}")


def check_semirings(given: Mapping[str, Any], ops: Sequence[Op]) -> None:
    """Check a unit with sparsity or with semirings on FP16 operands.

    Parameters
    ----------
    given : mapping
        The parameters of ``MatrixUnitConfig`` by name.
    ops : sequence of Op
        The operations of the unit.

    Raises
    ------
    ValueError
        If a parameter does not go with sparsity or with the operations.
    """
    if given["sparsity"] and given["k"] % 2:
        raise ValueError(f"k must be even with sparsity, not {given['k']!r}")
    for name, allowed in (
        ("precisions", ("fp16",)),
        ("preset", "ieee"),
        ("output", "fp32"),
        ("multiplier_bits", None),
        ("assignment", "edge"),
    ):
        if given[name] != allowed:
            raise ValueError(
                f"{name} must be {allowed!r} with sparsity or operations other than mma, "
                f"not {given[name]!r}"
            )
    if Op.ADDNORM in ops and given["k"] % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} with addnorm, not {given['k']!r}")


def check_fast(given: Mapping[str, Any]) -> None:
    """Check a unit whose elements are built for a short cycle.

    Parameters
    ----------
    given : mapping
        The parameters of ``MatrixUnitConfig`` by name.

    Raises
    ------
    ValueError
        If a parameter does not go with ``fast``.
    """
    for name, allowed in (
        ("pipeline", tuple(RETIMED)),
        ("assignment", ("pipelined",)),
        ("operations", (("mma",),)),
        ("sparsity", (False,)),
        ("multiplier", ("booth",)),
    ):
        if given[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"{name} must be {words} in a fast unit, not {given[name]!r}")


def check_one_pair(given: Mapping[str, Any], ops: Sequence[Op]) -> None:
    """Check a unit whose semirings take one pair of FP32 operands per beat.

    Parameters
    ----------
    given : mapping
        The parameters of ``MatrixUnitConfig`` by name.
    ops : sequence of Op
        The operations of the unit.

    Raises
    ------
    ValueError
        If a parameter does not go with the operations.
    """
    if given["sparsity"]:
        raise ValueError("sparsity must be False with fp32, not True")
    allowed = [op.mnemonic for op in Op if op is not Op.ADDNORM]
    for name in given["operations"]:
        if name not in allowed:
            raise ValueError(
                f"operation must be one of {', '.join(allowed)} on FP32 operands, not {name!r}"
            )
    # ⊗ is computed by the fused sum of mma, so the unit has mma anyway.
    if Op.MMA not in ops:
        raise ValueError(f"operations must have mma with fp32, not {given['operations']!r}")
    for name in given["precisions"]:
        if name not in ONE_PAIR:
            raise ValueError(
                f"precision must be one of {', '.join(ONE_PAIR)} with operations other than mma "
                f"on FP32 operands, not {name!r}"
            )
    if given["output"] != "fp32":
        raise ValueError(
            f"output must be 'fp32' with operations other than mma, not {given['output']!r}"
        )


def check_pair_lanes(k: int, ops: Sequence[Op], terms: int) -> None:
    """Check that a unit whose semirings take one pair of FP32 operands has the lanes for it.

    An operation whose ⊗ is +, min or max takes the lanes of two FP32 products.

    Parameters
    ----------
    ops : sequence of Op
        The operations of the unit.
    terms : int
        Number of FP32 products in a beat.

    Raises
    ------
    ValueError
        If an operation takes more lanes than the unit has.
    """
    two = [op.mnemonic for op in ops if op.times in ("add", "min", "max")]
    if two and terms < 2:
        raise ValueError(
            f"k must be at least {2 * k // terms} with {two[0]} on FP32 "
            f"operands, which takes two products, not {k!r}"
        )


def check_assignment(
    assignment: str | None, precisions: Sequence[str], floats: Sequence[str]
) -> None:
    """Check that the position at which operands are decoded suits the precisions.

    Parameters
    ----------
    floats : sequence of str
        The floating-point precisions among them.

    Raises
    ------
    ValueError
        If the assignment is unknown or does not suit a precision.
    """
    one_of("assignment", assignment, ASSIGNMENTS)
    inner = assignment == "element"
    allowed = NARROW if inner else (*M3XU, INT8)
    if not inner and not floats:
        raise ValueError(
            f"assignment must be 'element' without a floating precision, not {assignment!r}"
        )
    for name in precisions:
        if name not in allowed:
            raise ValueError(
                f"precision must be one of {', '.join(allowed)} "
                f"with assignment {assignment!r}, not {name!r}"
            )


def check_multiplier_bits(bits: int, assignment: str | None, least: int) -> None:
    """Check the width of the multipliers.

    Parameters
    ----------
    least : int
        Bits of the widest significand that takes one step.

    Raises
    ------
    TypeError
        If ``bits`` is not an integer.
    ValueError
        If elements decode, and so choose the width themselves, or ``bits`` is out of range.
    """
    if assignment == "element":
        raise ValueError(f"multiplier_bits must be None where elements decode, not {bits!r}")
    check_int("multiplier_bits", bits, least, 64)


def check_window(window: int, preset: str, ieee_floats: Sequence[str]) -> None:
    """Check that some precision can have a window other than its machine's.

    Parameters
    ----------
    ieee_floats : sequence of str
        The precisions with ``ieee`` accuracy.

    Raises
    ------
    ValueError
        If all windows are those of a machine.
    """
    if not ieee_floats and PRESETS[preset].is_machine:
        raise ValueError(f"window must be None with preset {preset}, not {window!r}")


def check_complex_slots(slots: int | None, count: int) -> None:
    """Check that a complex result, which takes two slots, finds a pair of them.

    Parameters
    ----------
    slots : int, optional
        The parameter.
    count : int
        Number of slots that the unit holds.

    Raises
    ------
    ValueError
        If the number is odd.
    """
    if count % 2:
        raise ValueError(f"slots must be even with fp32c, not {slots!r}")
