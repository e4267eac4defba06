"""The array of processing elements, and the paths of the operands through it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.simd2.op import PARTS

from ..simd2.mode import bits
from ..simd2.operand import Decode, Spread
from .assign import DataAssignment
from .config import MatrixUnitConfig
from .element import ProcessingElement
from .ports import control_layout, fractal_layout, step_layout
from .row_control import RowRegisters
from .tile import TileConfig


class Grid(wiring.Component):
    """Array of M × N processing elements that get operands from buses or from their neighbours.

    Parameters
    ----------
    config : TileConfig
        The unit that the array belongs to.

    Members
    -------
    valid : In(1)
        Set if there is a beat in this cycle, or the last step of a beat.
    a : In(m × bus_bits)
        Rows of A.
    b : In(n × b_bus_bits)
        Columns of B.
    index : In(m × index_bits)
        Indices of the values of A's rows in their groups of four, with sparsity.
    step : In(step_layout)
        Control bits of the data assignment, if the unit has one.
    control : In(control_layout)
        Control bits of every element.
    load : In(1)
        Set to write a slot of all elements in this cycle, or, with ``slot_memory``, its word in the
        memory of C.
    load_slot, c : In(slot_bits), In(m × n × word_bits)
        The slot to write and its new values.
    read_slot : In(slot_bits)
        The slot to read in all elements.
    d : Out(m × n × word_bits)
        The values of that slot, in the same cycle.

    Latency
    -------
    All results of a beat can be read after ``config.latency_cycles``. In a systolic array, the
    element in row i and column j has its result ``hops - i - j`` cycles earlier. The array takes
    one beat per cycle and never stalls.

    Notes
    -----
    The array of a buffered unit has another input, ``taken``, which is set to take the values of
    the slot that is read. They are in ``d`` from two cycles later on until others are taken.
    """

    if TYPE_CHECKING:
        valid: Signal
        a: data.View
        b: data.View
        index: data.View
        step: data.View
        control: data.View
        load: Signal
        load_slot: Signal
        c: data.View
        read_slot: Signal
        taken: Signal
        d: data.View

    def __init__(self, *, config: TileConfig):
        self.config = config
        super().__init__(
            {
                "valid": In(1),
                "a": In(data.ArrayLayout(config.bus_bits, config.m)),
                "b": In(data.ArrayLayout(config.b_bus_bits, config.n)),
                "index": In(data.ArrayLayout(config.index_bits, config.m)),
                "step": In(step_layout(config)),
                "control": In(control_layout(config)),
                "load": In(1),
                "load_slot": In(config.slot_bits),
                "c": In(fractal_layout(config)),
                "read_slot": In(config.slot_bits),
                **({"taken": In(1)} if config.buffered else {}),
                "d": Out(fractal_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        systolic = self.config.dataflow == "systolic"
        build = self._build_systolic if systolic else self._build_broadcast
        rows = self._build_rows(m) if self.config.buffered else []
        inputs = build(m, rows)
        late = self.config.late_load
        for (i, j), (row, b) in inputs.items():
            m.submodules[f"element_{i}_{j}"] = element = ProcessingElement(config=self.config)
            m.d.comb += [
                # Control moves with A, so both dataflows return them as one word.
                Cat(element.valid, element.control, element.a).eq(row),
                Value.cast(element.b).eq(b),
                element.load.eq(rows[i].late_load if late else self.load),
                element.load_slot.eq(rows[i].late_load_slot if late else self.load_slot),
                element.c.eq(self.c[i][j]),
                element.read_slot.eq(rows[i].late_slot if rows else self.read_slot),
                (rows[i].shown if rows else self.d[i])[j].eq(element.d),
            ]
        return m

    def _build_rows(self, m: Module) -> list[RowRegisters]:
        """Return the registers of the rows behind the slots' numbers and the results."""
        rows = [RowRegisters(config=self.config) for _ in range(self.config.m)]
        for i, row in enumerate(rows):
            m.submodules[f"row_{i}"] = row
            m.d.comb += [
                row.load.eq(self.load),
                row.load_slot.eq(self.load_slot),
                row.read_slot.eq(self.read_slot),
                row.taken.eq(self.taken),
                Value.cast(self.d[i]).eq(Value.cast(row.d)),
            ]
        return rows

    def _build_broadcast(
        self, m: Module, rows: Sequence[RowRegisters]
    ) -> dict[tuple[int, int], tuple[Value, Value]]:
        """Return the inputs of each element; one register drives the bus of a row or column.

        In a buffered unit, the last register of the control is in each row.
        """
        valid, control, a, b = self._build_entry(m, early=bool(rows))
        controls = [Cat(valid, control)] * len(a)
        for i, row in enumerate(rows):
            m.d.comb += [row.valid.eq(valid), Value.cast(row.control).eq(control)]
            controls[i] = Cat(row.late_valid, row.late_control)
        return {(i, j): (Cat(controls[i], x), y) for i, x in enumerate(a) for j, y in enumerate(b)}

    def _build_entry(
        self, m: Module, *, early: bool = False
    ) -> tuple[Value, Value, list[Value], list[Value]]:
        """Return a beat behind the operand registers and the data assignment, if there is one.

        If ``early`` is True, the valid bit and the control come one cycle before the operands.
        """
        config = self.config
        valid: Value = self.valid
        control: Any = self.control
        ranks = ["", "_assigned"] if config.assignment == "pipelined" else [""]
        for suffix in ranks[: len(ranks) - early]:
            valid, control = self._delay(m, valid, control, suffix)
        if config.semirings and not config.one_pair:
            rows, columns = self._decoded(m)
            return valid, control, rows, columns
        sides: list[list[Value]] = []
        for name, bus, count in (("a", self.a, config.m), ("b", self.b, config.n)):
            sides.append([self._register(m, bus[i], f"{name}{i}") for i in range(count)])
        if config.assignment == "element":
            return valid, control, sides[0], sides[1]
        assert isinstance(config, MatrixUnitConfig), "others decode their operands in the elements"
        step = self._register(m, self.step, "step")
        lanes: list[list[Value]] = []
        for name, words in zip("ab", sides, strict=True):
            lanes.append([])
            for i, word in enumerate(words):
                assign = DataAssignment(config=config, side=name)
                m.submodules[f"assign_{name}{i}"] = assign
                m.d.comb += [assign.bus.eq(word), Value.cast(assign.step).eq(step)]
                lanes[-1].append(Value.cast(assign.lanes))
        if config.assignment == "pipelined":
            for name, words in zip("ab", lanes, strict=True):
                words[:] = [
                    self._register(m, word, f"{name}{i}_lanes") for i, word in enumerate(words)
                ]
        return valid, control, lanes[0], lanes[1]

    def _decoded(self, m: Module) -> list[list[Value]]:
        """Return the lanes of rows and columns of a unit with semirings, decoded in two parts."""
        config = self.config
        sides: list[list[Value]] = []
        for side, bus, count in (("a", self.a, config.m), ("b", self.b, config.n)):
            # With 2:4 sparsity the k values of a row of A select from 2·k values of a column of B.
            groups = config.sparsity and side == "b"
            sides.append([])
            for i in range(count):
                m.submodules[f"decode_{side}{i}"] = decode = Decode(
                    format="fp16",
                    k=config.k * (1 + groups),
                    operations=config.ops,
                    side=side,
                    groups=groups,
                )
                m.d.comb += [
                    Value.cast(decode.bus).eq(bus[i]),
                    Value.cast(decode.shape).eq(Value.cast(getattr(self.step, side))),
                ]
                m.submodules[f"spread_{side}{i}"] = spread = Spread(
                    format="fp16", k=decode.k, operations=config.ops
                )
                # The operand register stands between the two parts of the decoder (decision 0007).
                held = self._register(m, Value.cast(decode.held), f"{side}{i}_held")
                m.d.comb += Value.cast(spread.held).eq(held)
                lanes = Value.cast(spread.lanes)
                if config.sparsity and side == "a":
                    indices = self._register(m, self._indices(self.index[i]), f"{side}{i}_places")
                    lanes = Cat(lanes, indices)
                sides[-1].append(lanes)
        return sides

    def _indices(self, index: Value) -> Value:
        """Return, for each lane, the index of its value of A in a group of four (2:4 sparsity).

        The four lanes of a squared difference have the same index.
        """
        config = self.config
        replicate = bits(config.ops, self.step.a, "a")["deal"]
        words = [Value.cast(index)[2 * k : 2 * k + 2] for k in range(config.k)]
        return Cat(*(Mux(replicate, words[k // PARTS], word) for k, word in enumerate(words)))

    def _build_systolic(
        self, m: Module, rows: Sequence[RowRegisters]
    ) -> dict[tuple[int, int], tuple[Value, Value]]:
        """Return the inputs of each element in a systolic array.

        Row i enters i cycles late and moves to the right, one element per cycle. Column j enters j
        cycles late and moves down. The control moves with A. No result has to be delayed to meet
        the others, because results wait in their slots.

        The registers of every element are created in the same order. Amaranth orders the ports of
        a module by it, and all elements must be the same module.
        """
        inputs: dict[tuple[int, int], tuple[Value, Value]] = {}
        valid, control, right, down = self._build_entry(m)
        for i in range(self.config.m):
            if i:
                valid, control = self._delay(m, valid, control, f"{i}_skew")
            row_valid, row_control = valid, control
            # The skew of a systolic array: row i starts i cycles late.
            a = self._chain(m, right[i], i, f"a{i}_skew")
            for j in range(self.config.n):
                if j:
                    row_valid, row_control = self._delay(m, row_valid, row_control, f"{i}_{j}")
                    a = self._register(m, a, f"a{i}_{j}")
                if i:
                    down[j] = self._register(m, down[j], f"b{i}_{j}")
                else:
                    down[j] = self._chain(m, down[j], j, f"b{j}_skew")
                inputs[i, j] = Cat(row_valid, row_control, a), down[j]
        return inputs

    def _delay(self, m: Module, valid: Value, control, suffix: str) -> tuple[Signal, Signal]:
        """Return a beat's valid bit and control one cycle later.

        Only the valid bit needs a reset. ``suffix`` is the end of the new signals' names.
        """
        later = Signal(name=f"valid{suffix}")
        m.d.sync += later.eq(valid)
        return later, self._register(m, control, f"control{suffix}")

    def _chain(self, m: Module, value, cycles: int, name: str) -> Value:
        """Return ``value`` some cycles later."""
        for rank in range(cycles):
            value = self._register(m, value, f"{name}{rank}")
        return value

    @staticmethod
    def _register(m: Module, value, name: str) -> Signal:
        """Return ``value`` one cycle later."""
        register = Signal(len(Value.cast(value)), name=name, reset_less=True)
        m.d.sync += register.eq(value)
        return register
