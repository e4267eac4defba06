"""The serial port of a host, and the interface of anything that stands for it."""

import contextlib
import fcntl
import os
import select
import stat
import termios
import tty
from typing import Protocol

from vitruvian.common.errors import UserError, WorkError


class ByteStream(Protocol):
    """A line to a board: a serial port, or a stand-in for one."""

    def write(self, data: bytes) -> None:
        """Send bytes to the board."""
        ...

    def read(self, seconds: float) -> bytes:
        """Return the bytes that have come, after at most ``seconds`` if there are none."""
        ...

    def close(self) -> None:
        """Give the line back."""
        ...


class SerialPort:
    """A serial port of the operating system, opened in raw mode with 8N1.

    Parameters
    ----------
    path : str
        The device, for example /dev/ttyUSB0.
    baud : int
        Bits per second. A pseudo-terminal has none and ignores the number.

    Raises
    ------
    UserError
        If the path is not that of a serial port that can be opened, another program uses it, or
        the port does not support the rate.
    """

    def __init__(self, path: str, baud: int):
        self.path, self.baud = path, baud
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            rates = sorted(int(n[1:]) for n in dir(termios) if n[:1] == "B" and n[1:].isdecimal())
            names = ", ".join(str(rate) for rate in rates if rate >= 9600)
            raise UserError(f"baud must be a rate of this system ({names}), not {baud}")
        try:
            # A character device is checked before it is opened, because to open others may hang.
            if not stat.S_ISCHR(os.stat(path).st_mode):
                raise UserError(f"port must be a serial port, not the file {path!r}")
            # Without O_NOCTTY, a hang-up of the line could end the process; with O_NONBLOCK, no
            # carrier is waited for.
            self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise UserError(
                f"port must be a serial port that can be opened, not {path!r} ({reason})"
            ) from None
        try:
            self._configure(speed)
        except BaseException:
            self.close()
            raise

    def _configure(self, speed: int) -> None:
        """Lock the port, and set its rate and raw mode."""
        if not os.isatty(self._file):
            raise UserError(f"port must be a serial port, not the device {self.path!r}")
        try:
            # Two programs on one line would take each other's answers.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"port must not be in use by another program: {self.path!r}") from None
        try:
            tty.setraw(self._file)
            values = termios.tcgetattr(self._file)
            values[2] |= termios.CLOCAL | termios.CREAD
            values[2] &= ~(termios.CSTOPB | termios.PARENB | termios.CRTSCTS)
            # The fields of termios: 2 has the control flags, 4 and 5 the rates of input and output.
            values[4] = values[5] = speed
            termios.tcsetattr(self._file, termios.TCSANOW, values)
            # Bytes of an earlier program are no answers.
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except termios.error as error:
            raise UserError(
                f"port must support {self.baud} baud and 8N1: {self.path!r} ({error.args[-1]})"
            ) from None

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises
        ------
        WorkError
            If the port has gone, or takes no byte for 10 s.
        """
        rest = memoryview(data)
        try:
            while rest:
                if not select.select([], [self._file], [], 10)[1]:
                    raise WorkError(f"{self.path} takes no more bytes")
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            raise WorkError(f"{self.path} has gone: {error.strerror}") from None

    def read(self, seconds: float) -> bytes:
        """Return the bytes that have come, after at most ``seconds`` if there are none.

        Raises
        ------
        WorkError
            If the port has gone.
        """
        try:
            if not select.select([self._file], [], [], max(seconds, 0))[0]:
                return b""
            data = os.read(self._file, 4096)
        except OSError as error:
            raise WorkError(f"{self.path} has gone: {error.strerror}") from None
        if not data:
            raise WorkError(f"{self.path} has gone: end of file")
        return data

    def close(self) -> None:
        """Close the port."""
        with contextlib.suppress(OSError):
            os.close(self._file)
