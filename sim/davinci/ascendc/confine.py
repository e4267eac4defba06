"""The confinement of a compiled kernel: which system calls and which folders it may use."""

import re
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
    launcher, libraries = _launcher()
    options = [*libraries, *([] if folders is None else ["--files", "--read", "/"])]
    for folder in folders or ():
        options += ["--write", folder]
    return [*isolation(), str(launcher), *options, str(program)]


@cache
def _launcher() -> tuple[Path, tuple[str, ...]]:
    """Return the program that confines another one and starts it, and where its libraries are.

    Compilers outside of the system's folders have libraries and a loader of their own.
    """
    text = _SOURCE.read_text()

    def build(folder: Path) -> dict[str, Any]:
        done = subprocess.run(
            ["g++", "-std=c++17", "-O1", str(_SOURCE), "-o", "confine"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "")
            raise UserError(f"g++ cannot compile what confines a kernel: {first[:300]}")
        return {"options": _libraries(folder / "confine")}

    folder, facts = entry("ascendc-confine", digest(text), build)
    return folder / "confine", tuple(facts["options"])


def _libraries(program: Path) -> list[str]:
    """Return options for the folders of a program's libraries, and for its loader, by ldd."""
    if shutil.which("ldd") is None:
        return []
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    # A library is "NAME => FILE (place)"; the loader, which has no name, "FILE (place)".
    files = re.findall(r"^\s*(?:(\S+) => )?(/\S+) \(0x", done.stdout, re.M)
    folders = sorted({str(Path(file).resolve().parent) for name, file in files if name})
    options = [word for folder in folders for word in ("--read", folder)]
    return options + [word for name, file in files if not name for word in ("--loader", file)]
