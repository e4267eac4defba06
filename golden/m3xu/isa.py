"""The matrix instructions: opcodes and shapes, their 32-bit encoding, and their text.

An instruction is ``D = C + A·B`` or ``D = A·B`` on fragments that lie in registers::

    mma.16x8x8.fp32 r8, r0, r4, r16     # d, a, b, c
    mma.16x8x8.fp32 r8, r0, r4, zero    # without C

======  ===========  ======================================================================
bits    field        meaning
======  ===========  ======================================================================
6:0     opcode       `Opcode.code`; bits 6:4 are the operation (0: plus-times), 0 is no code
7       accumulate   1: C is added; 0: it is not, and its field is 0
13:8    d            first register of D
19:14   a            first register of A
25:20   b            first register of B
31:26   c            first register of C
======  ===========  ======================================================================

A register is 32 bits of each of 32 threads. A fragment takes as many as it has bits for, from a
multiple of that number on. D may lie where C does, which is read first; not where A or B do, which
are read again when parts of D are there.
"""

import enum
import re
from dataclasses import dataclass

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.m3xu.precision import PRECISIONS, Precision
from vitruvian.validate import check_int, one_of

__all__ = [
    "FIELDS",
    "REGISTERS",
    "REGISTER_BITS",
    "WORD_BITS",
    "Fragment",
    "Instruction",
    "Opcode",
    "as_opcode",
    "assemble",
    "disassemble",
]

WORD_BITS = 32
#: Fragment registers, and bits of each.
REGISTERS = 64
REGISTER_BITS = 1024
#: (field, lowest bit, width)
FIELDS = (
    ("opcode", 0, 7),
    ("accumulate", 7, 1),
    ("d", 8, 6),
    ("a", 14, 6),
    ("b", 20, 6),
    ("c", 26, 6),
)
_OPERANDS = ("d", "a", "b", "c")


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """An operand or a result: rows, columns, and what an element is.

    Attributes
    ----------
    rows, columns : int
    format : FloatFormat
        Of an element, or of each part of a complex one.
    is_complex : bool
    """

    rows: int
    columns: int
    format: FloatFormat
    is_complex: bool

    @property
    def bits(self) -> int:
        """Bits of the register file that it takes."""
        return self.rows * self.columns * self.format.storage_bits * (2 if self.is_complex else 1)

    @property
    def registers(self) -> int:
        """Registers that it takes."""
        return -(-self.bits // REGISTER_BITS)


class Opcode(enum.Enum):
    """What an instruction does: code, precision, and shape (M, N, K).

    A takes four registers, B two, C and D four (eight where their elements have 64 bits): K is what
    fits. So FP64, which the source has no shape for, has K = 4, as complex numbers of two FP32
    parts have; that is one block of a unit with 27-bit multipliers and 8 lanes, two blocks of one
    with 12-bit multipliers and 10 lanes. ``TF32_K4`` is the shorter of the machine's two TF32
    instructions, the one in the source's table; its A takes two registers and its B one.

    The source's HMMA with FP16 results is not here. A unit's accumulators have one format, which
    is that of all its results: FP32 wherever there is another instruction. Its FP32 sums rounded
    once more would not be what a machine with FP16 accumulators gives, block by block.

    References
    ----------
    Zhang 2024, Table 2.2; the shapes hold, not the numbers in its names.
    """

    FP16 = 0x01, "fp16", (16, 8, 16)
    BF16 = 0x02, "bf16", (16, 8, 16)
    TF32 = 0x03, "tf32", (16, 8, 8)
    TF32_K4 = 0x04, "tf32", (16, 8, 4)
    FP32 = 0x05, "fp32", (16, 8, 8)
    FP32C = 0x06, "fp32c", (16, 8, 4)
    FP64 = 0x07, "fp64", (16, 8, 4)

    @property
    def code(self) -> int:
        """The field of the encoding."""
        return self.value[0]

    @property
    def precision(self) -> Precision:
        """How operands are read and what results are."""
        return PRECISIONS[self.value[1]]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, N, K), K in elements of the precision."""
        return self.value[2]

    @property
    def mnemonic(self) -> str:
        """``mma.MxNxK.precision``."""
        return f"mma.{'x'.join(map(str, self.shape))}.{self.precision.name}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of elements, complex ones where they are complex."""
        m, n, k = self.shape
        return m * n * k

    def fragment(self, operand: str) -> Fragment:
        """What ``d``, ``a``, ``b`` or ``c`` is."""
        m, n, k = self.shape
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}
        if operand not in shapes:
            raise ValueError(f"operand must be one of {', '.join(_OPERANDS)}, not {operand!r}")
        rows, columns = shapes[operand]
        precision = self.precision
        return Fragment(
            rows=rows,
            columns=columns,
            format=precision.format if operand in ("a", "b") else precision.output,
            is_complex=precision.is_complex,
        )


_BY_CODE = {opcode.code: opcode for opcode in Opcode}
_BY_MNEMONIC = {opcode.mnemonic: opcode for opcode in Opcode}


def as_opcode(value: "Opcode | str") -> Opcode:
    """Look up a mnemonic; opcodes pass through.

    Raises
    ------
    ValueError
        If there is no such instruction.
    """
    if isinstance(value, Opcode):
        return value
    one_of("instruction", value, _BY_MNEMONIC)
    return _BY_MNEMONIC[value]


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    opcode : Opcode
    d, a, b : int
        First registers of the fragments.
    c : int, optional
        That of C; without it the sums start from zero.

    Raises
    ------
    TypeError, ValueError
        For a register that is none, or not a multiple of the fragment's registers; for a D that
        lies where A or B do, or partly where C does.
    """

    opcode: Opcode
    d: int
    a: int
    b: int
    c: int | None = None

    def __post_init__(self):
        if not isinstance(self.opcode, Opcode):
            raise TypeError(f"opcode must be an Opcode, not {self.opcode!r}")
        for operand in _OPERANDS:
            first = getattr(self, operand)
            if operand == "c" and first is None:
                continue
            check_int(operand, first, 0, REGISTERS - 1)
            step = self.opcode.fragment(operand).registers
            if first % step:
                raise ValueError(
                    f"{operand} must be a multiple of {step} in {self.opcode.mnemonic}, "
                    f"not {first!r}"
                )
        d = self.registers("d")
        for operand in ("a", "b"):
            other = self.registers(operand)
            if d.start < other.stop and other.start < d.stop:
                raise ValueError(
                    f"d must not overlap {operand}: r{d.start} to r{d.stop - 1} "
                    f"and r{other.start} to r{other.stop - 1}"
                )

    @property
    def accumulates(self) -> bool:
        """Whether there is a C."""
        return self.c is not None

    def registers(self, operand: str) -> range:
        """The registers of an operand; none of a C that is not there."""
        first = getattr(self, operand)
        if first is None:
            return range(0)
        return range(first, first + self.opcode.fragment(operand).registers)

    def encode(self) -> int:
        """The 32-bit word."""
        values = {
            "opcode": self.opcode.code,
            "accumulate": int(self.accumulates),
            "c": self.c or 0,
        }
        return sum(
            (values[name] if name in values else getattr(self, name)) << low
            for name, low, _ in FIELDS
        )

    @classmethod
    def decode(cls, word: int) -> "Instruction":
        """The instruction that a word stands for.

        Raises
        ------
        TypeError, ValueError
            If it is no 32-bit word, or none that `encode` gives.
        """
        check_int("word", word, 0, (1 << WORD_BITS) - 1)
        field = {name: word >> low & (1 << width) - 1 for name, low, width in FIELDS}
        if field["opcode"] not in _BY_CODE:
            known = ", ".join(f"{code:#04x}" for code in _BY_CODE)
            raise ValueError(
                f"opcode must be one of {known}, not {field['opcode']:#04x} in word {word:#010x}"
            )
        if not field["accumulate"] and field["c"]:
            raise ValueError(
                f"c must be 0 where it is not added, not {field['c']!r} in word {word:#010x}"
            )
        try:
            return cls(
                opcode=_BY_CODE[field["opcode"]],
                d=field["d"],
                a=field["a"],
                b=field["b"],
                c=field["c"] if field["accumulate"] else None,
            )
        except ValueError as error:
            raise ValueError(f"{error}, in word {word:#010x}") from None

    def __str__(self) -> str:
        last = "zero" if self.c is None else f"r{self.c}"
        return f"{self.opcode.mnemonic} r{self.d}, r{self.a}, r{self.b}, {last}"

    @classmethod
    def parse(cls, text: str) -> "Instruction":
        """The instruction that a line of text stands for; ``#`` starts a comment.

        Raises
        ------
        ValueError
            If there is no such instruction or register, or not four operands.
        """
        name, *more = text.partition("#")[0].split(maxsplit=1) or [""]
        rest = "".join(more)
        opcode = as_opcode(name)
        operands = [operand.strip() for operand in rest.split(",")]
        if len(operands) != len(_OPERANDS):
            count = len(operands) if rest.strip() else 0
            raise ValueError(f"operands must be d, a, b, c, not {count} of them")
        first: dict[str, int | None] = {}
        for operand, given in zip(_OPERANDS, operands, strict=True):
            found = re.fullmatch(r"r(0|[1-9][0-9]?)", given, re.ASCII)
            if operand == "c" and given == "zero":
                first[operand] = None
            elif found and int(found[1]) < REGISTERS:
                first[operand] = int(found[1])
            else:
                allowed = f"r0 to r{REGISTERS - 1}" + (" or zero" if operand == "c" else "")
                raise ValueError(f"{operand} must be {allowed}, not {given!r}")
        return cls(opcode=opcode, **first)  # pyright: ignore[reportArgumentType]


def assemble(text: str) -> list[Instruction]:
    """The instructions of a text, one a line; blank lines and comments are skipped.

    Raises
    ------
    ValueError
        For a line that is no instruction, with its number.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.partition("#")[0].strip():
            try:
                found.append(Instruction.parse(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    return found


def disassemble(words) -> str:
    """The text of encoded instructions, one a line."""
    return "".join(f"{Instruction.decode(int(word))}\n" for word in words)
