"""Faster elaboration and the faster start of Yosys do not change the emitted text."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from amaranth.back import verilog  # pyright: ignore[reportAttributeAccessIssue]

from vitruvian.hdl import elaborate
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.sim.rtl import BuildError
from vitruvian.sim.rtl.emit import to_rtlil, verilog_of


@pytest.mark.parametrize("name", ["tiny", "m3xu"])
def test_the_text_is_amaranths_own(monkeypatch, name):
    config = replace(CONFIGS[name], m=1, n=2, k=4)
    quick = to_rtlil(MatrixUnit(config=config))
    monkeypatch.setattr(elaborate, "quick", nullcontext)
    assert quick == to_rtlil(MatrixUnit(config=config))
    convert = getattr(verilog, "_convert_rtlil_text")  # noqa: B009
    assert verilog_of(quick) == convert(quick, strip_internal_attrs=True)


def test_an_error_of_yosys_is_reported():
    with pytest.raises(BuildError, match=r"Yosys failed .*syntax error"):
        verilog_of("module \\x\nfoo\n")
