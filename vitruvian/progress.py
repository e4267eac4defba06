"""One line of progress on the terminal for work that takes longer than two seconds."""

import sys
import time
from types import TracebackType


class Progress:
    """Called with (what, done, total); shows the latest on standard error until the end.

    Where standard error is no terminal, a line is printed at most every ten seconds.
    """

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._last = self._begin
        self._width = 0
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        line = f"[{done}/{total}] {what} ({now - self._begin:.0f} s)"
        if self._terminal and now - self._begin > 2:
            print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(line)
        elif not self._terminal and now - self._last > 10:
            print(line, file=sys.stderr, flush=True)
            self._last = now

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
