"""The components of a chip, and their ceilings for each precision and each transfer.

A component executes its instructions one after the other, and different components work at the same
time. On a DaVinci core each instruction queue is a component: the three compute units and the
memory transfer engines (Zhou et al. 2025, §3.1).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.chip.parts import Bus, Route
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, REPEAT_BYTES


class ComponentKind(Enum):
    """The kinds of components, which differ in the unit of their work."""

    COMPUTE = "compute"
    """The work is operations."""
    TRANSFER = "transfer"
    """The work is bytes."""
    BUS = "bus"
    """The work is bytes. Several components share a bus, so its time ratio is not classified."""


#: The names that Zhou et al. 2025 use for the units.
TITLES = {
    "S": "Scalar",
    "V": "Vector",
    "M": "Cube",
    "MTE1": "MTE-L1",
    "MTE2": "MTE-GM",
    "MTE3": "MTE-UB",
    "FIX": "FIX",
}

#: The item under which all work of the scalar unit counts: the simulator has no scalar precisions.
SCALAR = "scalar"

_COMPUTE = (Unit.S, Unit.V, Unit.M)


@dataclass(frozen=True)
class Component:
    """A component and its ceilings.

    Attributes
    ----------
    name : str
        Name of the unit, such as "MTE2", or of a bus, such as "bus memory".
    kind : ComponentKind
    ceilings : mapping of str to float
        Operations per second by precision, or bytes per second by path. A vector unit may also
        have paths; see ``lane_item``.
    """

    name: str
    kind: ComponentKind
    ceilings: Mapping[str, float]

    @property
    def title(self) -> str:
        """The name with that of Zhou et al. 2025, if it is another one."""
        title = TITLES.get(self.name, self.name)
        return self.name if title == self.name else f"{self.name} ({title})"


def components_of(chip: Chip, kind: str | None = None, cores: int = 1) -> dict[str, Component]:
    """Return the components of a kind of core, keyed by the name of the unit.

    Parameters
    ----------
    kind : str, optional
        Name of a kind of core; by default the first one of the chip.
    cores : int
        Number of cores whose components of one name are taken together. Their ceilings are the
        sums, but transfers over a bus that the cores share cannot exceed the bus.

    Raises
    ------
    ValueError
        If the kind is unknown, or the chip has fewer cores of it.
    """
    core = chip.kind(kind)
    if not 1 <= cores <= core.count:
        raise ValueError(f"cores must be 1 … {core.count}, not {cores!r}")
    ceilings: dict[Unit, dict[str, float]] = {unit: {} for unit in core.units}
    if Unit.S in ceilings:
        ceilings[Unit.S][SCALAR] = cores * _scalar_rate(chip)
    if Unit.V in ceilings:
        ceilings[Unit.V] |= {k: cores * v for k, v in _vector_rates(chip).items()}
    if Unit.M in ceilings and chip.cube is not None:
        cube = chip.cube
        for dtype, depth in cube.depths.items():
            rate = 2 * cube.m * cube.n * depth / cube.step_s
            ceilings[Unit.M][dtype] = float(cores * rate)
    for name, route in chip.routes.items():
        if route.unit in ceilings:
            ceilings[route.unit][name] = _path_rate(chip, route, cores)
    return {
        unit.name: Component(
            unit.name,
            ComponentKind.COMPUTE if unit in _COMPUTE else ComponentKind.TRANSFER,
            items,
        )
        for unit, items in ceilings.items()
        if items
    }


def bus_component(bus: Bus, users: int, paths: Iterable[str]) -> Component:
    """Return a bus as a component.

    Zhou et al. 2025 have no such component. A bus that several cores share limits all of them
    although none of their transfer engines reaches its own ceiling.

    Parameters
    ----------
    users : int
        Number of units, over all cores, that use the bus: the largest number of transfers at once.
    paths : iterable of str
        The paths of the transfers on this bus.
    """
    rate = float(bus.total(users))
    return Component(f"bus {bus.name}", ComponentKind.BUS, dict.fromkeys(paths, rate))


def fast_operations(chip: Chip) -> frozenset[str]:
    """Return the vector operations of which some are faster than the chip's default."""
    base = chip.vector[""].repeat_s
    return frozenset(n.split(" ")[0] for n, lane in chip.vector.items() if lane.repeat_s < base)


def lane_item(chip: Chip, operation: str, source: str, target: str, precision: str) -> str:
    """Return the item under which the work of a vector instruction counts.

    This is the precision, or the precision and the operation if the chip executes this operation
    faster than others of the precision; the work would otherwise exceed the ceiling.

    Parameters
    ----------
    source, target : str
        The dtypes of the source and of the result.
    precision : str
        The dtype under which the operations are counted.
    """
    names = f"{operation} {source} {target}", f"{operation} {source}", operation, ""
    name = next(n for n in names if n in chip.vector)
    fast = chip.vector[name].repeat_s < chip.vector[""].repeat_s
    return f"{precision} {name}" if fast else precision


def _scalar_rate(chip: Chip) -> float:
    """Return the scalar operations per second: one in the shortest time of any of them."""
    return float(1 / min(time for time in chip.scalar.values() if time))


def _vector_rates(chip: Chip) -> dict[str, float]:
    """Return the lanes per second by item; a pass of the unit processes 256 bytes."""
    base, rates = chip.vector[""].repeat_s, {}
    for dtype, numpy_dtype in DTYPES.items():
        lanes = REPEAT_BYTES // numpy_dtype.itemsize
        rates[dtype] = float(lanes / base)
        for name, lane in chip.vector.items():
            if lane.repeat_s < base:
                rates[f"{dtype} {name}"] = float(lanes / lane.repeat_s)
    return rates


def _path_rate(chip: Chip, route: Route, cores: int) -> float:
    """Return the largest number of bytes per second that some cores move over a path."""
    # A measured throughput may be highest at a size in the middle.
    best = max([route.rate.bytes_per_s, *(n / time for n, time in route.rate.points if time)])
    if route.bus is None:
        return float(cores * best)
    bus = chip.buses[route.bus]
    one = min(best, bus.total(1))
    if bus.per_core:
        return float(cores * one)
    return float(min(cores * one, _shared(bus, cores)))


def _shared(bus: Bus, cores: int) -> Fraction:
    """Return the most that ``cores`` transfers get together, whatever else uses the bus."""
    # With more transfers than these the total may grow, of which these get their equal shares.
    shares = [
        bus.total(active) * min(Fraction(cores, active), 1)
        for active in range(1, max(len(bus.totals), cores) + 1)
    ]
    return max(shares)
