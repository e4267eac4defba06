"""Measure area and longest path of unit variants; every distinct piece is synthesised once."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any

from vitruvian.flows.asic import sta, tile
from vitruvian.flows.asic.cells import CellLibrary
from vitruvian.flows.asic.hierarchy import SynthesisedPart
from vitruvian.flows.asic.pieces import Cut, known_parts, parts_of
from vitruvian.flows.asic.synth import (
    RELAXED_PS,
    TIGHT_PS,
    Mapped,
    SynthesisRecipe,
    stop,
    synthesize,
)
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant

TARGETS_PS = (RELAXED_PS, TIGHT_PS)

#: A function that is told of a finished step: its description, steps done, and steps known so far.
_Report = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Parameters of a measurement.

    Parameters
    ----------
    targets_ps : sequence of int
        Delay targets for ABC, picoseconds.
    cut : str
        Where a unit is cut into pieces: see ``flows.asic.pieces.Cut``.
    tile : bool
        If True, put the pieces together with buffers between them, and measure the whole unit.
    cache : bool
        If True, reuse stored results and store new ones.
    jobs : int
        Number of pieces that are synthesised at the same time, by default one for each core.
    """

    library: CellLibrary
    recipe: SynthesisRecipe = field(default_factory=SynthesisRecipe)
    targets_ps: Sequence[int] = TARGETS_PS
    cut: Cut = "shared"
    tile: bool = False
    cache: bool = True
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)


@dataclass(frozen=True, kw_only=True)
class MeasuredPiece:
    """A distinct module of a variant, its instance count and its mapped netlists.

    ``name`` is unique among the modules, and ``label`` is for people.
    """

    name: str
    label: str
    count: int
    mapped: dict[int, Mapped]
    timing: dict[int, sta.PathTiming]

    def area_um2(self, target: int) -> float:
        """Return the area of all instances in µm²."""
        return self.mapped[target].area_um2 * self.count


@dataclass(frozen=True, kw_only=True)
class AreaRow:
    """Area and delay of one variant.

    For a variant of several pieces the delay is the longest path inside one piece; every piece
    has its own input driver and output load. If the pieces were put together (``tiles``, for each
    delay target), the delay is that of the whole unit, and its buffers count as area and cells.
    """

    variant: Variant
    pieces: tuple[MeasuredPiece, ...]
    targets_ps: tuple[int, ...]
    tiles: Mapping[int, tile.AssembledTile] = field(default_factory=dict)

    def area_um2(self, target: int) -> float:
        """Return the total area, every piece times its instance count, in µm²."""
        area = sum(piece.area_um2(target) for piece in self.pieces)
        return area + (self.tiles[target].buffer_area_um2 if self.tiles else 0.0)

    def register_area_um2(self, target: int) -> float:
        """Return the area of the flip-flops and latches in µm²."""
        return sum(p.mapped[target].sequential_area_um2 * p.count for p in self.pieces)

    def cells(self, target: int) -> int:
        """Return the total number of library cells."""
        count = sum(p.mapped[target].cell_count * p.count for p in self.pieces)
        return count + (sum(self.tiles[target].buffers.values()) if self.tiles else 0)

    def area_per_mac(self, target: int) -> float | None:
        """Return µm² per multiply-accumulate a cycle, or None for a unit without any."""
        macs = self.variant.macs
        return self.area_um2(target) / macs if macs else None

    def timings(self, target: int) -> list[sta.PathTiming]:
        """Return the timing of the whole unit if it was put together, otherwise of every piece."""
        if self.tiles:
            return [self.tiles[target].timing]
        return [piece.timing[target] for piece in self.pieces]

    def worst(self, target: int) -> sta.TimingPath | None:
        """Return the longest path, or None for a unit without logic."""
        paths = [timing.worst for timing in self.timings(target)]
        known = [path for path in paths if path is not None]
        return max(known, key=lambda path: path.delay_ps, default=None)

    def delay_ps(self, target: int) -> float | None:
        """Return the length of the longest path in ps, or None for a unit without logic."""
        worst = self.worst(target)
        return None if worst is None else worst.delay_ps

    def class_ps(self, target: int) -> dict[str, float]:
        """Return path class -> longest delay in ps over all pieces."""
        longest: dict[str, float] = {}
        for timing in self.timings(target):
            for kind, path in timing.paths.items():
                longest[kind] = max(longest.get(kind, 0.0), path.delay_ps)
        return longest

    def abc_delay_ps(self, target: int) -> float | None:
        """Return ABC's own figure for the slowest piece in ps, or None without logic."""
        delays = [p.mapped[target].abc_delay_ps for p in self.pieces]
        return max((d for d in delays if d is not None), default=None)

    def peak_mib(self) -> float:
        """Return the largest memory of a worker process in MiB."""
        return max(m.peak_mib for p in self.pieces for m in p.mapped.values())

    def as_json(self) -> dict[str, Any]:
        """Return all figures of the row as plain data."""
        return {
            "unit": self.variant.unit.name,
            "label": self.variant.label,
            "command": self.variant.arguments,
            "configuration": dict(self.variant.configuration),
            "macs": self.variant.macs,
            "targets": {str(target): self._target(target) for target in self.targets_ps},
            "peak_mib": self.peak_mib(),
        }

    def _target(self, target: int) -> dict[str, Any]:
        worst = self.worst(target)
        return {
            "area_um2": round(self.area_um2(target), 3),
            "area_um2_per_mac": _rounded(self.area_per_mac(target)),
            "register_area_um2": round(self.register_area_um2(target), 3),
            "cells": self.cells(target),
            "delay_ps": _rounded(self.delay_ps(target)),
            "delay_by_class_ps": {k: _rounded(v) for k, v in self.class_ps(target).items()},
            "abc_delay_ps": self.abc_delay_ps(target),
            "path": [] if worst is None else [vars(step) for step in worst.steps],
            **self._whole(target),
            "modules": [
                {
                    "module": piece.label,
                    "count": piece.count,
                    "area_um2_each": round(piece.mapped[target].area_um2, 3),
                    "area_um2": round(piece.area_um2(target), 3),
                    "delay_ps": _rounded(piece.timing[target].delay_ps),
                }
                for piece in self.pieces
            ],
        }

    def _whole(self, target: int) -> dict[str, Any]:
        """Return the figures that only a unit has whose pieces were put together."""
        if not self.tiles:
            return {}
        whole = self.tiles[target]
        return {
            "buffers": whole.buffers,
            "buffer_area_um2": round(whole.buffer_area_um2, 3),
            "split_ps": {part: _rounded(delay) for part, delay in whole.split().items()},
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def measure(
    variants: Iterable[Variant],
    settings: Settings,
    *,
    progress: _Report = lambda what, done, total: None,
) -> list[AreaRow]:
    """Measure every variant; a piece that occurs in several variants is synthesised once.

    Parameters
    ----------
    progress : callable
        Called with (description of the finished step, pieces done, pieces known so far).

    Returns
    -------
    list of AreaRow
        One row for each variant, in the same order.

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
    """
    variants = list(variants)
    settings.library.cells  # noqa: B018 parse once, before the threads start
    parts: dict[int, list[SynthesisedPart]] = {}
    with ThreadPoolExecutor(settings.jobs) as pool, _elaborators(settings.jobs) as elaborators:
        try:
            synthesis = _Synthesis(pool, settings)
            for number, own_parts in _elaborated(variants, settings, elaborators, progress):
                parts[number] = own_parts
                synthesis.submit(variants[number], own_parts)
            pieces = synthesis.finished(progress)
        except BaseException:  # Ctrl-C too: leave no process behind
            elaborators.shutdown(wait=False, cancel_futures=True)
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            for process in active_children():
                process.kill()
            raise
    targets = tuple(settings.targets_ps)
    rows: list[AreaRow] = []
    for number, variant in enumerate(variants):
        own = _own_pieces(parts[number], pieces)
        tiles = _tiles(own, settings) if settings.tile else {}
        rows.append(AreaRow(variant=variant, pieces=own, targets_ps=targets, tiles=tiles))
        if settings.tile:
            progress(f"join {variant.unit.name} {variant.label}", number + 1, len(variants))
    return rows


def _tiles(pieces: Sequence[MeasuredPiece], settings: Settings) -> dict[int, tile.AssembledTile]:
    """Put the pieces of a variant together, for every delay target; the top comes first."""
    tiles: dict[int, tile.AssembledTile] = {}
    for target in settings.targets_ps:
        assemble = partial(
            tile.assemble,
            {
                p.name: tile.TileModule(label=p.label, netlist=p.mapped[target].netlist)
                for p in pieces
            },
            pieces[0].name,
            settings.library.cells,
            driving_cell=settings.recipe.driving_cell,
            load_ff=settings.recipe.load_ff,
        )
        try:
            tiles[target] = assemble()
        except ValueError:  # equal modules in a row are a loop if there is one copy of them
            tiles[target] = assemble(fold=False)
    return tiles


def _elaborated(
    variants: Sequence[Variant],
    settings: Settings,
    elaborators: ProcessPoolExecutor,
    progress: _Report,
) -> Iterator[tuple[int, list[SynthesisedPart]]]:
    """Yield the index of every variant with its parts, as soon as these are known."""
    designs: dict[Future[list[SynthesisedPart]], int] = {}
    for number, variant in enumerate(variants):
        known = known_parts(variant, settings.cut) if settings.cache else None
        if known is not None:
            yield number, known
        # A registered unit can be named to another process; any other is elaborated here.
        elif UNITS.get(variant.unit.name) is variant.unit:
            named = (variant.unit.name, dict(variant.configuration), settings.cut)
            designs[elaborators.submit(_parts, *named)] = number
        else:
            yield number, parts_of(variant, settings.cut)
    for done, design in enumerate(as_completed(designs), 1):
        number = designs[design]
        yield number, design.result()
        label = f"{variants[number].unit.name} {variants[number].label}"
        progress(f"elaborate {label}", done, len(variants))


class _Synthesis:
    """The synthesis of distinct pieces, several at a time.

    Equal pieces have equal RTLIL texts, so the text itself identifies a piece.
    """

    def __init__(self, pool: ThreadPoolExecutor, settings: Settings) -> None:
        self._pool, self._settings = pool, settings
        self._known: set[str] = set()
        self._jobs: dict[
            Future[MeasuredPiece], tuple[str, str]
        ] = {}  # -> RTLIL text, name for progress

    def submit(self, variant: Variant, parts: Iterable[SynthesisedPart]) -> None:
        """Start the synthesis of those parts of a variant that no earlier variant has."""
        for part in parts:
            # Yosys runs in processes of its own, so that threads suffice here.
            if part.rtlil not in self._known:
                self._known.add(part.rtlil)
                name = f"{variant.unit.name} {variant.label} {part.label}".removesuffix(" top")
                self._jobs[self._pool.submit(_piece, part, self._settings)] = (part.rtlil, name)

    def finished(self, progress: _Report) -> dict[str, MeasuredPiece]:
        """Wait for all pieces, and return RTLIL text -> piece; raise the first error."""
        pieces: dict[str, MeasuredPiece] = {}
        for done, job in enumerate(as_completed(self._jobs), 1):
            rtlil, name = self._jobs[job]
            pieces[rtlil] = job.result()
            progress(f"synthesise {name}", done, len(self._jobs))
        return pieces


def _own_pieces(
    parts: Iterable[SynthesisedPart], pieces: Mapping[str, MeasuredPiece]
) -> tuple[MeasuredPiece, ...]:
    """Return the pieces of one variant: shared results, with this variant's labels and counts."""
    return tuple(
        replace(pieces[part.rtlil], name=part.top.lstrip("\\"), label=part.label, count=part.count)
        for part in parts
    )


def _elaborators(jobs: int) -> ProcessPoolExecutor:
    """Return processes for elaboration, which is pure Python and would block the threads."""
    return ProcessPoolExecutor(
        jobs,
        # A forked process would inherit the threads' locks.
        mp_context=get_context("spawn"),
        initializer=signal.signal,  # ``measure`` ends them after Ctrl-C
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )


def _parts(unit: str, configuration: dict[str, Any], cut: Cut) -> list[SynthesisedPart]:
    """Elaborate and cut a variant, which is given by its name, because names can be pickled."""
    return parts_of(Variant(UNITS[unit], configuration), cut)


def _piece(part: SynthesisedPart, settings: Settings) -> MeasuredPiece:
    mapped = synthesize(
        part.rtlil,
        top=part.top.lstrip("\\"),
        liberty=settings.library.path,
        targets_ps=settings.targets_ps,
        recipe=settings.recipe,
        cache=settings.cache,
    )
    timing = {
        target: sta.analyse(
            design.netlist,
            settings.library.cells,
            driving_cell=settings.recipe.driving_cell,
            load_ff=settings.recipe.load_ff,
        )
        for target, design in mapped.items()
    }
    return MeasuredPiece(
        name=part.top.lstrip("\\"),
        label=part.label,
        count=part.count,
        mapped=mapped,
        timing=timing,
    )
