"""Rows of ``make sim``: programs on a core whose unit S is a RISC-V."""

from collections.abc import Iterator
from functools import partial

from vitruvian.sim.davinci.machine_code.verify import random_programs
from vitruvian.sim.verify.check import Check

from .run import run_unrolled

#: Seconds of the first build of the core's model.
_WEIGHT = 100


def checks() -> Iterator[Check]:
    """Yield a row of random programs whose words the RISC-V passes."""
    yield Check(
        unit="core.Core",
        configuration="micro, random programs, S is a RISC-V",
        run=partial(random_programs, "micro", run=run_unrolled),
        weight=_WEIGHT,
    )
