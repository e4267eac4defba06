"""``make mutants``: change golden, sim, flows and vitruvian at random; the tests must notice.

    python -m tests.mutants --count 200 --seed 1 --jobs 2

Every mutant is one small change (``operators``). In a copy of the tree under build/mutants, the
test files nearest to it (``nearest``) run until one fails. The file equivalent.toml lists mutants
that no test can notice because the meaning of the program does not change, with the reasons. The
exit code is 0 if at least 95 % of all others are killed.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import threading
import time
import tomllib
from collections import Counter
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue

from tests.mutants.operators import Mutant, mutants
from tests.mutants.trial import Copy, Verdict

ROOT = Path(__file__).parents[2]
PACKAGES = ("golden", "sim", "flows", "vitruvian")
GOAL = 0.95


def every_mutant(root: Path = ROOT) -> list[Mutant]:
    """Return every mutant of golden, sim, flows and vitruvian."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return [m for p in paths for m in mutants(str(p.relative_to(root)), p.read_bytes())]


def sample(population: list[Mutant], count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """Draw ``count`` mutants that compile, or all if there are fewer."""
    order = list(population)
    random.Random(seed).shuffle(order)
    drawn = (m for m in order if m.compiles((root / m.path).read_bytes()))
    return list(islice(drawn, count))


def identity(mutant: Mutant, root: Path = ROOT) -> str:
    """Return a name of the mutant that is stable while its file does not change."""
    content = (root / mutant.path).read_bytes()
    text = f"{mutant.path}:{mutant.start}:{mutant.end}:{mutant.text}:".encode() + content
    return hashlib.sha256(text).hexdigest()[:16]


def equivalent(mutant: Mutant, known: list[dict[str, str]], root: Path = ROOT) -> str | None:
    """Return the recorded reason why no test can notice the mutant, or None."""
    line = (root / mutant.path).read_text().splitlines()[mutant.line - 1].strip()
    for entry in known:
        if entry["file"] == mutant.path and entry["line"] == line:
            if entry["change"] == mutant.change:
                return entry["reason"]
    return None


def main() -> int:
    """Run the sample and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=200, help="mutants to draw (200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried at a time (all cores)"
    )
    parser.add_argument("--only", default="", help="draw from files whose path begins so")
    parser.add_argument("--budget", type=float, default=600, help="CPU seconds for a mutant (600)")
    parser.add_argument("--limit", type=float, default=240, help="CPU seconds for one test (240)")
    parser.add_argument("--again", action="store_true", help="try undecided and survivors again")
    options = parser.parse_args()
    drawn = [m for m in every_mutant() if m.path.startswith(options.only)]
    print(f"{len(drawn):,} mutants of {', '.join(PACKAGES)}; {options.count} drawn", flush=True)
    drawn = sample(drawn, options.count, options.seed)
    folder = ROOT / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "results.json"
    results: dict[str, dict] = json.loads(record.read_text()) if record.exists() else {}
    known = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutant"]
    waiting: SimpleQueue[Mutant] = SimpleQueue()
    for mutant in drawn:
        state = results.get(identity(mutant), {}).get("state")
        if state is None or (options.again and state != "killed"):
            if equivalent(mutant, known) is None:
                waiting.put(mutant)
    lock = threading.Lock()
    begin = time.monotonic()

    def work(number: int) -> None:
        copy = Copy(ROOT, folder / str(number))
        while True:
            try:
                mutant = waiting.get_nowait()
            except Empty:
                return
            verdict = copy.try_out(mutant, budget=options.budget, limit=options.limit)
            with lock:
                results[identity(mutant)] = asdict(mutant) | asdict(verdict)
                record.write_text(json.dumps(results, indent=1))
                spent = time.monotonic() - begin
                print(
                    f"{spent:6.0f} s  {verdict.state:9}  {mutant.path}:{mutant.line}  "
                    f"{mutant.change}  ({verdict.by})",
                    flush=True,
                )

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)
    return _report(drawn, results, known)


def _report(drawn: list[Mutant], results: dict[str, dict], known: list[dict[str, str]]) -> int:
    """Print the table and every mutant that was not killed; return the exit code."""
    table: dict[str, Counter] = {package: Counter() for package in PACKAGES}
    lines = []
    for mutant in drawn:
        reason = equivalent(mutant, known)
        row = results.get(identity(mutant), asdict(Verdict("undecided", "not tried", 0)))
        state = "equivalent" if reason else row["state"]
        table[mutant.path.split("/")[0]][state] += 1
        if state in ("survived", "undecided"):
            lines.append(f"{state}: {mutant.path}:{mutant.line}  {mutant.change}  ({row['by']})")
        elif reason:
            lines.append(f"equivalent: {mutant.path}:{mutant.line}  {mutant.change}  ({reason})")
    states = ("killed", "survived", "undecided", "equivalent")
    print(f"{'package':10}" + "".join(f"{state:>12}" for state in states))
    for package, counts in [*table.items(), ("all", sum(table.values(), Counter()))]:
        print(f"{package:10}" + "".join(f"{counts[state]:12}" for state in states))
    print("\n".join(sorted(lines)))
    total = sum(table.values(), Counter())
    mattering = total.total() - total["equivalent"]
    share = total["killed"] / mattering if mattering else 1.0
    print(f"{total['killed']} of {mattering} that are not equivalent killed: {share:.1%}")
    return int(share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
