"""``DumpTensor``: the text with elements of a memory that a kernel asks for.

The text has the form that the public documentation of AscendC shows: a line with the user's number,
the address, the type and the memory, then a line with the elements. A pointer takes the place of
AscendC's tensor.
"""

from collections.abc import Sequence

from vitruvian.sim.davinci.cce.compile.scope import Expr
from vitruvian.sim.davinci.cce.compile.storage import MACHINE_SLOT
from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, CceMachine
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import PRIVATE, VOID, Pointer, Scalar

#: Memories that the function can show on the device.
_SPACES = ("GM", "L1", "UB", "L0C")

_LARGEST = 2**32 - 1  # of the user's number, a uint32_t


def dump_tensor(name: str, arguments: list[Expr], position: SourcePosition) -> Expr:
    """Compile a call ``DumpTensor(pointer, number, count)``.

    Parameters
    ----------
    name : str
        The function, for messages.
    arguments : list of Expr
        The first element, the user's number, and the number of elements.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    CceError
        If the arguments are not a pointer to numbers in GM, L1, UB or L0C and two integers.
    """
    if len(arguments) != 3:
        message = f"must have 3 arguments (pointer, number, count), not {len(arguments)}"
        raise CceError(position, f"{name}: {message}")
    type = arguments[0].type
    if not isinstance(type, Pointer) or type.space not in _SPACES:
        shown = "of the function's own variables" if getattr(type, "space", "") == PRIVATE else type
        raise CceError(
            position, f"{name}: the pointer must be into {', '.join(_SPACES)}, not {shown}"
        )
    target = type.target
    if not isinstance(target, Scalar):
        raise CceError(position, f"{name}: the pointer must be to numbers, not to {target}")
    for argument in arguments[1:]:
        if not isinstance(argument.type, Scalar) or argument.type.is_float:
            message = f"number and count must be integers, not {argument.type}"
            raise CceError(position, f"{name}: {message}")
    gets = tuple(argument.get for argument in arguments)
    space, dtype = type.space, target.dtype

    def get(f):
        machine: CceMachine = f[MACHINE_SLOT]
        address, number, count = (g(f) for g in gets)
        if not 0 <= number <= _LARGEST:
            raise CceError(position, f"{name}: number must be 0 to {_LARGEST}, not {number}")
        if count < 1:
            raise CceError(position, f"{name}: count must be 1 or more, not {count}")
        machine.step(position, count)  # so that the limit of steps bounds the work
        source = Address(space, address, dtype)
        values = machine.sink.peek(source, count, position)
        machine.print(_text(number, source, target, values), position)

    return Expr(VOID, get, position)


def _text(number: int, source: Address, target: Scalar, values: Sequence) -> str:
    name = {"fp16": "float16", "fp32": "float32", "bf16": "bfloat16"}.get(source.dtype)
    head = f"DumpTensor: desc={number}, addr={source.address:#x}, data_type={name or source.dtype}"
    shown = ", ".join(f"{v:f}" if target.is_float else str(v) for v in values)
    return f"{head}, position={source.space}, dump_size={len(values)}\n[{shown}]\n"
