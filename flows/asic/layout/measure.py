"""Layout of a unit: synthesis, placement, routing, files, checks, and delay with the wires."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.flows.asic import hold, sta
from vitruvian.flows.asic.cells import CellLibrary
from vitruvian.flows.asic.layout import access, compare, def_file, gds, lef, picture, process, rules
from vitruvian.flows.asic.layout.build import RoutedLayout, Tell, lay_out
from vitruvian.flows.asic.measure import Settings, measure
from vitruvian.flows.asic.power import cells as power_cells
from vitruvian.flows.asic.power.energy import energies
from vitruvian.flows.asic.power.measure import run
from vitruvian.flows.asic.power.network import build
from vitruvian.flows.asic.power.stimulus import PowerStimulus, stimulus
from vitruvian.flows.asic.synth import TIGHT_PS, SynthesisRecipe
from vitruvian.hdl.catalogue.unit import Variant


@dataclass(frozen=True, kw_only=True)
class LayoutSettings:
    """Parameters of a layout.

    Parameters
    ----------
    library : CellLibrary
        The cells; they must have shapes, see ``process``.
    target_ps : int
        Delay target for ABC, picoseconds.
    utilisation : float
        Share of the rows that cells fill.
    block_um : (float, float), optional
        Width and height of the block; without them, it is a square by the utilisation.
    power_cycles : int
        Cycles of the simulation of power on uniform operands; 0 for none.
    """

    library: CellLibrary
    recipe: SynthesisRecipe = field(default_factory=SynthesisRecipe)
    target_ps: int = TIGHT_PS
    utilisation: float = 0.7
    block_um: tuple[float, float] | None = None
    power_cycles: int = 0
    cache: bool = True


@dataclass(frozen=True, kw_only=True)
class LayoutSummary:
    """The figures of a layout.

    ``delay_ps`` has the longest path without wires, with the wire-load model of the library, and
    with the wires of the layout. ``pj_per_mac`` has the energy with the latter two, if it was
    asked for. ``seconds`` has the time of every step. ``hold_ps`` has the least slack of a hold
    time with the wires, if the design has clock gates.
    """

    variant: Variant
    target_ps: int
    cells: int
    cell_area_um2: float
    width_um: float
    height_um: float
    rows: int
    utilisation: float
    nets: int
    half_perimeter_um: float
    wire_um: dict[str, float]
    vias: int
    wire_ff: float
    model_ff: float
    rounds: int
    opens: list[str]
    shorts: list[tuple[str, ...]]
    missing: list[str]
    markers: list[rules.Marker]
    delay_ps: dict[str, float | None]
    pj_per_mac: dict[str, float]
    seconds: dict[str, float]
    files: list[str]
    licence: str
    hold_ps: float | None = None

    @property
    def clean(self) -> bool:
        """Whether no check found anything."""
        return not (self.opens or self.shorts or self.missing or self.markers)

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        known = {k: value for k, value in vars(self).items() if k not in ("variant", "markers")}
        delays = {k: None if v is None else round(v, 1) for k, v in self.delay_ps.items()}
        by_rule = Counter(marker.rule for marker in self.markers)
        return {
            "unit": self.variant.unit.name,
            "label": self.variant.label,
            "command": self.variant.arguments,
            **{k: round(v, 3) if isinstance(v, float) else v for k, v in known.items()},
            "wire_um": {metal: round(length, 1) for metal, length in self.wire_um.items()},
            "delay_ps": delays,
            "pj_per_mac": {name: round(value, 4) for name, value in self.pj_per_mac.items()},
            "seconds": {step: round(value, 1) for step, value in self.seconds.items()},
            "markers": len(self.markers),
            "markers_by_rule": dict(sorted(by_rule.items())),
            "first_markers": [vars(marker) for marker in self.markers[:20]],
        }


def measure_layout(
    variant: Variant, settings: LayoutSettings, folder: Path, *, progress: Tell
) -> LayoutSummary:
    """Lay out one variant, write its files into a folder, and check the GDS that was written.

    Raises
    ------
    UserError
        If the library cannot be downloaded, or if its shapes do not suit the router.
    """
    known = process.load(settings.library)
    # Operands first: a unit whose power is not known is refused before the work.
    operands = (
        stimulus(variant, "uniform", cycles=settings.power_cycles, seed=1)
        if settings.power_cycles
        else None
    )
    try:
        unreached = set(access.unreachable(known.technology))
    except lef.LefError as error:
        raise UserError(str(error)) from error
    avoid = tuple(sorted(unreached & settings.library.cells.cells.keys()))
    area = Settings(
        library=settings.library, recipe=replace(settings.recipe, avoid=avoid),
        targets_ps=(settings.target_ps,), cut="whole", cache=settings.cache,
    )  # fmt: skip
    (row,) = measure([variant], area, progress=progress)
    netlist = row.pieces[0].mapped[settings.target_ps].netlist
    seconds: dict[str, float] = {}
    began = perf_counter()

    def lap(step: str) -> None:
        nonlocal began
        seconds[step] = perf_counter() - began
        began = perf_counter()

    try:
        made = lay_out(
            netlist, known.technology, utilisation=settings.utilisation,
            block_um=settings.block_um, tell=progress,
        )  # fmt: skip
    except lef.LefError as error:
        raise UserError(str(error)) from error
    lap("place and route")
    top = variant.module
    files = _write(made, top, known.gds, folder, f"{variant.unit.name} {variant.label}")
    lap("write")
    progress("check design rules", 0, 2)
    markers = rules.check(folder / f"{top}.gds", top, known.technology)
    progress("compare with the netlist", 1, 2)
    found = compare.compare(folder / f"{top}.gds", top, made.layout.design, known.technology)
    lap("check")
    summary = _summary(
        variant, settings, made, netlist, markers=markers, found=found, seconds=seconds,
        files=files, licence=known.licence,
    )  # fmt: skip
    if operands is not None:
        progress("simulate power", 0, 1)
        summary.pj_per_mac.update(
            energies_pj(netlist, settings, operands, made.wires_ff(), summary)
        )
        lap("power")
    path = folder / f"{top}.json"
    summary.files.append(str(path))
    write_whole(path, json.dumps(summary.as_json(), indent=1) + "\n")
    return summary


def _write(made: RoutedLayout, top: str, cells: Path, folder: Path, title: str) -> list[str]:
    """Write DEF, picture and GDS, and return their names."""
    names = [folder / f"{top}.{ending}" for ending in ("def", "svg", "gds")]
    write_whole(names[0], def_file.text(made.layout, top))
    write_whole(names[1], picture.svg(made.layout, title))
    gds.write(made.layout, top, cells, names[2])
    return [str(name) for name in names]


def _summary(
    variant: Variant,
    settings: LayoutSettings,
    made: RoutedLayout,
    netlist: dict[str, Any],
    *,
    markers: list[rules.Marker],
    found: compare.Comparison,
    seconds: dict[str, float],
    files: list[str],
    licence: str,
) -> LayoutSummary:
    layout, plan = made.layout, made.layout.plan
    technology = layout.technology
    site, height = technology.site
    area = sum(macro.width * macro.height for macro in layout.design.macros)
    inside = plan.rows * (plan.sites - len(plan.taps) * plan.tap) * site * height
    capacitance = made.wires_ff()
    delays, model_ff = delays_ps(netlist, settings, capacitance)
    routed = sta.TimingGraph(
        netlist, settings.library.cells, settings.recipe.driving_cell, settings.recipe.load_ff,
        capacitance,
    )  # fmt: skip
    gated = any(gate >= 0 for gate in routed.gates)
    joined = sum(layout.design.terminals(n) > 1 for n in range(len(layout.design.nets)))
    return LayoutSummary(
        variant=variant, target_ps=settings.target_ps, cells=len(layout.design.names),
        cell_area_um2=area / technology.per_micron**2, width_um=technology.microns(plan.width),
        height_um=technology.microns(plan.height), rows=plan.rows, utilisation=area / inside,
        nets=joined, half_perimeter_um=made.swapped_um, wire_um=made.wire_um_by_metal(),
        vias=made.vias, wire_ff=sum(capacitance.values()), model_ff=model_ff,
        rounds=len(made.conflicts), opens=found.opens, shorts=found.shorts, missing=found.missing,
        markers=markers, delay_ps=delays, pj_per_mac={}, seconds=seconds,
        files=files, licence=licence,
        hold_ps=min(hold.slacks(routed).values(), default=None) if gated else None,
    )  # fmt: skip


def energies_pj(
    netlist: dict[str, Any],
    settings: LayoutSettings,
    operands: PowerStimulus,
    wires_ff: dict[int, float],
    summary: LayoutSummary,
) -> dict[str, float]:
    """Return the energy of a multiply-accumulate with glitches, pJ, by the model and by the layout.

    The clock has the period of the longest path of the layout, on which the leakage depends.
    """
    known = power_cells.load(settings.library.path)
    found = {}
    for name, wires in (("wire-load model", None), ("layout", wires_ff)):
        mapped = build(
            netlist, settings.library.cells, known, driving_cell=settings.recipe.driving_cell,
            load_ff=settings.recipe.load_ff, wires_ff=wires,
        )  # fmt: skip
        counts = run(mapped, operands, label=f"{summary.variant.unit.name} with wires")
        _, timed = energies(
            mapped, known, counts, cycles=settings.power_cycles,
            period_ps=summary.delay_ps["layout"] or 0.0,
        )  # fmt: skip
        found[name] = timed.total_fj / summary.variant.macs / 1000
    return found


def delays_ps(
    netlist: dict[str, Any], settings: LayoutSettings, wires_ff: dict[int, float]
) -> tuple[dict[str, float | None], float]:
    """Return the longest path without wires, by the wire-load model, and with the wires.

    The second result is the capacitance of all wires by the model, in fF.
    """
    library, recipe = settings.library.cells, settings.recipe

    def graph(wires: dict[int, float] | None) -> sta.TimingGraph:
        return sta.TimingGraph(netlist, library, recipe.driving_cell, recipe.load_ff, wires)

    graphs = {"no wires": graph({}), "wire-load model": graph(None), "layout": graph(wires_ff)}
    delays = {name: each.timing().delay_ps for name, each in graphs.items()}
    more = graphs["wire-load model"].load - graphs["no wires"].load
    return delays, float(more.sum() / 2)
