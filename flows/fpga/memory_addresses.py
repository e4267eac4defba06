"""Unused address bits of the memories in LUTs of an ECP5.

A TRELLIS_DPR16X4 has 16 words of four bits. In one with fewer words, Yosys gives the other address
bits the constant 0, which nextpnr routes from one LUT to two pins of each LUT of the memory, across
the chip. The function here gives them a bit that the memory has anyway. Different addresses stay
different, and both addresses are changed alike.
"""

from typing import Any

_CELL, _BITS = "TRELLIS_DPR16X4", 4


def tie(module: dict[str, Any]) -> None:
    """Leave no memory of a flat netlist that begins with zeros a constant address bit.

    One without any other bit keeps them.
    """
    for cell in module["cells"].values():
        if cell["type"] == _CELL and "1" not in cell["parameters"]["INITVAL"]:
            _tie(cell)


def _tie(cell: dict[str, Any]) -> None:
    written, read = cell["connections"]["WAD"], cell["connections"]["RAD"]
    constant = [isinstance(w, str) and w == r for w, r in zip(written, read, strict=True)]
    used = [
        n for n in range(_BITS) if not (isinstance(written[n], str) or isinstance(read[n], str))
    ]
    if not used or not any(constant):
        return
    for n in range(_BITS):
        if constant[n]:
            written[n], read[n] = written[used[0]], read[used[0]]
    cell["parameters"]["INITVAL"] = "0" * len(cell["parameters"]["INITVAL"])
