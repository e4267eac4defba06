"""The process of a compiled kernel: its limits, its records, and its end."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .confine import confined
from .records import LARGEST, Reader, RecordError

#: Bytes of memory that a kernel may have besides its arrays.
_MEMORY = 1 << 31


class KernelPipes:
    """The pipes between the simulator and a kernel.

    Parameters
    ----------
    records : int
        The descriptor that the kernel's records come from.
    replies : int
        The descriptor that takes the replies.
    seconds : int
        Half the seconds in which a record must come.
    """

    def __init__(self, records: int, replies: int, seconds: int):
        self._records, self._replies, self._seconds = records, replies, seconds
        self._buffer, self._read = b"", 0  # and the number of its bytes that were read

    def next(self) -> Reader | None:
        """Return the next record, or None at the end of the process.

        Raises
        ------
        RecordError
            If the bytes are no record.
        TimeoutError
            If the process neither works nor ends.
        """
        # Most records are in the buffer already: this is the hottest part of a recording.
        start = self._read + 4
        size = int.from_bytes(self._buffer[self._read : start], "little")
        end = start + size
        if 0 < size <= LARGEST and end <= len(self._buffer):
            self._read = end
            return Reader(self._buffer[start:end])
        head = self._bytes(4)
        if len(head) < 4:
            return None
        size = int.from_bytes(head, "little")
        if not 0 < size <= LARGEST:
            raise RecordError(f"a record must have at most {LARGEST} bytes, not {size}")
        data = self._bytes(size)
        return Reader(data) if len(data) == size else None

    def take(self, count: int) -> bytes:
        """Return bytes that follow a record.

        Raises
        ------
        RecordError
            If the process ends before it has sent them.
        """
        data = self._bytes(count)
        if len(data) < count:
            raise RecordError("a copy ends too early")
        return data

    def reply(self, data: bytes) -> None:
        """Send bytes to the process; one that has ended takes none."""
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._replies, data) :]

    def end(self) -> int | None:
        """Close the pipes; the exit status is not known."""
        os.close(self._records)
        os.close(self._replies)
        return None

    def _bytes(self, count: int) -> bytes:
        while len(self._buffer) - self._read < count:
            deadline = time.monotonic() + 2 * self._seconds + 5
            while not select.select([self._records], [], [], 1.0)[0]:
                if time.monotonic() > deadline:
                    raise TimeoutError
            part = os.read(self._records, 1 << 16)
            if not part:
                return b""
            self._buffer, self._read = self._buffer[self._read :] + part, 0
        start = self._read
        self._read += count
        return self._buffer[start : self._read]


class NamedPipes(KernelPipes):
    """The pipes of a process that another process starts, which finds them in a folder.

    Parameters
    ----------
    folder : str
        An empty folder.
    seconds : int
        As for ``KernelPipes``.
    """

    def __init__(self, folder: str, seconds: int):
        names = [os.path.join(folder, name) for name in ("records", "replies")]
        for name in names:
            os.mkfifo(name, 0o600)
        # Nobody writes yet; select waits for the first byte all the same.
        records = os.open(names[0], os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(records, True)
        # Opened for both, because nobody reads yet.
        super().__init__(records, os.open(names[1], os.O_RDWR), seconds)


class KernelProcess(KernelPipes):
    """A running kernel.

    Parameters
    ----------
    program : Path
        The compiled program.
    gm_bytes : int
        Bytes of the arrays in global memory, of which the process reserves two copies.
    seconds : int
        Seconds of CPU time after which the process is stopped.
    folders : sequence of str, optional
        For a host program, its working directory, and further folders in which it may change
        files.
    file_bytes : int
        The largest file that the process may write.
    """

    def __init__(
        self,
        program: Path,
        gm_bytes: int,
        seconds: int,
        folders: Sequence[str] | None = None,
        file_bytes: int = 0,
    ):
        memory = (_MEMORY + 2 * gm_bytes) >> 10
        limits = f"ulimit -S -t {seconds}; ulimit -H -t {seconds + 2}; ulimit -v {memory}; "
        limits += f'ulimit -f {file_bytes >> 9}; ulimit -c 0; ulimit -s 65536; exec "$@"'
        self._process = subprocess.Popen(
            ["sh", "-c", limits, "sh", *confined(program, folders=folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folders[0] if folders else "/",
            env={"LC_ALL": "C"},
            bufsize=0,
        )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # both are pipes
        super().__init__(stdout.fileno(), stdin.fileno(), seconds)

    def end(self) -> int | None:
        """Stop the process and return its exit status; a negative one is a signal."""
        with suppress(subprocess.TimeoutExpired):
            # A process whose output has ended ends soon, unless it is hostile.
            self._process.wait(0.5)
        if self._process.poll() is None:
            self._process.kill()
        status = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return status


def ending(status: int | None) -> str:
    """Return the words for the end of a process that sent no last record."""
    if status is None:
        return "it crashed or ended itself"
    if status < 0:
        try:
            return f"it was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"it was ended by signal {-status}"
    return f"it ended with exit code {status}"
