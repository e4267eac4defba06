"""The decoder of commands, which controls the sequencer, the routes and the slices."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data

from .config import VectorConfig
from .control import Form, Select, Source, condition_mask, control_layout
from .operations import OPERATIONS, Format, Operation


@dataclass(frozen=True, kw_only=True)
class DecodedCommand:
    """The properties of a command; every attribute but those with a type of their own is one bit.

    Attributes
    ----------
    control : data.View
        Control bits of the slices.
    form : Value
        ``Form`` of the result.
    reads_a, reads_b : Value
        A repeat takes a block from the stream.
    scalar : Value
        The operand b of every lane, 32 bits.
    from_scalar : Value
        The operand b is ``scalar``.
    expands : Value
        The elements of a are narrower than those of the result.
    emits : Value
        A repeat gives a block on ``o``.
    reads_bits, loads_bits : Value
        A repeat reads the register of comparison bits, or writes block a to it.
    reduces, indexed, sums : Value
        The command reduces lanes; it gives the lane of an extreme too; it adds them.
    levels : Value
        Number of levels of the reduction's tree.
    """

    control: data.View
    form: Value
    reads_a: Value
    reads_b: Value
    scalar: Value
    from_scalar: Value
    expands: Value
    emits: Value
    reads_bits: Value
    loads_bits: Value
    reduces: Value
    indexed: Value
    sums: Value
    levels: Value


_SUMS = (Operation.SUM, Operation.SUM_BLOCK, Operation.SUM_PAIR)
_LARGEST = (Operation.LARGEST, Operation.LARGEST_BLOCK)
_SMALLEST = (Operation.SMALLEST, Operation.SMALLEST_BLOCK)
_BLOCKS = (Operation.SUM_BLOCK, Operation.LARGEST_BLOCK, Operation.SMALLEST_BLOCK)
_INDEXED = (Operation.LARGEST, Operation.SMALLEST)
_BYTES = (Operation.TO_INT8, Operation.TO_UINT8)
_CONVERSIONS = (
    Operation.TO_FP32,
    Operation.TO_FP16,
    Operation.TO_INT32,
    Operation.TO_INT16,
    *_BYTES,
)

_SOURCES = {
    Source.ADD: (Operation.ADD, Operation.SUB, *_SUMS),
    Source.MULTIPLY: (Operation.MUL,),
    Source.CONVERT: _CONVERSIONS,
    Source.FUNCTION: (Operation.EXP, Operation.LN),
}
_SELECTS = {
    Select.MAX: (Operation.MAX, Operation.RELU, *_LARGEST),
    Select.MIN: (Operation.MIN, *_SMALLEST),
    Select.BITS: (Operation.SELECT,),
    Select.AND: (Operation.AND,),
    Select.OR: (Operation.OR,),
    Select.NOT: (Operation.NOT,),
}


def decode(m: Module, command: Any, config: VectorConfig) -> DecodedCommand:
    """Return the properties of the command in the stream's payload."""
    code = Value.cast(command.operation)
    one_hot = {}
    for op in config.operations:
        one_hot[op] = Signal(name=f"is_{op.name.lower()}")
        m.d.comb += one_hot[op].eq(code == op.value)

    def among(*operations: Operation) -> Value:
        chosen = [one_hot[op] for op in operations if op in one_hot]
        result: Value = Const(0, 1)
        for bit in chosen:
            result = result | bit
        return result

    # Every operation is in one row of a table at most, so that the codes of rows can be combined by
    # OR, without a priority.
    def coded(table: dict[Any, tuple[Operation, ...]], width: int) -> Value:
        result: Value = Const(0, width)
        for member, operations in table.items():
            result = result | (Const(member.value, width) & among(*operations).replicate(width))
        return result

    wide = Signal(name="is_wide")
    m.d.comb += wide.eq(
        # An operation that has only one format has it whatever the command says.
        (Value.cast(command.format) & ~among(*_only(Format.FP16))) | among(*_only(Format.FP32))
    )
    # Conversions alone have a result of another width than their operand's.
    wide_result = (wide & ~among(Operation.TO_FP16, Operation.TO_INT16)) | among(
        Operation.TO_FP32, Operation.TO_INT32
    )
    halves = wide & among(Operation.TO_FP16, Operation.TO_INT16)
    forms = Mux(halves, Form.HALVES.value, 0) | coded(
        {
            Form.BYTES: _BYTES,
            Form.BITS: (Operation.COMPARE, Operation.COMPARE_BITS),
            Form.INDEXED: _INDEXED,
        },
        3,
    )
    control = Signal(control_layout(), name="decoded")
    m.d.comb += [
        control.wide.eq(wide),
        control.wide_result.eq(wide_result),
        Value.cast(control.source).eq(coded(_SOURCES, 3)),
        Value.cast(control.select).eq(coded(_SELECTS, 3)),
        control.accept.eq(condition_mask(Value.cast(command.condition))),
        control.subtract.eq(among(Operation.SUB)),
        # The conversions have consecutive codes, in the order of the table of conversions.
        control.conversion.eq(Value.cast(code - Operation.TO_FP32.value)[:3]),
        control.rounding.eq(Value.cast(command.rounding)),
        control.logarithm.eq(among(Operation.LN)),
    ]
    # RELU is the maximum of an operand and the scalar 0.
    relu = among(Operation.RELU)
    scalar = _scalar(m, command, wide, relu)
    from_scalar = command.from_scalar | relu
    reads_b = among(*(op for op, traits in OPERATIONS.items() if traits.reads_b))
    sums, block = among(*_SUMS), among(*_BLOCKS)
    # One level of the tree adds neighbours.
    levels = Mux(among(Operation.SUM_PAIR), 1, _levels(config, wide, block))
    loads = among(Operation.LOAD_BITS)
    return DecodedCommand(
        control=control,
        form=forms,
        reads_a=~among(Operation.DUP),
        reads_b=reads_b & ~command.from_scalar,
        scalar=scalar,
        from_scalar=from_scalar | among(Operation.DUP),
        expands=~wide & among(Operation.TO_FP32, Operation.TO_INT32),
        emits=~among(Operation.COMPARE),
        reads_bits=among(Operation.SELECT),
        loads_bits=loads,
        reduces=sums | among(*_LARGEST, *_SMALLEST),
        indexed=among(*_INDEXED),
        sums=sums,
        levels=levels,
    )


def _scalar(m: Module, command: Any, wide: Value, relu: Value) -> Signal:
    """Return the scalar operand, twice if it has 16 bits, and 0 for a comparison with zero."""
    low = command.scalar[:16]
    scalar = Signal(32, name="scalar")
    m.d.comb += scalar[:16].eq(low & (~relu).replicate(16))
    m.d.comb += scalar[16:].eq(Mux(wide, command.scalar[16:], low) & (~relu).replicate(16))
    return scalar


def _levels(config: VectorConfig, wide: Value, block: Value) -> Value:
    """Return the levels of the tree of a reduction, within blocks or of all elements."""
    return Mux(
        wide,
        Mux(block, config.levels(Format.FP32, block=True), config.levels(Format.FP32)),
        Mux(block, config.levels(Format.FP16, block=True), config.levels(Format.FP16)),
    )


def _only(format: Format) -> list[Operation]:
    return [op for op, traits in OPERATIONS.items() if traits.formats == (format,)]
