"""The dot product under cocotb, on Verilator and, if it is installed, on Icarus Verilog."""

import shutil

import pytest

from vitruvian.sim.bench.fp.bench_dot import unit
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import to_verilog

MODULE = "vitruvian.sim.bench.fp.bench_dot"


def parameters(preset="a100", input="fp16", output="fp32", k=4, pipeline=2, count=300):
    return {
        "preset": preset,
        "input": input,
        "output": output,
        "k": k,
        "pipeline": pipeline,
        "count": count,
    }


@pytest.mark.parametrize(
    "given",
    [
        parameters(),
        parameters("ieee", pipeline=3),
        parameters("ieee", input="bf16", k=2, pipeline=1),
        parameters("v100", output="fp16", pipeline=0),
    ],
    ids=lambda given: f"{given['preset']}-{given['pipeline']}",
)
def test_dot_product(given):
    result = run_bench(unit(given), MODULE, parameters=given)
    assert result.passed and result.tests == 3, result.failures


def test_dot_product_on_icarus(monkeypatch):
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus Verilog (iverilog), which is optional")
    monkeypatch.setenv("SIM", "icarus")
    given = parameters(count=100)
    result = run_bench(unit(given), MODULE, parameters=given)
    assert result.passed and result.tests == 3, result.failures


def test_a_result_one_cycle_late_fails():
    given = parameters()
    result = run_bench(unit(given | {"pipeline": 3}), MODULE, parameters=given)
    assert len(result.failures) == 3
    assert "fused dot K=4 differs in result 1" in result.failures["back_to_back"]


def test_a_mutation_of_the_verilog_fails():
    given = parameters()
    text = to_verilog(unit(given))
    line = next(line for line in text.splitlines() if line.strip().startswith("assign d ="))
    result = run_bench(text.replace(line, line.replace(";", " ^ 1;")), MODULE, parameters=given)
    assert len(result.failures) == 3
    assert "golden" in result.failures["with_gaps"]
