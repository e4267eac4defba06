"""Worker processes that report what they do, and that die with all they have started.

Unlike a pool of :mod:`concurrent.futures` this one says which call a worker had when it was
killed, goes on without that call, and ends at once when it is told to.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, Literal

from vitruvian import interrupt
from vitruvian.errors import WorkError

__all__ = ["Call", "Event", "WorkerKilled", "Workers", "listening", "tell"]


class WorkerKilled(WorkError):
    """A worker process ended in the middle of a call, as the kernel does when memory runs out."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call for a worker.

    Attributes
    ----------
    key : hashable
        What its events are called.
    function : callable
        Function at the top of a module.
    arguments : tuple
        Its arguments, which must pickle.
    """

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple = ()


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a worker says of a call.

    Attributes
    ----------
    key : hashable
        The call's.
    kind : str
        "told" (`value` is what the function passed to `tell`), "done" (`value` is the result) or
        "failed" (`value` is the exception; WorkerKilled if the process is gone).
    value : object
        See `kind`.
    """

    key: Any
    kind: str
    value: Any


class Workers:
    """A fixed number of processes; a context manager that leaves none of them.

    Parameters
    ----------
    jobs : int
        Number of processes; each is started when there is a call for it.
    start : str
        "spawn", or "fork" where workers would spend longer on imports than on their calls and no
        other thread holds a lock that they need.
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
        """Do the calls in their order, one at a time in each process; give events as they come.

        Calls are drawn when a process is free, never ahead.
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
                with contextlib.suppress(OSError):  # a worker that is gone is found below
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
        here, there = self._context.Pipe()
        process = self._context.Process(target=_work, args=(there,), daemon=True)
        # the terminal's Ctrl-C would reach it until it has a group of its own
        with interrupt.blocked():
            process.start()
            assert process.pid is not None
            self._workers[here] = process
            interrupt.note_group(process.pid)
        there.close()
        return here

    def _end(self, pipe: connection.Connection) -> str:
        """Kill a process with all that it started; return how it ended if it was gone before."""
        process = self._workers.pop(pipe)
        process.join(0.05)
        code = process.exitcode
        interrupt.kill_group(process.pid)
        interrupt.forget_group(process.pid)
        process.join(1)
        pipe.close()
        if code is not None and code < 0:
            how = signal.Signals(-code).name
            memory = "; is there too little memory?" if -code == signal.SIGKILL else ""
            return f"its process was killed by {how}{memory}"
        return f"its process ended with exit code {code}"


# ------------------------------------------------------------------ in a worker

_pipe: connection.Connection | None = None
_sending = threading.Lock()  # models are built in several threads


_listener: Callable[[Any], object] | None = None


def tell(value: Any) -> None:
    """Report `value` to the main process, or outside a worker to what is :func:`listening`."""
    if _pipe is not None:
        with _sending:
            _pipe.send(("told", value))
    elif _listener is not None:
        _listener(value)


@contextlib.contextmanager
def listening(listener: Callable[[Any], object]) -> Iterator[None]:
    """Let ``listener`` have what is told in this process."""
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
            except Exception:  # does not pickle
                pipe.send(("failed", RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.killpg(0, signal.SIGKILL)
