"""The arithmetic of an element with semirings: one number from K pairs of operands and C."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.simd2.op import PARTS, Op
from vitruvian.hdl.fp.core.products import lane

from ..fp.core.dotcore import DotCore
from ..fp.core.geometry import Bypass, BypassResult, Geometry, Lane, check_rule
from ..fp.dot import geometry_of
from ..fp.parts.multiply import multiply
from ..fp.parts.pipeline import PIPELINES, PipelineStages
from ..fp.parts.unit import PipelinedUnit
from ..fp.parts.unpack import UnpackedCode, unpack
from .mode import bits, bits_layout, operations_of
from .operand import check_format, lane_layout
from .winner import LaneCandidate, Widths, candidate, decode_key, key_of, least
from .winner import less as less_than

#: Levels of the tournament tree in front of the stage ``sum``; the other levels are behind it.
_EARLY = 2


class SemiringDot(PipelinedUnit):
    """Fused dot product and semirings, bit-exact with ``golden.simd2.mmo``.

    Parameters
    ----------
    spec : DotSpec
        The arithmetic of the sums: preset ``ieee`` with FP32 results, and a window that can hold a
        sum of two operands.
    operations : sequence of Op or str
        The operations of the unit.
    pipeline : int
        Number of register ranks, 0 to 4.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.

    Members
    -------
    a, b : In(k × lane_layout)
        Operands, from ``hdl.simd2.operand.Spread``.
    mode : In(bits_layout)
        Control bits of the operation.
    c : In(32)
        Addend of a sum.
    d : Out(32)
        The sum. In a semiring it is the least candidate, still negated if ⊕ is max; ``better``
        makes the result from it.
    true : Out(1 or 0)
        Set if both operands of some pair are true; only in units that have orand.

    Latency
    -------
    ``latency = pipeline`` cycles for every operation, with one result per cycle.

    Raises
    ------
    ValueError
        If the pipeline depth, the multiplier or an operation is unknown, if there are no
        operations, or if ``spec`` is not of the preset ``ieee``.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        mode: data.View
        c: Signal
        d: Signal
        true: Signal

    def __init__(
        self,
        *,
        spec: DotSpec,
        operations: Sequence[Op | str],
        pipeline: int = 0,
        multiplier: str = "booth",
    ):
        check_rule(spec)
        self.operations = operations_of(operations)
        own = (spec.sum.truncate, spec.result.rounding, spec.result.zero, spec.sum.floor)
        if own != ("floor", "RNE", "ieee", None) or spec.sum.window is None:
            raise ValueError(f"spec must be of the preset ieee, not {spec!r}")
        check_format(spec.input)
        self.spec = spec
        lanes = data.ArrayLayout(lane_layout(spec.input, self.operations), spec.k)
        super().__init__(
            {
                "a": In(lanes),
                "b": In(lanes),
                "mode": In(bits_layout(self.operations)),
                "c": In(spec.output.storage_bits),
                "d": Out(spec.output.storage_bits),
                "true": Out(int(Op.ORAND in self.operations)),
            },
            pipeline=pipeline,
            multiplier=multiplier,
        )

    @property
    def _widths(self) -> Widths:
        """The widths of candidates and keys."""
        times = {op.times for op in self.operations if op.plus in ("min", "max")}
        return Widths(
            format=self.spec.input,
            sums="add" in times,
            products="mul" in times,
            extrema=bool(times & {"min", "max"}),
        )

    @property
    def _exponent_bits(self) -> int:
        """Exponent bits of a product in a sum of products."""
        return geometry_of(self.spec).exponent_max.bit_length()

    @property
    def _adds(self) -> bool:
        """True if some operation is a sum of products."""
        return any(op.plus == "add" for op in self.operations)

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end, which are smaller in a unit without sums of products."""
        geometry, widths = geometry_of(self.spec), self._widths
        if self._adds:
            return geometry
        # Without sums of products the back end only rounds the winner, so the window needs no more
        # bits than the winner's number.
        window = widths.number - 4 if widths.sums else geometry.result_bits + 1
        return replace(geometry, lanes=1, window=window)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths, mode = self._widths, bits(self.operations, self.mode)
        stages = PipelineStages(m, PIPELINES[self.pipeline])
        pairs = self._pairs(m, mode["norm"])
        lanes = [self._lane(m, x, y, mode, i, kill) for i, (x, y, kill) in enumerate(pairs)]
        bypass, held = None, None
        if widths.sums or widths.products or widths.extrema:
            bypass, held = self._build_keys(m, stages, lanes, mode)
        core = DotCore(
            m,
            geometry=self.geometry,
            rounding=self.spec.result.rounding,
            nan_code=self.spec.nan_code,
            stages=stages,
            bypass=bypass,
            multiplier=self.multiplier,
        )
        if self._adds:
            addend = unpack(m, self.c, self.spec.output, name="c")
            # A sum of products needs fewer exponent bits than a product of normalised operands.
            n = self._exponent_bits
            lanes = [replace(lane, exponent=lane.exponent[:n]) for lane in lanes]
            m.d.comb += self.d.eq(core.build(lanes, addend, held))
        elif bypass is not None:
            m.d.comb += self.d.eq(core.build_bypass())
        if Op.ORAND in self.operations:
            pairs_true = [both_true(self.a[i], self.b[i]) for i in range(self.spec.k)]
            true: Value = Cat(*pairs_true).any()
            for stage in ("product", "sum", "total", "normalised"):
                true = stages.cross(stage, true, f"true_{stage}")
            m.d.comb += self.true.eq(true)
        return m

    # ---------------------------------------------------------------- lanes

    def _pairs(self, m: Module, norm: Value) -> list[tuple[UnpackedCode, UnpackedCode, Value]]:
        """Return the factors of each lane's product, and a bit that forces it to zero.

        A squared difference takes four lanes: a·a, -a·b, -b·a and b·b. If a equals b, all four are
        forced to zero, because they could otherwise shift other terms out of the window.
        """
        pairs: list[tuple[UnpackedCode, UnpackedCode, Value]] = []
        never = isinstance(norm, Const) and not norm.value
        same: Value = Const(0, 1)
        for i in range(self.spec.k):
            x, y = _unpacked(self.a[i]), _unpacked(self.b[i])
            if not never and i % PARTS == 0:
                same = Signal(name=f"same{i}")
                codes = [Cat(z.sign, z.exponent, z.significand) for z in (x, y)]
                m.d.comb += same.eq(norm & (codes[0] == codes[1]))
                y = _choice(norm, x, y)
            elif not never and i % PARTS == PARTS - 1:
                x = _choice(norm, y, x)
            pairs.append((x, y, same))
        return pairs

    def _lane(
        self,
        m: Module,
        x: UnpackedCode,
        y: UnpackedCode,
        mode: dict[str, Value],
        i: int,
        kill: Value,
    ) -> Lane:
        """Return a lane's product, or 0 if ``kill`` is set or the operation has no product."""
        # For ⊗ = min and max the multiplier's operands are compared instead of multiplied.
        cleared = kill | mode["larger"]
        fraction = 2 * self.spec.input.fraction_bits
        width = len(x.significand) + len(y.significand)
        product: Value = Const(0, fraction + 2)
        if width:
            product = multiply(
                m, x.significand, y.significand, name=f"p{i}", multiplier=self.multiplier
            )
            product = product & (~cleared).replicate(len(product))
        result = lane(m, x, y, product, fraction, f"p{i}")
        exponent = result.exponent & (~cleared).replicate(len(result.exponent))
        nan, inf = result.nan, result.inf
        norm = mode["norm"]
        if not isinstance(norm, Const) or norm.value:
            # The flags of (a - b)², which the first of the four lanes alone reports: infinities of
            # equal sign have no difference, so the square is a NaN.
            first = i % PARTS == 0
            a, b = self.a[i - i % PARTS], self.b[i - i % PARTS]
            invalid = a.nan | b.nan | (a.inf & b.inf & ~(a.sign ^ b.sign))
            nan = Mux(norm, invalid & Const(int(first), 1), nan)
            inf = Mux(norm, (a.inf | b.inf) & Const(int(first), 1), inf)
        return replace(result, exponent=exponent, nan=nan, inf=inf)

    # ---------------------------------------------------------------- candidates

    def _build_keys(self, m: Module, stages: PipelineStages, lanes: Sequence[Lane], mode):
        """Return the bypass with the candidates' keys, and the lanes' products in registers.

        Both share the candidates' registers at the stage ``product``.
        """
        widths, k = self._widths, self.spec.k
        kept: list[LaneCandidate] = []
        for i in range(k):
            fields = vars(
                candidate(
                    m,
                    self.a[i],
                    self.b[i],
                    lanes[i],
                    widths=widths,
                    mode=mode,
                    name=f"x{i}",
                )
            )
            kept.append(LaneCandidate(**stages.cross_all("product", fields, f"s1_{i}")))
        mode = {name: mode[name] for name in ("semiring", "plus", "larger")}
        mode = self._cross(stages, "product", mode, "s1_mode")
        keys = [key_of(m, x, widths=widths, mode=mode, name=f"x{i}") for i, x in enumerate(kept)]
        # The first levels of the tournament are in the stage of the aligners and the others in that
        # of the adder, because the pipeline registers of the sum's rows stand between them.
        keys = least(m, keys, sign_magnitude=~mode["plus"], name="early", levels=_EARLY)
        late = self._cross(stages, "sum", mode, "s2_mode")

        def select(words: list[Value]) -> BypassResult:
            (key,) = least(m, words, sign_magnitude=~late["plus"], name="late")
            return decode_key(key, widths=widths, geometry=self.geometry, mode=late)

        bypass = Bypass(words=keys, enable=mode["semiring"], select=select)
        held = [(x.word, x.sign, x.exponent[: self._exponent_bits]) for x in kept]
        return bypass, held

    @staticmethod
    def _cross(
        stages: PipelineStages, stage: str, mode: dict[str, Value], prefix: str
    ) -> dict[str, Value]:
        """Return the control bits behind a stage boundary; constants need no registers."""
        return {
            name: bit if isinstance(bit, Const) else stages.cross(stage, bit, f"{prefix}_{name}")
            for name, bit in mode.items()
        }


def both_true(a: data.View, b: data.View) -> Value:
    """Return ⊗ of or-and: 1 if neither operand is zero or NaN."""
    return ~(a.zero | a.nan | b.zero | b.nan)


def _unpacked(lane: data.View) -> UnpackedCode:
    """Return a lane's operand as the arithmetic takes it."""
    return UnpackedCode(
        sign=lane.sign,
        exponent=lane.exponent,
        significand=lane.significand,
        zero=lane.zero,
        inf=lane.inf,
        nan=lane.nan,
    )


def _choice(select: Value, x: UnpackedCode, y: UnpackedCode) -> UnpackedCode:
    """Return x if ``select`` is set, otherwise y."""
    if isinstance(select, Const):
        return x if select.value else y
    return UnpackedCode(
        **{name: Mux(select, value, vars(y)[name]) for name, value in vars(x).items()}
    )


def better(
    m: Module,
    new: Value,
    true: Value,
    kept: Value,
    *,
    output: FloatFormat,
    mode: Mapping[str, Value],
    keep: Value,
    name: str,
) -> Value:
    """Return the ⊕ of a new value and the value of a slot; a sum is returned unchanged.

    Parameters
    ----------
    new, true : Value
        The new value: ``d`` and ``true`` of ``SemiringDot``.
    kept : Value
        Code of the slot's value, the other operand of ⊕.
    output : FloatFormat
        Format of both.
    mode : mapping of str to Value
        Control bits ``semiring``, ``turn`` and ``truth`` of the operation.
    keep : Value
        If 0, the identity of ⊕ replaces ``kept``.
    name : str
        First part of the new signals' names.
    """
    bits, f = len(new), output.fraction_bits
    infinity = Const(((1 << output.exponent_bits) - 1) << f, bits - 1)
    turn, truth = mode["turn"], mode["truth"]
    # The identity of min is +∞ and that of max is −∞.
    own: Value = Mux(keep, kept, Cat(infinity, turn))
    sign, other = new[-1], own[-1] ^ turn
    less = Signal(name=f"{name}_less")
    # If the signs differ, the negative value is less.
    m.d.comb += less.eq(Mux(sign ^ other, sign, less_than(new[:-1], own[:-1]) ^ sign))
    new_nan, own_nan = (_is_nan(code, output) for code in (new, own))
    # For ⊕ = max ``new`` is negated. The comparison negates the slot's value as well, and the
    # result gets its sign back.
    restored = Cat(new[:-1], sign ^ (turn & ~new_nan))
    takes = ~mode["semiring"] | own_nan | (less & ~new_nan)
    chosen: Value = Mux(takes, restored, own)
    if isinstance(truth, Const) and not truth.value:
        return chosen
    # ⊕ of or-and: a nonzero value is true and a NaN is not.
    either = true | (keep & kept[:-1].any() & ~_is_nan(kept, output))
    one = Const(output.bias << f, bits) & either.replicate(bits)
    return Mux(truth, one, chosen)


def _is_nan(code: Value, format: FloatFormat) -> Value:
    """Return 1 for the code of a NaN."""
    f = format.fraction_bits
    return code[f:-1].all() & code[:f].any()
