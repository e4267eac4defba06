"""From words to instructions, through the methods with which programs are built.

So a decoded instruction has the operands, fields, bytes and work of the original, but for what a
kernel knows of the second-level cache. Only what the
machine does not need is lost: names and shapes of tensors, texts that are not kept, and the bytes
of operands that depend on data (``vgather`` reads its offsets, ``vreduce`` by bits writes as many
elements as it reads).
"""

from collections.abc import Callable, Sequence
from typing import Any

from vitruvian.common.validate import round_up
from vitruvian.golden.core.encoding import (
    BUFFERS,
    DTYPES,
    ENCODINGS,
    OPCODE_BITS,
    UNITS,
    Encoding,
    Member,
)
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci.isa.instruction import Instruction, Unit
from vitruvian.sim.davinci.isa.lanes import ALL
from vitruvian.sim.davinci.isa.operands import View, contiguous, dtype_bytes
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.program.program import Core

from .elements import number_of

_CODES = {encoding.code: encoding for encoding in ENCODINGS.values()}
_LENGTH = ENCODINGS["set_flag"].places["length"]


class DecodingError(ValueError):
    """Words that are no instruction; the message has the number of the first word."""


def split(words: Sequence[int]) -> list[tuple[int, Encoding, tuple[int, ...]]]:
    """Cut a program into instructions, up to the word 0 that ends it.

    Returns
    -------
    list of (first word, encoding, words)

    Raises
    ------
    DecodingError
        If an opcode or a length is invalid, or the end is missing.
    """
    found, at = [], 0
    while True:
        if at >= len(words):
            raise DecodingError(f"word {at}: a program must end with a word of 0")
        first = int(words[at])
        if not first:
            return found
        encoding = _CODES.get(first & (1 << OPCODE_BITS) - 1)
        if encoding is None:
            raise DecodingError(f"word {at}: opcode must be 1 … {len(_CODES)}, not {first & 0xFF}")
        length = first >> _LENGTH.low & (1 << _LENGTH.bits) - 1
        if length < encoding.words or at + length > len(words):
            raise DecodingError(
                f"word {at}: {encoding.op} must have {encoding.words} or more words, not {length}"
            )
        found.append((at, encoding, tuple(int(word) for word in words[at : at + length])))
        at += length


def decode(
    encoding: Encoding, words: tuple[int, ...], core: Core, texts: Sequence[str] = ()
) -> Instruction:
    """Append the instruction of some words to a core, and return it.

    Raises
    ------
    DecodingError
        If a code has no meaning.
    ProgramError
        If the core or its chip has no such instruction.
    """
    values, tail = encoding.unpack(words)
    op = encoding.op
    views = _views(encoding, values)
    fields = {}
    for member in encoding.members:
        if member.name in encoding.places and values.get(f"{member.name}?", 1):
            fields[member.name] = _value(member, values[member.name], op, views, texts)
    if encoding.tail == "mask":
        mask = sum(word << 64 * i for i, word in enumerate(tail))
        fields["mask"] = mask if tail else ALL
    elif encoding.tail == "views":
        fields |= _many(encoding, values, tail)
    elif encoding.tail == "lists":
        fields["lists"] = [(word & 0xFFFFFFFF, word >> 32) for word in tail]
    elif encoding.tail == "levels":
        views["dst"] = _levels(views["dst"], fields.pop("run"), tail)
    count = len(core.instructions)
    unit = Unit[_name(UNITS, values["unit"], "unit")]
    _BUILD.get(op, _plain)(core, op, unit, views, fields)
    if len(core.instructions) != count + 1 or core.instructions[-1].unit != unit:
        raise DecodingError(f"unit of {op} must not be {unit.name} on {core.program.chip.name}")
    return core.instructions[-1]


def _name(names: Sequence[str], code: int, what: str) -> str:
    if code >= len(names):
        raise DecodingError(f"{what} must have a code of 0 … {len(names) - 1}, not {code}")
    return names[code]


def _views(encoding: Encoding, values: dict[str, int]) -> dict[str, View]:
    return {
        name: _view(encoding, values, name, values[name])
        for name in encoding.operands
        if values.get(f"{name}?", 1)
    }


def _view(
    encoding: Encoding, values: dict[str, int], name: str, offset: int, shape: tuple = (1,)
) -> View:
    buffer = _name(BUFFERS, values[f"{name}.buffer"], f"buffer of {name} of {encoding.op}")
    dtype = _name(DTYPES, values[f"{name}.dtype"], f"dtype of {name} of {encoding.op}")
    return View(buffer, offset, dtype, shape, contiguous(shape, dtype_bytes(dtype)))


def _value(member: Member, code: int, op: str, views: dict[str, View], texts: Sequence[str]) -> Any:
    if member.text:
        return texts[code] if code < len(texts) else ""
    if member.element:
        dtype = member.element if member.element == "fp32" else views[member.element].dtype
        return number_of(code, dtype, convert=op == "vdup")
    if member.names:
        return _name(member.names, code, f"{member.name} of {op}")
    if member.signed and code >> member.bits - 1:
        return code - (1 << member.bits)
    return code


def _many(encoding: Encoding, values: dict[str, int], tail: tuple[int, ...]) -> dict[str, Any]:
    offsets = [part for word in tail for part in (word & 0xFFFFFFFF, word >> 32)]
    views = [_view(encoding, values, "views", offset) for offset in offsets]
    half = len(views) // 2
    return {"dst": views[:half], "src": views[half:]}


def _levels(view: View, run: int, tail: tuple[int, ...]) -> View:
    width = dtype_bytes(view.dtype)
    levels = [(word >> 32, _signed(word & 0xFFFFFFFF)) for word in tail]
    shape = (*(count for count, _ in levels), run // width)
    strides = (*(stride for _, stride in levels), width)
    return View(view.buffer, view.offset, view.dtype, shape, strides)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _shaped(view: View, *shape: int) -> View:
    strides = contiguous(shape, view.itemsize)
    return View(view.buffer, view.offset, view.dtype, shape, strides)


def _plain(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    """Call the method that has the name of the operation."""
    if op in VECTOR_OPS and VECTOR_OPS[op].form is REDUCE:
        core.vreduce_lanes(op, **views, **fields)
        return
    if op in VECTOR_OPS and VECTOR_OPS[op].form.lanewise:
        _lanewise(core, op, views, fields)
        return
    getattr(core, op)(**views, **fields)


def _lanewise(core: Core, op: str, views: dict[str, View], fields: dict) -> None:
    strides = _strides(views, fields)
    repeat, mask = fields.pop("repeat"), fields.pop("mask")
    core.vector(op, views, repeat=repeat, mask=mask, strides=strides, **fields)


def _strides(views: dict[str, View], fields: dict) -> dict[str, tuple[int, int]]:
    return {
        name: (fields.pop(f"{name}_block_stride"), fields.pop(f"{name}_repeat_stride"))
        for name in views
        if f"{name}_block_stride" in fields
    }


def _with_strides(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    strides = _strides(views, fields)
    getattr(core, op)(**views, **fields, strides=strides)


def _flag(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    source, target = Unit[fields["source"]], Unit[fields["target"]]
    getattr(core, op)(source, target, fields["register"])


def _barrier(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    core.pipe_barrier(Unit[fields["unit"]] if "unit" in fields else None)


def _cross(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    getattr(core, op)(unit, fields["register"], fields["mode"])


def _set_mask(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    core.set_mask(max(fields["mask"], 0), bool(fields["count"]))


def _load(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    transpose = fields.pop("transpose")
    if "dst_fractal_stride" in fields:
        core.load_squares(**views, **fields)
    else:
        core.load(**views, **fields, transpose=bool(transpose))


def _image(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    take: Callable[[str], int] = fields.pop
    names = ("rows", "columns")
    pairs = {
        what: (take(f"{what}_{names[0]}"), take(f"{what}_{names[1]}"))
        for what in ("kernel", "stride", "dilation")
    }
    pad = (take("top"), take("bottom"), take("left"), take("right"))
    patches = Patches(height=take("height"), width=take("width"), pad=pad, **pairs)
    position = (take("row"), take("column"))
    kernel_position = (take("kernel_row"), take("kernel_column"))
    getattr(core, op)(
        **views, patches=patches, position=position, kernel_position=kernel_position, **fields
    )


def _matrix_out(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    if "scale" in views:
        views["scale"] = _shaped(views["scale"], round_up(fields["n"], 16))
    fields["relu"] = bool(fields["relu"])
    core.matrix_out(**views, **fields)


def _mmad(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    if "a_transposed" in fields:
        fields["a_transposed"] = bool(fields["a_transposed"])
    core.mmad(**views, **fields)


def _shift(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    if "round" in fields:
        fields["round"] = bool(fields["round"])
    _lanewise(core, op, views, fields)


def _transpose(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    whole = {name: _shaped(view, 256) for name, view in views.items()}
    core.vector_views(op, whole, **fields)


def _channels(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    count = fields["pixels"] * fields["channels"]
    whole = {name: _shaped(view, count) for name, view in views.items()}
    core.vector_views(op, whole, **fields)


def _gather(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    lanes = 256 // views["dst"].itemsize
    views["offsets"] = _shaped(views["offsets"], fields["repeat"] * lanes)
    core.vgather(**views, **fields, runs=())


def _reduce(core: Core, op: str, unit: Unit, views: dict[str, View], fields: dict) -> None:
    results = None if fields["mode"] else fields["repeat"] * fields["count"]
    core.vreduce(**views, **fields, results=results)


#: Functions that build the operations whose method takes its arguments in another form.
_BUILD: dict[str, Callable[[Core, str, Unit, dict[str, View], dict], None]] = {
    "set_flag": _flag,
    "wait_flag": _flag,
    "pipe_barrier": _barrier,
    "cross_set": _cross,
    "cross_wait": _cross,
    "set_mask": _set_mask,
    "load": _load,
    "im2col": _image,
    "col2im": _image,
    "matrix_out": _matrix_out,
    "mmad": _mmad,
    "vshl": _shift,
    "vshr": _shift,
    "vcmp": _with_strides,
    "vcmpv": _with_strides,
    "vcmpvs": _with_strides,
    "vsel": _with_strides,
    "vtranspose": _transpose,
    "v4dtrans": _channels,
    "vgather": _gather,
    "vreduce": _reduce,
}
