"""The transfer that a move asks for: a run of bytes in nested levels."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value

from vitruvian.golden.core.encoding import CODE_BITS, ENCODINGS

from .ports import ADDRESS_BITS, BLOCK_BYTES, PLACE_BITS
from .record import dtype_code, is_op, length, part, signed_part, tail

#: Nested levels of a transfer around its runs of bytes, and bits of their counts.
LEVELS, COUNT_BITS = 3, 32
#: Operation -> the levels that it has. All others have one step.
LEVELS_OF = {"copy": (1,), "load": (0,), "nd2nz": (0, 1, 2), "fill": (0, 1, 2)}
#: Bits of a pattern that fills a memory.
PATTERN_BITS = 32


@dataclass(frozen=True)
class Level:
    """A level of a transfer: its number of steps, and the distance of a step in bytes."""

    count: Value
    source: Value
    target: Value


class Transfer:
    """The transfer of the instruction in a record.

    Attributes
    ----------
    source, to, run : Signal
        First bytes, and the length of a run.
    levels : list of Level
        From the outermost.
    short, pads : Signal
        With ``pads``, the last run of the innermost level has ``short`` bytes, and zeros fill its
        block.
    fills, pattern : Signal
        With ``fills``, the pattern is repeated in the target, from the beginning of a block.
    turned : Signal
        The blocks of the source become columns of fractals of the target.
    buffer : Signal
        Code of the buffer of the target.
    """

    def __init__(self, m: Module, record: Value, ops: tuple[str, ...]):
        self.source, self.to, self.run, self.short = (
            Signal(ADDRESS_BITS, name=f"plan_{name}") for name in ("source", "to", "run", "short")
        )
        self.fills, self.pads, self.turned = (
            Signal(name=f"plan_{name}") for name in ("fills", "pads", "turned")
        )
        self.pattern = Signal(PATTERN_BITS, name="plan_pattern")
        self.buffer = Signal(CODE_BITS, name="plan_buffer")
        self.levels = [
            Level(
                Signal(COUNT_BITS, name=f"plan_count{n}", init=1),
                Signal(ADDRESS_BITS, name=f"plan_source{n}"),
                Signal(ADDRESS_BITS, name=f"plan_target{n}"),
            )
            for n in range(LEVELS)
        ]
        # The two operands are at the same place in all moves.
        m.d.comb += [
            self.source.eq(part(record, "copy", "src")),
            self.to.eq(part(record, "copy", "dst")),
            self.buffer.eq(part(record, "copy", "dst.buffer")),
        ]
        for op in ops:
            with m.If(is_op(record, op)):
                getattr(self, f"_{op}")(m, record)

    def _level(self, m: Module, n: int, count: Any, source: Any, target: Any) -> None:
        level = self.levels[n]
        m.d.comb += [level.count.eq(count), level.source.eq(source), level.target.eq(target)]

    def _copy(self, m: Module, record: Value) -> None:
        m.d.comb += self.run.eq(part(record, "copy", "burst_bytes"))
        strides = [signed_part(record, "copy", f"{side}_stride") for side in ("src", "dst")]
        self._level(m, 1, part(record, "copy", "bursts"), *strides)

    def _nd2nz(self, m: Module, record: Value) -> None:
        def get(name: str) -> Value:
            return part(record, "nd2nz", name)

        dtype = get("src.dtype")
        width = Signal(2, name="nd2nz_width")
        wide = [dtype_code(name) for name in ("fp32", "int32", "uint32")]
        narrow = [dtype_code(name) for name in ("int8", "uint8")]
        with m.If(Cat(*(dtype == code for code in wide)).any()):
            m.d.comb += width.eq(2)
        with m.Elif(~Cat(*(dtype == code for code in narrow)).any()):
            m.d.comb += width.eq(1)
        nbytes = Signal(ADDRESS_BITS, name="nd2nz_bytes")
        m.d.comb += nbytes.eq(get("columns") << width)
        last = (nbytes - 1)[:PLACE_BITS]
        self._level(m, 0, get("matrices"), get("src_matrix_stride"), get("dst_matrix_stride"))
        self._level(m, 1, get("rows"), get("src_row_stride"), get("dst_row_stride"))
        blocks = (nbytes + BLOCK_BYTES - 1)[PLACE_BITS:]
        self._level(m, 2, blocks, BLOCK_BYTES, get("dst_c0_stride"))
        m.d.comb += [self.run.eq(BLOCK_BYTES), self.short.eq(last + 1), self.pads.eq(1)]

    def _load(self, m: Module, record: Value) -> None:
        def get(name: str) -> Value:
            return part(record, "load", name)

        m.d.comb += [self.run.eq(512), self.turned.eq(get("transpose"))]
        self._level(m, 0, get("repeat"), get("src_stride"), get("dst_stride"))

    def _fill(self, m: Module, record: Value) -> None:
        encoding = ENCODINGS["fill"]
        words = tail(record, encoding)
        m.d.comb += [
            self.fills.eq(1),
            self.run.eq(part(record, "fill", "run")),
        ]
        value = part(record, "fill", "value")
        dtype = part(record, "fill", "dst.dtype")
        narrow = [dtype_code(name) for name in ("int8", "uint8")]
        middle = [dtype_code(name) for name in ("fp16", "bf16", "int16", "uint16")]
        with m.If(Cat(*(dtype == code for code in narrow)).any()):
            m.d.comb += self.pattern.eq(value[:8].replicate(4))
        with m.Elif(Cat(*(dtype == code for code in middle)).any()):
            m.d.comb += self.pattern.eq(value[:16].replicate(2))
        with m.Else():
            m.d.comb += self.pattern.eq(value[:32])
        for n in range(LEVELS):
            word = words[64 * n : 64 * n + 64]
            with m.If(length(record) > encoding.words + n):
                self._level(m, n, word[32:], 0, word[:32])
