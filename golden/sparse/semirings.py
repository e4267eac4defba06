"""The semirings of sparse products: those of SIMD², and one that selects rows."""

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2.op import Op, Semiring

#: ⊕ and ⊗ by the integer codes that the compiled loops use
PLUS = ("add", "min", "max", "or")
TIMES = ("mul", "add", "min", "max", "and", "right_if")

#: ``x ⊗ a`` is ``a`` if x is true and the identity otherwise, and ⊕ adds: the sum of the rows that
#: a vector selects. GraphBLAS calls ⊗ "assign right if left" (Zhang 2024, Table 4.2: "Aril-Add").
ARIL = Semiring(
    plus="add", times="right_if", identity=0.0, no_edge=0.0, row="k-means++ initialisation"
)

#: Every semiring of sparse products by its mnemonic. addnorm is left out, because it has no
#: annihilator: an element that is not stored would still contribute to its sums.
SEMIRINGS: dict[str, Semiring] = {op.mnemonic: op.value for op in Op if op.no_edge is not None} | {
    "aril": ARIL
}


def as_semiring(value: "Semiring | Op | str") -> Semiring:
    """Return a semiring by its mnemonic; a ``Semiring`` is returned unchanged.

    Raises
    ------
    ValueError
        If ``value`` is not the mnemonic of a semiring with an annihilator.
    """
    if isinstance(value, Semiring):
        if value not in SEMIRINGS.values():
            raise ValueError(f"semiring must have an annihilator, not {value!r}")
        return value
    name = value.mnemonic if isinstance(value, Op) else value
    return SEMIRINGS[one_of("semiring", name, SEMIRINGS)]
