"""Find the machines of the table whose results are these."""

from dataclasses import dataclass

import numpy as np

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.probe.cases import Cases, Results
from vitruvian.golden.machines.probe.score import Scorer
from vitruvian.golden.machines.table import Machine, Rule, machines


@dataclass(frozen=True)
class Match:
    """A row of the table, and how well it explains the results.

    Attributes
    ----------
    machine : Machine
    wrong : int
        Rows with another value; codes of NaN do not count.
    first : int or None
        The first such row.
    """

    machine: Machine
    wrong: int
    first: int | None


def rows_of(data: Cases) -> list[Machine]:
    """Return the rows of the table with these formats and scales."""
    return [m for m in machines().values() if _fits(m, data)]


def candidates(data: Cases) -> list[Rule]:
    """Return the rules of these rows, without repetition."""
    return list(dict.fromkeys(m.rule for m in rows_of(data)))


def name(data: Results) -> list[Match]:
    """Return the rows of the table with the fewest wrong results.

    All rows with the same number are returned, because machines may share a rule. If no row
    explains every result, the closest ones are returned.
    """
    scorer = Scorer(data)
    found: list[Match] = []
    for machine in rows_of(data):
        wrong = scorer.differs(machine.rule)
        if not machine.zero_known:
            wrong &= ~scorer.zero_signs(machine.rule)
        first = int(np.flatnonzero(wrong)[0]) if wrong.any() else None
        found.append(Match(machine, int(wrong.sum()), first))
    least = min((match.wrong for match in found), default=0)
    return [match for match in found if match.wrong == least]


def _fits(machine: Machine, data: Cases) -> bool:
    """Return True if a row has the formats, the scales and a K that divides that of the data."""
    scales = machine.rule.scales if isinstance(machine.rule, DotSpec) else None
    scale, block = (None, None) if scales is None else (scales.format, scales.block)
    k = getattr(machine.rule, "k", None) or 1
    formats = (machine.input, machine.input_b, machine.output)
    # Some machines take tf32 operands as fp32 codes, which they round.
    rounded = machine.formats == data.input.name == data.input_b.name == "tf32"
    same = formats == (data.input, data.input_b, data.output.name)
    return (
        (same or (rounded and machine.output == data.output.name))
        and (scale, block) == (data.scale, data.block)
        and (data.terms % k == 0 or machine.kind == "integer")
    )
