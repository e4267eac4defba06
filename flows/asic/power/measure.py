"""Power of unit variants: synthesis, simulation, comparison with golden, and energy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from vitruvian.common.compiling import compiled
from vitruvian.common.errors import UserError, WorkError
from vitruvian.flows.asic.cells import CellLibrary
from vitruvian.flows.asic.measure import AreaRow, Settings, measure
from vitruvian.flows.asic.power import cells
from vitruvian.flows.asic.power.energy import EnergySplit, energies
from vitruvian.flows.asic.power.events import EventCounts, simulate
from vitruvian.flows.asic.power.idle import idle_energy, idle_instances
from vitruvian.flows.asic.power.network import MappedNetwork, build
from vitruvian.flows.asic.power.stages import switching_by_stage
from vitruvian.flows.asic.power.stimulus import STIMULI, PowerStimulus, stimulus
from vitruvian.flows.asic.synth import TIGHT_PS, SynthesisRecipe
from vitruvian.hdl.catalogue.unit import Variant

#: Cycles that are counted unless the user says otherwise.
CYCLES = 1000


@dataclass(frozen=True, kw_only=True)
class PowerSettings:
    """Parameters of a measurement of power.

    Parameters
    ----------
    period_ps : float, optional
        Period of the clock; by default the longest path of each design, rounded up to 10 ps.
    targets_ps : sequence of int
        Delay targets for ABC, picoseconds.
    idle : int
        Percentage of cycles without new operands.
    stimuli : sequence of str
        Keys of ``stimulus.STIMULI``.
    """

    library: CellLibrary
    recipe: SynthesisRecipe = field(default_factory=SynthesisRecipe)
    period_ps: float | None = None
    stimuli: Sequence[str] = tuple(STIMULI)
    cycles: int = CYCLES
    seed: int = 1
    idle: int = 0
    targets_ps: Sequence[int] = (TIGHT_PS,)
    cache: bool = True


@dataclass(frozen=True, kw_only=True)
class PowerRow:
    """Power of one variant at one delay target under one stimulus.

    ``idle_fj`` is the energy of a cycle in gates that only precisions need which are not in use, or
    None for a unit with one precision. ``busy_share`` is the share of cycles with new operands,
    whose multiply-accumulates count.
    """

    variant: Variant
    target_ps: int
    stimulus: str
    cycles: int
    period_ps: float
    path_ps: float
    settled_ps: float
    zero_delay: EnergySplit
    timed: EnergySplit
    edges: int
    settled_edges: int
    stages: list[dict[str, float]]
    idle_fj: float | None = None
    busy_share: float = 1.0

    @property
    def macs(self) -> float:
        """The multiply-accumulates of a cycle, on average."""
        return self.variant.macs * self.busy_share

    @property
    def pj_per_mac(self) -> float:
        """The energy of a multiply-accumulate with delays, pJ."""
        return self.timed.total_fj / self.macs / 1000

    @property
    def zero_delay_pj_per_mac(self) -> float:
        """The energy of a multiply-accumulate without delays, pJ."""
        return self.zero_delay.total_fj / self.macs / 1000

    @property
    def glitch_share(self) -> float:
        """The share of the energy that glitches cause: what delays add to it."""
        return 1 - self.zero_delay.total_fj / self.timed.total_fj

    @property
    def idle_share(self) -> float | None:
        """The share of the energy in gates of idle precisions, or None for a single precision."""
        return None if self.idle_fj is None else self.idle_fj / self.timed.total_fj

    @property
    def milliwatts(self) -> float:
        """The power at the clock, mW."""
        return self.timed.total_fj / self.period_ps

    def as_json(self) -> dict[str, Any]:
        """Return all figures of the row as plain data."""
        return {
            "unit": self.variant.unit.name,
            "label": self.variant.label,
            "command": self.variant.arguments,
            "macs": self.variant.macs,
            "delay_target_ps": self.target_ps,
            "stimulus": self.stimulus,
            **({} if self.busy_share == 1 else {"busy_share": round(self.busy_share, 4)}),
            "cycles": self.cycles,
            "period_ps": round(self.period_ps, 1),
            "longest_path_ps": round(self.path_ps, 1),
            "settled_ps": round(self.settled_ps, 1),
            "pj_per_mac": round(self.pj_per_mac, 4),
            "zero_delay_pj_per_mac": round(self.zero_delay_pj_per_mac, 4),
            "glitch_share": round(self.glitch_share, 4),
            "glitch_share_of_edges": round(1 - self.settled_edges / self.edges, 4),
            **({} if self.idle_share is None else {"idle_share": round(self.idle_share, 4)}),
            "mw": round(self.milliwatts, 4),
            "edges_per_cycle": round(self.edges / self.cycles, 2),
            "switching_by_stage": [
                {name: round(value, 2) for name, value in stage.items()} for stage in self.stages
            ],
            **{
                f"{name}_fj": {part: round(value, 2) for part, value in split.parts.items()}
                | {"total": round(split.total_fj, 2), "switching": round(split.switching_fj, 2)}
                for name, split in (("zero_delay", self.zero_delay), ("timed", self.timed))
            },
        }


def measure_power(
    variants: Sequence[Variant],
    settings: PowerSettings,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[PowerRow]:
    """Return the power of every variant under every stimulus.

    Raises
    ------
    UserError
        If the period is shorter than the longest path, or if the unit or a cell is not supported.
    WorkError
        If the outputs of a netlist differ from golden.
    """
    # Operands first: a wrong stimulus or unit is found before the synthesis.
    drawn = [
        {
            name: stimulus(
                variant, name, cycles=settings.cycles, seed=settings.seed, idle=settings.idle
            )
            for name in dict.fromkeys(settings.stimuli)
        }
        for variant in variants
    ]
    library = cells.load(settings.library.path)
    area = Settings(
        library=settings.library,
        recipe=settings.recipe,
        targets_ps=settings.targets_ps,
        cut="whole",
        cache=settings.cache,
    )
    areas = measure(variants, area, progress=progress)
    # All periods first, so that a short one is refused before the first simulation.
    designs = [
        (row, target, stimuli, *_period(row, target, settings))
        for row, stimuli in zip(areas, drawn, strict=True)
        for target in settings.targets_ps
    ]
    rows: list[PowerRow] = []
    total = sum(len(design[2]) for design in designs)
    for row, target, stimuli, path_ps, period_ps in designs:
        mapped = build(
            row.pieces[0].mapped[target].netlist,
            settings.library.cells,
            library,
            driving_cell=settings.recipe.driving_cell,
            load_ff=settings.recipe.load_ff,
        )
        for name, operands in stimuli.items():
            label = f"{row.variant.unit.name} {row.variant.label} {name}"
            counts = run(mapped, operands, label=label)
            zero, timed = energies(
                mapped, library, counts, cycles=settings.cycles, period_ps=period_ps
            )
            rows.append(
                PowerRow(
                    variant=row.variant, target_ps=target, stimulus=name, cycles=settings.cycles,
                    period_ps=period_ps, path_ps=path_ps, settled_ps=int(counts.last[0]) / 1000,
                    zero_delay=zero, timed=timed, edges=int(counts.events.sum()),
                    settled_edges=int(counts.settled.sum()),
                    stages=switching_by_stage(
                        mapped, counts, volts=library.volts, cycles=settings.cycles
                    ),
                    idle_fj=_idle_fj(mapped, operands, timed, counts, library, settings),
                    busy_share=operands.busy_share,
                )
            )  # fmt: skip
            progress(f"simulate {label}", len(rows), total)
    return rows


def _idle_fj(
    mapped: MappedNetwork,
    operands: PowerStimulus,
    timed: EnergySplit,
    counts: EventCounts,
    library: cells.PowerLibrary,
    settings: PowerSettings,
) -> float | None:
    """Return the energy in gates of precisions that are not in use, or None for one precision."""
    if not operands.held:
        return None
    # A port without operands is a reset, which stays 0.
    held = {(p, bit): 0 for p, bit in mapped.input_bits if p not in operands.inputs}
    for port, value in operands.held.items():
        held |= {(p, bit): value >> bit & 1 for p, bit in mapped.input_bits if p == port}
    idle = idle_instances(mapped, held)
    return idle_energy(mapped, timed, counts, idle, volts=library.volts, cycles=settings.cycles)


def _period(row: AreaRow, target: int, settings: PowerSettings) -> tuple[float, float]:
    """Return the longest path and the period in ps."""
    path = row.delay_ps(target)
    if path is None:
        raise UserError(f"{row.variant.label} must have logic for power")
    if settings.period_ps is None:
        return path, 10.0 * ceil(path / 10)
    if settings.period_ps < path:
        raise UserError(
            f"period must be at least the longest path of {row.variant.label}, {path / 1000:.3f} "
            f"ns, or results are wrong, not {settings.period_ps / 1000:g} ns"
        )
    return path, settings.period_ps


def run(
    mapped: MappedNetwork, drawn: PowerStimulus, *, label: str, plain: bool = False
) -> EventCounts:
    """Simulate a netlist, compare its outputs with the expected ones, and return the counts.

    Parameters
    ----------
    label : str
        Name of the design, for messages.
    plain : bool
        If True, run the simulation as plain Python, which needs no compilation.

    Raises
    ------
    WorkError
        If an output differs.
    """
    network = mapped.network
    cycles = len(next(iter(drawn.inputs.values())))
    # Ports without a stimulus, such as a reset, stay 0.
    columns = [
        drawn.inputs[port][:, bit] if port in drawn.inputs else np.zeros(cycles, np.uint8)
        for port, bit in mapped.input_bits
    ]
    stimuli = np.ascontiguousarray(np.stack(columns, axis=1))
    nets = len(network.truth)
    counts = EventCounts(
        events=np.zeros((nets, 2), np.int64),
        settled=np.zeros((nets, 2), np.int64),
        arcs=np.zeros((len(network.target), 2), np.int64),
        states=np.zeros((len(network.data), 4), np.int64),
        opened=np.zeros((len(network.gates), 4), np.int64),
        last=np.zeros(1, np.int64),
    )
    outputs = np.zeros((cycles, len(network.outputs)), np.uint8)
    state = np.zeros(len(network.data), np.int64)
    function = simulate if plain else compiled(simulate)
    function(
        network, mapped.pattern.copy(), mapped.value.copy(), state, stimuli, drawn.warm_up, counts,
        outputs,
    )  # fmt: skip
    _compare(mapped, drawn, outputs, label)
    return counts


def _compare(mapped: MappedNetwork, drawn: PowerStimulus, outputs: np.ndarray, label: str) -> None:
    latency = drawn.latency
    for column, (port, bit) in enumerate(mapped.output_bits):
        if port in drawn.unknown:
            continue
        expected = drawn.expected[port][:, bit]
        wrong = outputs[latency:, column] != expected[: len(expected) - latency]
        if wrong.any():
            raise WorkError(
                f"{label}: {port}[{bit}] of the netlist differs from golden in {wrong.sum()} of "
                f"{len(wrong)} cycles, first in cycle {int(np.argmax(wrong)) + latency}"
            )
