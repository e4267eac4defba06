"""Compile calls of intrinsics: choose the signature, check the arguments, and issue the call."""

from collections.abc import Callable
from typing import Any

from vitruvian.sim.davinci.cce.compile.scope import Expr
from vitruvian.sim.davinci.cce.compile.storage import MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.values import cast
from vitruvian.sim.davinci.cce.intrinsics.packed_args import unpack
from vitruvian.sim.davinci.cce.intrinsics.runtime import CceMachine, IntrinsicCall
from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic, bind, select
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table, pipe_name
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import PRIVATE, UINT64, VOID, Pointer, Scalar, Type


def intrinsic(name: str, arguments: list[Expr], position: SourcePosition) -> Expr:
    """Compile a call of an intrinsic.

    Parameters
    ----------
    name : str
        A name of ``intrinsic_table``.
    arguments : list of Expr
        The arguments.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    CceError
        If no signature fits the types of the arguments.
    """
    signature, _ = select(intrinsic_table()[name], [a.type for a in arguments], position)
    arguments = _with_scalars_of_vectors(signature, arguments)
    types = [a.type for a in arguments]
    constants = [a.constant for a in arguments]
    if all(c is not None for c in constants):
        return _with_constants(signature, [c[0] for c in constants if c], types, position)
    gets = tuple(a.get for a in arguments)

    def get(f):
        machine: CceMachine = f[MACHINE_SLOT]
        machine.step(position)
        bound = bind(signature, [g(f) for g in gets], types, position)
        _issue(machine, signature, unpack(signature, bound, position), position)

    return Expr(VOID, get, position)


def _with_constants(
    signature: Intrinsic, values: list[Any], types: list[Type], position: SourcePosition
) -> Expr:
    """Compile a call with constant arguments, which are checked only once."""
    try:
        bound = unpack(signature, bind(signature, values, types, position), position)
    except CceError as error:
        # A call with wrong constants is a mistake only if the kernel reaches it.
        return Expr(VOID, _raising(error), position)

    def get(f):
        f[MACHINE_SLOT].step(position)
        _issue(f[MACHINE_SLOT], signature, bound, position)

    return Expr(VOID, get, position)


def _with_scalars_of_vectors(signature: Intrinsic, arguments: list[Expr]) -> list[Expr]:
    """Convert the scalar operand of a vector intrinsic to the type of the vectors' elements."""
    vectors = [
        a.type.target
        for a, p in zip(arguments, signature.parameters, strict=False)
        if isinstance(a.type, Pointer) and p.name in ("src", "dst", "src0")
    ]
    result = []
    for argument, parameter in zip(arguments, signature.parameters, strict=False):
        if parameter.name == "scalar" and vectors and isinstance(vectors[-1], Scalar):
            argument = cast(argument, vectors[-1])
        result.append(argument)
    return result


def _raising(error: CceError) -> Callable:
    """Return a function of the frame that raises an error."""

    def get(f):
        raise error

    return get


def _issue(
    machine: CceMachine, signature: Intrinsic, bound: dict, position: SourcePosition
) -> None:
    """Pass an intrinsic to the sink.

    Numbers of pipes become names, and pointers to private memory become the values behind them.
    """
    machine.issue(position)
    name, pipe = signature.name, signature.pipe
    arguments = dict(bound)
    for parameter in signature.parameters:
        if parameter.kind == "pipe_t":
            arguments[parameter.name] = pipe_name(name, arguments[parameter.name], position)
        elif parameter.kind == "OWN":
            start = arguments[parameter.name].address
            count = 4 if parameter.name == "lists" else 8
            words = [machine.load(PRIVATE, start + 8 * i, UINT64, position) for i in range(count)]
            arguments[parameter.name] = tuple(words)
    if pipe in arguments:  # the pipe is an argument, as for set_flag
        pipe = arguments[pipe]
    if name.startswith("set_") and "config" in arguments:
        machine.registers[name] = arguments["config"]
    machine.sink.issue(IntrinsicCall(name, pipe, arguments, position))
