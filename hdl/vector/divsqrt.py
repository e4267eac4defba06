"""Division, reciprocal, square root and reciprocal square root of a block, correctly rounded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int
from vitruvian.golden.fp.formats import FORMATS

from ..fp.core.finish import Exact, finish
from ..fp.parts.normalise import normalise
from ..fp.parts.pipeline import PipelineStages
from ..fp.parts.unpack import UnpackedCode, unpack
from .config import BLOCK_BYTES
from .recurrence import FRACTION_BITS, STEPS, DigitRecurrence

BLOCK_BITS = 8 * BLOCK_BYTES
_FP16, _FP32 = FORMATS["fp16"], FORMATS["fp32"]
#: Bits of an exponent without bias, and of a difference of two.
_EXPONENT_BITS = 10


class Root(enum.Enum, shape=2):
    """The operation: a/b, 1/a, √a or 1/√a."""

    DIVIDE = 0
    RECIPROCAL = 1
    SQRT = 2
    RSQRT = 3


@dataclass(frozen=True, kw_only=True)
class RootOperand:
    """An operand: parts of its code, and the significand in [1, 2) with its exponent."""

    code: UnpackedCode
    significand: Value
    exponent: Value


def block_cycles(engines: int, wide: bool) -> int:
    """Return the cycles of a block of FP32 (``wide``) or FP16 elements."""
    lanes = BLOCK_BYTES // (4 if wide else 2)
    steps = STEPS["fp32" if wide else "fp16"]
    # A lane leaves its recurrence and the next one enters it in the cycle behind the last step.
    return lanes // engines * (steps + 1) + engines + 2


class DivSqrt(wiring.Component):
    """Unit that finds quotients and roots of the lanes of a block, a few at a time.

    Lanes enter one after the other, and each goes to the recurrence whose turn it is. Operands are
    unpacked and normalised, and results are rounded, by one part for all lanes. Results are those
    of ``golden.vector``: div, rec, sqrt and rsqrt.

    Parameters
    ----------
    engines : int
        Number of recurrences, a power of two up to 8.

    Members
    -------
    i : In(stream.Signature({operation: Root, wide: 1, a: 256, b: 256}))
        Blocks of FP32 (``wide``) or FP16 elements. Only a division reads ``b``.
    o : Out(stream.Signature(256))
        Blocks of results.

    Latency
    -------
    ``cycles(wide)`` from the transfer of a block to that of its result, and as many from block to
    block, if the result is taken at once. The operands make no difference.

    Raises
    ------
    TypeError, ValueError
        If ``engines`` is not allowed.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    shared = (DigitRecurrence,)

    def __init__(self, *, engines: int = 4):
        check_int("engines", engines, 1, 8)
        if engines & (engines - 1):
            raise ValueError(f"engines must be 1, 2, 4 or 8, not {engines}")
        self.engines = engines
        operands = {"operation": Root, "wide": 1, "a": BLOCK_BITS, "b": BLOCK_BITS}
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout(operands))),
                "o": Out(stream.Signature(BLOCK_BITS)),
            }
        )

    def cycles(self, wide: bool) -> int:
        """Return the cycles of a block of FP32 or FP16 elements."""
        return block_cycles(self.engines, wide)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        operation, wide = Signal(Root), Signal()
        blocks = [Signal(BLOCK_BITS, name=f"block_{name}") for name in "ab"]
        result, full = Signal(BLOCK_BITS), Signal()
        busy = Signal()
        lanes = Signal(5)
        entered, left = Signal(5), Signal(5)
        enters, leaves = Signal(), Signal()
        start = Signal()
        i = self.i.payload
        m.d.comb += [
            self.i.ready.eq(~busy),
            start.eq(self.i.valid & self.i.ready),
            lanes.eq(Mux(wide, BLOCK_BYTES // 4, BLOCK_BYTES // 2)),
            full.eq(busy & (left == lanes)),
            self.o.valid.eq(full),
            self.o.payload.eq(result),
        ]
        with m.If(start):
            m.d.sync += [busy.eq(1), entered.eq(0), left.eq(0), wide.eq(i.wide)]
            m.d.sync += [operation.eq(i.operation), blocks[0].eq(i.a), blocks[1].eq(i.b)]
        with m.Elif(full & self.o.ready):
            m.d.sync += busy.eq(0)
        with m.If(enters):
            m.d.sync += entered.eq(entered + 1)
            m.d.sync += [block.eq(Mux(wide, block >> 32, block >> 16)) for block in blocks]
        exact, nan, inf = self._build_operands(m, operation, wide, blocks)
        lane = self._build_engines(m, enters, (entered, left), wide, operation, exact)
        kept = Array(Signal(_SIDE.size, name=f"side{n}") for n in range(self.engines))
        number = self._turn(entered)
        with m.If(enters):
            m.d.sync += kept[number].eq(
                Cat(exact["exponent"][:_EXPONENT_BITS], exact["sign"], exact["zero"], nan, inf)
            )
        side = data.View(_SIDE, kept[self._turn(left)])
        m.d.comb += [
            enters.eq(busy & (entered != lanes) & ((entered < self.engines) | leaves)),
            leaves.eq(busy & (left != lanes) & lane["done"] & (left < entered)),
        ]
        code = self._build_rounding(m, wide, side, lane["y"])
        with m.If(leaves):
            m.d.sync += left.eq(left + 1)
            m.d.sync += result.eq(Mux(wide, Cat(result[32:], code), Cat(result[16:], code[:16])))
        return m

    def _build_operands(
        self, m: Module, operation: Any, wide: Value, blocks: list[Signal]
    ) -> tuple[dict[str, Value], Value, Value]:
        """Unpack the lowest lanes; return the operands of a recurrence, and the special results."""
        reciprocal = operation == Root.RECIPROCAL
        divides = Signal(name="divides")
        m.d.comb += divides.eq((operation == Root.DIVIDE) | reciprocal)
        one = Mux(wide, Const(_FP32.bias << _FP32.fraction_bits, 32), _FP16.bias << 10)
        a = _number(m, Mux(reciprocal, one, blocks[0][:32])[:32], wide, "a")
        b = _number(m, Mux(reciprocal, blocks[0][:32], blocks[1][:32])[:32], wide, "b")
        odd = a.exponent[0]
        half = Signal(signed(_EXPONENT_BITS), name="half_exponent")
        whole = Cat(a.significand, Const(0, 1))
        root = Mux(odd, whole << 1, whole)[: FRACTION_BITS + 2]
        unit = Const(1 << FRACTION_BITS, FRACTION_BITS + 2)
        inverse = operation == Root.RSQRT
        exponent = Signal(signed(_EXPONENT_BITS), name="exponent_of_result")
        nan, inf, zero = (Signal(name=f"result_{name}") for name in ("nan", "inf", "zero"))
        x, z = a.code, b.code
        m.d.comb += [
            half.eq(a.exponent >> 1),
            exponent.eq(Mux(divides, a.exponent - b.exponent, Mux(inverse, -half, half))),
            nan.eq(
                Mux(
                    divides,
                    x.nan | z.nan | (x.inf & z.inf) | (x.zero & z.zero),
                    x.nan | (x.sign & ~x.zero),
                )
            ),
            inf.eq(Mux(divides, x.inf | z.zero, Mux(inverse, x.zero, x.inf))),
            zero.eq(Mux(divides, x.zero | z.inf, Mux(inverse, x.inf, x.zero))),
        ]
        exact = {
            "n": Mux(divides, Cat(a.significand, Const(0, 1)), Mux(inverse, unit, root)),
            "m": Mux(divides, Cat(b.significand, Const(0, 1)), Mux(inverse, root, unit)),
            "exponent": exponent,
            "sign": x.sign ^ (z.sign & divides),
            "zero": zero,
        }
        return exact, nan, inf

    def _turn(self, lane: Signal) -> Value:
        """Return the number of the recurrence of a lane."""
        return lane[: (self.engines - 1).bit_length()] if self.engines > 1 else Const(0, 1)

    def _build_engines(
        self, m: Module, enters: Value, lanes: tuple, wide: Value, operation: Any, exact: dict
    ) -> dict[str, Value]:
        """Give the operands to the recurrence whose turn it is; return the bits of the oldest."""
        entered, left = lanes
        done, bits = [], []
        for n in range(self.engines):
            m.submodules[f"engine{n}"] = engine = DigitRecurrence()
            m.d.comb += [
                engine.start.eq(enters & (self._turn(entered) == n)),
                engine.divide.eq((operation == Root.DIVIDE) | (operation == Root.RECIPROCAL)),
                engine.short.eq(~wide),
                engine.n.eq(exact["n"]),
                engine.m.eq(exact["m"]),
            ]
            done.append(engine.done)
            bits.append(engine.y)
        turn = self._turn(left)
        return {"done": Array(done)[turn], "y": Array(bits)[turn]}

    def _build_rounding(self, m: Module, wide: Value, side: Any, y: Value) -> Value:
        """Return the code of the oldest lane's result."""
        stages = PipelineStages(m, ())
        codes = []
        for format, name in ((_FP32, "fp32"), (_FP16, "fp16")):
            word = Signal(STEPS[name] + 1, name=f"bits_{name}")
            m.d.comb += word.eq(Mux(side.zero | side.inf | side.nan, 0, y))
            span = format.emax - format.emin + format.fraction_bits
            exponent = Signal(signed(_EXPONENT_BITS + 1), name=f"biased_{name}")
            m.d.comb += exponent.eq(side.exponent.as_signed() + format.bias)
            codes.append(
                finish(
                    m,
                    Exact(
                        sign=side.sign,
                        word=word,
                        exponent=exponent,
                        exponent_min=format.bias - span,
                        exponent_max=format.bias + span,
                        zeros=1,
                        nan=side.nan,
                        inf=side.inf,
                    ),
                    output=format,
                    rounding="RNE",
                    stages=stages,
                )
            )
        return Mux(wide, codes[0], codes[1])[:32]


_SIDE = data.StructLayout({"exponent": _EXPONENT_BITS, "sign": 1, "zero": 1, "nan": 1, "inf": 1})


def _number(m: Module, code: Value, wide: Value, name: str) -> RootOperand:
    """Unpack and normalise the FP32 or FP16 code in the lower bits of a word."""
    short = unpack(m, code[:16], _FP16, name=f"{name}_fp16")
    long = unpack(m, code, _FP32, name=f"{name}_fp32")
    parts = {
        part: Mux(wide, getattr(long, part), getattr(short, part))
        for part in ("sign", "zero", "inf", "nan")
    }
    fill = _FP32.fraction_bits - _FP16.fraction_bits
    significand = Mux(wide, long.significand, Cat(Const(0, fill), short.significand))
    moved = normalise(m, significand, limit=None, name=f"{name}_normalise")
    exponent = Signal(signed(_EXPONENT_BITS), name=f"{name}_exponent")
    biased = Mux(wide, long.exponent, short.exponent)
    bias = Mux(wide, _FP32.bias, _FP16.bias)
    m.d.comb += exponent.eq(biased - bias - moved.shift)
    whole = UnpackedCode(exponent=biased, significand=significand, **parts)
    return RootOperand(code=whole, significand=moved.word, exponent=exponent)
