"""Random faults in the RTL of a core; programs must notice them.

    python -m tests.mutants.rtl --count 200 --seed 1 --csv build/core_mutants.csv

A mutant changes what one place in the sources of ``hdl.core`` says: an operator, a condition, a
constant, a multiplexer, an inversion, a bit of an assigned value, or an assignment that is dropped.
All mutants are in one compiled model, in which a port selects one. It is killed if a program leaves
other bytes, ends with another fault, does not end in three times its cycles, or counts other
cycles. The file equivalent.toml lists mutants that no program can notice, with reasons. The exit
code is 0 if at least 95 % of all others are killed.
"""

import argparse
import csv
import multiprocessing
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import design
from .draw import draw
from .programs import killers
from .schemata import Mutant
from .trial import SIGNS, Stand

GOAL = 0.95
_COLUMNS = ("file", "line", "change", "bit", "text", "result", "program")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    sign : str
        One of ``SIGNS``, "survived" or "equivalent".
    by : str
        The first program that showed it, or the reason.
    """

    sign: str
    by: str


def try_out(stand: Stand, number: int) -> Verdict:
    """Run programs until one shows a mutant by more than its cycles."""
    by = ""
    for n, killer in enumerate(stand.programs):
        sign = stand.sign(number, n)
        if sign in SIGNS[:2]:
            return Verdict(sign, killer.name)
        if sign and not by:
            by = killer.name
    return Verdict(SIGNS[2], by) if by else Verdict("survived", f"{len(stand.programs)} programs")


def campaign(stand: Stand, count: int, jobs: int) -> list[Verdict]:
    """Try mutants 1 to ``count``, each from the same state of the model's memories."""
    stand.measure()
    if jobs == 1 and count <= 16:
        return [try_out(stand, number) for number in range(1, count + 1)]
    global _stand
    _stand = stand
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        verdicts = []
        for number, verdict in enumerate(pool.imap(_one, range(1, count + 1), 1), start=1):
            verdicts.append(verdict)
            if verdict.sign not in SIGNS[:2]:
                print(f"  mutant {number}: {verdict.sign} ({verdict.by})", flush=True)
    return verdicts


_stand: Any = None


def _one(number: int) -> Verdict:
    return try_out(_stand, number)


def equivalent(mutant: Mutant, bit: int, known: Sequence[dict[str, Any]]) -> str | None:
    """Return the recorded reason why no program can notice a mutant, or None."""
    for entry in known:
        low, high = entry.get("bits", (0, mutant.width))
        same = entry["file"] == mutant.site.file and entry["text"] == mutant.site.text
        if same and entry["change"] == mutant.change and low <= bit <= high:
            return entry["reason"]
    return None


def _report(rows: Sequence[tuple[Mutant, int, Verdict]]) -> int:
    """Print the table by file, and each mutant that was not killed; return the exit code."""
    signs = (*SIGNS, "survived", "equivalent")
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, _, verdict in rows:
        table[mutant.site.file][verdict.sign] += 1
    total = sum(table.values(), Counter[str]())
    print(f"{'file':17}{'drawn':>7}" + "".join(f"{sign:>15}" for sign in signs))
    for file, counts in [*sorted(table.items()), ("all", total)]:
        cells = "".join(f"{counts[sign]:15}" for sign in signs)
        print(f"{file:17}{counts.total():7}{cells}")
    for mutant, bit, verdict in rows:
        if verdict.sign in signs[3:]:
            print(f"{verdict.sign}: {mutant} (bit {bit}): {verdict.by}")
    killed = sum(total[sign] for sign in SIGNS)
    mattering = total.total() - total["equivalent"]
    share = killed / mattering if mattering else 1.0
    print(f"{killed} of {mattering} that are not equivalent killed: {share:.1%}")
    print(f"{killed} of {total.total()} drawn killed: {killed / max(total.total(), 1):.1%}")
    return int(share < GOAL)


def main() -> int:
    """Run the sample and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.rtl", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--core",
        choices=("lines", "blocks", "least"),
        default="lines",
        help="Take this core, see ``design.campaign_core`` (default lines).",
    )
    parser.add_argument(
        "--count", type=int, default=200, metavar="N", help="Draw N mutants (default 200)."
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="Draw with this seed (default 1)."
    )
    parser.add_argument(
        "--programs",
        type=int,
        default=12,
        metavar="N",
        help="Run N random programs, half as many that overlap, and kernels (default 12).",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="Try N mutants at a time (default 1)."
    )
    parser.add_argument("--csv", metavar="FILE", help="Write the mutants to this file too.")
    options = parser.parse_args()
    began = time.monotonic()
    design.install()
    config = design.campaign_core(options.core)
    population = design.survey(config)
    drawn = draw(population, options.count, options.seed)
    count = len({mutant.site.file for mutant in population})
    print(f"{len(population):,} mutants of {count} files, {len(drawn)} drawn", flush=True)
    programs = list(killers(config, options.programs))
    stand = Stand(design.compiled(config, drawn), programs)
    verdicts = campaign(stand, len(drawn), options.jobs)
    known = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutant"]
    texts = {(site.file, site.text) for own in design.SCHEMATA.sites.values() for site in own}
    for entry in known:
        if (entry["file"], entry["text"]) not in texts:
            print(f"equivalent, but no longer in the sources: {entry['file']}: {entry['text']}")
    rows = []
    for (mutant, bit), verdict in zip(drawn, verdicts, strict=True):
        reason = equivalent(mutant, bit, known)
        if reason and verdict.sign != "survived":
            print(f"killed, but listed as equivalent: {mutant} ({verdict.by})")
            reason = None
        rows.append((mutant, bit, Verdict("equivalent", reason) if reason else verdict))
    if options.csv:
        with Path(options.csv).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_COLUMNS)
            for mutant, bit, verdict in rows:
                site = mutant.site
                shown = bit if mutant.change == "bit" else ""
                cells = (site.file, site.line, mutant.change, shown, site.text)
                writer.writerow((*cells, verdict.sign, verdict.by))
    code = _report(rows)
    print(f"{time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
