"""Rules with several roundings in a row: C is added last, perhaps to a chain of two sums."""

from dataclasses import dataclass, replace

from vitruvian.golden.fp.spec import DotSpec

__all__ = ["LATE_PIPELINES", "LateStages", "sums_of"]


@dataclass(frozen=True, kw_only=True)
class LateStages:
    """The register ranks of a unit that adds C last.

    Attributes
    ----------
    sum : tuple of str
        The boundaries of the sum of the products that have registers, in their order.
    late : bool
        If True, there is a rank between the rounded sum and the addition of C.
    adder : int
        Number of ranks inside the adder.
    """

    sum: tuple[str, ...] = ()
    late: bool = True
    adder: int = 0

    @property
    def latency(self) -> int:
        """Number of ranks."""
        return len(self.sum) + self.late + self.adder


#: The ranks of a unit that adds C last, at each pipeline depth. The sum of the products is longer
#: than the addition of C, so it gets more of them.
LATE_PIPELINES: dict[int, LateStages] = {
    stages.latency: stages
    for stages in (
        LateStages(late=False),
        LateStages(),
        LateStages(sum=("sum",)),
        LateStages(sum=("product", "sum")),
        LateStages(sum=("product", "sum", "total")),
        LateStages(sum=("product", "sum", "total"), adder=1),
        LateStages(sum=("product", "sum", "total"), adder=2),
        LateStages(sum=("operand", "product", "sum", "total"), adder=2),
        LateStages(sum=("operand", "product", "sum", "total", "normalised"), adder=2),
    )
}


def sums_of(spec: DotSpec) -> list[DotSpec]:
    """Return the rules of the sums that a unit computes before it adds C.

    The first sum has no addend. Each following one, if there is one, adds the sum before it.

    Parameters
    ----------
    spec : DotSpec
        A rule with ``accumulate="late"``.
    """
    return [replace(spec, accumulate="tree")]
