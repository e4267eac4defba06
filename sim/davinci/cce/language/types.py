"""The types of C, and conversions between their values.

A value is a Python int, a Python float that the type can represent exactly, or, for a pointer, the
byte address.
"""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from vitruvian.sim.davinci.cce.language.keywords import TYPE_NAMES

#: The address space of the kernel's own variables.
PRIVATE = "private"


@dataclass(frozen=True)
class Scalar:
    """A number type.

    Attributes
    ----------
    kind : {"i", "u", "f", "bf"}
        Signed integer, unsigned integer, IEEE floating point, or bfloat16.
    size : int
        The size in bytes.
    name : str
        The name in messages. The name of an enumeration also decides which parameters of
        intrinsics accept its values.
    is_bool : bool
        If True, the type is ``bool``: values are 0 and 1.
    """

    kind: str
    size: int
    name: str = field(compare=False)
    is_bool: bool = False

    @property
    def is_float(self) -> bool:
        """True for a floating-point type."""
        return self.kind in ("f", "bf")

    @property
    def align(self) -> int:
        """The alignment in a structure, in bytes."""
        return self.size

    @property
    def dtype(self) -> str:
        """The name of the type as an operand's dtype."""
        if self.is_bool:
            return "uint8"
        bits = 8 * self.size
        return {"i": f"int{bits}", "u": f"uint{bits}", "f": f"fp{bits}", "bf": "bf16"}[self.kind]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void:
    """The type void."""

    size: int = 1  # so that arithmetic on void pointers counts bytes
    align: int = 1

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Pointer:
    """A pointer to a ``target`` in the memory ``space``."""

    space: str
    target: "Type"
    size: int = 8
    align: int = 8

    def __str__(self) -> str:
        return f"{'' if self.space == PRIVATE else self.space + ' '}{self.target}*"


@dataclass(frozen=True)
class Reference(Pointer):
    """A C++ reference, stored as the address of the object that it refers to."""

    def __str__(self) -> str:
        return f"{self.target}&"


@dataclass(frozen=True)
class Array:
    """An array of ``count`` elements."""

    element: "Type"
    count: int

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.element.size * self.count

    @property
    def align(self) -> int:
        """The alignment of an element, in bytes."""
        return self.element.align

    def __str__(self) -> str:
        return f"{self.element}[{self.count}]"


@dataclass(frozen=True)
class Structure:
    """A structure or union; ``members`` are (name, type, byte offset), all 0 for a union."""

    name: str
    members: tuple[tuple[str, "Type", int], ...]
    size: int
    align: int

    def __str__(self) -> str:
        return f"struct {self.name}"


Type = Scalar | Void | Pointer | Array | Structure

VOID = Void()
BOOL = Scalar("u", 1, "bool", True)
INT = Scalar("i", 4, "int")
UINT = Scalar("u", 4, "unsigned int")
INT64 = Scalar("i", 8, "int64_t")
UINT64 = Scalar("u", 8, "uint64_t")
HALF = Scalar("f", 2, "half")
BFLOAT = Scalar("bf", 2, "bfloat16_t")
FLOAT = Scalar("f", 4, "float")
DOUBLE = Scalar("f", 8, "double")

#: Types whose name is a single word.
NAMED: dict[str, Type] = {
    name: Scalar(kind, size, name) for name, (kind, size) in TYPE_NAMES.items()
}
NAMED |= {"half": HALF, "bfloat16_t": BFLOAT, "int64_t": INT64, "uint64_t": UINT64}
NAMED |= {"void": VOID, "bool": BOOL, "_Bool": BOOL, "float": FLOAT, "double": DOUBLE}


def integer(words: list[str]) -> Scalar | None:
    """Return the type that words such as ``unsigned long int`` name, or None for other words."""
    counts = {w: words.count(w) for w in words}
    if set(words) - {"signed", "unsigned", "char", "short", "int", "long"}:
        return None
    # The device's data model is LP64: long has 8 bytes.
    size = 1 if "char" in counts else 2 if "short" in counts else 8 if "long" in counts else 4
    return Scalar("u" if "unsigned" in counts else "i", size, " ".join(words))


def is_number(type: Type) -> bool:
    """Return True for a type with arithmetic."""
    return isinstance(type, Scalar)


def leaves(type: Type, offset: int = 0) -> Iterator[tuple[Type, int]]:
    """Yield the (type, byte offset) of every number and pointer in a type."""
    if isinstance(type, Structure):
        for _, kind, at in type.members:
            yield from leaves(kind, offset + at)
    elif isinstance(type, Array):
        for i in range(type.count):
            yield from leaves(type.element, offset + i * type.element.size)
    else:
        yield type, offset


def promoted(type: Scalar) -> Scalar:
    """Return the type after the integer promotions (C11, section 6.3.1.1)."""
    if type.is_float or type.size > 4:
        return type
    return UINT if type.size == 4 and type.kind == "u" else INT


def common(a: Scalar, b: Scalar) -> Scalar:
    """Return the type of the usual arithmetic conversions (C11, section 6.3.1.8).

    For ``half`` with ``bfloat16_t`` the type is ``float``.
    """
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return a if a.is_float else b
        if a.kind != b.kind and a.size == b.size == 2:
            # Neither of the two 16-bit formats holds all numbers of the other.
            return FLOAT
        return a if a.size >= b.size else b
    a, b = promoted(a), promoted(b)
    if a.size != b.size:
        return a if a.size > b.size else b
    # Of two equally large types, the unsigned one wins.
    return a if a.kind == "u" else b


#: The score of an argument whose type is exactly the parameter's.
EXACT = 3


def fit(arguments: Sequence[Type], parameters: Sequence[Type]) -> int | None:
    """Return how well arguments fit parameters, or None if they do not fit.

    The score is a sum over the arguments, and a higher score is a better fit: ``EXACT`` for the
    same type, ``EXACT - 1`` for a promotion, 1 for a conversion.
    """
    if len(arguments) != len(parameters):
        return None
    scores = [_fit(*pair) for pair in zip(arguments, parameters, strict=True)]
    return None if None in scores else sum(x for x in scores if x is not None)


def _fit(argument: Type, parameter: Type) -> int | None:
    if isinstance(parameter, Reference):
        parameter = parameter.target
    if argument == parameter:
        return EXACT
    # In C++ a promotion (float to double, short to int) is better than any other conversion.
    if isinstance(argument, Scalar) and isinstance(parameter, Scalar):
        widened = DOUBLE if argument == FLOAT else promoted(argument)
        return EXACT - 1 if parameter == widened else 1
    if isinstance(argument, Pointer) and isinstance(parameter, Pointer):
        return (
            1 if argument.space == parameter.space and isinstance(parameter.target, Void) else None
        )
    return None


def _to_integer(type: Scalar) -> Callable:
    """Return the function that wraps an integer modulo 2^bits into the range of a type."""
    bits = 8 * type.size
    mask, half, full = (1 << bits) - 1, 1 << (bits - 1), 1 << bits

    def signed(value):
        value &= mask
        return value - full if value >= half else value

    return signed if type.kind == "i" else mask.__and__


def _truncated(value: float) -> int:
    """Truncate a number towards zero; NaN becomes 0, an infinity the nearest int64 limit."""
    if value != value:
        return 0
    if math.isinf(value):
        return (1 << 63) - 1 if value > 0 else -(1 << 63)
    return int(value)


def _to_half(value) -> float:
    try:
        return struct.unpack("<e", struct.pack("<e", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_float(value) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_bfloat(value) -> float:
    """Round to bfloat16: 8 significant bits, ties to even, in a single rounding."""
    if value != value or math.isinf(value) or value == 0:
        return float(value)
    fraction, exponent = math.frexp(value)
    bits = min(8, exponent + 133)  # fewer for subnormals, below 2^-126
    if bits < 0:
        return math.copysign(0.0, value)
    rounded = math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)
    return rounded if abs(rounded) < 2.0**128 else math.copysign(math.inf, value)


@cache
def converter(source: Type, target: Type) -> Callable | None:
    """Return the function that converts a value from one type to another.

    The result is None if every value stays as it is. Integers wrap; a floating-point number is
    truncated first (NaN becomes 0). Conversions to floating point round to nearest, ties to even,
    and overflow to infinity.
    """
    if isinstance(source, Pointer):
        source = INT64  # the address before byte 0 is −1
    if isinstance(target, Pointer):
        target = UINT64
    if not isinstance(source, Scalar) or not isinstance(target, Scalar):
        return None
    if target.is_bool:
        return None if source.is_bool else lambda value: int(value != 0)
    if target.is_float:
        if source.kind == target.kind and source.size <= target.size:
            return None
        if target.kind == "bf":
            return _to_bfloat
        if target.size == 8:
            return float
        return _to_half if target.size == 2 else _to_float
    wrap = _to_integer(target)
    if source.is_float:
        return lambda value: wrap(_truncated(value))
    # All values of a smaller type are in range, unless a negative one becomes unsigned.
    fits = source.size < target.size and (source.kind == "u" or target.kind == "i")
    same = source.size == target.size and source.kind == target.kind
    return None if fits or same else wrap


@cache
def _codec(type: Type) -> struct.Struct:
    if isinstance(type, Pointer):
        return struct.Struct("<Q")
    assert isinstance(type, Scalar)
    if type.kind == "f":
        return struct.Struct({2: "<e", 4: "<f", 8: "<d"}[type.size])
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[type.size]
    return struct.Struct("<" + (letter if type.kind == "i" else letter.upper()))


def encode(type: Type, value) -> bytes:
    """Return the bytes of a value, little-endian."""
    if isinstance(type, Scalar) and type.kind == "bf":
        return struct.pack("<f", value)[2:]
    if isinstance(type, Pointer):  # a negative address wraps
        value &= (1 << 64) - 1
    return _codec(type).pack(value)


def decode(type: Type, data: bytes):
    """Return the value that little-endian bytes represent."""
    if isinstance(type, Scalar) and type.kind == "bf":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return _codec(type).unpack(data)[0]
