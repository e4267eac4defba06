"""The binary encoding of instructions: one table for encoder, decoder, hardware and documentation.

An instruction is 1 to 31 words of 64 bits. The first word begins with the opcode (8 bits), the
unit (3 bits), the number of words (5 bits), and buffer and dtype of up to four operands (4 bits
each). The next words have the first bytes of the operands, two to a word. The fields, and a bit for
each operand or field that may be absent, have places that depend on the operation alone, and none
crosses the border of a word. Some operations end with a list: the words of a lane mask, or the
places of several operands. Repeat, strides and scalar are at equal places in all vector
instructions that work lane by lane.

The table has the names of ``sim.davinci.isa.operations.OPERATIONS``; a test holds them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from vitruvian.golden.simd2.op import Op

#: Version of the encoding; a program says which one it is in.
VERSION = 3

WORD_BITS = 64
OPCODE_BITS, UNIT_BITS, LENGTH_BITS = 8, 3, 5
MOST_WORDS = (1 << LENGTH_BITS) - 1

#: The units in the order of their codes.
UNITS = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
#: Memories and dtypes in the order of their codes; an operand has 4 bits for each.
BUFFERS = ("GM", "L1", "L0A", "L0B", "L0C", "UB", "BT", "FB")
DTYPES = (
    *("fp16", "fp32", "bf16", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("int64", "uint64", "tf32", "fp8e4m3", "fp8e5m2", "fp64", "fp32c"),
)
#: Dtypes that only ``mmad`` has -> the dtype of as many bytes with which the elements are moved.
CARRIERS = MappingProxyType(
    {
        "tf32": "fp32",
        "fp8e4m3": "uint8",
        "fp8e5m2": "uint8",
        # A complex number is two parts of FP32, the real one in the lower bytes.
        "fp64": "uint64",
        "fp32c": "uint64",
    }
)
CODE_BITS = 4
#: Bits of the first byte of an operand in its buffer.
OFFSET_BITS = 32
#: Operands that the first word has codes for.
MOST_OPERANDS = 4
_FIRST_FREE = OPCODE_BITS + UNIT_BITS + LENGTH_BITS + MOST_OPERANDS * 2 * CODE_BITS
#: Operands whose first bytes follow the first word; that of a fourth one comes last.
_FIRST_SLOTS = 3
#: Name of a part that nothing uses, so that all vector instructions have equal places.
HOLE = "-"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A field of an operation.

    Attributes
    ----------
    name : str
    bits : int
    signed : bool
        True for two's complement.
    names : tuple of str
        If the field is a name, the names in the order of their codes.
    optional : bool
        True if an instruction may lack the field.
    element : str
        If the field is a number in the dtype of an operand, the operand; "fp32" for a number that
        always has this dtype.
    text : bool
        True if the field is the index of a text beside the program, which the hardware ignores.
    """

    name: str
    bits: int
    signed: bool = False
    names: tuple[str, ...] = ()
    optional: bool = False
    element: str = ""
    text: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """The smallest and the largest code, as integers."""
        if self.signed:
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (len(self.names) or 1 << self.bits) - 1


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a part of an instruction is: a word, the lowest bit in it, and the number of bits."""

    word: int
    low: int
    bits: int


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """The encoding of one operation.

    Attributes
    ----------
    op : str
        Name of the operation.
    code : int
        Its opcode.
    slots : tuple of str
        Names of the operands by the codes of the first word, with ``HOLE`` for unused ones.
    absent : frozenset of str
        Operands that an instruction may lack.
    members : tuple of Member
        The other fields, in the order of their places.
    tail : {"", "mask", "views", "lists", "levels"}
        What follows the last of these words. "mask": the words of the lane mask, the lowest lanes
        first, none if all lanes are enabled. "views": offsets of 16 targets and 16 sources, two in
        a word. "lists": for each list its first byte in the lower and its elements in the upper
        half of a word. "levels": for each level of a target's bytes, from the outermost, the
        number in the upper and the distance in bytes in the lower half of a word.
    """

    op: str
    code: int
    slots: tuple[str, ...]
    absent: frozenset[str]
    members: tuple[Member, ...]
    tail: str = ""

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the operands."""
        return tuple(name for name in self.slots if name != HOLE)

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """The place of every part, by name.

        Buffer and dtype of operand x are ``x.buffer`` and ``x.dtype``, its first byte is ``x``, and
        the bit that says that x is there is ``x?``. Fields are put into the first word that has
        room for them.
        """
        sizes = {"opcode": OPCODE_BITS, "unit": UNIT_BITS, "length": LENGTH_BITS}
        for name in [*self.slots, *(["views"] if self.tail == "views" else [])]:
            sizes |= {f"{name}.buffer": CODE_BITS, f"{name}.dtype": CODE_BITS}
        places: dict[str, Place] = {}
        low = 0
        for name, bits in sizes.items():
            places[name] = Place(word=0, low=low, bits=bits)
            low += bits
        first = self.slots[:_FIRST_SLOTS]
        for i, name in enumerate(first):  # two to a word
            places[name] = Place(word=1 + i // 2, low=i % 2 * OFFSET_BITS, bits=OFFSET_BITS)
        used = [_FIRST_FREE] + [WORD_BITS] * (len(first) // 2) + [OFFSET_BITS] * (len(first) % 2)
        # The unit of a barrier is that of its first word.
        rest = [(member.name, member.bits) for member in self.members if member.name not in sizes]
        rest += [(name, OFFSET_BITS) for name in self.slots[_FIRST_SLOTS:]]
        rest += [(f"{member.name}?", 1) for member in self.members if member.optional]
        rest += [(f"{name}?", 1) for name in self.operands if name in self.absent]
        for name, bits in rest:
            word = next((w for w, b in enumerate(used) if b + bits <= WORD_BITS), len(used))
            if word == len(used):
                used.append(0)
            places[name] = Place(word=word, low=used[word], bits=bits)
            used[word] += bits
        return MappingProxyType({n: p for n, p in places.items() if not n.startswith(HOLE)})

    @cached_property
    def words(self) -> int:
        """Number of words without the tail."""
        return 1 + max(place.word for place in self.places.values())

    def pack(self, values: Mapping[str, int], tail: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return the words of an instruction.

        Parameters
        ----------
        values : mapping of str to int
            Codes by the names of ``places``, without opcode and length; missing ones are 0.
        tail : tuple of int
            Further words.

        Raises
        ------
        ValueError
            If a code does not fit its place, or the instruction is too long.
        """
        length = self.words + len(tail)
        if length > MOST_WORDS:
            raise ValueError(f"{self.op} must have at most {MOST_WORDS} words, not {length}")
        words = [0] * self.words
        for name, value in ({"opcode": self.code, "length": length} | dict(values)).items():
            place = self.places[name]
            if not -(1 << place.bits - 1) <= value < 1 << place.bits:
                raise ValueError(f"{name} of {self.op} must fit {place.bits} bits, not {value}")
            words[place.word] |= (value & (1 << place.bits) - 1) << place.low
        return (*words, *tail)

    def unpack(self, words: tuple[int, ...]) -> tuple[dict[str, int], tuple[int, ...]]:
        """Return the codes by name, unsigned, and the words of the tail."""
        values = {
            name: words[place.word] >> place.low & (1 << place.bits) - 1
            for name, place in self.places.items()
        }
        return values, tuple(words[self.words :])


CONDITIONS = ("eq", "ne", "lt", "le", "gt", "ge")
ORDERS = ("value_index", "index_value", "value", "index")
ROUNDINGS = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
_ATOMICS = ("add", "max", "min")
_LAYOUTS, _QUANTS = ("nz", "nd"), ("", "scalar", "vector")
_INITS, _CROSS = ("zero", "bias", "accumulate"), ("kind", "group", "others")
#: The operations of a product; one that names none is an mma, whose code is 0.
PRODUCTS = tuple(op.mnemonic for op in Op)


def _members(text: str) -> tuple[Member, ...]:
    """Return the fields of a line such as ``repeat:8 src_stride:s32 [factor:fp32]``."""
    return tuple(_member(word) for word in text.split())


def _member(word: str) -> Member:
    optional = word.startswith("[")
    name, kind = word.strip("[]").split(":")
    if kind in _NAMES:
        names = _NAMES[kind]
        bits = (len(names) - 1).bit_length()
        return Member(name=name, bits=bits, names=names, optional=optional)
    if kind == "text":
        return Member(name=name, bits=16, optional=optional, text=True)
    if kind == "fp32":
        return Member(name=name, bits=32, optional=optional, element="fp32")
    if kind[0] == "=":  # an element of the dtype of an operand, up to so many bits
        operand, bits = kind[1:].split("/")
        return Member(name=name, bits=int(bits), optional=optional, element=operand)
    signed = kind[0] == "s"
    return Member(name=name, bits=int(kind.lstrip("s")), signed=signed, optional=optional)


_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "condition": CONDITIONS,
        "order": ORDERS,
        "rounding": ROUNDINGS,
        "atomic": _ATOMICS,
        "layout": _LAYOUTS,
        "quant": _QUANTS,
        "init": _INITS,
        "product": PRODUCTS,
        "cross": _CROSS,
        "dtype": DTYPES,
        "unit": UNITS,
    }
)

_GEOMETRY = (
    "height:16 width:16 kernel_rows:8 kernel_columns:8 stride_rows:8 stride_columns:8 "
    "top:8 bottom:8 left:8 right:8 dilation_rows:8 dilation_columns:8 "
    "row:s16 column:s16 kernel_row:8 kernel_column:8 channel:16"
)
_DST = "dst_block_stride:16 dst_repeat_stride:16"
_SRC = "src_block_stride:16 src_repeat_stride:16"
_SRC0 = "src0_block_stride:16 src0_repeat_stride:16"
_SRC1 = "src1_block_stride:16 src1_repeat_stride:16"
_SPARE = "-:32"
# A scalar takes the place of the second source.
_SCALAR = "scalar:=src/32"
_BINARY = "dst src0 src1", f"repeat:8 {_DST} {_SRC0} {_SRC1}"
_UNARY = f"repeat:8 {_SPARE} {_DST} {_SRC}"
_COMPARED = f"repeat:8 {_SPARE} {_SRC0} {_SRC1} condition:condition"
_REDUCED = f"repeat:8 {_SPARE} dst_repeat_bytes:s32 {_SRC} [order:order]"

#: Operation: operands, fields and tail. Its opcode is its position from 1 on; 0 ends a program.
#: New operations are appended, so that old programs keep their codes.
_TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("set_flag", "", "source:unit target:unit register:4", ""),
    ("wait_flag", "", "source:unit target:unit register:4", ""),
    ("pipe_barrier", "", "[unit:unit]", ""),
    ("cross_set", "", "register:4 mode:cross", ""),
    ("cross_wait", "", "register:4 mode:cross", ""),
    ("scalar", "", "[cycles:32] [text:text]", ""),
    ("scalar_load", "src", "[expected:=src/64]", ""),
    ("scalar_store", "dst", "value:=dst/64", ""),
    ("set_mask", "", "count:1", "mask"),
    ("set_control", "", "name:text value:text", ""),
    (
        "copy",
        "dst src",
        "bursts:32 burst_bytes:32 dst_stride:s32 src_stride:s32 [atomic:dtype] "
        "[atomic_operation:atomic]",
        "",
    ),
    (
        "nd2nz",
        "dst src",
        "matrices:16 rows:16 columns:32 src_matrix_stride:s32 src_row_stride:s32 "
        "dst_c0_stride:s32 dst_row_stride:s32 dst_matrix_stride:s32",
        "",
    ),
    (
        "load",
        "dst src",
        "transpose:1 repeat:16 src_stride:s32 dst_stride:s32 [dst_fractal_stride:s32]",
        "",
    ),
    ("im2col", "dst src", f"mode:1 repeat:8 dst_stride:s32 {_GEOMETRY} pad_value:=src/32", ""),
    ("fill", "dst", "run:32 value:=dst/64", "levels"),
    (
        "matrix_out",
        "dst src [scale]",
        "relu:1 quant:quant layout:layout m:16 n:16 dst_stride:s32 src_stride:s32 [factor:fp32] "
        "[atomic:dtype] [atomic_operation:atomic]",
        "",
    ),
    ("mmad", "c a b [bias]", "init:init [a_transposed:1] m:16 k:16 n:16 [operation:product]", ""),
    *((op, *_BINARY, "mask") for op in "vadd vsub vmul vmax vmin vdiv vand vor".split()),
    *((op, *_BINARY, "mask") for op in "vmadd vmaddrelu vaddrelu vsubrelu vmla".split()),
    *(
        (op, "dst src", f"repeat:8 {_SCALAR} {_DST} {_SRC}", "mask")
        for op in "vadds vmuls vmaxs vmins vlrelu vaxpy".split()
    ),
    *(
        (op, "dst src", _UNARY, "mask")
        for op in "vexp vln vrec vrsqrt vsqrt vabs vrelu vnot".split()
    ),
    ("vshl", "dst src", f"{_UNARY} amount:6 [round:1]", "mask"),
    ("vshr", "dst src", f"{_UNARY} amount:6 [round:1]", "mask"),
    ("vconv", "dst src", f"repeat:8 [scale:fp32] {_DST} {_SRC} rounding:rounding", "mask"),
    ("vdup", "dst -", f"repeat:8 scalar:=dst/32 {_DST}", "mask"),
    ("vcmp", "- src0 src1", _COMPARED, "mask"),
    ("vcmpv", "dst src0 src1", _COMPARED, "mask"),
    (
        "vcmpvs",
        "dst src",
        f"repeat:8 {_SCALAR} {_SPARE} {_SRC} condition:condition",
        "mask",
    ),
    ("vsel", "dst src0 src1 [bits]", f"repeat:8 {_DST} {_SRC0} {_SRC1}", "mask"),
    *((op, "dst src", _REDUCED, "mask") for op in "vcadd vcmax vcmin".split()),
    *((op, "dst src", _REDUCED, "mask") for op in "vcgadd vcgmax vcgmin vcpadd".split()),
    ("vtranspose", "dst src", "repeat:8", ""),
    ("v4dtrans", "dst src", "repeat:8 mode:1 pixels:16 channels:16", ""),
    (
        "vnchwconv",
        "",
        "repeat:8 dst_repeat_stride:16 src_repeat_stride:16",
        "views",
    ),
    ("vbrcb", "dst src", f"repeat:8 {_DST}", ""),
    ("vgather", "dst src offsets", "repeat:8 dst_repeat_stride:16 base:32", "mask"),
    (
        "vreduce",
        "dst src [src1]",
        "mode:3 repeat:16 count:16 src_block_stride:16 src_repeat_stride:16 bits_repeat_stride:16",
        "",
    ),
    ("vmrgsort", "dst src", "repeat:8", "lists"),
    ("vbitsort", "dst src src1", "repeat:8", ""),
    ("col2im", "dst src", f"repeat:8 {_GEOMETRY}", ""),
)


def _encodings() -> dict[str, Encoding]:
    table: dict[str, Encoding] = {}
    for code, (op, operands, fields, tail) in enumerate(_TABLE, start=1):
        names = tuple(name.strip("[]") for name in operands.split())
        absent = frozenset(name.strip("[]") for name in operands.split() if name[0] == "[")
        members = _members(fields)
        table[op] = Encoding(
            op=op, code=code, slots=names, absent=absent, members=members, tail=tail
        )
    return table


#: The encodings by operation, in the order of their opcodes.
ENCODINGS: Mapping[str, Encoding] = MappingProxyType(_encodings())
