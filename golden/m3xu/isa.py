"""The matrix instructions: opcodes and shapes, the 32-bit encoding, and the assembly text.

An instruction computes ``D = C + A·B`` or ``D = A·B`` on fragments in registers::

    mma.16x8x8.fp32 r8, r0, r4, r16     # d, a, b, c
    mma.16x8x8.fp32 r8, r0, r4, zero    # without C

======  ===========  ======================================================================
bits    field        meaning
======  ===========  ======================================================================
6:0     opcode       ``Opcode.code``; bits 6:4 are the operation (0: plus-times); 0 is invalid
7       accumulate   1: C is added; 0: C is not added, and field c is 0
13:8    d            first register of D
19:14   a            first register of A
25:20   b            first register of B
31:26   c            first register of C
======  ===========  ======================================================================

A register holds 32 bits for each of 32 threads. A fragment occupies as many consecutive registers
as it has bits for, and its first register is a multiple of that number. D may occupy the registers
of C, which is read first. It must not overlap A or B, which are read again after parts of D have
been written.
"""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsInt

from vitruvian.common.validate import ceil_div, check_int, check_type, one_of
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.m3xu.precision import PRECISIONS, Precision

WORD_BITS = 32
#: Number of fragment registers
REGISTERS = 64
#: Bits of a fragment register
REGISTER_BITS = 1024
#: Fields of the encoding as (name, lowest bit, width)
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
    """The shape and element type of an operand or a result.

    Attributes
    ----------
    rows, columns : int
    format : FloatFormat
        Format of a real element, or of each part of a complex element.
    is_complex : bool
        True if an element is a pair (real part, imaginary part).
    """

    rows: int
    columns: int
    format: FloatFormat
    is_complex: bool

    @property
    def bits(self) -> int:
        """The number of register bits that the fragment occupies."""
        return self.rows * self.columns * self.format.storage_bits * (2 if self.is_complex else 1)

    @property
    def registers(self) -> int:
        """The number of registers that the fragment occupies."""
        return ceil_div(self.bits, REGISTER_BITS)


class Opcode(enum.Enum):
    """An instruction's operation: its code, precision and shape (M, N, K).

    A occupies four registers, B two, and C and D four each (eight if an element has 64 bits); K is
    the largest value that fits. So FP64, for which Zhang 2024 gives no shape, has K = 4, like
    complex numbers with two FP32 parts. These are one block of a unit with 27-bit multipliers and
    8 lanes, or two blocks of a unit with 12-bit multipliers and 10 lanes. ``TF32_K4`` is the
    shorter of the machine's two TF32 instructions and the one in Table 2.2; its A occupies two
    registers and its B one.

    The HMMA instruction with FP16 results (Table 2.2) is not included. All accumulators of a unit
    have one format, which is FP32 if the unit has any other instruction. FP32 sums that are
    finally rounded to FP16 would differ from those of a machine with FP16 accumulators, which
    rounds after every block.

    References
    ----------
    Zhang 2024, Table 2.2. The shapes are those of the table; the numbers in its instruction names
    differ from them.
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
        """The value of the field ``opcode`` in the encoding."""
        return self.value[0]

    @property
    def precision(self) -> Precision:
        """The formats of operands and results."""
        return PRECISIONS[self.value[1]]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape (M, N, K), with K in elements of the precision."""
        return self.value[2]

    @property
    def mnemonic(self) -> str:
        """The name in assembly text, ``mma.MxNxK.precision``."""
        return f"mma.{'x'.join(map(str, self.shape))}.{self.precision.name}"

    @property
    def macs(self) -> int:
        """The number of multiply-accumulates of elements; a complex one counts once."""
        m, n, k = self.shape
        return m * n * k

    def fragment(self, operand: str) -> Fragment:
        """Return the shape and element type of operand ``d``, ``a``, ``b`` or ``c``.

        Raises
        ------
        ValueError
            If ``operand`` is not one of these four letters.
        """
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
    """Return the opcode with the mnemonic ``value``; an ``Opcode`` is returned unchanged.

    Raises
    ------
    ValueError
        If ``value`` is not a mnemonic.
    """
    if isinstance(value, Opcode):
        return value
    one_of("instruction", value, _BY_MNEMONIC)
    return _BY_MNEMONIC[value]


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """A matrix instruction.

    Parameters
    ----------
    d, a, b : int
        First register of the fragment.
    c : int, optional
        First register of C. If omitted, the sums start from zero.

    Raises
    ------
    TypeError, ValueError
        If a register number is invalid or not a multiple of the fragment's register count, or if
        D overlaps A or B. D and C have the same shape, so they are either equal or disjoint.
    """

    opcode: Opcode
    d: int
    a: int
    b: int
    c: int | None = None

    def __post_init__(self) -> None:
        check_type("opcode", self.opcode, Opcode)
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
        # A and B are read again after parts of D have been written; C is read before.
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
        """True if the instruction adds a C."""
        return self.c is not None

    def registers(self, operand: str) -> range:
        """Return the registers of an operand; the range is empty for a C that is not added."""
        first = getattr(self, operand)
        if first is None:
            return range(0)
        return range(first, first + self.opcode.fragment(operand).registers)

    def encode(self) -> int:
        """Return the instruction as a 32-bit word."""
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
        """Return the instruction that a word encodes.

        Raises
        ------
        TypeError, ValueError
            If ``word`` is not a 32-bit integer, or not one that ``encode`` returns.
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
                f"c must be 0 if accumulate is 0, not {field['c']!r} in word {word:#010x}"
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
        """Return the instruction in a line of assembly text; ``#`` starts a comment.

        Raises
        ------
        ValueError
            If the mnemonic or a register is unknown, or if there are not four operands.
        """
        mnemonic, *more = text.partition("#")[0].split(maxsplit=1) or [""]
        rest = "".join(more)
        opcode = as_opcode(mnemonic)
        operands = [operand.strip() for operand in rest.split(",")]
        if len(operands) != len(_OPERANDS):
            count = len(operands) if rest.strip() else 0
            raise ValueError(f"operands must be d, a, b, c, not {count} operands")
        first: dict[str, int | None] = {}
        for operand, name in zip(_OPERANDS, operands, strict=True):
            register = re.fullmatch(r"r(0|[1-9][0-9]?)", name, re.ASCII)
            if operand == "c" and name == "zero":
                first[operand] = None
            elif register and int(register[1]) < REGISTERS:
                first[operand] = int(register[1])
            else:
                allowed = f"r0 to r{REGISTERS - 1}" + (" or zero" if operand == "c" else "")
                raise ValueError(f"{operand} must be {allowed}, not {name!r}")
        return cls(opcode=opcode, **first)  # pyright: ignore[reportArgumentType]


def assemble(text: str) -> list[Instruction]:
    """Return the instructions of a text with one per line; blank and comment lines are skipped.

    Raises
    ------
    ValueError
        If a line is not an instruction; the message gives the line number.
    """
    instructions: list[Instruction] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.partition("#")[0].strip():
            try:
                instructions.append(Instruction.parse(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    return instructions


def disassemble(words: Iterable[SupportsInt]) -> str:
    """Return the assembly text of encoded instructions, one per line.

    Raises
    ------
    ValueError
        If a word does not encode an instruction.
    """
    return "".join(f"{Instruction.decode(int(word))}\n" for word in words)
