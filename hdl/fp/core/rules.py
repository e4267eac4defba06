"""The rules that ``hdl.fp.dot.DotProduct`` can realise."""

from operator import attrgetter

from vitruvian.golden.fp.formats import Specials
from vitruvian.golden.fp.spec import DotSpec

from .operands import form_of

# Part of a rule -> the values that the datapath has; it has every value of the others.
_REALISED = {
    "result.flush": (None, "after", "unbounded"),
    "addend.how": ("tree", "late", "after"),
    "sum.lanes": ("together", "halves"),
    "scales": (None,),
    "products.overflow": (False,),
}


def check_dot_rule(spec: DotSpec) -> None:
    """Check that a dot product can realise a rule.

    Raises
    ------
    ValueError
        If a part has a value that the datapath does not have, or if a format is FNUZ.
    """
    for name, values in _REALISED.items():
        value = attrgetter(name)(spec)
        if value not in values:
            allowed = " or ".join(repr(x) for x in values)
            raise ValueError(f"{name} must be {allowed} in hardware, not {value!r}")
    for format in (spec.input, spec.input_b, spec.output):
        if format.specials is Specials.FNUZ:
            raise ValueError(f"format must have a −0 in hardware, not be {format.name!r}")
    for format in (spec.input, spec.input_b):
        form_of(spec, format)
    if spec.sum.lanes == "halves" and spec.addend.how != "late":
        raise ValueError("addend.how must be 'late' in hardware with the lanes 'halves'")
    if spec.products.slices is not None and spec.products.exponent == "leading":
        raise ValueError("products.exponent must be 'sum' in hardware with slices, not 'leading'")
    late = spec.addend.how == "late"
    if late and (spec.flush or spec.result.flush is not None):
        raise ValueError("flush and result.flush must be off in hardware if C is added late")
    if spec.addend.how == "after" and (
        spec.sum.truncate != "magnitude" or spec.result.rounding != "RNE"
    ):
        raise ValueError("an exact addition of C must come with truncated magnitudes and RNE")
