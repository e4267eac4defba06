"""The process of a compiled kernel: its limits, its records, and its end."""

import os
import select
import shutil
import signal
import subprocess
import time
from functools import cache
from pathlib import Path

from .records import LARGEST, Reader, RecordError

#: Bytes of memory that a kernel may have besides its arrays.
_MEMORY = 1 << 31


@cache
def _isolation() -> tuple[str, ...]:
    """Return the words that start a program without a network, if the system allows it."""
    words = ("unshare", "--user", "--map-root-user", "--net", "--ipc")
    if shutil.which("unshare") is None:
        return ()
    done = subprocess.run(
        [*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return words if done.returncode == 0 else ()


class KernelProcess:
    """A running kernel.

    Parameters
    ----------
    program : Path
        The compiled program.
    gm_bytes : int
        Bytes of the arrays in global memory, of which the process reserves two copies.
    seconds : int
        Seconds of CPU time after which the process is stopped.
    folder : str
        The working directory.
    file_bytes : int
        The largest file that the process may write.
    """

    def __init__(
        self, program: Path, gm_bytes: int, seconds: int, folder: str = "/", file_bytes: int = 0
    ):
        memory = (_MEMORY + 2 * gm_bytes) >> 10
        limits = f"ulimit -S -t {seconds}; ulimit -H -t {seconds + 2}; ulimit -v {memory}; "
        limits += f'ulimit -f {file_bytes >> 9}; ulimit -c 0; ulimit -s 65536; exec "$@"'
        self._seconds = seconds
        self._process = subprocess.Popen(
            ["sh", "-c", limits, "sh", *_isolation(), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"LC_ALL": "C"},
            bufsize=0,
        )
        self._buffer = b""
        self._ended = False

    def next(self) -> Reader | None:
        """Return the next record, or None at the end of the process.

        Raises
        ------
        RecordError
            If the bytes are no record.
        TimeoutError
            If the process neither works nor ends.
        """
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
        stdin = self._process.stdin
        assert stdin is not None  # it is a pipe
        try:
            while data:
                data = data[stdin.write(data) or 0 :]
        except BrokenPipeError:
            pass

    def end(self) -> int:
        """Stop the process and return its exit status; a negative one is a signal."""
        if self._process.poll() is None:
            try:
                # Its output has ended, so that it ends soon unless it is hostile.
                self._process.wait(1.0 if self._ended else 0)
            except subprocess.TimeoutExpired:
                self._process.kill()
        status = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return status

    def _bytes(self, count: int) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None  # it is a pipe
        while len(self._buffer) < count:
            deadline = time.monotonic() + 2 * self._seconds + 5
            while not select.select([stdout], [], [], 1.0)[0]:
                if time.monotonic() > deadline:
                    raise TimeoutError
            part = os.read(stdout.fileno(), 1 << 16)
            if not part:
                self._ended = True
                return b""
            self._buffer += part
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data


def ending(status: int) -> str:
    """Return the words for the end of a process that sent no last record."""
    if status < 0:
        try:
            return f"it was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"it was ended by signal {-status}"
    return f"it ended with exit code {status}"
