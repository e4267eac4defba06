"""The facts of a rule that the generated text depends on.

Everything that is read from a rule is read here. The other modules of ``golden.sums`` see flat
tuples of numbers, whose text is part of what is generated.
"""

from typing import Any, NamedTuple

_MOST_FRACTION = 23  # fraction bits of an operand, which FP32 holds exactly
_MOST_EXPONENT = 8
_TERMS = 2048  # products of a block of rows


class CodeFacts(NamedTuple):
    """An encoding of operands, of C or of results."""

    exponent_bits: int
    fraction_bits: int
    storage_bits: int
    shift: int  # unused bits below the encoding
    bias: int
    specials: str  # value of ``Specials``

    @property
    def width(self) -> int:
        """Bits of sign, exponent and fraction."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def emin(self) -> int:
        """Exponent of the least normal number and of every subnormal one."""
        return 1 - self.bias

    @property
    def is_fp32(self) -> bool:
        """True for FP32."""
        return self[:4] == (8, 23, 32, 0) and self.specials == "ieee"

    @property
    def is_fp64(self) -> bool:
        """True for FP64."""
        return self[:4] == (11, 52, 64, 0) and self.specials == "ieee"

    @property
    def is_fp16(self) -> bool:
        """True for FP16."""
        return self[:4] == (5, 10, 16, 0) and self.specials == "ieee"

    @property
    def fits_fp32(self) -> bool:
        """True if FP32 has every number of the encoding, with an exponent that is as large."""
        return (
            self.fraction_bits <= _MOST_FRACTION
            and self.exponent_bits <= _MOST_EXPONENT
            and self.storage_bits <= 32
        )


class ScaleCode(NamedTuple):
    """An encoding of scales."""

    exponent_bits: int
    fraction_bits: int
    bias: int
    subnormals: bool
    nan: int  # −1 if there is none


class Facts(NamedTuple):
    """The parameters of a fused dot product, as ``DotSpec`` names and describes them."""

    a: CodeFacts
    b: CodeFacts
    c: CodeFacts
    convert: CodeFacts | None
    k: int
    window: int | None
    truncate: str
    floor: int | None
    lanes: str
    slices: tuple[tuple[int, int], ...] | None
    leading: bool
    product_overflow: bool
    accumulate: str
    rounding: str
    bits: int
    nan: int
    zero: str
    flush: bool
    flush_result: str | None
    scale: ScaleCode | None
    block: int | None

    @property
    def terms(self) -> int:
        """Products of a block, where each pair of slices gives one."""
        return self.k * len(self.slices or (0,))

    @property
    def summed(self) -> int:
        """Terms that a row has in the array of products; those of other slices follow apart."""
        return self.k // 16 if self.is_grouped else self.k

    @property
    def lane_terms(self) -> list[list[int]]:
        """The terms of each sum."""
        if self.lanes == "halves":
            return [[i for i in range(self.k) if i % 4 in (half, half + 1)] for half in (0, 2)]
        if self.lanes == "parity":
            return [list(range(lane, self.k, 2)) for lane in (0, 1)]
        return [list(range(self.k))]

    @property
    def is_grouped(self) -> bool:
        """True if a term is the exact sum of sixteen products, multiplied by its scales."""
        return self.lanes == "sixteens"

    @property
    def rows(self) -> int:
        """Rows of a block, whose arrays stay in the first-level cache."""
        return min(max(_TERMS // max(self.terms, 1), 8), 256)

    @property
    def narrow(self) -> bool:
        """True if FP32 holds every product, and every scale that aligns a product."""
        codes = (self.a, self.b)
        bits = sum(code.fraction_bits + 1 for code in codes)
        return max(code.exponent_bits for code in codes) <= 5 and bits <= 24 and not self.scale


class ChainFacts(NamedTuple):
    """The parameters of a sequence of rounded operations, as ``ChainSpec`` describes them."""

    step: Facts
    k: int | None
    accumulators: int
    descending: bool
    products: str
    add_c: str
    zero_subnormals: bool


class PhaseFacts(NamedTuple):
    """The parameters of Tenstorrent's MVMUL, as ``PhaseSpec`` describes them."""

    a: CodeFacts
    c: CodeFacts
    phases: int
    blackhole: bool
    narrow: bool


def code(format: Any) -> CodeFacts:
    """Return the facts of a ``FloatFormat``."""
    return CodeFacts(
        format.exponent_bits,
        format.fraction_bits,
        format.storage_bits,
        format.storage_shift,
        format.bias,
        format.specials.value,
    )


def facts(spec: Any) -> Facts:
    """Return the facts of a ``DotSpec``."""
    scales, sum, result = spec.scales, spec.sum, spec.result
    scale = None if scales is None else scales.format
    return Facts(
        a=code(spec.input),
        b=code(spec.input_b),
        c=code(spec.output),
        convert=None if spec.a.convert is None else code(spec.a.convert),
        k=spec.k,
        window=sum.window,
        truncate=sum.truncate,
        floor=sum.floor,
        lanes=sum.lanes,
        slices=spec.products.slices,
        leading=spec.products.exponent == "leading",
        product_overflow=spec.products.overflow,
        accumulate=spec.addend.how,
        rounding=result.rounding,
        bits=result.bits,
        nan=spec.nan_code,
        zero=result.zero,
        flush=spec.flush,
        flush_result=result.flush,
        scale=None
        if scale is None
        else ScaleCode(
            scale.exponent_bits,
            scale.fraction_bits,
            scale.bias,
            scale.subnormals,
            -1 if scale.nan is None else scale.nan,
        ),
        block=None if scales is None else scales.block,
    )


def chain_facts(spec: Any) -> ChainFacts:
    """Return the facts of a ``ChainSpec``."""
    return ChainFacts(
        step=facts(spec.step),
        k=spec.k,
        accumulators=spec.accumulators,
        descending=spec.descending,
        products=spec.products,
        add_c=spec.add_c,
        zero_subnormals=spec.zero_subnormals,
    )


def phase_facts(spec: Any) -> PhaseFacts:
    """Return the facts of a ``PhaseSpec``."""
    return PhaseFacts(code(spec.input), code(spec.output), spec.phases, spec.blackhole, spec.narrow)


def read(spec: Any) -> Facts | ChainFacts | PhaseFacts | None:
    """Return the facts of a rule of any class, or None if no sum of such a rule is generated."""
    # By the names of the classes, whose packages lie above this one
    known = {"DotSpec": facts, "ChainSpec": chain_facts, "PhaseSpec": phase_facts}
    reader = known.get(type(spec).__name__)
    shared = getattr(spec, "shared_bits", None) is not None  # exponents that blocks share
    return None if reader is None or shared else reader(spec)
