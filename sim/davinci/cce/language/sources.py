"""Included files: the folders that they may be in, and the limits on their number and size."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import FILES, SOURCE_BYTES

_DEEPEST = 50  # nesting of included files


def source_text(path: Path) -> str:
    """Return the text of a source file, with its line ends as newlines.

    Raises
    ------
    ValueError
        If the path is not a regular file, or the file is too large.
    OSError
        If the file cannot be read.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("a source must be a plain file")
        data = file.read(SOURCE_BYTES + 1)
    if len(data) > SOURCE_BYTES:
        raise ValueError(f"a source must have at most {SOURCE_BYTES} bytes")
    return data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


class IncludedSources:
    """The included files of a kernel, which must be in its own folder or in ``include_path``.

    Parameters
    ----------
    directory : Path or None
        The kernel's own folder; without it no file is found.
    include_path : sequence of str or Path
        Further folders.
    """

    def __init__(self, directory: Path | None, include_path: Sequence[str | Path]):
        self.folders = [Path(f).resolve() for f in include_path]
        self.allowed = [*self.folders]
        if directory is not None:
            self.allowed.insert(0, directory.resolve())
        self.deep, self.files, self.characters = 0, 0, 0

    def take(self, text: str, position: SourcePosition) -> None:
        """Add a text to the total size.

        Raises
        ------
        CceError
            If all texts together are too long.
        """
        self.characters += len(text)
        if self.characters > SOURCE_BYTES:
            raise CceError(
                position, f"a source and what it includes must have at most {SOURCE_BYTES} bytes"
            )

    def find(self, name: str, directory: Path, position: SourcePosition) -> Path | None:
        """Return the file that a quoted name stands for, or None if it does not exist.

        Parameters
        ----------
        name : str
            The name in quotes.
        directory : Path
            The folder of the including file, which is searched first.
        position : SourcePosition
            The position of the #include.

        Raises
        ------
        CceError
            If the name or a link leads outside the allowed folders, or to something other than a
            regular file.
        """
        for folder in (directory, *self.folders):
            try:
                path = (folder / name).resolve()
                mode = path.stat().st_mode
            except (OSError, ValueError, RuntimeError):  # RuntimeError: circular links
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
    def within(self, path: Path, position: SourcePosition) -> Iterator[str]:
        """Provide the text of an included file; the context spans the processing of the file.

        Raises
        ------
        CceError
            If too many files are included or nested, or the file cannot be read.
        """
        if self.deep >= _DEEPEST:
            raise CceError(position, f"included files must be nested at most {_DEEPEST} deep")
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
