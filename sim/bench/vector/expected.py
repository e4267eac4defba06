"""The blocks that golden.vector leaves in memory for the commands of the vector unit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitruvian.golden import vector
from vitruvian.hdl.vector import Condition, Format, Operation, Rounding
from vitruvian.hdl.vector.config import BLOCK_BYTES

_DTYPES = {Format.FP16: np.dtype(np.float16), Format.FP32: np.dtype(np.float32)}
_NAMES = {Format.FP16: "fp16", Format.FP32: "fp32"}
_TARGETS = {
    Operation.TO_FP32: "fp32",
    Operation.TO_FP16: "fp16",
    Operation.TO_INT32: "int32",
    Operation.TO_INT16: "int16",
    Operation.TO_INT8: "int8",
    Operation.TO_UINT8: "uint8",
}
_ROUNDINGS = {
    Rounding.NEAREST_EVEN: "r",
    Rounding.NEAREST_AWAY: "a",
    Rounding.DOWN: "f",
    Rounding.UP: "c",
    Rounding.ZERO: "z",
}
_BINARY = {
    Operation.ADD: vector.add,
    Operation.SUB: vector.sub,
    Operation.MUL: vector.mul,
    Operation.MAX: vector.maximum,
    Operation.MIN: vector.minimum,
    Operation.AND: vector.bitwise_and,
    Operation.OR: vector.bitwise_or,
}
_UNARY = {
    Operation.RELU: vector.relu,
    Operation.NOT: vector.bitwise_not,
    Operation.EXP: vector.exp,
    Operation.LN: vector.ln,
}
_SUMS = (Operation.SUM, Operation.SUM_BLOCK, Operation.SUM_PAIR)
_LARGEST = (Operation.LARGEST, Operation.LARGEST_BLOCK)
_SMALLEST = (Operation.SMALLEST, Operation.SMALLEST_BLOCK)
_BLOCKS = (Operation.SUM_BLOCK, Operation.LARGEST_BLOCK, Operation.SMALLEST_BLOCK)


@dataclass(frozen=True, kw_only=True)
class VectorCommand:
    """A command with the blocks that it takes.

    Attributes
    ----------
    operation, format, condition, rounding
        Fields of the command.
    from_scalar : bool
        If True, every lane has ``scalar`` as its operand b.
    scalar : int
        Code of 32 bits.
    mask : (lanes,) ndarray of bool
    repeat : int
    a, b : (repeat, bytes) ndarray of uint8, or None
        Blocks from the streams; None if the operation does not read the stream.
    """

    operation: Operation
    format: Format
    condition: Condition = Condition.EQ
    rounding: Rounding = Rounding.NEAREST_EVEN
    from_scalar: bool = False
    scalar: int = 0
    mask: np.ndarray
    repeat: int = 1
    a: np.ndarray | None = None
    b: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class BlockWrite:
    """The bytes that a repeat writes: a block, and a bool for each byte."""

    data: np.ndarray
    enable: np.ndarray


class VectorMachine:
    """A vector unit with the arithmetic of golden.vector.

    Parameters
    ----------
    lanes : int
        Number of FP16 lanes.

    Attributes
    ----------
    bits : (lanes,) ndarray of bool
        The register of comparison bits.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = np.zeros(lanes, bool)

    def run(self, command: VectorCommand) -> Iterator[BlockWrite]:
        """Yield what each repeat writes; COMPARE and LOAD_BITS write only the register."""
        for i in range(command.repeat):
            write = self._repeat(
                command,
                None if command.a is None else command.a[i],
                None if command.b is None else command.b[i],
            )
            if write is not None:
                yield write

    def _repeat(
        self, c: VectorCommand, a_bytes: np.ndarray | None, b_bytes: np.ndarray | None
    ) -> BlockWrite | None:
        op, dtype = c.operation, _DTYPES[c.format]
        target = _TARGETS.get(op)
        width = dtype.itemsize if target is None else vector.DTYPES[target].itemsize
        # A repeat has as many elements as the wider one of source and target leaves room for.
        lanes = self.lanes * 2 // max(width, dtype.itemsize)
        mask = c.mask[:lanes]
        scalar = np.array([c.scalar], np.uint32).view(np.uint8)[: dtype.itemsize].view(dtype)

        def elements(block: np.ndarray | None) -> np.ndarray:
            if block is None:
                return np.broadcast_to(scalar, (lanes,))
            return block.view(dtype)[:lanes]

        if op is Operation.LOAD_BITS:
            assert a_bytes is not None
            self.bits = vector.unpack_bits(a_bytes, self.lanes)
            return None
        a, b = elements(a_bytes), elements(b_bytes)
        if op in (Operation.COMPARE, Operation.COMPARE_BITS):
            holds = vector.compare(a, b, c.condition.name.lower())
            if op is Operation.COMPARE_BITS:
                return self._packed(vector.pack(holds), 1)
            # Lanes that the mask leaves out keep their bit.
            self.bits[:lanes][mask] = holds[mask]
            return None
        if op is Operation.DUP:
            return self._packed(b, mask)
        if op is Operation.SELECT:
            return self._packed(vector.select(self.bits[:lanes], a, b), mask)
        if op in _SUMS or op in _LARGEST or op in _SMALLEST:
            return self._reduction(op, a, mask)
        if target is not None:
            # Between floating-point formats the unit rounds to nearest.
            rounding = _ROUNDINGS[c.rounding] if "int" in target else "r"
            return self._packed(vector.convert(a, _NAMES[c.format], target, rounding), mask)
        result = _BINARY[op](a, b) if op in _BINARY else _UNARY[op](a)
        return self._packed(np.asarray(result), mask)

    def _reduction(self, op: Operation, a: np.ndarray, mask: np.ndarray) -> BlockWrite:
        if op is Operation.SUM_PAIR:
            return self._packed(
                vector.pair_sums(a, mask), np.asarray(mask.reshape(-1, 2).any(axis=1))
            )
        extreme = vector.largest if op in _LARGEST else vector.smallest
        per = min(BLOCK_BYTES // a.itemsize, len(a)) if op in _BLOCKS else len(a)
        groups, masks = a.reshape(-1, per), mask.reshape(-1, per)
        # A group whose lanes are all left out writes nothing.
        there = np.asarray(masks.any(axis=1))
        if op in _SUMS:
            return self._packed(vector.sum_tree(groups, masks), there)
        values, lanes = extreme(groups, masks)
        if op in _BLOCKS:
            return self._packed(values, there)
        # The index is an integer in the place of an element.
        index = lanes.astype(f"u{a.itemsize}").view(a.dtype)
        return self._packed(np.concatenate([values, index]), there.repeat(2))

    def _packed(self, elements: np.ndarray, enable: np.ndarray | int) -> BlockWrite:
        """Return a write of elements from the first byte of the block on."""
        elements = np.ascontiguousarray(elements)
        data = np.zeros(2 * self.lanes, np.uint8)
        wanted = np.zeros(2 * self.lanes, bool)
        raw = elements.view(np.uint8)
        data[: len(raw)] = raw
        wanted[: len(raw)] = np.repeat(np.broadcast_to(enable, elements.shape), elements.itemsize)
        return BlockWrite(data=data, enable=wanted)
