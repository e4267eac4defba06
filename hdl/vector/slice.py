"""A slice of the vector unit: 32 bits, which are two FP16 lanes or one FP32 lane."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, EnableInserter, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FORMATS

from ..fp.add import Adder
from ..fp.mul import Multiplier
from ..fp.parts.pipeline import PipelineStages
from .adder import OrderedAdder
from .compare import Order, split_order
from .config import VectorConfig
from .control import Select, Source, control_layout
from .convert import build_convert
from .functions import ExpLn

FP16, FP32 = FORMATS["fp16"], FORMATS["fp32"]
#: Name, bits and FP16 lane of each arithmetic unit of a slice.
_LANES = (("low", slice(0, 16), 0), ("high", slice(16, 32), 1), ("wide", slice(0, 32), None))


class Slice(wiring.Component):
    """The part of the vector unit that is the same for all lanes.

    Parameters
    ----------
    config : VectorConfig
        The unit that the slice belongs to.

    Members
    -------
    advance : In(1)
        Enable of all registers.
    a, b : In(32)
        The operands: one FP32 code, or the FP16 codes of lanes 0 (lower half) and 1.
    bits : In(2)
        Lanes for which ``Select.BITS`` takes ``a``; FP32 uses bit 1.
    control : In(ArrayLayout(control_layout(), config.stages - 1))
        Control bits of the beats in all ranks but the last.
    d : Out(32)
        The result.
    flags : Out(2)
        Results of the comparison of lanes 0 and 1; FP32 has bit 1.

    Latency
    -------
    ``config.stages`` cycles with ``advance`` for every operation, one beat in each.
    """

    if TYPE_CHECKING:
        advance: Signal
        a: Signal
        b: Signal
        bits: Signal
        control: data.View
        d: Signal
        flags: Signal

    def __init__(self, *, config: VectorConfig):
        self.config = config
        self.latency = config.stages
        super().__init__(
            {
                "advance": In(1),
                "a": In(32),
                "b": In(32),
                "bits": In(2),
                "control": In(data.ArrayLayout(control_layout(), config.stages - 1)),
                "d": Out(32),
                "flags": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Any:
        m = Module()
        ranks = ["operand", *self.config.arithmetic, "result"]
        depth = len(self.config.arithmetic)
        if self.config.pipeline == 3:
            ranks.append("function")
        stages = PipelineStages(m, ranks)
        a, b = (stages.cross("operand", x, n) for x, n in ((self.a, "s0_a"), (self.b, "s0_b")))
        bits = stages.cross("operand", self.bits, "s0_bits")
        # Comparison and addition both need to know which operand is larger, so one comparator
        # serves both.
        orders = self._orders(m, a, b) if self._has("add", "compare") else None
        early = {
            "select": self._build_select(m, a, b, bits, orders),
            "flags": self._build_flags(orders) if self._has("compare") else Const(0, 2),
        }
        for stage in self.config.arithmetic:
            early = stages.cross_all(stage, early, stage)
        results = {Source.SELECT: early["select"]}
        if self._has("add"):
            results[Source.ADD] = self._build_add(m, a, b, orders)
        if self._has("multiply"):
            results[Source.MULTIPLY] = self._build_multiply(m, a, b)
        if self._has("convert"):
            results[Source.CONVERT] = build_convert(
                m,
                stages,
                a,
                [self.control[k] for k in range(depth + 1)],
                self.config.arithmetic,
                together=self.config.passes > 1,
            )
        result: Value = Const(0, 32)
        for source, value in results.items():
            # The results are masked and joined by OR: no path leads through a priority.
            chosen = self.control[depth].source == source
            result = result | (value & chosen.replicate(32))
        # Only exp and ln use the third rank of the arithmetic; the others wait for them.
        result = stages.cross("function", result, "function_d")
        flags = stages.cross("function", early["flags"], "function_flags")
        if self._has("functions"):
            chosen = self.control[self.config.stages - 2].source == Source.FUNCTION
            result = result | (self._build_functions(m, a) & chosen.replicate(32))
        m.d.comb += [
            self.d.eq(stages.cross("result", result, "result_d")),
            self.flags.eq(stages.cross("result", flags, "result_flags")),
        ]
        return EnableInserter(self.advance)(m)

    def _has(self, *groups: str) -> bool:
        return any(group in self.config.groups for group in groups)

    def _orders(self, m: Module, a: Value, b: Value) -> tuple[Order, Order]:
        """Return the orders of lane 0, and of lane 1 or of the FP32 codes."""
        wide = self.control[0].wide
        if self.config.sharing != "separate":
            return split_order(m, a, b, wide)
        # Two sets of comparators, of which constants remove the parts that are not needed.
        low, high = split_order(m, a, b, Const(0, 1))
        _, whole = split_order(m, a, b, Const(1, 1))
        names = [field.name for field in fields(Order)]
        return low, Order(**{n: Mux(wide, getattr(whole, n), getattr(high, n)) for n in names})

    def _build_select(
        self, m: Module, a: Value, b: Value, bits: Value, orders: tuple[Order, Order] | None
    ) -> Value:
        """Return b, an extreme, a selection by bits, or a combination of the bits of a and b."""
        control = self.control[0]
        wide, select = control.wide, control.select
        result: Value = b & (select == Select.B).replicate(32)
        if self._has("compare"):
            assert orders is not None
            is_max = select == Select.MAX
            extreme = is_max | (select == Select.MIN)
            by_bits = select == Select.BITS
            take, nan = [], []
            for k, order in enumerate(orders):
                # A number wins over a NaN, as minimumNumber and maximumNumber do (IEEE 754-2019,
                # section 9.6).
                wins = ~order.a_nan & (order.b_nan | (order.below ^ is_max))
                take.append(Mux(by_bits, bits[k], wins))
                nan.append(extreme & order.a_nan & order.b_nan)
            # An FP32 lane has its order in place 1, and the lower half follows it.
            take[0], nan[0] = (Mux(wide, x[1], x[0]) for x in (take, nan))
            either = extreme | by_bits
            for_a = Cat(*((either & t & ~n).replicate(16) for t, n in zip(take, nan, strict=True)))
            for_b = Cat(*((either & ~t & ~n).replicate(16) for t, n in zip(take, nan, strict=True)))
            codes = Mux(
                wide, Const(FP32.canonical_nan, 32), Const(FP16.canonical_nan * 0x10001, 32)
            )
            canonical = Cat(nan[0].replicate(16), nan[1].replicate(16)) & codes
            result = result | (a & for_a) | (b & for_b) | canonical
        if self._has("logic"):
            for code, value in ((Select.AND, a & b), (Select.OR, a | b), (Select.NOT, ~a)):
                result = result | (value & (select == code).replicate(32))
        named = Signal(32, name="selected")
        m.d.comb += named.eq(result)
        return named

    def _build_flags(self, orders: tuple[Order, Order] | None) -> Value:
        """Return the result of the comparison of each lane."""
        assert orders is not None
        control = self.control[0]
        flags = []
        for order in orders:
            unordered = order.a_nan | order.b_nan
            # −0 equals +0 although the codes differ, and a NaN equals nothing, not even itself.
            equal = (order.same | order.both_zero) & ~unordered
            less = order.below & ~order.both_zero & ~unordered
            greater = ~(less | equal | unordered)
            holds = (Cat(less, equal, greater, unordered) & control.accept).any()
            match = order.same | (order.a_nan & order.b_nan)
            flags.append(Mux(control.match, match, holds))
        return Cat(*flags)

    def _build_add(
        self, m: Module, a: Value, b: Value, orders: tuple[Order, Order] | None
    ) -> Value:
        """Return the sums of the two FP16 lanes, or of the FP32 lane."""
        assert orders is not None
        sums, depth = [], len(self.config.arithmetic)
        for name, part, order in _LANES:
            format = FP32 if order is None else FP16
            larger = orders[1 if order is None else order].larger_b
            if self.config.sharing == "adder":
                adder: Adder = OrderedAdder(format=format, pipeline=depth)
                m.d.comb += adder.larger_b.eq(larger)
            else:
                adder = Adder(format=format, pipeline=depth)
            m.submodules[f"add_{name}"] = adder
            m.d.comb += [
                adder.a.eq(a[part]),
                adder.b.eq(b[part]),
                adder.subtract.eq(self.control[0].subtract),
            ]
            sums.append(adder.d)
        # The adders have ranks, so that the control is that of as many cycles later.
        return Mux(self.control[depth].wide, sums[2], Cat(sums[0], sums[1]))

    def _build_multiply(self, m: Module, a: Value, b: Value) -> Value:
        """Return the products of the two FP16 lanes, or of the FP32 lane."""
        products, depth = [], len(self.config.arithmetic)
        for name, part, order in _LANES:
            multiplier = Multiplier(
                format=FP32 if order is None else FP16,
                pipeline=depth,
                multiplier=self.config.multiplier,
            )
            m.submodules[f"multiply_{name}"] = multiplier
            m.d.comb += [multiplier.a.eq(a[part]), multiplier.b.eq(b[part])]
            products.append(multiplier.d)
        return Mux(self.control[depth].wide, products[2], Cat(products[0], products[1]))

    def _build_functions(self, m: Module, a: Value) -> Value:
        """Return exp or ln of the two FP16 lanes."""
        results = []
        for name, part, _ in _LANES[:2]:
            unit = ExpLn(
                design=self.config.function_design,
                pipeline=self.config.pipeline,
                multiplier=self.config.multiplier,
            )
            m.submodules[f"exp_ln_{name}"] = unit
            bits = Cat(*(self.control[k].logarithm for k in range(3)))
            m.d.comb += [unit.a.eq(a[part]), unit.logarithm.eq(bits)]
            results.append(unit.d)
        return Cat(*results)
