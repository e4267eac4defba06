"""The cocotb benches as rows of ``make sim``: handshakes, stalls and resets, cycle by cycle.

The other providers send many vectors into compiled models; these rows drive the same units through
cocotb and a simulator, with fewer. The largest preset has no row here: its build would take longer
than all others together, and all its elements are the same.
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
#: (preset, dataflow, rows and columns where not the preset's, rough seconds of the first build)
CUBES = (
    ("tiny", "broadcast", {}, 12),
    ("tiny", "systolic", {}, 12),
    ("cube_4x4x4", "broadcast", {}, 15),
    ("cube_4x4x4", "systolic", {}, 15),
    ("tensorcore_a100", "broadcast", {}, 20),
    ("m3xu_pipelined", "systolic", {"m": 4, "n": 2}, 20),
)
#: cocotb takes about this many times as long for a vector as a compiled model does.
SHARE_OF_DOTS, SHARE_OF_BEATS = 1 / 200, 1 / 1000


def run_row(
    design: str,
    module: str,
    parameters: Mapping[str, Any],
    seed: int,
    *,
    results: int = 1,
) -> Result:
    """Run a bench on Verilog text; its mismatches are its failed tests.

    A test ends at its first wrong result. ``results`` is the number of vectors in
    what a scoreboard compares at a time.
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
    """One row per bench and configuration."""
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
