"""The memory's time in a run: how much slower each sweep and operator is than at the peak rate.

A sweep's requests depend on its steps, and prefetches on the bandwidth, so that the two are
computed in turn until the slowdown stays. Within a sweep, loaders run ahead of the cores, so that
the memory never waits; between sweeps, they do not.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from vitruvian.common.compiling import fitting, tell_on_terminal
from vitruvian.sim.sparse import engine_compiled
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import Patterns
from vitruvian.sim.sparse.dram import DramMemory, Replay
from vitruvian.sim.sparse.lowering import lower, product_steps, vector_steps
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.requests import Requests, matrix_requests, vector_requests
from vitruvian.sim.sparse.schedule import ScheduledWork, ScheduleSection, Sweep, View

#: Slowdowns of single products by matrix: all applications have the same, and need them often.
_PRODUCTS: WeakKeyDictionary[Pattern, dict[Any, Fraction]] = WeakKeyDictionary()

#: Slowdowns that differ by less are the same, and the most rounds to find one.
_SAME, _ROUNDS = Fraction(2, 1000), 5


def sweep_steps(
    sweep: Sweep, patterns: Patterns, architecture: Architecture, *, logs: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what happens in each step of a sweep, and the engine's log if it ran.

    The log is empty if ``logs`` is False.
    """
    if sweep.view is None:
        return vector_steps(architecture, sweep), None
    pattern = patterns[sweep.view]
    if sweep.kind != "oei":
        return product_steps(pattern, architecture, sweep), None
    program = lower(pattern, architecture, sweep)
    tell_on_terminal()
    return fitting(engine_compiled.run, pattern.entries + pattern.indices)(program, logs)


def slowed(architecture: Architecture, slowdown: Fraction) -> Architecture:
    """Return the machine with a memory that is slower by a factor."""
    return replace(architecture, memory_bytes_per_s=architecture.memory_bytes_per_s / slowdown)


@dataclass(eq=False)
class MemoryTiming:
    """The times of a memory for the requests of one run.

    Attributes
    ----------
    memory : DramMemory
    architecture : Architecture
    plain, stored : dict of View to Pattern
        The matrices as the baseline and as SIDA read them.
    sweeps : dict of Sweep to Replay
        Of the sweeps whose steps have been computed.
    """

    memory: DramMemory
    architecture: Architecture
    plain: Patterns
    stored: Patterns
    sweeps: dict[Sweep, Replay] = field(default_factory=dict)
    _vectors: dict[Any, Fraction] = field(default_factory=dict)

    def steps(self, sweep: Sweep) -> np.ndarray:
        """Return what happens in each step of a sweep with this memory."""
        slowdown = Fraction(1)
        for _ in range(_ROUNDS):
            machine = slowed(self.architecture, slowdown)
            table, log = sweep_steps(sweep, self.stored, machine, logs=True)
            found = self.memory.replay(self.requests(sweep, self.stored, log))
            self.sweeps[sweep] = found
            # Only the engine's requests depend on the bandwidth.
            last = log is None or abs(found.slowdown - slowdown) <= _SAME * slowdown
            if last and slowdown == found.slowdown:
                break
            slowdown = found.slowdown
            if last:
                machine = slowed(self.architecture, slowdown)
                return sweep_steps(sweep, self.stored, machine)[0]
        return table

    def requests(self, sweep: Sweep, patterns: Patterns, log: np.ndarray | None) -> Requests:
        """Return the requests of a sweep."""
        options = {"atom": self.memory.dram.atom_bytes, "joined": self.memory.joined}
        if sweep.view is None:
            return vector_requests(self.architecture, sweep, **options)
        pattern: Pattern = patterns[sweep.view]
        return matrix_requests(pattern, self.architecture, sweep, log, **options)

    def of_work(self, work: ScheduledWork) -> Fraction:
        """Return the slowdown of an operator of the baseline."""
        view, features = None, 0
        if work.product:
            view, features = work.product.view, work.product.features
        return self._of_stream(view, features, work.read, work.written, self.plain)

    def of_section(self, section: ScheduleSection) -> Fraction:
        """Return the slowdown of the oracle in a section.

        Its requests are taken to be those of one product with the vectors that the section reads
        and writes.
        """
        first = next((sweep for sweep in section.sweeps if sweep.view), None)
        view, features = (first.view, first.os_features) if first else (None, 0)
        return self._of_stream(view, features, section.read, section.written, self.stored)

    def _of_stream(
        self, view: View | None, features: int, read: int, written: int, patterns: Patterns
    ) -> Fraction:
        kind = "product" if view else "vectors"
        sweep = Sweep(kind, view, features, 0, read, written, 0, 0)
        known = _PRODUCTS.setdefault(patterns[view], {}) if view else self._vectors
        machine = self.architecture
        key = self.memory, machine.sub_tensor, machine.value_bytes, machine.buffer_bytes, sweep
        if key not in known:
            known[key] = self.memory.replay(self.requests(sweep, patterns, None)).slowdown
        return known[key]
