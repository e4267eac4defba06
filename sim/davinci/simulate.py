"""One call for all of it: checks, times, data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing.engine import Times, run
from vitruvian.sim.davinci.timing.lowering import Lowered, lower

__all__ = ["simulate"]


def simulate(
    program: Program,
    chip: Chip | str | None = None,
    cube: Any = "golden",
    *,
    checks: bool = True,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
    block_bytes: int = 0,
) -> Report:
    """Run a program on a chip.

    Parameters
    ----------
    program : Program
    chip : Chip or str, optional
        Whose times are taken; the chip that the program was built for by default.
    cube : str, callable or None
        Who computes mmad: "golden" (to the bit), "fast" (FP32), "rtl" (the compiled matrix unit,
        and its cycles: see `sim.rtl.davinci`), or a `semantics.Product` of your own. Data are
        computed if the program has any; with None they are not, only times. A product with a method
        ``period_s(instruction, chip)`` also says how long each mmad takes, in seconds, or None for
        what the chip says.
    checks : bool
        Look for races and the other mistakes of `sim.davinci.checks.check`; what is found is in the
        report. Data are not computed if something is out of bounds.
    offsets_s : mapping of (kind, index) to float, optional
        Seconds that a core starts later.
    block_bytes : int
        Grain of the arbitration of a bus, 0 for none; see `engine.run`.

    Raises
    ------
    Deadlock
        If the program never ends; the message has the cycle of waits.
    ValueError
        If the chip cannot run the program, or data cannot be computed; with file and line.
    """
    chip = program.chip if chip is None else load_chip(chip) if isinstance(chip, str) else chip
    if cube == "rtl":
        from .semantics import CUBES

        cube = CUBES[cube]()
    periods = _periods(program, chip, cube) if hasattr(cube, "period_s") else None
    low, streams = lower(program, chip, offsets_s=offsets_s, mmad_periods_s=periods)
    findings = check_lowered(program, low, streams) if checks else []
    times = run(low, streams, block_bytes=block_bytes)
    report = Report(program.name, chip, low, streams, times, findings)
    if cube is not None and program.data and all(f.check != "bounds" for f in findings):
        report.outputs = _data(program, low, times, cube)
    return report


def _periods(program: Program, chip: Chip, cube: Any) -> dict[int, float]:
    """Seconds of each mmad by its number in the arrays."""
    found, number = {}, 0
    for core in program:
        for one in core.instructions:
            if one.unit == Unit.M and one.op == "mmad":
                seconds = cube.period_s(one, chip)
                if seconds is not None:
                    found[number] = seconds
            number += 1
    return found


def _data(program: Program, low: Lowered, times: Times, cube: Any) -> dict[str, np.ndarray]:
    """What the tensors hold at the end: instructions in the order in which they end."""
    from .semantics import Functional

    functional = Functional(program, cube)
    cores = [core for core in program if core.instructions]
    core_of = np.repeat(np.arange(len(cores)), np.diff(low.first)).tolist()
    first = low.first.tolist()
    for i in np.lexsort((times.start, times.end)).tolist():
        core = cores[core_of[i]]
        functional.execute(core, core.instructions[i - first[core_of[i]]])
    return dict(functional.tensors())
