"""Machine code as text, one instruction in a line, and back.

    mmad.M c=L0C:fp32:0 a=L0A:fp16:0 b=L0B:fp16:0 init=zero m=32 k=32 n=32
    vadd.V dst=UB:fp16:0 src0=UB:fp16:2048 src1=UB:fp16:4096 repeat=8 dst_block_stride=1 …

An operand is its buffer, its dtype and its first byte. Fields have the names of ``OPERATIONS``, and
those that are 0 or absent are left out. ``mask`` and other lists are hexadecimal words. Everything
behind a ``#`` is a comment.
"""

import shlex
from collections.abc import Iterable, Sequence

from vitruvian.common.validate import nearest
from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, UNITS, Encoding, Member

from .decode import split
from .elements import code_of, number_of
from .encode import Texts

_HEADER = ("opcode", "unit", "length")
_TAIL = "words"


def lines(words: Sequence[int], texts: Sequence[str] = ()) -> Iterable[str]:
    """Yield the text of each instruction of a program.

    Raises
    ------
    DecodingError
        If the words are no program.
    """
    for _, encoding, these in split(words):
        yield line(encoding, these, texts)


def line(encoding: Encoding, words: tuple[int, ...], texts: Sequence[str] = ()) -> str:
    """Return the text of one instruction."""
    values, tail = encoding.unpack(words)
    unit = values["unit"]
    parts = [f"{encoding.op}.{UNITS[unit] if unit < len(UNITS) else unit}"]
    for name in encoding.operands:
        if values.get(f"{name}?", 1):
            parts.append(f"{name}={_place(values, name)}:{values[name]}")
    if encoding.tail == "views":
        parts.append(f"views={_place(values, 'views')}")
    for member in encoding.members:
        there = values.get(f"{member.name}?")
        nothing = there is None and not values.get(member.name) and not member.text
        if member.name not in values or there == 0 or nothing:
            continue
        parts.append(f"{member.name}={_shown(member, values, encoding.op, texts)}")
    if tail:
        parts.append(f"{_TAIL}={','.join(f'{word:#x}' for word in tail)}")
    return " ".join(parts)


def _place(values: dict[str, int], name: str) -> str:
    buffer, dtype = values[f"{name}.buffer"], values[f"{name}.dtype"]
    return (
        f"{BUFFERS[buffer] if buffer < len(BUFFERS) else buffer}:"
        f"{DTYPES[dtype] if dtype < len(DTYPES) else dtype}"
    )


def _shown(member: Member, values: dict[str, int], op: str, texts: Sequence[str]) -> str:
    code = values[member.name]
    if member.text:
        return shlex.quote(texts[code] if code < len(texts) else "")
    if member.names:
        return member.names[code] if code < len(member.names) else str(code)
    if member.element:
        return str(number_of(code, _dtype(member, values), convert=op == "vdup"))
    if member.signed and code >> member.bits - 1:
        return str(code - (1 << member.bits))
    return str(code)


def _dtype(member: Member, values: dict[str, int]) -> str:
    if member.element == "fp32":
        return "fp32"
    return DTYPES[values[f"{member.element}.dtype"]]


class AssemblyError(ValueError):
    """A line that is no instruction; the message begins with the number of the line."""


def words_of(text: str) -> tuple[list[int], Texts]:
    """Return the words of a text, with the word 0 that ends them, and its texts.

    Raises
    ------
    AssemblyError
        If a line is no instruction.
    """
    texts = Texts()
    words: list[int] = []
    for number, full in enumerate(text.splitlines(), start=1):
        try:
            parts = shlex.split(full, comments=True)
            if parts:
                words += _instruction(parts, texts)
        except ValueError as error:
            raise AssemblyError(f"line {number}: {error}") from None
    return [*words, 0], texts


def _instruction(parts: list[str], texts: Texts) -> tuple[int, ...]:
    op, _, unit = parts[0].partition(".")
    if op not in ENCODINGS:
        raise ValueError(f"operation must be known, not {op!r}{nearest(op, ENCODINGS)}")
    if unit not in UNITS:
        raise ValueError(f"unit of {op} must be one of {', '.join(UNITS)}, not {unit!r}")
    encoding = ENCODINGS[op]
    given = {}
    for part in parts[1:]:
        name, equals, value = part.partition("=")
        if not equals or name in given:
            raise ValueError(f"parts of {op} must be name=value, each once, not {part!r}")
        given[name] = value
    values = {"unit": UNITS.index(unit)}
    for name in (*encoding.operands, *(["views"] if encoding.tail == "views" else [])):
        if name in given:
            values |= _operand(encoding, name, given.pop(name))
        elif name not in encoding.absent:
            raise ValueError(f"{op} must have {name}=BUFFER:DTYPE:BYTE")
    tail = tuple(int(word, 0) for word in given.pop(_TAIL, "").split(",") if word)
    members = {m.name: m for m in encoding.members if m.name in encoding.places}
    for name, value in given.items():
        if name not in members:
            raise ValueError(f"{op} has no {name!r}{nearest(name, members)}")
        member = members[name]
        values[name] = _code(member, value, values, op, texts)
        if member.optional:
            values[f"{name}?"] = 1
    return encoding.pack(values, tail)


def _operand(encoding: Encoding, name: str, text: str) -> dict[str, int]:
    buffer, dtype, *first = text.split(":")
    if buffer not in BUFFERS or dtype not in DTYPES or len(first) > 1:
        raise ValueError(f"{name} of {encoding.op} must be BUFFER:DTYPE:BYTE, not {text!r}")
    codes = {f"{name}.buffer": BUFFERS.index(buffer), f"{name}.dtype": DTYPES.index(dtype)}
    if first:
        codes[name] = int(first[0], 0)
    if name in encoding.absent:
        codes[f"{name}?"] = 1
    return codes


def _code(member: Member, text: str, values: dict[str, int], op: str, texts: Texts) -> int:
    if member.text:
        return texts.number(text)
    if member.names:
        if text not in member.names:
            allowed = ", ".join(member.names)
            raise ValueError(f"{member.name} of {op} must be one of {allowed}, not {text!r}")
        return member.names.index(text)
    if member.element:
        dtype = _dtype(member, values)
        number = float(text) if dtype in ("fp16", "fp32", "bf16") else int(text, 0)
        return code_of(number, dtype, convert=op == "vdup")
    number = int(text, 0)
    low, high = member.span
    if not low <= number <= high:
        raise ValueError(f"{member.name} of {op} must be {low} … {high}, not {number}")
    return number
