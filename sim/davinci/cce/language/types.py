"""C's types, and their arithmetic on Python's numbers.

A value is an int, a float that its type can hold exactly, or, for a pointer, the byte address.
"""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from vitruvian.sim.davinci.cce.language.keywords import TYPE_NAMES

__all__ = [
    "BOOL",
    "DOUBLE",
    "EXACT",
    "FLOAT",
    "HALF",
    "INT",
    "INT64",
    "NAMED",
    "PRIVATE",
    "UINT64",
    "VOID",
    "Array",
    "Pointer",
    "Reference",
    "Scalar",
    "Structure",
    "Type",
    "Void",
    "common",
    "converter",
    "decode",
    "encode",
    "fit",
    "integer",
    "is_number",
    "leaves",
    "promoted",
]

#: The address space of a function's own variables.
PRIVATE = "private"


@dataclass(frozen=True)
class Scalar:
    """A number.

    Attributes
    ----------
    kind : {"i", "u", "f", "bf"}
        Signed, unsigned, floating point, bfloat16.
    size : int
        Bytes.
    name : str
        For messages; that of an enumeration also tells what its values are good for.
    is_bool : bool
    """

    kind: str
    size: int
    name: str = field(compare=False)
    is_bool: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind in ("f", "bf")

    @property
    def align(self) -> int:
        """Bytes that its address is a multiple of in a structure."""
        return self.size

    @property
    def dtype(self) -> str:
        """Its name as an operand's dtype."""
        if self.is_bool:
            return "uint8"
        bits = 8 * self.size
        return {"i": f"int{bits}", "u": f"uint{bits}", "f": f"fp{bits}", "bf": "bf16"}[self.kind]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void:
    """No value."""

    size: int = 1  # for arithmetic on pointers to it
    align: int = 1

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Pointer:
    """An address in one memory, of a known type."""

    space: str
    target: "Type"
    size: int = 8
    align: int = 8

    def __str__(self) -> str:
        return f"{'' if self.space == PRIVATE else self.space + ' '}{self.target}*"


@dataclass(frozen=True)
class Reference(Pointer):
    """A parameter that stands for something of the caller's."""

    def __str__(self) -> str:
        return f"{self.target}&"


@dataclass(frozen=True)
class Array:
    """So many of a type, one after the other."""

    element: "Type"
    count: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.element.size * self.count

    @property
    def align(self) -> int:
        """That of an element."""
        return self.element.align

    def __str__(self) -> str:
        return f"{self.element}[{self.count}]"


@dataclass(frozen=True)
class Structure:
    """Named members at fixed offsets: a struct, or a union where all of them are 0."""

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

#: Types with a name of one word.
NAMED: dict[str, Type] = {
    name: Scalar(kind, size, name) for name, (kind, size) in TYPE_NAMES.items()
}
NAMED |= {"half": HALF, "bfloat16_t": BFLOAT, "int64_t": INT64, "uint64_t": UINT64}
NAMED |= {"void": VOID, "bool": BOOL, "_Bool": BOOL, "float": FLOAT, "double": DOUBLE}


def integer(words: list[str]) -> Scalar | None:
    """The type of `unsigned long int` and the like, or None for words that are not of integers."""
    counts = {w: words.count(w) for w in words}
    if set(words) - {"signed", "unsigned", "char", "short", "int", "long"}:
        return None
    size = 1 if "char" in counts else 2 if "short" in counts else 8 if "long" in counts else 4
    return Scalar("u" if "unsigned" in counts else "i", size, " ".join(words))


def is_number(type: Type) -> bool:
    """Whether arithmetic can be done with it."""
    return isinstance(type, Scalar)


def leaves(type: Type, offset: int = 0) -> Iterator[tuple[Type, int]]:
    """(type, offset) of every number or pointer in a type."""
    if isinstance(type, Structure):
        for _, kind, at in type.members:
            yield from leaves(kind, offset + at)
    elif isinstance(type, Array):
        for i in range(type.count):
            yield from leaves(type.element, offset + i * type.element.size)
    else:
        yield type, offset


def promoted(type: Scalar) -> Scalar:
    """The integer promotions."""
    if type.is_float or type.size > 4:
        return type
    return UINT if type.size == 4 and type.kind == "u" else INT


def common(a: Scalar, b: Scalar) -> Scalar:
    """The usual arithmetic conversions. Of two 16-bit formats that differ it is float."""
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return a if a.is_float else b
        if a.kind != b.kind and a.size == b.size == 2:
            return FLOAT
        return a if a.size >= b.size else b
    a, b = promoted(a), promoted(b)
    if a.size != b.size:
        return a if a.size > b.size else b
    return a if a.kind == "u" else b


#: What `fit` says of an argument that is what is wanted.
EXACT = 3


def fit(given: Sequence[Type], wanted: Sequence[Type]) -> int | None:
    """How well arguments fit parameters, the more the better; None if they do not."""
    if len(given) != len(wanted):
        return None
    scores = [_fit(*pair) for pair in zip(given, wanted, strict=True)]
    return None if None in scores else sum(x for x in scores if x is not None)


def _fit(given: Type, wanted: Type) -> int | None:
    if isinstance(wanted, Reference):
        wanted = wanted.target
    if given == wanted:
        return EXACT
    if isinstance(given, Scalar) and isinstance(wanted, Scalar):
        widened = DOUBLE if given == FLOAT else promoted(given)
        return EXACT - 1 if wanted == widened else 1
    if isinstance(given, Pointer) and isinstance(wanted, Pointer):
        return 1 if given.space == wanted.space and isinstance(wanted.target, Void) else None
    return None


def _to_integer(type: Scalar) -> Callable:
    bits = 8 * type.size
    mask, half, full = (1 << bits) - 1, 1 << (bits - 1), 1 << bits

    def signed(value):
        value &= mask
        return value - full if value >= half else value

    return signed if type.kind == "i" else mask.__and__


def _whole(value: float) -> int:
    """A floating-point number without its fraction; 0 for NaN, the far ends for infinities."""
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
    """To 8 significant bits, ties to even; by way of float's bits where no tie can arise twice."""
    if value != value or math.isinf(value) or value == 0:
        return float(value)
    fraction, exponent = math.frexp(value)
    bits = min(8, exponent + 133)  # below 2^-126 fewer
    if bits < 0:
        return math.copysign(0.0, value)
    rounded = math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)
    return rounded if abs(rounded) < 2.0**128 else math.copysign(math.inf, value)


@cache
def converter(source: Type, target: Type) -> Callable | None:
    """Function that makes a value of one type one of the other; None if it is that already.

    Integers wrap; a floating-point number loses its fraction first (NaN gives 0). Floating point
    rounds to nearest, ties to even, and overflows to infinity.
    """
    if isinstance(source, Pointer):
        source = INT64  # one below the first byte is −1
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
        return lambda value: wrap(_whole(value))
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
    """The bytes of a value, little end first."""
    if isinstance(type, Scalar) and type.kind == "bf":
        return struct.pack("<f", value)[2:]
    if isinstance(type, Pointer):  # one below the first byte is far above
        value &= (1 << 64) - 1
    return _codec(type).pack(value)


def decode(type: Type, data: bytes):
    """The value of bytes."""
    if isinstance(type, Scalar) and type.kind == "bf":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return _codec(type).unpack(data)[0]
