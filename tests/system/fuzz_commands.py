"""Hostile command lines for ``vitruvian``.

Run by hand: ``python tests/system/fuzz_commands.py --count 200 --seed 1``. Each command runs in a
process of its own with bounded time and memory. It must end with 0, 1 (a difference was found) or 2
(one line on standard error), without a traceback, without a changed input and without a file that
is not whole. The exit code is 1 if one does not.
"""

import argparse
import contextlib
import dataclasses
import gzip
import hashlib
import json
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.system.fuzz_inputs import make_inputs  # noqa: E402
from tests.system.fuzz_lines import lines  # noqa: E402

#: Lines of standard error that may come before the one that states the mistake.
PRELIMINARY = ("note: ", "warning: ", "compiling ", "[")

MEMORY_BYTES = 8 << 30


# ------------------------------------------------------------------ running


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a command line."""

    line: list[str]
    code: int
    seconds: float
    mebibytes: float
    faults: tuple[str, ...]
    errors: str


def program(line: list[str]) -> int | str | None:
    """Run a command line in this process."""
    if line[0] != "vitruvian":
        return PLANTS[line[0]]()
    from vitruvian.cli import main

    try:
        return main(line[1:])
    except SystemExit as stop:
        return stop.code


def _plant_traceback() -> int:
    raise RuntimeError("planted")


def _plant_file() -> int:
    Path("half.json").write_text('{"a": ')
    return 0


def _plant_memory() -> int:
    return len(bytearray(2 * MEMORY_BYTES))


def _plant_hang() -> int:
    time.sleep(3600)
    return 0


def _plant_lines() -> int:
    print("error: one\nand another", file=sys.stderr)
    return 2


def _plant_input() -> int:
    Path("../in/good.mtx").write_text("")
    return 0


#: Commands with deliberate mistakes, to prove that the fuzzer detects them.
PLANTS: dict[str, Callable[[], int]] = {
    "traceback": _plant_traceback,
    "file": _plant_file,
    "memory": _plant_memory,
    "hang": _plant_hang,
    "lines": _plant_lines,
    "input": _plant_input,
}


def run(line: list[str], folder: Path, seconds: float) -> Outcome:
    """Run a command line in a child process beside the folder ``IN``, and check its outcome."""
    inputs, own = folder / "in", folder / "own"
    if not inputs.exists():
        make_inputs(inputs)
    own.mkdir()
    before = _digest(inputs)
    words = [word.replace("IN/", "../in/") for word in line]
    began = time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(words, folder)
    status, usage, ended = 0, None, False
    while not ended and time.monotonic() < began + seconds:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        ended = done == pid
        time.sleep(0 if ended else 0.01)
    faults = []
    if not ended:
        faults.append(f"no end after {seconds:g} s")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    errors = (folder / "stderr").read_text(errors="replace")
    output = (folder / "stdout").read_text(errors="replace")
    if ended:
        faults += _faults(code, output, errors, own)
    if _digest(inputs) != before:
        faults.append("an input was changed")
        _remove(inputs)
    _remove(own)
    mebibytes = usage.ru_maxrss / 1024 if usage else 0.0
    return Outcome(line, code, time.monotonic() - began, mebibytes, tuple(faults), errors)


def _child(line: list[str], folder: Path) -> None:
    code: int | str | None = 70
    try:
        os.setsid()
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        streams = (open(n, "w", closefd=False, errors="backslashreplace") for n in (1, 2))  # noqa: SIM115
        sys.stdout, sys.stderr = streams  # as in __main__
        os.chdir(folder / "own")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = program(line)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _faults(code: int, output: str, errors: str, own: Path) -> list[str]:
    failures = []
    if code not in (0, 1, 2):
        failures.append(f"exit code {code}")
    if "Traceback (most recent call last)" in errors + output or "Exception ignored" in errors:
        failures.append("traceback")
    messages = [line for line in errors.splitlines() if not line.startswith(PRELIMINARY)]
    if code == 2 and len(messages) != 1:
        failures.append(f"{len(messages)} lines on standard error")
    if code == 1 and any("error:" in line for line in messages):
        failures.append("an error with exit code 1")
    for path in sorted(own.rglob("*")):
        if path.is_file():
            if code == 2:
                failures.append(f"left {path.name} behind")
            elif not _whole(path):
                failures.append(f"{path.name} is not whole")
    return failures


def _whole(path: Path) -> bool:
    """Return whether a file that a command has written can be read."""
    data = path.read_bytes()
    if path.name.startswith(".") or path.name.endswith((".partial", ".tmp")) or not data:
        return False
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        if data[:1] in (b"{", b"["):
            json.loads(data)
    except (ValueError, OSError, EOFError):
        return False
    ends = {
        b"PK\x03\x04": b"PK\x05\x06",
        b"\x89PNG": b"IEND",
        b"<?xm": b"</ipxact:component>" if b"<ipxact:" in data else b"</svg>",
        b"<svg": b"</svg>",
    }
    return ends.get(data[:4], b"") in data[-64:]


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state.update(os.fsencode(path.name))
        if path.is_file() and not path.is_symlink():
            state.update(path.read_bytes())
    return state.hexdigest()


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    folder.rmdir()


def _preload() -> None:
    """Import the modules of all commands once, before the children are forked."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    os.environ.setdefault("VITRUVIAN_CACHE", str(Path("build") / "cache"))
    os.environ["VITRUVIAN_CACHE"] = str(Path(os.environ["VITRUVIAN_CACHE"]).absolute())
    import vitruvian.commands.hardware
    import vitruvian.sim.bench.silicon
    import vitruvian.sim.davinci
    import vitruvian.sim.studies
    import vitruvian.sim.verify.run  # noqa: F401


def shown(line: list[str]) -> str:
    """Return a command line as text for a shell."""
    return " ".join(shlex.quote(w) if len(w) < 80 else shlex.quote(w[:70] + "…") for w in line)


def main(arguments: list[str] | None = None) -> int:
    """Run the command lines and print a table of the outcomes."""
    parser = argparse.ArgumentParser(
        description="Run hostile command lines and print what became of them."
    )
    parser.add_argument("--count", type=int, default=200, help="command lines (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="choose the lines (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="skip so many (default: 0)")
    parser.add_argument("--seconds", type=float, default=45, help="limit for each (default: 45)")
    parser.add_argument("--all", action="store_true", help="print every line as it ends")
    parser.add_argument("--plant", choices=PLANTS, help="run only this, which must be found")
    options = parser.parse_args(arguments)
    _preload()
    chosen = list(lines(options.count, options.seed))[options.first :]
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for number, line in enumerate([[options.plant]] if options.plant else chosen):
            outcome = run(line, Path(name), options.seconds)
            outcomes.append(outcome)
            if options.all or outcome.faults:
                text = "; ".join(outcome.faults) or "good"
                print(f"{options.first + number}: {shown(line)}\n    {outcome.code}, {text}")
                if outcome.errors and (options.all or outcome.faults):
                    print("    " + "\n    ".join(outcome.errors.strip()[-900:].splitlines()[-8:]))
                sys.stdout.flush()
    _print(outcomes, options.seed)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def _print(outcomes: list[Outcome], seed: int) -> None:
    table = Table()
    table.add_column("command", no_wrap=True)
    for name in ("lines", "exit 0", "exit 1", "exit 2", "slowest, s", "largest, MiB", "faults"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(" ".join(outcome.line[:2])[:24], []).append(outcome)
    for name, failures in [*sorted(groups.items()), ("all", outcomes)]:
        table.add_row(
            name,
            f"{len(failures)}",
            *(f"{sum(o.code == code for o in failures)}" for code in (0, 1, 2)),
            f"{max(o.seconds for o in failures):.1f}",
            f"{max(o.mebibytes for o in failures):.0f}",
            f"{sum(bool(o.faults) for o in failures)}",
        )
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(table)
    bad = sum(bool(outcome.faults) for outcome in outcomes)
    console.print(f"{len(outcomes)} command lines (seed {seed}): {bad} with faults")


if __name__ == "__main__":
    sys.exit(main())
