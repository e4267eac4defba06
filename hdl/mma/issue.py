"""From matrix instructions to the beats of a matrix unit: which blocks, in which order and slot."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.m3xu.isa import FIELDS, Opcode
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.ports import Start, beat_layout

__all__ = ["Issue", "Plan", "control_layout", "fetch_layout", "opcodes_of", "word_layout"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How an instruction is cut into beats: every count is a power of two.

    Attributes
    ----------
    rows, columns, blocks : int
        Blocks of the unit's own M, N and K in the instruction.
    group : int
        Tiles of D that accumulate in turn: as many as there are slots for.
    is_complex : bool
        Whether a tile takes a pair of slots.
    """

    rows: int
    columns: int
    blocks: int
    group: int
    is_complex: bool

    @property
    def tiles(self) -> int:
        """Tiles of D."""
        return self.rows * self.columns

    @property
    def beats(self) -> int:
        """Beats of the instruction."""
        return self.tiles * self.blocks

    @classmethod
    def of(cls, opcode: Opcode, config: MatrixUnitConfig) -> "Plan":
        """The plan of an instruction on a unit.

        Raises
        ------
        ValueError
            If the unit has another precision or output, or its tile does not divide the shape into
            powers of two.
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
        places = config.slot_count // (2 if is_complex else 1)
        group = min(rows * columns, 1 << places.bit_length() - 1)
        return cls(rows=rows, columns=columns, blocks=blocks, group=group, is_complex=is_complex)


def _has(config: MatrixUnitConfig, opcode: Opcode) -> bool:
    """Whether a unit has the instruction's precision with its format of results."""
    name = opcode.precision.name
    return name in config.precisions and config.result_format(name) == opcode.precision.output


def opcodes_of(config: MatrixUnitConfig) -> tuple[Opcode, ...]:
    """The instructions that a unit has: those of its precisions and output.

    Raises
    ------
    ValueError
        If there are none, or the unit's tile does not divide one of their shapes.
    """
    found = tuple(opcode for opcode in Opcode if _has(config, opcode))
    if not found:
        raise ValueError(
            f"the unit must have a precision and output of an instruction, "
            f"not {', '.join(config.precisions)} with {config.output}"
        )
    for opcode in found:
        Plan.of(opcode, config)
    return found


def word_layout() -> data.StructLayout:
    """An instruction as it is encoded."""
    return data.StructLayout({name: width for name, _, width in FIELDS})


def fetch_layout(config: MatrixUnitConfig) -> data.StructLayout:
    """Which operands a beat takes and where its result goes.

    ``opcode``, ``accumulate``, ``d``, ``a``, ``b`` and ``c`` are the instruction's. ``row``,
    ``column`` and ``block`` count the unit's own M, N and K: the beat takes fractal (row, block) of
    A and (block, column) of B; the ``first`` beat of a tile, if the instruction accumulates, also
    fractal (row, column) of C; the ``last`` one gives that of D.
    """
    plans = [Plan.of(opcode, config) for opcode in opcodes_of(config)]

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
    """A beat without its operands: what `MatrixUnit` is told beside them."""
    members = beat_layout(config).members
    return data.StructLayout({name: members[name] for name in members if name not in ("a", "b")})


class Issue(wiring.Component):
    """Gives the beats of one instruction after the other.

    It names operands by register and block and never holds one: fetching is the register file's
    work, whose width and latency are then free. An instruction stays on ``i`` until its last beat
    has gone, so the only state is the beat's number and the next free slot.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit to feed.

    Members
    -------
    i : In(stream.Signature(word_layout()))
        Instructions, as `golden.m3xu.isa` encodes them.
    o : Out(stream.Signature({fetch: fetch_layout, control: control_layout}))
        Beats: what to fetch, and what to tell the unit with it.
    illegal : Out(1)
        An opcode that the unit does not have was dropped since reset.

    Latency
    -------
    None: a beat is there in the cycle its instruction is. One beat a cycle, also from one
    instruction to the next of another precision; an illegal instruction takes a cycle.

    Notes
    -----
    The bits of a beat's number are, from the lowest, its tile's place in the group, its block of K,
    and the group; a tile's number is its place under its group, the row block in the low bits. So
    the tiles of a group accumulate in turn, each in a slot (or pair of slots) of its own, in rising
    K. Groups follow one another round the unit's slots.

    Slots, not registers, hold sums within an instruction; what goes on in the next one goes through
    a register. The register fields are passed on unread: whether C has been written back is for the
    fetcher to know.

    Raises
    ------
    TypeError, ValueError
        If ``config`` is not a `MatrixUnitConfig`, or one without instructions.
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
        plans = {opcode: Plan.of(opcode, config) for opcode in self.opcodes}
        number = Signal(range(max(plan.beats for plan in plans.values())))
        place = Signal(range(max(plan.group for plan in plans.values())))
        known, is_complex, ends_group, ends = (
            Signal(name=name) for name in ("known", "is_complex", "ends_group", "ends")
        )
        with m.Switch(word.opcode):
            for opcode, plan in plans.items():
                with m.Case(opcode.code):
                    here, rest = _cut(number, plan.group)
                    block, rest = _cut(rest, plan.blocks)
                    tile = Cat(here, _cut(rest, plan.tiles // plan.group)[0])
                    row, column = _cut(tile, plan.rows)
                    m.d.comb += [
                        known.eq(1),
                        is_complex.eq(plan.is_complex),
                        place.eq(here),
                        fetch.row.eq(row),
                        fetch.column.eq(column),
                        fetch.block.eq(block),
                        fetch.first.eq(block == 0),
                        fetch.last.eq(block == plan.blocks - 1),
                        ends_group.eq(fetch.last & (here == plan.group - 1)),
                        ends.eq(number == plan.beats - 1),
                    ]
                    if config.precision_bits:
                        code = config.precisions.index(opcode.precision.name)
                        m.d.comb += Value.cast(control.precision).eq(code)
        m.d.comb += [getattr(fetch, name).eq(getattr(word, name)) for name, _, _ in FIELDS]
        m.d.comb += [
            control.emit.eq(fetch.last),
            self.o.valid.eq(self.i.valid & known),
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
        """Slots of a group, from the first free one on and round; complex ones begin at a pair."""
        count = self.config.slot_count
        free = Signal(range(count))
        offset = Signal(range(2 * count))
        slot, after = Signal(range(count)), Signal(range(count))
        m.d.comb += [
            offset.eq(Mux(is_complex, (free + (free & 1)) + (place << 1), free + place)),
            slot.eq(Mux(offset >= count, offset - count, offset)),
            after.eq(slot + 1 + is_complex),
            self.o.payload.control.slot.eq(slot),
        ]
        last = Signal()
        m.d.comb += last.eq(slot + 1 + is_complex >= count)
        with m.If(self.o.valid & self.o.ready & ends):
            m.d.sync += free.eq(Mux(last, 0, after))


def _cut(value: Value, count: int) -> tuple[Value, Value]:
    """The low bits of a number that counts to ``count``, and the rest."""
    bits = (count - 1).bit_length()
    return value[:bits], value[bits:]
