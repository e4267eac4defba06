"""The design that a board gets if the user names no unit: an integer tile at a serial line."""

from typing import Any

from amaranth.lib import wiring

from vitruvian.flows.board import Board
from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.bus.core import Core
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue.unit import Configuration, Unit, Variant
from vitruvian.hdl.simd2.intconfig import IntConfig

__all__ = ["default_design"]

#: What the host program computes: matrix products, and shortest paths.
_OPERATIONS = (Op.MMA, Op.MINPLUS)


def default_design(board: Board) -> Variant:
    """Return the default design of a board, whose ports are pins of the board."""

    def component(c: Configuration) -> tuple[type[wiring.Component], dict[str, Any]]:
        sizes = {name: c[name] for name in ("m", "n", "k", "bits")}
        config = IntConfig(**sizes, operations=_OPERATIONS, multiplier="dsp")
        clock_hz = round(board.clock_mhz * 1e6)
        core = Core(config=config)
        return SerialUnit, {"core": core, "clock_hz": clock_hz, "baud": c["baud"]}

    unit = Unit(
        name="serial",
        summary="integer tile for matrix products and shortest paths at a serial line",
        package="hdl.bus",
        options={},
        default=lambda given: dict(given),
        component=component,
        macs=lambda c: c["m"] * c["n"] * c["k"],
        shared=SerialUnit.shared,
    )
    return Variant(unit, dict(board.default))
