"""Functions that the reader computes itself: queries of the machine, and arithmetic of math.h."""

import math
from collections.abc import Callable

from vitruvian.sim.davinci.cce.compile.scope import Expr
from vitruvian.sim.davinci.cce.compile.storage import MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.values import cast, folded
from vitruvian.sim.davinci.cce.intrinsics.runtime import CceMachine
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import (
    DOUBLE,
    FLOAT,
    INT64,
    UINT64,
    Scalar,
    Type,
    common,
    converter,
)

#: Functions without arguments that read the state of the machine.
_QUERIES: dict[str, Callable[[CceMachine], int]] = {
    "get_block_idx": lambda m: m.block_idx,
    "get_block_num": lambda m: m.block_num,
    "GetBlockIdx": lambda m: (
        m.block_idx * m.registers.get("subblockdim", 1) + m.registers.get("subblockid", 0)
    ),
    "GetBlockNum": lambda m: m.block_num,
    "get_coreid": lambda m: m.block_idx,
    "get_subblockid": lambda m: m.registers.get("subblockid", 0),
    "get_subblockdim": lambda m: m.registers.get("subblockdim", 1),
    "get_task_ration": lambda m: m.registers.get("subblockdim", 1),
    "get_status": lambda m: 0,
    "get_overflow_status": lambda m: 0,
    "get_data_size": lambda m: 0,
    "get_sys_cnt": lambda m: m.steps,
    "get_ctrl": lambda m: m.registers.get("set_ctrl", 0),
    "get_fpc": lambda m: m.registers.get("set_fpc", 0),
}


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _finite(apply: Callable[[float], int]) -> Callable:
    """Return ``apply`` for conversion to int64: NaN becomes 0, an infinity the nearest limit."""

    def convert(value):
        if math.isfinite(value):
            return apply(value)
        return 0 if value != value else (1 << 63) - 1 if value > 0 else -(1 << 63)

    return convert


def _rounded_float(apply: Callable[[float], int]) -> Callable:
    """Return ``apply`` for rounding within a type; NaN and infinities stay as they are."""
    return lambda value: apply(value) if math.isfinite(value) else value


#: Functions of one number, with the type of the result; None is the type of the argument.
_FUNCTIONS: dict[str, tuple[Callable, Type | None]] = {
    "sqrt": (_sqrt, None),
    "sqrtf": (_sqrt, FLOAT),
    "abs": (abs, None),
    "fabs": (abs, None),
    "fabsf": (abs, FLOAT),
    "floor": (_rounded_float(math.floor), None),
    "ceil": (_rounded_float(math.ceil), None),
    "bcnt0": (lambda x: 64 - (x & (1 << 64) - 1).bit_count(), INT64),
    "bcnt1": (lambda x: (x & (1 << 64) - 1).bit_count(), INT64),
    "clz": (lambda x: 64 - (x & (1 << 64) - 1).bit_length(), INT64),
    "conv_f322s32r": (_finite(round), INT64),
    "conv_f322s32f": (_finite(math.floor), INT64),
    "conv_f322s32c": (_finite(math.ceil), INT64),
    "conv_f322s32z": (_finite(int), INT64),
}

_EXTREMES = ("max", "min", "fmax", "fmin", "fmaxf", "fminf")

#: The names of all functions, for suggestions in messages.
BUILTINS = _QUERIES.keys() | _FUNCTIONS.keys() | {"get_imm", "max", "min"}


def builtin(name: str, arguments: list[Expr], position: SourcePosition) -> Expr | None:
    """Compile a call of a builtin function; the result is None for any other function.

    Parameters
    ----------
    name : str
        The function.
    arguments : list of Expr
        The arguments.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    CceError
        If the number or the types of the arguments do not fit.
    """
    if name in _QUERIES:
        _check_count(name, arguments, 0, position)
        ask = _QUERIES[name]
        return Expr(INT64, lambda f: ask(f[MACHINE_SLOT]), position)
    if name == "get_imm":  # an address as a number; casts make it a pointer
        _check_count(name, arguments, 1, position)
        return cast(arguments[0], UINT64)
    if name in _EXTREMES:
        _check_count(name, arguments, 2, position)
        return _extreme(name, arguments, position)
    if name in _FUNCTIONS:
        _check_count(name, arguments, 1, position)
        return _function(name, arguments[0], position)
    return None


def _check_count(name: str, arguments: list[Expr], count: int, position: SourcePosition) -> None:
    if len(arguments) != count:
        words = "1 argument" if count == 1 else f"{count} arguments"
        raise CceError(position, f"{name} must have {words}, not {len(arguments)}")


def _extreme(name: str, arguments: list[Expr], position: SourcePosition) -> Expr:
    a, b = arguments
    if not isinstance(a.type, Scalar) or not isinstance(b.type, Scalar):
        raise CceError(position, f"the arguments of {name} must be numbers")
    type = common(a.type, b.type)
    choose = max if "max" in name else min
    return folded(type, [cast(a, type), cast(b, type)], choose, position)


def _function(name: str, argument: Expr, position: SourcePosition) -> Expr:
    compute, type = _FUNCTIONS[name]
    if not isinstance(argument.type, Scalar):
        raise CceError(position, f"the argument of {name} must be a number, not {argument.type}")
    type = argument.type if type is None else type
    convert = converter(DOUBLE, type)
    if convert is None:
        return folded(type, [argument], compute, position)
    return folded(type, [argument], lambda x: convert(compute(x)), position)
