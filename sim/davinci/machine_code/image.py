"""A program with its memory in a folder: for a host, and for whoever wants to read it.

- ``program.bin``: the words, little-endian, with the word 0 at the end.
- ``memory.bin``: global memory at the start.
- ``program.json``: the version of the encoding, the tensors, and the texts that the words name.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden.core.encoding import VERSION

_FILES = ("program.bin", "memory.bin", "program.json")


class ImageError(ValueError):
    """A folder without a program, or with one of another version."""


@dataclass(frozen=True)
class ProgramImage:
    """A program in machine code.

    Attributes
    ----------
    words : (N,) ndarray of uint64
    memory : (bytes,) ndarray of uint8
    tensors : list of dict
        Name, dtype, shape and first byte of each tensor in global memory.
    texts : list of str
    lines : list of str
        File and line of each instruction.
    """

    words: np.ndarray
    memory: np.ndarray
    tensors: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the three files into a new or empty folder; the last one is the description."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILES[0]).write_bytes(self.words.astype("<u8").tobytes())
        (folder / _FILES[1]).write_bytes(self.memory.tobytes())
        facts = {
            "encoding": VERSION,
            "words": len(self.words),
            "memory_bytes": len(self.memory),
            "tensors": self.tensors,
            "texts": self.texts,
            "lines": self.lines,
        }
        (folder / _FILES[2]).write_text(json.dumps(facts, indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "ProgramImage":
        """Read a folder.

        Raises
        ------
        ImageError
            If a file is missing, or the program is in another version of the encoding.
        """
        for name in _FILES:
            if not (folder / name).is_file():
                raise ImageError(f"{folder} must have the files {', '.join(_FILES)}")
        facts = json.loads((folder / _FILES[2]).read_text())
        if facts.get("encoding") != VERSION:
            raise ImageError(
                f"{folder} must be in version {VERSION} of the encoding, "
                f"not {facts.get('encoding')}"
            )
        words = np.frombuffer((folder / _FILES[0]).read_bytes(), "<u8").astype(np.uint64)
        memory = np.frombuffer((folder / _FILES[1]).read_bytes(), np.uint8)
        if len(words) != facts["words"] or len(memory) != facts["memory_bytes"]:
            raise ImageError(f"{folder} must be complete, but a file has another length")
        return cls(words, memory, facts["tensors"], facts["texts"], facts["lines"])
