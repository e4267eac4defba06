"""Registers inside the DSP blocks of an ECP5, which Yosys leaves in the fabric.

A MULT18X18D has registers in front of its outputs. The functions here move the flip-flops behind a
multiplier of a mapped netlist into these. The behaviour of the netlist is the same in every cycle,
and the product has a whole cycle for its way from the block. Operands keep their flip-flops
outside (docs/decisions/0021-dsp-registers.md).

A short signed operand stands at the upper end of its 18 bits instead of the lower end, with zeros
below. Its sign then takes one pin instead of up to eleven, which are hard to route.
"""

from collections.abc import Mapping
from typing import Any

from vitruvian.flows.fpga.netlist import Users, users_of

_BLOCK, _FLIP_FLOP = "MULT18X18D", "TRELLIS_FF"
_BITS = 18
#: Ending of a register's parameters -> port that controls it.
_CONTROLS = {"CLK": "CLK0", "CE": "CE0", "RST": "RST0"}


def absorb(module: dict[str, Any]) -> None:
    """Let the multipliers of a flat netlist take up the registers behind them.

    A multiplier takes up its product's registers if every bit that is used goes into one and
    nowhere else. The registers must have the same clock, and neither an enable nor a reset, nor an
    initial value of 1.
    """
    cells = module["cells"]
    users = users_of(module)
    for name in [name for name, cell in cells.items() if cell["type"] == _BLOCK]:
        _raise_operands(name, cells[name], users)
        clock = _absorb_product(cells[name], cells, users)
        if clock is not None:
            # The pins of the clock, its enable and the reset that the register uses.
            cells[name]["connections"] |= {"CLK0": [clock], "CE0": ["1"], "RST0": ["0"]}
            cells[name]["port_directions"] |= dict.fromkeys(_CONTROLS.values(), "input")
            cells[name]["parameters"]["GSR"] = "DISABLED"
    _remove_unused(cells, users)


def _is_plain(cell: Mapping[str, Any]) -> bool:
    """Return whether a cell is a flip-flop without enable, reset and initial value of 1."""
    parameters = cell["parameters"]
    return (
        cell["type"] == _FLIP_FLOP
        and parameters.get("CEMUX", "1").strip() == "1"
        and parameters.get("CLKMUX", "CLK") == "CLK"
        and parameters.get("REGSET", "RESET") == "RESET"
        and cell["connections"].get("LSR", ["0"]) == ["0"]
    )


def _raise_operands(block: str, cell: dict[str, Any], users: Users) -> None:
    """Move operands with copies of their sign to the upper end, and the product with them."""
    pins = cell["connections"]
    operands = {side: [pins[f"{side}{n}"][0] for n in range(_BITS)] for side in "AB"}
    free = {
        side: _BITS - 1 - bits.index(bits[-1])
        for side, bits in operands.items()
        if not isinstance(bits[-1], str) and pins[f"SIGNED{side}"] == ["1"]
    }
    shift = sum(free.values())
    product = [pins.get(f"P{n}", []) for n in range(2 * _BITS)]
    if not shift or any(bits and users.get(bits[0]) for bits in product[-shift:]):
        return
    for side, count in free.items():
        moved = ["0"] * count + operands[side][: _BITS - count]
        for n, bit in enumerate(moved):
            users[pins[f"{side}{n}"][0]].discard((block, f"{side}{n}"))
            pins[f"{side}{n}"] = [bit]
        for n, bit in enumerate(moved):
            users.setdefault(bit, set()).add((block, f"{side}{n}"))
    for n, bits in enumerate([*product[-shift:], *product[:-shift]]):
        pins[f"P{n}"] = bits


def _absorb_product(cell: dict[str, Any], cells: Mapping[str, Any], users: Users) -> Any:
    """Take up the product's registers, and return their clock, or None."""
    moved: dict[str, str] = {}
    for n in range(2 * _BITS):
        port = f"P{n}"
        inputs = users.get(cell["connections"].get(port, [None])[0], set())
        if not inputs:
            continue
        (name, pin), *others = inputs
        if others or pin != "DI" or not _is_plain(cells[name]):
            return None
        moved[port] = name
    clocks = {cells[name]["connections"]["CLK"][0] for name in moved.values()}
    if len(clocks) != 1:
        return None
    for port, name in moved.items():
        # The block drives the register's net; the register stays without a user for its own.
        cell["connections"][port] = cells[name]["connections"]["Q"]
        cells[name]["connections"]["Q"] = []
    cell["parameters"] |= {f"REG_OUTPUT_{kind}": port for kind, port in _CONTROLS.items()}
    return clocks.pop()


def _remove_unused(cells: dict[str, Any], users: Users) -> None:
    """Remove the flip-flops that drive nothing any more."""
    for name in [n for n, cell in cells.items() if cell["type"] == _FLIP_FLOP]:
        bits = cells[name]["connections"]["Q"]
        if not bits or not users.get(bits[0]):
            del cells[name]
