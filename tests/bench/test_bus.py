"""Units behind AXI ports, driven by the protocol models of cocotbext-axi."""

import pytest

from vitruvian.sim.bench.bus import bench_instructions, bench_lite, bench_stream
from vitruvian.sim.bench.runner import run_bench

pytest.importorskip("cocotbext.axi", reason="needs cocotbext-axi, a package of the extra test")

#: Changes of the preset tiny, so that a build takes little time.
SMALL = {"m": 1, "n": 2, "k": 1, "precisions": ["int8"]}
INTEGER = {"core": "simd2-int", "m": 1, "n": 2, "k": 2, "width": 8, "pipeline": 0}
COMPLEX = {"core": "cube", "preset": "m3xu", "m": 1, "n": 2, "k": 4}


def run(bench, **given):
    given = {"commands": 8, "beats": 6, **given}
    return run_bench(bench.unit_of(given), bench.__name__, parameters=given)


@pytest.mark.parametrize(
    "given",
    [
        {"changes": SMALL},
        pytest.param(
            {"configuration": {"direct": True}, "changes": {**SMALL, "slots": 1, "pipeline": 0}},
            marks=pytest.mark.long,
        ),
        {"configuration": INTEGER},
        pytest.param({"configuration": {"preset": "tiny"}}, marks=pytest.mark.long),
        pytest.param({"configuration": COMPLEX}, marks=pytest.mark.long),
        pytest.param(
            {"configuration": {**COMPLEX, "operations": "mma-minplus-maxmul", "direct": True}},
            marks=pytest.mark.long,
        ),
    ],
    ids=["small", "one-slot-direct", "integer", "tiny", "complex", "one-pair-direct"],
)
def test_stream(given):
    result = run(bench_stream, **given)
    assert result.passed and result.tests == 10, result.failures


@pytest.mark.parametrize(
    "given",
    [
        {"changes": SMALL},
        pytest.param({"configuration": INTEGER}, marks=pytest.mark.long),
        pytest.param({"configuration": {"preset": "tiny"}}, marks=pytest.mark.long),
    ],
    ids=["small", "integer", "tiny"],
)
def test_lite(given):
    result = run(bench_lite, **given)
    assert result.passed and result.tests == 5, result.failures


@pytest.mark.long
def test_stream_of_instructions():
    changes = {"m": 4, "n": 2, "k": 4, "precisions": ["fp16"]}
    given = {"changes": changes, "ahead": 4, "commands": 2}
    result = run_bench(bench_stream.unit_of(given), bench_instructions.__name__, parameters=given)
    assert result.passed and result.tests == 4, result.failures
