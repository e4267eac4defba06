"""Execution of cocotb benches.

The simulator is Verilator, or Icarus Verilog with ``SIM=icarus`` in the environment. The simulation
of a design is built once and stored in the cache.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from amaranth.lib import wiring

from vitruvian.common.cache import digest, entry
from vitruvian.common.extras import need
from vitruvian.sim.bench.scoreboard import COUNTS
from vitruvian.sim.rtl.build import LIBRARY
from vitruvian.sim.rtl.emit import to_verilog
from vitruvian.sim.rtl.recipe import Recipe
from vitruvian.sim.rtl.toolchain import BuildError, ToolError

#: Environment variables with the parameters of a bench as JSON, and with its seed.
PARAMETERS, SEED = "VITRUVIAN_BENCH", "VITRUVIAN_SEED"

SIMULATORS = ("verilator", "icarus")
_TIMESCALE = ("1ns", "1ps")
#: Benches are short, so that a fast build matters more than a fast model.
_OPTIONS = (
    *("-O3", "--no-timing", "--timescale", "1ns/1ps", "-Wno-fatal", "-Wno-lint", "-Wno-style"),
    *("--output-split", "20000", "--output-split-cfuncs", "400"),
)
_PLAIN = Recipe(
    prefix="Vtop",
    verilate=("--vpi", "--public-flat-rw", *_OPTIONS),
    compile=LIBRARY.compile,  # so that the run-time library is shared as well
    fast="-O0",  # the bench in Python takes most of the time
    slow="-O0",
    runtime=("verilated.cpp", "verilated_dpi.cpp", "verilated_threads.cpp", "verilated_vpi.cpp"),
    piece=LIBRARY,  # so that pieces are shared with the compiled model of the same unit
)
_TRACED = replace(
    _PLAIN,
    verilate=("--trace-vcd", *_PLAIN.verilate),
    compile=("-std=c++17", "-DVM_COVERAGE=0", "-DVM_TRACE=1", "-DVM_TRACE_VCD=1", "-w"),
    fast="-O0",  # optimising would take longer than it saves in a run with waves
    runtime=(*_PLAIN.runtime, "verilated_vcd_c.cpp"),
    piece=None,
)


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """The outcome of a bench.

    Attributes
    ----------
    tests : int
        Number of tests that ran.
    checked : int
        Number of results that the scoreboards of passed tests have compared.
    failures : dict of str to str
        Message of each failed test.
    log : str
        Output of the simulation.
    """

    tests: int
    checked: int
    failures: dict[str, str]
    log: str

    @property
    def passed(self) -> bool:
        """True if at least one test ran and none failed."""
        return self.tests > 0 and not self.failures


def simulator() -> str:
    """Return the name of the simulator, ``$SIM`` or verilator.

    Raises
    ------
    ToolError
        If the simulator is unknown or not installed.
    """
    name = os.environ.get("SIM") or "verilator"
    if name not in SIMULATORS:
        raise ToolError(f"SIM must be one of {', '.join(SIMULATORS)}, not {name!r}")
    if name == "icarus" and not shutil.which("iverilog"):
        raise ToolError("iverilog not found; install it (Debian: apt install iverilog)")
    return name


def run_bench(
    design: wiring.Component | str,
    module: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 1,
    waves: Path | None = None,
) -> BenchResult:
    """Run the cocotb tests of a module on a design.

    Parameters
    ----------
    design : wiring.Component or str
        The unit under test, or its Verilog with a top module ``top``, for example a mutant.
    module : str
        Name of the module with the tests.
    parameters : mapping, optional
        Parameters of the unit that the tests read by ``sim.bench.harness.parameters``. JSON must be
        able to represent them.
    seed : int
        Seed of all random numbers.
    waves : Path, optional
        Output file for the waveforms, in VCD format with Verilator.

    Returns
    -------
    result : BenchResult

    Raises
    ------
    ToolError, BuildError
        If a tool is missing, or refuses the design.
    """
    sim = simulator()
    text = design if isinstance(design, str) else to_verilog(design)
    build = _build(sim, text, waves is not None)
    with tempfile.TemporaryDirectory() as name:
        run = _BenchRun(Path(name))
        environment = {
            PARAMETERS: json.dumps(dict(parameters or {})),
            SEED: str(seed),
            COUNTS: str(run.counts),
            "COCOTB_ANSI_OUTPUT": "0",
            # cocotb lets pytest rewrite the assertions of every module that is imported, which
            # takes longer than most benches.
            "COCOTB_REWRITE_ASSERTION_FILES": "bench_*.py *_bench.py",
        }
        with suppress(SystemExit, RuntimeError), _quiet():  # the results or the log tell why
            need("cocotb_tools.runner").get_runner(sim).test(
                hdl_toplevel="top",
                hdl_toplevel_lang="verilog",
                test_module=module,
                build_dir=build,
                test_dir=run.folder,
                results_xml=str(run.results),
                seed=seed,
                extra_env=environment,
                waves=waves is not None,
                timescale=_TIMESCALE if sim == "icarus" else None,
                log_file=run.log,
            )
        if waves is not None and run.results.exists():
            run.move_waves(waves)
        return run.result(module)


class _BenchRun:
    """The files that a simulation writes into its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results.xml"
        self.counts = folder / "counts.txt"
        self.log = folder / "log.txt"

    def move_waves(self, target: Path) -> None:
        """Move the waveforms to a file."""
        for dump in (*self.folder.glob("*.vcd"), *self.folder.glob("*.fst")):
            shutil.move(dump, target)

    def result(self, module: str) -> BenchResult:
        """Return the outcome; without results, ``module`` has failed and the log tells why."""
        log = self.log.read_text() if self.log.exists() else ""
        if not self.results.exists():
            return BenchResult(tests=0, checked=0, failures={module: log[-4000:]}, log=log)
        checked = sum(map(int, self.counts.read_text().split())) if self.counts.exists() else 0
        tests, failures = 0, {}
        for case in ElementTree.parse(self.results).getroot().iter("testcase"):
            tests += 1
            for kind in ("failure", "error"):
                node = case.find(kind)
                if node is not None:
                    text = node.get("error_msg") or node.get("message") or node.text or kind
                    failures[str(case.get("name"))] = text
        return BenchResult(tests=tests, checked=checked, failures=failures, log=log)


def _build(sim: str, text: str, waves: bool) -> Path:
    """Return the folder with the simulation of a design, which is built if it is not cached."""
    if sim == "icarus":
        key = digest(text, version("cocotb"), _TIMESCALE, waves)
        return entry("icarus", key, lambda folder: _build_icarus(folder, text, waves))[0]
    recipe = _TRACED if waves else _PLAIN
    key = recipe.key(text, version("cocotb"), str(need("cocotb_tools.config").libs_dir))
    return entry("bench", key, lambda folder: _build_verilator(folder, text, recipe))[0]


def _build_verilator(folder: Path, text: str, recipe: Recipe) -> dict[str, Any]:
    """Build a model with cocotb's main program; cocotb's runner starts it by the name ``top``."""
    source, work = folder / "top.v", folder / "work"
    source.write_text(text)
    pieces = recipe.translate(source, work, top="top")
    main = need("cocotb_tools.config").share_dir / "lib" / "verilator" / "verilator.cpp"
    libraries = need("cocotb_tools.config").libs_dir
    recipe.link(
        recipe.objects(work, Path(main)) + pieces,
        folder / "top",
        *(f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"),
    )
    shutil.rmtree(work)
    return {}


def _build_icarus(folder: Path, text: str, waves: bool) -> dict[str, Any]:
    source, log = folder / "top.v", folder / "build.log"
    source.write_text(text)
    try:
        with _quiet():
            need("cocotb_tools.runner").get_runner("icarus").build(
                sources=[source],
                hdl_toplevel="top",
                build_dir=folder,
                timescale=_TIMESCALE,
                always=True,
                waves=waves,
                log_file=log,
            )
    except (SystemExit, RuntimeError):
        tail = "\n".join(log.read_text().splitlines()[-30:]) if log.exists() else ""
        raise BuildError(f"iverilog failed:\n{tail}") from None
    return {}


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard the command lines that cocotb's runner prints during the block."""
    with open(os.devnull, "w") as null:
        before, sys.stdout = sys.stdout, null
        try:
            yield
        finally:
            sys.stdout = before
