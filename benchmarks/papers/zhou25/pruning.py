"""The numbers of roofline combinations: naive, by components, and after pruning.

``PAPER`` describes the training chip of Zhou et al. 2025 (§2.1 and Fig. 1); the function
``structure_of`` describes a chip of the simulator in the same way.

References
----------
Zhou et al. 2025, §2.3 (180 combinations) and §4.3 (45, then 7).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.roofline.components import ComponentKind, components_of

#: A transfer by its source and its target.
Transfer = tuple[str, str]


@dataclass(frozen=True)
class Structure:
    """The compute units of a core, its transfer engines, and the transfers without an engine.

    Attributes
    ----------
    precisions : mapping of str to tuple of str
        The precisions of each compute unit.
    engines : mapping of str to tuple of Transfer
        The transfers of each memory transfer engine, which executes one at a time.
    direct : tuple of Transfer
        Transfers that no engine drives: most of them lead from a memory to a compute unit or back.
    """

    precisions: Mapping[str, tuple[str, ...]]
    engines: Mapping[str, tuple[Transfer, ...]]
    direct: tuple[Transfer, ...]

    def naive(self) -> list[tuple[str, Transfer]]:
        """Return every precision of a compute unit with every transfer."""
        precisions = [f"{unit} {p}" for unit, each in self.precisions.items() for p in each]
        transfers = [t for each in self.engines.values() for t in each]
        return list(product(precisions, [*transfers, *self.direct]))

    def by_component(self) -> list[tuple[str, str]]:
        """Return every compute unit with every engine and every transfer without an engine."""
        direct = [f"{source}->{target}" for source, target in self.direct]
        return list(product(self.precisions, [*self.engines, *direct]))

    def pruned(self) -> list[tuple[str, str]]:
        """Return every compute unit with every engine that can feed it or take its results.

        Transfers without an engine are dropped first: nobody can schedule them otherwise. A compute
        unit and an engine belong together if the engine reads or writes a memory that is connected
        with the unit without passing another engine or compute unit.
        """
        return [
            (unit, engine)
            for unit, engine in product(self.precisions, self.engines)
            if self._near(unit) & {end for t in self.engines[engine] for end in t}
        ]

    def _near(self, unit: str) -> set[str]:
        """Return the memories that direct transfers connect with a compute unit."""
        return self._reached(unit, forward=True) | self._reached(unit, forward=False)

    def _reached(self, unit: str, *, forward: bool) -> set[str]:
        """Return the memories that results reach, or those from which operands come."""
        ways = self.direct if forward else [(target, source) for source, target in self.direct]
        found, new = set(), {unit}
        while new:
            new = {b for a, b in ways if a in new} - found - set(self.precisions)
            found |= new
        return found


#: The training chip of Zhou et al. 2025. The text gives all precisions (§2.1), the transfers of the
#: three engines (§2.1), and the number of the others: 12 (§4.3). It names only five of these
#: (L0A/B to the Cube, L0C to UB, L0C to the vector unit, vector unit to UB, §4.3). The other seven
#: are our reading of the core's structure: operands and results of each unit, and the way back to
#: L0C. The numbers 180 and 45 depend on how many there are, and 7 does not depend on the seven.
PAPER = Structure(
    precisions={
        "Scalar": ("INT32", "FP16", "FP32", "FP64"),
        "Vector": ("INT32", "FP16", "FP32"),
        "Cube": ("INT8", "FP16"),
    },
    engines={
        "MTE-GM": (("GM", "L1"), ("GM", "L0A"), ("GM", "L0B"), ("GM", "UB")),
        "MTE-L1": (("L1", "L0A"), ("L1", "L0B")),
        "MTE-UB": (("UB", "GM"), ("UB", "L1")),
    },
    direct=(
        ("L0A", "Cube"),
        ("L0B", "Cube"),
        ("Cube", "L0C"),
        ("L0C", "Cube"),
        ("L0C", "UB"),
        ("UB", "L0C"),
        ("L0C", "Vector"),
        ("Vector", "L0C"),
        ("Vector", "UB"),
        ("UB", "Vector"),
        ("UB", "Scalar"),
        ("Scalar", "UB"),
    ),
)


def structure_of(chip: Chip, kind: str | None = None) -> Structure:
    """Return the structure of a kind of core of a chip.

    The paths that a compute unit drives count as transfers without an engine. The Cube reads L0A,
    L0B and L0C, and the vector and the scalar unit read and write UB, where the core has these.

    Parameters
    ----------
    kind : str, optional
        Name of a kind of core; by default the first one of the chip.
    """
    core, components = chip.kind(kind), components_of(chip, kind)
    compute = [c for c in components.values() if c.kind == ComponentKind.COMPUTE]
    units = {unit.name for unit in core.units}
    memories = {"GM", *core.buffers}
    paths = [
        (route.unit.name, (route.source, route.target))
        for route in chip.routes.values()
        if route.unit.name in units and {route.source, route.target} <= memories
    ]
    reads = {Unit.M.name: ("L0A", "L0B", "L0C"), Unit.V.name: ("UB",), Unit.S.name: ("UB",)}
    writes = {Unit.M.name: ("L0C",), Unit.V.name: ("UB",), Unit.S.name: ("UB",)}
    names = [c.name for c in compute]
    direct = [(m, u) for u in names for m in reads[u] if m in memories]
    direct += [(u, m) for u in names for m in writes[u] if m in memories]
    direct += [transfer for unit, transfer in paths if unit in names]
    engines = {
        c.name: tuple(dict.fromkeys(t for unit, t in paths if unit == c.name))
        for c in components.values()
        if c.kind == ComponentKind.TRANSFER
    }
    return Structure(
        precisions={c.name: tuple(i for i in c.ceilings if "->" not in i) for c in compute},
        engines=engines,
        direct=tuple(dict.fromkeys(direct)),
    )
