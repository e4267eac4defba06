"""Data assignment: decodes the operands of a row or a column and assigns them to the lanes."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU

from ..fp.multidot import choose, widen_exponent
from ..fp.parts.multiply import recode
from ..fp.parts.unpack import UnpackedCode, unpack
from ..simd2.pair import ASSIGNMENT_BITS, chosen_bits
from .config import MatrixUnitConfig
from .ports import operand_layouts, step_layout


class DataAssignment(wiring.Component):
    """Decoder from one operand bus to the lanes of the elements; combinational.

    In a narrow precision a lane gets a whole significand. In a wide precision the n lanes of an
    operand get the limbs of A, or all the same digit of B; each lane also gets the operand's sign,
    exponent and class. For the real part of a complex product the imaginary operands of A are
    negated; for the imaginary part the real and imaginary operands of B are exchanged. A semiring
    on FP32 operands has one product, of the first operands of A and B, or two products, of each of
    them with 1.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit that the component belongs to.
    side : str
        ``a`` or ``b``.

    Members
    -------
    bus : In(bus_bits)
        Codes of the operands.
    step : In(step_layout)
        The precision of the codes, and the step of the beat.
    lanes : Out(operand_layouts)
        Decoded lanes for the elements.

    Raises
    ------
    ValueError
        If ``side`` is not ``a`` or ``b``.
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
        views: list[list[tuple[Value, UnpackedCode]]] = [[] for _ in range(config.lanes)]
        for names in self._readings():
            self._assign_operands(m, names, select, views)
        for lane, operands in enumerate(views):
            target = self.lanes.lanes[f"lane{lane}"]
            if not operands:
                m.d.comb += [target.zero.eq(1), target.sign.eq(int(self.side == "a"))]
                continue
            chosen = choose(m, operands, name=f"lane{lane}")
            # A lane that the precision does not use adds -0, which changes no sum, not even the
            # sign of a zero sum.
            absent = ~Cat(*[selected for selected, _ in operands]).any()
            significand = chosen.significand
            if config.fast and self.side == "a":
                significand = recode(m, significand[: self._width(lane)], name=f"lane{lane}")
            m.d.comb += [
                target.significand.eq(significand),
                target.exponent.eq(chosen.exponent),
                target.sign.eq(chosen.sign | absent if self.side == "a" else chosen.sign),
                target.zero.eq(chosen.zero),
                target.inf.eq(chosen.inf),
                target.nan.eq(chosen.nan),
            ]
        return m

    def _readings(self) -> list[tuple[str, ...]]:
        """Return the precisions in groups that read the bus in the same way."""
        groups: dict[tuple[str, int], tuple[str, ...]] = {}
        for name in self.config.floats:
            key = M3XU[name].format.name, self.config.limbs(name)
            groups[key] = (*groups.get(key, ()), name)
        return list(groups.values())

    def _assign_operands(
        self,
        m: Module,
        names: tuple[str, ...],
        select: dict[str, Value],
        views: list[list[tuple[Value, UnpackedCode]]],
    ) -> None:
        """Decode every operand of a group of precisions and append it to its lanes' ``views``."""
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
                # Im(a·b) = Re a · Im b + Im a · Re b, so B's parts are exchanged.
                code = Mux(is_complex & self.step.part, other, code)
            elif pairs and index % 2:
                # Re(a·b) = Re a · Re b - Im a · Im b, so A's imaginary parts are negated.
                negate = is_complex & ~self.step.part
            selected = chosen
            if config.one_pair and "fp32" in names:
                code, selected = self._semiring_operand(code, index, chosen)
            view = unpack(m, code, format, name=f"{format.name}_{index}")
            lanes = range(index * n, index * n + n)
            # A narrow significand lies at the top of its lanes.
            total = sum(self._width(lane) for lane in lanes)
            padded = Cat(Const(0, total - len(view.significand)), view.significand)
            position = 0
            for lane in lanes:
                width = self._width(lane)
                part: Value = padded[position : position + width]
                if n > 1 and self.side == "b":
                    part = self._digit(padded, n)
                views[lane].append(
                    (
                        selected,
                        UnpackedCode(
                            sign=view.sign ^ negate,
                            exponent=widen_exponent(view.exponent, format.bias, bias),
                            significand=part,
                            zero=view.zero,
                            inf=view.inf,
                            nan=view.nan,
                        ),
                    )
                )
                position += width

    def _semiring_operand(self, code: Value, index: int, chosen: Value) -> tuple[Value, Value]:
        """Return the operand that replaces an FP32 operand in a semiring, and its select.

        ⊗ = × uses the first operands only. The other ⊗ use a · 1 + 1 · b.
        """
        bits = chosen_bits(self.config.ops, self.step.deal, ASSIGNMENT_BITS)
        apart, one = bits["plus"] | bits["larger"], Const(0x3F80_0000, 32)
        if index == (self.side == "a"):  # a and 1, 1 and b
            code = Mux(apart, one, code)
        elif index == 1:
            code = Mux(apart, self.bus[:32], code)
        unused = {0: Const(0, 1), 1: bits["semiring"] & ~apart}.get(index, bits["semiring"])
        return code, chosen & ~unused

    def _width(self, lane: int) -> int:
        """Return the bits of a lane's significand or limb."""
        return self.config.limb_bits[lane] if self.side == "a" else self.config.lane_bits

    def _digit(self, word: Value, n: int) -> Value:
        """Return the digit of B for this step."""
        w = self.config.lane_bits
        digit: Value = Const(0, w)
        for t in range(n):
            selected = self.step.digit == t
            digit = digit | (word[w * t : w * (t + 1)] & selected.replicate(w))
        return digit
