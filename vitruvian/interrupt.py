"""Ctrl-C and SIGTERM: a command ends within two seconds and leaves no process behind.

Programs that a command starts and its worker processes have process groups of their own, so that
all that they have started in turn is killed with them. The main thread then unwinds by
KeyboardInterrupt; a thread ends the process when that takes too long, as in compiled code.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

__all__ = [
    "GRACE_S",
    "Interrupted",
    "at_hard_end",
    "blocked",
    "forget_group",
    "guarded",
    "inherit_groups",
    "kill_group",
    "note_group",
    "run_killable",
    "stopping",
]

#: Seconds that the main thread has to unwind before the process is ended.
GRACE_S = 1.2

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_groups: set[int] = set()
_lock = threading.Lock()
_stopping = threading.Event()
_last: list[Callable[[], object]] = []
_guards = 0
_inherit = False


class Interrupted(KeyboardInterrupt):
    """A command was told to stop.

    Attributes
    ----------
    code : int
        Exit code by the shell's convention: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, number: int):
        super().__init__()
        self.code = 128 + number


def stopping() -> bool:
    """Whether the command was told to stop; nothing new may be started then."""
    return _stopping.is_set()


def inherit_groups() -> None:
    """Let programs stay in this process's group: in a worker, which is killed as a group.

    Signals have their usual effect again, whatever the process was forked with.
    """
    global _inherit
    _inherit = True
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def note_group(group: int) -> None:
    """Remember a process group that must not outlive this command."""
    with _lock:
        _groups.add(group)
    if stopping():
        kill_group(group)


def forget_group(group: int) -> None:
    """Forget a process group, as its leader has been waited for."""
    with _lock:
        _groups.discard(group)


def kill_group(group: int) -> None:
    """Kill a process group, and its leader even before it has made the group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(group, signal.SIGKILL)


@contextlib.contextmanager
def at_hard_end(action: Callable[[], object]) -> Iterator[None]:
    """Call ``action`` if the process is ended meanwhile without unwinding; another thread does."""
    _last.append(action)
    try:
        yield
    finally:
        _last.remove(action)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM as the module says; outside the main thread, do nothing.

    Raises
    ------
    Interrupted
        In the main thread, when a signal comes.
    """
    global _guards
    here = threading.current_thread() is threading.main_thread()
    before = {n: signal.getsignal(n) for n in _SIGNALS} if here and not _guards else {}
    # a signal that is ignored stays ignored: a background job's Ctrl-C is for somebody else
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
    """Wait for a signal's number; kill the groups; end the process if the guard stays."""
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
            deadline = 0.1  # an impatient second signal
    _kill_groups()
    for action in reversed(_last):
        with contextlib.suppress(Exception):
            action()
    show = "\x1b[?25h" if sys.stderr.isatty() else ""  # the cursor, which a bar may have hidden
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        os.write(2, f"{show}interrupted\n".encode())
    os._exit(128 + number)


def _kill_groups() -> None:
    with _lock:
        groups = list(_groups)
    for group in groups:
        kill_group(group)


def run_killable(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program as :func:`subprocess.run` does, and kill it with its children on a signal.

    Raises
    ------
    KeyboardInterrupt
        If the command was told to stop.
    """
    if stopping():
        raise KeyboardInterrupt
    if not _guards or _inherit:  # the terminal or the worker's end reaches it
        process = subprocess.Popen(command, **options)  # pyright: ignore
        kill = process.kill
    else:
        with blocked():
            process = subprocess.Popen(command, process_group=0, **options)  # pyright: ignore
            note_group(process.pid)
        kill = partial(kill_group, process.pid)
    with process:
        try:
            output, errors = process.communicate()
        except BaseException:
            kill()
            raise
        finally:
            forget_group(process.pid)
    if stopping():
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Hold the signals back while a process is started; the process never sees them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
