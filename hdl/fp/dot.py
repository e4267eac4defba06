"""Fused dot product ``D = C + sum(A[k] * B[k])``: exact products, one alignment, one rounding."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Value

from vitruvian.golden.fp.spec import DotSpec

from .add import Adder
from .core.dotcore import DotCore
from .core.exact_addend import AFTER_PIPELINES, geometry_after
from .core.geometry import Geometry, Lane, with_floor
from .core.late_addend import exact_window, late_pipelines, sums_of
from .core.operands import form_of, form_of_addend
from .core.products import product_lanes
from .core.rules import check_dot_rule
from .parts.multiply import QUIET
from .parts.pipeline import DEEP_PIPELINES, QUIET_PIPELINES, PipelineStages, delayed
from .parts.unit import DotUnit


def geometry_of(spec: DotSpec, *, addend: bool = True) -> Geometry:
    """Return the widths of a dot product that has a window.

    Parameters
    ----------
    addend : bool
        If False, C is not a term of the sum.
    """
    a, b = form_of(spec, spec.input), form_of(spec, spec.input_b)
    assert spec.sum.window is not None
    bias = a.bias + b.bias
    geometry = Geometry(
        lanes=spec.k * len(spec.products.slices or (None,)),
        products=spec.k,
        window=spec.sum.window,
        sticky=spec.sum.truncate == "floor",
        output=spec.output,
        result_bits=spec.result.bits,
        # A biased exponent is at least 1, so the sum of two is at least 2.
        exponent_min=2,
        # A leading one of a product may be one place above the sum of the exponents.
        exponent_max=a.largest + b.largest + (spec.products.exponent == "leading"),
        # Product exponents carry both biases of the operands, results that of the output.
        offset=spec.output.bias - bias,
        odd=spec.sum.truncate == "odd",
        addend=addend,
    )
    return with_floor(geometry, spec.sum.floor, bias)


def _with_window(spec: DotSpec) -> DotSpec:
    """Return a rule with a window, which a sum of two products that C is added to need not have."""
    if spec.sum.window is not None:
        return spec
    window = exact_window(spec)
    if window is None:
        raise ValueError("spec must have a window; without one use ExactDotProduct")
    return spec.replace(window=window, truncate="floor")


class DotProduct(DotUnit):
    """Fused dot product of K pairs and an addend, bit-exact with ``golden.fp.fused_dot``.

    Ports, latency and ``multiplier`` are those of ``DotUnit``.

    Parameters
    ----------
    spec : DotSpec
        Formats, K, window, truncation and rounding.
    pipeline : int
        Number of register ranks, 0 (combinational) to 11. ``DEEP_PIPELINES`` in
        ``hdl.fp.parts.pipeline`` lists their positions.
    low_power : bool
        If True, the unit has fewer glitches, and a little more area: the ranks are those of
        ``QUIET_PIPELINES``, up to 8, and so are the rows of the multipliers. The results are the
        same. C must be a term of the sum.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, if ``spec`` has a step that the datapath
        does not have, if its sum is exact and has C or more than two products as terms, or if the
        result has a format without NaN.
    """

    def __init__(
        self,
        *,
        spec: DotSpec,
        pipeline: int = 0,
        multiplier: str = "booth",
        low_power: bool = False,
    ):
        self.low_power = low_power
        super().__init__(spec=spec, pipeline=pipeline, multiplier=multiplier)

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        check_dot_rule(spec)
        if self.low_power and spec.addend.how != "tree":
            raise ValueError("low_power must be False where C is not a term of the sum")
        self.rule = _with_window(spec)
        if not spec.output.has_nan:
            raise ValueError(f"output must be a format with NaN, not {spec.output.name!r}")

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        if self.spec.addend.how == "late":
            return late_pipelines(self.spec)
        if self.spec.addend.how == "after":
            return AFTER_PIPELINES
        return QUIET_PIPELINES if self.low_power else DEEP_PIPELINES

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end."""
        return geometry_of(self.rule, addend=self.rule.addend.how == "tree")

    @property
    def _pairs(self) -> list[tuple[Value, Value]]:
        """The codes of every pair of operands."""
        return [(Value.cast(self.a[k]), Value.cast(self.b[k])) for k in range(self.rule.k)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.rule.addend.how != "tree":
            (self._build_late if self.rule.addend.how == "late" else self._build_after)(m)
            return m
        ranks = QUIET_PIPELINES if self.low_power else DEEP_PIPELINES
        stages = PipelineStages(m, ranks[self.pipeline])
        m.d.comb += self.d.eq(self._build_sum(m, self.rule, stages, self._pairs, self.c))
        return m

    def _build_sum(
        self,
        m: Module,
        spec: DotSpec,
        stages: PipelineStages,
        pairs: Sequence[tuple[Value, Value]],
        c: Value | None,
    ) -> Value:
        """Return the code of the sum of the products and, if it is a term, of the code ``c``."""
        lanes = self._build_lanes(m, spec, stages, pairs)
        core = self._core(m, spec, geometry_of(spec, addend=c is not None), stages)
        if c is None:
            return core.build(lanes, None)
        c = stages.cross_extra("operand", c, "operand_c")
        return core.build(lanes, form_of_addend(spec).unpack(m, c, name="c"))

    def _core(
        self, m: Module, spec: DotSpec, geometry: Geometry, stages: PipelineStages
    ) -> DotCore:
        """Return a back end by the rule of a sum."""
        return DotCore(
            m,
            geometry=geometry,
            rounding=spec.result.rounding,
            nan_code=spec.nan_code,
            stages=stages,
            multiplier=self.multiplier,
            zero=spec.result.zero,
            flush=spec.result.flush is not None,
            unbounded=spec.result.flush == "unbounded",
            quiet=self.low_power,
        )

    def _build_lanes(
        self,
        m: Module,
        spec: DotSpec,
        stages: PipelineStages,
        pairs: Sequence[tuple[Value, Value]],
    ) -> list[Lane]:
        """Return the products of all pairs."""
        forms = form_of(spec, spec.input), form_of(spec, spec.input_b)
        lanes = []
        for k, pair in enumerate(pairs):
            codes = [
                stages.cross_extra("operand", code, f"operand_{name}{k}")
                for name, code in zip("ab", pair, strict=True)
            ]
            a = forms[0].unpack(m, codes[0], name=f"a{k}")
            b = forms[1].unpack(m, codes[1], name=f"b{k}")
            name, multiplier = f"p{k}", self.multiplier
            if self.low_power and multiplier == "booth":
                multiplier = QUIET
            # A pair gives one lane, or one for each pair of slices of its operands.
            lanes += product_lanes(m, spec, a, b, forms, name=name, multiplier=multiplier)
        return lanes

    def _build_after(self, m: Module) -> None:
        """Add C exactly to the exact sum of the truncated products, and round once."""
        spec, (first, second) = self.rule, AFTER_PIPELINES[self.pipeline]
        geometry = geometry_of(spec, addend=False)
        m.submodules.products = part = Module()
        stages = PipelineStages(part, first)
        lanes = self._build_lanes(part, spec, stages, self._pairs)
        total = self._core(part, spec, geometry, stages).build_total(lanes)
        # C meets the sum of its own beat.
        c = delayed(stages, first, self.c, "later_c")
        m.submodules.addition = part = Module()
        core = self._core(part, spec, geometry_after(geometry), PipelineStages(part, second))
        code = core.build([total], form_of_addend(spec).unpack(part, c, name="c"))
        m.d.comb += self.d.eq(code)

    def _build_late(self, m: Module) -> None:
        """Add C to the rounded sum of the products, with a rounding of its own."""
        spec, ranks = self.rule, late_pipelines(self.rule)[self.pipeline]
        pairs, c = self._pairs, self.c
        total: Value | None = None
        for i, (inner, chosen) in enumerate(sums_of(spec)):
            m.submodules[f"sum{i}"] = part = Module()
            stages = PipelineStages(part, ranks.boundaries)
            total = self._build_sum(part, inner, stages, [pairs[k] for k in chosen], total)
            total = stages.cross("rounded", total, "total_code")
            pairs = [
                (
                    delayed(stages, ranks.boundaries, a, f"later_a{k}"),
                    delayed(stages, ranks.boundaries, b, f"later_b{k}"),
                )
                for k, (a, b) in enumerate(pairs)
            ]
            c = delayed(stages, ranks.boundaries, c, "later_c")
        m.submodules.late = adder = Adder(
            format=spec.output,
            # Any other rounding of the rule is that of the sum of products; C is added to nearest
            # even.
            rounding="RTO" if spec.result.rounding == "RTO" else "RNE",
            pipeline=ranks.adder,
            nan=spec.nan_code,
        )
        assert total is not None, "a rule has at least one sum"
        m.d.comb += [adder.a.eq(total), adder.b.eq(c), self.d.eq(adder.d)]
