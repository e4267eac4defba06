"""The arithmetic of a unit whose elements may take several lanes and steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.fp.spec import DotSpec

from ..fp.core import PIPELINES, DotCore, Geometry
from ..fp.dot import lane
from ..fp.multiply import multiply
from ..fp.pipeline import Cuts
from ..fp.unpack import unpack
from .lanes import LaneFormat
from .products import limb_products

__all__ = ["LaneDot"]


class LaneDot(wiring.Component):
    """Fused dot product of decoded lanes; n lanes may together hold wide operands, limb by limb.

    A wide element takes n cycles that follow each other (:mod:`hdl.m3xu.products`); only what comes
    of the last one has a meaning.

    Parameters
    ----------
    spec : DotSpec
        Output format, window, truncation and rounding; its input format is the widest one served.
    format : LaneFormat
        What a lane is.
    k : int
        Number of lanes.
    limbs : sequence of int
        Every n that can be asked for, in rising order; k must be a multiple of each.
    pipeline : int
        Register ranks, 0 to 4.

    Members
    -------
    a, b : In(k × format.layout)
        Operands. All lanes of a wide operand carry its sign, exponent and class; those of A their
        own limbs, those of B all the same.
    wide : In(len(limbs))
        Which n the lanes are grouped by in this cycle, one bit each; none for lanes that stand
        alone. Absent without ``limbs``, as the next two.
    again, last : In(1), In(1)
        Whether this step is not the element's first, and whether it is its last.
    c, d : In(storage_bits), Out(storage_bits)
        Addend and result.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        wide: Signal
        again: Signal
        last: Signal
        c: Signal
        d: Signal

    def __init__(
        self,
        *,
        spec: DotSpec,
        format: LaneFormat,
        k: int,
        limbs: Sequence[int] = (),
        pipeline: int = 0,
    ):
        if pipeline not in PIPELINES:
            raise ValueError(f"pipeline must be one of {sorted(PIPELINES)}, not {pipeline!r}")
        if spec.window is None:
            raise ValueError("spec must have a window, not None")
        for n in limbs:
            if n < 2 or k % n:
                raise ValueError(f"limbs must divide k = {k} and be at least 2, not {n!r}")
        self.spec, self.format, self.k, self.limbs = spec, format, k, tuple(limbs)
        self.pipeline, self.latency = pipeline, pipeline
        members = {
            "a": In(data.ArrayLayout(format.layout, k)),
            "b": In(data.ArrayLayout(format.layout, k)),
            "c": In(spec.output.storage_bits),
            "d": Out(spec.output.storage_bits),
        }
        if limbs:
            members |= {"wide": In(len(self.limbs)), "again": In(1), "last": In(1)}
        super().__init__(members)

    @property
    def geometry(self) -> Geometry:
        """The widths behind this configuration."""
        spec = self.spec
        assert spec.window is not None
        bias = spec.input.bias
        return Geometry(
            lanes=self.k,
            window=spec.window,
            sticky=spec.truncate == "floor",
            output=spec.output,
            result_bits=spec.result_bits,
            exponent_min=2,
            exponent_max=2 * (spec.input.emax + bias),
            offset=spec.output.bias - 2 * bias,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self.format.significand_bits
        wide = {n: self.wide[i] for i, n in enumerate(self.limbs)}
        core = DotCore(
            m,
            geometry=self.geometry,
            rounding=self.spec.rounding,
            nan_code=self.spec.nan_code,
            cuts=Cuts(m, PIPELINES[self.pipeline]),
            pieces=wide,
            piece_bits=2 * width,
        )
        a = [self.format.view(self.a[k]) for k in range(self.k)]
        b = [self.format.view(self.b[k]) for k in range(self.k)]
        if wide:
            words = limb_products(
                m,
                [x.significand for x in a],
                [x.significand for x in b],
                wide=wide,
                again=self.again,
                last=self.last,
            )
        else:
            words = [
                multiply(m, x.significand, y.significand, name=f"p{k}")
                for k, (x, y) in enumerate(zip(a, b, strict=True))
            ]
        lanes = [
            lane(m, x, y, word, 2 * (width - 1), f"p{k}")
            for k, (x, y, word) in enumerate(zip(a, b, words, strict=True))
        ]
        m.d.comb += self.d.eq(core.build(lanes, unpack(m, self.c, self.spec.output, name="c")))
        return m
