"""Fused dot product ``D = C + sum(A[k] * B[k])``: exact products, one alignment, one rounding."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import DotSpec

from .add import Adder
from .core.dotcore import DotCore
from .core.geometry import Geometry, Lane, with_floor
from .core.late import LATE_PIPELINES, sums_of
from .core.rules import check_dot_rule
from .parts.multiply import check_multiplier, multiply
from .parts.pipeline import DEEP_PIPELINES, PipelineStages, check_pipeline, delayed
from .parts.unpack import Unpacked, unpack

__all__ = ["DotProduct", "geometry_of", "lane", "product_lane"]


def product_lane(
    m: Module, a: Unpacked, b: Unpacked, *, fraction: int, name: str, multiplier: str = "booth"
) -> Lane:
    """Return the exact product of two unpacked operands.

    Parameters
    ----------
    m : Module
    a, b : Unpacked
        The operands.
    fraction : int
        Sum of the operands' numbers of fraction bits.
    name : str
        First part of the new signals' names.
    multiplier : {"booth", "dsp"}
        Form of the multiplier.
    """
    product = multiply(m, a.significand, b.significand, name=name, multiplier=multiplier)
    return lane(m, a, b, product, fraction, name)


def lane(m: Module, a: Unpacked, b: Unpacked, significand: Value, fraction: int, name: str) -> Lane:
    """Return the product of two operands whose significands were multiplied elsewhere.

    Parameters
    ----------
    m : Module
    a, b : Unpacked
        The operands.
    significand : Value
        The product of their significands.
    fraction : int
        Number of fraction bits of ``significand``.
    name : str
        First part of the new signals' names.
    """
    zero = Signal(name=f"{name}_zero")
    exponent = Signal(max(len(a.exponent), len(b.exponent)) + 1, name=f"{name}_exponent")
    sign = Signal(name=f"{name}_sign")
    m.d.comb += [
        # A zero product gets the exponent 0, below all nonzero products, so it never sets E_max.
        zero.eq(a.zero | b.zero),
        exponent.eq((a.exponent + b.exponent) & (~zero).replicate(len(exponent))),
        sign.eq(a.sign ^ b.sign),
    ]
    return Lane(
        sign=sign,
        exponent=exponent,
        significand=significand,
        fraction=fraction,
        # 0 · ∞ is an invalid operation (IEEE 754, section 7.2).
        nan=a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf),
        inf=a.inf | b.inf,
    )


def geometry_of(spec: DotSpec, *, addend: bool = True) -> Geometry:
    """Return the widths of a dot product that has a window.

    Parameters
    ----------
    spec : DotSpec
    addend : bool
        If False, C is not a term of the sum.
    """
    a, b = spec.input, spec.input_b
    assert spec.window is not None
    bias = a.bias + b.bias
    geometry = Geometry(
        lanes=spec.k,
        window=spec.window,
        sticky=spec.truncate == "floor",
        output=spec.output,
        result_bits=spec.result_bits,
        # A biased exponent is at least 1, so the sum of two is at least 2.
        exponent_min=2,
        exponent_max=a.emax + b.emax + bias,
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
        check_pipeline(pipeline, LATE_PIPELINES if self.late else DEEP_PIPELINES)
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

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.late:
            self._build_late(m)
            return m
        stages = PipelineStages(m, DEEP_PIPELINES[self.pipeline])
        m.d.comb += self.d.eq(self._build_sum(m, self.spec, stages, self.c))
        return m

    def _build_sum(
        self, m: Module, spec: DotSpec, stages: PipelineStages, c: Value | None
    ) -> Value:
        """Return the code of the sum of the products and, if it is a term, the code ``c``."""
        fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
        lanes = []
        for k in range(spec.k):
            codes = [
                stages.cross_extra("operand", Value.cast(port[k]), f"operand_{name}{k}")
                for name, port in (("a", self.a), ("b", self.b))
            ]
            a = unpack(m, codes[0], spec.input, name=f"a{k}")
            b = unpack(m, codes[1], spec.input_b, name=f"b{k}")
            name, multiplier = f"p{k}", self.multiplier
            lanes.append(product_lane(m, a, b, fraction=fraction, name=name, multiplier=multiplier))
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
        spec, ranks = self.spec, LATE_PIPELINES[self.pipeline]
        stages = PipelineStages(m, (*ranks.sum, *(["late"] if ranks.late else [])))
        (inner,) = sums_of(spec)
        total = self._build_sum(m, inner, stages, None)
        m.submodules.late = adder = Adder(
            format=spec.output,
            rounding="RTO" if spec.rounding == "RTO" else "RNE",
            pipeline=ranks.adder,
            nan=spec.nan_code,
        )
        c = delayed(stages, ranks.sum, self.c, "c")
        m.d.comb += [
            adder.a.eq(stages.cross("late", total, "late_total")),
            adder.b.eq(stages.cross("late", c, "late_c")),
            self.d.eq(adder.d),
        ]
