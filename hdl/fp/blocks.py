"""The rules of the dot products with block scales, by the names of NVIDIA's instructions."""

from dataclasses import dataclass

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, dot_spec

FP4 = "fp4e2m1"
#: The operand formats of block-scaled instructions.
SMALL = (*(name for name, format in FORMATS.items() if format.width <= 8), FP4)


@dataclass(frozen=True, kw_only=True)
class BlockRule:
    """One rule, as a row of ``golden.machines``.

    Attributes
    ----------
    scale : str
        Format of the scales.
    block : int
        Number of values that share a scale.
    k : int
        Number of terms.
    window, floor : int
        ``window`` and ``emax_floor`` of the ``DotSpec``.
    groups : bool
        If True, the terms are exact sums of 16 products of FP4 numbers.
    """

    scale: str
    block: int
    k: int
    window: int
    floor: int
    groups: bool


#: The rules of Blackwell by the name of the instruction, and of its scales if it has several.
RULES = {
    "mxf8f6f4": BlockRule(scale="ue8m0", block=32, k=32, window=25, floor=-133, groups=False),
    "mxf4": BlockRule(scale="ue8m0", block=32, k=64, window=35, floor=-139, groups=True),
    "nvf4_ue8m0": BlockRule(scale="ue8m0", block=16, k=64, window=35, floor=-139, groups=True),
    "nvf4_ue4m3": BlockRule(scale="ue4m3", block=16, k=64, window=35, floor=-139, groups=True),
}


def block_spec(
    rule: str,
    input: FloatFormat | str | None = None,
    input_b: FloatFormat | str | None = None,
    *,
    k: int | None = None,
) -> DotSpec:
    """Return the arithmetic of a block-scaled instruction with FP32 results.

    Parameters
    ----------
    rule : str
        Key of ``RULES``.
    input, input_b : FloatFormat or str, optional
        Formats of A and of B. The first default is FP8 E4M3, or FP4 for a rule with groups; the
        second is ``input``.
    k : int, optional
        Number of terms, by default the instruction's. With groups it is a multiple of ``block``;
        otherwise all terms share one scale.

    Raises
    ------
    ValueError
        If a name is unknown, or if the rule does not allow the formats or K.
    """
    one_of("rule", rule, RULES)
    r = RULES[rule]
    a = as_format(input or (FP4 if r.groups else "fp8e4m3"), "input")
    b = as_format(input_b or a, "input_b")
    for format in (a, b):
        one_of("input", format.name, (FP4,) if r.groups else SMALL)
    k = r.k if k is None else k
    return dot_spec(
        input=a,
        input_b=b,
        output="fp32",
        k=k,
        window=r.window,
        truncate="magnitude",
        rounding="RZ",
        emax_floor=r.floor,
        nan=0x7FFFFFFF,
        zero="positive",
        lanes="sixteens" if r.groups else "together",
        scale=r.scale,
        block=r.block if r.groups else k,
    )
