"""Parameter objects of the rules that are not fused dot products."""

from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

from vitruvian.common.validate import check_int, check_type, one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.fp.window import ieee_window

#: Terms of one MVMUL.
TERMS = 16
_INPUTS = ("bf16", "tf32", "fp16", "fp8e4m3", "fp8e5m2")
_HALVES, _BYTES = ("fp16", "bf16"), ("fp8e4m3", "fp8e5m2")


@dataclass(frozen=True, kw_only=True)
class ChainSpec:
    """A dot product in which every operation is rounded to the output format.

    Parameters
    ----------
    step : DotSpec
        One fused multiply-add (``k`` = 1); its rounding and flushing hold for every operation.
    k : int or None
        Number of terms in a block; a longer dot product is computed block after block. None stands
        for any number of terms.
    accumulators : int
        Term k is added to accumulator k mod ``accumulators``. One accumulator begins with C,
        several begin with +0.
    descending : bool
        If True, the terms of a block are added in descending k.
    products : str
        "fused": a product is an operand of a fused multiply-add. "rounded": products are rounded,
        added in pairs until one sum is left, and C is added to it. "paired": products are rounded,
        neighbours are added, and sum p is added to accumulator p mod ``accumulators``.
    add_c : str
        How several accumulators end. "last": their sum is added to C. "none": their sum is the
        result, and C is ignored; then the last additions do not flush.
    zero_subnormals : bool
        If True, subnormal and zero operands, C included, become +0 (CDNA 2). With paired products,
        these are operands that are subnormal in FP16 as well.
    complex : str or None
        "real" or "imaginary": A and B are pairs of a real and an imaginary part, and D is this part
        of their product. The products of odd k are subtracted, or the parts of A are exchanged.
    """

    step: DotSpec
    k: int | None = 1
    accumulators: int = 1
    descending: bool = False
    products: str = "fused"
    add_c: str = "last"
    zero_subnormals: bool = False
    complex: str | None = None

    def __post_init__(self) -> None:
        check_type("step", self.step, DotSpec)
        check_int("k of step", self.step.k, 1, 1)
        if self.k is not None:
            check_int("k", self.k, 1)
        one_of("accumulators", str(self.accumulators), ("1", "2", "4"))
        one_of("products", self.products, ("fused", "rounded", "paired"))
        one_of("complex", self.complex, (None, "real", "imaginary"))
        if self.products == "paired" or self.complex:
            check_int("k", 2 if self.k is None else self.k % 2, 0, 0)
        one_of("add_c", self.add_c, ("last", "none"))

    @property
    def input(self) -> FloatFormat:
        """The format of A."""
        return self.step.input

    @property
    def input_b(self) -> FloatFormat:
        """The format of B."""
        return self.step.input_b

    @property
    def output(self) -> FloatFormat:
        """The format of C and D."""
        return self.step.output


def fma_step(
    input: FloatFormat | str,
    output: FloatFormat | str = "fp32",
    input_b: FloatFormat | str | None = None,
    **rule: Any,
) -> DotSpec:
    """Return the correctly rounded fused multiply-add of these formats.

    Parameters
    ----------
    input_b : FloatFormat or str, optional
        Format of B, by default that of A.
    **rule
        Further parameters of ``DotSpec``: rounding, flush, flush_result, nan.
    """
    window = ieee_window(input, output, input_b)
    return dot_spec(input=input, output=output, input_b=input_b, k=1, window=window, **rule)


@dataclass(frozen=True, kw_only=True)
class PhaseSpec:
    """One MVMUL of 16 terms.

    Parameters
    ----------
    input, output : FloatFormat or str
        Format of A and B (bf16, tf32, fp16, fp8e4m3 or fp8e5m2), and of Dst (fp32, bf16 or fp16).
    phases : int
        Fidelity: 1 (LoFi) to 4 (HiFi4).
    blackhole : bool
        If True, the rules of Blackhole hold: codes 0x7F and 0xFF of fp8e5m2 are all ones in the low
        bits as well, and Wormhole's erratum of sums of −1 is absent.
    shared_bits : int, optional
        Width of operands whose exponent is shared by 16 values: 8, 4 or 2 (BFP8, BFP4 and BFP2).
        They are converted to ``input``, which is bf16; ``phases.widen_shared`` says how.
    """

    input: FloatFormat
    output: FloatFormat
    phases: int
    blackhole: bool
    shared_bits: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", as_format(self.input, "input"))
        object.__setattr__(self, "output", as_format(self.output, "output"))
        one_of("input", self.input.name, _INPUTS)
        one_of("output", self.output.name, ("fp32", "bf16", "fp16"))
        check_int("phases", self.phases, 1, 4)
        check_type("blackhole", self.blackhole, bool)
        one_of("shared_bits", self.shared_bits, (None, 8, 4, 2))
        if self.shared_bits is not None:
            one_of("input of operands with a shared exponent", self.input.name, ("bf16",))

    @property
    def input_b(self) -> FloatFormat:
        """The format of B, which is that of A."""
        return self.input

    @property
    def k(self) -> int:
        """The number of terms of a step."""
        return TERMS

    @property
    def narrow(self) -> bool:
        """True if the operands have an exponent field of 5 bits."""
        return self.input.exponent_bits <= 5


@dataclass(frozen=True, kw_only=True)
class IntPhaseSpec:
    """One MVMUL of 16 integer terms.

    Parameters
    ----------
    phases : int
        Fidelity: 1 (phase 0 alone, the upper bits) to 4 (exact products).
    """

    phases: int

    def __post_init__(self) -> None:
        check_int("phases", self.phases, 1, 4)

    @property
    def k(self) -> int:
        """The number of terms of a step."""
        return TERMS


@dataclass(frozen=True, kw_only=True)
class RdnaSpec:
    """One step of RDNA's dot products and WMMA: ``k`` products and C, rounded once.

    Parameters
    ----------
    input, input_b, output : FloatFormat or str
        Format of A, of B, and of C and D. Operands are in fp16 or bf16 with results in fp32 or in
        their own format, or both in fp8e4m3 or fp8e5m2 with results in fp32.
    k : int
        Products in a step: 2, or 4 on RDNA 4.
    rdna4 : bool
        If True, the rules of RDNA 4 hold, otherwise those of RDNA 3.
    """

    input: FloatFormat
    input_b: FloatFormat
    output: FloatFormat
    k: int
    rdna4: bool

    def __post_init__(self) -> None:
        for name in ("input", "input_b", "output"):
            object.__setattr__(self, name, as_format(getattr(self, name), name))
        check_type("rdna4", self.rdna4, bool)
        a, b = self.input.name, self.input_b.name
        one_of("k", str(self.k), ("2", "4") if self.rdna4 else ("2",))
        one_of("input", a, _BYTES + _HALVES if self.rdna4 else _HALVES)
        one_of("input_b", b, _BYTES if a in _BYTES else (a,))
        one_of("output", self.output.name, ("fp32",) if a in _BYTES else ("fp32", a))


def changed_parameters(rule: Any) -> dict[str, Any]:
    """Return the parameters of a rule that are not at their defaults, by name.

    Those of a chain's step follow the chain's own, unless they have the same name.
    """
    found: dict[str, Any] = {}
    for part in (rule, getattr(rule, "step", None)):
        if isinstance(part, DotSpec):
            values = part.parameters()
            defaults = {name: each.default for name, each in signature(dot_spec).parameters.items()}
        elif part is not None:
            own = [each for each in fields(part) if each.name != "step"]
            values = {each.name: getattr(part, each.name) for each in own}
            defaults = {each.name: each.default for each in own}
        else:
            continue
        for name, value in values.items():
            if value != defaults[name]:
                found.setdefault(name, value)
    return found
