"""Fused multiply-add of a block, half of it in a cycle."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, EnableInserter, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.machines.presets import PRESETS

from ..fp.fma import FusedMultiplyAdd
from .config import BLOCK_BYTES

BLOCK_BITS = 8 * BLOCK_BYTES
_HALF = BLOCK_BITS // 2
#: Register ranks of a multiply-add.
_RANKS = 2
#: Cycles from a block to its result.
LATENCY = 2 + _RANKS


class FusedLanes(wiring.Component):
    """Lanes of a·b + c, rounded once, as ``golden.vector.multiply_add``.

    Parameters
    ----------
    multiplier : {"booth", "dsp"}
        Form of the multipliers.

    Members
    -------
    i : In(stream.Signature({wide: 1, relu: 1, a: 256, b: 256, c: 256}))
        Blocks of FP32 (``wide``) or FP16 elements; ``relu`` replaces negative results, -0 and NaNs
        by +0.
    o : Out(stream.Signature(256))
        Blocks of results.

    Latency
    -------
    A block takes two cycles, and its result comes four cycles after it.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, multiplier: str = "booth"):
        self.multiplier = multiplier
        operands = {"wide": 1, "relu": 1, **dict.fromkeys("abc", BLOCK_BITS)}
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout(operands))),
                "o": Out(stream.Signature(BLOCK_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Any:
        m = Module()
        advance, second = Signal(), Signal()
        ranks = [Signal(4, name=f"rank{n}") for n in range(_RANKS)]  # valid, second, wide, relu
        whole = Signal()
        i = self.i.payload
        entering = self.i.valid
        m.d.comb += [
            advance.eq(~whole | self.o.ready),
            self.i.ready.eq(second & advance),
            self.o.valid.eq(whole),
        ]
        operands = {
            name: Mux(second, getattr(i, name)[_HALF:], getattr(i, name)[:_HALF]) for name in "abc"
        }
        m.d.sync += second.eq(self.i.valid & ~second)
        entered = Cat(entering, second, i.wide, i.relu)
        for now, before in zip(ranks, [entered, *ranks], strict=False):
            m.d.sync += now.eq(before)
        wide, relu = ranks[-1][2], ranks[-1][3]
        names = {name: self._build_lanes(m, name, operands) for name in ("fp32", "fp16")}
        half = Mux(wide, *(self._positive(names[n], n, relu) for n in ("fp32", "fp16")))
        low, high = Signal(_HALF), Signal(_HALF)
        ends = ranks[-1][0] & ranks[-1][1]
        m.d.sync += whole.eq(ends)
        with m.If(ranks[-1][0] & ~ranks[-1][1]):
            m.d.sync += low.eq(half)
        with m.If(ends):
            m.d.sync += high.eq(half)
        m.d.comb += self.o.payload.eq(Cat(low, high))
        # While a result waits, all registers stop.
        return EnableInserter(advance)(m)

    def _build_lanes(self, m: Module, name: str, operands: dict) -> list[Value]:
        """Return the results of the lanes of a format, in the last rank."""
        format = FORMATS[name]
        spec = PRESETS["ieee"].spec(name, name, k=1)
        results = []
        bits = format.storage_bits
        for n in range(_HALF // bits):
            lane = FusedMultiplyAdd(spec=spec, pipeline=_RANKS, multiplier=self.multiplier)
            m.submodules[f"{name}_{n}"] = lane
            part = slice(bits * n, bits * n + bits)
            m.d.comb += [
                Value.cast(lane.a).eq(operands["a"][part]),
                Value.cast(lane.b).eq(operands["b"][part]),
                lane.c.eq(operands["c"][part]),
            ]
            results.append(lane.d)
        return results

    @staticmethod
    def _positive(results: list[Value], name: str, relu: Value) -> Value:
        """Return results, or +0 with ``relu`` for those that are negative, -0 or a NaN."""
        nan = FORMATS[name].canonical_nan
        return Cat(*(Mux(relu & (x[-1] | (x == nan)), 0, x)[: len(x)] for x in results))
