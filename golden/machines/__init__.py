"""The arithmetic of real matrix units, as a table of rules, each computed to the bit.

A rule is a ``DotSpec`` (a windowed sum in some variation), a ``ChainSpec`` (rounded operations one
after the other), a ``PhaseSpec`` or ``IntPhaseSpec`` (Tenstorrent), an ``RdnaSpec`` or an
``IntDotSpec``.
"""

from vitruvian.golden.machines.arithmetic import Arithmetic
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.presets import PRESETS, Preset, parse_preset_name
from vitruvian.golden.machines.products import multiply
from vitruvian.golden.machines.run import compute, run
from vitruvian.golden.machines.spec import ChainSpec, RdnaSpec
from vitruvian.golden.machines.summary import grouped, summary, unknown
from vitruvian.golden.machines.table import (
    Machine,
    Missing,
    Rule,
    find,
    machine_name,
    machines,
    matching,
    missing,
    spec,
)

__all__ = [
    "PRESETS",
    "Preset",
    "parse_preset_name",
    "Arithmetic",
    "ChainSpec",
    "IntPhaseSpec",
    "Machine",
    "Missing",
    "PhaseSpec",
    "RdnaSpec",
    "Rule",
    "compute",
    "find",
    "grouped",
    "machine_name",
    "machines",
    "matching",
    "missing",
    "multiply",
    "run",
    "spec",
    "summary",
    "unknown",
]
