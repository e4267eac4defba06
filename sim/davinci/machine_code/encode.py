"""From instructions to words."""

from collections.abc import Sequence
from typing import Any

from vitruvian.golden.core.encoding import (
    BUFFERS,
    CARRIERS,
    DTYPES,
    ENCODINGS,
    Encoding,
    Member,
)
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import View
from vitruvian.sim.davinci.isa.words import mask_words

from .elements import code_of

#: Letters of ``golden.vector`` that are shorter names of rounding modes.
_LETTERS = {"r": "rint", "a": "round", "f": "floor", "c": "ceil", "z": "trunc", "o": "odd"}


class EncodingError(ValueError):
    """An instruction that has no encoding; the message begins with its place in the source."""


#: Operation -> fields that only the simulator has.
SIMULATED = {
    "copy": ("left", "right", "pad_bytes", "pad_code"),
    "load": ("src_fractal_stride", "index"),
    "mmad": ("a_layout", "sparse"),
    "vcadd": ("accumulate",),
    "vmrgsort": ("taken",),
}


class Texts:
    """The texts of a program that its words refer to by number; the hardware ignores them.

    Attributes
    ----------
    texts : list of str
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        """Return the number of a text, which is added if it is new."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def encode(instruction: Instruction, texts: Texts) -> tuple[int, ...]:
    """Return the words of an instruction.

    Raises
    ------
    EncodingError
        If a value does not fit its place.
    """
    encoding = ENCODINGS[instruction.op]
    try:
        values, tail = _codes(instruction, encoding, texts)
        return encoding.pack(values, tail)
    except ValueError as error:
        raise EncodingError(f"{instruction.position}: {error}") from None


def _codes(
    instruction: Instruction, encoding: Encoding, texts: Texts
) -> tuple[dict[str, int], tuple[int, ...]]:
    values: dict[str, int] = {"unit": int(instruction.unit)}
    for name, view in instruction.operands.items():
        values |= _operand(instruction.op, name, view)
        if name in encoding.absent:
            values[f"{name}?"] = 1
    fields = _flat(instruction)
    if absent := [name for name in SIMULATED.get(instruction.op, ()) if name in fields]:
        raise ValueError(
            f"{instruction.op} must be one that a core in hardware has, not one with "
            f"{', '.join(absent)}"
        )
    for member in encoding.members:
        value = fields.get(member.name)
        if value is None or member.name not in encoding.places:
            continue
        values[member.name] = _code(member, value, instruction, texts)
        if member.optional:
            values[f"{member.name}?"] = 1
    tail = ()
    if encoding.tail == "mask":
        tail = mask_words(instruction)
    elif encoding.tail == "views":
        views = [*instruction.fields["dst"], *instruction.fields["src"]]
        places = {(view.buffer, view.dtype) for view in views}
        if len(places) > 1:
            raise ValueError(f"views of {instruction.op} must be of one dtype, not {views}")
        values |= _operand(instruction.op, "views", views[0], offset=False)
        tail = tuple(_joined([view.offset for view in views]))
    elif encoding.tail == "lists":
        tail = tuple(first | count << 32 for first, count in instruction.fields["lists"])
    elif encoding.tail == "levels":
        span = instruction.operands["dst"].span
        values["run"] = span.run
        tail = tuple((stride & 0xFFFFFFFF) | count << 32 for count, stride in span.levels)
    return values, tail


def _operand(op: str, name: str, view: View, *, offset: bool = True) -> dict[str, int]:
    dtype = view.dtype if op == "mmad" else CARRIERS.get(view.dtype, view.dtype)
    if dtype not in DTYPES:
        raise ValueError(f"{op} must be of a dtype that a core in hardware has, not {dtype}")
    codes = {f"{name}.buffer": BUFFERS.index(view.buffer), f"{name}.dtype": DTYPES.index(dtype)}
    return codes | ({name: view.offset} if offset else {})


def _joined(offsets: list[int]) -> list[int]:
    return [low | high << 32 for low, high in zip(offsets[::2], offsets[1::2], strict=True)]


def _flat(instruction: Instruction) -> dict[str, Any]:
    """Return the fields of an instruction, with a patch geometry as single numbers."""
    fields = dict(instruction.fields)
    patches = fields.pop("patches", None)
    if patches is not None:
        names = ("rows", "columns")
        fields |= {"height": patches.height, "width": patches.width}
        for what in ("kernel", "stride", "dilation"):
            pair = zip(names, getattr(patches, what), strict=True)
            fields |= {f"{what}_{name}": number for name, number in pair}
        fields |= dict(zip(("top", "bottom", "left", "right"), patches.pad, strict=True))
        fields["row"], fields["column"] = fields.pop("position")
        fields["kernel_row"], fields["kernel_column"] = fields.pop("kernel_position")
    return fields


def _code(member: Member, value: Any, instruction: Instruction, texts: Texts) -> int:
    if member.text:
        return texts.number(str(value))
    if member.element:
        dtype = member.element
        if dtype != "fp32":
            dtype = instruction.operands[dtype].dtype
        code = code_of(value, dtype, convert=instruction.op == "vdup")
        if code >> member.bits:
            raise ValueError(
                f"{member.name} of {instruction.op} must have at most {member.bits} bits, "
                f"not those of {dtype}"
            )
        return code
    if member.names:
        name = value.name if hasattr(value, "name") else value
        return member.names.index(_LETTERS.get(name, name))
    low, high = member.span
    number = int(value)
    if not low <= number <= high:
        raise ValueError(f"{member.name} of {instruction.op} must be {low} … {high}, not {number}")
    return number
