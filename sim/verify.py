"""The list of everything that is verified, and the machine that runs it.

A provider is a module with a function ``checks()`` that gives :class:`Check` objects; to add rows
to ``make sim``, add its name to :data:`PROVIDERS`.
"""

import importlib
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sim.bench.compare import Result

__all__ = ["PROVIDERS", "Check", "Outcome", "collect", "run_checks"]

PROVIDERS = (
    "sim.bench.fp.batch",
    "sim.bench.fp_small.batch",
    "sim.bench.fp_small.exact",
    "sim.bench.m3xu.batch",
    "sim.bench.m3xu.mma",
    "sim.bench.cube.batch",
    "sim.bench.simd2.integer",
    "sim.bench.simd2.unit",
    "sim.bench.simulated",
    "sim.bench.silicon",
)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One row of the table.

    Attributes
    ----------
    unit, configuration : str
        What the row is called; together they are unique.
    run : callable
        Called with the number of vectors and the seed; data sets of a given size take all they
        have. May raise anything; that counts as a failed row.
    weight : int
        Rough seconds of the first build; heavy checks start first.
    """

    unit: str
    configuration: str
    run: Callable[[int, int], Result]
    weight: int = 5

    @property
    def name(self) -> str:
        """Unique name of the check."""
        return f"{self.unit} {self.configuration}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a check: its result or the error that ended it."""

    unit: str
    configuration: str
    result: Result | None
    error: str | None
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether something was compared and nothing differs."""
        return self.result is not None and self.result.vectors > 0 and not self.result.mismatches


def collect(pattern: str = "*") -> list[Check]:
    """Every check whose name matches a shell pattern, or whose unit does.

    Raises
    ------
    ValueError
        If none does, or two share a name.
    """
    found = []
    for module in PROVIDERS:
        found += importlib.import_module(module).checks()
    names = [check.name for check in found]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"names of checks must be unique, not {twice}")
    chosen = [
        check
        for check in found
        if fnmatchcase(check.name, pattern) or fnmatchcase(check.unit, pattern)
    ]
    if not chosen:
        units = ", ".join(sorted({check.unit for check in found}))
        raise ValueError(f"unit must match one of {units}, not {pattern!r}")
    return chosen


def run_checks(
    checks: Iterable[Check], *, vectors: int, seed: int, jobs: int
) -> Iterator[tuple[int, Outcome]]:
    """Run checks in ``jobs`` processes; gives (position, outcome) as they finish."""
    order = sorted(enumerate(checks), key=lambda item: -item[1].weight)
    if jobs == 1:
        for position, check in order:
            yield position, _run(check, vectors, seed)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = {
            pool.submit(_run_named, check.name, vectors, seed): position
            for position, check in order
        }
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_named(name: str, vectors: int, seed: int) -> Outcome:
    """Run one check in a worker, where it is made anew."""
    for module in PROVIDERS:
        for check in importlib.import_module(module).checks():
            if check.name == name:
                return _run(check, vectors, seed)
    raise LookupError(name)


def _run(check: Check, vectors: int, seed: int) -> Outcome:
    from sim.rtl import ToolError

    started = time.monotonic()
    result, error = None, None
    try:
        result = check.run(vectors, seed)
    except ToolError:
        raise
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return Outcome(
        unit=check.unit,
        configuration=check.configuration,
        result=result,
        error=error,
        seconds=time.monotonic() - started,
    )
