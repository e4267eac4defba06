"""Rules of the table of machines as C99 files without dependencies, for other emulators."""

from vitruvian.golden.fp.plain import sum_bits
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.c99 import general, integers, phases, plain, rdna
from vitruvian.golden.machines.c99.file import CSource, declaration, function_name, header
from vitruvian.golden.machines.spec import ChainSpec, IntPhaseSpec, PhaseSpec
from vitruvian.golden.machines.table import Machine

__all__ = ["CSource", "c_source", "declaration", "function_name"]

#: Bits that a sum may have in the short form of plain rules, which computes with int64_t.
_MOST_BITS = 60


def c_source(row: Machine) -> CSource:
    """Return the C99 header and source file of a row of the table of machines.

    The function computes one step: ``K`` products and C. A longer K is a chain of such steps.
    """
    rule = row.rule
    if isinstance(rule, IntDotSpec):
        text = integers.source(row, rule)
    elif isinstance(rule, IntPhaseSpec):
        text = integers.phase_source(row, rule)
    elif isinstance(rule, DotSpec):
        text = plain.source(row, rule) if _is_short(rule) else general.source(row, rule)
    elif isinstance(rule, ChainSpec):
        text = general.chain_source(row, rule)
    elif isinstance(rule, PhaseSpec):
        text = phases.source(row, rule)
    else:
        text = rdna.source(row, rule)
    return CSource(header(row), text)


def _is_short(spec: DotSpec) -> bool:
    """Return True for a tree of windowed terms in 64 bits, for which the file is short and fast."""
    others = [change for change in spec.changes if not change.startswith("scales=")]
    wide = sum_bits(spec, spec.k) >= _MOST_BITS
    return not (others or wide) and spec.output.has_infinity and spec.sum.lanes == "together"
