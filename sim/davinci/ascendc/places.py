"""The lines of a source that places in a compiled program come from."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vitruvian.sim.davinci.cce.language.errors import SourcePosition

#: The most characters of a path or a function that are kept.
_LONGEST = 500

#: The name of the text around a source, which is passed to g++ as its input.
_GENERATED = "/<stdin>"

#: What the user's ``main`` is compiled as, and the function that a launch is compiled to.
_MAIN = "vitruvian_host_main"
_LAUNCH = re.compile(r"::\{lambda\(\(auto:")


class Places:
    """The positions of code addresses in a program, by binutils' addr2line.

    Parameters
    ----------
    program : Path
        The compiled program with its line table.
    shown : mapping of str to str
        Names in messages of the user's files, by their absolute paths.
    libraries : sequence of Path
        Folders of headers that are not the user's.
    """

    def __init__(self, program: Path, shown: dict[str, str], libraries: Sequence[Path]):
        self.shown = shown
        self._own = tuple({f"{Path(file).parent}/" for file in shown})
        self._foreign = tuple(f"{folder.resolve()}/" for folder in libraries)
        self._program = program
        self._reader: subprocess.Popen[str] | None = None
        self._frames: dict[int, tuple[str, str, int]] = {}
        self._positions: dict[bytes, SourcePosition] = {}
        self._first: dict[SourcePosition, bytes] = {}  # the first chain of each position
        self._other = SourcePosition(next(iter(shown.values())), 1)

    def position(self, chain: bytes) -> SourcePosition:
        """Return the innermost place of a chain of calls that is in the user's own files.

        Parameters
        ----------
        chain : bytes
            Code addresses of 64 bits, the innermost first.
        """
        known = self._positions.get(chain)
        if known is None:
            known = self._positions[chain] = self._position(chain)
            self._first.setdefault(known, chain)
        return known

    def begin(self) -> None:
        """Begin a launch, whose ``calls`` are its own."""
        self._positions.clear()
        self._first.clear()

    def calls(self) -> dict[str, str]:
        """Return, for each line that ran, the user's functions of its first chain of calls.

        The keys are ``file:line``; a value has the innermost function first: ``Compute, called by
        Process at add.cpp:29, called by …``. Lines of the kernel itself are left out.
        """
        found: dict[str, str] = {}
        for position, chain in self._first.items():
            frames = [self._frame(place) for place in _places(chain)]
            own = [
                (_plain(function), self.shown.get(file, file), line)
                for function, file, line in frames
                if line and self._is_own(file) and file.startswith(self._own)
                if not _LAUNCH.search(function)
            ]
            if len(own) > 1:
                rest = (f"called by {name} at {file}:{line}" for name, file, line in own[1:])
                found[f"{position.file}:{position.line}"] = ", ".join([own[0][0], *rest])
        return found

    def close(self) -> None:
        """End the process that reads the program."""
        if self._reader is not None:
            self._reader.kill()
            self._reader.communicate()
            self._reader = None

    def _position(self, chain: bytes) -> SourcePosition:
        for place in _places(chain):
            _, file, line = self._frame(place)
            if line and self._is_own(file):
                return SourcePosition(self.shown.get(file, file), line)
        return self._other

    def _is_own(self, file: str) -> bool:
        """Return True for a file of the user.

        A sample may lie below its library's headers, and those below the sample's folder, so that
        the innermost of these folders decides.
        """
        own, foreign = _longest(file, self._own), _longest(file, self._foreign)
        return file.startswith("/") and not file.endswith(_GENERATED) and own >= foreign

    def _frame(self, place: int) -> tuple[str, str, int]:
        frame = self._frames.get(place)
        if frame is None:
            frame = self._frames[place] = self._read(place)
        return frame

    def _read(self, place: int) -> tuple[str, str, int]:
        if self._reader is None:
            self._reader = subprocess.Popen(
                ["addr2line", "-f", "-C", "-e", str(self._program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
            )
        reader = self._reader
        assert reader.stdin is not None and reader.stdout is not None  # both are pipes
        reader.stdin.write(f"{place:#x}\n")
        reader.stdin.flush()
        function, where = reader.stdout.readline(), reader.stdout.readline()
        file, _, line = where.strip().partition(" (")[0].rpartition(":")
        number = int(line) if line.isdecimal() else 0
        return function.strip()[:_LONGEST], str(Path(file[:_LONGEST]).resolve()), number


def _plain(function: str) -> str:
    """Return a function's name without its parameters, as the user wrote it."""
    name = function.partition("(")[0]
    return "main" if name == _MAIN else name


def _longest(file: str, folders: Sequence[str]) -> int:
    """Return the length of the innermost folder that a file is in, or 0."""
    return max((len(folder) for folder in folders if file.startswith(folder)), default=0)


def _places(chain: bytes) -> list[int]:
    return [int.from_bytes(chain[i : i + 8], "little") for i in range(0, len(chain), 8)]
