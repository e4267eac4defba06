"""The walk over the patches of an image, which yields the addresses of pixels."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import ConversionConfig, Mode

__all__ = ["GENERATOR_CYCLES", "AddressGenerator"]

_Patch = tuple[Value, Value]

#: Register ranks from a command to its first beat: command, places of the pixels, addresses.
GENERATOR_CYCLES = 3


class AddressGenerator(wiring.Component):
    """Generator of the addresses of pixels, ``rows`` patches at one position of the kernel a beat.

    The patches follow each other by counters that step from patch to patch. Nothing is divided.
    The next patch is one stride to the right, or the first one of the next row of patches.

    Parameters
    ----------
    config : ConversionConfig

    Members
    -------
    i : In(stream.Signature(config.command))
        Commands.
    o : Out(stream.Signature(config.beat))
        Beats of ``config.rows`` pixels, ``config.beats`` for each fractal.

    Latency
    -------
    ``GENERATOR_CYCLES`` from a command to its first beat. Then there is one beat per cycle, also
    from one command to the next. If ``o`` waits, all ranks wait.

    Notes
    -----
    A command with ``repeat = 0`` yields no beat. The kernel must fit into the padded image,
    ``column`` must leave room for a patch, as ``golden.scu.Patches`` demands, and ``row`` must not
    be below the padded image. A command that violates this has as many beats as another one, with
    undefined addresses.

    References
    ----------
    Rohwedder 2021, §3.3.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: ConversionConfig):
        if not isinstance(config, ConversionConfig):
            raise TypeError(f"config must be a ConversionConfig, not {config!r}")
        self.config, self.latency = config, GENERATOR_CYCLES
        super().__init__(
            {"i": In(stream.Signature(config.command)), "o": Out(stream.Signature(config.beat))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, new = self.config, self.i.payload
        busy, move, start = Signal(), Signal(), Signal()
        state = Signal(self._state())
        command = Signal(config.command)
        following = self._build_places(m, command, state, busy, move)

        ends_fractal, ends = Signal(), Signal()
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            ends_fractal.eq(state.beat == config.beats - 1),
            ends.eq(ends_fractal & (state.left == 1)),
            self.i.ready.eq(~busy | (move & ends)),
            start.eq(self.i.valid & self.i.ready),
        ]
        with m.If(start):
            m.d.sync += [busy.eq(new.repeat != 0), command.eq(new)]
            self._build_start(m, state)
        with m.Elif(move):
            m.d.sync += [
                busy.eq(busy & ~ends),
                state.beat.eq(state.beat + 1),
                state.row.eq(following[0]),
                state.column.eq(following[1]),
            ]
            with m.If(ends_fractal):
                m.d.sync += [state.beat.eq(0), state.left.eq(state.left - 1)]
                with m.If(command.mode == Mode.KERNEL):
                    m.d.sync += [state.row.eq(command.row), state.column.eq(command.column)]
                    self._build_kernel_step(m, command, state)
        return m

    def _state(self) -> data.StructLayout:
        """Return the registers of a command in progress.

        ``row`` and ``column`` are those of the next patch, and ``kernel_row`` and ``kernel_column``
        the distance to the pixel of it that is read; ``reach_*`` are the largest such distances.
        A patch fits if it is not below ``last_row``; the next one begins a row of patches if the
        column exceeds ``turn``. ``first_line`` is the first image row of the group of channels.
        """
        c = self.config.coordinate
        return data.StructLayout(
            {
                "row": c,
                "column": c,
                "kernel_row": c,
                "kernel_column": c,
                "reach_row": c,
                "reach_column": c,
                "last_row": c,
                "turn": c,
                "first_line": self.config.address_bits,
                "beat": range(self.config.beats),
                "left": self.config.repeat_bits,
            }
        )

    def _build_start(self, m: Module, state: data.View) -> None:
        """Derive the state from a new command."""
        new = self.i.payload
        reach_row = (new.kernel_height - 1) * new.dilation_height
        reach_column = (new.kernel_width - 1) * new.dilation_width
        m.d.sync += [
            state.row.eq(new.row),
            state.column.eq(new.column),
            state.kernel_row.eq(new.kernel_row * new.dilation_height),
            state.kernel_column.eq(new.kernel_column * new.dilation_width),
            state.reach_row.eq(reach_row),
            state.reach_column.eq(reach_column),
            state.last_row.eq(new.height + new.bottom - 1 - reach_row),
            state.turn.eq(new.width + new.right - 1 - reach_column - new.stride_width),
            state.first_line.eq(new.channel * new.height),
            state.beat.eq(0),
            state.left.eq(new.repeat),
        ]

    def _build_kernel_step(self, m: Module, command: data.View, state: data.View) -> None:
        """Go on to the next position of the kernel, and after the last to the next channels."""
        with m.If(state.kernel_column != state.reach_column):
            m.d.sync += state.kernel_column.eq(state.kernel_column + command.dilation_width)
        with m.Else():
            m.d.sync += state.kernel_column.eq(0)
            with m.If(state.kernel_row != state.reach_row):
                m.d.sync += state.kernel_row.eq(state.kernel_row + command.dilation_height)
            with m.Else():
                m.d.sync += [
                    state.kernel_row.eq(0),
                    state.first_line.eq(state.first_line + command.height),
                ]

    def _build_places(
        self, m: Module, command: data.View, state: data.View, busy: Signal, move: Signal
    ) -> _Patch:
        """Build the ranks of places and addresses, and return row and column of the next beat."""
        config, bits = self.config, self.config.address_bits
        s1_valid = Signal()
        s1_width, s1_fill = Signal(config.size_bits), Signal.like(command.fill)
        with m.If(move):
            m.d.sync += [
                s1_valid.eq(busy),
                s1_width.eq(command.width),
                s1_fill.eq(command.fill),
                self.o.valid.eq(s1_valid),
                self.o.payload.fill.eq(s1_fill),
            ]
        patches, following = self._build_walk(m, command, state)
        for n, (row, column) in enumerate(patches):
            line, place = Signal(config.coordinate), Signal(config.coordinate)
            inside = Signal(name=f"inside_{n}")
            m.d.comb += [
                line.eq(row + state.kernel_row),
                place.eq(column + state.kernel_column),
                inside.eq(
                    (row <= state.last_row)
                    & (line >= 0)
                    & (line < command.height)
                    & (place >= 0)
                    & (place < command.width)
                ),
            ]
            s1_line = Signal(bits, name=f"s1_line_{n}")
            s1_offset = Signal(bits, name=f"s1_offset_{n}")
            s1_inside = Signal(name=f"s1_inside_{n}")
            pixel = self.o.payload.pixels[n]
            with m.If(move):
                m.d.sync += [
                    s1_line.eq(state.first_line + line),
                    s1_offset.eq(command.base + place),
                    s1_inside.eq(inside),
                    # Addresses are modulo 2**address_bits; in the padding they mean nothing.
                    pixel.address.eq(s1_line * s1_width + s1_offset),
                    pixel.inside.eq(s1_inside),
                ]
        return following

    def _build_walk(
        self, m: Module, command: data.View, state: data.View
    ) -> tuple[list[_Patch], _Patch]:
        """Return row and column of the patches of a beat, and of the patch after them.

        All places at which a patch can be are computed side by side: n strides to the right of the
        beat's first patch, or j strides from the left end of a row of patches. Only the choice
        among them goes from patch to patch, in a few gates each.
        """
        shape, count = self.config.coordinate, self.config.rows

        def places(name: str, first: Value, stride: Value) -> list[Signal]:
            signals = [Signal(shape, name=f"{name}_{n}") for n in range(count + 1)]
            m.d.comb += [signal.eq(first + n * stride) for n, signal in enumerate(signals)]
            return signals

        rows = places("row", state.row, command.stride_height)
        ahead = places("ahead", state.column, command.stride_width)
        heads = places("head", -command.left, command.stride_width)
        # One bit of each group is set: the patch is in the row of the first one, or at the j-th
        # place of a later row; and the number of rows between it and the first one.
        same: Value = Const(1, 1)
        at: Value = Const(0, 0)
        turns: Value = Const(1, 1)
        ends = Cat(place > state.turn for place in heads)
        patches = []
        for n in range(count + 1):
            patch = Signal(shape, name=f"patch_row_{n}"), Signal(shape, name=f"patch_column_{n}")
            turn = Signal(name=f"turn_{n}")
            leaves = ahead[n] > state.turn
            s_same, s_at = Signal(name=f"same_{n + 1}"), Signal(n + 1, name=f"at_{n + 1}")
            s_turns = Signal(n + 2, name=f"turns_{n + 1}")
            m.d.comb += [
                patch[0].eq(_chosen(turns, rows)),
                patch[1].eq(_chosen(Cat(same, at), [ahead[n], *heads])),
                turn.eq((same & leaves) | (at & ends[:n]).any()),
                s_same.eq(same & ~leaves),
                s_at.eq(Cat(turn, at & ~ends[:n])),
                s_turns.eq(Mux(turn, Cat(Const(0, 1), turns), turns)),
            ]
            patches.append(patch)
            same, at, turns = s_same, s_at, s_turns
        row, column = patches.pop()
        # A row below the last one stays there, so that no counter overflows.
        return patches, (Mux(state.row <= state.last_row, row, state.row), column)


def _chosen(bits: Value, values: Sequence[Value]) -> Value:
    """Return the value whose bit is set, as a signed number."""
    words = [
        value.as_unsigned() & bit.replicate(len(value))
        for bit, value in zip(bits, values, strict=False)
    ]
    return reduce(or_, words).as_signed()
