"""Building of a linked file from Verilog, by Verilator and the C++ compiler without make."""

import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from vitruvian.common.cache import digest, entry, verified_entry

from .once_per_cycle import Shell
from .partition import split
from .toolchain import BuildError, compiler, run_tool, verilator

_UNIT_BYTES = 600_000  # of C++ in a translation unit, approximately
_ALONE_BYTES = 400_000  # largest design that is one translation unit
_HEADER = "first.h"
T = TypeVar("T")
#: A simulator's program must export the functions of this source to cocotb's libraries.
_VISIBLE = {"verilated_vpi.cpp": ("-fvisibility=default",)}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Tool options that build one kind of model.

    Attributes
    ----------
    prefix : str
        Name of the C++ class that Verilator generates.
    verilate : tuple of str
        Options of Verilator.
    compile : tuple of str
        Options of the C++ compiler.
    fast, slow : str
        Optimisation option for code that runs in every cycle, and for code that runs once.
    runtime : tuple of str
        Sources of Verilator's run-time library, compiled once for all recipes with equal
        ``compile`` and ``library``.
    library : str
        Optimisation option for the run-time library. With ``-O0``, a small model would be a sixth
        slower.
    piece : Recipe, optional
        Recipe for the pieces that ``sim.rtl.partition.split`` separates; this recipe by default.
        Recipes with the same ``piece`` share the compiled pieces.
    """

    prefix: str
    verilate: tuple[str, ...]
    compile: tuple[str, ...]
    fast: str
    slow: str
    runtime: tuple[str, ...]
    library: str = "-O1"
    piece: "Recipe | None" = None

    def key(self, *parts: object) -> str:
        """Return the cache key of a file that this recipe builds from ``parts``.

        The key also depends on the versions of the installed tools.
        """
        # The text of ``once_per_cycle.py`` determines the code around every piece.
        shell = Path(__file__).with_name("once_per_cycle.py").read_text()
        return digest(*parts, self, shell, verilator().version, str(verilator().root), compiler())

    def translate(self, source: Path, work: Path, *, top: str) -> list[Path]:
        """Run Verilator, which writes the C++ of a design into a folder.

        Parameters
        ----------
        source : Path
            Verilog of the design.
        work : Path
            Folder for the C++.
        top : str
            Name of the top module.

        Returns
        -------
        pieces : list of Path
            Object files of the design's pieces, which must be linked with the rest.

        Raises
        ------
        BuildError
            If Verilator or the C++ compiler fails.
        """
        work.mkdir(exist_ok=True)
        rest, pieces = split(source.read_text(), top)
        pieces_by = self.piece or self
        folders = {name: pieces_by._piece(name, text) for name, text in pieces.items()}
        outer = work / "rest.v"
        outer.write_text(rest)
        wrappers = [folder / f"{name}.sv" for name, folder in folders.items()]
        self._verilate(self.verilate, self.prefix, top, work, [outer, *wrappers])
        return [path for folder in folders.values() for path in sorted(folder.glob("*.o"))]

    def objects(self, work: Path, *extra: Path) -> list[Path]:
        """Compile all C++ in ``work``, the ``extra`` sources and the run-time library.

        Returns
        -------
        objects : list of Path
        """
        units = self._join([*sorted(work.glob("*.cpp")), *extra], work)
        return self._compile(units, work) + self._runtime()

    def _piece(self, name: str, text: str) -> Path:
        """Return the folder with the wrapper and the object files of a piece."""

        def build(folder: Path) -> dict[str, Any]:
            work, source = folder / "work", folder / f"{name}.v"
            work.mkdir()
            shell = Shell(name, text)
            source.write_text(shell.design)
            (folder / f"{name}.sv").write_text(shell.wrapper)
            (folder / "shell.cpp").write_text(shell.driver)
            self._verilate(self.verilate, f"V{name}", f"{name}_shell", work, [source])
            units = self._join([*sorted(work.glob("*.cpp")), folder / "shell.cpp"], work)
            # Verilator's C++ is large, and nothing needs it once the object files exist.
            for path in self._compile(units, work):
                path.rename(folder / path.name)
            shutil.rmtree(work)
            return {}

        return entry("piece", self.key("piece", text), build)[0]

    def _verilate(
        self, options: tuple[str, ...], prefix: str, top: str, work: Path, sources: list[Path]
    ) -> None:
        tool = verilator()
        run_tool(
            [
                *(*tool.command, "--cc", *options, "--prefix", prefix),
                *("--top-module", top, "--Mdir", str(work), *map(str, sources)),
            ],
            what="Verilator",
            environment=dict(tool.environment),
        )
        if not (work / f"{prefix}.h").is_file():
            raise BuildError(f"Verilator ended without an error and wrote no {prefix}.h")

    def link(self, objects: list[Path], target: Path, *options: str) -> None:
        """Link object files into ``target``, with ``options`` after them on the command line."""
        command = [compiler()[0], "-o", str(target), *map(str, objects), *options, "-lpthread"]
        run_tool(command, what="linking the model")

    def _flags(self) -> list[str]:
        include = verilator().root / "include"
        # GNU's unique symbols would be shared between the libraries of all models in a process.
        own = [] if _is_clang() else ["-fno-gnu-unique"]
        return [*self.compile, *own, f"-I{include}", f"-I{include / 'vltstd'}"]

    def _compile(self, sources: list[Path], work: Path) -> list[Path]:
        program, _ = compiler()
        flags = [*self._flags(), f"-I{work}"]
        speeds = {x: self.slow if x.stem.endswith("_slow") else self.fast for x in sources}
        headers = {speed: self._header(speed) for speed in {*speeds.values()}}

        def compile_one(source: Path) -> Path:
            target = work / f"{source.stem}.o"
            speed = speeds[source]
            run_tool(
                [program, *flags, *headers[speed], speed, "-c", str(source), "-o", str(target)],
                what=f"compiling {source.name}",
            )
            return target

        return _parallel(compile_one, sources)

    def _join(self, sources: list[Path], work: Path) -> list[Path]:
        """Join source files into translation units.

        Verilator writes many small files, whose headers take longer to compile than the files
        themselves. A small design becomes a single unit, with the code that runs once at its end.
        """
        # Verilator marks the files with code that runs once, such as constructors, by these names.
        slow = [x for x in sources if "__Slow" in x.name or "__Syms" in x.name]
        fast = [x for x in sources if x not in slow]
        if sum(source.stat().st_size for source in sources) <= _ALONE_BYTES:
            speed = f'#pragma GCC optimize("{self.slow.lstrip("-")}")'
            change = "#pragma clang optimize off" if _is_clang() else speed
            lines = [*_includes(fast), change, *_includes(slow)]
            return [_write(work / "unit_0.cxx", lines)]
        units = []
        for suffix, files in (("", fast), ("_slow", slow)):
            for n, part in enumerate(_groups(files)):
                units.append(_write(work / f"unit_{n}{suffix}.cxx", _includes(part)))
        return units

    def _header(self, speed: str) -> list[str]:
        """Return the compiler options that include Verilator's header in precompiled form.

        The header takes most of the time to compile a small file.
        """
        if _is_clang():
            return []

        def build(folder: Path) -> dict[str, Any]:
            name = folder / _HEADER
            name.write_text('#include "verilated.h"\n')
            command = [compiler()[0], *self._flags(), speed, "-x", "c++-header", str(name)]
            run_tool([*command, "-o", f"{name}.gch"], what="compiling verilated.h")
            return {}

        folder = verified_entry("verilated", self._library_key("header", speed), build)
        return ["-include", str(folder / _HEADER)]

    def _runtime(self) -> list[Path]:
        """Return the object files of Verilator's run-time library."""
        include = verilator().root / "include"

        def build_one(name: str) -> Path:
            def build(folder: Path) -> dict[str, Any]:
                target = folder / "library.o"
                # No precompiled header: macros in these sources change what the header declares.
                command = [compiler()[0], *self._flags(), self.library, *_VISIBLE.get(name, ())]
                run_tool([*command, "-c", str(include / name), "-o", str(target)], what=name)
                return {}

            return (
                verified_entry("verilated", self._library_key(name, self.library), build)
                / "library.o"
            )

        return _parallel(build_one, self.runtime)

    def _library_key(self, *parts: object) -> str:
        """Return the cache key of a file that depends only on Verilator and on the compiler."""
        tool = verilator()
        return digest(*parts, *self._flags(), tool.version, str(tool.root), compiler())


def _parallel(function: Callable[[T], Path], items: Iterable[T]) -> list[Path]:
    """Call ``function`` for every item on all cores; after an exception, no further call begins."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)


def _is_clang() -> bool:
    return "clang" in compiler()[1]


def _groups(sources: list[Path]) -> list[list[Path]]:
    """Split files into successive groups of at most ``_UNIT_BYTES``, or of one larger file."""
    groups: list[list[Path]] = []
    size = 0
    for source in sources:
        size += source.stat().st_size
        if not groups or size > _UNIT_BYTES:
            groups.append([])
            size = source.stat().st_size
        groups[-1].append(source)
    return groups


def _includes(sources: list[Path]) -> list[str]:
    return [f'#include "{source}"' for source in sources]


def _write(target: Path, lines: list[str]) -> Path:
    target.write_text("\n".join([*lines, ""]))
    return target
