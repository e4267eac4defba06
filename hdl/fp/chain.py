"""Dot products in which every operation is rounded: chains of fused multiply-adds, trees of sums.

The units of this module are the small units of ``hdl.fp``, one beside the other.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import data

from vitruvian.golden.machines.spec import ChainSpec

from .add import FEW_STAGES, Adder
from .fma import FusedMultiplyAdd, check_flushing, cleared, flushed
from .mul import Multiplier
from .parts.pipeline import PipelineStages
from .parts.unit import PipelinedUnit, dot_ports

_MULTIPLIER_RANKS = 2  # the deepest pipeline of a multiplier


@dataclass(frozen=True)
class _Timed:
    """A value, and the number of cycles that it is later than the operands."""

    value: Value
    at: int


class ChainStep(FusedMultiplyAdd):
    """A fused multiply-add of a chain, which tools build once for all of its steps."""


class ChainDot(PipelinedUnit):
    """Dot product of rounded operations, bit-exact with ``golden.machines.chain``.

    Products that are fused with an addition follow each other in one chain, or in several chains
    that work side by side and whose results are added in pairs. Products that are rounded
    (``products="rounded"``) are added in pairs, too.

    Parameters
    ----------
    spec : ChainSpec
        The rule.
    k : int, optional
        Number of products; ``spec.k`` unless that is None.
    pipeline : int
        Number of register ranks of every operation, 0 (combinational) to 3. A multiplier has at
        most 2.
    multiplier : {"booth", "dsp"}
        Form of the products, as in ``DotProduct``.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, k))
        Codes of the operands.
    c : In(output.storage_bits)
        Code of the addend; it is ignored if ``spec.add_c`` is "none".
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency`` is the sum of the ranks of the operations that depend on each other, with one result
    per cycle. Operands wait in shift registers for their operation. The unit never stalls and has
    no valid bit.

    Raises
    ------
    ValueError
        If ``k`` does not fit to the rule, if the pipeline depth or the multiplier is unknown, or if
        the rule rounds or flushes in another way than the small units.
    """

    #: Units that tools build once, whatever their number.
    shared = (ChainStep, Adder, Multiplier)

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        c: Signal
        d: Signal

    def __init__(
        self,
        *,
        spec: ChainSpec,
        k: int | None = None,
        pipeline: int = 0,
        multiplier: str = "booth",
    ):
        terms = spec.k if k is None else k
        if terms is None or terms < spec.accumulators or spec.k not in (None, terms):
            raise ValueError(f"k must be {spec.k or f'{spec.accumulators} or more'}, not {terms!r}")
        if spec.products == "paired":
            raise ValueError("products must be fused or rounded, not 'paired'")
        if spec.products == "rounded" and terms & (terms - 1):
            raise ValueError(f"k must be a power of two for rounded products, not {terms!r}")
        step, out = spec.step, spec.output
        roundings = ("RNE", "RTO") if spec.products == "rounded" else ("RNE",)
        if step.result.rounding not in roundings or step.nan_code != out.canonical_nan:
            allowed = " or ".join(roundings)
            raise ValueError(f"rounding must be {allowed} with the NaN {out.canonical_nan:#x}")
        if spec.products == "rounded" and spec.input != spec.input_b:
            raise ValueError(f"input_b must be {spec.input.name!r}, not {spec.input_b.name!r}")
        check_flushing(step)
        self.spec, self.k = spec, terms
        bits = spec.input.storage_bits, spec.input_b.storage_bits
        super().__init__(
            dot_ports(terms, bits, out.storage_bits),
            pipeline=pipeline,
            depths=FEW_STAGES,
            multiplier=multiplier,
        )
        self.latency = self._latency()

    def _latency(self) -> int:
        """Return the ranks of the longest path."""
        spec, ranks = self.spec, self.pipeline
        if spec.products == "rounded":
            return min(ranks, _MULTIPLIER_RANKS) + ranks * self.k.bit_length()
        many = spec.accumulators
        additions = many.bit_length() - 1 + (many > 1 and spec.add_c == "last")
        return ranks * (-(-self.k // many) + additions)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        build = _Rounded if self.spec.products == "rounded" else _Fused
        result = build(m, self).build()
        assert result.at == self.latency, "the ports promise the latency of the longest path"
        m.d.comb += self.d.eq(result.value)
        return m


class _ChainBuilder:
    """The operations of a ``ChainDot``, each with its registers."""

    def __init__(self, m: Module, unit: ChainDot):
        self.m, self.unit, self.spec = m, unit, unit.spec
        self._ranks = PipelineStages(m, ("wait",))
        self._waiting: dict[tuple[int, int], Value] = {}
        self._kept: list[Value] = []

    def operands(self) -> list[tuple[_Timed, _Timed]]:
        """Return the pairs of operands."""
        spec = self.spec
        pairs: list[tuple[_Timed, _Timed]] = []
        for k in range(self.unit.k):
            # The parts of A change places, or the square of the imaginary one is −1.
            other = k ^ 1 if spec.complex == "imaginary" else k
            codes = [Value.cast(self.unit.a[other]), Value.cast(self.unit.b[k])]
            if spec.complex == "real" and k % 2:
                codes[0] = codes[0] ^ spec.input.sign_mask
            if spec.zero_subnormals:
                formats = (spec.input, spec.input_b)
                codes = [cleared(code, f) for code, f in zip(codes, formats, strict=True)]
            pairs.append((_Timed(codes[0], 0), _Timed(codes[1], 0)))
        return pairs

    def addend(self) -> _Timed:
        """Return C."""
        c = Value.cast(self.unit.c)
        return _Timed(cleared(c, self.spec.output) if self.spec.zero_subnormals else c, 0)

    def at(self, operand: _Timed, cycle: int) -> Value:
        """Return the value of an operand in a later cycle."""
        value = operand.value
        if isinstance(value, Const):
            return value
        for n in range(operand.at, cycle):
            key = (id(value), n)
            if key not in self._waiting:
                name = f"wait{len(self._waiting)}"
                self._waiting[key] = self._ranks.cross("wait", value, name)
                self._kept.append(value)  # an id is unique while its object lives
            value = self._waiting[key]
        return value

    def multiply_add(self, a: _Timed, b: _Timed, c: _Timed, name: str) -> _Timed:
        """Return the rounded a·b + c."""
        fma = ChainStep(
            spec=self.spec.step, pipeline=self.unit.pipeline, multiplier=self.unit.multiplier
        )
        self.m.submodules[name] = fma
        start = max(a.at, b.at, c.at)
        for port, operand in ((fma.a, a), (fma.b, b), (fma.c, c)):
            self.m.d.comb += Value.cast(port).eq(self.at(operand, start))
        return _Timed(fma.d, start + fma.latency)

    def add(self, x: _Timed, y: _Timed, name: str, *, flush: bool, flush_result: bool) -> _Timed:
        """Return the rounded x + y."""
        out, pipeline = self.spec.output, self.unit.pipeline
        adder = Adder(format=out, pipeline=pipeline, rounding=self.spec.step.result.rounding)
        self.m.submodules[name] = adder
        start = max(x.at, y.at)
        for port, operand in ((adder.a, x), (adder.b, y)):
            code = self.at(operand, start)
            self.m.d.comb += port.eq(flushed(code, out) if flush else code)
        return _Timed(flushed(adder.d, out) if flush_result else adder.d, start + adder.latency)

    def pairwise(self, values: list[_Timed], *, flush_result: bool) -> _Timed:
        """Return the sum of a power of two of values, added in neighbouring pairs.

        Their subnormals were flushed when they were results.
        """
        level = 0
        while len(values) > 1:
            values = [
                self.add(x, y, f"add{level}_{n}", flush=False, flush_result=flush_result)
                for n, (x, y) in enumerate(zip(values[::2], values[1::2], strict=True))
            ]
            level += 1
        return values[0]


class _Fused(_ChainBuilder):
    """Chains of fused multiply-adds."""

    def build(self) -> _Timed:
        """Return D."""
        spec, terms, many = self.spec, self.unit.k, self.spec.accumulators
        pairs = self.operands()
        zero = _Timed(Const(0, spec.output.storage_bits), 0)
        sums = [zero] * many if many > 1 else [self.addend()]
        for k in reversed(range(terms)) if spec.descending else range(terms):
            a, b = pairs[k]
            sums[k % many] = self.multiply_add(a, b, sums[k % many], f"fma{k}")
        if many == 1:
            return sums[0]
        if spec.add_c == "none":
            sums = [sums[(terms + i) % many] for i in range(many)]
            return self.pairwise(sums, flush_result=False)
        flush = spec.step.result.flush is not None
        total = self.pairwise(sums, flush_result=flush)
        c = self.addend()
        return self.add(total, c, "add_c", flush=spec.step.flush, flush_result=flush)


class _Rounded(_ChainBuilder):
    """Rounded products, added in pairs."""

    def build(self) -> _Timed:
        """Return D."""
        spec, out = self.spec, self.spec.output
        flush, rounding = spec.step.result.flush is not None, spec.step.result.rounding
        products: list[_Timed] = []
        for k, (a, b) in enumerate(self.operands()):
            ranks = min(self.unit.pipeline, _MULTIPLIER_RANKS)
            unit = Multiplier(
                format=spec.input,
                output=out,
                rounding=rounding,
                pipeline=ranks,
                multiplier=self.unit.multiplier,
            )
            self.m.submodules[f"multiply{k}"] = unit
            for port, operand in ((unit.a, a), (unit.b, b)):
                small = spec.step.flush and spec.input.emin == out.emin
                code = flushed(operand.value, spec.input) if small else operand.value
                self.m.d.comb += port.eq(code)
            products.append(_Timed(flushed(unit.d, out) if flush else unit.d, unit.latency))
        total = self.pairwise(products, flush_result=flush)
        # A sum of flushed results has no subnormals, so only C is flushed by this.
        return self.add(total, self.addend(), "add_c", flush=spec.step.flush, flush_result=flush)
