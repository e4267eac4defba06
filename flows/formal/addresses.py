"""The proof that an address generator yields the pixels that its definition names.

The reference walks from patch to patch: one stride to the right, or to the first patch of the next
row of patches if that does not fit (Rohwedder 2021, §3.3). The unit finds all patches of a beat
side by side. The proof is an induction. Rules that relate the unit's registers to those of the
reference make it inductive.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.flows.formal.harness import ProofHarness, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.scu.address import AddressGenerator
from vitruvian.hdl.scu.config import ConversionConfig, Mode

#: Sizes with which a row of patches has from 1 to more than ``rows`` patches.
_SMALL = ConversionConfig(
    rows=2,
    c0_bytes=2,
    address_bits=2,
    size_bits=2,
    kernel_bits=2,
    stride_bits=2,
    pad_bits=1,
    dilation_bits=1,
    channel_bits=1,
    repeat_bits=2,
    ahead=2,
)
#: Numbers of the reference, which never overflow.
_NUMBER = signed(12)
#: Cycles of the induction. Two suffice for the step; a mutation shows in the first six cycles.
_DEPTH = 6


class _Open(AddressGenerator):
    """The generator, elaborated at once, so that the rules may name its registers."""

    def __init__(self, *, config: ConversionConfig):
        super().__init__(config=config)
        self._module = super().elaborate(None)

    def elaborate(self, platform: object) -> Module:  # noqa: ARG002
        return self._module


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """The registers of the reference: the command, and the place of the next beat."""

    command: Any
    left: Signal  # fractals, with the present one
    beat: Signal
    row: Signal
    column: Signal
    ky: Signal
    kx: Signal
    channel: Signal


def _number(m: Module, name: str, value: Any) -> Signal:
    """Return a signed number of the reference with a value."""
    signal = Signal(_NUMBER, name=name)
    m.d.comb += signal.eq(value)
    return signal


def _legal(c: Any) -> list[Value]:
    """Return the conditions that ``golden.scu.Patches`` demands of a command."""
    sizes = ("height", "width", "kernel_height", "kernel_width")
    steps = ("stride_height", "stride_width", "dilation_height", "dilation_width")
    return [
        *(c[name] != 0 for name in (*sizes, *steps)),
        c.kernel_row < c.kernel_height,
        c.kernel_column < c.kernel_width,
        c.column >= -c.left,
        c.column <= _last_column(c),
        c.row <= c.height + c.bottom,
    ]


def _last_row(c: Any) -> Value:
    return c.height + c.bottom - (c.kernel_height - 1) * c.dilation_height - 1


def _last_column(c: Any) -> Value:
    return c.width + c.right - (c.kernel_width - 1) * c.dilation_width - 1


def _rank(
    h: ProofHarness, at: dict[str, Any], rank: int, valid: Value, pixels: list[Value], fill: Value
) -> None:
    """Relate a rank of registers to the pixels that it will become."""
    h.rule(f"s{rank}_valid", at[f"s{rank}_valid"] == valid)
    h.rule(f"s{rank}_fill", ~valid | (at[f"s{rank}_fill"] == fill))
    for n in range(_SMALL.rows):
        if rank == 1:
            turns = at[f"s1_turns_{n}"]
            h.rule(f"s1_turns_{n}", ~valid | ((turns & (turns - 1)[: n + 1]) == 0))
            place = Signal(_SMALL.coordinate, name=f"s1_place_{n}")
            h.m.d.comb += place.eq(at[f"s1_column_{n}"] + at["s1_kernel"])
            inside = (turns & at["s1_inside"]).any() & (place >= 0) & (place < at["s1_width"])
            steps = [Mux(turns[k], k * at["s1_step"], 0) for k in range(1, n + 1)]
            address = at["s1_line"] * at["s1_width"] + at["s1_base"] + sum(steps, place)
        else:
            inside, address = at[f"s2_inside_{n}"], at["s2_line"] + at[f"s2_offset_{n}"]
        expected_inside, expected = pixels[2 * n : 2 * n + 2]
        h.rule(f"s{rank}_inside_{n}", ~valid | (inside == expected_inside))
        same = address[: _SMALL.address_bits] == expected
        h.rule(f"s{rank}_address_{n}", ~(valid & expected_inside) | same)


def _pixels(m: Module, walk: _Walk) -> tuple[list[Value], Value, Value]:
    """Walk over the patches of a beat.

    Returns
    -------
    pixels : list of Value
        ``inside`` and the address of each pixel in turn.
    row, column : Value
        The place of the patch after them.
    """
    c, pixels = walk.command, list[Value]()
    last_row = _number(m, "ref_last_row", _last_row(c))
    last_column = _number(m, "ref_last_column", _last_column(c))
    y: Value = walk.row
    x: Value = walk.column
    for n in range(_SMALL.rows):
        line = _number(m, f"ref_line_{n}", y + walk.ky * c.dilation_height)
        place = _number(m, f"ref_place_{n}", x + walk.kx * c.dilation_width)
        inside, fits = Signal(name=f"ref_inside_{n}"), Signal(name=f"ref_fits_{n}")
        address = Signal(_SMALL.address_bits, name=f"ref_address_{n}")
        in_image = (line >= 0) & (line < c.height) & (place >= 0) & (place < c.width)
        m.d.comb += [
            inside.eq((y <= last_row) & in_image),
            address.eq(c.base + (walk.channel * c.height + line) * c.width + place),
            fits.eq(x + c.stride_width <= last_column),
        ]
        pixels += [inside, address]
        y, x = (
            _number(m, f"ref_y_{n}", Mux(fits, y, y + c.stride_height)),
            _number(m, f"ref_x_{n}", Mux(fits, x + c.stride_width, -c.left)),
        )
    # Below the last row nothing is inside, so the row may stay.
    return pixels, Mux(walk.row <= last_row, y, walk.row), x


def _step(m: Module, walk: _Walk, new: Any, begins: Value, goes: Value, after: Any) -> None:
    """Take a command, or go on to the next beat, whose place is ``after``."""
    c = walk.command
    with m.If(begins):
        m.d.sync += [
            c.eq(new),
            walk.left.eq(new.repeat),
            walk.beat.eq(0),
            walk.row.eq(new.row),
            walk.column.eq(new.column),
            walk.ky.eq(new.kernel_row),
            walk.kx.eq(new.kernel_column),
            walk.channel.eq(new.channel),
        ]
    with m.Elif(goes):
        m.d.sync += [walk.row.eq(after[0]), walk.column.eq(after[1]), walk.beat.eq(walk.beat + 1)]
        with m.If(walk.beat == _SMALL.beats - 1):
            m.d.sync += [walk.beat.eq(0), walk.left.eq(walk.left - 1)]
            with m.If(c.mode == Mode.KERNEL):
                m.d.sync += [walk.row.eq(c.row), walk.column.eq(c.column), walk.kx.eq(walk.kx + 1)]
                with m.If(walk.kx + 1 == c.kernel_width):
                    m.d.sync += [walk.kx.eq(0), walk.ky.eq(walk.ky + 1)]
                    with m.If(walk.ky + 1 == c.kernel_height):
                        m.d.sync += [walk.ky.eq(0), walk.channel.eq(walk.channel + 1)]


def _state(h: ProofHarness, dut: _Open, walk: _Walk, working: Value) -> None:
    """Relate the counters of the unit to the reference."""
    state, c, count = dut.state, walk.command, _SMALL.rows
    row, column, ky, kx = walk.row, walk.column, walk.ky, walk.kx
    last_row, last_column = _last_row(c), _last_column(c)

    def holds(name: str, condition: Any) -> None:
        h.rule(f"state_{name}", ~working | condition)

    def first(name: str, room: Any, numbers: range) -> None:
        """Demand that the bit of the first stride that exceeds the room is set, or the last."""
        beyond: Value = Const(0, 1)
        for k, n in enumerate(numbers):
            exceeds = n * c.stride_width > room
            holds(f"{name}_{k}", state[name][k] == (exceeds & ~beyond))
            beyond = exceeds
        holds(f"{name}_more", state[name][len(numbers)] == ~beyond)

    holds("command", dut.registers["command"] == Value.cast(c))
    holds("legal", Cat(*_legal(c)).all())
    holds("left", (state.left == walk.left) & (state.beat == walk.beat))
    holds("row", Mux(row <= last_row, state.row == row, state.row > last_row))
    holds("row_range", (row >= c.row) & (state.row >= c.row))
    holds("column", state.column == column)
    holds("column_range", (column >= -c.left) & (column <= last_column))
    holds("kernel_row", state.kernel_row == ky * c.dilation_height)
    holds("kernel_column", state.kernel_column == kx * c.dilation_width)
    holds("kernel", (ky < c.kernel_height) & (kx < c.kernel_width))
    holds("reach_row", state.reach_row == (c.kernel_height - 1) * c.dilation_height)
    holds("reach_column", state.reach_column == (c.kernel_width - 1) * c.dilation_width)
    holds("last_row", state.last_row == last_row)
    holds("turn", state.turn == last_column - c.stride_width)
    line = Signal(_SMALL.address_bits, name="ref_first_line")
    h.m.d.comb += line.eq(walk.channel * c.height)
    holds("first_line", state.first_line == line)
    room = last_column - c.stride_width
    first("last_here", room - column, range(count))
    first("last_first", room - c.column, range(count))
    first("last_of_row", room + c.left, range(2 * count))


def _addresses(h: ProofHarness) -> None:
    m, config = h.m, _SMALL
    dut = h.add(_Open(config=config))
    h.stable_streams_in(dut)
    for condition in _legal(dut.i.payload):
        h.assume(~dut.i.valid | condition)
    walk = _Walk(
        command=Signal(config.command, name="given"),
        left=Signal(config.repeat_bits, name="ref_left"),
        beat=Signal(range(config.beats), name="ref_beat"),
        row=Signal(_NUMBER, name="ref_row"),
        column=Signal(_NUMBER, name="ref_column"),
        ky=Signal(config.kernel_bits + 1, name="ref_ky"),
        kx=Signal(config.kernel_bits + 1, name="ref_kx"),
        channel=Signal(config.address_bits, name="ref_channel"),
    )
    pixels, *after = _pixels(m, walk)
    move, working = ~dut.o.valid | dut.o.ready, walk.left != 0
    _step(m, walk, dut.i.payload, transfers(dut.i), move & working, after)
    h.rule("busy", dut.registers["busy"] == working)
    _state(h, dut, walk, working)

    # The ranks of the reference, of which the last is the output.
    valid: Value = working
    fill: Value = walk.command.fill
    for rank in range(3):
        moved = Signal(name=f"ref_valid_{rank}")
        kept = [Signal(len(p), name=f"ref_pixel_{rank}_{n}") for n, p in enumerate(pixels)]
        kept_fill = Signal(len(fill), name=f"ref_fill_{rank}")
        with m.If(move):
            m.d.sync += [moved.eq(valid), kept_fill.eq(fill)]
            m.d.sync += [k.eq(p) for k, p in zip(kept, pixels, strict=True)]
        valid, pixels, fill = moved, list[Value](kept), kept_fill
        if rank < 2:
            _rank(h, dut.registers, rank + 1, valid, pixels, fill)
    h.rule("beat", dut.o.valid == valid)
    h.rule("fill", ~dut.o.valid | (dut.o.payload.fill == fill))
    for n in range(config.rows):
        pixel = dut.o.payload.pixels[n]
        inside, address = pixels[2 * n : 2 * n + 2]
        h.rule(f"inside_{n}", ~valid | (pixel.inside == inside))
        h.rule(f"address_{n}", ~(valid & inside) | (pixel.address == address))


PROOFS = (
    Proof(
        name="scu.addresses",
        component="AddressGenerator, 2 patches a beat, images of up to 3 × 3, strides up to 3",
        claim="Every pixel of every beat has the address that the walk over the patches gives, and "
        "is marked as inside of the image if it is; whatever the output does.",
        build=_addresses,
        method=f"induction {_DEPTH}",
        mutations=(
            Mutation(
                name="a row of patches that fills a beat counts as a longer one",
                owner=AddressGenerator,
                function="_build_walk",
                old="for length in range(1, count + 2):",
                new="for length in range(1, count + 1):",
            ),
            Mutation(
                name="a patch of the next row of patches has an address in the row before",
                owner=AddressGenerator,
                function="_build_places",
                old="s1_base + (place + below)",
                new="s1_base + place",
            ),
        ),
    ),
)
