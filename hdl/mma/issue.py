"""Translation of matrix instructions into the beats of a matrix unit: blocks, order and slots."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.m3xu.isa import FIELDS, Opcode

from ..cube.config import MatrixUnitConfig
from ..cube.ports import Start, beat_layout


@dataclass(frozen=True, kw_only=True)
class BeatPlan:
    """The division of an instruction into beats; every count is a power of two.

    Attributes
    ----------
    rows, columns, blocks : int
        Number of blocks of the unit's own M, N and K in the instruction.
    group : int
        Number of tiles of D that accumulate in turn, as many as the slots allow.
    is_complex : bool
        If True, a tile takes a pair of slots.
    """

    rows: int
    columns: int
    blocks: int
    group: int
    is_complex: bool

    @property
    def tiles(self) -> int:
        """Number of tiles of D."""
        return self.rows * self.columns

    @property
    def beats(self) -> int:
        """Number of beats of the instruction."""
        return self.tiles * self.blocks

    @classmethod
    def of(cls, opcode: Opcode, config: MatrixUnitConfig) -> "BeatPlan":
        """Return the plan of an instruction on a unit.

        Raises
        ------
        ValueError
            If the unit does not have the instruction's precision and output, or if its tile does
            not divide the shape into powers of two.
        """
        name = opcode.precision.name
        if not _has(config, opcode):
            raise ValueError(
                f"the unit must have {name} with {opcode.precision.output} results for "
                f"{opcode.mnemonic}, not {', '.join(config.precisions)} with {config.output}"
            )
        is_complex = name in config.complex_precisions
        tile = config.m, config.n, config.terms(name) // (2 if is_complex else 1)
        counts = [size // part for size, part in zip(opcode.shape, tile, strict=True)]
        for size, part, count in zip(opcode.shape, tile, counts, strict=True):
            if count * part != size or count & (count - 1):
                raise ValueError(
                    f"the unit's tile must divide {'x'.join(map(str, opcode.shape))} into powers "
                    f"of two, not {'x'.join(map(str, tile))}"
                )
        rows, columns, blocks = counts
        # The largest power of two for which there are slots.
        capacity = config.slot_count // (2 if is_complex else 1)
        group = min(rows * columns, 1 << capacity.bit_length() - 1)
        return cls(rows=rows, columns=columns, blocks=blocks, group=group, is_complex=is_complex)


def _has(config: MatrixUnitConfig, opcode: Opcode) -> bool:
    """Return True if a unit has the instruction's precision and its format of results."""
    name = opcode.precision.name
    return name in config.precisions and config.result_format(name) == opcode.precision.output


def opcodes_of(config: MatrixUnitConfig) -> tuple[Opcode, ...]:
    """Return the instructions that a unit supports, those of its precisions and output.

    Raises
    ------
    ValueError
        If there are no such instructions, or if the unit's tile does not divide one of their
        shapes.
    """
    opcodes = tuple(opcode for opcode in Opcode if _has(config, opcode))
    if not opcodes:
        raise ValueError(
            f"the unit must have a precision and output of an instruction, "
            f"not {', '.join(config.precisions)} with {config.output}"
        )
    for opcode in opcodes:
        BeatPlan.of(opcode, config)
    return opcodes


def word_layout() -> data.StructLayout:
    """Return the layout of an encoded instruction."""
    return data.StructLayout({name: width for name, _, width in FIELDS})


def fetch_layout(config: MatrixUnitConfig) -> data.StructLayout:
    """Return the layout of a fetch request: the operands of a beat and the target of its result.

    ``opcode``, ``accumulate``, ``d``, ``a``, ``b`` and ``c`` are fields of the instruction.
    ``row``, ``column`` and ``block`` count the unit's own M, N and K. The beat takes the fractal
    (row, block) of A and (block, column) of B. The ``first`` beat of a tile also takes the fractal
    (row, column) of C if the instruction accumulates. The ``last`` beat of a tile produces the
    fractal (row, column) of D.
    """
    plans = [BeatPlan.of(opcode, config) for opcode in opcodes_of(config)]

    def bits(counts: list[int]) -> int:
        return (max(counts) - 1).bit_length()

    return data.StructLayout(
        {name: width for name, _, width in FIELDS}
        | {
            "row": bits([plan.rows for plan in plans]),
            "column": bits([plan.columns for plan in plans]),
            "block": bits([plan.blocks for plan in plans]),
            "first": 1,
            "last": 1,
        }
    )


def control_layout(config: MatrixUnitConfig) -> data.StructLayout:
    """Return the layout of a beat without its operands, the control of a ``MatrixUnit``."""
    members = beat_layout(config).members
    return data.StructLayout({name: members[name] for name in members if name not in ("a", "b")})


class Issue(wiring.Component):
    """Issue unit that produces the beats of one instruction after the other.

    It refers to operands by register and block and never holds their values. The register file
    fetches them, so its width and latency are free. An instruction stays on ``i`` until its last
    beat has been issued, so the only state is the number of the beat and the next free slot.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit to feed.

    Members
    -------
    i : In(stream.Signature(word_layout()))
        Instructions, as ``golden.m3xu.isa`` encodes them.
    o : Out(stream.Signature({fetch: fetch_layout, control: control_layout}))
        Beats: a fetch request and the unit's control.
    illegal : Out(1)
        Set if an opcode that the unit does not have was dropped since reset.

    Latency
    -------
    Zero: the first beat is valid in the cycle in which its instruction is. There is one beat per
    cycle, also from one instruction to the next one of another precision. An illegal instruction
    takes one cycle.

    Notes
    -----
    The bits of a beat's number are, from the lowest: the index of its tile in the group, its block
    of K, and the group. A tile's number is its index in the group with the group above it; the row
    block is in the low bits. The tiles of a group therefore accumulate in turn, in rising K, each
    in a slot (or pair of slots) of its own. The groups use the slots of the unit in rotation.

    Slots, not registers, hold sums within an instruction; a sum that the next instruction continues
    goes through a register. The register fields are passed on unread. The fetch unit must know if C
    has been written back.

    Raises
    ------
    TypeError, ValueError
        If ``config`` is not a ``MatrixUnitConfig``, or if the unit has no instructions.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface
        illegal: Signal

    def __init__(self, *, config: MatrixUnitConfig):
        if not isinstance(config, MatrixUnitConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {config!r}")
        self.config = config
        self.opcodes = opcodes_of(config)
        beat = data.StructLayout({"fetch": fetch_layout(config), "control": control_layout(config)})
        super().__init__(
            {
                "i": In(stream.Signature(word_layout())),
                "o": Out(stream.Signature(beat)),
                "illegal": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, word = self.config, self.i.payload
        fetch, control = self.o.payload.fetch, self.o.payload.control
        plans = {opcode: BeatPlan.of(opcode, config) for opcode in self.opcodes}
        number = Signal(range(max(plan.beats for plan in plans.values())))
        place = Signal(range(max(plan.group for plan in plans.values())))
        # These are functions of the opcode and of the beat's number alone.
        known, is_complex, ends_group, ends = (
            Signal(name=name) for name in ("known", "is_complex", "ends_group", "ends")
        )
        with m.Switch(word.opcode):
            for opcode, plan in plans.items():
                with m.Case(opcode.code):
                    # The fields of a beat's number, see Notes.
                    index, rest = _cut(number, plan.group)
                    block, rest = _cut(rest, plan.blocks)
                    tile = Cat(index, _cut(rest, plan.tiles // plan.group)[0])
                    row, column = _cut(tile, plan.rows)
                    m.d.comb += [
                        known.eq(1),
                        is_complex.eq(plan.is_complex),
                        place.eq(index),
                        fetch.row.eq(row),
                        fetch.column.eq(column),
                        fetch.block.eq(block),
                        fetch.first.eq(block == 0),
                        fetch.last.eq(block == plan.blocks - 1),
                        ends_group.eq(fetch.last & (index == plan.group - 1)),
                        ends.eq(number == plan.beats - 1),
                    ]
                    if config.precision_bits:
                        code = config.precisions.index(opcode.precision.name)
                        m.d.comb += Value.cast(control.precision).eq(code)
        m.d.comb += [getattr(fetch, name).eq(getattr(word, name)) for name, _, _ in FIELDS]
        m.d.comb += [
            control.emit.eq(fetch.last),
            self.o.valid.eq(self.i.valid & known),
            # An instruction is taken with its last beat; an unknown one is dropped at once.
            self.i.ready.eq(~known | (self.o.ready & ends)),
        ]
        with m.If(~fetch.first):
            m.d.comb += control.start.eq(Start.ACCUMULATE)
        with m.Else():
            m.d.comb += control.start.eq(Mux(word.accumulate, Start.FROM_C, Start.ZERO))
        with m.If(self.i.valid & ~known):
            m.d.sync += self.illegal.eq(1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += number.eq(Mux(ends, 0, number + 1))
        self._build_slots(m, place, is_complex, ends_group)
        return m

    def _build_slots(self, m: Module, place: Signal, is_complex: Signal, ends: Signal) -> None:
        """Assign the slots of a group, starting with the first free slot and in rotation.

        A complex tile takes an even slot and the one above it.
        """
        count = self.config.slot_count
        free = Signal(range(count))
        offset = Signal(range(2 * count))
        slot, after = Signal(range(count)), Signal(range(count))
        m.d.comb += [
            # A complex tile starts at an even slot.
            offset.eq(Mux(is_complex, (free + (free & 1)) + (place << 1), free + place)),
            # ``offset`` is below twice the number of slots, so one subtraction is the modulo.
            slot.eq(Mux(offset >= count, offset - count, offset)),
            after.eq(slot + 1 + is_complex),
            self.o.payload.control.slot.eq(slot),
        ]
        last = Signal()
        m.d.comb += last.eq(slot + 1 + is_complex >= count)
        with m.If(self.o.valid & self.o.ready & ends):
            m.d.sync += free.eq(Mux(last, 0, after))


def _cut(value: Value, count: int) -> tuple[Value, Value]:
    """Split a number into its lowest bits, which have ``count`` values, and the bits above."""
    bits = (count - 1).bit_length()
    return value[:bits], value[bits:]
