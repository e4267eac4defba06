"""Generated parts of the pages about machines: tables of instructions and worked examples."""

import tomllib
from typing import Any

from vitruvian.common.validate import one_of
from vitruvian.flows.asic.report import markdown
from vitruvian.flows.pages.machines.datapath import datapath
from vitruvian.flows.pages.machines.phase_steps import phase_steps
from vitruvian.flows.pages.machines.sequences import chain_steps
from vitruvian.flows.pages.machines.steps import StepOperands, dot_steps
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import (
    ChainSpec,
    Machine,
    PhaseSpec,
    find,
    grouped,
    machines,
    missing,
    unknown,
)
from vitruvian.golden.machines.table import FOLDER

#: The first part of the file name of a datapath; the stem of a row follows.
PICTURE = "datapath_"


def instructions(names: str) -> str:
    """Return the table of all instructions of some machines.

    Parameters
    ----------
    names : str
        Machines as in the table, with commas between them.
    """
    rows = list(machines().values())
    chosen = names.split(",")
    known = dict.fromkeys(row.machine for row in (*rows, *missing().values()))
    for name in chosen:
        one_of("machine", name, known)
    records = grouped(row for name in chosen for row in rows if row.machine == name)
    # Instructions whose rule is not known are in the table, too.
    records += unknown(chosen)
    header = ["machine", "instruction", "formats", "result", "rule", "evidence"]
    cells = [[str(record[column]) for column in header] for record in records]
    return "\n" + markdown((header, cells)) + "\n"


def picture(name: str) -> str | None:
    """Return the SVG text of a picture by its file name, or None if it is no datapath."""
    if not name.startswith(PICTURE):
        return None
    return datapath(find(name.removeprefix(PICTURE).removesuffix(".svg")))


def examples() -> dict[str, tuple[StepOperands, int]]:
    """Return the operands and the result of every worked example, by the stem of its row."""
    text = (FOLDER.parent / "examples.toml").read_text(encoding="utf-8")
    return {
        entry["stem"]: (_operands(entry), entry["d"]) for entry in tomllib.loads(text)["example"]
    }


def _operands(entry: dict[str, Any]) -> StepOperands:
    """Return the operands of an example, whose file lists only those that are not zero."""
    a, b = ([0] * entry["k"] for _ in range(2))
    for codes, name in ((a, "a"), (b, "b")):
        # The keys of a TOML table are texts.
        for position, code in entry[name].items():
            codes[int(position)] = code
    scales = (tuple(entry.get(name, ())) for name in ("scale_a", "scale_b"))
    return StepOperands(tuple(a), tuple(b), entry.get("c", 0), *scales)


def work(row: Machine, operands: StepOperands) -> tuple[list[str], int]:
    """Return the lines of a worked dot product and the code of its result.

    Raises
    ------
    ValueError
        If the rule is one of integers, complex or paired products or RDNA, or if an operand is not
        finite.
    """
    rule = row.rule
    if isinstance(rule, DotSpec):
        return dot_steps(operands, rule)
    if isinstance(rule, ChainSpec) and not rule.complex and rule.products != "paired":
        return chain_steps(operands, rule)
    if isinstance(rule, PhaseSpec):
        return phase_steps(operands, rule)
    raise ValueError(f"{row.stem} must have a rule whose steps are shown, not {row.kind}")


def worked(stem: str) -> str:
    """Return the Markdown of the example of a row."""
    known = examples()
    operands, _ = known[one_of("example", stem, known)]
    lines, _ = work(find(stem), operands)
    text = "\n".join(["", *lines])
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip("\n") + "\n\n"
