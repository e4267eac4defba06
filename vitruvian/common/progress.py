"""Progress of a command: a bar on a terminal, and elsewhere a line every ten seconds."""

import sys
import threading
import time
from types import TracebackType

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichProgress

from vitruvian.common.table import SafeConsole
from vitruvian.common.validate import printable

#: Seconds between two lines if standard error is not a terminal.
_PAUSE_S = 10.0


class Progress:
    """A context manager that shows the progress of one task on standard error.

    Parameters
    ----------
    task : str
        Description of the work.
    total : int, optional
        Number of steps, if it is known.
    bar : bool
        If True, draw a bar.
    counts : bool
        If True, show the number of finished steps and the total beside the bar.
    lines : bool
        If True, print lines if standard error is not a terminal. A command that prints its rows as
        they finish needs no such lines.
    after_s : float
        Show nothing before so many seconds have passed, so that short work leaves a terminal alone.
    """

    def __init__(
        self,
        task: str = "",
        total: int | None = None,
        *,
        bar: bool = True,
        counts: bool = True,
        lines: bool = True,
        after_s: float = 0.0,
    ):
        self._console = SafeConsole(stderr=True)
        self.terminal: bool = self._console.is_terminal
        self._lines = lines and not self.terminal
        self._columns: list[ProgressColumn] = [TextColumn("{task.description}")]
        self._columns += [BarColumn()] * bar
        self._columns += [MofNCompleteColumn()] * counts
        self._columns += [TextColumn("{task.fields[note]}"), TimeElapsedColumn()]
        self._bar: RichProgress | None = None
        self._task, self._done, self._total, self._note = task, 0, total, ""
        self._began = self._printed = time.monotonic()
        self._timer = threading.Timer(after_s, self._start) if after_s else None
        self._lock, self._ended = threading.Lock(), False

    def __enter__(self) -> "Progress":
        self._began = self._printed = time.monotonic()
        if self.terminal and self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        elif self.terminal:
            self._start()
        return self

    def _start(self) -> None:
        """Draw the bar, unless the work has ended."""
        with self._lock:
            if self._ended:
                return
            # The bar disappears at the end, so that only results remain on the terminal.
            bar = RichProgress(*self._columns, console=self._console, transient=True)
            self._line = bar.add_task(
                escape(self._task), total=self._total, completed=self._done, note=self._note
            )
            bar.start()
            self._bar = bar

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, task: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps are finished and that ``task`` is running."""
        self.update(task, done=done, total=total)

    def advance(self) -> None:
        """Count one more step."""
        self.update(done=self._done + 1)

    def update(
        self,
        task: str | None = None,
        *,
        done: int | None = None,
        total: int | None = None,
        note: str | None = None,
    ) -> None:
        """Show the values that are given, and keep the others.

        Parameters
        ----------
        task : str, optional
            Description of the work.
        done, total : int, optional
            Number of finished steps, and of all steps.
        note : str, optional
            Text behind the counts.
        """
        self._task = self._task if task is None else task
        self._done = self._done if done is None else done
        self._total = self._total if total is None else total
        self._note = self._note if note is None else note
        # The timer's thread may just be drawing the bar with the values of before.
        with self._lock:
            if self._bar is not None:
                self._bar.update(
                    self._line,
                    # Names of tasks may contain brackets, which rich would read as markup.
                    description=escape(self._task),
                    completed=self._done,
                    total=self._total,
                    note=escape(self._note),
                )
        if self._lines and time.monotonic() - self._printed > _PAUSE_S:
            self._printed = time.monotonic()
            count = f"[{self._done:,}/{self._total:,}] " if self._total else ""
            text = " ".join(part for part in (self._task, self._note) if part)
            seconds = self._printed - self._began
            print(f"{count}{printable(text)} ({seconds:.0f} s)", file=sys.stderr, flush=True)
