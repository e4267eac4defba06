"""Full adders of a library: turned ones compute the same, and their pins are in order."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.flows.asic import adders, cells, sta
from vitruvian.flows.asic.liberty import Library
from vitruvian.flows.asic.synth import SynthesisRecipe, synthesize

_INPUTS = 6
_PINS = {
    "FA_X1": (("A", "B", "CI"), ("CO", "S")),
    "$_NOT_": (("A",), ("Y",)),
    "$_AND_": (("A", "B"), ("Y",)),
    "$_DFF_P_": (("D",), ("Q",)),
}


def _cell(kind, ins, outs):
    names_in, names_out = _PINS[kind]
    pins = dict(zip((*names_in, *names_out), ([b] for b in (*ins, *outs)), strict=True))
    ways = dict.fromkeys(names_in, "input") | dict.fromkeys(names_out, "output")
    return {"type": kind, "port_directions": ways, "connections": pins}


def _random_module(seed):
    """Return a module of adders, inverters, gates and registers in a random order."""
    random = np.random.default_rng(seed)
    nets, found, last = list(range(2, 2 + _INPUTS)), {}, 1 + _INPUTS
    for number in range(40):
        kind = str(random.choice(list(_PINS), p=[0.4, 0.35, 0.2, 0.05]))
        ins, outs = _PINS[kind]
        new = list(range(last + 1, last + 1 + len(outs)))
        last += len(outs)
        pool = [*nets[-12:], "0", "1"]
        found[f"c{number}"] = _cell(
            kind, [pool[i] for i in random.integers(len(pool), size=len(ins))], new
        )
        nets += new
    ports = {
        "x": {"direction": "input", "bits": list(range(2, 2 + _INPUTS))},
        "y": {"direction": "output", "bits": nets[-10:]},
    }
    return {"ports": ports, "cells": found}


def _outputs(module, values, state):
    """Return outputs of a module and inputs of its registers, which hold ``state``."""
    nets = {"0": 0, "1": 1} | dict(zip(module["ports"]["x"]["bits"], values, strict=True))
    waiting = dict(module["cells"])
    for name, cell in list(waiting.items()):
        if cell["type"] == "$_DFF_P_":
            nets[cell["connections"]["Q"][0]] = state
            del waiting[name]
    while waiting:
        for name, cell in list(waiting.items()):
            ins, outs = _PINS[cell["type"]]
            bits = [cell["connections"][pin][0] for pin in ins]
            if not all(bit in nets for bit in bits):
                continue
            got = [nets[bit] for bit in bits]
            results = {
                "FA_X1": (sum(got) >> 1, sum(got) & 1),
                "$_NOT_": (1 - got[0],),
                "$_AND_": (all(got) + 0,),
            }[cell["type"]]
            nets |= {cell["connections"][p][0]: v for p, v in zip(outs, results, strict=True)}
            del waiting[name]
    registers = [c for c in module["cells"].values() if c["type"] == "$_DFF_P_"]
    return [nets[b] for b in module["ports"]["y"]["bits"]] + [
        nets[c["connections"]["D"][0]] for c in registers
    ]


@pytest.mark.parametrize("seed", range(12))
def test_turned_adders_compute_the_same(seed):
    module = _random_module(seed)
    turned = deepcopy(module)
    done = adders.orient(turned, seed=seed)
    assert done.adders == sum(c["type"] == "FA_X1" for c in module["cells"].values())
    assert done.after <= done.before
    for values in product((0, 1), repeat=_INPUTS):
        for state in (0, 1):
            assert _outputs(module, values, state) == _outputs(turned, values, state)


def test_a_chain_of_adders_with_inverters_between_them_needs_none():
    found, count = {}, 21  # every second adder is turned, not the last
    for n in range(count):
        net = 10 * n + 10
        left = "0" if n == 0 else net - 7
        found[f"fa{n}"] = _cell("FA_X1", (left, left, left), (net + 1, net + 2))
        found[f"not{n}"] = _cell("$_NOT_", (net + 2,), (net + 3,))
    ports = {"y": {"direction": "output", "bits": [10 * count + 2]}}
    module = {"ports": ports, "cells": found}
    done = adders.orient(module)
    assert (done.before, done.after) == (3 * (count - 1), 0)  # for each wire
    readers = [c["connections"]["A"][0] for c in module["cells"].values() if c["type"] == "FA_X1"]
    made = {c["connections"]["Y"][0] for c in module["cells"].values() if c["type"] == "$_NOT_"}
    assert not made & set(readers)


def test_adders_need_a_library_that_has_them():
    adders.check(cells.library("vt45").cells)
    with pytest.raises(UserError, match="a full adder FA_X1"):
        adders.check(Library(name="none", cells={}, wire_load=None))


_SUM = r"""
module \top
  wire width 8 input 1 \a
  wire width 8 input 2 \b
  wire width 9 output 3 \y
  cell $add \add
    parameter \A_SIGNED 0
    parameter \A_WIDTH 8
    parameter \B_SIGNED 0
    parameter \B_WIDTH 8
    parameter \Y_WIDTH 9
    connect \A \a
    connect \B \b
    connect \Y \y
  end
end
"""


def test_the_pins_of_mapped_adders_are_sorted_and_their_nets_stay():
    built_in = cells.library("vt45")
    mapped = synthesize(
        _SUM, liberty=built_in.path, targets_ps=(10000,), recipe=SynthesisRecipe(adders=True)
    )[10000]
    netlist, library = mapped.netlist, built_in.cells
    assert mapped.cells.get("FA_X1", 0) >= 4
    load = {"driving_cell": "BUF_X4", "load_ff": 5.0}
    for cell in netlist["cells"].values():
        if cell["type"] == "FA_X1":  # the worst order
            pins = cell["connections"]
            pins["A"], pins["B"], pins["CI"] = pins["CI"], pins["B"], pins["A"]
    before, _ = sta.arrivals(netlist, library, **load)
    nets = [
        sorted(map(str, (c["connections"][p][0] for p in ("A", "B", "CI"))))
        for c in netlist["cells"].values()
        if c["type"] == "FA_X1"
    ]
    adders.sort_pins(netlist, library, **load)
    after, _ = sta.arrivals(netlist, library, **load)
    assert after <= before
    assert nets == [
        sorted(map(str, (c["connections"][p][0] for p in ("A", "B", "CI"))))
        for c in netlist["cells"].values()
        if c["type"] == "FA_X1"
    ]


def test_forms_in_front_of_an_adder_are_learnt_and_then_chosen():
    """An inverter between a gate and each input of an adder goes when the adder is turned."""
    gates = {
        f"g{n}": {"type": "AOI22_X1", "connections": {"A1": [2], "ZN": [10 + n]}} for n in range(3)
    }
    inverters = {
        f"i{n}": {"type": "INV_X1", "connections": {"A": [10 + n], "ZN": [20 + n]}}
        for n in range(3)
    }
    pins = dict(zip(("A", "B", "CI"), ([20], [21], [22]), strict=True))
    adder = {"fa": {"type": "FA_X1", "connections": {**pins, "S": [30], "CO": [31]}}}
    library = cells.library("vt45").cells
    netlist = {"cells": gates | inverters | adder, "ports": {"y": {"bits": [30, 31]}}}
    assert adders.learn(netlist, frozenset(), library) == {("fa", pin): -1.0 for pin in pins}
    assert adders.learn(netlist, frozenset({"fa"}), library) == {("fa", pin): 1.0 for pin in pins}
    netlist["ports"]["x"] = {"bits": [21]}  # somebody else reads this one, as it is
    assert ("fa", "B") not in adders.learn(netlist, frozenset(), library)

    found = {f"and{n}": _cell("$_AND_", (2, 3 + n), (20 + n,)) for n in range(3)}
    found["fa"] = _cell("FA_X1", (20, 21, 22), (31, 30))
    module = {
        "cells": found,
        "ports": {
            "x": {"direction": "input", "bits": [2, 3, 4, 5]},
            "y": {"direction": "output", "bits": [30, 31]},
        },
    }
    assert adders.orient(deepcopy(module)).names == frozenset()
    learnt = {("fa", pin): -1.0 for pin in pins}
    assert adders.orient(deepcopy(module), in_front=learnt).names == frozenset({"fa"})
    assert adders.orient(deepcopy(module), in_front={("fa", "A"): -1.0}).names == frozenset()
