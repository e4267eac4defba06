"""A recorded intrinsic becomes the call that the sink of CCE C takes."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from vitruvian.sim.davinci.cce.intrinsics.packed_args import unpack
from vitruvian.sim.davinci.cce.intrinsics.runtime import IntrinsicCall
from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic, bind, select
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table, pipe_name
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import (
    NAMED,
    PRIVATE,
    UINT64,
    Pointer,
    Scalar,
    Type,
    converter,
)
from vitruvian.sim.davinci.cce.sink.context import GM_BASE
from vitruvian.sim.davinci.chip.model import GM

from .header import ENUMS, TYPES
from .records import Argument

#: Intrinsics whose callers pass packed words, of which the parameters' types keep the low bits.
_NARROWED = ("img2colv2_cbuf_to_ca", "img2colv2_cbuf_to_cb", "img2colv2_cbuf_to_ca_s4")

#: Intrinsics with two addresses in one pointer, which may look like one to global memory.
_PAIRED = ("load_cbuf_to_cb_sp",)

_SPACES = ("GM", "L1", "L0A", "L0B", "L0C", "UB", "BT", "FB")


def call_of(
    name: str, arguments: Sequence[Argument], gm_bytes: int, position: SourcePosition
) -> IntrinsicCall:
    """Return the call of an intrinsic, with its arguments checked.

    Parameters
    ----------
    name : str
        A name of ``intrinsic_table``.
    arguments : sequence of Argument
        The arguments as recorded.
    gm_bytes : int
        Number of bytes of the kernel's arrays in global memory.
    position : SourcePosition
        The user's line.

    Raises
    ------
    CceError
        If no signature fits, an argument is out of its bounds, or a pointer to global memory does
        not point into an array of the kernel.
    """
    shape = tuple(
        (
            a.tag,
            a.type,
            a.tag == "p" and name not in _PAIRED and GM_BASE <= a.value < 2 * GM_BASE,
        )
        for a in arguments
    )
    signature, types, scalar = _selected(name, shape, position)
    values: list[Any] = []
    for argument, type, parameter in zip(arguments, types, signature.parameters, strict=False):
        value = 0 if argument.tag == "w" else argument.value
        if isinstance(type, Pointer) and type.space == GM:
            if not GM_BASE <= value < GM_BASE + max(gm_bytes, 1):
                message = f"must point into an array of the kernel, not to {value:#x}"
                raise CceError(position, f"{name}: {parameter.name} {message}")
        if name in _NARROWED and parameter.kind == "int" and argument.tag == "i":
            value &= 0xFFFF if parameter.high > 255 else 0xFF
        values.append(value)
    types = list(types)
    if scalar is not None:
        index, type = scalar
        convert = converter(types[index], type)  # pyright: ignore[reportArgumentType]
        values[index] = convert(values[index]) if convert else values[index]
        types[index] = type
    bound = unpack(signature, bind(signature, values, types, position), position)
    for parameter, argument in zip(signature.parameters, arguments, strict=False):
        if argument.tag == "w":
            bound[parameter.name] = argument.value
        elif parameter.kind == "pipe_t":
            bound[parameter.name] = pipe_name(name, bound[parameter.name], position)
    # The pipe may be an argument, as for set_flag.
    pipe = bound.get(signature.pipe, signature.pipe)
    return IntrinsicCall(name, pipe, bound, position)


def _selected(
    name: str, shape: tuple, position: SourcePosition
) -> tuple[Intrinsic, tuple[Type, ...], tuple[int, Type] | None]:
    try:
        return _fitting(name, shape)
    except CceError as error:
        raise CceError(position, error.message) from None


@cache
def _fitting(
    name: str, shape: tuple
) -> tuple[Intrinsic, tuple[Type, ...], tuple[int, Type] | None]:
    """Return the signature and the types of its arguments, and the index of a vector's scalar.

    The compiler of the recorder knows no address spaces, so that the parameter of the signature
    says which memory a pointer means.
    """
    candidates = intrinsic_table()[name]
    counted = [c for c in candidates if c.fewest <= len(shape) <= len(c.parameters)]
    types: list[Type] = []
    for index, (tag, type, is_global) in enumerate(shape):
        kinds = [c.parameters[index].kind for c in counted]
        types.append(_type(tag, type, is_global, kinds))
    nowhere = SourcePosition("", 0)
    try:
        signature, _ = select(candidates, types, nowhere)
    except CceError:
        # C++ converts an enumeration where an integer is wanted, and a null pointer to any type.
        types = [NAMED["int64_t"] if shape[i][0] == "e" else t for i, t in enumerate(types)]
        pointers = [t for t in types if isinstance(t, Pointer)]
        some = next((t.target for t in pointers if t.target is not TYPES[0]), TYPES[0])
        types = [
            Pointer(t.space, some) if isinstance(t, Pointer) and t.target is TYPES[0] else t
            for t in types
        ]
        signature, _ = select(candidates, types, nowhere)
    vectors = [
        t.target
        for t, p in zip(types, signature.parameters, strict=False)
        if isinstance(t, Pointer) and p.name in ("src", "dst", "src0")
    ]
    scalars = [i for i, p in enumerate(signature.parameters[: len(types)]) if p.name == "scalar"]
    if scalars and vectors and isinstance(vectors[-1], Scalar):
        return signature, tuple(types), (scalars[0], vectors[-1])
    return signature, tuple(types), None


def _type(tag: str, type: int, is_global: bool, kinds: Sequence[str]) -> Type:
    if tag == "w":
        return Pointer(PRIVATE, UINT64)
    if tag == "e":
        return NAMED[ENUMS[type - 1]] if type else NAMED["int64_t"]
    if tag == "?":
        raise CceError(SourcePosition("", 0), "an argument must be a number or a pointer")
    if tag != "p":
        return TYPES[type]
    near = next((k for k in kinds if k in _SPACES and k != GM), None)
    if near is None and "address" in kinds:
        near = "BT"
    return Pointer(GM if is_global else near or (GM if GM in kinds else "UB"), TYPES[type])
