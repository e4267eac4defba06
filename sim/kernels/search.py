"""The best tiling of a matrix product: all of them, or as few as prove it.

References
----------
Tang 2024, §2.4.2: every permutation of the four parameters is timed, and the fastest is taken.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from time import monotonic

from vitruvian.cache import digest, entry
from vitruvian.sim.davinci import Chip, load_chip
from vitruvian.sim.davinci.chip.file import find_chip
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.kernels.bounds import estimate, lower_bound
from vitruvian.sim.kernels.sequences import lower_matmul, steps_of
from vitruvian.sim.kernels.tiling import Plan, Tiling, blocks_of, candidates, feasible, plan
from vitruvian.workers import Call, WorkerKilled, Workers

__all__ = ["Candidate", "Problem", "SearchError", "Tuned", "exhaustive", "guided", "tune"]

Watch = Callable[[int, int], None]

#: Steps that a process times before it reports, about.
_PORTION = 40_000

#: Tilings that a search may try, and steps of the busiest core that it may time, of one tiling
#: (gigabytes) and of all (hours).
MOST_TILINGS, MOST_STEPS, MOST_STEPS_OF_ALL = 300_000, 1_000_000, 2_000_000_000

#: Seconds in which a Dask scheduler and a worker of it must answer.
ANSWER_S = 10.0


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
            If none does, or the problem is none, or they are too many to be tried.
        """
        blocks = blocks_of(self.m, self.k, self.n, self.dtype)
        count = candidates(blocks, self.any_integer, self.b_nums)
        if count > MOST_TILINGS:
            raise ValueError(
                f"tilings of {self} must be at most {MOST_TILINGS:,}, not {count:,}; "
                f"take a smaller size{' or divisors only' if self.any_integer else ''}"
            )
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

    def __str__(self) -> str:
        return f"{self.m}×{self.k}×{self.n}"

    def check_steps(self, one: int, every: int = 0) -> None:
        """Raise ValueError for too many steps of one tiling, or of all that are to be timed."""
        for what, steps, most in (
            ("a tiling", one, MOST_STEPS),
            ("all tilings", every, MOST_STEPS_OF_ALL),
        ):
            if steps > most:
                raise ValueError(
                    f"steps of {what} of {self} must be at most {most:,}, not {steps:,}; "
                    "take a smaller size"
                )

    def time(self, chip: Chip, tiling: Tiling) -> int:
        """Attoseconds of a tiling, by the engine.

        Raises
        ------
        ValueError
            If the tiling does not fit, or has too many steps.
        """
        found = self.plan(chip, tiling)
        self.check_steps(steps_of(found))
        low = lower_matmul(chip, found, self.dtype, self.out)
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


class SearchError(ValueError):
    """A search ended without a result: its processes, or its scheduler, are gone."""


def _rank(one: Candidate) -> tuple[int, Tiling]:
    return one.atto, one.tiling


def _portion(problem: Problem, tilings: Sequence[Tiling]) -> list[int]:
    chip = load_chip(problem.chip)
    return [problem.time(chip, tiling) for tiling in tilings]


def _portions(problem: Problem, chip: Chip, tilings: list[Tiling]) -> Iterator[list[Tiling]]:
    """Parts of about as many steps; the long ones first, so that no process is left alone."""
    sized = sorted(((steps_of(problem.plan(chip, t)), t) for t in tilings), reverse=True)
    problem.check_steps(sized[0][0], sum(steps for steps, _ in sized))
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
            import dask.distributed  # noqa: F401  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ValueError(
                "scheduler must be None without Dask; pip install 'dask[distributed]'"
            ) from None
        yield from _scheduled(problem, parts, scheduler)
        return
    jobs = min(jobs or os.cpu_count() or 1, len(parts))
    if jobs == 1:
        for part in parts:
            yield part, _portion(problem, part)
        return
    calls = (
        Call(key=n, function=_portion, arguments=(problem, part)) for n, part in enumerate(parts)
    )
    with Workers(jobs, start="fork") as workers:
        for event in workers.run(calls):
            if isinstance(event.value, WorkerKilled):
                raise SearchError(
                    "a process of the search was killed, as the kernel does when memory runs out; "
                    "take fewer jobs"
                )
            if event.kind == "failed":
                raise event.value
            yield parts[event.key], event.value


def _scheduled(problem: Problem, parts: list[list[Tiling]], scheduler: str):
    """As `_spread`, by a Dask scheduler, which must answer and have workers all the time."""
    import logging

    from dask.distributed import (  # pyright: ignore[reportMissingImports]
        Client,
        wait,
    )

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=ANSWER_S)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SearchError(
            f"scheduler must be the address of a Dask scheduler that answers within "
            f"{ANSWER_S:g} s, not {scheduler!r} ({reason})"
        ) from None
    try:
        futures = {client.submit(_portion, problem, part, pure=False): part for part in parts}
        seen = monotonic()
        while futures:
            with suppress(TimeoutError):
                wait(list(futures), timeout=1, return_when="FIRST_COMPLETED")
            if client.status == "running" and client.scheduler_info()["workers"]:
                seen = monotonic()
            for future in [future for future in futures if future.done()]:
                if future.status == "error":
                    reason = " ".join(str(future.exception(timeout=ANSWER_S)).split())
                    raise SearchError(f"a worker of the scheduler failed: {reason}")
                times = future.result(timeout=ANSWER_S)
                seen = monotonic()
                yield futures.pop(future), times
            if monotonic() - seen > ANSWER_S:
                raise TimeoutError
    except (CancelledError, OSError):
        raise SearchError(
            f"scheduler {scheduler} must stay there and have workers until the search ends, "
            f"and not be without for {ANSWER_S:g} s"
        ) from None
    finally:
        with suppress(Exception):
            client.close(timeout=2)


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
    # An estimate goes over the tiles of C, some hundred times as fast as the engine over steps.
    problem.check_steps(0, sum(steps_of(p) // p.k.tiles for p in plans))
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
    core = here.parent / "davinci"
    sources = [*here.glob("*.py"), *core.glob("*.py")]
    for folder in ("checks", "chip", "isa", "program", "timing"):
        sources += (core / folder).glob("*.py")
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
