"""Ends of carry chains on an ECP5, which nextpnr would connect to the fabric.

nextpnr puts a cell of two LUTs in front of a chain whose carry comes from a net, though it be a
constant, and another behind a chain whose last carry has a net, though nobody read it. The function
here leaves neither: a constant carry goes into the first bit of its chain, and a carry without a
reader has no net.
"""

from itertools import product
from typing import Any

from vitruvian.flows.fpga.netlist import Users, users_of

_CELL = "CCU2C"
#: Pins of the LUT of the first bit, from the lowest bit of an index of its table.
_PINS = ("A0", "B0", "C0", "D0")


def close(module: dict[str, Any]) -> None:
    """Leave no end of a carry chain of a flat netlist for which nextpnr would need a cell."""
    cells = module["cells"]
    users = users_of(module)
    for name in [name for name, cell in cells.items() if cell["type"] == _CELL]:
        pins = cells[name]["connections"]
        if _unread(pins["COUT"], users):
            pins["COUT"] = ["x"]
        if pins["CIN"][0] in ("0", "1"):
            _fold(name, cells, users, carry=int(pins["CIN"][0]))


def _unread(bits: list[Any], users: Users) -> bool:
    return not bits or not users.get(bits[0])


def _fold(name: str, cells: dict[str, Any], users: Users, *, carry: int) -> None:
    """Put a constant carry into the first bit of a chain, whose sum gets a LUT if it is read.

    With p, the bit's table of four inputs, and g, its table of A and B alone, the cell computes
    ``sum = p ^ carry`` and ``next carry = carry if p else g``. With p = 0, g is the next carry,
    whatever the carry is. It must then depend on two inputs at most.
    """
    cell = cells[name]
    pins, parameters = cell["connections"], cell["parameters"]
    if parameters["INJECT1_0"] != "NO":
        return
    table = parameters["INIT0"][::-1]
    free = [pin for pin in _PINS if not isinstance(pins[pin][0], str)]
    fixed = {pin: int(pins[pin][0] == "1") for pin in _PINS if pin not in free}
    if len(free) > 2:
        return
    sums, carries = {}, {}
    for values in product((0, 1), repeat=len(free)):
        at = fixed | dict(zip(free, values, strict=True))
        index = sum(at[pin] << n for n, pin in enumerate(_PINS))
        propagates = int(table[index])
        sums[values] = propagates ^ carry
        carries[values] = carry if propagates else int(table[index % 4])
    nets = [pins[pin][0] for pin in free]
    if not _unread(pins["S0"], users):
        cells[f"{name}_SUM0"] = _lut(nets, sums, pins["S0"])
        pins["S0"] = ["x"]
    # The upper half of the table, which D0 = 1 selects, is p; its lowest four bits are g.
    parameters["INIT0"] = "0" * 12 + _table(carries, 2)[::-1]
    pins |= {pin: [bit] for pin, bit in zip(_PINS, _padded(nets, 2) + ["0", "1"], strict=True)}
    pins["CIN"] = ["x"]


def _lut(nets: list[Any], function: dict[tuple[int, ...], int], output: list[Any]) -> Any:
    """Return a cell LUT4 with a function of up to two nets."""
    bits = [*_padded(nets, 4), output[0]]
    return {
        "hide_name": 0,
        "type": "LUT4",
        "parameters": {"INIT": _table(function, 4)[::-1]},
        "attributes": {},
        "port_directions": dict.fromkeys("ABCD", "input") | {"Z": "output"},
        "connections": {port: [bit] for port, bit in zip("ABCDZ", bits, strict=True)},
    }


def _padded(nets: list[Any], count: int) -> list[Any]:
    return nets + ["0"] * (count - len(nets))


def _table(function: dict[tuple[int, ...], int], inputs: int) -> str:
    """Return the table of a function of so many inputs, of which the last ones do not matter."""
    known = len(next(iter(function)))
    return "".join(
        str(function[tuple(index >> n & 1 for n in range(known))]) for index in range(1 << inputs)
    )
