"""Data assignment: operands of a row or a column, decoded and dealt to the lanes step by step."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU

from ..fp.multidot import choose, widen_exponent
from ..fp.unpack import Unpacked, unpack
from ..simd2.pair import ASSIGNMENT_BITS, chosen_bits
from .config import MatrixUnitConfig
from .ports import operand_layouts, step_layout

__all__ = ["DataAssignment"]


class DataAssignment(wiring.Component):
    """One operand bus in, decoded lanes out; combinational.

    A lane of a narrow precision gets a whole significand. The n lanes of a wide operand get the
    limbs of A, or all the same digit of B, and each the operand's sign, exponent and class. For the
    real part of a complex product the imaginary operands of A change sign; for the imaginary part
    the real and imaginary operands of B change places. A semiring has one product,
    of the first pair of FP32 operands, or two, of each of them with 1.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit it belongs to.
    side : str
        ``a`` or ``b``.

    Members
    -------
    bus : In(bus_bits)
        Codes.
    step : In(step_layout)
        How to read them, and which step of the beat this is.
    lanes : Out(operand_layouts)
        What the elements get.
    """

    if TYPE_CHECKING:
        bus: Signal
        step: data.View
        lanes: data.View

    def __init__(self, *, config: MatrixUnitConfig, side: str):
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        self.config, self.side = config, side
        layout = operand_layouts(config)[side == "b"]
        super().__init__(
            {"bus": In(config.bus_bits), "step": In(step_layout(config)), "lanes": Out(layout)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        select: dict[str, Value] = {}
        for code, name in enumerate(config.precisions):
            select[name] = Signal(name=f"is_{name}")
            alone = len(config.precisions) == 1
            m.d.comb += select[name].eq(1 if alone else self.step.precision == code)
        m.d.comb += self.lanes.codes.eq(self.bus)
        views: list[list[tuple[Value, Unpacked]]] = [[] for _ in range(config.lanes)]
        for names in self._readings():
            self._assign_operands(m, names, select, views)
        for lane, found in enumerate(views):
            target = self.lanes.lanes[f"lane{lane}"]
            if not found:
                m.d.comb += [target.zero.eq(1), target.sign.eq(int(self.side == "a"))]
                continue
            chosen = choose(m, found, name=f"lane{lane}")
            # A lane that a precision does not have counts as -0, which changes not even the sign.
            absent = ~Cat(*[chosen_here for chosen_here, _ in found]).any()
            m.d.comb += [
                target.significand.eq(chosen.significand),
                target.exponent.eq(chosen.exponent),
                target.sign.eq(chosen.sign | absent if self.side == "a" else chosen.sign),
                target.zero.eq(chosen.zero),
                target.inf.eq(chosen.inf),
                target.nan.eq(chosen.nan),
            ]
        return m

    def _readings(self) -> list[tuple[str, ...]]:
        """Precisions that read the bus alike, together."""
        found: dict[tuple[str, int], tuple[str, ...]] = {}
        for name in self.config.floats:
            key = M3XU[name].format.name, self.config.limbs(name)
            found[key] = (*found.get(key, ()), name)
        return list(found.values())

    def _assign_operands(
        self,
        m: Module,
        names: tuple[str, ...],
        select: dict[str, Value],
        views: list[list[tuple[Value, Unpacked]]],
    ) -> None:
        """Decode every operand once and give it to its lanes."""
        config, format = self.config, M3XU[names[0]].format
        bias = max(M3XU[name].format.bias for name in config.floats)
        chosen = Cat(*[select[name] for name in names]).any()
        pairs = [select[name] for name in names if M3XU[name].is_complex]
        is_complex = Cat(*pairs).any() if pairs else Const(0, 1)
        bits, n = format.storage_bits, config.limbs(names[0])
        for index in range(config.terms(names[0])):
            code = self.bus[index * bits : (index + 1) * bits]
            negate: Value = Const(0, 1)
            if pairs and self.side == "b":
                other = self.bus[(index ^ 1) * bits : ((index ^ 1) + 1) * bits]
                code = Mux(is_complex & self.step.part, other, code)
            elif pairs and index % 2:
                negate = is_complex & ~self.step.part
            here = chosen
            if config.one_pair and "fp32" in names:
                code, here = self._semiring_operand(code, index, chosen)
            view = unpack(m, code, format, name=f"{format.name}_{index}")
            lanes = range(index * n, index * n + n)
            total = sum(self._width(lane) for lane in lanes)
            padded = Cat(Const(0, total - len(view.significand)), view.significand)
            place = 0
            for lane in lanes:
                width = self._width(lane)
                part: Value = padded[place : place + width]
                if n > 1 and self.side == "b":
                    part = self._digit(padded, n)
                views[lane].append(
                    (
                        here,
                        Unpacked(
                            sign=view.sign ^ negate,
                            exponent=widen_exponent(view.exponent, format.bias, bias),
                            significand=part,
                            zero=view.zero,
                            inf=view.inf,
                            nan=view.nan,
                        ),
                    )
                )
                place += width

    def _semiring_operand(self, code: Value, index: int, chosen: Value) -> tuple[Value, Value]:
        """What a semiring has in place of an operand, and whether there is anything."""
        bits = chosen_bits(self.config.ops, self.step.deal, ASSIGNMENT_BITS)
        apart, one = bits["plus"] | bits["larger"], Const(0x3F80_0000, 32)
        if index == (self.side == "a"):  # a and 1, 1 and b
            code = Mux(apart, one, code)
        elif index == 1:
            code = Mux(apart, self.bus[:32], code)
        gone = {0: Const(0, 1), 1: bits["semiring"] & ~apart}.get(index, bits["semiring"])
        return code, chosen & ~gone

    def _width(self, lane: int) -> int:
        return self.config.limb_bits[lane] if self.side == "a" else self.config.lane_bits

    def _digit(self, word: Value, n: int) -> Value:
        """The digit of B for this step."""
        w = self.config.lane_bits
        found: Value = Const(0, w)
        for t in range(n):
            here = self.step.digit == t
            found = found | (word[w * t : w * (t + 1)] & here.replicate(w))
        return found
