"""Fused dot product ``D = C + sum(A[k] * B[k])``: exact products, one alignment, one rounding."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import DotSpec

from .add import Adder
from .core.dotcore import DotCore
from .core.geometry import Geometry, with_floor
from .core.late import late_pipelines, sums_of
from .core.operands import form_of
from .core.products import lane, product_lane, product_lanes
from .core.rules import check_dot_rule
from .parts.multiply import check_multiplier
from .parts.pipeline import DEEP_PIPELINES, PipelineStages, check_pipeline, delayed
from .parts.unpack import unpack

__all__ = ["DotProduct", "geometry_of", "lane", "product_lane"]


def geometry_of(spec: DotSpec, *, addend: bool = True) -> Geometry:
    """Return the widths of a dot product that has a window.

    Parameters
    ----------
    spec : DotSpec
    addend : bool
        If False, C is not a term of the sum.
    """
    a, b = form_of(spec, spec.input), form_of(spec, spec.input_b)
    assert spec.window is not None
    bias = a.bias + b.bias
    geometry = Geometry(
        lanes=spec.k * len(spec.slices or (None,)),
        products=spec.k,
        window=spec.window,
        sticky=spec.truncate == "floor",
        output=spec.output,
        result_bits=spec.result_bits,
        # A biased exponent is at least 1, so the sum of two is at least 2.
        exponent_min=2,
        exponent_max=a.largest + b.largest + (spec.product_exponent == "leading"),
        offset=spec.output.bias - bias,
        odd=spec.truncate == "odd",
        addend=addend,
    )
    return with_floor(geometry, spec.emax_floor, bias)


class DotProduct(wiring.Component):
    """Fused dot product of K pairs and an addend, bit-exact with ``golden.fp.fused_dot``.

    Parameters
    ----------
    spec : DotSpec
        Formats, K, window, truncation and rounding.
    pipeline : int
        Number of register ranks, 0 (combinational) to 11. ``DEEP_PIPELINES`` in
        ``hdl.fp.parts.pipeline`` lists their positions.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, k))
        Codes of the operands.
    c : In(output.storage_bits)
        Code of the addend.
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, if ``spec`` has no window, or if the
        result has a format without NaN.
    """

    a: data.View
    b: data.View
    c: Signal
    d: Signal

    def __init__(self, *, spec: DotSpec, pipeline: int = 0, multiplier: str = "booth"):
        check_dot_rule(spec)
        self.late = spec.accumulate == "late"
        check_pipeline(pipeline, late_pipelines(spec) if self.late else DEEP_PIPELINES)
        if spec.window is None:
            raise ValueError("spec must have a window; without one use ExactDotProduct")
        if not spec.output.has_nan:
            raise ValueError(f"output must be a format with NaN, not {spec.output.name!r}")
        self.spec = spec
        self.multiplier = check_multiplier(multiplier)
        self.pipeline = pipeline
        self.latency = pipeline
        super().__init__(
            {
                "a": In(data.ArrayLayout(spec.input.storage_bits, spec.k)),
                "b": In(data.ArrayLayout(spec.input_b.storage_bits, spec.k)),
                "c": In(spec.output.storage_bits),
                "d": Out(spec.output.storage_bits),
            }
        )

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end."""
        return geometry_of(self.spec, addend=not self.late)

    @property
    def _pairs(self) -> list[tuple[Value, Value]]:
        """The codes of every pair of operands."""
        return [(Value.cast(self.a[k]), Value.cast(self.b[k])) for k in range(self.spec.k)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.late:
            self._build_late(m)
            return m
        stages = PipelineStages(m, DEEP_PIPELINES[self.pipeline])
        m.d.comb += self.d.eq(self._build_sum(m, self.spec, stages, self._pairs, self.c))
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
            lanes += product_lanes(m, spec, a, b, forms, name=name, multiplier=multiplier)
        core = DotCore(
            m,
            geometry=geometry_of(spec, addend=c is not None),
            rounding=spec.rounding,
            nan_code=spec.nan_code,
            stages=stages,
            multiplier=self.multiplier,
            zero=spec.zero,
        )
        if c is None:
            return core.build(lanes, None)
        c = stages.cross_extra("operand", c, "operand_c")
        return core.build(lanes, unpack(m, c, spec.output, name="c"))

    def _build_late(self, m: Module) -> None:
        """Add C to the rounded sum of the products, with a rounding of its own."""
        spec, ranks = self.spec, late_pipelines(self.spec)[self.pipeline]
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
            rounding="RTO" if spec.rounding == "RTO" else "RNE",
            pipeline=ranks.adder,
            nan=spec.nan_code,
        )
        assert total is not None, "a rule has at least one sum"
        m.d.comb += [adder.a.eq(total), adder.b.eq(c), self.d.eq(adder.d)]
