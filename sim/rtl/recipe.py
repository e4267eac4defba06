"""From Verilog to a linked file: Verilator, then the C++ compiler directly, without make."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cache import digest, entry
from .toolchain import BuildError, compiler, run_tool, verilator

__all__ = ["Recipe"]

_UNIT_BYTES = 600_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a kind of model is built.

    Attributes
    ----------
    prefix : str
        Name of the C++ class that Verilator makes.
    verilate : tuple of str
        Options of Verilator.
    compile : tuple of str
        Options of the C++ compiler.
    fast, slow : str
        Optimisation of what runs in every cycle, and of what runs once.
    runtime : tuple of str
        Sources of Verilator's run-time, compiled once for all models of a kind.
    """

    prefix: str
    verilate: tuple[str, ...]
    compile: tuple[str, ...]
    fast: str
    slow: str
    runtime: tuple[str, ...]

    def key(self, *parts: object) -> str:
        """Cache key of what is built from ``parts`` by this recipe with the tools at hand."""
        return digest(*parts, self, verilator().version, str(verilator().root), compiler())

    def translate(self, source: Path, work: Path, *, top: str) -> None:
        """Run Verilator: C++ of module ``top`` into the folder ``work``."""
        tool = verilator()
        run_tool(
            [
                *(*tool.command, "--cc", *self.verilate, "--prefix", self.prefix),
                *("--top-module", top, "--Mdir", str(work), str(source)),
            ],
            what="Verilator",
            environment=dict(tool.environment),
        )
        if not (work / f"{self.prefix}.h").is_file():
            raise BuildError(f"Verilator ended without an error and wrote no {self.prefix}.h")

    def objects(self, work: Path, *extra: Path) -> list[Path]:
        """Object files of all C++ in ``work``, of ``extra`` sources, and of the run-time."""
        units = _join([*sorted(work.glob("*.cpp")), *extra], work)
        return self._compile(units, work) + self._runtime()

    def link(self, objects: list[Path], target: Path, *options: str) -> None:
        """Link object files into ``target``; ``options`` go behind them."""
        command = [compiler()[0], "-o", str(target), *map(str, objects), *options, "-lpthread"]
        run_tool(command, what="linking the model")

    def _compile(self, sources: list[Path], work: Path) -> list[Path]:
        program, version = compiler()
        include = verilator().root / "include"
        flags = [*self.compile, *(() if "clang" in version else ("-fno-gnu-unique",))]
        flags += [f"-I{work}", f"-I{include}", f"-I{include / 'vltstd'}"]

        def one(source: Path) -> Path:
            target = work / f"{source.stem}.o"
            speed = self.slow if source.stem.endswith("_slow") else self.fast
            run_tool(
                [program, *flags, speed, "-c", str(source), "-o", str(target)],
                what=f"compiling {source.name}",
            )
            return target

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return list(pool.map(one, sources))

    def _runtime(self) -> list[Path]:
        include = verilator().root / "include"

        def build(folder: Path) -> dict[str, Any]:
            self._compile([include / name for name in self.runtime], folder)
            return {}

        folder, _ = entry("verilated", self.key("run-time"), build)
        return [folder / f"{Path(name).stem}.o" for name in self.runtime]


def _join(sources: list[Path], work: Path) -> list[Path]:
    """Translation units: small files are joined, for their headers cost more than they do."""
    groups: dict[bool, list[list[Path]]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for source in sources:
        slow = "__Slow" in source.name or "__Syms" in source.name
        sizes[slow] += source.stat().st_size
        if not groups[slow] or sizes[slow] > _UNIT_BYTES:
            groups[slow].append([])
            sizes[slow] = source.stat().st_size
        groups[slow][-1].append(source)
    units = []
    for slow, parts in groups.items():
        for n, part in enumerate(parts):
            unit = work / f"unit_{n}{'_slow' if slow else ''}.cxx"
            unit.write_text("".join(f'#include "{source}"\n' for source in part))
            units.append(unit)
    return units
