"""Further files of a host program, such as those of a library of tilings.

The user names them. Files that are a part of the program on the device are compiled as the program
itself is; all others are compiled as plain C++ and linked where something needs them.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitruvian.common.cache import digest, entry
from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole
from vitruvian.sim.davinci.chip.model import Chip

_DEVICE = re.compile(r"#include\s*[<\"](?:acl/acl\.h|kernel_operator\.h)|__global__|\bmain\s*\(")
_MAIN = re.compile(r"^[\w\s]*\bmain\s*\(", re.M)
_SUFFIXES = (".cpp", ".cc", ".cxx", ".asc")

#: The most files of a program.
_MOST = 2000


@dataclass(frozen=True)
class Source:
    """A file of a host program.

    Attributes
    ----------
    path : Path
        The absolute path.
    shown : str
        The name in messages.
    text : str
        The contents.
    """

    path: Path
    shown: str
    text: str

    @property
    def on_device(self) -> bool:
        """True if the file has kernels, launches or calls of the runtime."""
        return self.path.suffix == ".asc" or bool(_DEVICE.search(self.text))

    @property
    def has_main(self) -> bool:
        """True if the file has the program's main."""
        return bool(_MAIN.search(self.text))


def host_sources(names: Sequence[str]) -> list[Source]:
    """Return the further files of a program; a folder stands for the C++ files in it.

    Raises
    ------
    UserError
        If a name is not a file or a folder with C++ files.
    """
    files: dict[Path, str] = {}
    for name in names:
        path = Path(name)
        if not path.is_dir():
            files[path.resolve()] = name
            continue
        inside = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
        if not inside:
            raise UserError(f"--sources must be a file or a folder with C++ files, not {name!r}")
        files |= {p.resolve(): str(p) for p in inside}
    if len(files) > _MOST:
        raise UserError(f"--sources must name at most {_MOST} files, not {len(files)}")
    return [
        Source(path, shown, read_whole(shown, 1 << 24).decode(errors="replace"))
        for path, shown in files.items()
    ]


def archive(
    sources: Sequence[Source],
    command: Sequence[str],
    folders: Sequence[Path],
    run: Callable[[list[str], Path], Any],
) -> Path | None:
    """Compile plain C++ files and return their archive, or None if there are none.

    An object is kept under the hash of its file and of the names, sizes and times of all headers
    below ``folders``, and of those in the folders of the sources.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    command : sequence of str
        The compiler with its options.
    folders : sequence of Path
        The folders of headers.
    run : callable
        Runs a command in a folder; it raises UserError for a mistake in a file.
    """
    if not sources:
        return None
    state = digest(*command, *_stamps(folders, {source.path.parent for source in sources}))

    def compiled(source: Source) -> Path:
        def build(folder: Path) -> dict[str, Any]:
            run([*command, "-c", str(source.path), "-o", "object.o"], folder)
            return {}

        key = digest(state, str(source.path), source.text)
        return entry("ascendc-objects", key, build)[0] / "object.o"

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        objects = list(pool.map(compiled, sources))

    def collect(folder: Path) -> dict[str, Any]:
        # Two files of one name have the same name of an object; "q" appends both.
        subprocess.run(["ar", "qcs", "library.a", *map(str, objects)], cwd=folder, check=True)
        return {}

    return entry("ascendc-archives", digest(*map(str, objects)), collect)[0] / "library.a"


def _stamps(folders: Iterable[Path], beside: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return the path, size and time of each header below folders, and in those of the sources."""
    found: dict[str, tuple[int, int]] = {}
    tops = dict.fromkeys(sorted({folder.resolve() for folder in beside}), False)
    tops |= dict.fromkeys(sorted({folder.resolve() for folder in folders}), True)
    for top, deep in tops.items():
        for folder, inner, files in os.walk(top):
            inner[:] = [name for name in inner if deep and name != ".git"]
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith((".h", ".hpp", ".inc")) and path not in found:
                    status = os.stat(path)
                    found[path] = (status.st_size, status.st_mtime_ns)
    return [(path, *found[path]) for path in sorted(found)]


def chip_header(chip: Chip) -> str:
    """Return the text of ``vitruvian_chip.h``: numbers of cores, and bytes of memories."""
    buffers: dict[str, int] = {}
    for kind in chip.kinds.values():
        buffers |= {name: buffer.nbytes for name, buffer in kind.buffers.items()}
    cubes = next(k.count for k in chip.kinds.values() if "L0A" in k.buffers)
    vectors = next(k.count for k in chip.kinds.values() if "UB" in k.buffers)
    values = {"CUBE_CORES": cubes, "VECTOR_CORES": vectors, "L2_BYTES": 192 << 20}
    names = ("L1", "L0A", "L0B", "L0C", "UB", "BT", "FB")
    values |= {f"{name}_BYTES": buffers.get(name, 1024) for name in names}
    lines = [f"#define VITRUVIAN_{name} {value}" for name, value in values.items()]
    lines.append(f"#define VITRUVIAN_CHIP ASCEND{chip.name.removeprefix('ascend').upper()}")
    return "\n".join(["#pragma once", *lines]) + "\n"
