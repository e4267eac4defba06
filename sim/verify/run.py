"""The list of all checks, and the code that runs them.

A provider is a module with a function ``checks()`` that yields ``Check`` objects. To add rows to
``make sim``, add the name of a provider to ``PROVIDERS``, or register it in a wing.
"""

import importlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import ModuleType

from vitruvian.common.extras import MissingLibraryError, missing_library
from vitruvian.common.validate import refusal
from vitruvian.common.wings import registered_names
from vitruvian.common.workers import Call, WorkerKilled, Workers, listening
from vitruvian.sim.verify.check import Check, Outcome

#: Largest weight of the checks that run first.
_LIGHT = 4

PROVIDERS = (
    "vitruvian.sim.bench.fp.batch",
    "vitruvian.sim.bench.fp.blocks",
    "vitruvian.sim.bench.fp.machines",
    "vitruvian.sim.bench.fp_small.batch",
    "vitruvian.sim.bench.m3xu.batch",
    "vitruvian.sim.bench.m3xu.mma",
    "vitruvian.sim.bench.cube.batch",
    "vitruvian.sim.bench.simd2.integer",
    "vitruvian.sim.bench.simd2.unit",
    "vitruvian.sim.bench.scu.batch",
    "vitruvian.sim.bench.scu.simulated",
    "vitruvian.sim.bench.vector.batch",
    "vitruvian.sim.bench.bus.serial_batch",
    "vitruvian.sim.bench.simulated",
    "vitruvian.sim.bench.bus.simulated",
    "vitruvian.sim.bench.silicon",
    "vitruvian.sim.bench.machines",
)


def collect(pattern: str = "*") -> list[Check]:
    """Return all checks whose name or unit matches a shell pattern.

    Raises
    ------
    ValueError
        If no check matches, or two checks have the same name.
    """
    everything = [check for module in _providers() for check in module.checks()]
    names = [check.name for check in everything]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"names of checks must be unique, not {twice}")
    chosen = [
        check
        for check in everything
        if fnmatchcase(check.name, pattern) or fnmatchcase(check.unit, pattern)
    ]
    if not chosen:
        units = sorted({check.unit for check in everything})
        raise ValueError(refusal("unit", pattern, units, "match one of"))
    return chosen


def _providers() -> Iterator[ModuleType]:
    """Import and yield the providers, but for those whose simulator is not installed."""
    for name in (*PROVIDERS, *registered_names("checks")):
        try:
            module = importlib.import_module(name)
        except MissingLibraryError:
            continue
        except ModuleNotFoundError as error:
            if missing_library(error) is None:
                raise
        else:
            yield module


def run_checks(
    checks: Iterable[Check],
    *,
    vectors: int,
    seed: int,
    jobs: int,
    compiling: Callable[[int], object] = lambda position: None,
) -> Generator[tuple[int, Outcome], None, None]:
    """Run checks, and yield (position, outcome) for each as it finishes.

    Parameters
    ----------
    vectors, seed : int
        Arguments of each check.
    jobs : int
        Number of processes; 1 runs the checks in this process.
    compiling : callable
        Function that is called with the position of a check whenever a part of its model must be
        compiled.

    Raises
    ------
    ToolError
        If Verilator or the C++ compiler is missing.
    CacheError
        If a model must be compiled and the store of models cannot be written to.
    """
    order = _order(list(checks))
    if jobs == 1:
        for position, check in order:
            with listening(lambda _, position=position: compiling(position)):
                outcome = _run(check, vectors, seed)
            yield position, outcome
        return
    # A check holds functions that cannot be pickled, so a worker gets its name and imports it.
    named = dict(order)
    began: dict[int, float] = {}

    def calls() -> Iterator[Call]:
        for position, check in order:
            began[position] = time.monotonic()
            arguments = (check.name, vectors, seed)
            yield Call(key=position, function=_run_named, arguments=arguments)

    with Workers(jobs) as workers:
        for event in workers.run(calls()):
            if event.kind == "told":
                compiling(event.key)
            elif event.kind == "done":
                yield event.key, event.value
            # ``_run`` catches the exceptions of a check, so only the end of its process fails a row
            # here. Any other exception is a missing tool and ends the command.
            elif isinstance(event.value, WorkerKilled):
                check = named[event.key]
                seconds = time.monotonic() - began[event.key]
                yield event.key, _failed(check, str(event.value), seconds)
            else:
                raise event.value


def _order(checks: Sequence[Check]) -> list[tuple[int, Check]]:
    """Return checks with their positions: light ones, heavy ones, and those that build nothing.

    The user soon sees rows of small units. Of the others, the heaviest come first, so that no
    process waits for a long build at the end.
    """

    def key(item: tuple[int, Check]) -> tuple[int, int]:
        weight = item[1].weight
        if weight <= 1:
            return 2, 0
        return (0, weight) if weight <= _LIGHT else (1, -weight)

    return sorted(enumerate(checks), key=key)


@lru_cache
def _by_name() -> dict[str, Check]:
    return {check.name: check for module in _providers() for check in module.checks()}


def _run_named(name: str, vectors: int, seed: int) -> Outcome:
    """Run a check in a worker, which imports the providers and creates it again."""
    return _run(_by_name()[name], vectors, seed)


def _run(check: Check, vectors: int, seed: int) -> Outcome:
    from vitruvian.common.cache import CacheError
    from vitruvian.sim.rtl import ToolError

    started = time.monotonic()
    try:
        result = check.run(vectors, seed)
    except (ToolError, CacheError):
        raise
    except Exception as failure:
        return _failed(check, f"{type(failure).__name__}: {failure}", time.monotonic() - started)
    return Outcome(
        unit=check.unit,
        configuration=check.configuration,
        result=result,
        error=None,
        seconds=time.monotonic() - started,
    )


def _failed(check: Check, error: str, seconds: float) -> Outcome:
    return Outcome(
        unit=check.unit,
        configuration=check.configuration,
        result=None,
        error=error,
        seconds=seconds,
    )
