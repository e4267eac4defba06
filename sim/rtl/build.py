"""Verilog to shared library: Verilator, then the C++ compiler directly (no make, no cmake)."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .cache import digest, entry
from .driver import TEMPLATE, WRAPPER, driver_code, registered_wrapper
from .emit import module_ports
from .ports import Interface
from .toolchain import BuildError, compiler, run_tool, verilator

__all__ = ["FLAGS", "build_key", "build_library"]

#: What Verilator is told: two-valued logic at full optimisation, lint left to ``flows``.
VERILATE = (
    *("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing"),
    *("-Wno-fatal", "-Wno-lint", "-Wno-style", "--output-split", "20000", "--prefix", "Vmodel"),
)
#: What the C++ compiler is told. -O1 costs a twentieth of the speed of -O2 and saves as much time;
#: code that runs once (``__Slow``) is not optimised at all.
COMPILE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-DVM_COVERAGE=0", "-DVM_TRACE=0", "-w")
FAST, SLOW = "-O2", "-O0"
FLAGS = (VERILATE, COMPILE, FAST, SLOW)
_UNIT_BYTES = 600_000
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")


def build_key(*parts: object) -> str:
    """Cache key of a model: its own parts, the driver, the tools and their flags."""
    return digest(
        *parts,
        TEMPLATE.read_text(),
        Path(__file__).with_name("driver.py").read_text(),
        verilator().version,
        compiler()[1],
        FLAGS,
    )


def build_library(
    folder: Path, *, verilog: str, top: str, interface: Interface, latency: int
) -> dict[str, Any]:
    """Fill ``folder`` with ``model.so`` and ``model.v``.

    Returns
    -------
    dict
        ``seconds`` of the build and ``clock``: whether the unit has one.

    Raises
    ------
    BuildError
        If a tool refuses the Verilog or what was made of it.
    ValueError
        If the Verilog lacks a port of the interface.
    """
    started = time.monotonic()
    ports = module_ports(verilog, top)
    missing = [name for name in interface.verilog_names() if name not in ports]
    if missing:
        raise ValueError(f"{top} must have the ports {', '.join(missing)}, not only {ports}")
    clock, reset = "clk" in ports, "rst" in ports
    if latency and not clock:
        raise ValueError(f"latency of {top} must be 0 without a clock, not {latency!r}")
    text, outer = verilog, top
    if clock and latency and not interface.has_streams and interface.inputs:
        text += "\n" + registered_wrapper(interface, top=top, reset=reset)
        outer, latency = WRAPPER, latency + 1
    (folder / "model.v").write_text(text)
    work = folder / "work"
    _verilate(folder / "model.v", work, outer)
    code = driver_code(interface, clock=clock, reset=reset, latency=latency)
    (work / "batch.cpp").write_text(code)
    shutil.copy(TEMPLATE, work / TEMPLATE.name)
    objects = _compile(_units(work), work)
    run_tool(
        [
            *(compiler()[0], "-shared", "-Wl,-Bsymbolic", "-o", str(folder / "model.so")),
            *map(str, objects + _runtime()),
            "-lpthread",
        ],
        what="linking the compiled model",
    )
    shutil.rmtree(work)
    return {"seconds": round(time.monotonic() - started, 2), "clock": clock}


def _verilate(source: Path, work: Path, top: str) -> None:
    tool = verilator()
    command = [*tool.command, *VERILATE, "--top-module", top, "--Mdir", str(work), str(source)]
    run_tool(command, what="Verilator", environment=dict(tool.environment))
    if not (work / "Vmodel.h").is_file():
        raise BuildError("Verilator ended without an error and wrote no Vmodel.h")


def _units(work: Path) -> list[Path]:
    """Translation units: small files are joined, for their headers cost more than they do."""
    groups: dict[bool, list[list[Path]]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for source in sorted(work.glob("*.cpp")):
        if source.name == TEMPLATE.name:
            continue
        slow = "__Slow" in source.name or "__Syms" in source.name
        sizes[slow] += source.stat().st_size
        if not groups[slow] or sizes[slow] > _UNIT_BYTES:
            groups[slow].append([])
            sizes[slow] = source.stat().st_size
        groups[slow][-1].append(source)
    units = []
    for slow, parts in groups.items():
        for n, sources in enumerate(parts):
            unit = work / f"unit_{n}{'_slow' if slow else ''}.cxx"
            unit.write_text("".join(f'#include "{source.name}"\n' for source in sources))
            units.append(unit)
    return units


def _compile(sources: list[Path], work: Path) -> list[Path]:
    """Object files of ``sources``, as many at a time as there are cores."""
    program, version = compiler()
    include = verilator().root / "include"
    flags = [*COMPILE, *(() if "clang" in version else ("-fno-gnu-unique",))]
    flags += [f"-I{work}", f"-I{include}", f"-I{include / 'vltstd'}"]

    def one(source: Path) -> Path:
        target = work / f"{source.stem}.o"
        speed = SLOW if source.stem.endswith("_slow") else FAST
        run_tool(
            [program, *flags, speed, "-c", str(source), "-o", str(target)],
            what=f"compiling {source.name}",
        )
        return target

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, sources))


def _runtime() -> list[Path]:
    """Object files of Verilator's own run-time, compiled once per tool version."""
    include = verilator().root / "include"

    def build(folder: Path) -> dict[str, Any]:
        _compile([include / name for name in _RUNTIME], folder)
        return {}

    key = digest(verilator().version, str(verilator().root), compiler()[1], COMPILE, FAST)
    folder, _ = entry("verilated", key, build)
    return [folder / f"{Path(name).stem}.o" for name in _RUNTIME]
