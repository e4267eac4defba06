"""One phase of Tenstorrent's integer MVMUL.

``golden.machines.int_phases`` defines the rule. A phase multiplies the upper or the lower bits of
the magnitudes of 16 pairs; the sum of the products is exact ``[sum]`` and is added to Dst, which
saturates ``[total]``. The slices of a phase have one weight for all products, so their sum is
shifted and not the products.
"""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In

from vitruvian.golden.machines.spec import IntPhaseSpec

from .parts.pipeline import PipelineStages
from .parts.unit import PipelinedUnit, dot_ports

_PIPELINES: dict[int, tuple[str, ...]] = {0: (), 1: ("sum",), 2: ("sum", "total")}
_LOW_A, _LOW_B = 5, 4  # lower bits of the magnitudes
_LARGEST = (1 << 31) - 1
_SUM = 14  # bits of 16 signed products of 5 and 4 bits


class IntMatrixPhase(PipelinedUnit):
    """One phase of the integer MVMUL: 16 products of slices are added to Dst.

    It is bit-exact with a phase of ``golden.machines.int_phases.int_phase_dot``.

    Parameters
    ----------
    spec : IntPhaseSpec
        Number of phases.
    pipeline : int
        Number of register ranks, 0 (combinational) to 2.

    Members
    -------
    a, b : In(ArrayLayout(8, 16))
        Operands in sign and magnitude (SrcA and SrcB).
    c : In(32)
        Dst in sign and magnitude.
    phase : In(range(phases))
        The phase; only if there are several.
    d : Out(32)
        The new Dst. Zero is +0, and a sum beyond ±(2^31 − 1) stays there.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Raises
    ------
    ValueError
        If the pipeline depth is unknown.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        c: Signal
        phase: Signal
        d: Signal

    def __init__(self, *, spec: IntPhaseSpec, pipeline: int = 0):
        self.spec = spec
        ports = dot_ports(spec.k, (8, 8), 32)
        if spec.phases > 1:
            ports["phase"] = In((spec.phases - 1).bit_length())
        super().__init__(ports, pipeline=pipeline, depths=_PIPELINES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = PipelineStages(m, _PIPELINES[self.pipeline])
        low_a: Value = self.phase[0] if self.spec.phases > 1 else Const(0, 1)
        low_b: Value = self.phase[1] if self.spec.phases > 2 else Const(0, 1)
        products: list[Value] = []
        for k in range(self.spec.k):
            a, b = Value.cast(self.a[k]), Value.cast(self.b[k])
            p = Mux(low_a, a[:_LOW_A], a[_LOW_A:7])
            q = Mux(low_b, b[:_LOW_B], b[_LOW_B:7])
            product = Signal(_LOW_A + _LOW_B, name=f"product{k}")
            term = Signal(signed(_LOW_A + _LOW_B + 1), name=f"term{k}")
            m.d.comb += [
                product.eq(p * q),
                term.eq(Mux(a[7] ^ b[7], -product, product)),
            ]
            products.append(term)
        slices = Signal(signed(_SUM), name="slices")
        m.d.comb += slices.eq(sum(products[1:], products[0]))
        shifts = stages.cross("sum", Cat(low_a, low_b), "s_shifts")
        partial = stages.cross("sum", slices.as_unsigned(), "s_slices").as_signed()
        c = stages.cross("sum", self.c, "s_c")
        by_a = Mux(shifts[0], partial, partial << _LOW_A)
        total = Signal(signed(34), name="total")
        m.d.comb += total.eq(
            Mux(shifts[1], by_a, by_a << _LOW_B) + Mux(c[31], -c[:31], c[:31]).as_signed()
        )
        total = stages.cross("total", total.as_unsigned(), "s_total").as_signed()
        magnitude = Signal(33, name="magnitude")
        m.d.comb += [
            magnitude.eq(Mux(total < 0, -total, total)),
            self.d.eq(Cat(Mux(magnitude > _LARGEST, _LARGEST, magnitude)[:31], total < 0)),
        ]
        return m
