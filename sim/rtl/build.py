"""Building the shared library of a compiled model."""

import shutil
import time
from pathlib import Path
from typing import Any

from .driver import TEMPLATE, WRAPPER, driver_code, registered_wrapper
from .emit import module_ports
from .ports import Interface
from .recipe import Recipe

#: Two-valued logic at full optimisation; ``flows`` does the lint. Compared with -O2, -O1 costs a
#: twentieth of the speed and saves as much time. Code that runs only once is not optimised.
LIBRARY = Recipe(
    prefix="Vmodel",
    verilate=(
        *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing"),
        *("-Wno-fatal", "-Wno-lint", "-Wno-style", "--output-split", "20000"),
        *(
            "--output-split-cfuncs",
            "400",
        ),  # halves the build time of a tile, which also runs faster
        *("--timescale", "1ns/1ps"),
    ),
    compile=("-std=c++17", "-fPIC", "-fvisibility=hidden", "-DVM_COVERAGE=0", "-DVM_TRACE=0", "-w"),
    fast="-O2",
    slow="-O0",
    runtime=("verilated.cpp", "verilated_dpi.cpp", "verilated_threads.cpp"),
)


def build_key(*parts: object) -> str:
    """Return the cache key of a model: a hash of ``parts``, the driver, the tools and the flags."""
    driver = Path(__file__).with_name("driver.py")
    return LIBRARY.key(*parts, TEMPLATE.read_text(), driver.read_text())


def build_library(
    folder: Path, *, verilog: str, top: str, interface: Interface, latency: int
) -> dict[str, Any]:
    """Write ``model.so`` and ``model.v`` into ``folder``.

    Parameters
    ----------
    folder : Path
        Empty folder.
    verilog, top : str
        Text of the design, and name of its top module.
    interface : Interface
        Ports of the top module and their fields.
    latency : int
        Clock cycles from an input to its output.

    Returns
    -------
    facts : dict
        ``seconds``, the duration of the build, and the bool ``clock``, which is True if the unit
        has a clock.

    Raises
    ------
    BuildError
        If Verilator refuses the Verilog, or the C++ compiler refuses Verilator's output.
    ValueError
        If the Verilog lacks a port of the interface, or a unit without a clock has a latency.
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
    pieces = LIBRARY.translate(folder / "model.v", work, top=outer)
    code = driver_code(interface, clock=clock, reset=reset, latency=latency)
    (work / "batch.cpp").write_text(code)
    shutil.copy(TEMPLATE, work / TEMPLATE.name)
    target = folder / "model.so"
    LIBRARY.link(LIBRARY.objects(work) + pieces, target, "-shared", "-Wl,-Bsymbolic")
    shutil.rmtree(work)
    return {"seconds": round(time.monotonic() - started, 2), "clock": clock}
