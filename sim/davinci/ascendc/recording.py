"""One core's kernel: its process is started, and its records go to the sink."""

import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci.cce.intrinsics.runtime import TEXT_LIMIT, Address, IntrinsicCall
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import Scalar, encode
from vitruvian.sim.davinci.cce.sink.context import GM_BASE
from vitruvian.sim.davinci.cce.sink.program import ProgramSink
from vitruvian.sim.davinci.cce.sink.scheduler import Scheduler
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.program.program import Core
from vitruvian.sim.davinci.semantics.functional import Functional
from vitruvian.sim.davinci.semantics.vectors import joined_extremes

from .branches import ScalarRead, ScalarReads
from .calls import call_of
from .compile import NativeKernel
from .header import TYPES
from .places import Places
from .polling import LINE_BYTES, Polls
from .process import KernelPipes, KernelProcess, ending
from .records import Reader, RecordError

_DUMPED = {"G": GM, "U": "UB", "1": "L1", "C": "L0C"}

#: The number of loads in a row after which a kernel gives way to other cores.
_POLLS = 64

#: The most cores that run together so that they can poll for each other's writes.
_MOST_TOGETHER = 128

#: Registers by number, and the instructions that set them.
_REGISTERS = (
    ("sum", "vcadd with mode 1"),
    ("extreme", "vcmax or vcmin"),
    ("taken", "a vmrgsort4 that stops when a list is exhausted"),
)

#: The most calls that a kernel's records keep.
_MOST_CALLS = 1 << 16

#: The largest alignment of a structure's members in bytes.
_MOST_ALIGNED = 8

#: The most elements of a DumpTensor.
_MOST_DUMPED = 1 << 16


class NativeSink(ProgramSink):
    """A sink that knows what registers of the vector unit hold.

    The documentation of AscendC defines them: ReduceSum for the 910B, and
    GetReduceRepeatMaxMinSpr.

    Attributes
    ----------
    kept : int
        The number of elements that the latest vreduce has kept.
    """

    kept = 0

    def __init__(
        self, core: Core, functional: Functional | None = None, scheduler: Scheduler | None = None
    ):
        super().__init__(core, functional, scheduler)
        self._extremes: list[tuple[int, Instruction]] = []  # of the latest intrinsic

    def register(self, name: str) -> int | None:
        """Return a register of ``Memory.registers``, or None if no instruction has set it."""
        assert self.functional is not None
        return self.functional.memory(self.core).registers.get(name)

    def issue(self, call: IntrinsicCall, content: bytes = b"") -> None:
        """Append an intrinsic, as ``ProgramSink`` does."""
        self._extremes.clear()
        super().issue(call, content)
        if len(self._extremes) > 1 and self.functional is not None:
            # A vector that is counted is several instructions.
            registers = self.functional.memory(self.core).registers
            registers["extreme"] = joined_extremes(self._extremes)
        if call.name.startswith("vreduce"):
            last = self.core.instructions[-1]
            if last.op == "vreduce":
                self.kept = last.writes[0].nbytes // last.operands["dst"].itemsize

    def _execute(self, functional: Functional, instr: Instruction) -> None:
        super()._execute(functional, instr)
        if instr.op in ("vcmax", "vcmin"):
            register = functional.memory(self.core).registers.get("extreme")
            if register is not None:
                self._extremes.append((register, instr))


class Recording:
    """The kernel of one core while it runs.

    Parameters
    ----------
    kernel : NativeKernel
        The compiled kernel.
    sink : NativeSink
        The receiver of its work.
    places : Places
        The lines of the program's places.
    limit : int
        The most intrinsics and scalar accesses.
    seconds : int
        The most seconds of CPU time.
    polls : Polls
        Receives the accesses to global memory.
    reads : ScalarReads, optional
        Receives the scalar reads, and may answer other values.
    """

    def __init__(
        self,
        kernel: NativeKernel,
        sink: NativeSink,
        places: Places,
        limit: int,
        seconds: int,
        polls: Polls,
        reads: ScalarReads | None = None,
    ):
        self.kernel, self.sink, self.places = kernel, sink, places
        self.limit, self.seconds, self.polls, self.reads = limit, seconds, polls, reads
        self.issued = 0
        self._calls: dict[bytes, IntrinsicCall] = {}
        self._chains: dict[bytes, bytes] = {}  # of intrinsics on global memory, by record
        self._line = -1  # of the latest scalar store to global memory
        self._written: set[bytes] = set()  # places that have written to global memory
        self.polled = 0  # loads since the kernel last wrote to global memory
        self.printed = 0
        self.gm_bytes = 0
        self.last = SourcePosition(kernel.file, 1)

    def run(self, ids: tuple[int, ...], values: Mapping[str, Any]) -> None:
        """Run the kernel to its end.

        Parameters
        ----------
        ids : tuple of int
            The block, the number of blocks, the core in its group, the cores of a group, and the
            bytes of global memory.
        values : mapping of str to number
            The arguments by parameter name; a pointer is an address.

        Raises
        ------
        CceError
            If the kernel makes a mistake, or does not end.
        """
        process = KernelProcess(self.kernel.program, ids[4], self.seconds)
        try:
            with self.watched():
                self._start(process, ids, values)
            self.follow(process, ids[4])
        finally:
            process.end()

    def follow(self, process: KernelPipes, gm_bytes: int) -> None:
        """Take the records of a kernel to its end.

        Parameters
        ----------
        process : KernelPipes
            The pipes of the process that runs the kernel.
        gm_bytes : int
            The bytes of global memory.

        Raises
        ------
        CceError
            As for ``run``.
        """
        self.gm_bytes = gm_bytes
        with self.watched():
            while (record := process.next()) is not None:
                if record.kind == "E":
                    record.chain()
                    return
                self._take(record, process)
        why = ending(process.end())
        raise CceError(self.last, f"the kernel broke off after this line: {why}")

    @contextmanager
    def watched(self) -> Generator[None]:
        """Turn damaged records and a process that hangs into a ``CceError``."""
        try:
            yield
        except RecordError as error:
            raise CceError(self.last, f"the kernel damaged its records: {error}") from None
        except TimeoutError:
            message = f"the kernel must go on within {2 * self.seconds} s; it hangs after this line"
            raise CceError(self.last, message) from None

    def _start(self, process: KernelPipes, ids: tuple[int, ...], values: Mapping[str, Any]) -> None:
        """Check the compiled parameters and send the arguments."""
        record = process.next()
        if record is None or record.kind != "H":
            raise CceError(self.last, f"the kernel did not start: {ending(process.end())}")
        count = record.take("B")
        parameters = self.kernel.parameters
        if count != len(parameters):
            raise UserError(
                f"{self.kernel.file}: {self.kernel.name} has {count} parameters, "
                f"but its text shows {len(parameters)}"
            )
        reply = [struct.pack("<5Q", *ids)]
        for parameter in parameters:
            tag, type, size = chr(record.take("B")), record.take("B"), record.take("I")
            data = _encoded(parameter.name, values[parameter.name], tag, type, size)
            reply.append(struct.pack("<I", size) + data)
        record.chain()
        process.reply(b"".join(reply))

    def _take(self, record: Reader, process: KernelPipes) -> None:
        kind = record.kind
        if kind == "I":
            call = self._call(record)
            self.last = call.position
            self._count(call.position)
            self._line = -1
            if "gm" not in call.name:
                self.sink.issue(call, record.data)
                return
            place = self._chains[record.data]
            if "_to_gm" in call.name:  # others may wait for it
                self.polled = 0
                self._before_write(place)
            first = len(self.sink.core.instructions)
            self.sink.issue(call, record.data)
            self.polls.note(self.sink.core, first, place, record.data)
        elif kind in "LS":
            self._access(record, process, store=kind == "S")
        elif kind == "P":
            text = record.text()
            position = self._at(record)
            room = TEXT_LIMIT - self.printed
            self.printed += len(text)
            if room > 0:
                self.sink.print(text[:room], position)
        elif kind == "Q":
            self._answer(record, process)
        elif kind == "D":
            self._dump(record)
        else:
            self._stop(record)

    def _answer(self, record: Reader, process: KernelPipes) -> None:
        """Send the value of a register: 0 is the number of elements that vreduce has kept.

        The others are those of ``Memory.registers``. Nothing checks the order of such a read and
        the instruction that sets the register.
        """
        number = record.take("B")
        if number > len(_REGISTERS):
            raise RecordError("a register is unknown")
        self._count(self._at(record))
        value = self.sink.kept
        if number:
            name, source = _REGISTERS[number - 1]
            value = self.sink.register(name)
            if value is None:
                raise CceError(self.last, f"{source} must come before a read of its register")
        process.reply(value.to_bytes(8, "little"))

    def _call(self, record: Reader) -> IntrinsicCall:
        """Return the call of an intrinsic; equal records of one place have equal calls."""
        known = self._calls.get(record.data)
        if known is None:
            name, arguments = record.intrinsic()
            chain = record.chain()
            known = call_of(name, arguments, self.gm_bytes, self._position(chain))
            if "gm" in name:
                self._chains[record.data] = chain
            if len(self._calls) < _MOST_CALLS:
                self._calls[record.data] = known
        return known

    def _at(self, record: Reader) -> SourcePosition:
        return self._position(record.chain())

    def _position(self, chain: bytes) -> SourcePosition:
        self.last = self.places.position(chain)
        return self.last

    def _before_write(self, place: bytes) -> None:
        """Let other cores run before a place writes to global memory for the first time.

        Those that poll for the write then see that it has not come yet.
        """
        scheduler = self.sink.scheduler
        if place in self._written or scheduler is None:
            return
        self._written.add(place)
        if len(scheduler.tasks) <= _MOST_TOGETHER:
            scheduler.give_way(self.sink.core)

    def _count(self, position: SourcePosition) -> None:
        self.issued += 1
        if self.issued > self.limit:
            message = f"the kernel must end within {self.limit} intrinsics and scalar accesses"
            raise CceError(position, f"{message}; it is here (--steps or limit= allows more)")

    def _access(self, record: Reader, process: KernelPipes, *, store: bool) -> None:
        """Carry out a scalar access, in words of at most 8 bytes."""
        address, size = record.take("Q"), record.take("B")
        if size not in (1, 2, 4, 8, 16, 32, 64):
            raise RecordError("a scalar access has a wrong size")
        data = record.take_bytes(size) if store else b""
        chain = record.chain()
        position = self._position(chain)
        self._count(position)
        self.polled = 0 if store else self.polled + 1
        if self.polled >= _POLLS and self.sink.scheduler is not None:
            self.polled = 0
            self.sink.scheduler.give_way(self.sink.core)
        space = GM if address >= GM_BASE else "UB"
        self._check(space, address, size, position)
        if space == GM:
            line = address // LINE_BYTES if store else -1
            if store and line != self._line:  # a line is written back as a whole
                self._before_write(chain)
            self._line = line
        first = len(self.sink.core.instructions)
        word = min(size, 8)
        dtype = f"uint{8 * word}"
        loaded = b""
        for at in range(0, size, word):
            place = Address(space, address + at, dtype)
            if store:
                value = int.from_bytes(data[at : at + word], "little")
                self.sink.store(place, value, position)
            else:
                loaded += int(self.sink.load(place, position)).to_bytes(word, "little")
        if space == GM:
            self.polls.note(self.sink.core, first, chain, record.data)
        if not store:
            process.reply(self._answer_read(chain, position, space, address, loaded))

    def _answer_read(
        self, chain: bytes, position: SourcePosition, space: str, address: int, loaded: bytes
    ) -> bytes:
        """Return what the kernel gets for what a scalar access has loaded."""
        if self.reads is None or len(loaded) > 8:
            return loaded
        value = int.from_bytes(loaded, "little")
        place = address - GM_BASE if space == GM else address
        read = ScalarRead(position, space, place, len(loaded), value)
        answer = self.reads.answer((self.kernel.kind, chain), read)
        return answer.to_bytes(len(loaded), "little")

    def _check(self, space: str, address: int, size: int, position: SourcePosition) -> None:
        buffers = self.sink.core.kind.buffers
        if space != GM and space not in buffers:
            raise CceError(
                position,
                f"a scalar access to address {address:#x}: {self.sink.core} has no {space}",
            )
        base, end = (GM_BASE, self.gm_bytes) if space == GM else (0, buffers[space].nbytes)
        if not base <= address <= base + end - size:
            message = f"a scalar access of {size} bytes reaches outside {space}: {address:#x}"
            raise CceError(position, message)

    def _dump(self, record: Reader) -> None:
        space, type = _DUMPED.get(chr(record.take("B"))), record.take("B")
        address, number, count = record.take("Q"), record.take("I"), record.take("I")
        position = self._at(record)
        element = TYPES[type] if type < len(TYPES) else None
        if space is None or not isinstance(element, Scalar) or count > _MOST_DUMPED:
            raise CceError(
                position, f"DumpTensor must be of 1 to {_MOST_DUMPED} numbers, not {count}"
            )
        self._check(space, address, element.size * count, position)
        values = self.sink.peek(Address(space, address, element.dtype), count, position)
        shown = ", ".join(f"{v:f}" if element.is_float else str(v) for v in values)
        self.sink.print(f"DumpTensor: desc={number}, position={space}\n[{shown}]\n", position)

    def _stop(self, record: Reader) -> None:
        """Raise the error of a record with which the kernel ends."""
        kind = record.kind
        if kind in "MA":
            text = record.text()
            position = self._at(record)
            if kind == "M":
                raise CceError(position, f"{text}: the simulator does not have this intrinsic")
            raise CceError(position, f"the assertion {text} failed")
        if kind not in "FUXB":
            raise RecordError("a record is of an unknown kind")
        address = record.take("Q")
        position = self._at(record)
        if kind == "X":
            message = f"the kernel must end within {self.seconds} s of CPU time; it is here"
            raise CceError(position, f"{message} (--seconds allows more)")
        where = f"the address {address:#x}" if address < 1 << 48 else "the address"
        messages = {
            "F": f"segmentation fault: {where} is in no memory of the kernel",
            "U": f"the scalar access to {where} has a form that is not known here",
            "B": "the kernel aborts here (SIGABRT, SIGFPE or SIGILL)",
        }
        raise CceError(position, messages[kind])


def _encoded(name: str, value: Any, tag: str, type: int, size: int) -> bytes:
    """Return an argument as bytes of a compiled parameter."""
    if tag == "p" and size == 8:
        return struct.pack("<Q", value)
    if tag != "s" and isinstance(value, bytes):
        raise UserError(f"--arg {name} must be a number, not a structure")
    element = TYPES[type] if type < len(TYPES) else None
    if tag in "if" and isinstance(element, Scalar) and element.size == size:
        if tag == "f":
            return encode(element, float(value))
        bits = 8 * size
        if not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits:
            raise UserError(f"--arg {name} must be an integer of {bits} bits, not {value!r}")
        return (value % (1 << bits)).to_bytes(size, "little")
    if tag == "s":
        if not isinstance(value, bytes):
            raise UserError(
                f"--arg {name} must be a structure of {size} bytes, as in struct:2If:64,8,0.5, "
                f"not {value!r}"
            )
        # The members may end before the structure, whose size is a multiple of their alignment.
        if not 0 <= size - len(value) < _MOST_ALIGNED:
            raise UserError(f"--arg {name} must have {size} bytes, not {len(value)}")
        return value.ljust(size, b"\0")
    raise UserError(f"--arg {name} must be a number, not {value!r}")
