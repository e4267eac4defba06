"""The commands that map and write hardware know the designs for boards; others know units alone."""

import pytest

from vitruvian.common.errors import UserError
from vitruvian.flows.units import known, reported
from vitruvian.hdl.catalogue import DESIGNS, UNITS


@pytest.mark.parametrize("command", ["fpga", "verilog"])
def test_a_design_can_be_mapped_and_written(command):
    assert known(command) == UNITS | DESIGNS
    (variant,) = reported("core")
    assert variant.arguments.startswith("core --preset tiny")


@pytest.mark.parametrize("command", ["area", "timing", "new"])
def test_no_other_command_takes_a_design(command):
    assert known(command) == UNITS
    assert not DESIGNS.keys() & UNITS.keys()


def test_an_unknown_name_is_refused_with_its_nearest():
    with pytest.raises(UserError, match="did you mean core"):
        reported("cor")
