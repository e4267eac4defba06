"""Host programs: their allocations and copies, and a program for each launch."""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.sink.context import GM_BASE
from vitruvian.sim.davinci.cce.sink.scheduler import Scheduler
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.semantics import Functional

from .branches import Rerun, ScalarReads
from .build import SECONDS, START
from .compile import NativeKernel
from .places import Places
from .polling import Polls
from .process import KernelProcess, NamedPipes, ending
from .recording import NativeSink, Recording
from .records import PART, Reader, RecordError

#: The largest file that a host program may write, and the most bytes that it may allocate.
FILE_BYTES = 1 << 30
_MOST_BYTES = 1 << 32

#: Alignment of tensors in global memory, as in ``Program.tensor``.
_ALIGN = 512


#: What becomes of a launch; see ``run_host``.
Finish = Callable[[Program, Functional], Mapping[str, np.ndarray]]


@dataclass
class _DeviceMemory:
    """The allocations of a host program, in their order.

    Attributes
    ----------
    arrays : list of ndarray
        The bytes of each allocation.
    starts : list of int
        The first byte of each.
    written : list of bool
        True for an allocation that the host or a kernel has written to.
    """

    arrays: list[np.ndarray] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    written: list[bool] = field(default_factory=list)
    bytes: int = 0

    def allocate(self, size: int, position: SourcePosition) -> int:
        start = round_up(self.bytes, _ALIGN)
        if start + size > _MOST_BYTES:
            raise CceError(position, f"aclrtMalloc: the arrays must fit {_MOST_BYTES} bytes")
        self.arrays.append(np.zeros(max(size, 1), np.uint8))
        self.starts.append(start)
        self.written.append(False)
        self.bytes = start + max(size, 1)
        return GM_BASE + start

    def part(self, address: int, count: int, position: SourcePosition) -> tuple[int, np.ndarray]:
        """Return the allocation, and the view of the bytes at an address."""
        place = address - GM_BASE
        for index in range(len(self.arrays) - 1, -1, -1):
            at = place - self.starts[index]
            if at >= 0:
                if at + count <= len(self.arrays[index]):
                    return index, self.arrays[index][at : at + count]
                break
        message = f"a copy of {count} bytes must be inside an allocation, not at {address:#x}"
        raise CceError(position, message)


class _HostProcess:
    """The host program compiled for one kind of core."""

    def __init__(self, kernel: NativeKernel, seconds: int, folder: str):
        self.kernel, self.seconds = kernel, seconds
        shown = {str(path): name for path, name in kernel.shown.items()}
        self.places = Places(kernel.program, shown, kernel.libraries)
        # The pipes of its blocks are made here, where the program may write.
        self.pipes = tempfile.TemporaryDirectory(prefix="vitruvian-")
        folders = (os.path.abspath(folder), self.pipes.name)
        self.process = KernelProcess(kernel.program, _MOST_BYTES, seconds, folders, FILE_BYTES)
        self.allocated = 0
        self.prints: list[str] = []
        self.last = SourcePosition(kernel.file, 1)

    def to_launch(
        self, memory: _DeviceMemory, *, leads: bool
    ) -> tuple[int, str, SourcePosition] | None:
        """Carry out requests up to the next launch; None at the end of the program.

        With several kinds of cores, the program runs once for each, and only the first one's
        copies to the device count.
        """
        while (record := self.process.next()) is not None:
            kind = record.kind
            if kind == "E":
                return None
            if kind == "K":
                blocks, name = record.take("Q"), record.text()
                return blocks, name, self._at(record)
            if kind == "G":
                self._allocate(record, memory, leads=leads)
            elif kind in "RW":
                self._copy(record, memory, leads=leads)
            elif kind == "P":
                text = record.text()
                self._at(record)
                if leads:
                    self.prints.append(text)
            else:
                self._fail(record)
        status = self.process.end()
        raise CceError(self.last, f"the host program broke off after this line: {ending(status)}")

    def _at(self, record: Reader) -> SourcePosition:
        self.last = self.places.position(record.chain())
        return self.last

    def _allocate(self, record: Reader, memory: _DeviceMemory, *, leads: bool) -> None:
        size = record.take("Q")
        position = self._at(record)
        if leads:
            address = memory.allocate(size, position)
        elif self.allocated < len(memory.starts):
            address = GM_BASE + memory.starts[self.allocated]
        else:
            raise CceError(position, "the program must allocate the same for all kinds of cores")
        self.allocated += 1
        self.process.reply(address.to_bytes(8, "little"))

    def _copy(self, record: Reader, memory: _DeviceMemory, *, leads: bool) -> None:
        address, count = record.take("Q"), record.take("I")
        position = self._at(record)
        if count > PART:
            raise RecordError("a copy is too long")
        index, part = memory.part(address, count, position)
        if record.kind == "R":
            self.process.reply(part.tobytes())
            return
        data = self.process.take(count)
        if leads:
            part[:] = np.frombuffer(data, np.uint8)
            memory.written[index] = True

    def _fail(self, record: Reader) -> None:
        if record.kind not in "FUXBLS":
            raise RecordError("a record of a host program is of an unknown kind")
        address = record.take("Q")
        messages = {
            "X": f"the host program must end within {self.seconds} s of CPU time; it is here",
            "B": "the host program aborts here (SIGABRT, SIGFPE or SIGILL)",
        }
        crash = f"the host program must not access {address:#x}: no memory of its own is there"
        if record.kind in "LS":
            raise RecordError("a host program has scalar accesses")
        raise CceError(self._at(record), messages.get(record.kind, crash))


def run_host(
    kernels: Mapping[str, NativeKernel],
    chip: Chip,
    finish: Finish,
    *,
    folder: str = ".",
    limit: int = 1_000_000,
    seconds: int = SECONDS,
    tell: Callable[[str], object] | None = None,
    rerun: Callable[[Rerun], object] | None = None,
    cube: str = "golden",
) -> int:
    """Run a host program, and build a program for each of its launches.

    Parameters
    ----------
    kernels : mapping of str to NativeKernel
        The host program compiled for each kind of core.
    chip : Chip
        The chip whose cores run the launches.
    finish : callable
        Receives the program of each launch and the memories after it, and returns the final arrays
        by name. The names are gm0, gm1 and so on, in the order of the allocations.
    folder : str
        The working directory of the host program, which may read and write files.
    limit, seconds
        As for ``build``.
    tell : callable, optional
        Receives what the host program prints after its last launch.
    rerun : callable, optional
        Receives, before ``finish``, a way to run the launch again; see ``branches``.
    cube : {"golden", "fast"}
        How products are computed; see ``Functional``.

    Returns
    -------
    int
        The number of launches.

    Raises
    ------
    ValueError
        If the host program or a kernel makes a mistake.
    """
    memory = _DeviceMemory()
    launches = 0
    hosts: list[_HostProcess] = []
    try:
        hosts += [_HostProcess(kernel, seconds, folder) for kernel in kernels.values()]
        for host in hosts:
            _begin(host)
        while True:
            found = []
            for host in hosts:
                try:
                    found.append(host.to_launch(memory, leads=host is hosts[0]))
                except RecordError as error:
                    message = f"the host program damaged its records: {error}"
                    raise CceError(host.last, message) from None
                except TimeoutError:
                    raise CceError(host.last, "the host program hangs after this line") from None
            if None in found:
                if tell is not None and hosts[0].prints:
                    tell("".join(hosts[0].prints))
                return launches
            _launch(hosts, found, memory, chip, finish, limit, rerun, cube)
            launches += 1
    finally:
        for host in hosts:
            host.process.end()
            host.places.close()
            host.pipes.cleanup()


def _begin(host: _HostProcess) -> None:
    record = host.process.next()
    if record is None or record.kind != "H":
        status = host.process.end()
        raise CceError(host.last, f"the host program did not start: {ending(status)}")
    host.process.reply(START.pack(0, 0, 0, 0, 0))


def _launch(
    hosts: list[_HostProcess],
    found: list[tuple[int, str, SourcePosition]],
    memory: _DeviceMemory,
    chip: Chip,
    finish: Finish,
    limit: int,
    rerun: Callable[[Rerun], object] | None,
    cube: str,
) -> None:
    """Run the blocks of a launch on every kind of core, and simulate them."""
    blocks, name, position = found[0]
    if any(each[:2] != (blocks, name) for each in found):
        raise CceError(position, "the program must launch the same for all kinds of cores")
    if not 1 <= blocks <= 65535:
        raise CceError(position, f"a launch must have 1 to 65535 blocks, not {blocks}")
    reads = None if rerun is None else ScalarReads()
    program, functional = _recorded(hosts, found[0], memory, chip, limit, reads, cube)
    program.prints[:0] = [("host", text) for text in hosts[0].prints]
    hosts[0].prints.clear()

    def again(other: ScalarReads) -> Program:
        return _recorded(hosts, found[0], memory, chip, limit, other, cube)[0]

    if rerun is not None and reads is not None:
        rerun(Rerun(again, reads))
    arrays = finish(program, functional)
    for host in hosts:
        host.process.reply(START.pack(0, 0, 0, 0, 0) + bytes(8))
    for name, array in arrays.items():
        number = int(name.removeprefix("gm"))
        memory.arrays[number][:] = array.view(np.uint8).ravel()
        memory.written[number] = True


def _recorded(
    hosts: list[_HostProcess],
    found: tuple[int, str, SourcePosition],
    memory: _DeviceMemory,
    chip: Chip,
    limit: int,
    reads: ScalarReads | None,
    cube: str,
) -> tuple[Program, Functional]:
    """Return the program of a launch, and the memories after it."""
    blocks, name, position = found
    program = Program(chip, name, blocks=blocks)
    for number, array in enumerate(memory.arrays):
        data = array if memory.written[number] else None
        program.tensor(f"gm{number}", array.shape, "uint8", data)
    functional = Functional(program, cube)
    scheduler, polls, tasks = Scheduler(), Polls(), []
    for host in hosts:
        host.places.begin()
        program.sources |= host.kernel.sources
        per = chip.kind(host.kernel.kind).per_group if len(hosts) > 1 else 1
        for index in range(blocks * per):
            core = program.core(index, host.kernel.kind)
            sink = NativeSink(core, functional, scheduler)
            recording = Recording(host.kernel, sink, host.places, limit, host.seconds, polls, reads)
            recording.last = position
            block, sub = divmod(index, per)
            ids = (block, blocks, sub, per, memory.bytes)
            tasks.append((core, partial(_run_block, host, recording, ids)))
    scheduler.run(tasks)
    polls.order(program)
    if reads is not None:
        reads.polls = polls.places
    for host in hosts:
        program.calls |= host.places.calls()
    return program, functional


def _run_block(host: _HostProcess, recording: Recording, ids: tuple[int, ...]) -> None:
    """Let the host program start a block, and follow it to its end."""
    with tempfile.TemporaryDirectory(dir=host.pipes.name) as folder:
        channel = NamedPipes(folder, host.seconds)
        try:
            name = os.fsencode(folder)
            if len(name) > 255:
                raise UserError(f"TMPDIR must be a shorter path than {folder!r}")
            start = START.pack(*ids) + (1).to_bytes(8, "little")
            host.process.reply(start + name.ljust(256, b"\0"))
            recording.follow(channel, ids[4])
        finally:
            channel.end()
    sink = recording.sink
    sink.core.position = None
    if sink.functional is not None:
        sink.functional.release(sink.core)
