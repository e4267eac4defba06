"""The best tiling of a matrix product: all of them, or as few as prove it.

References
----------
Tang 2024, §2.4.2: every permutation of the four parameters is timed, and the fastest is taken.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

from sim.davinci import Chip, engine, load_chip
from sim.davinci.chip_file import find_chip
from sim.rtl.cache import digest, entry

from .bounds import estimate, lower_bound
from .sequences import lower_matmul, steps_of
from .tiling import Plan, Tiling, blocks_of, feasible, plan

__all__ = ["Candidate", "Problem", "Tuned", "exhaustive", "guided", "tune"]

Watch = Callable[[int, int], None]

#: Steps that a process times before it reports, about.
_PORTION = 40_000


@dataclass(frozen=True)
class Problem:
    """A product on a chip.

    Attributes
    ----------
    m, k, n : int
    chip : str
        Name, or path of a TOML file.
    cores : int
    dtype, out : str
    any_integer : bool
    b_nums : tuple of int, optional
        See `tiling.feasible`.
    """

    m: int
    k: int
    n: int
    chip: str = "ascend310"
    cores: int = 2
    dtype: str = "fp16"
    out: str = "fp16"
    any_integer: bool = False
    b_nums: tuple[int, ...] | None = None

    @property
    def c_bytes(self) -> int:
        """Bytes of an element of C."""
        return 2 if self.out == "fp16" else 4

    def plan(self, chip: Chip, tiling: Tiling) -> Plan:
        """A tiling on this problem's cores."""
        blocks = blocks_of(self.m, self.k, self.n, self.dtype)
        return plan(chip, blocks, tiling, self.cores, self.c_bytes)

    def tilings(self, chip: Chip) -> list[Tiling]:
        """All that fit.

        Raises
        ------
        ValueError
            If none does, or the problem is none.
        """
        blocks = blocks_of(self.m, self.k, self.n, self.dtype)
        plan_of_one = Tiling(*blocks, 1)
        plan(chip, blocks, plan_of_one, self.cores, self.c_bytes)  # the smallest tiles there are
        found = feasible(
            chip,
            blocks,
            self.cores,
            c_bytes=self.c_bytes,
            any_integer=self.any_integer,
            b_nums=self.b_nums,
        )
        return list(found)

    def time(self, chip: Chip, tiling: Tiling) -> int:
        """Attoseconds of a tiling, by the engine."""
        low = lower_matmul(chip, self.plan(chip, tiling), self.dtype, self.out)
        return engine.run(low).total


@dataclass(frozen=True)
class Candidate:
    """A tiling and its time.

    Attributes
    ----------
    tiling : Tiling
    atto : int
        Attoseconds.
    """

    tiling: Tiling
    atto: int

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.atto / 1e18


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes
    ----------
    best : tuple of Candidate
        The fastest, the first one first; of equal times the fewest tiles.
    evaluated, space : int
        Tilings that were timed, and that fit.
    proved : bool
        Whether the first is certainly the optimum.
    cached : bool
    """

    best: tuple[Candidate, ...]
    evaluated: int
    space: int
    proved: bool = True
    cached: bool = False


def _rank(one: Candidate) -> tuple[int, Tiling]:
    return one.atto, one.tiling


def _portion(problem: Problem, tilings: Sequence[Tiling]) -> list[int]:
    chip = load_chip(problem.chip)
    return [problem.time(chip, tiling) for tiling in tilings]


def _portions(problem: Problem, chip: Chip, tilings: list[Tiling]) -> Iterator[list[Tiling]]:
    """Parts of about as many steps; the long ones first, so that no process is left alone."""
    sized = sorted(((steps_of(problem.plan(chip, t)), t) for t in tilings), reverse=True)
    part, steps = [], 0
    for size, tiling in sized:
        part.append(tiling)
        steps += size
        if steps >= _PORTION:
            yield part
            part, steps = [], 0
    if part:
        yield part


def exhaustive(
    problem: Problem,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
    keep: int = 10,
) -> Tuned:
    """Time every tiling that fits.

    Parameters
    ----------
    problem : Problem
    jobs : int, optional
        Processes; as many as the machine has cores by default.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers can import this package; they do the work.
    watch : callable, optional
        Told how many of how many tilings are done.
    keep : int

    Raises
    ------
    ValueError
        If nothing fits, or Dask is asked for and not there.
    """
    chip = load_chip(problem.chip)
    tilings = problem.tilings(chip)
    parts = list(_portions(problem, chip, tilings))
    found: list[Candidate] = []
    for part, times in _spread(problem, parts, jobs, scheduler):
        found += map(Candidate, part, times)
        if watch is not None:
            watch(len(found), len(tilings))
    return Tuned(tuple(sorted(found, key=_rank)[:keep]), len(found), len(tilings))


def _spread(problem: Problem, parts: list[list[Tiling]], jobs: int | None, scheduler: str | None):
    """(part, times) of all parts, in the order in which they are ready."""
    if scheduler is not None:
        try:
            from dask.distributed import (  # pyright: ignore[reportMissingImports]
                Client,
                as_completed,
            )
        except ImportError:
            raise ValueError(
                "scheduler must be None without Dask; pip install 'dask[distributed]'"
            ) from None
        with Client(scheduler) as client:
            futures = {client.submit(_portion, problem, part, pure=False): part for part in parts}
            for future, times in as_completed(list(futures), with_results=True):
                yield futures[future], times
        return
    jobs = min(jobs or os.cpu_count() or 1, len(parts))
    if jobs == 1:
        for part in parts:
            yield part, _portion(problem, part)
        return
    from concurrent.futures import as_completed

    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(_portion, problem, part): part for part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()


def guided(
    problem: Problem, *, budget: float = 0.05, watch: Watch | None = None, keep: int = 10
) -> Tuned:
    """Time tilings in the order of their estimates, within a budget.

    The search ends early once no tiling left has a lower bound below the fastest time so far, which
    proves that this is the optimum. Without the proof it is likely: `benchmarks/davinci.py` finds
    the optimum of 97 among 100 random products, and of the others a tiling within 0.6 % of it.

    Parameters
    ----------
    problem : Problem
    budget : float
        Share of the tilings that may be timed.
    watch, keep : as of `exhaustive`
    """
    if not 0 < budget <= 1:
        raise ValueError(f"budget must be above 0 and at most 1, not {budget!r}")
    chip = load_chip(problem.chip)
    tilings = problem.tilings(chip)
    how = {"dtype": problem.dtype, "out": problem.out}
    plans = [problem.plan(chip, t) for t in tilings]
    first = [estimate(chip, p, **how) for p in plans]
    bounds: dict[int, float] = {}

    def bound(i: int) -> float:
        if i not in bounds:
            # The programme of the bus is solved to nine digits.
            bounds[i] = lower_bound(chip, plans[i], **how) * (1 - 1e-8)
        return bounds[i]

    order = sorted(range(len(tilings)), key=lambda i: (first[i], tilings[i]))
    limit = max(1, int(budget * len(tilings)))
    left, found, proved = order, [], False
    while left and not proved and len(found) < limit:
        i = _next(left, tilings, found, limit)
        left = [j for j in left if j != i]
        found.append(Candidate(tilings[i], problem.time(chip, tilings[i])))
        if watch is not None:
            watch(len(found), limit)
        fastest = min(c.atto for c in found)
        proved = all(bound(j) >= fastest for j in left)
    best = tuple(sorted(found, key=_rank)[:keep])
    return Tuned(best, len(found), len(tilings), proved)


def _next(order: list[int], tilings: list[Tiling], found: list[Candidate], limit: int) -> int:
    """Other tiles first: the estimate hardly tells numbers of control flows apart.

    The last third of the budget goes to what differs from the fastest so far in one parameter.
    """

    def tiles(tiling: Tiling) -> tuple[int, int, int]:
        return tiling.m_tiles, tiling.k_tiles, tiling.n_tiles

    if found and 3 * len(found) >= 2 * limit:
        best = astuple(min(found, key=_rank).tiling)
        for i in order:
            if sum(x != y for x, y in zip(astuple(tilings[i]), best, strict=True)) == 1:
                return i
    seen = {tiles(c.tiling) for c in found}
    return next((i for i in order if tiles(tilings[i]) not in seen), order[0])


def tune(
    problem: Problem,
    method: str = "exhaustive",
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Tuned:
    """`exhaustive` or `guided`, from the cache if that has it.

    What is cached is named by the problem, the chip's file and the sources that time it.

    Raises
    ------
    ValueError
        For a method that is none of the two, and as of `exhaustive`.
    """
    if method not in ("exhaustive", "guided"):
        raise ValueError(f"method must be exhaustive or guided, not {method!r}")
    load_chip(problem.chip)
    here = Path(__file__).parent
    core = here.parents[1] / "davinci"
    sources = [*here.glob("*.py"), *core.glob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    chip_text = find_chip(problem.chip).read_text(encoding="utf-8")
    key = digest("tune", method, repr(astuple(problem)), chip_text, *texts)

    def build(folder: Path) -> dict:
        if method == "exhaustive":
            found = exhaustive(problem, jobs=jobs, scheduler=scheduler, watch=watch)
        else:
            found = guided(problem, watch=watch)
        rows = [{**asdict(c.tiling), "atto": c.atto} for c in found.best]
        counts = {x: getattr(found, x) for x in ("evaluated", "space", "proved")}
        text = json.dumps({"best": rows, **counts})
        (folder / "tuned.json").write_text(text, encoding="utf-8")
        return {"problem": asdict(problem)}

    folder, facts = entry("tune", key, build)
    data = json.loads((folder / "tuned.json").read_text(encoding="utf-8"))
    rows = [(Tiling(*(row[f.name] for f in fields(Tiling))), row["atto"]) for row in data["best"]]
    best = tuple(Candidate(*row) for row in rows)
    return Tuned(best, data["evaluated"], data["space"], data["proved"], facts["cached"])
