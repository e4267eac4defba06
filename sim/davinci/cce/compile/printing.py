"""The text that a kernel's ``printf`` prints: the conversions of C on values of known types."""

import re
from collections.abc import Callable, Sequence

from vitruvian.sim.davinci.cce.intrinsics.runtime import TEXT_LIMIT, CceMachine
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import PRIVATE, Pointer, Scalar, Type, promoted

_WIDEST = 1000  # characters of a field, and digits of a precision
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
    """Return the characters of a string or character literal, without its quotes.

    The literal may be a sequence of strings. They are joined only after their escapes have been
    replaced, since an escape must not continue in the next string.
    """

    def character(match: re.Match[str]) -> str:
        word = match[1]
        if word[0] in "xuU" and len(word) > 1:
            code = int(word[1:9], 16)
            return chr(code) if code < 0x110000 else "\ufffd"
        return chr(int(word, 8)) if word[0] in "01234567" else _ESCAPES.get(word, word)

    return "".join(_ESCAPE.sub(character, part[1:-1]) for part in _QUOTED.findall(literal))


def printer(
    name: str, literal: str, types: Sequence[Type], position: SourcePosition
) -> Callable[[CceMachine, Sequence], str]:
    """Return the function that formats the text; it takes a machine and the arguments' values.

    Parameters
    ----------
    name : str
        The function that prints, for messages.
    literal : str
        The format as a string literal.
    types : sequence of Type
        The types of the arguments after the format.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    CceError
        If C does not have a conversion, or its argument is missing or has the wrong type.
    """
    text, at = unescaped(literal), 0
    pieces: list[str | Callable] = []
    remaining = list(enumerate(types))
    for match in _SPEC.finditer(text):
        pieces.append(text[at : match.start()])
        at = match.end()
        if match[0] == "%%":
            pieces.append("%")
            continue
        stars = [
            _taken(name, match[0], remaining, _INTEGERS, position)
            for _ in range(match[0].count("*"))
        ]
        kind = match["kind"]
        if kind not in _INTEGERS + _FLOATS + "csp":
            raise CceError(position, f"{name}: {match[0]} is not a known conversion")
        for field in (match["width"], match["precision"]):
            if field and field != "*" and int(field[:9]) > _WIDEST:
                raise CceError(
                    position, f"{name}: a width must be at most {_WIDEST}, not {field[:9]}"
                )
        index = _taken(name, match[0], remaining, kind, position)
        pieces.append(_conversion(match, index, stars, types[index]))
    rest = text[at:]
    if "%" in rest:
        raise CceError(position, f"{name}: a % at the end of the format must be written as %%")
    pieces.append(rest)

    def text_of(machine: CceMachine, values: Sequence) -> str:
        return "".join(p if isinstance(p, str) else p(machine, values, position) for p in pieces)

    return text_of


def _taken(name: str, spec: str, remaining: list, kind: str, position: SourcePosition) -> int:
    """Return the index of the next argument, whose type must fit its conversion."""
    if not remaining:
        raise CceError(position, f"{name}: {spec} must have an argument")
    index, type = remaining.pop(0)
    expected = None
    is_float = isinstance(type, Scalar) and type.is_float
    if kind in _FLOATS and not is_float:
        expected = "a floating-point number"
    elif kind == "s" and not (isinstance(type, Pointer) and type.target.size == 1):
        expected = "a string"
    elif kind not in _FLOATS and (is_float or not isinstance(type, Scalar | Pointer)):
        expected = "an integer"
    if expected is not None:
        message = f"the argument of {spec} must be {expected}, not {type}"
        raise CceError(position, f"{name}: {message}")
    return index


def _conversion(match: re.Match[str], index: int, stars: list[int], type: Type) -> Callable:
    """Return the function that formats the argument at ``index``; ``stars`` index its widths."""
    flags, width, precision, kind = match.group("flags", "width", "precision", "kind")
    prefix = f"%{flags}{width}{'' if precision is None else '.' + precision}"
    bits = 8 * (promoted(type).size if isinstance(type, Scalar) else type.size)
    # Python's % operator formats the rest as C does.
    letter = {"i": "d", "u": "d", "p": "s", "c": "s", "a": "s", "A": "s"}.get(kind, kind)

    def convert(machine: CceMachine, values: Sequence, position: SourcePosition) -> str:
        value = values[index]
        if kind in "diuxXo":  # C reads the bits of the argument as the type of the conversion
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
            value = _string(machine, type, value, position)
        fields = [max(-_WIDEST, min(_WIDEST, values[i])) for i in stars]
        return (prefix + letter) % (*fields, value)

    return convert


def _string(machine: CceMachine, type: Type, address: int, position: SourcePosition) -> str:
    """Return the characters from an address up to the first zero."""
    assert isinstance(type, Pointer)  # _taken has checked it
    if address == 0:
        return "(null)"
    content = bytearray()
    while len(content) < TEXT_LIMIT:
        value = int(machine.load(type.space, address + len(content), type.target, position)) & 255
        if value == 0:
            break
        content.append(value)
        if type.space != PRIVATE:
            machine.step(position)  # each character is a scalar load
    return content.decode(errors="replace")
