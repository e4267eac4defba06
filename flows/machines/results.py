"""Tables and a picture of what the rules of machines lose and cost."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vitruvian.flows.machines.costs import Cost
from vitruvian.golden.machines.accuracy import DISTRIBUTIONS, Errors, Listed
from vitruvian.golden.machines.summary import summary

__all__ = ["Accuracy", "accuracy_table", "chart", "cost_table", "name_of"]

Table = tuple[list[str], list[list[str]]]

_SHOWN = "normal"  # the distribution in the picture


@dataclass(frozen=True)
class Accuracy:
    """The errors of one rule.

    Attributes
    ----------
    listed : Listed
        The rows that have the rule.
    errors : dict of str to Errors
        Distribution -> errors.
    """

    listed: Listed
    errors: dict[str, Errors]

    def as_json(self) -> dict[str, Any]:
        """Return the errors as plain data."""
        return {
            "stem": self.listed.row.stem,
            "machines": list(self.listed.machines),
            "instructions": list(self.listed.instructions),
            "errors": {name: vars(each) for name, each in self.errors.items()},
        }


def name_of(listed: Listed) -> list[str]:
    """Return the cells of a table that name the rows: machines, instructions, formats."""
    row = listed.row
    formats = f"{row.formats} → {row.output}" if row.formats else row.output
    variant = row.stem.rsplit("_", 1)[-1]
    instructions = ", ".join(name for name in listed.instructions if name) or "–"
    if row.kind == "phases":
        instructions += f", {variant}"
    return [", ".join(listed.machines), instructions, formats]


def accuracy_table(entries: Iterable[Accuracy], *, relative: bool) -> Table:
    """Return header and lines: the mean and the worst error in every distribution.

    Parameters
    ----------
    entries : iterable of Accuracy
    relative : bool
        If True, show relative errors, otherwise units in the last place.
    """
    header = ["machine", "instruction", "formats", "rule"]
    header += [f"{name}, {what}" for name in DISTRIBUTIONS for what in ("mean", "worst")]
    lines: list[list[str]] = []
    for entry in entries:
        cells = [*name_of(entry.listed), summary(entry.listed.row.rule)]
        for name in DISTRIBUTIONS:
            e = entry.errors[name]
            pair = (e.mean_relative, e.worst_relative) if relative else (e.mean_ulp, e.worst_ulp)
            cells += [_short(value) for value in pair]
        lines.append(cells)
    return header, lines


def _short(value: float) -> str:
    """Return a number with two digits."""
    if value == 0:
        return "0"
    if 0.01 <= value < 1000:
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def cost_table(entries: Sequence[tuple[Listed, Cost]]) -> Table:
    """Return header and lines: area and delay of the unit of every rule, or the word "no RTL"."""
    targets = next((cost.figures for _, cost in entries if cost.figures), ())
    header = ["machine", "instruction", "formats", "rule", "unit", "K"]
    for target, *_ in targets:
        header += [f"µm² @{target}", "µm²/MAC", "ns"]
    lines: list[list[str]] = []
    for listed, cost in entries:
        cells = [*name_of(listed), summary(listed.row.rule)]
        if not cost.unit:
            cells += ["no RTL", *[""] * (len(header) - len(cells) - 1)]
        else:
            several = f" in {cost.steps} steps" if cost.steps > 1 else ""
            cells += [cost.unit, f"{cost.terms}{several}"]
            for _, area, delay in cost.figures:
                each = area * cost.steps / cost.terms
                cells += [f"{area:.0f}", f"{each:.0f}", f"{delay / 1000:.2f}"]
        lines.append(cells)
    return header, lines


def chart(entries: Sequence[Accuracy]) -> str:
    """Return the SVG text of a bar chart: mean errors as bars, and the worst ones as marks.

    It has the rules with FP32 results, and normal operands. A rule without any error has no bar.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    shown = [entry for entry in entries if entry.listed.row.output == "fp32"]
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "machines",
        "font.family": "sans-serif",
    }
    with matplotlib.rc_context(settings):
        height = 1.2 + 0.19 * len(shown)
        figure = Figure(figsize=(9.0, height))
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0.44, 0.7 / height, 0.52, 1 - 1.0 / height))
        least = 0.01
        for position, entry in enumerate(shown):
            e = entry.errors[_SHOWN]
            if e.mean_ulp > 0:
                axes.barh(position, max(e.mean_ulp, least), 0.7, color="#31688e", left=0)
                axes.plot([e.worst_ulp], [position], "|", color="#e07b39", markersize=7)
        labels = [_label(entry.listed) for entry in shown]
        axes.set_yticks(range(len(shown)), labels, fontsize=7)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xscale("log")
        axes.set_xlim(least, 1e8)
        axes.set_xlabel("error in units in the last place: mean (bar) and worst (mark)")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        text = io.StringIO()
        no_dates: Any = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", metadata=no_dates)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _label(listed: Listed) -> str:
    machines, instruction, formats = name_of(listed)
    many = machines.split(", ")
    few = ", ".join(many[:3]) + (" …" if len(many) > 3 else "")
    # The variant of a phased rule stands last; other rules are named after their first instruction.
    which = instruction.split(", ")[-1 if listed.row.kind == "phases" else 0].strip("–")
    return " ".join([few, *([which] if which else []), formats.split(" ")[0]])
