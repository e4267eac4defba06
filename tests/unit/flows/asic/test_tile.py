"""Whole units: buffer trees and folded timing agree with sums done by hand."""

from typing import Any

import pytest

from tests.unit.flows.asic.test_sta import CAP, LIBRARY, SETUP, inverter, port
from vitruvian.flows.asic import liberty, sta, tile
from vitruvian.flows.asic.buffers import Load, Planner

#: A flip-flop's output at a load, and the slew there (``test_sta.CLOCK_TO_Q`` and ``SLEW``).
FF_PS, SLEW_PS = (30.0, 1.0), (4.0, 3.0)


@pytest.fixture(scope="module")
def library() -> liberty.Library:
    return liberty.parse(LIBRARY, name="hand")


def flip_flop(d: int, q: int) -> dict[str, Any]:
    return {"type": "DFF", "connections": {"CK": [2], "D": [d], "Q": [q]}}


def instance(**pins: int) -> dict[str, Any]:
    return {"type": "child", "connections": {pin: [bit] for pin, bit in pins.items()}}


#: An inverter in front of a flip-flop, whose output is the module's.
CHILD = tile.TileModule(
    label="child",
    netlist={
        "ports": {
            "clk": port("input", 2),
            "a": port("input", 3),
            "q": port("output", 5),
        },
        "cells": {"u": inverter(3, 4), "f": flip_flop(4, 5)},
        "instances": {},
        "netnames": {"a": [3], "d": [4], "q": [5]},
    },
)


def top(children: int) -> tile.TileModule:
    """Return a module whose flip-flop drives ``a`` of all children; each child drives an output."""
    return tile.TileModule(
        label="top",
        netlist={
            "ports": {
                "clk": port("input", 2),
                "d": port("input", 3),
                **{f"q{n}": port("output", 10 + n) for n in range(children)},
            },
            "cells": {"f": flip_flop(3, 4)},
            "instances": {f"c{n}": instance(clk=2, a=4, q=10 + n) for n in range(children)},
            "netnames": {"bus": [4]},
        },
    )


def assembled(library: liberty.Library, children: int, **options: Any) -> tile.AssembledTile:
    return tile.assemble({"top": top(children), "child": CHILD}, "top", library, **options)


def by_hand(bus_ps: float, slew: float) -> float:
    """Return the path over the bus, the child's inverter and the set-up of its flip-flop."""
    return bus_ps + (10 + 2 * CAP["DFF.D"] + 0.5 * slew) + SETUP


@pytest.mark.parametrize("fold", [True, False])
def test_a_bus_has_the_loads_of_all_instances(library: liberty.Library, fold: bool):
    whole = assembled(library, 3, fold=fold, buffered=False)
    load = 3 * CAP["INV.A"]
    expected = by_hand(FF_PS[0] + FF_PS[1] * load, SLEW_PS[0] + SLEW_PS[1] * load)
    path = whole.timing.paths["register->register"]
    assert path.delay_ps == pytest.approx(expected)
    assert path.start == "top.bus"
    # The output of a child drives the load of the unit's output.
    assert whole.timing.paths["register->output"].delay_ps == pytest.approx(30 + 5.0)
    assert whole.buffers == {} and whole.buffer_area_um2 == 0


def test_leaving_out_the_loads_of_instances_is_noticed(
    library: liberty.Library, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sta.TimingGraph, "_share", lambda self, load, fanout: None)
    with pytest.raises(AssertionError):
        test_a_bus_has_the_loads_of_all_instances(library, True)


def test_buffers_of_a_bus_count_in_delay_and_area(library: liberty.Library):
    whole = assembled(library, 40)
    # With n buffers: 30 + 3n + 20 + 0.25 · 1.5 · (40 / n) ps, which is 60.5 ps with 2 of them,
    # 63.25 with 3 and 68 with 1; without a buffer, the bus takes 90 ps and has a slew of 184.
    load = CAP["INV.A"] * 20
    expected = by_hand(30 + 2 * 3.0 + 20 + 0.25 * load, 2.0 + 0.5 * load)
    path = whole.timing.paths["register->register"]
    assert path.delay_ps == pytest.approx(expected)
    assert whole.buffers == {"BUF_X4": 2} and whole.buffer_area_um2 == 2 * 1.0
    split = whole.split()
    assert list(split) == ["clock-to-q", "buffers", "child", "set-up"]
    assert split["clock-to-q"] == pytest.approx(36)
    assert split["buffers"] == pytest.approx(20 + 0.25 * load)
    assert sum(split.values()) == pytest.approx(path.delay_ps)


def test_a_planned_tree_is_the_one_found_by_hand(library: liberty.Library):
    """An inverter (10 + 2 C + 0.5 slew ps, slew 20 ps) drives 64 loads of 5 fF.

    It takes 660 ps alone, and behind it n buffers take 20 + 0.25 C ps: 126 ps in all with n = 1,
    92 with 2, 85.5 with 3, 84 with 4 and 89.75 with 6. Three are within 2 % of four, and smaller.
    """
    planner = Planner(library)
    tree = planner.plan(library.cells["INV"], "Y", Load(0.0, 0), [Load(5.0)] * 64)
    ((cell, owners),) = tree.levels
    assert cell == "BUF_X4" and sorted(map(owners.count, range(3))) == [21, 21, 22]
    assert tree.delay_ps == pytest.approx(20 + 2 * 9 + 20 + 0.25 * 110)
    small = planner.plan(library.cells["INV"], "Y", Load(0.0, 0), [Load(5.0)])
    assert small.levels == () and small.delay_ps == pytest.approx(20 + 2 * 5)
    # A load that cannot move does not get a buffer.
    fixed = planner.plan(library.cells["INV"], "Y", Load(300.0), [])
    assert fixed.levels == () and fixed.delay_ps == pytest.approx(20 + 2 * 300)


def test_a_large_tree_has_several_levels(library: liberty.Library):
    tree = Planner(library).plan(library.cells["INV"], "Y", Load(0.0, 0), [Load(5.0)] * 3000)
    counts = [max(owners) + 1 for _, owners in tree.levels]
    assert len(counts) > 1 and counts == sorted(counts, reverse=True)
    assert all(len(o) == n for (_, o), n in zip(tree.levels[1:], counts, strict=False))


def test_clocks_get_no_buffers_and_a_loop_is_refused(library: liberty.Library):
    assert assembled(library, 2).buffers == {}
    loop = {
        "ports": {"a": port("input", 2), "q": port("output", 3)},
        "cells": {"u": inverter(2, 3)},
        "instances": {},
        "netnames": {},
    }
    around = {
        "ports": {},
        "cells": {},
        "instances": {"c": {"type": "child", "connections": {"a": [4], "q": [4]}}},
        "netnames": {},
    }
    modules = {
        "child": tile.TileModule(label="child", netlist=loop),
        "top": tile.TileModule(label="top", netlist=around),
    }
    with pytest.raises(ValueError, match="combinational loop"):
        tile.assemble(modules, "top", library, buffered=False)
