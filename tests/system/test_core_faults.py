"""The command ``cce --core`` at a core that stops with a fault, or does not end."""

from typing import Any

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.hdl.core.faults import Fault
from vitruvian.sim.davinci.machine_code import core
from vitruvian.sim.rtl import StreamError
from vitruvian.sim.rtl.core import CoreFault
from vitruvian.sim.rtl.core_stop import stop_of

PLACE = {"unit": 1, "opcode": 0, "pc": 12}
WAITS = {
    "V": {"waits": 1, "source": 4, "register": 3, "pc": 9},
    "M": {"waits": 0, "source": 0, "register": 0, "pc": 0},
}


def stop(fault, waits=None, **place):
    where: dict[str, Any] = PLACE | place
    return CoreFault(stop_of(fault.value, **where, waits=waits or {}), np.zeros(0, np.uint8))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            stop(Fault.CODE),
            "error: the core has stopped at V: a word at word 12: the unit has no such instruction",
        ),
        (
            stop(Fault.UNIT, unit=7),
            "error: the core has stopped at unit 7: a word at word 12: "
            "a word is for a unit that it lacks",
        ),
        (
            stop(Fault.DEADLOCK, WAITS),
            "error: the core has stopped in a deadlock: V waits at word 9 for flag 3 of MTE2",
        ),
        (
            StreamError("CoreBoard hung"),
            "error: the program has not ended on core tiny: CoreBoard hung",
        ),
    ],
)
def test_a_core_that_stops_is_one_line(monkeypatch, capsys, root, error, text):
    def run(*_, **__):
        raise error

    monkeypatch.setattr(core, "run_on_core", run)
    given = ["a=normal:2048", "b=normal:2048", "y=zeros:2048", "scale=2", "tiles=1"]
    line = ["cce", str(root / "sim/kernels/text/scale_add.cce"), "--core", "tiny"]
    assert main([*line, *(w for arg in given for w in ("--arg", arg))]) == 2
    assert capsys.readouterr().err.splitlines() == [text]
