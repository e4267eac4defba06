"""Files that a kernel includes: which may be read, and how many of them."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.limits import FILES, SOURCE_BYTES

__all__ = ["Sources", "source_text"]

_DEEPEST = 50  # files that include each other


def source_text(path: Path) -> str:
    """The text of a source.

    Raises
    ------
    ValueError
        For what is no plain file, and for one that is too large.
    OSError
        When it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("a source must be a plain file")
        data = file.read(SOURCE_BYTES + 1)
    if len(data) > SOURCE_BYTES:
        raise ValueError(f"a source must have at most {SOURCE_BYTES} bytes")
    return data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


class Sources:
    """Finds files that a kernel includes, in its own folder and those of `include_path`.

    Parameters
    ----------
    directory : Path or None
        The kernel's own folder; nothing is found without it.
    include_path : sequence of str or Path
    """

    def __init__(self, directory: Path | None, include_path: Sequence[str | Path]):
        self.folders = [Path(f).resolve() for f in include_path]
        self.allowed = [*self.folders]
        if directory is not None:
            self.allowed.insert(0, directory.resolve())
        self.deep, self.files, self.characters = 0, 0, 0

    def take(self, text: str, position: Position) -> None:
        """Count a text.

        Raises
        ------
        CceError
            When all texts together are too long.
        """
        self.characters += len(text)
        if self.characters > SOURCE_BYTES:
            raise CceError(
                position, f"a source and what it includes must have at most {SOURCE_BYTES} bytes"
            )

    def find(self, name: str, directory: Path, position: Position) -> Path | None:
        """The file that a name in quotes stands for; None if there is none.

        Raises
        ------
        CceError
            For a file outside the allowed folders, by its name or by a link.
        """
        for folder in (directory, *self.folders):
            try:
                path = (folder / name).resolve()
                mode = path.stat().st_mode
            except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
                continue
            if not any(path.is_relative_to(allowed) for allowed in self.allowed):
                raise CceError(
                    position,
                    f'#include "{name}" must be a file within the folder of the kernel or one of '
                    "-I (include_path)",
                )
            if not stat.S_ISREG(mode):
                raise CceError(position, f'#include "{name}" must be a plain file')
            return path
        return None

    @contextmanager
    def within(self, path: Path, position: Position) -> Iterator[str]:
        """Give a file's text, for as long as it is read.

        Raises
        ------
        CceError
            For too many files, in all or within each other, and for one that cannot be read.
        """
        if self.deep >= _DEEPEST:
            raise CceError(position, f"files must include each other at most {_DEEPEST} deep")
        self.files += 1
        if self.files > FILES:
            raise CceError(position, f"a source must include at most {FILES} files")
        try:
            text = source_text(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CceError(position, f'#include "{path.name}": {reason}') from None
        self.take(text, position)
        self.deep += 1
        yield text
        self.deep -= 1
