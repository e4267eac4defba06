"""What the fetch unit demands of the words of an instruction, as a table and as hardware.

``support.refusal`` has more demands, which an assembler can look up. These are the ones without
which a unit would wait for ever or touch what is not its own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import (
    BUFFERS,
    CARRIERS,
    CODE_BITS,
    DTYPES,
    ENCODINGS,
    HOLE,
    OPCODE_BITS,
    UNITS,
    WORD_BITS,
)

from .config import FLAGS, CoreConfig
from .faults import Fault
from .lanes import EXTRA_OPS, INTEGER_OPS, LANE_OPS, REDUCTIONS
from .ports import BLOCK_BYTES
from .record import RECORD_WORDS, dtype_code, is_op, length, opcode, part, unit
from .support import MOVES, SCALARS, SOURCES, SYNCHRONISATION, TARGETS, element_bytes

#: Operands that are checked, and the most words behind the fixed ones.
_SLOTS = 3
_TAILS = {"": 0, "mask": 2, "levels": 3}
_MATRIX = {"c": ("L0C",), "a": ("L0A",), "b": ("L0B",)}


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What an operation demands in a unit.

    Attributes
    ----------
    least, most : int
        Words.
    buffers : dict of str to tuple of str
        The buffers in which an operand may be, by its name.
    align : dict of str to int
        Bytes of which the first byte of an operand is a multiple. ``wide`` has those for a first
        source of FP32, where they differ.
    """

    least: int
    most: int
    buffers: dict[str, tuple[str, ...]]
    align: dict[str, int]
    wide: dict[str, int]


def operations(config: CoreConfig, unit: str) -> tuple[str, ...]:
    """Return the operations of a unit of a core."""
    own: tuple[str, ...] = ()
    if unit == "S":
        own = SCALARS
    elif unit == "M":
        own = ("mmad",)
    elif unit == "V":
        has = config.vector.operations
        lanes = [op for op, lane in LANE_OPS.items() if lane.operation in has]
        reductions = [op for op, operation in REDUCTIONS.items() if operation in has]
        conversions = ["vconv"] if "convert" in config.vector.groups else []
        extras = {
            op
            for op, extra in (*EXTRA_OPS.items(), *INTEGER_OPS.items())
            if extra.operation in config.extension.operations and op not in lanes
        }
        moves = ("copy", "matrix_out", "col2im", *(("vtranspose",) if config.transposes else ()))
        own = (*lanes, *sorted(extras), *reductions, *conversions, *moves)
    elif unit in MOVES:
        own = MOVES[unit]
    elif unit == "FIX":
        own = ("matrix_out",)
    return (*SYNCHRONISATION, *own)


def demand(unit: str, op: str) -> Demand:
    """Return what an operation demands in a unit that has it."""
    encoding = ENCODINGS[op]
    most = min(encoding.words + _TAILS[encoding.tail], RECORD_WORDS)
    names = [name for name in encoding.operands if name not in encoding.absent]
    buffers: dict[str, tuple[str, ...]] = {}
    align: dict[str, int] = {}
    wide: dict[str, int] = {}
    if unit in MOVES:
        buffers |= {"dst": TARGETS[unit], "src": (SOURCES[unit],)}
        if unit == "MTE1" and op != "fill":
            align = dict.fromkeys(names, BLOCK_BYTES)
    elif unit == "FIX":
        buffers |= {"dst": ("GM", "L1"), "src": ("L0C",)}
        align = dict.fromkeys(names, BLOCK_BYTES)
    elif op == "mmad":
        buffers |= _MATRIX
        align = {"c": 1024, "a": 512, "b": 512}
    elif unit == "V" and names:
        buffers |= dict.fromkeys(names, ("UB",))
        align = dict.fromkeys(names, BLOCK_BYTES)
        if op == "copy":
            buffers["dst"] = ("UB", "L0C")
        if op == "matrix_out":
            buffers["src"] = ("L0C",)
        elif op in REDUCTIONS:
            pair = BLOCK_BYTES // 2 if op == "vcpadd" else 0
            align["dst"], wide["dst"] = pair or 2, pair or 4
        elif op in ("vcmpv", "vcmpvs"):
            align["dst"], wide["dst"] = 2, 1
    else:
        buffers |= dict.fromkeys(names, ("UB", "GM"))
    return Demand(
        least=encoding.words,
        most=most,
        buffers={name: buffers[name] for name in names},
        align=align,
        wide=wide,
    )


class WordCheck(wiring.Component):
    """Check of the words of instructions, in their order.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    word, number, taken : In(64), In(5), In(1)
        A word, its number in its instruction, and 1 if it is the last cycle of the word.
    bad : Out(Fault)
        What is wrong with the word. The rest of its program has no meaning.
    barrier : Out(1)
        If it is a first word: it is a barrier of all units, and right.
    """

    if TYPE_CHECKING:
        word: Signal
        number: Signal
        taken: Signal
        bad: Any
        barrier: Signal

    def __init__(self, *, config: CoreConfig):
        self.config = config
        super().__init__(
            {
                "word": In(WORD_BITS),
                "number": In(5),
                "taken": In(1),
                "bad": Out(Fault),
                "barrier": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fits = Signal()
        # The low bits of the first bytes of operands that must be 0.
        masks = [Signal(10 if n == 0 else 9, name=f"align{n}") for n in range(_SLOTS)]
        self._build_table(m, fits, masks)
        kept = [Signal.like(mask, name=f"kept{n}") for n, mask in enumerate(masks)]
        first = self.number == 0
        with m.If(first & self.taken):
            m.d.sync += [keeps.eq(mask) for keeps, mask in zip(kept, masks, strict=True)]
        half = WORD_BITS // 2
        crooked = Mux(
            self.number == 1,
            (self.word[: len(kept[0])] & kept[0]).any()
            | (self.word[half : half + len(kept[1])] & kept[1]).any(),
            (self.number == 2) & (self.word[: len(kept[2])] & kept[2]).any(),
        )
        with m.If(first & (unit(self.word) >= len(self.config.units))):
            m.d.comb += self.bad.eq(Fault.UNIT)
        with m.Elif(first & ~fits):
            m.d.comb += self.bad.eq(Fault.CODE)
        with m.Elif(~first & crooked):
            m.d.comb += self.bad.eq(Fault.ALIGN)
        return m

    def _build_table(self, m: Module, fits: Signal, masks: list[Signal]) -> None:
        """Look up an operation of a unit; what it demands is known as early as the operation."""
        word = self.word
        wide = part(word, "vadd", "src0.dtype") == dtype_code("fp32")
        known: dict[str, Signal] = {}

        def once(name: str, value: Value) -> Signal:
            """Return a signal of this name, which many operations share."""
            if name not in known:
                known[name] = Signal(name=name)
                m.d.comb += known[name].eq(value)
            return known[name]

        words = length(word)
        rows: list[tuple[int, list[Value], list[Any]]] = []
        for name in self.config.units:
            for op in operations(self.config, name):
                wants, slots = demand(name, op), ENCODINGS[op].slots[:_SLOTS]
                enough = (words >= wants.least) & (words <= wants.most)
                met: list[Value] = [once(f"has_{wants.least}_to_{wants.most}_words", enough)]
                aligned = []
                for n in range(_SLOTS):
                    slot = slots[n] if n < len(slots) else HOLE
                    # A word without an operand has zeros there, for which every buffer will do.
                    names = wants.buffers.get(slot, BUFFERS)
                    inside = f"operand{n}_in_{'_'.join(names).lower()}"
                    met.append(once(inside, self._is_in(n, names)))
                    narrow = wants.align.get(slot, 1)
                    other = wants.wide.get(slot, narrow)
                    aligned.append(masks[n].eq(Mux(wide, other - 1, narrow - 1)))
                if op in ("set_flag", "wait_flag"):
                    met.append(self._flag(op, "target" if op == "set_flag" else "source"))
                rows.append((self._code(name, op), met, aligned))
        with m.Switch(Cat(opcode(word), unit(word))):
            for code, met, aligned in rows:
                with m.Case(code):
                    m.d.comb += [fits.eq(Cat(*met).all()), *aligned]
                    if code == self._code("S", "pipe_barrier"):
                        m.d.comb += self.barrier.eq(fits)
        # The element of a scalar instruction is at a multiple of its size.
        scalar = is_op(word, "scalar_load", "scalar_store")
        dtype = part(word, "scalar_load", "src.dtype")
        with m.If(scalar), m.Switch(dtype):
            for code, name in enumerate(DTYPES):
                if name not in CARRIERS:
                    with m.Case(code):
                        m.d.comb += masks[0].eq(element_bytes(name) - 1)

    @staticmethod
    def _code(name: str, op: str) -> int:
        """Return opcode and unit as they are in the first word."""
        return ENCODINGS[op].code | UNITS.index(name) << OPCODE_BITS

    def _is_in(self, slot: int, names: tuple[str, ...]) -> Value:
        """Return 1 if the operand of a slot is in one of some buffers."""
        place = ENCODINGS["vadd"].places[f"{('dst', 'src0', 'src1')[slot]}.buffer"]
        code = self.word[place.low : place.low + CODE_BITS]
        return Cat(*(code == BUFFERS.index(name) for name in names)).any()

    def _flag(self, op: str, name: str) -> Value:
        """Return 1 if there is such a flag, and another unit is at its other end."""
        other = part(self.word, op, name)
        known = (other < len(self.config.units)) & (other != unit(self.word))
        return known & (part(self.word, op, "register") < FLAGS)
