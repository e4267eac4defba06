"""Dot product of a block with one scale for each operand: MXFP8, MXFP6, and MXFP4 of K = 32."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.hdl.fp.core.products import product_lane

from .core.geometry import check_rule
from .core.scaled import ScaledCore, ScaledGeometry
from .parts.pipeline import DEEP_PIPELINES, PipelineStages
from .parts.unit import DotUnit
from .parts.unpack import unpack


def check_scaled(spec: DotSpec, lanes: str) -> None:
    """Check that a rule is one of those with block scales.

    Parameters
    ----------
    lanes : str
        The value that ``spec.sum.lanes`` must have.

    Raises
    ------
    ValueError
        If it is not.
    """
    # Without its scales, the rule must be one of a plain dot product.
    check_rule(spec.replace(scale=None, block=None, lanes="together"))
    if spec.scales is None:
        raise ValueError("spec must have a scale, not None")
    for name, allowed in (
        ("sum.lanes", lanes),
        ("sum.truncate", "magnitude"),
        ("result.zero", "positive"),
    ):
        found = attrgetter(name)(spec)
        if found != allowed:
            raise ValueError(f"{name} must be {allowed!r}, not {found!r}")
    if spec.sum.window is None:
        raise ValueError("spec must have a window, not None")
    if not spec.output.has_infinity:
        raise ValueError(f"output must be a format with infinity, not {spec.output.name!r}")


class ScaledDot(DotUnit):
    """Dot product D = C + 2^(scales) · sum(A[k] * B[k]), bit-exact with ``golden.fp.fused_dot``.

    Latency and ``multiplier`` are those of ``DotUnit``.

    Parameters
    ----------
    spec : DotSpec
        Formats, K, window and rounding; ``scale`` is a power of two (UE8M0) and ``block`` is K.
    pipeline : int
        Number of register ranks, 0 (combinational) to 11, as in ``DotProduct``.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, k))
        Codes of the operands; FP6 and FP4 codes are in the low bits.
    scale_a, scale_b : In(8)
        Codes of the scales of A and of B.
    c : In(output.storage_bits)
        Code of the addend, which has no scale.
    d : Out(output.storage_bits)
        Code of the result; a NaN if a scale is a NaN.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, or if the rule is another one.
    """

    scale_a: Signal
    scale_b: Signal

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        check_scaled(spec, "together")
        assert spec.scales is not None
        if spec.scales.format.fraction_bits or spec.scales.format.subnormals:
            raise ValueError(f"scale must be a power of two, not {spec.scales.format.name!r}")
        if spec.scales.block != spec.k:
            raise ValueError(f"block must be k = {spec.k}, not {spec.scales.block!r}")

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        return DEEP_PIPELINES

    def scale_ports(self) -> dict[str, wiring.Member]:
        """Return a port for the scale of A and one for that of B."""
        assert self.spec.scales is not None
        return dict.fromkeys(("scale_a", "scale_b"), In(self.spec.scales.format.width))

    @property
    def geometry(self) -> ScaledGeometry:
        """The widths of the back end."""
        spec = self.spec
        assert spec.scales is not None and spec.sum.window is not None
        biases = spec.input.bias + spec.input_b.bias
        floor = spec.output.emin if spec.sum.floor is None else spec.sum.floor
        return ScaledGeometry(
            lanes=spec.k,
            window=spec.sum.window,
            sticky=False,
            output=spec.output,
            result_bits=spec.result.bits,
            # A biased exponent is at least 1, so the sum of two is at least 2.
            exponent_min=2,
            exponent_max=spec.input.emax + spec.input_b.emax + biases,
            # The scale is the sum of two codes, so both biases of it are subtracted here.
            offset=spec.output.bias - biases - 2 * spec.scales.format.bias,
            # In units of 2**E_max, a product is below 4 and the addend below 2.
            sum_limit=4 * spec.k + 2,
            scale_max=2 * spec.scales.format.max_finite,
            zero_code=floor + spec.output.bias,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec = self.spec
        assert spec.scales is not None and spec.scales.format.nan is not None
        fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
        stages = PipelineStages(m, DEEP_PIPELINES[self.pipeline])

        def operand(value: Value, name: str) -> Value:
            return stages.cross_extra("operand", value, f"operand_{name}")

        lanes = []
        for k in range(spec.k):
            a = operand(Value.cast(self.a[k]), f"a{k}")
            b = operand(Value.cast(self.b[k]), f"b{k}")
            lanes.append(
                product_lane(
                    m,
                    unpack(m, a, spec.input, name=f"a{k}"),
                    unpack(m, b, spec.input_b, name=f"b{k}"),
                    fraction=fraction,
                    name=f"p{k}",
                    multiplier=self.multiplier,
                )
            )
        scales = [operand(self.scale_a, "scale_a"), operand(self.scale_b, "scale_b")]
        scale = Signal(spec.scales.format.width + 1)
        no_number = Signal(name="scale_nan")
        m.d.comb += [
            scale.eq(scales[0] + scales[1]),
            no_number.eq(
                (scales[0] == spec.scales.format.nan) | (scales[1] == spec.scales.format.nan)
            ),
        ]
        core = ScaledCore(
            m,
            geometry=self.geometry,
            scale=scale,
            rounding=spec.result.rounding,
            nan_code=spec.nan_code,
            stages=stages,
            multiplier=self.multiplier,
        )
        c = unpack(m, operand(self.c, "c"), spec.output, name="c")
        m.d.comb += self.d.eq(core.build(lanes, replace(c, nan=c.nan | no_number)))
        return m
