"""The matrix unit: an M × N tile of processing elements between streams."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import MatrixUnitConfig
from .element import ProcessingElement

__all__ = ["MatrixUnit", "Start", "fractal_layout", "tile_layout"]


class Start(enum.Enum, shape=2):
    """What a tile's products are added to."""

    ZERO = 0
    FROM_C = 1
    ACCUMULATE = 2


def fractal_layout(config: MatrixUnitConfig) -> data.ArrayLayout:
    """A C or D fractal: M rows of N words."""
    return data.ArrayLayout(data.ArrayLayout(32, config.n), config.m)


def tile_layout(config: MatrixUnitConfig) -> data.StructLayout:
    """One tile: ``a[i]`` is row i of A, ``b[j]`` column j of B, packed from bit 0 in rising k."""
    return data.StructLayout(
        {
            "a": data.ArrayLayout(config.bus_bits, config.m),
            "b": data.ArrayLayout(config.bus_bits, config.n),
            "precision": (len(config.precisions) - 1).bit_length(),
            "start": Start,
            "slot": max(config.slots - 1, 0).bit_length(),
            "emit": 1,
        }
    )


class MatrixUnit(wiring.Component):
    """``slot = (0, C or slot) + A · B`` on M × N accumulators, one tile a cycle.

    Parameters
    ----------
    config : MatrixUnitConfig

    Members
    -------
    i : In(stream.Signature(tile_layout(config)))
        Tiles: A (M × K), B (K × N), precision, start, accumulator slot, and whether to emit the result.
    c : In(stream.Signature(fractal_layout(config)))
        C fractals; one is taken together with each tile whose start is ``FROM_C``.
    o : Out(stream.Signature(fractal_layout(config)))
        D fractals, in the order of the tiles that emit.

    Latency
    -------
    ``config.latency_cycles`` from a tile to its result. One tile a cycle as long as consecutive tiles
    of one accumulation are ``pipeline + 1`` cycles apart; the unit waits where they are not.

    Notes
    -----
    The array never stalls: back-pressure acts on ``i`` only. A result stays in its slot until ``o`` takes it,
    and a slot that waits for ``o`` takes no new tile, so nothing is lost and nothing is copied. With
    ``systolic`` the slots are read when the wave has passed all of them, so no result is ever
    de-skewed.
    """

    i: stream.Interface
    c: stream.Interface
    o: stream.Interface

    def __init__(self, *, config: MatrixUnitConfig):
        if not isinstance(config, MatrixUnitConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {config!r}")
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(tile_layout(config))),
                "c": In(stream.Signature(fractal_layout(config))),
                "o": Out(stream.Signature(fractal_layout(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        accept = Signal()
        load = Signal()
        read_slot = Signal(len(self.i.payload.slot))
        m.d.comb += [
            accept.eq(self.i.valid & self.i.ready),
            load.eq(accept & (self.i.payload.start == Start.FROM_C)),
        ]
        self._build_control(m, accept, read_slot)
        elements = self._build_elements(m)
        build = self._build_systolic if config.dataflow == "systolic" else self._build_broadcast
        build(m, accept, elements)
        for row in range(config.m):
            for column in range(config.n):
                element = elements[row][column]
                m.d.comb += [
                    element.load.eq(load),
                    element.load_slot.eq(self.i.payload.slot),
                    element.load_value.eq(self.c.payload[row][column]),
                    element.read_slot.eq(read_slot),
                    self.o.payload[row][column].eq(element.value),
                ]
        return m

    def _build_elements(self, m: Module) -> list[list[ProcessingElement]]:
        elements = []
        for row in range(self.config.m):
            elements.append([])
            for column in range(self.config.n):
                element = ProcessingElement(config=self.config)
                m.submodules[f"element_{row}_{column}"] = element
                elements[-1].append(element)
        return elements

    # ---------------------------------------------------------------- control

    def _build_control(self, m: Module, accept: Signal, read_slot: Signal) -> None:
        """Slot hazards, and the queue of slots that wait for the output.

        ``age`` counts down from the acceptance of a slot's last tile to the cycle in which all elements
        have written it. An accumulating tile follows through the same elements and may come ``hops``
        cycles earlier.
        """
        config = self.config
        tile = self.i.payload
        ages, waiting = [], []
        settle = config.latency_cycles - 1
        pop = Signal()
        for index in range(config.slots):
            age = Signal(range(settle + 1), name=f"age{index}")
            wait = Signal(name=f"waiting{index}")
            mine = Signal(name=f"takes_slot{index}")
            m.d.comb += mine.eq(accept & (tile.slot == index))
            with m.If(mine):
                m.d.sync += age.eq(settle)
            with m.Elif(age != 0):
                m.d.sync += age.eq(age - 1)
            with m.If(mine & tile.emit):
                m.d.sync += wait.eq(1)
            with m.Elif(pop & (read_slot == index)):
                m.d.sync += wait.eq(0)
            ages.append(age)
            waiting.append(wait)

        age = Signal(range(settle + 1), name="age_of_tile")
        wait = Signal(name="slot_waits")
        m.d.comb += [
            age.eq(_pick(ages, tile.slot)),
            wait.eq(_pick(waiting, tile.slot)),
        ]
        may_go = Signal()
        with m.Switch(tile.start):
            with m.Case(Start.FROM_C):
                m.d.comb += may_go.eq(~wait & (age == 0))
            with m.Case(Start.ACCUMULATE):
                m.d.comb += may_go.eq(~wait & (age <= config.hops + 1))
            with m.Default():
                m.d.comb += may_go.eq(~wait)
        from_c = tile.start == Start.FROM_C
        m.d.comb += [
            self.i.ready.eq(may_go & (~from_c | self.c.valid)),
            self.c.ready.eq(self.i.valid & from_c & may_go),
        ]
        self._build_queue(m, accept & tile.emit, pop, read_slot)
        m.d.comb += pop.eq(self.o.valid & self.o.ready)
        settled = Signal()
        m.d.comb += settled.eq(_pick(ages, read_slot) == 0)
        m.d.comb += self.o.valid.eq(self._queue_level.any() & settled)

    def _build_queue(self, m: Module, push: Value, pop: Value, head: Signal) -> None:
        """Slots in the order in which they are emitted; a slot is in it at most once."""
        config = self.config
        level = self._queue_level = Signal(range(config.slots + 1), name="queue_level")
        entries = [
            Signal(len(head), name=f"queue{index}", reset_less=True) for index in range(config.slots)
        ]
        m.d.comb += head.eq(entries[0])
        m.d.sync += level.eq(level + push - pop)
        after_pop = Signal(range(config.slots + 1), name="queue_level_after_pop")
        m.d.comb += after_pop.eq(level - pop)
        for index, entry in enumerate(entries):
            following = entries[index + 1] if index + 1 < config.slots else entry
            with m.If(push & (after_pop == index)):
                m.d.sync += entry.eq(self.i.payload.slot)
            with m.Elif(pop):
                m.d.sync += entry.eq(following)

    # ---------------------------------------------------------------- dataflow

    def _bundle(self) -> Value:
        """What an element needs to know of a tile besides its operands."""
        tile = self.i.payload
        accumulate = Value.cast(tile.start) != Start.ZERO.value
        return Cat(Value.cast(tile.slot), accumulate, Value.cast(tile.precision))

    def _drive(self, m: Module, element: ProcessingElement, valid, word, a, b) -> None:
        slot_bits = len(element.slot)
        m.d.comb += [
            element.valid.eq(valid),
            element.slot.eq(word[:slot_bits]),
            element.accumulate.eq(word[slot_bits]),
            element.precision.eq(word[slot_bits + 1 :]),
            element.a.eq(a),
            element.b.eq(b),
        ]

    def _build_broadcast(self, m: Module, accept: Value, elements) -> None:
        """One register for each row, column and the control, and buses from there."""
        valid = _register(m, accept, name="valid", reset_less=False)
        word = _register(m, self._bundle(), name="control")
        rows = [
            _register(m, self.i.payload.a[row], name=f"a{row}") for row in range(self.config.m)
        ]
        columns = [
            _register(m, self.i.payload.b[column], name=f"b{column}")
            for column in range(self.config.n)
        ]
        for row, a in enumerate(rows):
            for column, b in enumerate(columns):
                self._drive(m, elements[row][column], valid, word, a, b)

    def _build_systolic(self, m: Module, accept: Value, elements) -> None:
        """Row i enters i cycles late and hops right, column j enters j cycles late and hops down."""
        config = self.config
        downwards: list[Value] = []
        for column in range(config.n):
            value: Value = self.i.payload.b[column]
            for delay in range(column + 1):
                value = _register(m, value, name=f"b{column}_skew{delay}")
            downwards.append(value)
        valid, word = accept, self._bundle()
        for row in range(config.m):
            valid = _register(m, valid, name=f"valid_row{row}", reset_less=False)
            word = _register(m, word, name=f"control_row{row}")
            a: Value = self.i.payload.a[row]
            for delay in range(row + 1):
                a = _register(m, a, name=f"a{row}_skew{delay}")
            here, control = valid, word
            for column in range(config.n):
                if column:
                    here = _register(m, here, name=f"valid{row}_{column}", reset_less=False)
                    control = _register(m, control, name=f"control{row}_{column}")
                    a = _register(m, a, name=f"a{row}_{column}")
                if row:
                    downwards[column] = _register(m, downwards[column], name=f"b{row}_{column}")
                self._drive(m, elements[row][column], here, control, a, downwards[column])


def _register(m: Module, value, *, name: str, reset_less: bool = True) -> Signal:
    register = Signal(len(Value.cast(value)), name=name, reset_less=reset_less)
    m.d.sync += register.eq(value)
    return register


def _pick(values: list[Signal], index: Value) -> Value:
    """``values[index]``; an index past the end reads the last, and is never used."""
    result: Value = values[-1]
    for position in reversed(range(len(values) - 1)):
        result = Mux(index == position, values[position], result)
    return result
