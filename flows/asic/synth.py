"""Logic synthesis of one component onto a cell library: area and mapped netlist.

One recipe produces every figure that this project reports, and the figures of other projects that
it compares with::

    synth -flatten -top TOP; dfflibmap -liberty L; abc -liberty L -constr C -D PS

The constraint file C drives every input with BUF_X4 and loads every output with 5 fF. The recipe
runs at two delay targets: at 10000 ps ABC is free to save area, and at 500 ps it must be fast.

A second recipe uses the library's full adders (``flows.asic.adders``), and chooses the sizes of the
cells by the delays of the whole design (``flows.asic.sizing``). It looks for full adders after ABC
has made gates, which finds the fewest gates around them. If the design then misses a tight target,
it also looks in the gates as they were written, which have shorter paths, and the faster result
counts.

Both recipes can give registers with an enable a gated clock (``flows.asic.gates``), with buffers
where a hold time needs them (``flows.asic.hold``).
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vitruvian.common.cache import ResultCache, digest
from vitruvian.flows.asic import adders, gates, hold
from vitruvian.flows.asic import liberty as liberty_format
from vitruvian.flows.asic.recipe import (
    SynthesisRecipe,
    adders_script,
    around_script,
    gating_commands,
    usual_script,
)
from vitruvian.flows.asic.sizing.fit import fit
from vitruvian.flows.yosys import WORKER, SynthesisError

RELAXED_PS = 10000
TIGHT_PS = 500
#: Number of the recipe with full adders, for stored results: it counts up with each change of it.
_ADDERS_VERSION = 7
#: The same of everything about clock gates.
_GATES_VERSION = 1
#: Number of choices of the forms of full adders.
_CHOICES = 2


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """One design mapped at one delay target.

    Members
    -------
    delay_target_ps : int
    area_um2 : float
        Sum of the areas of all cells.
    sequential_area_um2 : float
        The part of ``area_um2`` that belongs to flip-flops and latches.
    cells : dict
        Library cell name -> number of instances.
    abc_delay_ps : float or None
        ABC's own figure for the longest path inside combinational logic; None without logic.
        It contains neither clock-to-output nor set-up time; ``flows.asic.sta`` adds both.
    netlist : dict
        The module as Yosys' ``write_json`` gives it (ports, cells, netnames), and the instances of
        modules that are synthesised on their own.
    peak_mib : float
        Peak memory of the worker process, in MiB.
    """

    delay_target_ps: int
    area_um2: float
    sequential_area_um2: float
    cells: dict[str, int]
    abc_delay_ps: float | None
    netlist: dict[str, Any] = field(repr=False)
    peak_mib: float

    @property
    def cell_count(self) -> int:
        """Total number of cells."""
        return sum(self.cells.values())


def synthesize(
    rtlil: str,
    *,
    top: str = "top",
    liberty: Path,
    targets_ps: Sequence[int] = (RELAXED_PS, TIGHT_PS),
    recipe: SynthesisRecipe | None = None,
    cache: bool = True,
) -> dict[int, Mapped]:
    """Map the RTLIL text onto the cells of ``liberty``, once for each delay target.

    Parameters
    ----------
    rtlil : str
        One or several modules; everything below ``top`` is flattened into it.
    top : str
        Name of the top module, without the backslash.
    liberty : Path
        Liberty file of the cell library.
    targets_ps : sequence of int
        Delay targets for ABC, picoseconds, positive.
    recipe : SynthesisRecipe, optional
    cache : bool
        If True, reuse stored results and store new ones.

    Returns
    -------
    dict of int to Mapped
        Delay target -> mapped design.

    Raises
    ------
    SynthesisError
        If Yosys ends with an error, or if its output lacks a figure.
    """
    recipe = recipe or SynthesisRecipe()
    store = ResultCache(kind="synth", enabled=cache)
    common = digest(rtlil, top, liberty.read_bytes(), recipe.as_dict(), version("pyosys"), "2")
    if recipe.adders:
        common = digest(common, _ADDERS_VERSION)
    if recipe.clock_gates:
        common = digest(common, "clock gates", _GATES_VERSION)
    keys = {target: digest(common, target) for target in targets_ps}
    entries = {target: store.get(key) for target, key in keys.items()}
    missing = [target for target, entry in entries.items() if entry is None]
    if missing:
        for target, entry in _run(rtlil, top, liberty.resolve(), missing, recipe).items():
            entries[target] = entry
            store.put(keys[target], entry)
    return {target: Mapped(**entry) for target, entry in entries.items() if entry is not None}


def _run(
    rtlil: str, top: str, liberty: Path, targets_ps: Sequence[int], recipe: SynthesisRecipe
) -> dict[int, dict[str, Any]]:
    """Run the worker in a fresh directory and collect the results for each target."""
    with tempfile.TemporaryDirectory(prefix="synth-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        (folder / "constraint").write_text(recipe.constraint())
        # The library's own path may contain characters that a Yosys script cannot quote.
        cells = folder / "cells.lib"
        cells.symlink_to(liberty)
        if recipe.adders:
            (folder / "adders.v").write_text(adders.MAP)
            mapper = _AdderMapper(folder, top, rtlil, recipe, _parsed(liberty.read_bytes()))
            return {target: mapper.entry(target) for target in targets_ps}
        if recipe.clock_gates:
            return _run_gated(folder, top, rtlil, targets_ps, recipe, liberty)
        text = _work(folder, top, usual_script(top, cells, targets_ps, recipe))
        return {target: _collect(folder, top, target, text, rtlil) for target in targets_ps}


def _run_gated(
    folder: Path,
    top: str,
    rtlil: str,
    targets_ps: Sequence[int],
    recipe: SynthesisRecipe,
    liberty: Path,
) -> dict[int, dict[str, Any]]:
    """Run the usual recipe with clock gates in a folder with ``design.il``."""
    library = _parsed(liberty.read_bytes())
    script = usual_script(
        top, folder / "cells.lib", targets_ps, recipe, gating_commands(recipe, library)
    )
    text = _work(folder, top, script)
    entries = {target: _collect(folder, top, target, text, rtlil) for target in targets_ps}
    for entry in entries.values():
        gates.share(entry["netlist"], library, **recipe.conditions())
        hold.mend(entry["netlist"], library, **recipe.conditions())
        entry |= _areas(entry["netlist"], library)
    return entries


@lru_cache(maxsize=2)
def _parsed(text: bytes) -> liberty_format.Library:
    """Return the library of a liberty file, which every piece of a unit needs."""
    return liberty_format.parse(text.decode("utf-8", errors="replace"), name="liberty file")


class _AdderMapper:
    """The recipe with full adders for one design, in a folder with ``design.il``."""

    def __init__(
        self,
        folder: Path,
        top: str,
        rtlil: str,
        recipe: SynthesisRecipe,
        library: liberty_format.Library,
    ) -> None:
        self._folder, self._top, self._rtlil = folder, top, rtlil
        self._conditions = recipe.conditions()
        self._gating = gating_commands(recipe, library)
        self._library = library
        self._found: dict[bool, str] = {}

    def entry(self, target: int) -> dict[str, Any]:
        """Return the figures for one target."""
        wanted = None if target >= RELAXED_PS else target
        tries: list[tuple[float, dict[str, Any]]] = []
        for written in (False, True):
            for entry in self._mapped(target, written):
                if self._gating:
                    gates.share(entry["netlist"], self._library, **self._conditions)
                adders.sort_pins(entry["netlist"], self._library, **self._conditions)
                fitted = fit(entry["netlist"], self._library, target_ps=wanted, **self._conditions)
                if self._gating:
                    hold.mend(entry["netlist"], self._library, **self._conditions)
                entry |= _areas(entry["netlist"], self._library)
                if not self._gating:
                    entry["area_um2"] = fitted.area
                if wanted is None or fitted.delay <= wanted:
                    return entry
                tries.append((fitted.delay, entry))
        return min(tries, key=lambda one: one[0])[1]

    def _mapped(self, target: int, written: bool) -> list[dict[str, Any]]:
        """Map the design for each choice of the adders' forms; the smallest comes first.

        The second choice knows the cells of the first.
        """
        folder, top, cells = self._folder, self._top, self._folder / "cells.lib"
        if written not in self._found:
            _work(folder, top, adders_script(top, cells, written, self._gating))
            self._found[written] = (folder / "found.json").read_text()
        in_front: dict[tuple[str, str], float] = {}
        entries: list[dict[str, Any]] = []
        for _ in range(_CHOICES):
            found = json.loads(self._found[written])
            choice = adders.orient(found["modules"][top], in_front=in_front)
            (folder / f"oriented_{target}.json").write_text(json.dumps(found))
            log = _work(folder, top, around_script(top, cells, target, written, self._gating))
            entries.append(_collect(folder, top, target, log, self._rtlil))
            if not choice.adders:
                break
            in_front = adders.learn(entries[-1]["netlist"], choice.names, self._library)
        return sorted(entries, key=lambda entry: entry["area_um2"])


def _areas(netlist: dict[str, Any], library: liberty_format.Library) -> dict[str, Any]:
    """Return the areas of a mapped netlist, and its numbers of cells."""
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    areas = {kind: many * library.cells[kind].area_um2 for kind, many in kinds.items()}
    return {
        "area_um2": sum(areas.values()),
        "sequential_area_um2": sum(
            area for kind, area in areas.items() if library.cells[kind].clock is not None
        ),
        "cells": dict(sorted(kinds.items())),
    }


def _work(folder: Path, top: str, script: Sequence[str]) -> str:
    """Run a script of Yosys in a folder and return what it printed."""
    (folder / "script").write_text("\n".join(script))
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TMPDIR": str(folder)}
    with open(folder / "log", "wb") as log:
        code = _start(
            [sys.executable, str(WORKER), "script", "usage.json"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    text = (folder / "log").read_text(errors="replace")
    if code < 0:
        signal_name = signal.Signals(-code).name
        raise SynthesisError(f"Yosys was ended on {top!r} by {signal_name} (lack of memory?)")
    if code:
        raise SynthesisError(f"Yosys stopped on {top!r}: {_reason(text, code)}")
    return text


#: The workers that are running.
_running: set[subprocess.Popen[Any]] = set()


def _start(command: list[str], **settings: Any) -> int:
    """Run a worker, which ``stop`` can end, and return its exit code."""
    # A session of its own lets ``stop`` end Yosys together with ABC.
    with subprocess.Popen(command, start_new_session=True, **settings) as worker:
        _running.add(worker)
        try:
            return worker.wait()
        finally:
            _running.discard(worker)
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)


def stop() -> None:
    """Kill every running worker together with the ABC process that it started."""
    for worker in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)


def _reason(log: str, code: int) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:") or "Assertion" in line]
    mapper = [line for line in lines if line.startswith("ABC:") and "rror" in line]
    return (mapper or errors or lines or ["no output"])[-1] + f" (exit code {code})"


def _collect(folder: Path, top: str, target: int, text: str, rtlil: str) -> dict[str, Any]:
    """Return the figures that the worker wrote for one target, and in ``text``, which it printed.

    Raises
    ------
    SynthesisError
        If a figure is missing, or if the design did not map onto library cells.
    """
    usage = json.loads((folder / "usage.json").read_text())
    logs = dict(re.findall(r"@@TARGET (\d+)\n(.*?)(?=@@TARGET|\Z)", text, re.DOTALL))
    stat = json.loads((folder / f"stat_{target}.json").read_text())["modules"]["\\" + top]
    # The recipe does not map memories, and their area would be missing.
    if stat.get("num_memories"):
        raise SynthesisError(f"{top!r} must map onto cells, not onto memories")
    if "num_cells_by_type" not in stat:
        raise SynthesisError(f"stat of {top!r} must hold num_cells_by_type")
    # Cells of a blackboxed type are pieces that are synthesised on their own.
    boxes = set(re.findall(r"(?m)^attribute \\blackbox 1\nmodule \\(\S+)$", rtlil))
    cells = {k: int(v) for k, v in stat["num_cells_by_type"].items() if k not in boxes}
    # A module that contains only instances has no cells, and stat then reports no area.
    areas = [stat.get(name, 0.0 if not cells else None) for name in ("area", "sequential_area")]
    if None in areas:
        raise SynthesisError(f"stat of {top!r} must hold area and sequential_area")
    unmapped = [kind for kind in cells if kind.startswith("$")]
    if unmapped:
        raise SynthesisError(f"{top!r} must map onto library cells, but none exists for {unmapped}")
    netlist = json.loads((folder / f"netlist_{target}.json").read_text())["modules"][top]
    delays = re.findall(r"ABC: .*?Delay\s*=\s*([0-9.]+)\s*ps", logs[str(target)])
    return {
        "delay_target_ps": target,
        "area_um2": float(areas[0]),
        "sequential_area_um2": float(areas[1]),
        "cells": dict(sorted(cells.items())),
        "abc_delay_ps": max(map(float, delays)) if delays else None,
        "netlist": _slim(netlist, boxes),
        "peak_mib": float(usage["peak_mib"]),
    }


def _slim(netlist: dict[str, Any], boxes: set[str]) -> dict[str, Any]:
    """Return the parts of a netlist that timing needs: ports, cells with their pins, net names.

    Pins of modules that are synthesised elsewhere become ports of this one: an output of such a
    module is an input here. ``instances`` says which module and which pins these are.
    """
    ports = dict(netlist["ports"])
    cells, instances = {}, {}
    for name, cell in netlist["cells"].items():
        if cell["type"] not in boxes:
            cells[name] = {"type": cell["type"], "connections": cell["connections"]}
            continue
        instances[name] = {"type": cell["type"], "connections": cell["connections"]}
        for pin, bits in cell["connections"].items():
            # An input of that module is an output of this one.
            way = {"input": "output", "output": "input"}[cell["port_directions"][pin]]
            ports[f"{name}.{pin}"] = {"direction": way, "bits": bits}
    names = {name: net["bits"] for name, net in netlist["netnames"].items()}
    return {"ports": ports, "cells": cells, "instances": instances, "netnames": names}
