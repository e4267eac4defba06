"""Programs of Cube cores that consist of steps: loads to L1, products, and the store of a tile."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Protocol, TypeVar

import numpy as np

from vitruvian.sim.davinci import Chip, Core, Unit
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered, lower_sequences
from vitruvian.sim.kernels.cache import NOTHING, CacheRounds, Missed, Piece, Transfer


class KeyedStep(Protocol):
    """A step of which equal keys mean equal times."""

    @property
    def key(self) -> tuple:
        """All properties that affect the times of the step."""
        ...


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """A step of a core.

    Attributes
    ----------
    missed : tuple of Missed
        What each load to L1 misses.
    """

    missed: tuple[Missed, ...] = (NOTHING, NOTHING)

    @property
    @abstractmethod
    def key(self) -> tuple:
        """All properties that affect the times of the step."""

    @property
    @abstractmethod
    def loads(self) -> Sequence[Transfer]:
        """The pieces of data that each load to L1 reads."""

    @property
    @abstractmethod
    def stores(self) -> Sequence[Piece]:
        """The pieces of data that the step stores."""


AnyStep = TypeVar("AnyStep", bound=Step)


class StepEmitter(Protocol):
    """The emitter of the instructions of one core."""

    core: Core

    def begin(self) -> None:
        """Emit what precedes the steps."""
        ...

    def step(self, s: Any) -> None:
        """Emit a step."""
        ...

    def end(self) -> None:
        """Emit what follows the steps."""
        ...


def with_misses(chip: Chip, parts: Mapping[int, list[AnyStep]]) -> dict[int, list[AnyStep]]:
    """Return the steps of all cores with ``missed`` filled in; the cores work in step."""
    parts = {index: list(steps) for index, steps in parts.items()}
    cache = CacheRounds(chip)
    for number, round_ in enumerate(zip_longest(*parts.values())):
        present = [(index, s) for index, s in zip(parts, round_, strict=True) if s is not None]
        missed = cache.read([s.loads for _, s in present])
        for (index, s), bytes_ in zip(present, missed, strict=True):
            if any(size for size, _ in bytes_):
                parts[index][number] = replace(s, missed=bytes_)
        cache.write([piece for _, s in present for piece in s.stores])
    return parts


def emit_steps(body: StepEmitter, steps: Sequence[Step]) -> None:
    """Emit the program of a core."""
    body.begin()
    for step in steps:
        body.step(step)
    body.end()


def lower_steps(
    chip: Chip, body: StepEmitter, parts: Mapping[int, Sequence[KeyedStep]]
) -> tuple[Lowered, list[CoreStream]]:
    """Lower the programs of all cores; each distinct step is built only once, by ``body``.

    Steps with equal keys take equal times, though they use other data.
    """
    core = body.core
    # The instructions of all distinct steps are built on one core, and each step of the program is
    # the range of indices of its step's instructions.
    ranges: dict[tuple, np.ndarray] = {}

    def numbers(key: tuple, emit, *args) -> np.ndarray:
        if key not in ranges:
            first = len(core.instructions)
            emit(*args)
            ranges[key] = np.arange(first, len(core.instructions))
        return ranges[key]

    sequences = {}
    for index, steps in parts.items():
        some = [numbers(("begin",), body.begin)]
        some += [numbers(s.key, body.step, s) for s in steps]
        some.append(numbers(("end",), body.end))
        sequences[core.kind.name, index] = np.concatenate(some)
    return lower_sequences(chip, core.instructions, sequences)


def cube_kind(chip: Chip) -> str:
    """Return the name of the kind of core that has a unit FIX and the memories of a Cube.

    Raises
    ------
    ValueError
        If the chip has no such cores.
    """
    for kind in chip.kinds.values():
        if Unit.FIX in kind.units and kind.buffers.keys() >= {"L1", "L0A", "L0B", "L0C"}:
            return kind.name
    raise ValueError(f"chip must have cores with a unit FIX, not {chip.name}")
