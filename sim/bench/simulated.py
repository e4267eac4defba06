"""The cocotb benches as rows of ``make sim``, with hand-shakes, stalls and resets.

The other providers send many vectors into compiled models. These rows drive the same units cycle by
cycle through cocotb and a simulator, with fewer vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.dots import spec_of
from vitruvian.hdl.catalogue.matrix import cube_config
from vitruvian.hdl.catalogue.options import given
from vitruvian.hdl.catalogue.vector import vector_config
from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.vector import VectorUnit
from vitruvian.sim.bench.cube import bench_unit
from vitruvian.sim.bench.cube.batch import build_seconds
from vitruvian.sim.bench.fp import bench_dot
from vitruvian.sim.bench.fp.batch import dot_name
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.vector import bench_unit as bench_vector
from vitruvian.sim.rtl.elaboration_cache import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

#: Share of the requested vectors that a bench gets. cocotb is slower than a compiled model by about
#: the inverse of this factor.
SHARE_OF_DOTS, SHARE_OF_BEATS = 1 / 200, 1 / 1000


def run_row(
    design: str,
    module: str,
    parameters: Mapping[str, Any],
    seed: int,
    *,
    results: int = 1,
) -> Result:
    """Run a bench on Verilog and return its failed tests as mismatches.

    Each failed test is one mismatch, because a test ends at its first wrong result.

    Parameters
    ----------
    design : str
        Verilog with a top module ``top``.
    module : str
        Name of the module with the tests.
    parameters : mapping
        Parameters of the bench.
    seed : int
        Seed of all random numbers.
    results : int
        Number of vectors in an item that the scoreboard compares.
    """
    result = run_bench(design, module, parameters=parameters, seed=seed)
    return Result(
        vectors=results * result.checked + len(result.failures),
        mismatches=len(result.failures),
        examples=tuple(f"{test}: {message}" for test, message in result.failures.items()),
    )


@dataclass(frozen=True, kw_only=True)
class SimulatedUnit:
    """A unit of the catalogue whose bench has the parameters ``configuration`` and ``count``.

    Parameters
    ----------
    unit, label : str
        Name of the unit in the catalogue, and in the names of rows.
    bench : module
        The module with the bench.
    share, minimum : float, int
        Share of the requested vectors that is the bench's ``count``, and its smallest value.
    weight : int
        Weight of the rows.
    what : str
        Subject of the bench, in the names of rows.
    """

    unit: str
    label: str
    bench: ModuleType
    share: float
    minimum: int
    weight: int
    what: str

    @classmethod
    def each(
        cls, rows: Iterable[tuple[str, str, ModuleType, int]], **parameters: Any
    ) -> "list[SimulatedUnit]":
        """Return a unit for each (unit, label, bench, weight); the other parameters are shared."""
        return [
            cls(unit=unit, label=label, bench=bench, weight=weight, **parameters)
            for unit, label, bench, weight in rows
        ]

    def run(self, configuration: Mapping[str, Any], vectors: int, seed: int) -> Result:
        """Run the bench on one configuration."""
        count = max(int(vectors * self.share), self.minimum)
        parameters = {"unit": self.unit, "configuration": configuration, "count": count}
        unit = UNITS[self.unit]
        component, arguments = unit.component(unit.default(configuration))
        return run_row(unit_verilog(component, **arguments), self.bench.__name__, parameters, seed)

    def checks(self) -> Iterator[Check]:
        """Yield a row for every configuration that the catalogue wants simulated."""
        for configuration in UNITS[self.unit].simulated:
            text = "".join(f" {key}={value}" for key, value in configuration.items())
            yield Check(
                unit=self.label,
                configuration=f"cocotb{text}: {self.what}",
                run=partial(self.run, configuration),
                weight=self.weight,
            )


def provider(units: Sequence[SimulatedUnit]) -> Callable[[], Iterator[Check]]:
    """Return ``checks`` of a module whose rows are those of some units."""

    def checks() -> Iterator[Check]:
        """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
        for unit in units:
            yield from unit.checks()

    return checks


def _run_dot(parameters: dict[str, Any], vectors: int, seed: int) -> Result:
    parameters = parameters | {"count": max(int(vectors * SHARE_OF_DOTS), 40)}
    spec = bench_dot.spec_of(parameters)
    design = unit_verilog(DotProduct, spec=spec, pipeline=parameters["pipeline"])
    return run_row(design, bench_dot.__name__, parameters, seed)


def _run_cube(parameters: dict[str, Any], vectors: int, seed: int) -> Result:
    config = bench_unit.configuration(parameters)
    parameters = parameters | {"beats": max(int(vectors * SHARE_OF_BEATS), 40)}
    design = unit_verilog(MatrixUnit, config=config)
    return run_row(design, bench_unit.__name__, parameters, seed, results=config.m * config.n)


def _run_vector(parameters: dict[str, Any], vectors: int, seed: int) -> Result:
    config = bench_vector.configuration(parameters)
    parameters = parameters | {"commands": max(int(vectors * SHARE_OF_BEATS), 40)}
    design = unit_verilog(VectorUnit, config=config)
    return run_row(design, bench_vector.__name__, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    dot, cube, vector = UNITS["dot"], UNITS["cube"], UNITS["vector"]
    for c in map(vector.default, vector.simulated):
        config = vector_config(c)
        yield Check(
            unit="vector.VectorUnit",
            configuration=f"cocotb {config.lanes} lanes stalls, resets, rates",
            run=partial(_run_vector, {"lanes": config.lanes, "groups": config.groups}),
            weight=20,
        )
    for c in map(dot.default, dot.simulated):
        names = ("preset", "input", "output", "k", "pipeline")
        yield Check(
            unit="fp.DotProduct",
            configuration=f"cocotb {dot_name(c['preset'], spec_of(c), c['pipeline'])}",
            run=partial(_run_dot, {name: c[name] for name in names}),
            weight=10,
        )
    for c in map(cube.default, cube.simulated):
        changes = given(c, "dataflow", "m", "n", "k")
        shape = "".join(f" {name}={changes[name]}" for name in "mnk" if name in changes)
        yield Check(
            unit="cube.MatrixUnit",
            configuration=f"cocotb {c['preset']} {c['dataflow']}{shape} stalls, resets, rates",
            run=partial(_run_cube, {"preset": c["preset"], "changes": changes}),
            weight=build_seconds(cube_config(c)),
        )
