"""What an instruction of unit V asks for, in the form that its beats need."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, WORD_BITS

from ..scu.config import ROWS
from ..vector.integer import AMOUNT_BITS
from ..vector.operations import OPERATIONS, Condition, Operation, Rounding
from .config import CoreConfig
from .lane_walk import LEVELS, MASK_BITS, SIZE_BITS
from .lanes import (
    COMBINED,
    CONVERSIONS,
    EXTRA_CONVERSIONS,
    EXTRA_OPS,
    INDEXED,
    INTEGER_OPS,
    INTEGERS,
    LANE_OPS,
    REDUCTIONS,
    ExtraOp,
)
from .ports import ADDRESS_BITS, BLOCK_BYTES, PLACE_BITS, bits
from .record import dtype_code, is_op, length, part, signed_part

#: Blocks of a repeat.
REPEAT_BLOCKS = 8

#: What all beats of an instruction have in common.
LANES_LAYOUT = data.StructLayout(
    {
        "operation": 5,
        "wide": 1,
        "condition": 3,
        "rounding": 3,
        "from_scalar": 1,
        "scalar": 32,
        "one": 1,
        "two": 1,
        "from_l0c": 1,
        "expands": 1,
        "shrinks": 1,
        "selects": 1,
        "compares": 1,
        "to_register": 1,
        "passes": 1,
        "relu": 1,  # of results of L0C in FP16, or of a multiply-add
        "reduces": 1,  # a block gives few results
        "combines": 1,  # the results of the blocks of a repeat are combined
        "indexed": 1,
        "order": 2,
        "extra": 1,  # the extension carries it out
        "extra_operation": 4,
        "third": 1,  # it reads the target
        "images": 1,  # Col2Im: the first operand and the target are pixels
        "arithmetic": 1,
        "nearest": 1,
        "amount": AMOUNT_BITS,
        "last_rows": 2,  # rows of L0C of a column's last beat, modulo those of a beat
    }
)


class LanePlan:
    """The plan of the instruction in a record.

    Attributes
    ----------
    now : View of ``LANES_LAYOUT``
        What all beats have in common.
    counts : list of Signal
        Steps of each level.
    places, steps, offsets : list
        Of target, first and second operand: the first byte, the step of each level in bytes, and
        the distances in bytes from a beat's first block to its others. The steps of the two inner
        levels begin at the place of the beat before, that of a repeat at the repeat before.
    mask, lane_step : Signal
        The mask of a repeat, and the lanes of a beat.
    """

    def __init__(self, m: Module, record: Value, config: CoreConfig):
        self.now = Signal(LANES_LAYOUT, name="plan")
        self.counts = [Signal(SIZE_BITS, name=f"plan_count{n}", init=1) for n in range(LEVELS)]
        self.places = [Signal(ADDRESS_BITS, name=f"plan_place{o}") for o in range(3)]
        self.steps = [
            [Signal(ADDRESS_BITS, name=f"plan_step{o}_{n}") for n in range(LEVELS)]
            for o in range(3)
        ]
        self.blocks = config.lane_blocks
        self.offsets = [
            [Signal(ADDRESS_BITS, name=f"plan_offset{o}_{j}") for j in range(self.blocks)]
            for o in range(3)
        ]
        self.mask = Signal(MASK_BITS, name="plan_mask")
        self.lane_step = Signal(8, name="plan_lane_step")
        self._build_dtypes(m, record, config)
        self._build_operation(m, record, config)
        self._build_levels(m, record)
        self._build_mask(m, record)
        self._build_reduction(m, record, config)
        with m.If(is_op(record, "matrix_out")):
            self._build_matrix_out(m, record, config.wide_sums)
        with m.If(is_op(record, "col2im")):
            self._build_images(m, record, config.wide_images)

    def _build_dtypes(self, m: Module, record: Value, config: CoreConfig) -> None:
        """Find the widths of the elements, and what kind of operation it is."""
        now = self.now
        # All vector instructions have their parts at equal places.
        self._dtypes = [part(record, "vadd", f"{name}.dtype") for name in _OPERANDS]
        target = self._dtypes[0]
        # vdup has no source.
        source = Mux(is_op(record, "vdup"), target, self._dtypes[1])
        # A reduction of pairs shrinks its blocks too, but has no halves: these are of conversions.
        expands, shrinks = Signal(name="expands"), Signal(name="shrinks")
        self._expands, self._shrinks = expands, shrinks
        operations = config.extension.operations
        smalls = [a for (a, _), op in EXTRA_CONVERSIONS.items() if op in operations]
        wide, long_target, small, small_target = (
            Signal(name=name)
            for name in ("source_wide", "target_wide", "source_small", "target_small")
        )
        longs = [dtype_code(name) for name in ("fp32", "int32", "uint32")]
        converts = is_op(record, "vconv")
        compares = is_op(record, "vcmp", "vcmpv", "vcmpvs")
        m.d.comb += [
            wide.eq(_is(source, *longs)),
            long_target.eq(_is(target, *longs)),
            small_target.eq(_is(target, dtype_code("int8"), dtype_code("uint8"))),
            small.eq(_is(source, *map(dtype_code, smalls))),
            expands.eq(converts & ~wide & (long_target | small)),
            shrinks.eq(converts & ((wide & ~long_target) | (~wide & small_target))),
            now.expands.eq(expands),
            now.shrinks.eq(shrinks),
            now.wide.eq(wide),
            now.scalar.eq(part(record, "vadds", "scalar")),
            now.selects.eq(is_op(record, "vsel")),
            now.compares.eq(compares),
            now.to_register.eq(is_op(record, "vcmp")),
            now.condition.eq(_renamed(m, record, _CONDITIONS, "vcmp", "condition")),
            now.rounding.eq(_renamed(m, record, _ROUNDINGS, "vconv", "rounding")),
            # A comparison has no target with lanes.
            self.lane_step.eq(Mux(wide | (long_target & ~compares), 8, 16) * self.blocks),
        ]

    def _build_operation(self, m: Module, record: Value, config: CoreConfig) -> None:
        now, dtypes = self.now, self._dtypes
        for op, lane in LANE_OPS.items():
            if lane.operation not in config.vector.operations:
                continue
            with m.If(is_op(record, op)):
                m.d.comb += [
                    now.operation.eq(lane.operation.value),
                    now.one.eq(lane.one),
                    now.two.eq(lane.two),
                    now.from_scalar.eq(lane.scalar and OPERATIONS[lane.operation].reads_b),
                ]
        self._build_extra(m, record, config)
        with m.If(is_op(record, "vconv")):
            m.d.comb += now.one.eq(1)
            for (origin, goal), operation in CONVERSIONS.items():
                if operation not in config.vector.operations:
                    continue
                hit = (dtypes[1] == DTYPES.index(origin)) & (dtypes[0] == DTYPES.index(goal))
                with m.If(hit):
                    m.d.comb += now.operation.eq(operation.value)

    def _build_extra(self, m: Module, record: Value, config: CoreConfig) -> None:
        """Find what the extension of the vector unit carries out."""
        source = self._dtypes[1]
        whole = _is(source, *(dtype_code(name) for name in INTEGERS))
        rows: list[tuple[Value, ExtraOp]] = [
            *((is_op(record, op), extra) for op, extra in EXTRA_OPS.items()),
            *((is_op(record, op) & whole, extra) for op, extra in INTEGER_OPS.items()),
        ]
        for chosen, extra in rows:
            if extra.operation not in config.extension.operations:
                continue
            with m.If(chosen):
                m.d.comb += [
                    self.now.extra.eq(1),
                    self.now.extra_operation.eq(extra.operation.value),
                    self.now.one.eq(1),
                    self.now.two.eq(extra.two),
                    self.now.third.eq(extra.third),
                    self.now.from_scalar.eq(extra.scalar),
                    self.now.relu.eq(extra.relu),
                ]
        for (origin, goal), operation in EXTRA_CONVERSIONS.items():
            if operation not in config.extension.operations:
                continue
            hit = (source == dtype_code(origin)) & (self._dtypes[0] == dtype_code(goal))
            with m.If(is_op(record, "vconv") & hit):
                m.d.comb += [
                    self.now.extra.eq(1),
                    self.now.extra_operation.eq(operation.value),
                ]
        m.d.comb += [
            self.now.arithmetic.eq(_is(source, *map(dtype_code, ("int8", "int16", "int32")))),
            self.now.nearest.eq(part(record, "vshr", "round")),
            self.now.amount.eq(part(record, "vshr", "amount")),
        ]

    def _build_levels(self, m: Module, record: Value) -> None:
        """Count repeats, beats and halves, and find the steps of the operands."""
        now, per = self.now, self.blocks
        blocks = [part(record, "vadd", f"{name}_block_stride") for name in _OPERANDS]
        repeats = [part(record, "vadd", f"{name}_repeat_stride") for name in _OPERANDS]
        expands, shrinks = self._expands, self._shrinks
        halves = expands | shrinks
        m.d.comb += [self.places[o].eq(part(record, "vadd", _OPERANDS[o])) for o in range(3)]
        m.d.comb += [
            self.counts[0].eq(part(record, "vadd", "repeat")),
            self.counts[1].eq(REPEAT_BLOCKS // per),
        ]
        if per == 1:
            # A block of the longer operand is two halves of one of the shorter.
            m.d.comb += [
                self.counts[1].eq(Mux(halves, REPEAT_BLOCKS // 2, REPEAT_BLOCKS)),
                self.counts[2].eq(Mux(halves, 2, 1)),
            ]
        for o in range(3):
            block = Signal(ADDRESS_BITS, name=f"block_bytes{o}")
            m.d.comb += block.eq(blocks[o] << PLACE_BITS)
            half = shrinks if o == 0 else expands  # this operand has two beats in a block
            m.d.comb += self.steps[o][0].eq(repeats[o] << PLACE_BITS)
            m.d.comb += [self.offsets[o][j].eq(block * j) for j in range(per)]
            if per == 1:
                m.d.comb += [
                    self.steps[o][1].eq(block - Mux(half, BLOCK_BYTES // 2, 0)),
                    self.steps[o][2].eq(Mux(half, BLOCK_BYTES // 2, block)),
                ]
            else:
                m.d.comb += self.steps[o][1].eq(Mux(half, block * (per // 2), block * per))
        with m.If(now.compares):
            # Bits of a repeat follow those of the last one.
            size = Mux(now.wide, 1, 2)
            m.d.comb += [self.steps[0][0].eq(size << 3), self.steps[0][1].eq(size * per)]

    def _build_mask(self, m: Module, record: Value) -> None:
        """Read the words behind the fixed ones; without any, all lanes are enabled."""
        fixed = {op: ENCODINGS[op].words for op in ("vadd", "vsel", "vdup")}
        self._read_mask(m, record, fixed["vadd"])
        for op in ("vsel", "vdup"):
            with m.If(is_op(record, op)):
                self._read_mask(m, record, fixed[op])

    def _read_mask(self, m: Module, record: Value, words: int) -> None:
        low = WORD_BITS * words
        with m.If(length(record) == words):
            m.d.comb += self.mask.eq(~Const(0, MASK_BITS))
        with m.Elif(length(record) == words + 1):
            m.d.comb += self.mask.eq(record[low : low + WORD_BITS])
        with m.Else():
            m.d.comb += self.mask.eq(record[low : low + MASK_BITS])

    def _build_reduction(self, m: Module, record: Value, config: CoreConfig) -> None:
        """Blocks give one result each, or half as many as lanes; most are combined afterwards."""
        now = self.now
        if "reduce" not in config.vector.groups:
            return
        fp32 = dtype_code("fp32")
        wide = part(record, "vcadd", "src.dtype") == fp32
        size = Signal(3, name="element_bytes")
        m.d.comb += size.eq(Mux(wide, 4, 2))
        beats = REPEAT_BLOCKS // self.blocks
        for op, operation in REDUCTIONS.items():
            if operation not in config.vector.operations:
                continue
            combines = op in COMBINED and beats > 1
            pairs = op == "vcpadd"
            with m.If(is_op(record, op)):
                m.d.comb += [
                    now.operation.eq(operation.value),
                    now.one.eq(1),
                    now.reduces.eq(1),
                    now.combines.eq(combines),
                    now.indexed.eq(op in INDEXED),
                    now.wide.eq(wide),
                    now.shrinks.eq(pairs),
                    now.order.eq(part(record, "vcadd", "order")),
                    self.counts[1].eq(beats + combines),
                    self.steps[0][0].eq(signed_part(record, "vcadd", "dst_repeat_bytes")),
                    self.steps[0][1].eq(
                        (0 if op in COMBINED else BLOCK_BYTES // 2 if pairs else size) * self.blocks
                    ),
                    self.lane_step.eq(Mux(wide, 8, 16) * self.blocks),
                ]
                m.d.comb += [self.offsets[0][j].eq(BLOCK_BYTES * j) for j in range(self.blocks)]

    def _build_matrix_out(self, m: Module, record: Value, may_be_wide: bool) -> None:
        """Columns of m × 16 elements; a row is two blocks of FP32 or one of FP16."""
        now = self.now

        def get(name: str) -> Value:
            return part(record, "matrix_out", name)

        narrow, rows = Signal(name="out_narrow"), get("m")
        if may_be_wide:  # a row of elements of 64 bits is two of 32 bits
            rows = Mux(get("src.dtype") == dtype_code("uint64"), rows << 1, rows)
        m.d.comb += [
            narrow.eq(get("dst.dtype") == dtype_code("fp16")),
            now.operation.eq(Operation.TO_FP16.value),
            now.wide.eq(1),
            now.one.eq(1),
            now.two.eq(0),
            now.from_scalar.eq(0),
            now.from_l0c.eq(get("src.buffer") == BUFFERS.index("L0C")),
            now.shrinks.eq(narrow),
            now.expands.eq(0),
            now.passes.eq(~narrow),
            now.relu.eq(get("relu")),
            now.selects.eq(0),
            now.compares.eq(0),
            now.to_register.eq(0),
            now.rounding.eq(0),
            now.reduces.eq(0),
            now.combines.eq(0),
            now.extra.eq(0),
            now.third.eq(0),
            self.places[0].eq(get("dst")),
            self.places[1].eq(get("src")),
            self.counts[0].eq((get("n") + 15) >> 4),
            self.mask.eq(~Const(0, MASK_BITS)),
            self.lane_step.eq(0),
            self.steps[0][0].eq(signed_part(record, "matrix_out", "dst_stride")),
            self.steps[1][0].eq(signed_part(record, "matrix_out", "src_stride")),
        ]
        m.d.comb += [self.offsets[0][j].eq(BLOCK_BYTES * j) for j in range(self.blocks)]
        # Rows of 64 bytes: two beats for one, or some in a beat.
        if self.blocks == 1:
            m.d.comb += [
                self.counts[1].eq(rows),
                self.counts[2].eq(2),
                self.steps[0][1].eq(Mux(narrow, BLOCK_BYTES // 2, BLOCK_BYTES)),
                self.steps[1][1].eq(BLOCK_BYTES),
                self.steps[0][2].eq(Mux(narrow, BLOCK_BYTES // 2, BLOCK_BYTES)),
                self.steps[1][2].eq(BLOCK_BYTES),
            ]
            return
        each = self.blocks // 2
        m.d.comb += [
            self.counts[1].eq((rows + each - 1) >> bits(each)),
            now.last_rows.eq(rows[: bits(each)] if each > 1 else 0),
            self.steps[0][1].eq(Mux(narrow, BLOCK_BYTES * each, 2 * BLOCK_BYTES * each)),
            self.steps[1][1].eq(2 * BLOCK_BYTES * each),
        ]

    def _build_images(self, m: Module, record: Value, may_be_wide: bool) -> None:
        """Add the rows of fractals, which follow each other, to pixels that a walk finds."""
        wide = part(record, "col2im", "src.dtype") == dtype_code("fp32")
        wide = wide if may_be_wide else Const(0, 1)
        row = Mux(wide, 2 * BLOCK_BYTES, BLOCK_BYTES)
        # The lanes of a block. A beat of one block has no others of FP32.
        sixteen, eight = ((1 << BLOCK_BYTES // size) - 1 for size in (2, 4))
        mask = sixteen if self.blocks == 1 else Mux(wide, eight, sixteen)
        m.d.comb += [
            self.now.images.eq(1),
            self.now.operation.eq(Operation.ADD.value),
            self.now.one.eq(1),
            self.now.two.eq(1),
            self.places[2].eq(part(record, "col2im", "src")),
            self.counts[1].eq(ROWS),
            self.counts[2].eq(Mux(wide, 2, 1)),
            self.steps[2][0].eq(ROWS * row),
            self.steps[2][1].eq(BLOCK_BYTES),
            self.steps[2][2].eq(BLOCK_BYTES),
            self.mask.eq(mask),
            self.lane_step.eq(0),
        ]


_OPERANDS = ("dst", "src0", "src1")
_CONDITIONS = {name: Condition[name.upper()].value for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_ROUNDINGS = {
    "none": Rounding.NEAREST_EVEN.value,
    "rint": Rounding.NEAREST_EVEN.value,
    "round": Rounding.NEAREST_AWAY.value,
    "floor": Rounding.DOWN.value,
    "ceil": Rounding.UP.value,
    "trunc": Rounding.ZERO.value,
}


def _renamed(m: Module, record: Value, codes: dict[str, int], op: str, name: str) -> Value:
    """Return the vector unit's code of a name that is a field of an instruction."""
    member = next(x for x in ENCODINGS[op].members if x.name == name)
    field = part(record, op, name)
    result = Signal(3, name=f"code_of_{name}")
    with m.Switch(field):
        for code, word in enumerate(member.names):
            if word in codes:
                with m.Case(code):
                    m.d.comb += result.eq(codes[word])
    return result


def _is(value: Value, *codes: int) -> Value:
    return Cat(*(value == code for code in codes)).any()
