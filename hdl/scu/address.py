"""The walk over the patches of an image, which yields the addresses of pixels."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import ConversionConfig, Mode, check_config

_Patch = tuple[Value, Value]
#: Row, column and ``last_here`` of the next beat.
_Next = tuple[Value, Value, Value]

#: Register ranks from a command to its first beat: command, places of the pixels, the product and
#: the rest of the addresses, addresses.
GENERATOR_CYCLES = 4


class AddressGenerator(wiring.Component):
    """Generator of the addresses of pixels, ``rows`` patches at one position of the kernel a beat.

    Counters hold the place of a beat's first patch, and nothing is divided. The next patch is one
    stride to the right, or the first one of the next row of patches. All patches of a beat share
    one multiplication of a row by the width.

    Members
    -------
    i : In(stream.Signature(config.command))
        Commands.
    hold : In(1)
        While this is 1, no command is taken, but the one that waits is prepared.
    o : Out(stream.Signature(config.beat))
        Beats of ``config.rows`` pixels, ``config.beats`` for each fractal.

    Latency
    -------
    A command is taken in the second cycle in which it is offered, or later. From there,
    ``GENERATOR_CYCLES`` pass to its first beat. Then there is one beat per cycle, also from one
    command to the next if that one is offered before the last beat of this one. If ``o`` waits,
    all ranks wait.

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
        hold: Signal
        o: stream.Interface

    def __init__(self, *, config: ConversionConfig):
        check_config(config)
        self.config, self.latency = config, GENERATOR_CYCLES
        super().__init__(
            {
                "i": In(stream.Signature(config.command)),
                "hold": In(1),
                "o": Out(stream.Signature(config.beat)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, new = self.config, self.i.payload
        busy, move, start, prepared = Signal(), Signal(), Signal(), Signal()
        state = Signal(self._state())
        command = Signal(config.command)
        following = self._build_places(m, command, state, busy, move)
        known = self._build_waiting(m)

        ends_fractal, ends = Signal(), Signal()
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            ends_fractal.eq(state.beat == config.beats - 1),
            ends.eq(ends_fractal & (state.left == 1)),
            self.i.ready.eq(prepared & ~self.hold & (~busy | (move & ends))),
            start.eq(self.i.valid & self.i.ready),
        ]
        # One cycle in which the products of the waiting command get their registers.
        m.d.sync += prepared.eq(self.i.valid & ~start)
        with m.If(start):
            m.d.sync += [busy.eq(new.repeat != 0), command.eq(new)]
            self._build_start(m, state, known)
        with m.Elif(move):
            m.d.sync += [
                busy.eq(busy & ~ends),
                state.beat.eq(state.beat + 1),
                state.row.eq(following[0]),
                state.column.eq(following[1]),
                state.last_here.eq(following[2]),
            ]
            with m.If(ends_fractal):
                m.d.sync += [state.beat.eq(0), state.left.eq(state.left - 1)]
                with m.If(command.mode == Mode.KERNEL):
                    m.d.sync += [
                        state.row.eq(command.row),
                        state.column.eq(command.column),
                        # In this mode each fractal returns to the first patch with the next
                        # position of the kernel.
                        state.last_here.eq(state.last_first),
                    ]
                    self._build_kernel_step(m, command, state)
        return m

    def _state(self) -> data.StructLayout:
        """Return the registers of a command in progress.

        ``row`` and ``column`` are those of the next patch, and ``kernel_row`` and ``kernel_column``
        the distance to the pixel of it that is read; ``reach_*`` are the largest such distances.
        A patch fits if it is not below ``last_row``; the next one begins a row of patches if the
        column exceeds ``turn``. ``first_line`` is the first image row of the group of channels.

        One bit is set in each ``last_*``: bit n if the n-th patch is the last one in its row of
        patches, counted from the beat's first patch (``last_here``), from the first patch of a
        fractal (``last_first``) or from the left end (``last_of_row``). The highest bit stands for
        any patch after those of the other bits.
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
                "last_here": self.config.rows + 1,
                "last_first": self.config.rows + 1,
                "last_of_row": 2 * self.config.rows + 1,
                "first_line": self.config.address_bits,
                "beat": range(self.config.beats),
                "left": self.config.repeat_bits,
            }
        )

    def _build_waiting(self, m: Module) -> dict[str, Value]:
        """Prepare the state of the command that waits at ``i``, and return a part of it by name.

        The products are registered while the command waits, so no path leads through them and a
        sum.
        """
        new, shape = self.i.payload, self.config.coordinate
        size = {"first_line": self.config.address_bits}
        products = {
            "reach_row": (new.kernel_height - 1) * new.dilation_height,
            "reach_column": (new.kernel_width - 1) * new.dilation_width,
            "kernel_row": new.kernel_row * new.dilation_height,
            "kernel_column": new.kernel_column * new.dilation_width,
            "first_line": new.channel * new.height,
        }
        known: dict[str, Value] = {
            name: Signal(size.get(name, shape), name=f"new_{name}") for name in products
        }
        m.d.sync += [known[name].eq(product) for name, product in products.items()]
        last_row, turn = Signal(shape, name="new_last_row"), Signal(shape, name="new_turn")
        # A patch fits if its last pixel is in the padded image; ``turn`` is the last column from
        # which another stride leads to one that fits.
        right = new.width + new.right - 1 - new.stride_width
        m.d.comb += [
            last_row.eq(new.height + new.bottom - 1 - known["reach_row"]),
            turn.eq(right - known["reach_column"]),
        ]
        count, stride = self.config.rows, new.stride_width
        here = self._last(m, "new_last_here", turn - new.column, stride, range(count))
        of_row = self._last(m, "new_last_of_row", turn + new.left, stride, range(2 * count))
        known |= {"last_here": here, "last_first": here, "last_of_row": of_row}
        return known | {"last_row": last_row, "turn": turn}

    def _build_start(self, m: Module, state: data.View, known: dict[str, Value]) -> None:
        """Derive the state from a new command and what is known of it."""
        new = self.i.payload
        m.d.sync += [state[name].eq(value) for name, value in known.items()]
        m.d.sync += [
            state.row.eq(new.row),
            state.column.eq(new.column),
            state.beat.eq(0),
            state.left.eq(new.repeat),
        ]

    def _build_kernel_step(self, m: Module, command: data.View, state: data.View) -> None:
        """Go on to the next position of the kernel, and after the last to the next channels."""
        # Distances and not counters: a step is one dilation, and the reach is the last distance.
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
    ) -> _Next:
        """Build the ranks of places and addresses, and return row and column of the next beat.

        All patches of a beat share one product, that of the first patch's row with the width. A
        patch k rows of patches below adds k times the distance between two of them.
        """
        config, bits = self.config, self.config.address_bits
        size, shape = config.size_bits, config.coordinate
        patches, following, inside = self._build_walk(m, command, state)
        s1_valid, s1_fill = Signal(), Signal.like(command.fill)
        s1_width, s1_base = Signal(size), Signal(bits)
        s1_line, s1_step = Signal(bits), Signal(bits)
        s2_valid, s2_fill, s2_line = Signal(), Signal.like(command.fill), Signal(bits)
        s1_kernel, s1_inside = Signal(shape), Signal(len(inside))
        #: The registers by name, to which ``flows.formal.addresses`` relates the numbers of a walk.
        self.registers: dict[str, Value] = {
            "busy": busy, "command": command.as_value(), "s1_valid": s1_valid, "s1_fill": s1_fill,
            "s1_width": s1_width, "s1_base": s1_base, "s1_line": s1_line, "s1_step": s1_step,
            "s1_kernel": s1_kernel, "s1_inside": s1_inside, "s2_valid": s2_valid,
            "s2_fill": s2_fill, "s2_line": s2_line,
        }  # fmt: skip
        self.state = state
        with m.If(move):
            m.d.sync += [
                s1_valid.eq(busy),
                s1_width.eq(command.width),
                s1_fill.eq(command.fill),
                s1_base.eq(command.base),
                s1_line.eq(state.first_line + state.row + state.kernel_row),
                s1_step.eq(command.stride_height * command.width),
                s1_kernel.eq(state.kernel_column),
                s1_inside.eq(inside),
                s2_valid.eq(s1_valid),
                s2_fill.eq(s1_fill),
                # Addresses are modulo 2**address_bits; in the padding they mean nothing.
                s2_line.eq(s1_line * s1_width),
                self.o.valid.eq(s2_valid),
                self.o.payload.fill.eq(s2_fill),
            ]
        steps = [Signal(bits, name=f"steps_{k}") for k in range(config.rows)]
        m.d.comb += [step.eq(k * s1_step) for k, step in enumerate(steps)]
        for n, (turns, column) in enumerate(patches):
            s1_column = Signal(shape, name=f"s1_column_{n}")
            s1_turns = Signal(n + 1, name=f"s1_turns_{n}")
            place = Signal(shape, name=f"place_{n}")
            s2_offset, s2_inside = (
                Signal(bits, name=f"s2_offset_{n}"),
                Signal(name=f"s2_inside_{n}"),
            )
            pixel = self.o.payload.pixels[n]
            for signal in (s1_column, s1_turns, s2_offset, s2_inside):
                self.registers[signal.name] = signal
            with m.If(move):
                m.d.sync += [
                    s1_column.eq(column),
                    s1_turns.eq(turns),
                    pixel.address.eq(s2_line + s2_offset),
                    pixel.inside.eq(s2_inside),
                ]
            if config.rows == 1:
                # No choice precedes the only place, so it is known a rank earlier.
                m.d.comb += place.eq(state.column + state.kernel_column)
                with m.If(move):
                    m.d.sync += [
                        s1_base.eq(command.base + place),
                        s1_inside.eq(inside & (place >= 0) & (place < command.width)),
                        s2_offset.eq(s1_base),
                        s2_inside.eq(s1_inside),
                    ]
                continue
            m.d.comb += place.eq(s1_column + s1_kernel)
            below = _chosen(s1_turns, steps)
            with m.If(move):
                m.d.sync += [
                    s2_offset.eq(s1_base + (place + below)),
                    s2_inside.eq((s1_turns & s1_inside).any() & (place >= 0) & (place < s1_width)),
                ]
        return following

    def _build_walk(
        self, m: Module, command: data.View, state: data.View
    ) -> tuple[list[_Patch], _Next, Value]:
        """Find the patches of a beat.

        All places at which a patch can be are computed side by side: n strides to the right of the
        beat's first patch, or j strides from the left end of a row of patches. Two numbers choose
        among them: the patches that are left in the row of the first one, and those of a row.

        Returns
        -------
        patches : list of (Value, Value)
            The number of rows of patches between the first patch and this one, of which one bit
            is set, and its column.
        following : (Value, Value, Value)
            Row and column of the patch after them, and ``last_here`` of the beat that it begins.
        inside : Value
            Bit k is set if the pixels of the k-th row of patches are in a row of the image.
        """
        shape, count = self.config.coordinate, self.config.rows
        rows = self._places(m, "row", state.row, command.stride_height)
        ahead = self._places(m, "ahead", state.column, command.stride_width)
        heads = self._places(m, "head", -command.left, command.stride_width)
        last_here = state.last_here
        last_of_row = Cat(state.last_of_row[:count], state.last_of_row[count:].any())
        # The d-th patch after the end of the first row: its position in a row, and rows before it.
        at: list[list[Value]] = [[Const(0, 1)] * (count + 1) for _ in range(count)]
        turned: list[list[Value]] = [[Const(0, 1)] * (count + 1) for _ in range(count)]
        for distance in range(count):
            for length in range(1, count + 2):
                # A row of more than ``count`` patches is never left twice in a beat.
                bit = last_of_row[length - 1]
                turns, position = divmod(distance, length)
                at[distance][position] = at[distance][position] | bit
                turned[distance][turns + 1] = turned[distance][turns + 1] | bit
        patches: list[_Patch] = []
        where: Value = Const(0)
        for n in range(count + 1):
            same = ~last_here[:n].any()
            where, turns = Signal(n, name=f"at_{n}"), Signal(n + 1, name=f"turns_{n}")
            column = Signal(shape, name=f"patch_column_{n}")
            m.d.comb += [
                where.eq(Cat(_after(last_here, at, n, j) for j in range(n))),
                turns.eq(Cat(same, *(_after(last_here, turned, n, k + 1) for k in range(n)))),
                column.eq(_chosen(Cat(same, where), [ahead[n], *heads]).as_signed()),
            ]
            patches.append((turns, column))
        turns, column = patches.pop()
        row = _chosen(turns, rows).as_signed()
        # A row below the last one stays there, so that no counter overflows.
        row = Mux(state.row <= state.last_row, row, state.row)
        last = self._build_last(m, command, state, where)
        inside = Signal(count)
        for k in range(count):
            line = Signal(shape, name=f"line_{k}")
            m.d.comb += [
                line.eq(rows[k] + state.kernel_row),
                inside[k].eq((rows[k] <= state.last_row) & (line >= 0) & (line < command.height)),
            ]
        return patches, (row, column, last), inside

    def _build_last(
        self, m: Module, command: data.View, state: data.View, position: Value
    ) -> Value:
        """Return ``last_here`` of the next beat, which is compared while its place is chosen.

        Bit j of ``position`` is set if the next beat begins with the j-th patch of a row.
        """
        count, of_row = self.config.rows, state.last_of_row
        beats = range(count, 2 * count)
        room = state.turn - state.column
        ahead = self._last(m, "last_ahead", room, command.stride_width, beats)
        heads = [Cat(of_row[j : j + count], of_row[j + count :].any()) for j in range(count)]
        return _chosen(Cat(state.last_here[count], position), [ahead, *heads])

    def _places(self, m: Module, name: str, first: Value, stride: Value) -> list[Signal]:
        """Return the place ``first`` and those that are 1 to ``rows`` strides behind it."""
        shape, count = self.config.coordinate, self.config.rows
        signals = [Signal(shape, name=f"{name}_{n}") for n in range(count + 1)]
        m.d.comb += [signal.eq(first + n * stride) for n, signal in enumerate(signals)]
        return signals

    def _last(
        self, m: Module, name: str, room: Value, stride: Value, numbers: Sequence[int]
    ) -> Signal:
        """Return a word with a bit for each number of strides, and one more.

        The bit of the first number of strides that exceed the room is set, or else the last one.
        Each number after the first exceeds it as well.
        """
        held = Signal(self.config.coordinate, name=f"{name}_room")
        beyond = Signal(len(numbers), name=f"{name}_beyond")
        first = Signal(len(numbers) + 1, name=name)
        m.d.comb += [
            held.eq(room),
            beyond.eq(Cat(n * stride > held for n in numbers)),
            # ``beyond`` is a thermometer code, of which this takes the first one.
            first.eq(Cat(beyond, 1) & ~Cat(0, beyond)),
        ]
        return first


def _after(last: Value, table: list[list[Value]], n: int, column: int) -> Value:
    """Return ``table[n - f - 1][column]`` for the bit f of ``last`` that is set, or 0 from n on."""
    bits = [last[f] & table[n - f - 1][column] for f in range(n)]
    return reduce(or_, bits, Const(0, 1))


def _chosen(bits: Value, values: Sequence[Value]) -> Value:
    """Return the value whose bit is set."""
    words = [
        value.as_unsigned() & bit.replicate(len(value))
        for bit, value in zip(bits, values, strict=False)
    ]
    return reduce(or_, words)
