"""Find out what an unknown matrix unit computes, from the results of chosen operands.

``cases`` makes operands that tell rules apart, ``name`` finds the rows of the table of machines
that return the same results, and ``infer`` finds the parameters of a rule that does. ``measure``
runs a function on such operands.
"""

from vitruvian.golden.machines.probe.cases import (
    KIT_VERSION,
    Cases,
    Results,
    cases,
    kept_terms,
    with_results,
)
from vitruvian.golden.machines.probe.equality import canonical, equal_rules
from vitruvian.golden.machines.probe.infer import Inferred, infer
from vitruvian.golden.machines.probe.machine_file import machine_file
from vitruvian.golden.machines.probe.measure import format_of, measure
from vitruvian.golden.machines.probe.naming import Match, name

__all__ = [
    "KIT_VERSION",
    "Cases",
    "Inferred",
    "Match",
    "Results",
    "canonical",
    "cases",
    "equal_rules",
    "format_of",
    "infer",
    "kept_terms",
    "machine_file",
    "measure",
    "name",
    "with_results",
]
