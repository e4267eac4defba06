"""Sizes of cells: the timing of each change is that of a whole analysis, and the function stays."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.flows.asic import cells, sta
from vitruvian.flows.asic.power.functions import truth_table
from vitruvian.flows.asic.sizing import fit as sizing
from vitruvian.flows.asic.sizing.fit import fit
from vitruvian.flows.asic.sizing.netlist import SizedNetlist
from vitruvian.flows.asic.synth import SynthesisRecipe, synthesize

_CONDITIONS = {"driving_cell": "BUF_X4", "load_ff": 5.0}
#: Sum of a product and a number in front of a register: full adders, gates and flip-flops.
_DESIGN = r"""
module \top
  wire input 1 \clk
  wire width 6 input 2 \a
  wire width 6 input 3 \b
  wire width 6 input 4 \c
  wire width 12 output 5 \y
  wire width 12 \product
  wire width 12 \next
  cell $mul \times
    parameter \A_SIGNED 0
    parameter \A_WIDTH 6
    parameter \B_SIGNED 0
    parameter \B_WIDTH 6
    parameter \Y_WIDTH 12
    connect \A \a
    connect \B \b
    connect \Y \product
  end
  cell $add \plus
    parameter \A_SIGNED 0
    parameter \A_WIDTH 12
    parameter \B_SIGNED 0
    parameter \B_WIDTH 6
    parameter \Y_WIDTH 12
    connect \A \product
    connect \B \c
    connect \Y \next
  end
  cell $dff \state
    parameter \CLK_POLARITY 1
    parameter \WIDTH 12
    connect \CLK \clk
    connect \D \next
    connect \Q \y
  end
end
"""


@pytest.fixture(scope="module")
def library():
    return cells.library("vt45")


@pytest.fixture(scope="module")
def mapped(library):
    recipe = SynthesisRecipe(adders=True)
    return synthesize(_DESIGN, liberty=library.path, targets_ps=(10000,), recipe=recipe)[10000]


def _next_states(netlist, library, values):
    """Return what the flip-flops take, for 64 values of each input bit in a word."""
    nets = {"0": 0, "1": (1 << 64) - 1, "x": 0}
    for port in "abc":
        nets |= dict(zip(netlist["ports"][port]["bits"], values[port], strict=True))
    taken, waiting = {}, dict(netlist["cells"])
    while waiting:
        before = len(waiting)
        for name, instance in list(waiting.items()):
            cell = library.cells[instance["type"]]
            pins = {p: bits[0] for p, bits in instance["connections"].items() if bits}
            if cell.clock:
                if pins["D"] not in nets:
                    continue
                taken[pins.get("Q"), pins.get("QN")] = nets[pins["D"]]
            else:
                inputs = sorted(cell.caps)
                if any(pins[pin] not in nets for pin in inputs):
                    continue
                for pin in set(cell.outputs) & set(pins):
                    word = truth_table(cell.outputs[pin], inputs).word
                    result = 0
                    for k in range(64):
                        row = sum((nets[pins[p]] >> k & 1) << n for n, p in enumerate(inputs))
                        result |= (word >> row & 1) << k
                    nets[pins[pin]] = result
            del waiting[name]
        assert len(waiting) < before, "a loop, or a net without driver"
    return taken


def _values(seed):
    random = np.random.default_rng(seed)
    return {
        port: [int(x) for x in random.integers(1 << 64, size=6, dtype=np.uint64)] for port in "abc"
    }


def _delay(netlist, library):
    delay = sta.analyse(netlist, library, **_CONDITIONS).delay_ps
    assert delay is not None
    return delay


def test_the_timing_at_the_start_is_that_of_the_analysis(mapped, library):
    sized = SizedNetlist(deepcopy(mapped.netlist), library.cells, **_CONDITIONS)
    assert sized.late()[0] == pytest.approx(_delay(mapped.netlist, library.cells), abs=1e-6)
    assert sized.area == pytest.approx(mapped.area_um2)
    kinds = [library.cells.cells[cell["type"]] for cell in mapped.netlist["cells"].values()]
    registers = sum(cell.area_um2 for cell in kinds if cell.clock)
    assert mapped.sequential_area_um2 == pytest.approx(registers) and registers > 0


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_have_the_timing_of_the_analysis_and_can_be_undone(mapped, library, seed):
    netlist = deepcopy(mapped.netlist)
    sized = SizedNetlist(netlist, library.cells, **_CONDITIONS)
    sizer = sizing._Sizer(sized, 0.0)
    random = np.random.default_rng(seed)
    kept = 0
    for _ in range(60):
        path = sized.longest()
        inst, slot = path[random.integers(len(path))]
        changes = list(sizer._changes(inst, slot, True))
        if not changes:
            continue
        before = sized.late(), sized.area, sized.circuit.arrival.copy()
        change, _, _ = changes[random.integers(len(changes))]
        sized.begin()
        sized.follow(change())
        if random.random() < 0.5:
            sized.undo()
            assert (sized.late(), sized.area) == before[:2]
            assert np.array_equal(sized.circuit.arrival, before[2])
        else:
            kept += 1
    assert kept > 10
    sized.refresh()
    sized.write_back()
    assert sized.late()[0] == pytest.approx(_delay(netlist, library.cells), abs=1e-6)
    area = sum(library.cells.cells[c["type"]].area_um2 for c in netlist["cells"].values())
    assert sized.area == pytest.approx(area)
    values = _values(seed)
    after = _next_states(netlist, library.cells, values)
    assert after == _next_states(mapped.netlist, library.cells, values)


@pytest.mark.parametrize("share", [None, 0.9, 0.75, 0.0])
def test_a_fitted_netlist_meets_its_target_and_computes_the_same(mapped, library, share):
    netlist = deepcopy(mapped.netlist)
    before = _delay(netlist, library.cells)
    target = None if share is None else share * before
    done = fit(netlist, library.cells, target_ps=target, **_CONDITIONS)
    after = _delay(netlist, library.cells)
    assert after == pytest.approx(done.delay, abs=0.2)
    assert after <= before + 0.2
    if share is None:
        assert done.area <= done.area_before and done.hastened == 0
    elif share >= 0.9:
        assert after <= share * before + 0.2
    values = _values(7)
    expected = _next_states(mapped.netlist, library.cells, values)
    assert _next_states(netlist, library.cells, values) == expected


def test_an_adder_that_becomes_other_gates_is_noticed(mapped, library, monkeypatch):
    """The check of the function above can fail: NOR in the place of NAND is caught."""
    netlist = deepcopy(mapped.netlist)
    sized = SizedNetlist(netlist, library.cells, **_CONDITIONS)
    adder = next(n for n, name in enumerate(sized.names) if sized.cell(n).name == "FA_X1")
    monkeypatch.setattr(sizing, "_BOTH", "NOR2_X1")
    sized.begin()
    sized.follow(sizing._dissolve(sized, adder))
    sized.write_back()
    values = _values(1)
    after = _next_states(netlist, library.cells, values)
    assert after != _next_states(mapped.netlist, library.cells, values)


def _with_limits(library, limits):
    """Return a library whose cells of some names may drive so many fF at most."""
    found = {
        name: replace(cell, max_ff=dict.fromkeys(cell.outputs, limits(name)))
        for name, cell in library.cells.items()
    }
    return replace(library, cells=found)


@pytest.mark.parametrize("target", [None, 0.0])
def test_no_net_gets_more_load_than_its_driver_may_have(mapped, library, target, monkeypatch):
    limited = _with_limits(library.cells, lambda name: 6.0)

    def overloaded(what):
        sized = SizedNetlist(deepcopy(what), limited, **_CONDITIONS)
        nets = [net for n in range(len(sized.names)) for net in sized.output_nets(n)]
        return sum(map(sized.overloaded, nets))

    netlist, before = deepcopy(mapped.netlist), overloaded(mapped.netlist)
    fit(netlist, limited, target_ps=target, **_CONDITIONS)
    assert overloaded(netlist) <= before
    if target is not None:  # without the limits, it would
        netlist = deepcopy(mapped.netlist)
        with monkeypatch.context() as patch:
            patch.setattr(SizedNetlist, "overloaded", lambda self, net: False)
            fit(netlist, limited, target_ps=target, **_CONDITIONS)
        assert overloaded(netlist) > before


def test_gates_that_drive_too_little_replace_no_adder(mapped, library):
    weak = _with_limits(library.cells, lambda name: 0.1 if name == "XNOR2_X1" else 60.0)
    done = [
        fit(deepcopy(mapped.netlist), cells_, target_ps=0.0, **_CONDITIONS).dissolved
        for cells_ in (library.cells, weak)
    ]
    assert done[0] > 0 == done[1]
