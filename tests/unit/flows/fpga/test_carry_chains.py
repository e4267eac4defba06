"""Carry chains without cells at their ends, against the function of the cells."""

from copy import deepcopy
from itertools import product

import pytest

from vitruvian.flows.fpga import carry_chains

#: Yosys' table of a bit of an adder: with D = 0, C inverts B.
_ADDER = "1001011010101010"
_SUMS = ("S0", "S1", "COUT")


def _cell(pins, *, init=_ADDER, carry: str | int = "0"):
    """Return a cell whose second bit always adds two nets, and the nets of its outputs."""
    names = [*(f"{pin}{bit}" for bit in (0, 1) for pin in "ABCD"), "CIN"]
    values = [*pins, 8, 9, "0", "0", carry]
    connections = {name: [value] for name, value in zip(names, values, strict=True)}
    return {
        "type": "CCU2C",
        "parameters": {"INIT0": init, "INIT1": _ADDER, "INJECT1_0": "NO", "INJECT1_1": "NO"},
        "port_directions": dict.fromkeys(names, "input") | dict.fromkeys(_SUMS, "output"),
        "connections": connections | {"S0": [20], "S1": [21], "COUT": [22]},
    }


def _closed(cell, read=(20, 21, 22)):
    ports = {"sum": {"direction": "output", "bits": list(read)}}
    module = {"ports": ports, "cells": {"chain": deepcopy(cell)}}
    carry_chains.close(module)
    return module["cells"]


def _outputs(cells, nets, floating):
    """Return the values of the nets 20 to 22; an input without a net has the value ``floating``."""

    def value(bit):
        return {"0": 0, "1": 1, "x": floating}[bit] if isinstance(bit, str) else nets[bit]

    found = {}
    for cell in cells.values():
        pins = {name: bits[0] for name, bits in cell["connections"].items()}
        if cell["type"] == "LUT4":
            index = sum(value(pins[pin]) << n for n, pin in enumerate("ABCD"))
            found[pins["Z"]] = int(cell["parameters"]["INIT"][::-1][index])
            continue
        carry = value(pins["CIN"])
        for bit in (0, 1):
            table = cell["parameters"][f"INIT{bit}"][::-1]
            index = sum(value(pins[f"{pin}{bit}"]) << n for n, pin in enumerate("ABCD"))
            propagates, generates = int(table[index]), int(table[index % 4])
            found[pins[f"S{bit}"]] = propagates ^ carry
            carry = carry if propagates else generates
        found[pins["COUT"]] = carry
    return {net: found[net] for net in (20, 21, 22) if net in found}


@pytest.mark.parametrize("carry", "01")
@pytest.mark.parametrize("init", [_ADDER, "1010010111000011"])
def test_a_constant_carry_goes_into_the_first_bit(init, carry):
    constants = ("0", "1")
    for c, d in product(constants, constants):
        for a, b in ((2, 3), (2, "0"), ("1", 3), (2, 2), ("0", "1")):
            cell = _cell([a, b, c, d], init=init, carry=carry)
            cells = _closed(cell)
            assert cells["chain"]["connections"]["CIN"] == ["x"]
            for values in product((0, 1), repeat=4):
                nets = dict(zip((2, 3, 8, 9), values, strict=True))
                wanted = _outputs({"chain": cell}, nets, 0)
                for floating in (0, 1):
                    assert _outputs(cells, nets, floating) == wanted


def test_an_input_may_be_any_of_the_four():
    cell = _cell(["1", "0", 2, 3], init="0110100110010110")
    cells = _closed(cell)
    assert set(cells) == {"chain", "chain_SUM0"}
    for values in product((0, 1), repeat=4):
        nets = dict(zip((2, 3, 8, 9), values, strict=True))
        assert _outputs(cells, nets, 1) == _outputs({"chain": cell}, nets, 0)


def test_a_sum_that_nothing_reads_gets_no_lut():
    cells = _closed(_cell([2, 3, "0", "0"]), read=(22,))
    assert set(cells) == {"chain"}


def test_a_carry_that_nothing_reads_has_no_net():
    cells = _closed(_cell([2, 3, "0", "0"], carry=4), read=(20,))
    assert cells["chain"]["connections"]["COUT"] == ["x"]
    assert cells["chain"]["connections"]["CIN"] == [4]


def test_three_inputs_stay():
    cell = _cell([2, 3, 4, "0"])
    assert _closed(cell)["chain"] == cell
