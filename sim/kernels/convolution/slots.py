"""Slots of a buffer that one unit fills and another one reads, with reuse of their contents."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from vitruvian.sim.davinci import Core, Unit


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a slot.

    Attributes
    ----------
    slot : int
    load : bool
        True if the slot must be filled first.
    wait : bool
        True if the slot held something else before, which must have been read.
    release : bool
        True if this is the last use of the content, and the slot is filled again later.
    """

    slot: int
    load: bool
    wait: bool
    release: bool


def uses_of(keys: Iterable[Hashable], slots: int) -> list[Use]:
    """Return a use for each key; a content that is still in a slot is not loaded again.

    A new content replaces the one that has not been used for the longest time.

    Parameters
    ----------
    keys : iterable of hashable
        Names of the contents, in the order of their uses.
    """
    sequence = list(keys)
    held: dict[Hashable, int] = {}  # slots by content, the least recently used one first
    last: dict[int, int] = {}  # the index of the latest use of each slot
    places: list[int] = []
    loads: list[bool] = []
    waits: list[bool] = []
    releases = [False] * len(sequence)
    for index, key in enumerate(sequence):
        slot = held.pop(key, None)
        loads.append(slot is None)
        waits.append(slot is None and len(held) == slots)
        if slot is None:
            slot = held.pop(next(iter(held))) if len(held) == slots else len(held)
            if waits[-1]:
                releases[last[slot]] = True
        held[key], last[slot] = slot, index
        places.append(slot)
    return [Use(*fields) for fields in zip(places, loads, waits, releases, strict=True)]


class Ring:
    """The flags of some slots, whose uses are known in advance.

    Every set flag is waited for, so none stays set. A use is emitted in the order ``begin_write``,
    ``end_write``, ``begin_read``, ``end_read``.

    Parameters
    ----------
    source, target : Unit
        The unit that writes and the unit that reads.
    first : int
        The register of slot 0; the others follow.
    """

    def __init__(
        self, core: Core, source: Unit, target: Unit, uses: list[Use], first: int = 0
    ) -> None:
        self.core, self.source, self.target, self.first = core, source, target, first
        self._uses = iter(uses)

    def next(self) -> Use:
        """Return the next use."""
        return next(self._uses)

    def begin_write(self, use: Use) -> None:
        """Make the source wait until the slot may be filled."""
        if use.wait:
            self.core.wait_flag(self.target, self.source, self.first + use.slot)

    def end_write(self, use: Use) -> None:
        """Mark the slot as full."""
        self.core.set_flag(self.source, self.target, self.first + use.slot)

    def begin_read(self, use: Use) -> None:
        """Make the target wait until the slot is full."""
        if use.load:
            self.core.wait_flag(self.source, self.target, self.first + use.slot)

    def end_read(self, use: Use) -> None:
        """Let the source fill the slot again, if it will."""
        if use.release:
            self.core.set_flag(self.target, self.source, self.first + use.slot)
