"""The arithmetic of an element with semirings: one number out of K pairs, and what C has."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.simd2.op import PARTS, Op
from vitruvian.validate import one_of

from ..fp.core import PIPELINES, DotCore
from ..fp.dot import geometry_of, lane
from ..fp.geometry import Geometry, Guests, Lane, Winner
from ..fp.multiply import check_multiplier, multiply
from ..fp.pipeline import Cuts
from ..fp.unpack import Unpacked, unpack
from .mode import bits, bits_layout, operations_of
from .operand import check_format, lane_layout
from .winner import Candidate, Widths, candidate, key_of, least, winner_of
from .winner import less as less_than

__all__ = ["SemiringDot", "better", "both_true"]

#: Levels of the tree that finds the least key before the place "sum"; the rest stands behind it.
_EARLY = 2


class SemiringDot(wiring.Component):
    """Fused dot product and the semirings; bits as ``golden.simd2.mmo``.

    Parameters
    ----------
    spec : DotSpec
        Of the sums: an ``ieee`` one with FP32 results, and a window that holds a sum of two
        operands.
    operations : sequence of Op or str
    pipeline : int
        Register ranks, 0 to 4.
    multiplier : {"booth", "dsp"}
        Booth rows and carry-save trees, or ``*`` and ``+``, which an FPGA has blocks for.

    Members
    -------
    a, b : In(k × lane_layout)
        Operands, from `hdl.simd2.operand.Spread`.
    mode : In(bits_layout)
        What to do with them.
    c : In(32)
        Addend of sums.
    d : Out(32)
        The sum; in a semiring the least candidate, its sign not turned back: what `better` makes a
        result of.
    true : Out(1 or 0)
        Whether there is a pair of true operands, where there is orand.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle, whatever the operation.

    Raises
    ------
    ValueError
        For a pipeline depth or multiplier that does not exist, another kind of spec, and no
        operation.
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
        one_of("pipeline", pipeline, sorted(PIPELINES))
        self.operations = operations_of(operations)
        own = (spec.truncate, spec.rounding, spec.zero, spec.emax_floor)
        if own != ("floor", "RNE", "ieee", None) or spec.window is None:
            raise ValueError(f"spec must be of the preset ieee, not {spec!r}")
        check_format(spec.input)
        self.multiplier = check_multiplier(multiplier)
        self.spec, self.pipeline, self.latency = spec, pipeline, pipeline
        lanes = data.ArrayLayout(lane_layout(spec.input, self.operations), spec.k)
        super().__init__(
            {
                "a": In(lanes),
                "b": In(lanes),
                "mode": In(bits_layout(self.operations)),
                "c": In(spec.output.storage_bits),
                "d": Out(spec.output.storage_bits),
                "true": Out(int(Op.ORAND in self.operations)),
            }
        )

    @property
    def _widths(self) -> Widths:
        times = {op.times for op in self.operations if op.plus in ("min", "max")}
        return Widths(
            format=self.spec.input,
            sums="add" in times,
            products="mul" in times,
            extrema=bool(times & {"min", "max"}),
        )

    @property
    def _exponent_bits(self) -> int:
        """Of a product in a sum of products."""
        return geometry_of(self.spec).exponent_max.bit_length()

    @property
    def _adds(self) -> bool:
        return any(op.plus == "add" for op in self.operations)

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end; without sums of products it has no more than a winner."""
        geometry, widths = geometry_of(self.spec), self._widths
        if self._adds:
            return geometry
        window = widths.number - 4 if widths.sums else geometry.result_bits + 1
        return replace(geometry, lanes=1, window=window)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths, mode = self._widths, bits(self.operations, self.mode)
        cuts = Cuts(m, PIPELINES[self.pipeline])
        pairs = self._pairs(m, mode["norm"])
        lanes = [self._lane(m, x, y, mode, i, kill) for i, (x, y, kill) in enumerate(pairs)]
        guests, held = None, None
        if widths.sums or widths.products or widths.extrema:
            guests, held = self._build_keys(m, cuts, lanes, mode)
        core = DotCore(
            m,
            geometry=self.geometry,
            rounding=self.spec.rounding,
            nan_code=self.spec.nan_code,
            cuts=cuts,
            guests=guests,
            multiplier=self.multiplier,
        )
        if self._adds:
            addend = unpack(m, self.c, self.spec.output, name="c")
            n = self._exponent_bits
            lanes = [replace(lane, exponent=lane.exponent[:n]) for lane in lanes]
            m.d.comb += self.d.eq(core.build(lanes, addend, held))
        elif guests is not None:
            m.d.comb += self.d.eq(core.build_winner())
        if Op.ORAND in self.operations:
            found = [both_true(self.a[i], self.b[i]) for i in range(self.spec.k)]
            true: Value = Cat(*found).any()
            for place in ("product", "sum", "total", "normalised"):
                true = cuts.cross(place, true, f"true_{place}")
            m.d.comb += self.true.eq(true)
        return m

    # ---------------------------------------------------------------- lanes

    def _pairs(self, m: Module, norm: Value) -> list[tuple[Unpacked, Unpacked, Value]]:
        """The operands of each lane's product, and whether it counts as zero.

        Of the four lanes of a square of a difference the first has a·a and the last b·b; where a
        and b are the same, all four are zero.
        """
        found: list[tuple[Unpacked, Unpacked, Value]] = []
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
            found.append((x, y, same))
        return found

    def _lane(
        self, m: Module, x: Unpacked, y: Unpacked, mode: dict[str, Value], i: int, kill: Value
    ) -> Lane:
        """A product on its way into the sum; none where it is none of a sum or a semiring."""
        gone = kill | mode["larger"]
        fraction = 2 * self.spec.input.fraction_bits
        width = len(x.significand) + len(y.significand)
        product: Value = Const(0, fraction + 2)
        if width:
            product = multiply(
                m, x.significand, y.significand, name=f"p{i}", multiplier=self.multiplier
            )
            product = product & (~gone).replicate(len(product))
        found = lane(m, x, y, product, fraction, f"p{i}")
        exponent = found.exponent & (~gone).replicate(len(found.exponent))
        nan, inf = found.nan, found.inf
        norm = mode["norm"]
        if not isinstance(norm, Const) or norm.value:
            # infinities of one sign are none of a square's; a NaN comes from the first lane alone
            first = i % PARTS == 0
            a, b = self.a[i - i % PARTS], self.b[i - i % PARTS]
            spoilt = a.nan | b.nan | (a.inf & b.inf & ~(a.sign ^ b.sign))
            nan = Mux(norm, spoilt & Const(int(first), 1), nan)
            inf = Mux(norm, (a.inf | b.inf) & Const(int(first), 1), inf)
        return replace(found, exponent=exponent, nan=nan, inf=inf)

    # ---------------------------------------------------------------- candidates

    def _build_keys(self, m: Module, cuts: Cuts, lanes: Sequence[Lane], mode):
        """The keys that go past the sum, and what lanes keep of products, behind "product"."""
        widths, k = self._widths, self.spec.k
        kept: list[Candidate] = []
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
            kept.append(Candidate(**cuts.cross_all("product", fields, f"s1_{i}")))
        mode = {name: mode[name] for name in ("semiring", "plus", "larger")}
        mode = self._cross(cuts, "product", mode, "s1_mode")
        keys = [key_of(m, x, widths=widths, mode=mode, name=f"x{i}") for i, x in enumerate(kept)]
        keys = least(m, keys, turns=~mode["plus"], name="early", levels=_EARLY)
        late = self._cross(cuts, "sum", mode, "s2_mode")

        def winner(words: list[Value]) -> Winner:
            (key,) = least(m, words, turns=~late["plus"], name="late")
            return winner_of(key, widths=widths, geometry=self.geometry, mode=late)

        guests = Guests(words=keys, early=mode["semiring"], winner=winner)
        held = [(x.word, x.sign, x.exponent[: self._exponent_bits]) for x in kept]
        return guests, held

    @staticmethod
    def _cross(cuts: Cuts, place: str, mode: dict[str, Value], prefix: str) -> dict[str, Value]:
        """Bits of the mode on the far side of a place; constants stay what they are."""
        return {
            name: bit if isinstance(bit, Const) else cuts.cross(place, bit, f"{prefix}_{name}")
            for name, bit in mode.items()
        }


def both_true(a: data.View, b: data.View) -> Value:
    """⊗ of or-and: whether both operands are neither zero nor NaN."""
    return ~(a.zero | a.nan | b.zero | b.nan)


def _unpacked(lane: data.View) -> Unpacked:
    return Unpacked(
        sign=lane.sign,
        exponent=lane.exponent,
        significand=lane.significand,
        zero=lane.zero,
        inf=lane.inf,
        nan=lane.nan,
    )


def _choice(select: Value, x: Unpacked, y: Unpacked) -> Unpacked:
    if isinstance(select, Const):
        return x if select.value else y
    return Unpacked(**{name: Mux(select, value, vars(y)[name]) for name, value in vars(x).items()})


def better(
    m: Module,
    found: Value,
    true: Value,
    kept: Value,
    *,
    output: FloatFormat,
    mode: Mapping[str, Value],
    keep: Value,
    name: str,
) -> Value:
    """The result: ⊕ of what `SemiringDot` found and what a slot holds; sums are results already.

    Parameters
    ----------
    found, true : Value
        Its ``d`` and ``true``.
    kept : Value
        Code of the other operand of ⊕.
    mode : mapping of str to Value
        ``semiring``, ``turn`` and ``truth`` of this result.
    keep : Value
        Whether ``kept`` counts; else it is the identity of ⊕.
    """
    bits, f = len(found), output.fraction_bits
    endless = Const(((1 << output.exponent_bits) - 1) << f, bits - 1)
    turn, truth = mode["turn"], mode["truth"]
    own: Value = Mux(keep, kept, Cat(endless, turn))
    sign, other = found[-1], own[-1] ^ turn
    less = Signal(name=f"{name}_less")
    m.d.comb += less.eq(Mux(sign ^ other, sign, less_than(found[:-1], own[:-1]) ^ sign))
    found_nan, own_nan = (_is_nan(code, output) for code in (found, own))
    turned = Cat(found[:-1], sign ^ (turn & ~found_nan))
    takes = ~mode["semiring"] | own_nan | (less & ~found_nan)
    chosen: Value = Mux(takes, turned, own)
    if isinstance(truth, Const) and not truth.value:
        return chosen
    either = true | (keep & kept[:-1].any() & ~_is_nan(kept, output))
    one = Const(output.bias << f, bits) & either.replicate(bits)
    return Mux(truth, one, chosen)


def _is_nan(code: Value, format: FloatFormat) -> Value:
    f = format.fraction_bits
    return code[f:-1].all() & code[:f].any()
