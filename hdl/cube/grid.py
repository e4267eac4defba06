"""The array of processing elements and the way operands take through it."""

from typing import TYPE_CHECKING

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

__all__ = ["Grid"]


class Grid(wiring.Component):
    """M × N processing elements, fed by buses or by their neighbours.

    Parameters
    ----------
    config : MatrixUnitConfig

    Members
    -------
    valid : In(1)
        Whether there is a beat in this cycle, or the last step of one.
    a : In(m × bus_bits)
        Rows of A.
    b : In(n × b_bus_bits)
        Columns of B.
    index : In(m × index_bits)
        Places of the values of A's rows, with sparsity.
    step : In(step_layout)
        What the data assignment is told with them, where there is one.
    control : In(control_layout)
        What every element is told with them.
    load : In(1)
        Whether a slot of all elements is written at once.
    load_slot, c : In(slot_bits), In(m × n × word_bits)
        Which slot, with which values.
    read_slot : In(slot_bits)
        Slot to read in all elements.
    d : Out(m × n × word_bits)
        Its values, in the same cycle.

    Latency
    -------
    ``config.latency_cycles`` to the cycle in which all of a beat's results can be read; the
    element in row i and column j of a systolic array has its own ``hops - i - j`` cycles earlier.
    One beat a cycle; it never stalls.
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
        d: data.View

    def __init__(self, *, config: MatrixUnitConfig):
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
                "d": Out(fractal_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        systolic = self.config.dataflow == "systolic"
        build = self._build_systolic if systolic else self._build_broadcast
        for (i, j), (row, b) in build(m).items():
            m.submodules[f"element_{i}_{j}"] = element = ProcessingElement(config=self.config)
            m.d.comb += [
                Cat(element.valid, element.control, element.a).eq(row),
                Value.cast(element.b).eq(b),
                element.load.eq(self.load),
                element.load_slot.eq(self.load_slot),
                element.c.eq(self.c[i][j]),
                element.read_slot.eq(self.read_slot),
                self.d[i][j].eq(element.d),
            ]
        return m

    def _build_broadcast(self, m: Module) -> dict[tuple[int, int], tuple[Value, Value]]:
        """What each element gets: a register for each row and column drives its whole bus."""
        valid, control, a, b = self._build_entry(m)
        return {
            (i, j): (Cat(valid, control, x), y) for i, x in enumerate(a) for j, y in enumerate(b)
        }

    def _build_entry(self, m: Module) -> tuple[Value, Value, list[Value], list[Value]]:
        """Operand registers and, at the edge of the array, the data assignment."""
        config = self.config
        valid, control = self._delay(m, self.valid, self.control, "")
        if config.semirings and not config.one_pair:
            rows, columns = self._decoded(m)
            return valid, control, rows, columns
        sides: list[list[Value]] = []
        for name, bus, count in (("a", self.a, config.m), ("b", self.b, config.n)):
            sides.append([self._register(m, bus[i], f"{name}{i}") for i in range(count)])
        if config.assignment == "element":
            return valid, control, sides[0], sides[1]
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
            valid, control = self._delay(m, valid, control, "_assigned")
            for name, words in zip("ab", lanes, strict=True):
                words[:] = [
                    self._register(m, word, f"{name}{i}_lanes") for i, word in enumerate(words)
                ]
        return valid, control, lanes[0], lanes[1]

    def _decoded(self, m: Module) -> list[list[Value]]:
        """Lanes from registers of decoded operands, rows and columns; for semirings."""
        config = self.config
        found: list[list[Value]] = []
        for side, bus, count in (("a", self.a, config.m), ("b", self.b, config.n)):
            groups = config.sparsity and side == "b"
            found.append([])
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
                held = self._register(m, Value.cast(decode.held), f"{side}{i}_held")
                m.d.comb += Value.cast(spread.held).eq(held)
                lanes = Value.cast(spread.lanes)
                if config.sparsity and side == "a":
                    places = self._register(m, self._places(self.index[i]), f"{side}{i}_places")
                    lanes = Cat(lanes, places)
                found[-1].append(lanes)
        return found

    def _places(self, index: Value) -> Value:
        """The place of each lane's value; squares of differences have four lanes each."""
        config = self.config
        deal = bits(config.ops, self.step.a, "a")["deal"]
        words = [Value.cast(index)[2 * k : 2 * k + 2] for k in range(config.k)]
        return Cat(*(Mux(deal, words[k // PARTS], word) for k, word in enumerate(words)))

    def _build_systolic(self, m: Module) -> dict[tuple[int, int], tuple[Value, Value]]:
        """What each element gets: row i comes i cycles late and hops right, column j likewise down.

        The control goes with A. No result needs to be delayed to meet the others: they wait in
        their slots. Every element's registers are made in one order, for Amaranth orders the ports
        of a module by it, and all elements shall be the same module.
        """
        found: dict[tuple[int, int], tuple[Value, Value]] = {}
        valid, control, rows, down = self._build_entry(m)
        for i in range(self.config.m):
            if i:
                valid, control = self._delay(m, valid, control, f"{i}_skew")
            here, word = valid, control
            a = self._chain(m, rows[i], i, f"a{i}_skew")
            for j in range(self.config.n):
                if j:
                    here, word = self._delay(m, here, word, f"{i}_{j}")
                    a = self._register(m, a, f"a{i}_{j}")
                if i:
                    down[j] = self._register(m, down[j], f"b{i}_{j}")
                else:
                    down[j] = self._chain(m, down[j], j, f"b{j}_skew")
                found[i, j] = Cat(here, word, a), down[j]
        return found

    def _delay(self, m: Module, valid: Value, control, place: str) -> tuple[Signal, Signal]:
        """A beat's valid bit and control one cycle later; only the valid bit needs a reset."""
        later = Signal(name=f"valid{place}")
        m.d.sync += later.eq(valid)
        return later, self._register(m, control, f"control{place}")

    def _chain(self, m: Module, value, cycles: int, name: str) -> Value:
        for rank in range(cycles):
            value = self._register(m, value, f"{name}{rank}")
        return value

    @staticmethod
    def _register(m: Module, value, name: str) -> Signal:
        register = Signal(len(Value.cast(value)), name=name, reset_less=True)
        m.d.sync += register.eq(value)
        return register
