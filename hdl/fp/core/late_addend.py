"""Rules with several roundings in a row: C is added last, perhaps to a chain of two sums."""

from dataclasses import dataclass

from vitruvian.golden.fp.spec import DotSpec


@dataclass(frozen=True, kw_only=True)
class LateStages:
    """The register ranks of a unit that adds C last.

    Attributes
    ----------
    boundaries : tuple of str
        The boundaries of a sum of products that have registers, in their order. The last one may
        be ``rounded``, behind the sum's rounding.
    adder : int
        Number of ranks inside the adder.
    """

    boundaries: tuple[str, ...] = ()
    adder: int = 0


# The boundaries with registers, by their number. The sum of the products is longer than the
# addition of C, so it gets more ranks.
_BOUNDARIES = (
    (),
    ("rounded",),
    ("sum", "rounded"),
    ("product", "sum", "rounded"),
    ("product", "sum", "total", "rounded"),
    ("operand", "product", "sum", "total", "rounded"),
    ("operand", "product", "sum", "total", "normalised", "rounded"),
)
_CHOICES = (
    *(LateStages(boundaries=names) for names in _BOUNDARIES[:5]),
    *(LateStages(boundaries=names, adder=1) for names in _BOUNDARIES[:5]),
    *(LateStages(boundaries=names, adder=2) for names in _BOUNDARIES[4:]),
)


def late_pipelines(spec: DotSpec) -> dict[int, LateStages]:
    """Return the register ranks of a unit that adds C last, at each possible pipeline depth.

    Parameters
    ----------
    spec : DotSpec
        A rule with ``accumulate="late"``.
    """
    sums = len(sums_of(spec))
    depths: dict[int, LateStages] = {}
    for stages in _CHOICES:
        # The first choice of a depth has the fewest ranks in the adder, which is the shorter part.
        depths.setdefault(sums * len(stages.boundaries) + stages.adder, stages)
    return depths


def sums_of(spec: DotSpec) -> list[tuple[DotSpec, tuple[int, ...]]]:
    """Return the sums that a unit computes before it adds C, each with its rule and its terms.

    The first sum has no addend. Each following one adds the sum before it.

    Parameters
    ----------
    spec : DotSpec
        A rule with ``accumulate="late"``.
    """
    terms = tuple(range(spec.k))
    groups = [terms]
    if spec.sum.lanes == "halves":
        # "halves": the first two of every four terms are one sum, and the last two the next one.
        groups = [tuple(k for k in terms if (k % 4 < 2) == first) for first in (True, False)]
    return [
        (spec.replace(accumulate="tree", lanes="together", k=len(group)), group)
        for group in groups
        if group
    ]


def exact_window(spec: DotSpec) -> int | None:
    """Return a window with which the sum of one or two products is correctly rounded, or None.

    The window is for floor truncation with a sticky bit and RNE. Let f be the fraction bits of a
    product, g those of an operand, h those of the result, and q = 2^(E_max − F) the unit.

    The product P of E_max is not truncated, as F ≥ f. If the other product is truncated, it has a
    smaller exponent, so the operands of P are not both subnormal, and |P| ≥ 2^(E_max − g). The
    other is then below 2^(E_max − F + f + 1), which F ≥ f + g + 2 makes at most |P| / 2. So the sum
    is at least 2^(E_max − g − 1), and with F ≥ g + h + 2 its last place is at least 2q: the tie is
    a multiple of q, and the sticky bit tells on which side of it the sum lies.

    Parameters
    ----------
    spec : DotSpec
        A rule without a window.
    """
    if spec.addend.how != "late" or spec.k > 2 or spec.result.rounding != "RNE" or spec.a.convert:
        return None
    a, b = spec.input.fraction_bits, spec.input_b.fraction_bits
    return max(a, b) + 2 + max(a + b, spec.output.fraction_bits)
