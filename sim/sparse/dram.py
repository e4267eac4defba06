"""A DRAM of several channels, read from a TOML file, and the time that it takes for requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vitruvian.common.compiling import fitting, tell_on_terminal
from vitruvian.common.toml_reader import TomlReader
from vitruvian.common.toml_table import TomlTable
from vitruvian.common.validate import one_of
from vitruvian.sim.sparse import dram_compiled
from vitruvian.sim.sparse.architecture import Architecture, ArchitectureError, read_text, table_of
from vitruvian.sim.sparse.dram_compiled import COMMAND_COLUMNS, RESULTS, DramChannel
from vitruvian.sim.sparse.external_dram import serve
from vitruvian.sim.sparse.requests import Requests

#: Memories by name: files of this folder.
MEMORIES = ("hbm2",)

#: Refreshes that a replay must see, so that their share does not depend on where it begins.
_REFRESHES = 8

#: Repetitions of a sweep's requests at most.
_REPEATS = 1000

_CHANNEL = ("groups", "group_banks", "row_atoms")
_QUEUES = ("queue", "bank_queue", "hits")
_TIMES = tuple(name for name in DramChannel._fields if name not in (*_CHANNEL, *_QUEUES))


@dataclass(frozen=True, kw_only=True)
class Dram:
    """A kind of memory.

    Attributes
    ----------
    name : str
    clock_hz : Fraction
        Clock of a channel's commands.
    atom_bytes : int
        Bytes of a burst, the least that is moved.
    interleave : int
        Bursts of successive addresses in a channel before those of the next channel.
    hashed : bool
        If True, the number of a row moves it on by as many banks, so that arrays whose distance is
        a multiple of all banks' rows do not meet in one bank.
    channel : DramChannel
    sources : mapping of str to str
    """

    name: str
    clock_hz: Fraction
    atom_bytes: int
    interleave: int
    hashed: bool
    channel: DramChannel
    sources: Mapping[str, str] = field(compare=False)

    @property
    def channel_bytes_per_s(self) -> Fraction:
        """The peak rate of a channel."""
        return self.atom_bytes * self.clock_hz / self.channel.burst

    def replaced(self, **times: int) -> "Dram":
        """Return a memory of which some times or sizes of a channel are others."""
        return replace(self, channel=self.channel._replace(**times))


@dataclass(frozen=True)
class Replay:
    """What a memory needs for the requests of a sweep.

    Attributes
    ----------
    seconds : float
        Up to the last data.
    ideal_seconds : float
        Of the bytes that were asked for, at the peak rate.
    asked, moved : int
        Bytes that were asked for, and that bursts moved.
    row_hits : float
        Share of the bursts for which no row had to be opened.
    """

    seconds: float
    ideal_seconds: float
    asked: int
    moved: int
    row_hits: float

    @cached_property
    def slowdown(self) -> Fraction:
        """Time over that of the peak rate, to three decimals."""
        if not self.asked:
            return Fraction(1)
        return Fraction(round(1000 * self.seconds / self.ideal_seconds), 1000)


@dataclass(frozen=True)
class DramMemory:
    """The memory of a machine: channels of a kind that have the machine's bandwidth together.

    A scaled-down machine may have less bandwidth than one channel. It gets one channel, and
    ``joined`` steps in turn, so that a loader has as many bytes in a turn as at full size.
    """

    dram: Dram
    channels: int
    joined: int
    command: str | None = None

    @classmethod
    def of(
        cls, dram: Dram, architecture: Architecture, *, command: str | None = None
    ) -> "DramMemory":
        """Return the memory of a machine; ``command`` is a DRAMsim3 that computes its times."""
        share = architecture.memory_bytes_per_s / dram.channel_bytes_per_s
        return cls(dram, max(1, round(share)), max(1, round(1 / share)), command)

    def split(self, requests: Requests) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the bursts, numbered within their channel, and the writes of each channel."""
        writes, few = requests.writes, self.dram.interleave
        above, column = np.divmod(requests.atoms, few)
        local = (above // self.channels) * few + column
        if self.dram.hashed:
            local = _permuted(local, self.dram.channel)
        number = above % self.channels
        return [(local[number == c], writes[number == c]) for c in range(self.channels)]

    def replay(self, requests: Requests) -> Replay:
        """Return the time in which the memory serves requests as fast as it can.

        The requests are repeated until some refreshes have passed. Each time, the last data takes
        the latency of a closed row, because the next sweep does not start before.
        """
        channel = self.dram.channel
        cycles, opened, count = 0.0, 0, 0
        for atoms, writes in self.split(requests):
            if not len(atoms):
                continue
            least = _REFRESHES * channel.refi // channel.burst
            times = min(_REPEATS, max(1, -(-least // len(atoms))))
            took, activates = self.serve(np.tile(atoms, times), np.tile(writes, times))
            latency = channel.rcd_read + channel.cl if times > 1 else 0
            cycles = max(cycles, took / times + latency)
            opened += activates / times
            count += len(atoms)
        peak = float(self.channels * self.dram.channel_bytes_per_s)
        return Replay(
            cycles / float(self.dram.clock_hz),
            requests.asked / peak,
            requests.asked,
            count * self.dram.atom_bytes,
            1 - opened / count if count else 1.0,
        )

    def serve(self, atoms: np.ndarray, writes: np.ndarray) -> tuple[int, int]:
        """Return the cycles and the activates of a channel."""
        if self.command is not None:
            return serve(self.command, self.dram.channel, self.dram.atom_bytes, atoms, writes)
        tell_on_terminal()
        log = np.zeros((0, len(COMMAND_COLUMNS)), np.int64)
        found = fitting(dram_compiled.replay, len(atoms))(atoms, writes, self.dram.channel, log)
        of = dict(zip(RESULTS, found.tolist(), strict=True))
        return of["cycles"], of["activates"]


def _permuted(atoms: np.ndarray, channel: DramChannel) -> np.ndarray:
    """Return bursts whose bank is moved on by the number of the row."""
    banks = channel.groups * channel.group_banks
    above, column = np.divmod(atoms, channel.row_atoms)
    row, bank = np.divmod(above, banks)
    return (row * banks + (bank + row) % banks) * channel.row_atoms + column


def load_dram(name: str | Path) -> Dram:
    """Load a memory by its name, or from a TOML file.

    Raises
    ------
    ArchitectureError
        If the file is absent, is too large, or has a mistake.
    UserError
        If the name is unknown.
    """
    path = Path(name)
    if path.suffix != ".toml":
        one_of("memory", str(name), MEMORIES)
        path = Path(__file__).with_name(f"{name}.toml")
    reader = TomlReader(read_text(path, "memory"), str(path), "memory", ArchitectureError)
    top = TomlTable(reader, (), reader.data)
    channel, timing, controller = tables = [
        table_of(top, key) for key in ("channel", "timing", "controller")
    ]
    numbers = {
        **{key: channel.whole(key) for key in _CHANNEL},
        # No refresh and no gap of the bus are allowed.
        **{key: timing.whole(key, low=0, high=1 << 20) for key in _TIMES},
        **{key: controller.whole(key) for key in _QUEUES},
    }
    dram = Dram(
        name=top.word("name"),
        clock_hz=channel.number("clock_mhz", zero=False, scale=10**6),
        atom_bytes=channel.whole("atom_bytes"),
        interleave=channel.whole("interleave"),
        hashed=channel.whole("hashed", low=0, high=1) == 1,
        channel=DramChannel(**numbers),
        sources=MappingProxyType(reader.sources),
    )
    for table in tables:
        table.done()
    for key in top.data:
        if key not in top.taken:
            reader.fail((key,), f"{key} must be one of the keys {', '.join(sorted(top.taken))}")
    return dram
