"""FPGA boards: their chips, resources, clocks and pins, read from the files in ``flows/boards``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of

#: The folder of the boards; each file gives the source of every number.
BOARDS = Path(__file__).with_name("boards")


class TooSmall(UserError):
    """A board that lacks a resource; the message says which one and by how much."""


@dataclass(frozen=True, kw_only=True)
class FpgaBoard:
    """An FPGA board.

    Members
    -------
    name : str
        Name on the command line.
    description : str
        Name of the board and its chip, for people.
    family : str
        Key of ``flows.fpga.mapping.FAMILIES``.
    part : mapping of str to str or int
        Name of the chip, and what its tools call it.
    resources : mapping of str to int
        Available "lut", "ff", "dsp" and "bram".
    grid : tuple of int
        Columns and rows of tiles; (0, 0) if the board is not routed.
    clock_pin : str
    clock_mhz : float
    pins : mapping of str to tuple of str
        Port of a design -> pins of the chip, from bit 0 on.
    standards : mapping of str to str
        Port of a design -> electrical standard of its pins.
    led_on : int
        Level at which an LED shines.
    default : mapping of str to str
        Options of the unit ``serial`` in the board's default design.
    ranks : mapping of str to int
        Class of a component -> the fewest register ranks that reach, within a twentieth, the
        highest frequency on this board. Components whose ranks have not been measured here are
        missing.
    """

    name: str
    description: str
    family: str
    part: Mapping[str, str | int]
    resources: Mapping[str, int]
    grid: tuple[int, int]
    clock_pin: str
    clock_mhz: float
    pins: Mapping[str, tuple[str, ...]]
    standards: Mapping[str, str]
    led_on: int
    default: Mapping[str, str]
    ranks: Mapping[str, int]

    @property
    def routed(self) -> bool:
        """True if the flow places and routes for this board; the others need Vivado."""
        return self.family != "xilinx7"

    def located(self, widths: Mapping[str, int]) -> dict[str, tuple[str, str]]:
        """Return bit of a top module's port -> its pin and electrical standard.

        The clock is the port ``clk``. A port of one bit has no index.

        Parameters
        ----------
        widths : mapping of str to int
            Port of the top module, without the clock -> its bits.
        """
        located = {"clk": (self.clock_pin, self.standards["clk"])}
        for port, width in widths.items():
            for index in range(width):
                bit = port if width == 1 else f"{port}[{index}]"
                located[bit] = (self.pins[port][index], self.standards[port])
        return located


def board_names() -> list[str]:
    """Return the names of the boards."""
    return sorted(path.stem for path in BOARDS.glob("*.toml"))


@cache
def load_board(name: str) -> FpgaBoard:
    """Return the board ``name``.

    Raises
    ------
    UserError
        If no board has this name.
    """
    path = BOARDS / f"{one_of('board', name, board_names())}.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    io, grid = data["io"], data.get("grid", {"columns": 0, "rows": 0})
    pins = {
        port: (given,) if isinstance(given, str) else tuple(given)
        for port, given in data["pins"].items()
    }
    standards = {port: io.get(f"{port}_standard", io["standard"]) for port in ("clk", *pins)}
    return FpgaBoard(
        name=name,
        description=data["description"],
        family=data["family"],
        part=MappingProxyType(data["part"]),
        resources=MappingProxyType(data["resources"]),
        grid=(grid["columns"], grid["rows"]),
        clock_pin=data["clock"]["pin"],
        clock_mhz=float(data["clock"]["mhz"]),
        pins=MappingProxyType(pins),
        standards=MappingProxyType(standards),
        led_on=io["led_on"],
        default=MappingProxyType(data["default"]),
        ranks=MappingProxyType(data.get("ranks", {})),
    )
