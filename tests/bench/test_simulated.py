"""The cocotb rows of ``make sim``: their counts, and the mismatch that a fault causes."""

import pytest

from tests.support.toys import Shapes
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.fp import bench_dot
from vitruvian.sim.bench.simulated import checks, run_row
from vitruvian.sim.rtl.elaboration_cache import unit_verilog
from vitruvian.sim.rtl.emit import to_verilog

GIVEN = {
    "preset": "v100",
    "input": "fp16",
    "output": "fp16",
    "k": 4,
    "pipeline": 1,
    "count": 40,
}


def design():
    return unit_verilog(DotProduct, spec=bench_dot.spec_of(GIVEN), pipeline=GIVEN["pipeline"])


def test_a_row_counts_what_the_scoreboards_compared():
    result = run_row(design(), bench_dot.__name__, GIVEN, 1)
    # back to back, half of it with gaps, and at least a quarter after the last reset
    assert result.mismatches == 0 and result.vectors >= 40 + 20 + 10
    larger = run_row(design(), bench_dot.__name__, GIVEN, 1, results=3)
    assert larger.vectors == 3 * result.vectors


def test_a_fault_is_a_mismatch_with_its_message():
    text = design()
    line = next(line for line in text.splitlines() if line.strip().startswith("assign d ="))
    mutant = text.replace(line, line.replace(";", " ^ 1;"))
    result = run_row(mutant, bench_dot.__name__, GIVEN, 1)
    assert result.mismatches == 3 and result.vectors == 3
    assert any("golden" in example for example in result.examples)


def test_rows_are_of_three_units():
    names = [check.name for check in checks()]
    assert all("cocotb" in name for name in names)
    assert {name.split()[0] for name in names} == {
        "fp.DotProduct",
        "cube.MatrixUnit",
        "vector.VectorUnit",
    }


def test_verilog_of_a_unit_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path))
    spec = bench_dot.spec_of(GIVEN)
    first = unit_verilog(DotProduct, spec=spec, pipeline=0)
    assert first == to_verilog(DotProduct(spec=spec, pipeline=0))
    (kept,) = tmp_path.glob("verilog/*/top.v")
    assert unit_verilog(DotProduct, spec=spec, pipeline=0) == kept.read_text() == first
    assert unit_verilog(DotProduct, spec=spec, pipeline=1) != first


def test_verilog_of_a_unit_from_elsewhere():
    with pytest.raises(ValueError, match="unit must be part of hdl"):
        unit_verilog(Shapes)
