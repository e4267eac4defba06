"""Rows of ``make sim``: programs on the compiled core beside the functional simulator."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

from .core import ProgramRun, core_product, run_on_core

CORES = ("tiny", "plain")
#: Function that runs a program on a core.
Runner = Callable[[Program, str], ProgramRun]
#: Bytes of results of a random program, roughly; so many vectors ask for one more program.
_BYTES = 36_000
#: Seconds of the first build of a core's model. The other rows of a core come later, since two
#: processes that need the same model at the same time would wait for each other.
_WEIGHT, _LATER = 100, 50


def checks() -> Iterator[Check]:
    """Yield rows of random programs for each core: in order, and with units that overlap."""
    for core in CORES:
        for name, run, weight in (
            ("random programs", random_programs, _WEIGHT),
            ("random programs of overlapping units", overlapping_programs, _LATER),
        ):
            yield Check(
                unit="core.Core",
                configuration=f"{core}, {name}",
                run=partial(run, core),
                weight=weight,
            )
    for core in ("mixed", "fp8", "semiring"):  # further products of the tile
        yield Check(
            unit="core.Core",
            configuration=f"{core}, random programs",
            run=partial(random_programs, core),
            weight=_WEIGHT,
        )
    for name, run in (
        ("random programs, random latency of memory", partial(random_programs, noisy=True)),
        ("illegal programs", _illegal),
    ):
        yield Check(
            unit="core.Core",
            configuration=f"tiny, {name}",
            run=partial(run, "tiny"),
            weight=_LATER,
        )


def compare_program(program: Program, core: str, run: Runner = run_on_core) -> Result:
    """Run a program on the core and in the simulator, and compare the bytes of all tensors.

    Parameters
    ----------
    run : callable
        Runs a program on a core.
    """
    functional = Functional(program, core_product(core))
    functional.run()
    done = run(program, core)
    wrong = done.differing(dict(functional.tensors()))
    examples = tuple(f"{program.name}: {count} bytes of {name}" for name, count in wrong.items())
    count = sum(np.asarray(array).nbytes for array in done.outputs.values())
    return Result(vectors=count, mismatches=sum(wrong.values()), examples=examples)


def random_programs(
    core: str, vectors: int, seed: int, *, run: Runner = run_on_core, noisy: bool = False
) -> Result:
    """Compare random programs whose results have so many bytes, roughly.

    Parameters
    ----------
    noisy : bool
        Let memory have a random latency and random pauses.
    """
    from .random_programs import RandomProgram

    count = max(4, min(vectors // _BYTES, 200))
    result = Result(vectors=0, mismatches=0)
    for number in range(count):
        at = 1000 * seed + number
        program = RandomProgram(at, core).program
        if noisy:
            run = partial(run_on_core, latency=1 + at % 60, noise=at + 1)
        result = result + compare_program(program, core, run)
    return result


def overlapping_programs(core: str, vectors: int, seed: int) -> Result:
    """Compare random programs whose units work at the same time."""
    from .overlapping_programs import OverlappingProgram

    count = max(2, min(vectors // (8 * _BYTES), 50))
    result = Result(vectors=0, mismatches=0)
    for number in range(count):
        result = result + compare_program(
            OverlappingProgram(1000 * seed + number, core).program, core
        )
    return result


def _illegal(core: str, vectors: int, seed: int) -> Result:
    """Count the illegal programs of which the core says something wrong."""
    from .illegal_programs import KINDS, illegal_program, wrong_answers

    count = max(2 * len(KINDS), min(vectors // _BYTES, 500))
    wrong, examples = 0, []
    for number in range(count):
        at = 1000 * seed + number
        program = illegal_program(at, core)
        memory: dict[str, int] = {"latency": 1 + at % 40, "noise": at} if at % 2 else {}
        found = list(wrong_answers(program, core, **memory))
        wrong += bool(found)
        examples += [f"illegal program {at} ({program.kind}): {text}" for text in found]
    return Result(vectors=count, mismatches=wrong, examples=tuple(examples[:10]))
