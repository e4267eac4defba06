"""The emitted Verilog of the design for Tiny Tapeout, on its pins, against golden."""

import re

import pytest

from vitruvian.flows.units import variants
from vitruvian.flows.verilog import emit
from vitruvian.sim.bench.runner import run_bench

MODULE = "tests.bench.bench_tapeout"


def text(k: int) -> str:
    """Return the Verilog with the name that benches give to their top module."""
    (variant,) = variants("tt_um_vitruvian", {"k": [k]})
    return re.sub(rf"\bmodule {variant.module}\b", "module top", emit.stored(variant))


@pytest.mark.parametrize(("k", "count"), [(4, 300), (1, 100), (3, 100)])
def test_the_chip_computes_what_golden_does(k: int, count: int):
    result = run_bench(text(k), MODULE, parameters={"k": k, "count": count})
    assert result.passed and result.tests == 2, result.failures


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("taken <= {ui_in, taken[63:8]}", "taken <= {taken[63:8], ui_in}"),
        ("count == 3'h7", "count == 3'h6"),
        ("2'h2: uo_out = c[23:16]", "2'h2: uo_out = c[31:24]"),
        ("uio_in[0] & ena", "uio_in[0]"),
        ("uio_in[1] & ena", "1'b0"),
        ("(count == 3'h0) & ~full", "(count == 3'h1) & ~full"),
        ("assign uio_oe = 8'h10", "assign uio_oe = 8'h01"),
        ("wire rst = ~rst_n", "wire rst = rst_n"),
    ],
)
def test_a_mutation_fails(old: str, new: str):
    good = text(4)
    assert old in good
    result = run_bench(good.replace(old, new), MODULE, parameters={"k": 4, "count": 60})
    assert not result.passed
