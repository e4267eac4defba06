"""Check a program, time it and compute its data with one call."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vitruvian.common.collector import paused_collector
from vitruvian.common.compiling import tell_on_terminal
from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing.engine import EngineTimes, run
from vitruvian.sim.davinci.timing.lowering import Lowered, lower


def simulate(
    program: Program,
    chip: Chip | str | None = None,
    cube: Any = "golden",
    *,
    core: Any = None,
    checks: bool = True,
    strict: bool = False,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
    block_bytes: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
    computed: Any = None,
) -> Report:
    """Run a program on a chip.

    Parameters
    ----------
    chip : Chip or str, optional
        The chip whose times are used, by default the one that the program was built for.
    cube : str, callable or None
        The implementation of mmad: "golden" (bit-exact), "fast" (FP32), "rtl" (the compiled matrix
        unit with its own cycle counts, see ``sim.rtl.davinci``), or a ``semantics.Product`` of your
        own. Data are computed only if the program has any; None computes times alone. If the
        product has a method ``period_s(instruction, chip)``, that method returns the seconds that
        an mmad takes, or None to use the chip's time.
    core : str or CoreConfig, optional
        A core in hardware ("tiny", "plain", or its parameters). Its RTL, compiled, then computes
        the data and counts the cycles of ``Report.core``, and the times are those that the engine
        predicts for it. ``chip`` and ``cube`` must be left out.
    checks : bool
        If True, look for races and the other mistakes of ``sim.davinci.checks.check`` and put the
        findings into the report. Data are not computed if an operand is out of bounds.
    strict : bool
        If True, the checks report dependent instructions of a queue without a barrier between them
        for every chip, also for those that interlock the queue.
    offsets_s : mapping of (kind, index) to float, optional
        Seconds by which a core starts late, for each core that does.
    block_bytes : int
        The granularity of bus arbitration in bytes, or 0 for none; see ``engine.run``.
    progress : callable, optional
        Called with the task that is running, the number of its steps that are finished, and the
        number of all its steps.
    computed : Functional, optional
        The data after the program. If the checks find nothing, no order changes them, so that they
        are not computed again if its cube is ``cube``.

    Returns
    -------
    Report

    Raises
    ------
    Deadlock
        If the program never ends; the message contains the cycle of waits.
    CoreFault
        If the core stops with a fault.
    ValueError
        If the chip or core cannot run the program, or the data cannot be computed; the message
        contains the file and line.

    Examples
    --------
    >>> from vitruvian import load_chip, simulate
    >>> from vitruvian.sim.kernels import KERNELS
    >>> kernel = KERNELS["matmul"].build((16, 16, 16), chip=load_chip("ascend310"))
    >>> report = simulate(kernel.program)
    >>> report.total_s > 0 and not report.findings
    True
    """
    if core is not None:
        if chip is not None or cube != "golden":
            raise ValueError("core must come without chip and cube, which it has itself")
        from .machine_code.chip import core_chip

        chip, cube = core_chip(core), None
    chip = program.chip if chip is None else load_chip(chip) if isinstance(chip, str) else chip
    if cube == "rtl":
        from .semantics import CUBES

        cube = CUBES[cube]()
    periods = _periods(program, chip, cube) if hasattr(cube, "period_s") else None
    tell_on_terminal()
    tell = progress or _quiet
    # Millions of new objects that all stay would make Python's collector run again and again.
    with paused_collector():
        tell("preparing", 0, 1)
        lowered, streams = lower(program, chip, offsets_s=offsets_s, mmad_periods_s=periods)
        tell("checking", 0, 1)
        findings = []
        if checks:
            findings = check_lowered(program, lowered, streams, chip=chip, strict=strict)
    tell("timing", 0, 1)
    times = run(lowered, streams, block_bytes=block_bytes)
    report = Report(program.name, chip, lowered, streams, times, findings)
    report.sources, report.calls = program.sources, program.calls
    if core is not None and all(f.check != "bounds" for f in findings):
        from .machine_code.core import run_on_core

        tell("running the core", 0, 1)
        done = run_on_core(program, core)
        report.core, report.outputs = done.run, done.outputs
    if cube is not None and program.data and all(f.check != "bounds" for f in findings):
        if checks and not findings and computed is not None and computed.cube == cube:
            report.outputs = dict(computed.tensors())
        else:
            report.outputs = _data(program, lowered, times, cube, tell)
    return report


def _periods(program: Program, chip: Chip, cube: Any) -> dict[int, float]:
    """Return the seconds of each mmad, keyed by its index in the lowered arrays."""
    periods, number = {}, 0
    for core in program:
        for instr in core.instructions:
            if instr.unit == Unit.M and instr.op == "mmad":
                seconds = cube.period_s(instr, chip)
                if seconds is not None:
                    periods[number] = seconds
            number += 1
    return periods


def _quiet(task: str, done: int, total: int) -> None:
    """Show no progress."""


#: Instructions that are executed between two reports of the progress.
_REPORTED = 1024


def _data(
    program: Program,
    lowered: Lowered,
    times: EngineTimes,
    cube: Any,
    tell: Callable[[str, int, int], object],
) -> dict[str, np.ndarray]:
    """Execute the instructions in the order in which they end; return the final tensors."""
    from .semantics import Functional

    functional = Functional(program, cube)
    cores = [core for core in program if core.instructions]
    core_of = np.repeat(np.arange(len(cores)), np.diff(lowered.first)).tolist()
    first = lowered.first.tolist()
    left = np.diff(lowered.first).tolist()
    # An instruction takes effect at its end; of equal ends, the one that started first comes first.
    for done, i in enumerate(np.lexsort((times.start, times.end)).tolist()):
        if done % _REPORTED == 0:
            tell("computing data", done, len(lowered))
        number = core_of[i]
        core = cores[number]
        functional.execute(core, core.instructions[i - first[number]])
        left[number] -= 1
        if not left[number]:  # a launch of 65535 blocks has as many buffers
            functional.release(core)
    return dict(functional.tensors())
