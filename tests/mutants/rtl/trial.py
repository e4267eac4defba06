"""A run of a program on the core with a mutant, and what shows that it differs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .programs import Killer

_BLOCK = 32
_WRITE, _START, _READ = range(3)
#: A program may take this many times the cycles of the unmutated core, and some more.
LIMIT, MORE = 3, 2000
#: What shows a mutant, from the most to the least severe.
SIGNS = ("bytes", "hang or fault", "cycles")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a program left on a core.

    Attributes
    ----------
    memory : (runs, bytes) ndarray of uint8, or None
        Global memory at the end of each run; None if the core did not end in time.
    fault : int
    counters : dict of str to int
        Cycles of the program and of each unit, its bytes, conflicts in UB, and where a fault was.
    """

    memory: np.ndarray | None
    fault: int
    counters: dict[str, int]


class Stand:
    """The compiled model of a core with mutants, and its programs.

    Parameters
    ----------
    model : CompiledModel
        Of a ``MutantBoard``.
    programs : sequence of Killer
    """

    def __init__(self, model: Any, programs: Sequence[Killer]):
        self.model = model
        self.programs = programs
        self._streams = [_stream(killer) for killer in programs]
        self._limits = [1_000_000] * len(programs)
        self.reference: list[Outcome] = []

    def measure(self) -> None:
        """Run all programs without a mutant.

        Raises
        ------
        AssertionError
            If one has not the bytes or the fault that it should.
        """
        self.reference = [self.run(0, n) for n in range(len(self.programs))]
        for killer, outcome in zip(self.programs, self.reference, strict=True):
            if outcome.memory is None or outcome.fault != killer.fault:
                raise AssertionError(f"{killer.name} must end with fault {killer.fault}: {outcome}")
            if killer.expected is None:
                continue
            wrong = np.count_nonzero(outcome.memory != killer.expected)
            if wrong:
                raise AssertionError(f"{killer.name} must leave the expected bytes, {wrong} differ")
        self._limits = [LIMIT * r.counters["cycles"] + MORE for r in self.reference]

    def run(self, mutant: int, program: int) -> Outcome:
        """Run a program with the mutant of this number; with 0, none is active."""
        from vitruvian.sim.rtl import StreamError

        inputs, reads = self._streams[program]
        try:
            done = self.model.stream(
                inputs={"i": inputs},
                outputs={"o": reads},
                held={"mutant": mutant, "latency": 1, "noise": 0},
                quiet_limit=self._limits[program],
                drain=1,
            )
        except StreamError:
            return Outcome(None, 0, {})
        ports = dict(_numbers(done.ports))
        bytes_read = np.ascontiguousarray(done.outputs["o"]).view(np.uint8).reshape(-1)
        counters = {name: value for name, value in ports.items() if name != "fault"}
        killer = self.programs[program]
        each = bytes_read.reshape(killer.runs, -1)[:, : len(killer.memory)]
        return Outcome(each, ports["fault"], counters)

    def sign(self, mutant: int, program: int) -> str | None:
        """Return what distinguishes a mutant in a program, None if nothing does."""
        outcome, right = self.run(mutant, program), self.reference[program]
        if outcome.memory is None or outcome.fault != right.fault:
            return SIGNS[1]
        assert right.memory is not None
        if not np.array_equal(outcome.memory, right.memory):
            return SIGNS[0]
        return None if outcome.counters == right.counters else SIGNS[2]


def _numbers(ports: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    """Yield every number in the ports, with its name."""
    for name, value in ports.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{path}{name}.")
        else:
            yield path + name, int(np.ravel(value)[0])


def _stream(killer: Killer) -> tuple[dict[str, np.ndarray], int]:
    """Return what the host asks for, and the number of blocks that it reads."""
    start = -(-len(killer.memory) // _BLOCK) * _BLOCK
    size = -(-(start + 8 * len(killer.words)) // _BLOCK) * _BLOCK
    image = np.zeros(size, np.uint8)
    image[: len(killer.memory)] = killer.memory
    image[start : start + 8 * len(killer.words)] = killer.words.view(np.uint8)
    blocks, back = size // _BLOCK, start // _BLOCK
    kind = np.full(blocks + 1 + back, _WRITE, np.uint8)
    kind[blocks], kind[blocks + 1 :] = _START, _READ
    address = np.zeros(len(kind), np.uint32)
    address[:blocks] = np.arange(blocks) * _BLOCK
    address[blocks], address[blocks + 1 :] = start, np.arange(back) * _BLOCK
    data = np.zeros((len(kind), _BLOCK // 8), np.uint64)
    data[:blocks] = image.view(np.uint64).reshape(blocks, -1)
    job = {"kind": kind, "address": address, "data": data}
    return {k: np.concatenate([v] * killer.runs) for k, v in job.items()}, back * killer.runs
