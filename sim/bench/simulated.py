"""The cocotb benches as rows of ``make sim``, with hand-shakes, stalls and resets.

The other providers send many vectors into compiled models. These rows drive the same units cycle by
cycle through cocotb and a simulator, with fewer vectors. The largest preset has no row, because its
build would take longer than all others together although all its elements are equal.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.cube import bench_unit
from vitruvian.sim.bench.fp import bench_dot
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.alias import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

__all__ = ["checks", "run_row"]

#: (preset, input, output, K, pipeline)
DOTS = (
    ("v100", "fp16", "fp16", 4, 1),
    ("a100", "fp16", "fp32", 8, 3),
    ("ieee", "bf16", "fp32", 4, 2),
)
#: (preset, dataflow, changes of rows and columns, approximate seconds of the first build)
CUBES = (
    ("tiny", "broadcast", {}, 12),
    ("tiny", "systolic", {}, 12),
    ("cube_4x4x4", "broadcast", {}, 15),
    ("cube_4x4x4", "systolic", {}, 15),
    ("tensorcore_a100", "broadcast", {}, 20),
    ("m3xu_pipelined", "systolic", {"m": 4, "n": 2}, 20),
)
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


def checks() -> Iterator[Check]:
    """Yield a row for each bench and configuration."""
    for preset, input, output, k, pipeline in DOTS:
        parameters = {
            "preset": preset,
            "input": input,
            "output": output,
            "k": k,
            "pipeline": pipeline,
        }
        yield Check(
            unit="fp.DotProduct",
            configuration=f"cocotb {preset} {input}→{output} K={k} pipeline={pipeline}",
            run=partial(_run_dot, parameters),
            weight=10,
        )
    for preset, dataflow, size, weight in CUBES:
        shape = "".join(f" {name}={count}" for name, count in size.items())
        changes = {"dataflow": dataflow, **size}
        yield Check(
            unit="cube.MatrixUnit",
            configuration=f"cocotb {preset} {dataflow}{shape} stalls, resets, rates",
            run=partial(_run_cube, {"preset": preset, "changes": changes}),
            weight=weight,
        )
