"""The confinement of a compiled kernel: which system calls and which folders it may use."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vitruvian.common.cache import digest, entry
from vitruvian.common.errors import UserError

_SOURCE = Path(__file__).parent / "include" / "confine" / "confine.cpp"


@cache
def isolation() -> tuple[str, ...]:
    """Return the words that start a program without a network, if the system allows it."""
    words = ("unshare", "--user", "--map-root-user", "--net", "--ipc")
    if shutil.which("unshare") is None:
        return ()
    done = subprocess.run(
        [*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return words if done.returncode == 0 else ()


def confined(program: Path, *, folders: Sequence[str] | None = None) -> list[str]:
    """Return the words that start a program with few system calls and folders.

    The program may read its own file and the system's libraries. ``confine.cpp`` sets this up by
    seccomp and Landlock, as far as the system has them; a system call that is not allowed fails.

    Parameters
    ----------
    program : Path
        The compiled program.
    folders : sequence of str, optional
        The folders below which a host program may change files. It may read all files, and start
        threads and processes. By default the program is a kernel, which may do none of this.
    """
    options = [] if folders is None else ["--files", "--read", "/"]
    for folder in folders or ():
        options += ["--write", folder]
    return [*isolation(), str(_launcher()), *options, str(program)]


@cache
def _launcher() -> Path:
    """Return the program that confines another one and starts it."""
    text = _SOURCE.read_text()

    def build(folder: Path) -> dict[str, Any]:
        done = subprocess.run(
            ["g++", "-std=c++17", "-O1", "-static-libstdc++", str(_SOURCE), "-o", "confine"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "")
            raise UserError(f"g++ cannot compile what confines a kernel: {first[:300]}")
        return {}

    return entry("ascendc-confine", digest(text), build)[0] / "confine"
