"""The words of an instruction in hardware, and where its parts are in them."""

from amaranth.hdl import Cat, Value

from vitruvian.golden.core.encoding import (
    DTYPES,
    ENCODINGS,
    LENGTH_BITS,
    OPCODE_BITS,
    UNIT_BITS,
    UNITS,
    WORD_BITS,
    Encoding,
)

#: Words of the longest instruction that the hardware keeps: a selection with bits in memory and
#: the mask of 128 lanes.
RECORD_WORDS = 8
RECORD_BITS = WORD_BITS * RECORD_WORDS

#: The units that every core has, each with a queue; ``CoreConfig.units`` has FIX as well.
QUEUED = UNITS[:6]


def opcode(record: Value) -> Value:
    """Return the opcode in the first word."""
    return record[:OPCODE_BITS]


def unit(record: Value) -> Value:
    """Return the code of the unit in the first word."""
    return record[OPCODE_BITS : OPCODE_BITS + UNIT_BITS]


def length(record: Value) -> Value:
    """Return the number of words of the instruction."""
    low = OPCODE_BITS + UNIT_BITS
    return record[low : low + LENGTH_BITS]


def part(record: Value, op: str, name: str) -> Value:
    """Return the bits of a part of an instruction."""
    place = ENCODINGS[op].places[name]
    low = WORD_BITS * place.word + place.low
    return record[low : low + place.bits]


def signed_part(record: Value, op: str, name: str) -> Value:
    """Return the bits of a part in two's complement."""
    return part(record, op, name).as_signed()


def tail(record: Value, encoding: Encoding) -> Value:
    """Return the words behind the fixed ones."""
    return record[WORD_BITS * encoding.words :]


def is_op(record: Value, *ops: str) -> Value:
    """Return 1 if the instruction is one of some operations."""
    return Cat(*(opcode(record) == ENCODINGS[op].code for op in ops)).any()


def dtype_code(name: str) -> int:
    """Return the code of a dtype."""
    return DTYPES.index(name)
