"""Measure a standard set of figures, compare it with the last record, and print what changed.

    python benchmarks/dashboard.py
    python benchmarks/dashboard.py --only area power
    python benchmarks/dashboard.py --record

Area, delay and power are those of the built-in library, which every machine has, and depend on the
RTL and on the tools' versions alone. Speeds depend on the machine too: a change of less than
``NOISE`` is none, and those of two machines say little. ``--record`` appends the figures to
``docs/results/data/dashboard.csv`` with the date and the commit.
"""

import argparse
import csv
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from vitruvian.cli import main as command

HISTORY = Path(__file__).parent.parent / "docs" / "results" / "data" / "dashboard.csv"
COLUMNS = ("date", "commit", "figure", "value", "unit")
#: Changes of a speed and of another figure that count as none.
NOISE, EXACT = 0.15, 0.0005
#: Seconds in which a speed is measured; the fastest run counts.
_SECONDS = 2.0


@dataclass(frozen=True)
class Figure:
    """A measured number.

    Attributes
    ----------
    name, unit : str
    value : float
    rises : bool
        True if more is better: a speed.
    """

    name: str
    value: float
    unit: str
    rises: bool = False

    @property
    def noise(self) -> float:
        """The relative change that counts as none."""
        return NOISE if self.rises else EXACT

    def change(self, before: float) -> float:
        """Return the relative change from an earlier value; 0 within the noise."""
        relative = self.value / before - 1 if before else 0.0
        return 0.0 if abs(relative) <= self.noise else relative

    def verdict(self, before: float | None) -> str:
        """Return the change from an earlier value in words."""
        if before is None:
            return "new"
        change = self.change(before)
        if not change:
            return "unchanged"
        moved = "rose" if change > 0 else "fell"
        return f"{moved} {abs(change):.1%}, {'better' if (change > 0) == self.rises else 'worse'}"


def _rows(*arguments: str) -> list[dict]:
    """Return the rows that a command gives as JSON."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        file = Path(folder) / "rows.json"
        code = command([*arguments, "--json", str(file)])
        if code:
            raise SystemExit(f"vitruvian {' '.join(arguments)} ended with {code}")
        return json.loads(file.read_text())["rows"]


def area() -> Iterator[Figure]:
    """Yield area and delay of dot products at the tight target."""
    for words in (
        ("dot", "--preset", "a100", "--k", "8", "--pipeline", "0,3"),
        ("intdot", "--k", "16", "--pipeline", "0"),
    ):
        for row in _rows("area", *words):
            target = row["targets"][min(row["targets"], key=int)]
            name = f"{row['unit']} {row['label']}"
            yield Figure(f"area of {name}", target["area_um2_per_mac"], "µm² a MAC")
            yield Figure(f"delay of {name}", round(target["delay_ps"] / 1000, 3), "ns")


def power() -> Iterator[Figure]:
    """Yield energy and glitches of dot products with operands of which every code is as likely."""
    for words in (
        ("dot", "--preset", "a100", "--k", "8", "--pipeline", "3"),
        ("intdot", "--k", "16", "--pipeline", "1"),
    ):
        for row in _rows("power", *words, "--stimulus", "uniform"):
            name = f"{row['unit']} {row['label']}"
            yield Figure(f"energy of {name}", round(row["pj_per_mac"], 3), "pJ a MAC")
            yield Figure(f"glitches of {name}", round(100 * row["glitch_share"], 1), "%")


def _rate(run: Callable[[], float]) -> float:
    """Return the most units of work a second; ``run`` returns how many it did."""
    best, spent = 0.0, 0.0
    run()  # compiles
    while spent < _SECONDS:
        started = time.perf_counter()
        count = run()
        elapsed = time.perf_counter() - started
        best, spent = max(best, count / elapsed), spent + elapsed
    return best


def models() -> Iterator[Figure]:
    """Yield the speed of the compiled RTL of a dot product and of the core ``tiny``."""
    from vitruvian.golden.machines.presets import PRESETS
    from vitruvian.hdl.fp.dot import DotProduct
    from vitruvian.sim import rtl
    from vitruvian.sim.bench.fp.stimuli import dot_vectors
    from vitruvian.sim.davinci.machine_code.chip import core_chip
    from vitruvian.sim.davinci.machine_code.core import run_on_core
    from vitruvian.sim.kernels import KERNELS

    spec = PRESETS["a100"].spec("fp16", "fp32", k=8)
    model = rtl.compile(DotProduct(spec=spec, pipeline=3))
    a, b, c = dot_vectors(spec, 400_000, seed=1)

    def vectors() -> float:
        model.run(a=a, b=b, c=c)
        return len(a) / 1e6

    yield Figure("compiled dot product", round(_rate(vectors), 3), "M vectors/s", True)
    program = KERNELS["matmul"].build((128, 128, 128), chip=core_chip("tiny"), cores=1).program
    cycles = _rate(lambda: run_on_core(program, "tiny").run.cycles / 1e3)
    yield Figure("compiled core tiny", round(cycles, 1), "k cycles/s", True)


def engine() -> Iterator[Figure]:
    """Yield the speed of the event engine on tiled products."""
    from benchmarks.davinci_engine import tile_loop
    from vitruvian.sim.davinci.timing import engine as timing
    from vitruvian.sim.davinci.timing.lowering import lower

    program = tile_loop(2, 5000)
    lowered, _ = lower(program)
    count = sum(len(core.instructions) for core in program) / 1e6

    def run() -> float:
        timing.run(lowered)
        return count

    yield Figure("event engine", round(_rate(run), 2), "M instructions/s", True)


def golden() -> Iterator[Figure]:
    """Yield the speed of golden products on one core."""
    from vitruvian import gemm

    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((512, 512)).astype(np.float16) for _ in "ab")
    for machine in ("a100", "h100", "mi300x"):

        def run(machine: str = machine) -> float:
            gemm(a, b, machine=machine, threads=1)
            return 512**3 / 1e6

        yield Figure(f"golden products of {machine}", round(_rate(run)), "M MAC/s", True)


#: Groups of figures by the word that ``--only`` takes.
GROUPS: dict[str, Callable[[], Iterator[Figure]]] = {
    "area": area,
    "power": power,
    "models": models,
    "engine": engine,
    "golden": golden,
}


def last(history: Path = HISTORY) -> dict[str, float]:
    """Return the last recorded value of each figure."""
    if not history.exists():
        return {}
    with history.open(encoding="utf-8", newline="") as file:
        return {row["figure"]: float(row["value"]) for row in csv.DictReader(file)}


def record(figures: Sequence[Figure], history: Path = HISTORY) -> None:
    """Append figures to the history with the date and the commit of the checkout."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=8"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    commit = described.stdout.strip() or "unknown"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    new = not history.exists()
    with history.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerows([today, commit, f.name, f"{f.value:g}", f.unit] for f in figures)


def show(figures: Sequence[Figure], before: dict[str, float]) -> None:
    """Print a row for each figure, and how many became better or worse."""
    table = Table()
    for name in ("figure", "now", "before", "unit", "change"):
        table.add_column(name, justify="right" if name in ("now", "before") else "left")
    verdicts = []
    for figure in figures:
        earlier = before.get(figure.name)
        verdicts.append(figure.verdict(earlier))
        shown = "" if earlier is None else f"{earlier:g}"
        table.add_row(figure.name, f"{figure.value:g}", shown, figure.unit, verdicts[-1])
    Console().print(table)
    counts = {word: sum(v.endswith(word) for v in verdicts) for word in ("better", "worse")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the groups that the arguments name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP",
        help=f"Measure these groups: {', '.join(GROUPS)} (default: all).",
    )  # fmt: skip
    parser.add_argument("--record", action="store_true", help="Append the figures to the history.")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    for group in options.only:
        print(f"measuring {group}", file=sys.stderr, flush=True)
        figures += GROUPS[group]()
    show(figures, last())
    if options.record:
        record(figures)


if __name__ == "__main__":
    main()
