"""Ctrl-C and SIGTERM, after which a command ends within two seconds and leaves no process behind.

Each worker process and each program that a command starts has its own process group, so that the
processes that it has started in turn are killed together with it. KeyboardInterrupt then unwinds
the main thread. If that takes too long, for example in compiled code, another thread ends the
process.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

#: Seconds in which the main thread may unwind before another thread ends the process.
GRACE_S = 1.2

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_groups: set[int] = set()
_lock = threading.Lock()
_stopping = threading.Event()
_last: list[Callable[[], object]] = []
_guards = 0
_inherit = False


class Interrupted(KeyboardInterrupt):
    """A request to stop the command, by a signal.

    Parameters
    ----------
    number : int
        Number of the signal.

    Attributes
    ----------
    code : int
        Exit code by the shell's convention, 128 + ``number``: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, number: int):
        super().__init__()
        self.code: int = 128 + number


def stopping() -> bool:
    """Return whether a signal has told the command to stop, so that it must start nothing new."""
    return _stopping.is_set()


def inherit_groups() -> None:
    """Start programs in the process group of this process from now on.

    A worker process calls this function, because the main process kills the whole group of a
    worker. The function also restores the usual effect of signals, because a forked worker inherits
    the handlers of its parent.
    """
    global _inherit
    _inherit = True
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def note_group(group: int) -> None:
    """Add a process group to those that are killed when the command is told to stop."""
    with _lock:
        _groups.add(group)
    if stopping():
        kill_group(group)


def forget_group(group: int) -> None:
    """Remove a process group whose leader has ended from those that are killed."""
    with _lock:
        _groups.discard(group)


def kill_group(group: int) -> None:
    """Kill a process group, and its leader in case it has not created the group yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(group, signal.SIGKILL)


@contextlib.contextmanager
def at_hard_end(action: Callable[[], object]) -> Generator[None]:
    """Call ``action`` if the process ends without unwinding while the block runs.

    Another thread than the main one calls it.
    """
    _last.append(action)
    try:
        yield
    finally:
        _last.remove(action)


@contextlib.contextmanager
def guarded() -> Generator[None]:
    """Handle Ctrl-C and SIGTERM while the block runs, as the module's docstring describes.

    Outside the main thread, and inside another such block, this context manager does nothing.

    Raises
    ------
    Interrupted
        In the main thread, when a signal arrives.
    """
    global _guards
    is_main = threading.current_thread() is threading.main_thread()
    before = {n: signal.getsignal(n) for n in _SIGNALS} if is_main and not _guards else {}
    # An ignored signal stays ignored: a shell starts background jobs with Ctrl-C ignored.
    before = {n: old for n, old in before.items() if old not in (signal.SIG_IGN, None)}
    if not before:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    for number in before:
        signal.signal(number, _interrupt)
    _guards += 1
    try:
        yield
    finally:
        _guards -= 1
        for number, old in before.items():
            signal.signal(number, old)
        signal.set_wakeup_fd(old_fd)
        os.close(writer)  # ends the thread
        _stopping.clear()


def _interrupt(number: int, frame: object) -> None:
    if not _stopping.is_set():
        _stopping.set()
        raise Interrupted(number)


def _watch(reader: int) -> None:
    """Wait for a signal, kill the process groups, and end the process if it does not unwind.

    Parameters
    ----------
    reader : int
        Read end of the pipe into which Python's signal handler writes the number of each signal.
        The main thread closes the write end when it has unwound.
    """
    with open(reader, "rb", buffering=0) as pipe:
        number = 0
        while number not in _SIGNALS:
            byte = pipe.read(1)
            if not byte:
                return
            number = byte[0]
        _kill_groups()
        deadline = GRACE_S
        while select.select([pipe], [], [], deadline)[0]:
            if not pipe.read(1):
                return
            deadline = 0.1  # a second signal; the user is impatient
    _kill_groups()
    for action in reversed(_last):
        with contextlib.suppress(Exception):
            action()
    show = (
        "\x1b[?25h" if sys.stderr.isatty() else ""
    )  # show the cursor, which a progress bar may have hidden
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        os.write(2, f"{show}interrupted\n".encode())
    os._exit(128 + number)


def _kill_groups() -> None:
    with _lock:
        groups = list(_groups)
    for group in groups:
        kill_group(group)


def run_killable(
    command: list[str], *, input: str | None = None, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a program like ``subprocess.run``, and kill it and its children on a signal.

    Parameters
    ----------
    command : list of str
        Program and arguments.
    input : str, optional
        Text for the program's standard input.
    **options
        Keyword arguments of ``subprocess.Popen``.

    Raises
    ------
    KeyboardInterrupt
        If the command was told to stop.
    """
    if stopping():
        raise KeyboardInterrupt
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if not _guards or _inherit:  # the terminal or the end of the worker reaches the program
        process = subprocess.Popen(command, **options)  # pyright: ignore
        kill = process.kill
    else:
        with blocked():
            process = subprocess.Popen(command, process_group=0, **options)  # pyright: ignore
            note_group(process.pid)
        kill = partial(kill_group, process.pid)
    with process:
        try:
            output, errors = process.communicate(input)
        except BaseException:
            kill()
            raise
        finally:
            forget_group(process.pid)
    if stopping():
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@contextlib.contextmanager
def blocked() -> Generator[None]:
    """Block Ctrl-C and SIGTERM in this thread while the block starts a process.

    Otherwise a signal could arrive after the start and before the process group is registered.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
