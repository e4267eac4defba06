"""The text that a kernel's `printf` makes: conversions as in C, on values of known types."""

import re
from collections.abc import Callable, Sequence

from vitruvian.sim.davinci.cce.intrinsics.runtime import TEXT_LIMIT, Machine
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.types import PRIVATE, Pointer, Scalar, Type, promoted

__all__ = ["printer", "unescaped"]

_WIDEST = 1000  # of a field, and digits of a precision
_SPEC = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    r"(?:hh|h|ll|l|j|z|t|L)?(?P<kind>.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"|'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\33"}
_INTEGERS, _FLOATS = "diuxXo", "fFeEgGaA"


def unescaped(literal: str) -> str:
    """The characters that a string or character constant stands for, without its quotes.

    A string may be several, as the parser leaves those that must not be joined.
    """

    def one(match: re.Match[str]) -> str:
        word = match[1]
        if word[0] in "xuU" and len(word) > 1:
            code = int(word[1:9], 16)
            return chr(code) if code < 0x110000 else "\ufffd"
        return chr(int(word, 8)) if word[0] in "01234567" else _ESCAPES.get(word, word)

    return "".join(_ESCAPE.sub(one, part[1:-1]) for part in _QUOTED.findall(literal))


def printer(
    name: str, literal: str, types: Sequence[Type], here: Position
) -> Callable[[Machine, Sequence], str]:
    """Give the function of a machine and the arguments' values that makes the text.

    Parameters
    ----------
    name : str
        Of the function that prints, for messages.
    literal : str
        The format, as the source has it.
    types : sequence of Type
        Of the arguments behind the format.
    here : Position
        Of the call.

    Raises
    ------
    CceError
        For a conversion that C does not have, and for an argument that is missing or of another
        kind than its conversion takes.
    """
    text, at = unescaped(literal), 0
    pieces: list[str | Callable] = []
    left = list(enumerate(types))
    for found in _SPEC.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        if found[0] == "%%":
            pieces.append("%")
            continue
        stars = [_taken(name, found[0], left, _INTEGERS, here) for _ in range(found[0].count("*"))]
        kind = found["kind"]
        if kind not in _INTEGERS + _FLOATS + "csp":
            raise CceError(here, f"{name}: {found[0]} is not a conversion known here")
        for field in (found["width"], found["precision"]):
            if field and field != "*" and int(field[:9]) > _WIDEST:
                raise CceError(here, f"{name}: a width must be at most {_WIDEST}, not {field[:9]}")
        index = _taken(name, found[0], left, kind, here)
        pieces.append(_conversion(found, index, stars, types[index]))
    rest = text[at:]
    if "%" in rest:
        raise CceError(here, f"{name}: a % at the end of the format must be written as %%")
    pieces.append(rest)

    def make(machine: Machine, values: Sequence) -> str:
        return "".join(p if isinstance(p, str) else p(machine, values, here) for p in pieces)

    return make


def _taken(name: str, spec: str, left: list, kind: str, here: Position) -> int:
    """The number of the next argument, which must be of the kind that a conversion takes."""
    if not left:
        raise CceError(here, f"{name}: {spec} must be given an argument")
    index, type = left.pop(0)
    wanted = None
    is_float = isinstance(type, Scalar) and type.is_float
    if kind in _FLOATS and not is_float:
        wanted = "a floating-point number"
    elif kind == "s" and not (isinstance(type, Pointer) and type.target.size == 1):
        wanted = "a string"
    elif kind not in _FLOATS and (is_float or not isinstance(type, Scalar | Pointer)):
        wanted = "an integer"
    if wanted is not None:
        raise CceError(here, f"{name}: {spec} must be given {wanted}, not {type}")
    return index


def _conversion(found: re.Match[str], index: int, stars: list[int], type: Type) -> Callable:
    flags, width, precision, kind = found.group("flags", "width", "precision", "kind")
    prefix = f"%{flags}{width}{'' if precision is None else '.' + precision}"
    bits = 8 * (promoted(type).size if isinstance(type, Scalar) else type.size)
    letter = {"i": "d", "u": "d", "p": "s", "c": "s", "a": "s", "A": "s"}.get(kind, kind)

    def convert(machine: Machine, values: Sequence, here: Position) -> str:
        value = values[index]
        if kind in "diuxXo":
            value &= (1 << bits) - 1
            if kind in "di" and value >> bits - 1:
                value -= 1 << bits
        elif kind == "p":
            value = hex(value & (1 << 64) - 1)
        elif kind == "c":
            value = chr(value & 255)
        elif kind in "aA":
            value = float.hex(value) if kind == "a" else float.hex(value).upper()
        elif kind == "s":
            value = _string(machine, type, value, here)
        fields = [max(-_WIDEST, min(_WIDEST, values[i])) for i in stars]
        return (prefix + letter) % (*fields, value)

    return convert


def _string(machine: Machine, type: Type, address: int, here: Position) -> str:
    """The characters from an address up to the first zero."""
    assert isinstance(type, Pointer)  # _taken has seen to it
    if address == 0:
        return "(null)"
    found = bytearray()
    while len(found) < TEXT_LIMIT:
        value = int(machine.load(type.space, address + len(found), type.target, here)) & 255
        if value == 0:
            break
        found.append(value)
        if type.space != PRIVATE:
            machine.step(here)  # a load of its own
    return found.decode(errors="replace")
