"""Searches for the best tiling of a matrix product: exhaustive, or guided by bounds.

References
----------
Tang 2024, §2.4.2: every permutation of the four parameters is timed, and the fastest is chosen.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from time import monotonic

from vitruvian.common.cache import digest, entry
from vitruvian.common.extras import missing
from vitruvian.common.workers import Call, WorkerKilled, Workers
from vitruvian.sim.davinci import Chip, load_chip
from vitruvian.sim.davinci.chip.file import chip_text, read_chip
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.kernels.bounds import estimate, lower_bound
from vitruvian.sim.kernels.kernel import complete_kind
from vitruvian.sim.kernels.sequences import lower_matmul, steps_of
from vitruvian.sim.kernels.tiling import MatmulPlan, Tiling, blocks_of, candidates, feasible, plan

Watch = Callable[[int, int], None]

#: The approximate number of steps that a process times before it reports.
_PORTION = 40_000

#: The largest number of tilings, of steps of the busiest core for one tiling (memory: gigabytes),
#: and of such steps for all tilings of a search (time: hours).
MOST_TILINGS, MOST_STEPS, MOST_STEPS_OF_ALL = 300_000, 1_000_000, 2_000_000_000

#: Seconds within which a Dask scheduler and one of its workers must answer.
ANSWER_S = 10.0


@dataclass(frozen=True)
class TilingSearch:
    """A matrix product on a chip.

    Attributes
    ----------
    m, k, n : int
    chip : str
        The name of a chip, or the path of a TOML file.
    cores : int
    dtype, out : str
        The dtypes of the operands and of the result.
    any_integer : bool
        If True, try all numbers of tiles, not only divisors; see ``tiling.feasible``.
    b_nums : tuple of int, optional
        The numbers of control flows to try; see ``tiling.feasible``.
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
        """The bytes of an element of C."""
        return 2 if self.out == "fp16" else 4

    def plan(self, chip: Chip, tiling: Tiling) -> MatmulPlan:
        """Return the plan of a tiling on this problem's cores."""
        blocks = blocks_of(self.m, self.k, self.n, self.dtype)
        return plan(chip, blocks, tiling, self.cores, self.c_bytes)

    def tilings(self, chip: Chip) -> list[Tiling]:
        """Return all tilings that fit the chip.

        Raises
        ------
        ValueError
            If no tiling fits, if the problem is invalid, or if there are too many tilings to try.
        """
        blocks = blocks_of(self.m, self.k, self.n, self.dtype)
        count = candidates(blocks, self.any_integer, self.b_nums)
        if count > MOST_TILINGS:
            raise ValueError(
                f"tilings of {self} must be at most {MOST_TILINGS:,}, not {count:,}; "
                f"take a smaller size{' or divisors only' if self.any_integer else ''}"
            )
        complete_kind(chip)
        # If not even the smallest tiles fit, this raises with the reason.
        smallest = Tiling(*blocks, 1)
        plan(chip, blocks, smallest, self.cores, self.c_bytes)
        tilings = feasible(
            chip,
            blocks,
            self.cores,
            c_bytes=self.c_bytes,
            any_integer=self.any_integer,
            b_nums=self.b_nums,
        )
        return list(tilings)

    def __str__(self) -> str:
        return f"{self.m}×{self.k}×{self.n}"

    def check_steps(self, each: int, total: int = 0) -> None:
        """Raise ``ValueError`` if one tiling, or all of a search together, have too many steps."""
        for scope, steps, limit in (
            ("a tiling", each, MOST_STEPS),
            ("all tilings", total, MOST_STEPS_OF_ALL),
        ):
            if steps > limit:
                raise ValueError(
                    f"steps of {scope} of {self} must be at most {limit:,}, not {steps:,}; "
                    "take a smaller size"
                )

    def time(self, chip: Chip, tiling: Tiling) -> int:
        """Return the attoseconds of a tiling, computed by the engine.

        Raises
        ------
        ValueError
            If the tiling does not fit, or has too many steps.
        """
        p = self.plan(chip, tiling)
        self.check_steps(steps_of(p))
        lowered = lower_matmul(chip, p, self.dtype, self.out)
        return engine.run(lowered).total


@dataclass(frozen=True)
class TilingCandidate:
    """A tiling and its time.

    Attributes
    ----------
    tiling : Tiling
    atto : int
        The time in attoseconds.
    """

    tiling: Tiling
    atto: int

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self.atto / 1e18


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes
    ----------
    best : tuple of TilingCandidate
        The fastest tilings, the best one first; of equal times, that with the fewest tiles first.
    evaluated, space : int
        The number of tilings that were timed, and of those that fit.
    proved : bool
        True if the first is proved to be the optimum.
    cached : bool
        True if the result comes from the cache.
    """

    best: tuple[TilingCandidate, ...]
    evaluated: int
    space: int
    proved: bool = True
    cached: bool = False


class SearchError(ValueError):
    """The search ended without a result because its processes or its scheduler ended."""


def _rank(candidate: TilingCandidate) -> tuple[int, Tiling]:
    return candidate.atto, candidate.tiling


def _portion(
    problem: TilingSearch, source: tuple[str, str], tilings: Sequence[Tiling]
) -> list[int]:
    """Return the times of some tilings; ``source`` is the chip's file, which a worker lacks."""
    # The text travels with the problem, as a worker on another machine has no chip file of the
    # user's.
    chip = read_chip(*source)
    return [problem.time(chip, tiling) for tiling in tilings]


def _portions(problem: TilingSearch, chip: Chip, tilings: list[Tiling]) -> Iterator[list[Tiling]]:
    """Yield parts with about equal numbers of steps.

    The longest tilings come first, so that no process still works on a long part after all others
    have finished.
    """
    # The time of a simulation is about proportional to its steps.
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
    problem: TilingSearch,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
    keep: int = 10,
) -> Tuned:
    """Time every tiling that fits.

    Parameters
    ----------
    jobs : int, optional
        Number of processes; by default, the number of the machine's cores.
    scheduler : str, optional
        Address of a Dask scheduler that does the work; its workers must have this package.
    watch : callable, optional
        Called with the number of tilings done and the number of all.
    keep : int
        Number of tilings to return.

    Raises
    ------
    ValueError
        If no tiling fits, or a scheduler is given and Dask is not installed.
    SearchError
        If a process, a worker or the scheduler ends early.
    """
    chip = load_chip(problem.chip)
    tilings = problem.tilings(chip)
    parts = list(_portions(problem, chip, tilings))
    timed: list[TilingCandidate] = []
    for part, times in _spread(problem, parts, jobs, scheduler):
        timed += map(TilingCandidate, part, times)
        if watch is not None:
            watch(len(timed), len(tilings))
    return Tuned(tuple(sorted(timed, key=_rank)[:keep]), len(timed), len(tilings))


def _spread(
    problem: TilingSearch, parts: list[list[Tiling]], jobs: int | None, scheduler: str | None
):
    """Yield (part, times) for all parts, in the order in which they are finished."""
    if scheduler is not None:
        try:
            import dask.distributed  # noqa: F401  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ValueError(f"scheduler must be None: {missing('dask')}") from None
        yield from _scheduled(problem, parts, scheduler)
        return
    source = chip_text(problem.chip)
    jobs = min(jobs or os.cpu_count() or 1, len(parts))
    if jobs == 1:
        for part in parts:
            yield part, _portion(problem, source, part)
        return
    calls = (
        Call(key=n, function=_portion, arguments=(problem, source, part))
        for n, part in enumerate(parts)
    )
    # A forked process need not load the compiled engine again.
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


def _scheduled(problem: TilingSearch, parts: list[list[Tiling]], scheduler: str):
    """Yield (part, times) like ``_spread``, computed by the workers of a Dask scheduler.

    The scheduler must answer and have workers until the end.
    """
    import logging

    from dask.distributed import (  # pyright: ignore[reportMissingImports]
        Client,
        wait,
    )

    # Dask would log every lost connection; this function reports a failure in one line.
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
        source = chip_text(problem.chip)
        futures = {
            client.submit(_portion, problem, source, part, pure=False): part for part in parts
        }
        seen = monotonic()
        while futures:
            # Waking up every second shows whether the scheduler still has workers.
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
            f"scheduler {scheduler} must run and have workers until the search ends, "
            f"not be without them for {ANSWER_S:g} s"
        ) from None
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def guided(
    problem: TilingSearch, *, budget: float = 0.05, watch: Watch | None = None, keep: int = 10
) -> Tuned:
    """Time tilings in the order of their estimates, within a budget.

    The search ends early as soon as every remaining tiling has a lower bound that is not below the
    fastest time so far; that time is then proved to be the optimum. Without such a proof it is
    likely to be: in ``benchmarks/davinci.py`` the search finds the optimum of 97 of 100 random
    products, and for the others a tiling within 0.6 % of it.

    Parameters
    ----------
    budget : float
        The share of the tilings that may be timed, above 0 and at most 1.
    watch, keep : callable, int
        As in ``exhaustive``.

    Raises
    ------
    ValueError
        If the budget or the problem is invalid, or there are too many tilings or steps.
    """
    if not 0 < budget <= 1:
        raise ValueError(f"budget must be above 0 and at most 1, not {budget!r}")
    chip = load_chip(problem.chip)
    tilings = problem.tilings(chip)
    dtypes = {"dtype": problem.dtype, "out": problem.out}
    plans = [problem.plan(chip, t) for t in tilings]
    # An estimate loops over the tiles of C, about a hundred times as fast as the engine over steps.
    problem.check_steps(0, sum(steps_of(p) // p.k.tiles for p in plans))
    estimates = [estimate(chip, p, **dtypes) for p in plans]
    bounds: dict[int, float] = {}

    def bound(i: int) -> float:
        if i not in bounds:
            # The linear programme of the bus is solved to nine digits, so leave a margin.
            bounds[i] = lower_bound(chip, plans[i], **dtypes) * (1 - 1e-8)
        return bounds[i]

    order = sorted(range(len(tilings)), key=lambda i: (estimates[i], tilings[i]))
    limit = max(1, int(budget * len(tilings)))
    left, timed, proved = order, [], False
    while left and not proved and len(timed) < limit:
        i = _next(left, tilings, timed, limit)
        left = [j for j in left if j != i]
        timed.append(TilingCandidate(tilings[i], problem.time(chip, tilings[i])))
        if watch is not None:
            watch(len(timed), limit)
        fastest = min(c.atto for c in timed)
        # No tiling that is left can be faster than its bound.
        proved = all(bound(j) >= fastest for j in left)
    best = tuple(sorted(timed, key=_rank)[:keep])
    return Tuned(best, len(timed), len(tilings), proved)


def _next(order: list[int], tilings: list[Tiling], timed: list[TilingCandidate], limit: int) -> int:
    """Return the index of the tiling to time next.

    Tilings with new numbers of tiles come first, since the estimate hardly distinguishes numbers of
    control flows. The last third of the budget goes to the tilings that differ from the fastest so
    far in one parameter.
    """

    def tiles(tiling: Tiling) -> tuple[int, int, int]:
        return tiling.m_tiles, tiling.k_tiles, tiling.n_tiles

    if timed and 3 * len(timed) >= 2 * limit:
        best = astuple(min(timed, key=_rank).tiling)
        for i in order:
            if sum(x != y for x, y in zip(astuple(tilings[i]), best, strict=True)) == 1:
                return i
    seen = {tiles(c.tiling) for c in timed}
    return next((i for i in order if tiles(tilings[i]) not in seen), order[0])


def tune(
    problem: TilingSearch,
    method: str = "exhaustive",
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Tuned:
    """Run ``exhaustive`` or ``guided``, or load its result from the cache.

    The key of the cache is a digest of the problem, the chip's file, and the sources that compute
    the times.

    Parameters
    ----------
    method : {"exhaustive", "guided"}
    jobs, scheduler, watch : int, str, callable, optional
        As in ``exhaustive``.

    Raises
    ------
    ValueError
        If the method is unknown, and as in ``exhaustive``.
    SearchError
        As in ``exhaustive``.
    """
    if method not in ("exhaustive", "guided"):
        raise ValueError(f"method must be exhaustive or guided, not {method!r}")
    load_chip(problem.chip)
    kernels = Path(__file__).parent
    core = kernels.parent / "davinci"
    sources = [*kernels.glob("*.py"), *core.glob("*.py")]
    for folder in ("checks", "chip", "isa", "program", "timing"):
        sources += (core / folder).glob("*.py")
    # A change of any source that computes times makes old results stale.
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    text, _ = chip_text(problem.chip)
    key = digest("tune", method, repr(astuple(problem)), text, *texts)

    def build(folder: Path) -> dict:
        if method == "exhaustive":
            tuned = exhaustive(problem, jobs=jobs, scheduler=scheduler, watch=watch)
        else:
            tuned = guided(problem, watch=watch)
        rows = [{**asdict(c.tiling), "atto": c.atto} for c in tuned.best]
        counts = {x: getattr(tuned, x) for x in ("evaluated", "space", "proved")}
        text = json.dumps({"best": rows, **counts})
        (folder / "tuned.json").write_text(text, encoding="utf-8")
        return {"problem": asdict(problem)}

    folder, facts = entry("tune", key, build)
    data = json.loads((folder / "tuned.json").read_text(encoding="utf-8"))
    rows = [(Tiling(*(row[f.name] for f in fields(Tiling))), row["atto"]) for row in data["best"]]
    best = tuple(TilingCandidate(*row) for row in rows)
    return Tuned(best, data["evaluated"], data["space"], data["proved"], facts["cached"])
