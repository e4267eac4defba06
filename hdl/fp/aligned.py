"""The dot products of CDNA 3 (TR-FDPA and GTR-FDPA)."""

from collections.abc import Mapping
from operator import attrgetter

from amaranth.hdl import Module, Signal, Value

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.hdl.fp.core.products import product_lane

from .core.aligned import PIPELINES, AlignedCore
from .core.geometry import Lane
from .parts.pipeline import PipelineStages
from .parts.unit import DotUnit
from .parts.unpack import unpack

#: Parameters that the rule fixes, and the only value of each.
_RULE = {
    "addend.how": "aligned",
    "sum.truncate": "magnitude",
    "result.rounding": "RNE",
    "result.zero": "exact",
    "sum.floor": None,
    "a.convert": None,
    "flush": False,
    "result.flush": None,
    "products.exponent": "sum",
    "products.slices": None,
    "scales": None,
}


class AlignedDotProduct(DotUnit):
    """Dot product of CDNA 3: a sum of products and C are floored before they are added.

    It is bit-exact with ``golden.fp.fused_dot`` for a spec with ``accumulate="aligned"``. Ports,
    latency and ``multiplier`` are those of ``DotUnit``.

    Parameters
    ----------
    spec : DotSpec
        Formats and K; ``lanes`` is "together" or "parity", and ``product_overflow`` may be set.
    pipeline : int
        Number of register ranks, 0 (combinational) to 5.

    Raises
    ------
    ValueError
        If the spec is of another rule, if an exact product does not fit into the window of 24
        fraction bits, or if the pipeline depth or the multiplier is unknown.
    """

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        for name, value in _RULE.items():
            found = attrgetter(name)(spec)
            if found != value:
                raise ValueError(f"{name} must be {value!r}, not {found!r}")
        if spec.sum.lanes not in ("together", "parity") or (
            spec.sum.lanes == "parity" and spec.k < 2
        ):
            raise ValueError(
                f"sum.lanes must be together or parity (k ≥ 2), not {spec.sum.lanes!r}"
            )
        if spec.output.name != "fp32" or spec.result.bits != spec.output.fraction_bits:
            raise ValueError(f"output must be fp32 with all bits, not {spec.output.name!r}")
        fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
        if fraction > 24:
            raise ValueError(
                f"input must be a format whose products have at most 24 fraction bits, "
                f"not {spec.input.name!r}"
            )

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        return PIPELINES

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec = self.spec
        bias = spec.input.bias + spec.input_b.bias
        fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
        lanes: list[Lane] = []
        for k in range(spec.k):
            a = unpack(m, Value.cast(self.a[k]), spec.input, name=f"a{k}")
            b = unpack(m, Value.cast(self.b[k]), spec.input_b, name=f"b{k}")
            lane = product_lane(
                m, a, b, fraction=fraction, name=f"p{k}", multiplier=self.multiplier
            )
            if spec.products.overflow:
                lane = _with_overflow(m, lane, spec.output, bias, name=f"p{k}")
            lanes.append(lane)
        core = AlignedCore(
            m,
            output=spec.output,
            offset=spec.output.bias - bias,
            nan_code=spec.nan_code,
            stages=PipelineStages(m, PIPELINES[self.pipeline]),
            parity=spec.sum.lanes == "parity",
            multiplier=self.multiplier,
        )
        m.d.comb += self.d.eq(core.build(lanes, unpack(m, self.c, spec.output, name="c")))
        return m


def _with_overflow(m: Module, lane: Lane, output: FloatFormat, bias: int, *, name: str) -> Lane:
    """Return a lane that is an infinity if it is 2^(emax + 1) of the output or more.

    A product is in [1, 4) times its power of two if both operands are normal, and a product with a
    subnormal operand is too small.
    """
    least = output.emax + 1 + bias  # exponent that is too large on the product scale
    if least - 1 >= 1 << len(lane.exponent):
        return lane
    over = Signal(name=f"{name}_over")
    m.d.comb += over.eq(
        (lane.exponent >= least) | ((lane.exponent == least - 1) & lane.significand[-1])
    )
    return Lane(
        sign=lane.sign,
        exponent=lane.exponent,
        significand=lane.significand,
        fraction=lane.fraction,
        nan=lane.nan,
        inf=lane.inf | over,
    )
