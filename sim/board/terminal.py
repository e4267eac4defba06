"""A simulated board behind a pseudo-terminal, which programs open like a serial port."""

import contextlib
import os
import select
import time
import tty

from .model import LineModel

#: Seconds that a call of the model should take, so that Ctrl-C has an effect soon.
_SLICE_S = 0.05
_FIRST_CYCLES = 1000


class Terminal:
    """A pseudo-terminal with a board at its other end.

    The board's clock runs only while there is something to do: while bytes are on the line, and
    while the board works on a request.

    Parameters
    ----------
    model : LineModel
        The board.

    Attributes
    ----------
    path : str
        The device for the host.
    received, sent : int
        Bytes from and to the host so far.
    """

    def __init__(self, model: LineModel):
        self.model = model
        self.received = self.sent = 0
        self._cycles = _FIRST_CYCLES
        # The host's side stays open here, so that hosts may come and go.
        self._file, self._other = os.openpty()
        tty.setraw(self._other)
        os.set_blocking(self._file, False)
        self.path = os.ttyname(self._other)
        self._wake, self._stop = os.pipe()

    def serve(self, idle_s: float | None = None) -> None:
        """Pass bytes on until ``stop`` is called, or no byte has come for ``idle_s`` seconds."""
        working, last = False, time.monotonic()
        while True:
            wait = None if idle_s is None else max(last + idle_s - time.monotonic(), 0)
            ready = select.select([self._file, self._wake], [], [], 0 if working else wait)[0]
            if self._wake in ready or not (ready or working):
                return
            data = os.read(self._file, 4096) if ready else b""
            if ready:
                last = time.monotonic()
            working = self._step(data)

    def stop(self) -> None:
        """End ``serve``, which runs in another thread."""
        os.write(self._stop, b"x")

    def _step(self, data: bytes) -> bool:
        """Run the board for a while, and return True if it has not become idle."""
        self.received += len(data)
        began, cycles = time.perf_counter(), self.model.cycles
        back = self.model.exchange(data, limit=self._cycles)
        seconds, ran = time.perf_counter() - began, self.model.cycles - cycles
        working = ran == self._cycles
        if working:
            wanted = round(ran * _SLICE_S / max(seconds, 1e-6))
            self._cycles = min(max(wanted, _FIRST_CYCLES), 2 * self._cycles)
        # Like a serial line, the terminal loses bytes that nobody reads in time.
        with contextlib.suppress(BlockingIOError):
            self.sent += os.write(self._file, back)
        return working

    def close(self) -> None:
        """Remove the terminal."""
        for file in (self._file, self._other, self._wake, self._stop):
            os.close(file)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
