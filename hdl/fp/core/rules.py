"""The rules that ``hdl.fp.dot.DotProduct`` can realise."""

from vitruvian.golden.fp.formats import Specials
from vitruvian.golden.fp.spec import DotSpec

from .operands import form_of, form_of_addend

# Parameter -> the values that the datapath has; it has every value of the others.
_REALISED = {
    "flush_result": (None, "after", "unbounded"),
    "accumulate": ("tree", "late", "after"),
    "lanes": ("together", "halves"),
    "scale": (None,),
    "product_overflow": (False,),
}


def check_dot_rule(spec: DotSpec) -> None:
    """Check that a dot product can realise a rule.

    Raises
    ------
    ValueError
        If a parameter has a value that the datapath does not have, or if a format is FNUZ.
    """
    for name, values in _REALISED.items():
        value = getattr(spec, name)
        if value not in values:
            allowed = " or ".join(repr(x) for x in values)
            raise ValueError(f"{name} must be {allowed} in hardware, not {value!r}")
    for format in (spec.input, spec.input_b, spec.output):
        if format.specials is Specials.FNUZ:
            raise ValueError(f"format must have a −0 in hardware, not be {format.name!r}")
    for format in (spec.input, spec.input_b):
        form_of(spec, format)
    if spec.lanes == "halves" and spec.accumulate != "late":
        raise ValueError("accumulate must be 'late' in hardware with the lanes 'halves'")
    if spec.slices is not None and spec.product_exponent == "leading":
        raise ValueError("product_exponent must be 'sum' in hardware with slices, not 'leading'")
    late = spec.accumulate == "late"
    if late and (spec.flush or spec.flush_result is not None):
        raise ValueError("flush and flush_result must be off in hardware if C is added late")
    if spec.accumulate == "after" and (spec.truncate != "magnitude" or spec.rounding != "RNE"):
        raise ValueError("an exact addition of C must come with truncated magnitudes and RNE")
    form_of_addend(spec)
