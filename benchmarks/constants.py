"""Print and draw docs/results/constants.md: published figures under other constants of the chips.

python benchmarks/constants.py [--out docs/results]              # from the values of the last run
python benchmarks/constants.py --measure [--out docs/results]    # half an hour

The values of a run are in benchmarks/papers/constants/values.json.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Collection, Mapping
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.constants.figures import FIGURES, Setting, classes, compute
from benchmarks.papers.constants.readings import memory, pipelined, totals
from vitruvian.common.charts import write_figure
from vitruvian.common.files import write_whole

VALUES = Path(__file__).parent / "papers" / "constants" / "values.json"

#: Settings whose figures are in the tables, with the groups of figures that they may change.
GROUPS_310 = ("searches", "selection", "pruned", "cubefx", "products", "cases 310")
GROUPS_910 = ("cases 910", "pooling")
SETTINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "base": ("", (*GROUPS_310, *GROUPS_910, "batches")),
    "P": ("P", (*GROUPS_310, "batches")),
    "G": ("G", GROUPS_910),
    "C": ("PGC", ("cubefx",)),
    "S": ("PGS", ("selection", "pruned", "batches")),
    "T": ("PGT", ("searches",)),
    "M": ("PGM", ("pooling",)),
}

#: The figures that chose the constants of each reading; all others are predicted.
CHOSE = {
    "P": ("avgpool.baseline.U", "avgpool.baseline.R"),
    "B": tuple(key for key in FIGURES if key.startswith("add_relu")),
    "G": tuple(key for key in FIGURES if key.startswith("pool")),
}

#: The constants that were tried for each reading.
STARTS, DRAINS = (2, 4, 6.2, 8, 12), (0, 20, 40, 60)
TOTALS = ((24, 36, 40, 42), (21, 42, 42, 42), (21, 40, 41, 42), (20, 38, 40, 42))
PATHS = (94, 75, 64, 56, 50, 45, 40, 37.5)

Numbers = Mapping[str, float]


def factor(key: str, value: float) -> float:
    """Return how many times a figure is too large or too small."""
    ratio = value / FIGURES[key].published
    return max(ratio, 1 / ratio)


def mean_factor(values: Numbers, keys: Collection[str]) -> float:
    """Return the geometric mean of the factors of some figures, of those that there are."""
    return exp(float(np.mean([log(factor(k, values[k])) for k in keys if k in values])))


def of(paper: str, chip: str = "310", but: Collection[str] = ()) -> list[str]:
    """Return the figures of a paper and a chip, without some."""
    return [k for k, f in FIGURES.items() if (f.paper, f.chip) == (paper, chip) and k not in but]


def grids() -> dict[str, dict[str, Any]]:
    """Return the figures under each constant that was tried."""
    few = ("searches", "cubefx", "cases 310")
    tries = {
        "start": {str(n): ("P", "ascend310", pipelined(n), few) for n in STARTS},
        "drain": {str(n): ("P", "ascend310", pipelined(6.2, n), few[1:]) for n in DRAINS},
        "totals": {
            ", ".join(map(str, n)): ("PB", "ascend310", totals(*n), (*few, "products"))
            for n in TOTALS
        },
        "path": {str(n): ("G", "ascend910", memory(n), GROUPS_910) for n in PATHS},
    }
    found: dict[str, dict[str, Any]] = {}
    for name, rows in tries.items():
        for key, (readings, chip, values, groups) in rows.items():
            setting = Setting(frozenset(readings), {chip: values})
            row: dict[str, Any] = dict(compute(setting, groups))
            if name == "path":
                row["class"] = classes(setting, ("matmul",))["matmul"]
            found.setdefault(name, {})[key] = row
            print(f"{name} {key}", flush=True)
    return found


def measure() -> dict[str, Any]:
    """Compute all figures, write them as JSON, and return them."""
    values: dict[str, Any] = {}
    for name, (readings, groups) in SETTINGS.items():
        values[name] = compute(Setting(frozenset(readings)), groups)
        print(f"{name}: {len(values[name])} figures", flush=True)
    everything = {"settings": values, "grids": grids()}
    rounded = json.loads(json.dumps(everything), parse_float=lambda text: round(float(text), 5))
    write_whole(VALUES, json.dumps(rounded, indent=0, sort_keys=True) + "\n")
    return rounded


class Tables:
    """The tables of the page, from the values of a run."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.settings, self.grids = values["settings"], values["grids"]
        self.base: Numbers = self.settings["base"]
        # Adopted: P and G, which change the figures of different chips.
        self.now: Numbers = self.base | self.settings["P"] | self.settings["G"]
        # The baselines that are the published ones change some of them.
        self.stated: Numbers = self.now | self.settings["C"] | self.settings["S"]
        self.stated = self.stated | self.settings["M"]
        self.fitted = {*CHOSE["P"], *CHOSE["G"]}
        self.starts = {
            paper: self.best("start", [k for k in of(paper) if k not in ("fullload",)])
            for paper in ("Tang", "Zhou")
        }
        self.paths = {p: self.best("path", of(p, "910")) for p in ("Zhou", "Rohwedder")}

    def best(self, grid: str, keys: Collection[str]) -> str:
        """Return the constant of a grid with the least mean factor of some figures."""
        rows = self.grids[grid]
        return min(rows, key=lambda value: mean_factor(rows[value], keys))

    def left_out(self, key: str) -> float | None:
        """Return a figure under constants that are chosen without its paper."""
        figure = FIGURES[key]
        if figure.chip == "910":
            other = "Zhou" if figure.paper == "Rohwedder" else "Rohwedder"
            return self.grids["path"][self.paths[other]].get(key)
        if figure.paper == "Zhou":
            return self.grids["start"][self.starts["Tang"]].get(key)
        return self.now.get(key) if self.starts["Zhou"] == "6.2" else None

    def figures(self) -> list[list[str]]:
        """Return the table of all figures."""
        rows = [["#", "paper, chip", "figure", "published", "base", "now", "left out", "role"]]
        for number, (key, figure) in enumerate(FIGURES.items(), 1):
            role = "fitted" if key in self.fitted else "predicted"
            cells = [self.base[key], self.now[key], self.left_out(key)]
            rows.append(
                [
                    str(number),
                    f"{figure.paper}, {figure.chip}",
                    figure.text,
                    *(_number(v, figure.share) for v in (figure.published, *cells)),
                    role,
                ]
            )
        return rows

    def counts(self) -> list[list[str]]:
        """Return how many figures of the 310 are within 20 %, and the mean factors."""
        every = [k for k, f in FIGURES.items() if f.chip == "310"]
        sets = {
            "all": every,
            "without utilisations": [k for k in every if not FIGURES[k].share],
            "predicted": [k for k in every if k not in self.fitted],
        }
        rows = [["figures of the 310", "number", *(f"{n}, within 20 % (factor)" for n in _COLUMNS)]]
        for name, keys in sets.items():
            row = [name, str(len(keys))]
            for values in (self.base, self.now, self.stated):
                near = sum(abs(values[k] / FIGURES[k].published - 1) <= 0.2 for k in keys)
                row.append(f"{near} ({mean_factor(values, keys):.2f})")
            rows.append(row)
        return rows

    def holdout(self) -> list[list[str]]:
        """Return the mean factors of choosing and of predicted figures for each constant."""
        start, path, totals_ = (self.grids[name] for name in ("start", "path", "totals"))
        zhou, tang = of("Zhou"), of("Tang")
        some = [
            ("P", "start", "Zhou", self.starts["Zhou"], zhou, tang, start, self.base),
            ("P", "start", "Tang", self.starts["Tang"], tang, zhou, start, self.base),
            ("G", "path", "Rohwedder", self.paths["Rohwedder"], of("Rohwedder", "910"))
            + (of("Zhou", "910"), path, self.base),
            ("G", "path", "Zhou", self.paths["Zhou"], of("Zhou", "910"), of("Rohwedder", "910"))
            + (path, self.base),
        ]
        add = CHOSE["B"]
        least = self.best("totals", add)
        before = totals_["24, 36, 40, 42"]
        some += [
            (
                "B",
                "totals",
                "Zhou, Add_ReLU",
                name,
                add,
                [*of("Zhou", but=add), *tang],
                totals_,
                before,
            )
            for name in ("21, 42, 42, 42", least)
        ]
        rows = [["reading", "constant", "chosen by", "value", "choosing: base", "chosen"]]
        rows[0] += ["predicted: base", "chosen"]
        for reading, what, who, value, mine, others, grid, base in some:
            # Only figures that all settings have.
            have = [[k for k in keys if k in grid[value]] for keys in (mine, others)]
            cells = [mean_factor(v, keys) for keys in have for v in (base, grid[value])]
            rows.append([reading, what, who, value, *(f"{c:.3f}" for c in cells)])
        return rows

    def baselines(self) -> list[list[str]]:
        """Return the figures that the kernels of the comparison change."""
        rows = [["reading", "figure", "published", "our kernel", "published kernel"]]
        for reading in "CSTM":
            for key, value in self.settings[reading].items():
                before = self.now.get(key)
                if key in FIGURES and before is not None and abs(value / before - 1) > 0.002:
                    figure = FIGURES[key]
                    cells = (figure.published, before, value)
                    rows.append([reading, figure.text, *(_number(c, figure.share) for c in cells)])
        return rows

    def draw(self, path: Path) -> None:
        """Draw the errors of all figures, before and now."""

        def fill(figure: Any) -> None:
            panels = figure.subplots(1, 2)
            for axes, tang in zip(panels, (True, False), strict=True):
                keys = [k for k, f in FIGURES.items() if (f.paper == "Tang") == tang]
                numbers = [list(FIGURES).index(k) + 1 for k in keys]
                for values, label, colour in (
                    (self.base, "base", "#c9c9c9"),
                    (self.now, "now", "#31688e"),
                ):
                    ratios = [values[k] / FIGURES[k].published for k in keys]
                    axes.plot(numbers, ratios, "o", markersize=4, color=colour, label=label)
                for line in (0.8, 1, 1.2):
                    axes.axhline(line, color="#999999", linewidth=0.8)
                axes.set_yscale("log")
                axes.yaxis.set_minor_formatter("")
                ticks = [0.01, 0.03, 0.1, 0.3, 1, 3, 10] if tang else [0.25, 0.5, 1, 2, 4]
                axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.set_xlabel("number in the table")
                axes.set_ylabel("ours / published")
                axes.set_title("Tang 2024" if tang else "Zhou et al. 2025, Rohwedder 2021")
                axes.legend()

        write_figure(path, fill, 10, 3.6)


_COLUMNS = ("base", "now", "published kernels")


def _number(value: float | None, share: bool) -> str:
    if value is None:
        return ""
    return f"{100 * value:.1f} %" if share else f"{value:.3g}" if value < 0.995 else f"{value:.2f}"


def markdown(rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parts(tables: Tables) -> dict[str, list[list[str]]]:
    """Return the tables of the page by the names of their files."""
    return {
        "counts": tables.counts(),
        "holdout": tables.holdout(),
        "baselines": tables.baselines(),
        "figures": tables.figures(),
    }


def write(tables: Tables, folder: Path) -> None:
    """Write the tables and the chart of the page into a folder."""
    for name, rows in parts(tables).items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_whole(folder / "data" / f"constants_{name}.csv", text.getvalue())
    tables.draw(folder / "constants_errors.json")


def main() -> int:
    """Print the tables, and write them if a folder is given."""
    parser = argparse.ArgumentParser(description="Published figures under other constants.")
    parser.add_argument("--out", type=Path, help="folder of the page, its table and its chart")
    parser.add_argument("--measure", action="store_true", help="compute all figures again")
    options = parser.parse_args()
    values = measure() if options.measure else json.loads(VALUES.read_text(encoding="utf-8"))
    tables = Tables(values)
    for rows in parts(tables).values():
        print(markdown(rows))
    if options.out:
        write(tables, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
