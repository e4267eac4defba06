"""Tables and pictures of what the rules of machines lose and cost."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vitruvian.common.charts import rendered
from vitruvian.flows.pages.machines.costs import RuleCost
from vitruvian.golden.machines.accuracy import DISTRIBUTIONS, Errors, Listed
from vitruvian.golden.machines.summary import summary

Table = tuple[list[str], list[list[str]]]

_SHOWN = "normal"  # the distribution in the picture
_BAR, _MARK = "#31688e", "#e07b39"


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


def cost_table(entries: Sequence[tuple[Listed, RuleCost]]) -> Table:
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
                # A unit that takes several steps for its terms counts as often.
                each = area * cost.steps / cost.terms
                cells += [f"{area:.0f}", f"{each:.0f}", f"{delay / 1000:.2f}"]
        lines.append(cells)
    return header, lines


def chart(entries: Sequence[Accuracy]) -> str:
    """Return a bar chart as JSON text: mean errors as bars, and the worst ones as marks.

    It has the rules with FP32 results, and normal operands. A rule without any error has no bar.
    """
    shown = [entry for entry in entries if entry.listed.row.output == "fp32"]
    # In units in the last place; smaller means are drawn as this, because a logarithmic axis has no
    # zero.
    least = 0.01

    def draw(axes: list[Any]) -> None:
        for position, entry in enumerate(shown):
            e = entry.errors[_SHOWN]
            if e.mean_ulp > 0:
                axes[0].barh(position, max(e.mean_ulp, least), 0.7, color=_BAR, left=0)
                axes[0].plot([e.worst_ulp], [position], "|", color=_MARK, markersize=7)
        axes[0].set_xscale("log")
        axes[0].set_xlim(least, 1e8)
        axes[0].set_xlabel("error in units in the last place: mean (bar) and worst (mark)")

    return _bars([_label(entry.listed) for entry in shown], draw, panels=1)


def cost_chart(entries: Sequence[tuple[Listed, RuleCost]]) -> str:
    """Return two bar charts as JSON text: area per product and delay, at the first target.

    They have the rules with FP32 results, sorted by the area per product.
    """
    shown = [
        (cost.figures[0][1] * cost.steps / cost.terms, cost.figures[0][2] / 1000, listed)
        for listed, cost in entries
        if cost.figures and listed.row.output == "fp32"
    ]
    shown.sort(key=lambda each: each[0])

    def draw(axes: list[Any]) -> None:
        for position, (area, delay, _) in enumerate(shown):
            axes[0].barh(position, area, 0.7, color=_BAR)
            axes[1].barh(position, delay, 0.7, color=_MARK)
        axes[0].set_xlabel("area per product, µm²")
        axes[1].set_xlabel("delay without registers, ns")
        for each in axes:
            each.set_xscale("log")

    return _bars([_label(listed) for *_, listed in shown], draw, panels=2)


def _bars(labels: Sequence[str], draw: Callable[[list[Any]], None], *, panels: int) -> str:
    """Return a chart of horizontal bars with these labels, in panels that share the labels."""
    height = 1.2 + 0.19 * len(labels)

    def fill(figure: Any) -> None:
        left, gap = 0.44, 0.03
        width = (0.96 - left - gap * (panels - 1)) / panels
        axes = [
            figure.add_axes((left + n * (width + gap), 0.7 / height, width, 1 - 1.0 / height))
            for n in range(panels)
        ]
        draw(axes)
        for number, each in enumerate(axes):
            each.set_yticks(range(len(labels)), labels if number == 0 else [], fontsize=8)
            # The first row at the top.
            each.set_ylim(len(labels) - 0.4, -0.6)
            for side in ("top", "right"):
                each.spines[side].set_visible(False)

    return rendered(fill, 9, height, form="json", layout=None).decode()


def _label(listed: Listed) -> str:
    machines, instruction, formats = name_of(listed)
    many = machines.split(", ")
    few = ", ".join(many[:3]) + (" …" if len(many) > 3 else "")
    # The variant of a phased rule stands last; other rules are named after their first instruction.
    which = instruction.split(", ")[-1 if listed.row.kind == "phases" else 0].strip("–")
    return " ".join([few, *([which] if which else []), formats.split(" ")[0]])
