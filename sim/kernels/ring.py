"""Slots that one unit fills and another one reads, with the flags that order them.

A flag in the direction from the source to the target says that a slot is full, a flag in the other
direction that it is free. ``Ring`` emits both around the instructions of a ``with`` block:

>>> from vitruvian.sim.davinci import Program, Unit, load_chip
>>> program = Program(load_chip("ascend310"))
>>> x, y = (program.tensor(name, (8, 1024), "fp16") for name in "xy")
>>> core = program.core()
>>> u = core.allocate("UB", (2, 1024), "fp16")
>>> ring = Ring(core, Unit.MTE2, Unit.MTE3, 2, through=Unit.V)
>>> for piece in range(8):
...     with ring.write() as slot:
...         core.copy(u[slot], x[piece])
...     with ring.update() as slot:
...         core.vrelu(u[slot], u[slot])
...     with ring.read() as slot:
...         core.copy(y[piece], u[slot])
>>> ring.close()
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from vitruvian.sim.davinci import Core, Unit
from vitruvian.sim.davinci.program.builder import pass_on_positions

# Reports name the line of the kernel, not of this file.
pass_on_positions(__file__)

#: A flag: the unit that sets it, the unit that waits for it, and the register.
Flag = tuple[Unit, Unit, int]


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
    load: bool = True
    wait: bool = True
    release: bool = True


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
            # A dict keeps the order of insertion, so that its first key is the least recently used
            # one.
            slot = held.pop(next(iter(held))) if len(held) == slots else len(held)
            # The content before is done for: its last use tells the source that the slot is free.
            if waits[-1]:
                releases[last[slot]] = True
        held[key], last[slot] = slot, index
        places.append(slot)
    return [Use(*fields) for fields in zip(places, loads, waits, releases, strict=True)]


class SlotAccess:
    """The work of one unit on a slot: a context manager that waits first and signals in the end.

    Work that begins and ends in different functions calls ``begin`` and ``end`` instead.

    Parameters
    ----------
    slot : int
    waits, signals : tuple (source, target, register) or None
        The flags of the beginning and of the end.
    """

    __slots__ = ("core", "signals", "slot", "waits")

    def __init__(self, core: Core, slot: int, waits: Flag | None, signals: Flag | None) -> None:
        self.core, self.slot, self.waits, self.signals = core, slot, waits, signals

    def begin(self) -> int:
        """Make the unit wait until it may work on the slot, and return the slot."""
        if self.waits is not None:
            self.core.wait_flag(*self.waits)
        return self.slot

    def end(self) -> None:
        """Tell the next unit that this unit has done its work on the slot."""
        if self.signals is not None:
            self.core.set_flag(*self.signals)

    def __enter__(self) -> int:
        if self.waits is not None:
            self.core.wait_flag(*self.waits)
        return self.slot

    def __exit__(self, kind: object, *rest: object) -> None:
        # After an exception the program is not complete, and no flag would help.
        if kind is None and self.signals is not None:
            self.core.set_flag(*self.signals)


class _Together:
    """The context manager of ``together``."""

    __slots__ = ("accesses",)

    def __init__(self, *accesses: SlotAccess) -> None:
        self.accesses = accesses

    def __enter__(self) -> tuple[int, ...]:
        return tuple([access.begin() for access in self.accesses])

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            for access in self.accesses:
                access.end()


def together(*accesses: SlotAccess) -> _Together:
    """Return several accesses of one unit as one, which begin and end in the given order.

    Nested ``with`` statements would end them in the opposite order.
    """
    return _Together(*accesses)


class Ring:
    """The flags of some slots that are used in turn.

    ``write``, ``update`` and ``read`` return the next access of the source, of the unit between,
    and of the target. The flags of a slot have the same register in both directions.

    Parameters
    ----------
    source, target : Unit
        The unit that fills a slot and the unit that reads it.
    slots : int
        Number of slots.
    first : int
        The register of slot 0; the others follow.
    through : Unit, optional
        A unit that changes the content between the source and the target.
    back : bool
        If False, other flags already say when a slot is free, and the ring has no flags for it.
    plan : sequence of Use, optional
        All uses, if they are known. Flags for which nobody waits are then left out, so that the
        ring needs no ``close``. By default, all slots are free at first, and ``close`` waits for
        the last uses.
    start : bool
        If False, the caller marks the slots as free by ``open_rings``.
    """

    def __init__(
        self,
        core: Core,
        source: Unit,
        target: Unit,
        slots: int = 2,
        *,
        first: int = 0,
        through: Unit | None = None,
        back: bool = True,
        plan: Sequence[Use] | None = None,
        start: bool = True,
    ) -> None:
        self.core, self.slots, self.first = core, slots, first
        self.source, self.target = source, target
        # With a unit between, the source signals to it, and it signals to the target.
        self.after_source = target if through is None else through
        self.before_target = source if through is None else through
        self.through = through
        self.free_flags = slots if back and plan is None else 0
        # Accesses have no state: all uses of a slot with the same flags share one.
        self._writers: dict[tuple[int, bool], SlotAccess] = {}
        self._readers: dict[tuple[int, bool, bool], SlotAccess] = {}
        if plan is not None:
            self._uses = iter(plan)
            self._writes, self._reads = map(self._written, plan), map(self._read, plan)
            self._updates = map(self._updated, plan)
        else:
            uses = [Use(slot, wait=back, release=back) for slot in range(slots)]
            self._uses = cycle(uses)
            self._writes, self._reads = (
                cycle(map(self._written, uses)),
                cycle(map(self._read, uses)),
            )
            self._updates = cycle(map(self._updated, uses))
        if start:
            open_rings(self)

    def next(self) -> Use:
        """Return the next use of a plan, for ``write`` and ``read``."""
        return next(self._uses)

    def write(self, use: Use | None = None) -> SlotAccess:
        """Return the access of the source to the slot of the next use, or of a given one."""
        return next(self._writes) if use is None else self._written(use)

    def update(self, use: Use | None = None) -> SlotAccess:
        """Return the access of the unit between the source and the target."""
        return next(self._updates) if use is None else self._updated(use)

    def read(self, use: Use | None = None) -> SlotAccess:
        """Return the access of the target."""
        return next(self._reads) if use is None else self._read(use)

    def _written(self, use: Use) -> SlotAccess:
        key = use.slot, use.wait
        access = self._writers.get(key)
        if access is None:
            register = self.first + use.slot
            waits = (self.target, self.source, register) if use.wait else None
            signals = self.source, self.after_source, register
            access = self._writers[key] = SlotAccess(self.core, use.slot, waits, signals)
        return access

    def _updated(self, use: Use) -> SlotAccess:
        assert self.through is not None
        register = self.first + use.slot
        waits = (self.source, self.through, register)
        return SlotAccess(self.core, use.slot, waits, (self.through, self.target, register))

    def _read(self, use: Use) -> SlotAccess:
        key = use.slot, use.load, use.release
        access = self._readers.get(key)
        if access is None:
            register = self.first + use.slot
            waits = (self.before_target, self.target, register) if use.load else None
            signals = (self.target, self.source, register) if use.release else None
            access = self._readers[key] = SlotAccess(self.core, use.slot, waits, signals)
        return access

    def close(self) -> None:
        """Wait until all slots are free, so that no flag stays set."""
        close_rings(self)


def _free_flags(rings: Sequence[Ring]) -> Iterator[tuple[Core, Flag]]:
    """Yield the flags that say that slots are free: those of slot 0 of all rings first."""
    # Slot 0 of each ring is needed before slot 1 of any of them.
    for slot in range(max(ring.free_flags for ring in rings)):
        for ring in rings:
            if slot < ring.free_flags:
                yield ring.core, (ring.target, ring.source, ring.first + slot)


def open_rings(*rings: Ring) -> None:
    """Mark the slots of rings as free, slot by slot."""
    for core, flag in _free_flags(rings):
        core.set_flag(*flag)


def close_rings(*rings: Ring) -> None:
    """Wait until the slots of rings are free, slot by slot."""
    for core, flag in _free_flags(rings):
        core.wait_flag(*flag)


def ordered(core: Core, source: Unit, target: Unit, register: int = 0) -> None:
    """Make ``target`` wait here until ``source`` has ended all earlier work.

    No other flag of the two units may be under way in the register.
    """
    core.set_flag(source, target, register)
    core.wait_flag(source, target, register)
