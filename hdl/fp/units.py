"""The choice of the unit that realises a rule with block scales."""

from vitruvian.golden.fp.spec import DotSpec

from .groups import GroupDot
from .scaled import ScaledDot


def unit_of(spec: DotSpec) -> type[GroupDot] | type[ScaledDot]:
    """Return the class of the unit that realises a rule with block scales."""
    return GroupDot if spec.sum.lanes == "sixteens" else ScaledDot
