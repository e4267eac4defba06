"""Worker processes that report their progress and are killed with all their children.

Unlike a pool of ``concurrent.futures``, this one reports which call a worker was running when it
was killed, continues with the other calls, and ends at once on a signal.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, Literal

from vitruvian.common import interrupt
from vitruvian.common.errors import WorkError


class WorkerKilled(WorkError):
    """A worker process ended during a call, for example because the memory was exhausted."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function call that a worker process executes.

    Attributes
    ----------
    key : hashable
        Identifier of the call in its events.
    function : callable
        A function at the top level of a module, so that it can be pickled.
    arguments : tuple
        Arguments of the function, which must be picklable.
    """

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Event:
    """A report about a call.

    Attributes
    ----------
    key : hashable
        Identifier of the call.
    kind : str
        "told" if the function has called ``tell``, "done" if it has returned, or "failed" if it
        has raised an exception or its process has ended.
    value : object
        The argument of ``tell``, the result, or the exception, which is ``WorkerKilled`` if the
        process has ended.
    """

    key: Any
    kind: str
    value: Any


class Workers:
    """A pool of worker processes, and a context manager that kills them all at its end.

    Parameters
    ----------
    jobs : int
        Largest number of processes; a process starts when there is a call for it.
    start : str
        "spawn" or "fork". A forked worker need not import its modules again, but it must not need
        a lock that another thread of the parent may hold.
    """

    def __init__(self, jobs: int, *, start: Literal["spawn", "fork"] = "spawn"):
        self._jobs = jobs
        self._context: Any = multiprocessing.get_context(start)
        self._workers: dict[connection.Connection, Any] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in list(self._workers):
            self._end(pipe)

    def run(self, calls: Iterable[Call]) -> Iterator[Event]:
        """Execute calls in order, one at a time in each process, and yield their events.

        The next call is taken from ``calls`` only when a process is free for it.

        Raises
        ------
        KeyboardInterrupt
            If the command was told to stop.
        """
        waiting = iter(calls)
        idle = list(self._workers)
        busy: dict[connection.Connection, Call] = {}
        more = True
        while True:
            while more and len(busy) < self._jobs:
                call = next(waiting, None)
                if call is None:
                    more = False
                    break
                pipe = idle.pop() if idle else self._start()
                busy[pipe] = call
                with contextlib.suppress(OSError):  # the loop below notices a worker that has ended
                    pipe.send((call.function, call.arguments))
            if not busy:
                return
            for pipe in connection.wait(list(busy)):
                assert isinstance(pipe, connection.Connection)
                call = busy[pipe]
                try:
                    kind, value = pipe.recv()
                except (EOFError, OSError):
                    kind, value = "failed", WorkerKilled(self._end(pipe))
                    del busy[pipe]
                else:
                    if kind != "told":
                        del busy[pipe]
                        idle.append(pipe)
                if interrupt.stopping():
                    raise KeyboardInterrupt
                yield Event(key=call.key, kind=kind, value=value)

    def _start(self) -> connection.Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        # Until the worker has a group of its own, a Ctrl-C in the terminal would reach it.
        with interrupt.blocked():
            process.start()
            assert process.pid is not None
            self._workers[ours] = process
            interrupt.note_group(process.pid)
        theirs.close()
        return ours

    def _end(self, pipe: connection.Connection) -> str:
        """Kill a process and its children, and return how the process had ended by itself."""
        process = self._workers.pop(pipe)
        # A process that has just closed its pipe needs a moment until its exit code is known.
        process.join(0.05)
        code = process.exitcode
        interrupt.kill_group(process.pid)
        interrupt.forget_group(process.pid)
        process.join(1)
        pipe.close()
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            memory = "; is there too little memory?" if -code == signal.SIGKILL else ""
            return f"its process was killed by {name}{memory}"
        return f"its process ended with exit code {code}"


# The functions below run in a worker.

_pipe: connection.Connection | None = None
_sending = threading.Lock()  # a worker may build models in several threads
_listener: Callable[[Any], object] | None = None


def tell(value: Any) -> None:
    """Send ``value`` to the main process, or outside a worker to the function of ``listening``."""
    if _pipe is not None:
        with _sending:
            _pipe.send(("told", value))
    elif _listener is not None:
        _listener(value)


@contextlib.contextmanager
def listening(listener: Callable[[Any], object]) -> Generator[None]:
    """Call ``listener`` with each value that this process passes to ``tell`` during the block."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def _work(pipe: connection.Connection) -> None:
    global _pipe
    _pipe = pipe
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    interrupt.inherit_groups()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = "done", function(*arguments)
        except Exception as error:
            answer = "failed", error
        with _sending:
            try:
                pipe.send(answer)
            except OSError:
                return
            except Exception:  # the answer cannot be pickled
                pipe.send(("failed", RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # Group 0 is the worker's own group, which also contains the tools that it has started.
        os.killpg(0, signal.SIGKILL)
