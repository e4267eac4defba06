"""The arithmetic of a unit in which an operand may take several lanes and several steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.hdl.fp.core.products import lane

from ..fp.core.dotcore import DotCore
from ..fp.core.geometry import Geometry, ShortWindow, SmallResult, check_rule, with_floor
from ..fp.multidot import check_floor, choose, widen
from ..fp.parts.multiply import multiply
from ..fp.parts.pipeline import PIPELINES, RETIMED, PipelineStages
from ..fp.parts.unit import PipelinedUnit
from ..fp.parts.unpack import UnpackedCode, unpack
from .lanes import bus_layout, lanes_of, significand_bits
from .products import limb_products


class LaneDot(PipelinedUnit):
    """Fused dot product of decoded lanes; n lanes together may hold the limbs of a wide operand.

    A product of wide operands takes n consecutive cycles (``hdl.m3xu.products``); only the output
    of the last one is valid.

    Parameters
    ----------
    spec : DotSpec
        Output format, window, truncation and rounding. Its input format is the widest format of the
        unit.
    exponent_bits : int
        Bits of the lanes' exponents, which have the bias of the widest format.
    a_bits : sequence of int
        Width of A's significands and limbs, for each lane.
    b_bits : int
        Width of B's significands and digits.
    chopped : DotSpec, optional
        Arithmetic of the unit while ``chop`` is set: fewer bits, truncated magnitudes, RZ. ``spec``
        must then have ``truncate="floor"`` and ``rounding="RNE"``.
    small : DotSpec, optional
        Arithmetic of the unit while ``small`` is set: as ``spec``, but with a smaller output
        format. ``chopped`` must then have the smaller format too.
    limbs : sequence of int
        All numbers n of limbs that the unit supports, in rising order. Each must divide the number
        of lanes.
    pipeline : int
        Number of register ranks, 0 to 4.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.
    fast : bool
        If True, the last rank stands inside the rounding (``hdl.fp.parts.pipeline.RETIMED``), and
        the significands of A arrive as Booth digits (``hdl.fp.parts.multiply.recode``).

    Members
    -------
    a, b : In(bus_layout)
        Operands, lane by lane. All lanes of a wide operand carry its sign, exponent and class. The
        lanes of A carry its limbs; the lanes of B all carry the same digit.
    wide : In(len(limbs))
        One bit for each n in ``limbs``: in this cycle, n lanes form one product. If no bit is set,
        every lane forms its own. Absent without ``limbs``, like ``again`` and ``last``.
    again, last : In(1), In(1)
        ``again`` is set in all steps of a product but the first; ``last`` is set in the last one.
    chop : In(1)
        Set if ``chopped`` applies in this cycle; absent without ``chopped``.
    small : In(1)
        Set if C and D have the format of ``small``, in the low bits, in this cycle; absent without
        ``small``.
    c, d : In(storage_bits), Out(storage_bits)
        Addend and result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, if ``spec`` has no window, if the floor
        of a spec is above C's least exponent, or if a number of limbs does not divide the lanes.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        wide: Signal
        again: Signal
        last: Signal
        chop: Signal
        small: Signal
        c: Signal
        d: Signal

    def __init__(
        self,
        *,
        spec: DotSpec,
        exponent_bits: int,
        a_bits: Sequence[int],
        b_bits: int,
        chopped: DotSpec | None = None,
        small: DotSpec | None = None,
        limbs: Sequence[int] = (),
        pipeline: int = 0,
        multiplier: str = "booth",
        fast: bool = False,
    ):
        check_rule(spec)
        if spec.sum.window is None:
            raise ValueError("spec must have a window, not None")
        for checked in (spec, chopped):
            check_floor(checked)
        k = len(a_bits)
        for n in limbs:
            if n < 2 or k % n:
                raise ValueError(f"limbs must divide {k} lanes and be at least 2, not {n!r}")
        self.spec, self.a_bits, self.b_bits = spec, tuple(a_bits), b_bits
        self.limbs, self.chopped, self.smaller = tuple(limbs), chopped, small
        self.fast = fast
        members = {
            "a": In(bus_layout(exponent_bits, significand_bits(self.a_bits, recoded=fast))),
            "b": In(bus_layout(exponent_bits, [b_bits] * k)),
            "c": In(spec.output.storage_bits),
            "d": Out(spec.output.storage_bits),
        }
        if limbs:
            members |= {"wide": In(len(self.limbs)), "again": In(1), "last": In(1)}
        if chopped is not None:
            members["chop"] = In(1)
        if small is not None:
            members["small"] = In(1)
        depths = RETIMED if fast else PIPELINES
        super().__init__(members, pipeline=pipeline, depths=depths, multiplier=multiplier)

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end."""
        spec = self.spec
        assert spec.sum.window is not None
        bias = spec.input.bias
        geometry = Geometry(
            lanes=len(self.a_bits),
            window=spec.sum.window,
            sticky=spec.sum.truncate == "floor",
            output=spec.output,
            result_bits=spec.result.bits,
            # A biased exponent is at least 1, so the sum of two is at least 2.
            exponent_min=2,
            exponent_max=2 * (spec.input.emax + bias),
            offset=spec.output.bias - 2 * bias,
        )
        return with_floor(geometry, spec.sum.floor, 2 * bias)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wide = {n: self.wide[i] for i, n in enumerate(self.limbs)}
        short, geometry = None, self.geometry
        if self.chopped is not None:
            assert self.chopped.sum.window is not None
            short = ShortWindow(
                select=self.chop,
                window=self.chopped.sum.window,
                result_bits=self.chopped.result.bits,
                nan_code=self.chopped.nan_code,
                zero=self.chopped.result.zero,
                floor=with_floor(geometry, self.chopped.sum.floor, 2 * self.spec.input.bias).floor,
            )
        core = DotCore(
            m,
            geometry=geometry,
            rounding=self.spec.result.rounding,
            nan_code=self.spec.nan_code,
            stages=PipelineStages(m, (RETIMED if self.fast else PIPELINES)[self.pipeline]),
            short=short,
            small=self._small(),
            pieces=wide,
            multiplier=self.multiplier,
            zero=self.spec.result.zero,
        )
        a, b = lanes_of(self.a), lanes_of(self.b)
        x, y = [lane.significand for lane in a], [lane.significand for lane in b]
        digits = self.a_bits if self.fast else [None] * len(x)
        if wide:
            words = limb_products(
                m,
                x,
                y,
                wide=wide,
                again=self.again,
                last=self.last,
                multiplier=self.multiplier,
                recoded=self.a_bits if self.fast else None,
            )
        else:
            # ``multiply`` recodes its second operand; A's limbs may be shorter and need fewer rows.
            words = [
                multiply(m, q, p, name=f"p{k}", multiplier=self.multiplier, bits=bits)
                for k, (p, q, bits) in enumerate(zip(x, y, digits, strict=True))
            ]
        lanes = [lane(m, a[k], b[k], word, len(word) - 2, f"p{k}") for k, word in enumerate(words)]
        m.d.comb += self.d.eq(core.build(lanes, self._addend(m)))
        return m

    def _small(self) -> SmallResult | None:
        """Return the smaller format of results, or None."""
        if self.smaller is None:
            return None
        return SmallResult(
            select=self.small, output=self.smaller.output, nan_code=self.smaller.nan_code
        )

    def _addend(self, m: Module) -> UnpackedCode:
        """Return C converted to the larger format."""
        whole = unpack(m, self.c, self.spec.output, name="c")
        if self.smaller is None:
            return whole
        output, larger = self.smaller.output, self.spec.output
        low = unpack(m, self.c[: output.storage_bits], output, name="small_c")
        low = widen(low, output, fraction=larger.fraction_bits, bias=larger.bias)
        return choose(m, [(~self.small, whole), (self.small, low)], name="addend")
