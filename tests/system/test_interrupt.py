"""Ctrl-C, SIGTERM and killed workers: the end within two seconds, and nothing left behind."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vitruvian.common.workers import Call, WorkerKilled, Workers

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

#: A compiler that says its name to a file and then hangs with a child, as g++ with cc1plus.
SLOW = """#!/bin/sh
case "$*" in *--version*) echo slow 1; exit 0;; esac
echo $$ >> "$STARTED"
sleep 600 & echo $! >> "$STARTED"
wait
"""

#: Seconds that an answer may take; the machine that runs the tests may be busy.
LIMIT_S = 2.0 if os.cpu_count() and os.getloadavg()[0] < (os.cpu_count() or 1) else 6.0


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def heed_interrupts() -> None:
    """Restore the effect of Ctrl-C, which jobs in the background of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Command:
    """A run of ``vitruvian`` with a slow compiler and an empty cache, and all its processes."""

    def __init__(self, folder: Path, *arguments: str, terminal: bool = False):
        self.started = folder / "started"
        compiler = folder / "slow-compiler"
        compiler.write_text(SLOW)
        compiler.chmod(0o755)
        self.cache = folder / "cache"
        environment = os.environ | {
            "CXX": str(compiler),
            "STARTED": str(self.started),
            "VITRUVIAN_CACHE": str(self.cache),
            "TERM": "xterm",
        }
        command = [sys.executable, "-m", "vitruvian", *arguments]
        self.output = b""
        if terminal:
            self.pid, self.terminal = pty.fork()
            if self.pid == 0:
                heed_interrupts()
                os.execvpe(command[0], command, environment)
        else:
            ours, theirs = os.pipe()
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                preexec_fn=heed_interrupts,
            )
            os.close(theirs)
            self.pid, self.terminal = self.process.pid, ours

    def wait_for_compilers(self, count: int) -> list[int]:
        """Return the process ids of compilers and their children, when there are ``count``."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            self.read(0.1)
            if self.started.exists() and len(self.started.read_text().split()) >= count:
                return [int(pid) for pid in self.started.read_text().split()]
        raise AssertionError(f"no compiler was started: {self.output.decode()}")

    def read(self, seconds: float) -> bool:
        """Read the available output; return False at its end."""
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                data = os.read(self.terminal, 65536)
            except OSError:  # Linux reports the end of a terminal in this way
                data = b""
            if not data:
                return False
            self.output += data
        return True

    def end(self) -> tuple[int, float, str]:
        """Return the exit code, the duration in seconds, and all output."""
        began = time.monotonic()
        while time.monotonic() < began + 60:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                seconds = time.monotonic() - began
                self.read(0.2)
                return os.waitstatus_to_exitcode(status), seconds, self.output.decode()
            self.read(0.02)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"it did not end: {self.output.decode()}")


def workers_of(pid: int) -> list[int]:
    """Return the worker processes of a parent, by their command lines."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            line = path.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if parent == pid and b"resource_tracker" not in line:
            processes.append(int(path.parent.name))
    return processes


VERIFY = ("verify", "fp.IntDotProduct", "--vectors", "200")


@pytest.mark.parametrize(
    ("jobs", "terminal", "number"),
    [("2", True, None), ("2", False, signal.SIGINT), ("1", False, signal.SIGTERM)],
    ids=["ctrl_c_on_a_terminal", "sigint_without_one", "sigterm_with_one_job"],
)
def test_interrupt_of_a_cold_build_returns_and_leaves_nothing(tmp_path, jobs, terminal, number):
    command = Command(tmp_path, *VERIFY, "--jobs", jobs, terminal=terminal)
    programs = command.wait_for_compilers(2)
    workers = workers_of(command.pid)
    if jobs == "2":
        assert len(workers) == 2
    if number is None:
        os.write(command.terminal, b"\x03")
    else:
        os.kill(command.pid, number)
    code, seconds, output = command.end()
    assert code == (143 if number == signal.SIGTERM else 130), output
    assert seconds < LIMIT_S, output
    assert "interrupted" in output and "Traceback" not in output
    assert "compiling fp.IntDotProduct" in output  # printed in a line or in the bar
    time.sleep(0.2)
    assert not [pid for pid in programs + workers if running(pid)]
    assert not list(command.cache.rglob("*.partial"))


def _answer(value: int) -> int:
    if value < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return value + 1


def test_a_killed_worker_is_one_failed_call_and_the_others_go_on():
    calls = [Call(key=n, function=_answer, arguments=(n,)) for n in (1, -1, 2, 3)]
    with Workers(1) as workers:
        events = {event.key: event.value for event in workers.run(calls)}
    assert isinstance(killed := events.pop(-1), WorkerKilled)
    assert str(killed) == "its process was killed by SIGKILL; is there too little memory?"
    assert events == {1: 2, 2: 3, 3: 4}


def test_a_worker_killed_by_pid_fails_its_row_in_one_line(tmp_path):
    command = Command(tmp_path, "verify", "fp.IntDotProduct*wrap*", "--jobs", "2")
    command.wait_for_compilers(2)
    while len(workers := workers_of(command.pid)) < 2:
        time.sleep(0.05)
    time.sleep(0.5)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    code, _, output = command.end()
    assert code == 1 and "Traceback" not in output and "BrokenProcessPool" not in output
    text = "its process was killed by SIGKILL; is there too little memory?"
    assert output.count(text) == 2 and "2 of 2 rows failed" in output


def test_an_interrupted_search_for_tilings_leaves_no_process(tmp_path):
    command = Command(tmp_path, "tune", "matmul", "--size", "1024x1024x1024", "--jobs", "2")
    end = time.monotonic() + 120
    while len(workers := workers_of(command.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(command.pid, signal.SIGINT)
    code, seconds, output = command.end()
    assert code == 130 and seconds < LIMIT_S and "Traceback" not in output, output
    assert len(workers) == 2 and not [pid for pid in workers if running(pid)]
