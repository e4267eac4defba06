"""The balance of every pipeline of the catalogue, and the registers whose loss it notices.

``hdl.balance`` counts the registers of a pipeline. A unit that computes without a stall is one
pipeline. In a tile it is the array of elements, with the slots as state.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from amaranth.hdl import Fragment, Shape, Signal, Value
from amaranth.lib import wiring

from vitruvian.common.errors import UserError
from vitruvian.common.wings import registered
from vitruvian.hdl.balance import BalancePath, paths, signals_on_paths
from vitruvian.hdl.bus.axi import StreamUnit
from vitruvian.hdl.bus.lite import LiteUnit
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Configuration, Unit, Variant
from vitruvian.hdl.cube import MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.hdl.elaborate import elaborating, only_described, state_of
from vitruvian.hdl.fp.parts.pipeline import DEEP_PIPELINES, PipelineStages
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.hdl.scu.col2im import Col2Im, RowAdder
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.hdl.simd2.integer import IntTile
from vitruvian.hdl.vector.slice import Slice
from vitruvian.hdl.vector.unit import VectorUnit

#: Units without a fixed number of cycles from an input to an output, and why. Their benches and
#: proofs compare the order and the contents of their streams.
NO_PIPELINE = {
    "scu-im2col": "its patches depend on a command, and its memory may stall",
    "sparse-ewise": "it runs programs of any length",
    "sparse-is": "its banks arbitrate between lanes",
    "sparse-buffer": "its contents wait for readers",
    "sparse-control": "it waits for the other units",
    "sparse-oei": "it joins the units above",
}


#: The options that a sweep varies by itself, and those that only say how often something equal
#: stands beside the other.
_SWEPT = ("pipeline", "multiplier")
_SIZES = ("m", "n", "k", "size", "slots", "ahead")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A pipeline, and what is known about its inputs and outputs.

    Attributes
    ----------
    component : Component
    latency : callable
        Function of the name of an output or a state that returns the registers in front of it.
    late, ignored, state, enables : sequence
        Arguments of ``hdl.balance.paths``.
    """

    component: wiring.Component
    latency: Callable[[str], int]
    late: Sequence[tuple[Any, int]] = ()
    ignored: Sequence[Any] = ()
    state: Sequence[str] = ()
    enables: Sequence[str] = ()

    @property
    def _inputs(self) -> dict[str, Any]:
        names = ("late", "ignored", "state", "enables")
        return {name: getattr(self, name) for name in names}

    def paths(self) -> dict[str, BalancePath]:
        """Return the registers in front of each output and each state."""
        return paths(self.component, **self._inputs)

    def signals(self) -> set[str]:
        """Return the names of the signals on a path to an output or a state."""
        return signals_on_paths(self.component, **self._inputs)

    def unbalanced(self) -> list[str]:
        """Return a line for each output or state that is not balanced.

        Raises
        ------
        ValueError
            If no output depends on an input.
        """
        found = self.paths()
        if not found:
            raise ValueError("an output must depend on an input, not on constants only")
        lines = []
        for name, path in found.items():
            expected = self.latency(name)
            if not path.is_balanced(expected):
                lines.append(f"{name}: {path.least} to {path.most} registers, not {expected}")
        return lines


@dataclass(frozen=True)
class BalanceFinding:
    """The outcome of one configuration.

    Attributes
    ----------
    variant : Variant
    unbalanced : list of str
        The lines of ``Pipeline.unbalanced``.
    """

    variant: Variant
    unbalanced: list[str]


def pipeline_of(component: wiring.Component) -> Pipeline:
    """Return the pipeline of a unit of the catalogue.

    A tile keeps one slot, and one element in each direction that has hops.

    Raises
    ------
    TypeError
        If the component is not known to have one.
    """
    for module in registered("pipelines"):
        for kind, pipeline in module.PIPELINES.items():
            if isinstance(component, kind):
                return pipeline(component)
    match component:
        case MatrixUnit() | MmaUnit():
            return _grid(only_described(component).config)
        case SerialUnit() | StreamUnit() | LiteUnit():
            config = only_described(component).core.config
            if isinstance(config, IntConfig):
                return _int_tile(IntTile(config=replace(config, m=1, n=1)))
            return _grid(config)
        case IntTile():
            return _int_tile(component)
        case Col2Im():
            unit = only_described(component)
            adder = RowAdder(
                c0_bytes=unit.format.storage_bits // 8,
                format=unit.format,
                pipeline=unit.pipeline,
            )
            return Pipeline(component=adder, latency=lambda _: adder.latency, ignored=[adder.move])
        case VectorUnit():
            part = Slice(config=only_described(component).config)
            ranks = part.latency - 1
            return Pipeline(
                component=part,
                latency=lambda _: part.latency,
                late=[(part.control[k], k + 1) for k in range(ranks)],
                ignored=[part.advance],
            )
        case _:
            if not isinstance(getattr(component, "latency", None), int):
                raise TypeError(f"the unit must have a latency, not {component!r}")
            latency: int = component.latency  # pyright: ignore[reportAttributeAccessIssue]
            return Pipeline(component=component, latency=lambda _: latency)


def _grid(config: TileConfig) -> Pipeline:
    """Return the array of a tile, from the beat to what is written to the slots."""
    hops = 2 if config.dataflow == "systolic" else 1
    grid = Grid(config=replace(config, m=hops, n=1, slots=2))
    entry = 2 if config.assignment == "pipelined" else 1
    behind = config.pipeline + config.merge_cycles

    def latency(name: str) -> int:
        element, *_, register = name.split(".")
        row = int(element.removeprefix("element_").split("_")[0])
        # A product of several steps keeps the limbs of the step before.
        return entry + row + (0 if register.startswith("previous") else behind)

    state = ["slots"] if config.slot_memory else ["slot0", "slot1"]
    if isinstance(config, MatrixUnitConfig) and config.limb_counts:
        state += [f"previous{k}" for k in range(config.lanes)]
    ignored = [grid.load, grid.load_slot, grid.c, grid.read_slot]
    return Pipeline(
        component=grid,
        latency=latency,
        ignored=[*ignored, grid.taken] if config.buffered else ignored,
        state=state,
    )


def _int_tile(tile: IntTile) -> Pipeline:
    """Return a tile of integer elements; C comes in the cycle of the accumulation."""
    behind = tile.config.pipeline + 1
    return Pipeline(
        component=tile,
        latency=lambda name: behind + (name == "done"),
        late=[(tile.c, behind)],
        state=["accumulator"],
    )


# The configurations


def sweep(unit: Unit, *, every: bool = False) -> list[Variant]:
    """Return configurations of a unit at every legal depth and with every multiplier.

    Parameters
    ----------
    unit : Unit
        A unit that is not in ``NO_PIPELINE``.
    every : bool
        If True, take all configurations that the catalogue verifies, measures, writes or
        documents, and one with each value of each option at the least and the greatest depth. If
        False, take one for each way of
        crossing the boundaries: of several whose deepest pipelines have crossings of the same
        names, only the first.
    """
    found: dict[str, Variant] = {}
    ways: set[frozenset[str]] = set()
    seen: set[str] = set()

    def add(base: Configuration, *, ends: bool) -> None:
        kept = {k: v for k, v in base.items() if k not in _SWEPT}
        depths = [depth for depth in _depths(unit) if _smallest(unit, kept, depth)]
        if not every and depths:
            deepest = _smallest(unit, kept, depths[-1])
            assert deepest is not None
            signature = _signature(deepest)
            if signature in seen:
                return
            seen.add(signature)
            way = _crossings(deepest)
            if way in ways:
                return
            ways.add(way)
        for depth in depths[:: max(len(depths) - 1, 1)] if ends else depths:
            for multiplier in (None, "dsp") if "multiplier" in unit.options else (None,):
                changes = {} if multiplier is None else {"multiplier": multiplier}
                variant = _smallest(unit, kept | changes, depth)
                if variant is not None:
                    found.setdefault(_signature(variant), variant)

    for base in (*_listed(unit), *_of_own_classes(unit)):
        add(base, ends=False)
    for base in _with_values(unit).values() if every else ():
        add(base, ends=True)
    return list(found.values())


def _listed(unit: Unit) -> list[Configuration]:
    """Return the partial configurations in the description of a unit, and the default."""
    return [{}, *unit.checked, *unit.rows(), *unit.more(), *unit.documented.values()]


def _of_own_classes(unit: Unit) -> list[Configuration]:
    """Return a configuration for each class that no configuration in a description builds."""
    known = _known_classes()
    found: dict[type, Configuration] = {}
    for given in _with_values(unit).values():
        variant = _smallest(unit, given, None)
        assert variant is not None, "the unit has accepted the value"
        built = unit.component(variant.configuration)[0]
        if built not in known:
            found.setdefault(built, given)
    return list(found.values())


@cache
def _known_classes() -> frozenset[type]:
    """Return the classes that the configurations in the descriptions build."""
    units = UNITS.values()
    return frozenset(unit.component(unit.default(c))[0] for unit in units for c in _listed(unit))


def _with_values(unit: Unit) -> dict[tuple[str, str], Configuration]:
    """Return a partial configuration with each value of each option, by option and value.

    A value that the unit refuses beside all of its listed configurations, and beside those found
    for the values before it, is left out.
    """
    found: dict[tuple[str, str], Configuration] = {}
    for _ in range(2):  # a value may need one of an option that comes behind it
        for name, value, text in _values(unit):
            if (name, text) in found:
                continue
            givens = ({**base, name: value} for base in [*_listed(unit), *found.values()])
            accepted = (given for given in givens if _smallest(unit, given, None))
            if given := next(accepted, None):
                found[name, text] = given
    return found


def _values(unit: Unit) -> Iterator[tuple[str, Any, str]]:
    """Yield option, value and text of each sample of each option that the sweep does not vary."""
    for name, option in unit.options.items():
        if name not in _SWEPT and name not in _SIZES:
            for text in ("yes",) if option.flag else option.samples():
                try:
                    yield name, option.read(text), text
                except UserError:  # a rule that the hardware does not have
                    continue


def coverage(unit: Unit) -> dict[tuple[str, str], str]:
    """Return what covers each value of each option: ``row``, ``balance``, ``refused`` or nothing.

    A row of ``make sim`` compares the value's results with golden. The balance check counts its
    registers. The ends of a range count as covered if rows have two values of it.
    """
    rows = [unit.default(c) for c in (*unit.checked, *unit.simulated)]
    counted = {} if unit.name in NO_PIPELINE else _with_values(unit)
    found: dict[tuple[str, str], str] = {}
    for name, value, text in _values(unit):
        used = {row[name] for row in rows}
        numbers = {number for number in used if type(number) is int}
        if value in used or (text.isdecimal() and len(numbers) > 1):
            found[name, text] = "row"
        elif (name, text) in counted:
            found[name, text] = "balance"
        else:
            found[name, text] = "" if unit.name in NO_PIPELINE else "refused"
    return found


def _crossings(variant: Variant) -> frozenset[str]:
    """Return the names of all crossings that have registers, without the numbers of lanes."""
    with _losing(None) as names, elaborating():
        Fragment.get(pipeline_of(variant.build()).component, None)
    return frozenset(re.sub(r"[0-9]+", "#", name) for name in names)


def _depths(unit: Unit) -> Sequence[int | None]:
    """Return the pipeline depths that an option accepts; None if the unit has no such option."""
    option = unit.options.get("pipeline")
    if option is None:
        return [None]
    depths: list[int | None] = []
    for depth in range(max(DEEP_PIPELINES) + 1):
        try:
            depths.append(option.read(str(depth)))
        except UserError:
            continue
    return depths


def _smallest(unit: Unit, given: Configuration, depth: int | None) -> Variant | None:
    """Return the configuration with the fewest products, or None if the unit refuses it.

    All products pass the same boundaries, so that a few stand for many.
    """
    given = given if depth is None else {**given, "pipeline": depth}
    sizes: list[Configuration] = [{}]
    if "k" in unit.options:
        sizes = [{"k": k} for k in (2, 4, 8, 16, 32)] + sizes
    if "m" in unit.options:
        sizes = [{"m": 1, "n": 1, **size} for size in sizes]
    for size in sizes:
        try:
            variant = Variant(unit, unit.default({**given, **size}))
            variant.check()
        except (UserError, ValueError):
            continue
        return variant
    return None


def _signature(variant: Variant) -> str:
    """Return a text that is equal for configurations with the same pipeline."""
    return state_of(only_described(pipeline_of(variant.build()).component))


def findings(variants: Sequence[Variant]) -> Iterator[BalanceFinding]:
    """Yield the outcome of each configuration."""
    for variant in variants:
        yield BalanceFinding(variant, pipeline_of(variant.build()).unbalanced())


# The registers whose loss the count must notice


@dataclass(frozen=True)
class Mutants:
    """The outcome of the loss of each crossing of a configuration.

    Attributes
    ----------
    variant : Variant
    caught, missed : list of str
        The crossings on a path whose loss the count notices, or does not.
    idle : list of str
        The crossings of values that are constant or that no output depends on.
    """

    variant: Variant
    caught: list[str]
    missed: list[str]
    idle: list[str]


def mutants(variant: Variant) -> Mutants:
    """Take the registers from each crossing of a boundary in turn, and count again."""
    with _losing(None) as names:
        used = pipeline_of(variant.build()).signals()
    outcome = Mutants(variant, [], [], [])
    for number, name in enumerate(names):
        if name.split(": ")[1] not in used:
            outcome.idle.append(name)
            continue
        with _losing(number):
            noticed = pipeline_of(variant.build()).unbalanced()
        (outcome.caught if noticed else outcome.missed).append(name)
    return outcome


@contextmanager
def _losing(number: int | None) -> Iterator[list[str]]:
    """Make wires of the registers of one crossing, by its number, while the block runs.

    Yields
    ------
    list of str
        Boundary and name of all crossings that have registers, once a component is elaborated.
    """
    names: list[str] = []
    original = PipelineStages.cross

    def cross(self: PipelineStages, stage: str, value: Value, name: str) -> Signal:
        if stage not in self.names:
            return original(self, stage, value, name)
        names.append(f"{stage}: {name}")
        if len(names) - 1 != number:
            return original(self, stage, value, name)
        wire = Signal(Shape.cast(value.shape()), name=name)
        self._m.d.comb += wire.eq(value)  # pyright: ignore[reportPrivateUsage]
        return wire

    PipelineStages.cross = cross
    try:
        yield names
    finally:
        PipelineStages.cross = original
