"""Large modules with many instances are separated, and the design keeps its function."""

import re
from dataclasses import replace

import pytest

from vitruvian.golden.fp import IntDotSpec
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.sim import rtl
from vitruvian.sim.bench.cube.batch import compare_traffic
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.rtl import partition as pieces
from vitruvian.sim.rtl.emit import to_verilog

SMALL = replace(CONFIGS["tiny"], precisions=("int8",), k=8)


def unit(dataflow):
    return MatrixUnit(config=replace(SMALL, dataflow=dataflow))


def test_equal_pieces_have_one_name(monkeypatch):
    monkeypatch.setattr(pieces, "_MIN_TEXT", 1000)
    designs = [pieces.split(to_verilog(unit(flow)), "top") for flow in ("broadcast", "systolic")]
    (first, parts), (second, other_parts) = designs
    assert parts == other_parts and len(parts) == 1
    name, text = next(iter(parts.items()))
    assert text.count(f"module {name}(") == 1 and "processing_element" not in text
    for rest in (first, second):
        assert rest.count(f"  {name} element_") == 4 and "processing_element" not in rest
        assert set(re.findall(r"^module (\S+?)[ (]", rest, re.MULTILINE)) == {
            "top",
            "\\top.grid",
            "\\top.sequencer",
            "\\top.sequencer.queue",
        }


def test_a_design_without_repetition_is_left_alone():
    text = to_verilog(IntDotProduct(spec=IntDotSpec(k=4)))
    assert pieces.split(text, "top") == (text, {})
    assert pieces.split(text, "other") == (text, {})


@pytest.mark.parametrize("smallest", [1000, 10_000_000], ids=["pieces", "flat"])
def test_pieces_compute_the_same(monkeypatch, smallest):
    monkeypatch.setattr(pieces, "_MIN_TEXT", smallest)
    design = unit("systolic")
    # the texts differ in a comment, so that the cache does not return one model for both
    text = f"// smallest piece: {smallest}\n{to_verilog(design)}"
    model = rtl.compile_verilog(text, interface=design)
    result = compare_traffic(
        model, make_traffic(design.config, beats=500, seed=3), stall_rate=0.2, seed=3
    )
    assert result.vectors > 500 and not result.mismatches, result.examples
