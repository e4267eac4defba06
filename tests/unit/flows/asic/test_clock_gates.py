"""Clock gates: timing, hold times and energy by hand, and the function of gated netlists."""

import random
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from tests.unit.flows.asic import gated_library as gated
from tests.unit.flows.asic.test_power import (
    CAP,
    CHANGED_FALL,
    CLOCK_CAP,
    CLOCK_FALL,
    CLOCK_RISE,
    FALL,
    LEAK_NW,
    LOAD_FF,
    PERIOD_PS,
    RISE,
    VOLTS,
    cell,
    drive,
)
from tests.unit.flows.asic.test_sta import both, port
from vitruvian.common.errors import UserError, WorkError
from vitruvian.flows.asic import gates, hold, liberty, sta
from vitruvian.flows.asic.cells import library as cell_library
from vitruvian.flows.asic.liberty_text import LibertyError
from vitruvian.flows.asic.power import cells, energy, idle
from vitruvian.flows.asic.power.measure import run
from vitruvian.flows.asic.power.network import MappedNetwork, build
from vitruvian.flows.asic.power.stages import stages
from vitruvian.flows.asic.power.stimulus import PowerStimulus
from vitruvian.flows.asic.sizing.fit import fit
from vitruvian.flows.asic.sizing.netlist import SizedNetlist
from vitruvian.flows.asic.synth import SynthesisRecipe, synthesize

TEXT = gated.hand()
CONDITIONS = {"driving_cell": "BUF_X4", "load_ff": LOAD_FF}
#: Time by which the gated clock of two registers is late, and its slew.
LATE = gated.DELAY[0] + gated.DELAY[1] * 2 * CLOCK_CAP
STEEP = gated.SLEW[0] + gated.SLEW[1] * 2 * CLOCK_CAP


@pytest.fixture(scope="module")
def library() -> liberty.Library:
    return liberty.parse(TEXT, name="hand")


def pipeline() -> dict:
    """Return d -> f0 (gated) -> INV -> f1 -> f2 (gated) -> q with the enable e of the gate."""
    return {
        "ports": {
            "clk": port("input", 2),
            "e": port("input", 3),
            "d": port("input", 4),
            "q": port("output", 9),
        },
        "cells": {
            "gate": cell("GATE", CK=2, E=3, GCK=5),
            "f0": cell("DFF", CK=5, D=4, Q=6),
            "u0": cell("INV", A=6, Y=7),
            "f1": cell("DFF", CK=2, D=7, Q=8),
            "f2": cell("DFF", CK=5, D=8, Q=9),
        },
        "netnames": {"gated": [5], "first": [6]},
    }


def network(netlist: dict) -> MappedNetwork:
    power = cells.parse(TEXT, name="hand")
    return build(netlist, liberty.parse(TEXT, name="hand"), power, load_ff=LOAD_FF)


def test_a_clock_gate_is_read_with_its_pins(library: liberty.Library):
    own = library.cells["GATE"]
    assert own.gate == liberty.ClockGate(clock="CK", enable="E", output="GCK")
    assert own.clock == "CK" and not own.is_latch
    assert {arc.kind for arc in own.arcs} == {"setup", "hold", "gate"}
    assert library.cells["DFF"].gate is None
    # A gate with a pin for tests is not used.
    other = TEXT.replace(": latch_posedge;", ": latch_posedge_precontrol;")
    assert liberty.parse(other, name="other").cells["GATE"].gate is None


def longest(netlist: dict, library: liberty.Library) -> dict[str, float]:
    paths = sta.analyse(netlist, library, **CONDITIONS).paths
    return {kind: path.delay_ps for kind, path in paths.items()}


def test_paths_begin_and_end_with_the_gated_clock(library: liberty.Library):
    netlist = pipeline()
    found = sta.analyse(netlist, library, **CONDITIONS).paths
    gated_q = LATE + 12 + gated.BY_SLEW * STEEP
    setup = 1 + gated.SETUP_BY_SLEW * STEEP
    inner = found["register->register"]
    assert inner.delay_ps == pytest.approx(gated_q + 10 + 1) and inner.late_ps == 0
    assert [step.kind for step in inner.steps] == ["GATE", "DFF", "INV"]
    assert inner.steps[0].delay_ps == inner.steps[0].arrival_ps == pytest.approx(LATE)
    assert inner.steps[1].delay_ps == pytest.approx(12 + gated.BY_SLEW * STEEP)
    assert found["register->output"].delay_ps == pytest.approx(gated_q)
    # The enable has to be there before the gate, which is not late; data before the gated clock.
    assert found["input->register"].end == "gate"
    # With a slow inverter in front of it, the data of f0 comes last.
    netlist["cells"] |= {"u1": cell("SLOW_INV", A=4, Y=10), "f0": cell("DFF", CK=5, D=10, Q=6)}
    path = sta.analyse(netlist, library, **CONDITIONS).paths["input->register"]
    assert path.end == "first" and path.late_ps == pytest.approx(LATE)
    assert path.delay_ps == pytest.approx(30 + setup - LATE)


def test_a_timing_without_gates_is_noticed(
    library: liberty.Library, monkeypatch: pytest.MonkeyPatch
):
    """A mutant that takes the gated clock for ideal has other longest paths."""
    right = longest(pipeline(), library)
    monkeypatch.setattr(sta, "clock_arrivals", lambda own, gates, load: np.zeros((len(own), 2)))
    wrong = longest(pipeline(), library)
    assert wrong["register->register"] == pytest.approx(12 + 10 + 1)
    assert all(abs(wrong[kind] - right[kind]) > 5 for kind in right if kind[:5] != "input")


def test_a_clock_through_two_gates_is_refused(library: liberty.Library):
    netlist = pipeline()
    netlist["cells"]["again"] = cell("GATE", CK=5, E=3, GCK=11)
    with pytest.raises(LibertyError, match="must pass one gate, not gate and then again"):
        sta.analyse(netlist, library, **CONDITIONS)


def test_hold_times_are_those_of_the_gated_clock(library: liberty.Library):
    graph = sta.TimingGraph(pipeline(), library, "BUF_X4", LOAD_FF)
    names = [name for name, _, _ in graph.instances]
    found = {names[number]: slack for (number, _), slack in hold.slacks(graph).items()}
    assert found == {
        "f1": pytest.approx(LATE + 12 + gated.BY_SLEW * STEEP + 10 - gated.REGISTER_HOLD),
        "f2": pytest.approx(12 - LATE - gated.REGISTER_HOLD),
    }
    netlist = pipeline()
    netlist["cells"]["gate"]["connections"]["E"] = [8]
    graph = sta.TimingGraph(netlist, library, "BUF_X4", LOAD_FF)
    found = {names[number]: slack for (number, _), slack in hold.slacks(graph).items()}
    assert found["gate"] == pytest.approx(12 - gated.HOLD)


def test_early_data_is_delayed_by_buffers():
    """A clock gate that is slower by 30 ps needs two buffers of 20 ps in front of f2."""
    slow = TEXT.replace(both(gated.DELAY, gated.SLEW), both((39.0, 0.5, 0.0), gated.SLEW))
    library = liberty.parse(slow, name="slow")
    netlist = pipeline()
    before = min(hold.slacks(sta.TimingGraph(netlist, library, "BUF_X4", LOAD_FF)).values())
    assert before == pytest.approx(12 - LATE - 30 - gated.REGISTER_HOLD)
    buffers, slack = hold.mend(netlist, library, **CONDITIONS)
    assert buffers == 2 and slack is not None and 0 <= slack < 20
    chain = [c for c in netlist["cells"].values() if c["type"] == "BUF_X4"]
    assert chain[0]["connections"]["A"] == [8] and chain[1]["connections"]["A"] != [8]
    # f2 still has the value of f1, and nothing else changed.
    rest = {k: v for k, v in netlist["cells"].items() if v not in chain and k != "f2"}
    assert rest == {k: v for k, v in pipeline()["cells"].items() if k != "f2"}
    assert hold.mend(netlist, library, **CONDITIONS)[0] == 0


def held(enable: list[int], data: list[int]) -> list[int]:
    """Return what a register takes of ``data`` one cycle later if its gate has ``enable``."""
    state, found = 0, []
    for index in range(len(data)):
        if index and enable[index - 1]:
            state = data[index - 1]
        found.append(state)
    return found


def one_register() -> dict:
    return {
        "ports": {
            "clk": port("input", 2),
            "e": port("input", 3),
            "d": port("input", 4),
            "q": port("output", 6),
        },
        "cells": {
            "gate": cell("GATE", CK=2, E=3, GCK=5),
            "f0": cell("DFF", CK=5, D=4, Q=6),
        },
        "netnames": {},
    }


E = [0, 1, 0, 0, 1, 1, 0, 1]
D = [1, 1, 0, 1, 0, 1, 0, 1]


def test_the_energy_of_a_gated_clock_is_the_sum_by_hand():
    mapped = network(one_register())
    counts = drive(mapped, {"q": held(E, D)}, e=E, d=D)
    cycles = len(E) - 1  # the first one is the warm-up
    power = cells.parse(TEXT, name="hand")
    _, split = energy.energies(mapped, power, counts, cycles=cycles, period_ps=PERIOD_PS)
    half = 0.5 * VOLTS**2
    before, after = E[:-1], E[1:]
    opened = sum(before)
    clock = 2 * cycles * half * gated.CLOCK_CAP + 2 * opened * half * CLOCK_CAP
    clock += opened * (RISE[0] + RISE[1] * CLOCK_CAP + FALL[0] + FALL[1] * CLOCK_CAP)
    for now, following in zip(before, after, strict=True):
        clock += 0 if now else gated.CLOSED_RISE + gated.CLOSED_FALL[following]
    states = [(d, q) for e, d, q in zip(E, D, held(E, D), strict=True) if e][:opened]
    for d, q in states:
        clock += CHANGED_FALL if d != q else CLOCK_FALL + CLOCK_RISE
    assert split.parts["clock"] == pytest.approx(clock / cycles)
    changes = sum(x != y for x, y in pairwise(E))
    changes_of_d = sum(x != y for x, y in pairwise(D))
    pins = half * (changes * gated.ENABLE_CAP + changes_of_d * CAP)
    assert split.parts["inputs"] == pytest.approx(pins / cycles)
    assert split.parts["leakage"] == pytest.approx((LEAK_NW + 2.0) * PERIOD_PS * 1e-6)
    # A count in which the gate is always open is noticed.
    wrong = counts._replace(opened=np.array([[0, 0, 0, cycles]]))
    _, other = energy.energies(mapped, power, wrong, cycles=cycles, period_ps=PERIOD_PS)
    assert other.parts["clock"] > 1.02 * split.parts["clock"]


def test_an_inverted_enable_differs_from_golden():
    netlist = one_register()
    drive(network(netlist), {"q": held(E, D)}, e=E, d=D)
    netlist["cells"] |= {
        "not": cell("INV", A=3, Y=7),
        "gate": cell("GATE", CK=2, E=7, GCK=5),
    }
    with pytest.raises(WorkError, match="differs from golden"):
        drive(network(netlist), {"q": held(E, D)}, e=E, d=D)
    drive(network(netlist), {"q": held([1 - bit for bit in E], D)}, e=E, d=D)


def test_the_enable_that_counts_is_that_before_the_edge():
    """A pulse of the enable within a cycle does not open the gate."""
    netlist = one_register()
    netlist["cells"] |= {
        "not": cell("SLOW_INV", A=3, Y=7),
        "pulse": cell("AND2", A=3, B=7, Y=8),
        "gate": cell("GATE", CK=2, E=8, GCK=5),
    }
    mapped = network(netlist)
    counts = drive(mapped, {"q": [0] * len(E)}, e=E, d=D)
    assert counts.events[mapped.graph.nets[8]].sum() > 0
    assert counts.opened.tolist() == [[len(E) - 1, 0, 0, 0]]


def test_registers_behind_closed_gates_are_idle():
    netlist = pipeline()
    mapped = network(netlist)
    names = [instance.name for instance in mapped.instances]

    def found(**values: int) -> set[str]:
        chosen = idle.idle_instances(mapped, {(name, 0): v for name, v in values.items()})
        return {names[i] for i in np.flatnonzero(chosen)}

    assert found() == found(e=1) == set()
    assert found(e=0) == set(names)
    assert found(e=1, d=0) == set(names)  # the gate, too, cannot change a result any more
    # Behind f0, whose gate is closed, nothing changes; with another input of f2 it does.
    netlist["cells"] |= {
        "other": cell("GATE", CK=2, E=3, GCK=12),
        "f0": cell("DFF", CK=12, D=4, Q=6),
        "gate": cell("GATE", CK=2, E="1", GCK=5),
    }
    mapped = network(netlist)
    names = [instance.name for instance in mapped.instances]
    assert found(e=0) == set(names)
    netlist["cells"] |= {"mix": cell("XOR2", A=8, B=4, Y=13), "f2": cell("DFF", CK=5, D=13, Q=9)}
    mapped = network(netlist)
    names = [instance.name for instance in mapped.instances]
    assert found(e=0) == {"other", "f0", "u0", "f1"}


def test_idle_energy_counts_the_clock_of_closed_gates():
    mapped = network(one_register())
    closed = [0] * len(D)
    counts = drive(mapped, {"q": closed}, e=closed, d=D)
    cycles = len(D) - 1
    power = cells.parse(TEXT, name="hand")
    _, split = energy.energies(mapped, power, counts, cycles=cycles, period_ps=0.0)
    every = np.ones(2, bool)
    fj = idle.idle_energy(mapped, split, counts, every, volts=VOLTS, cycles=cycles)
    half = 0.5 * VOLTS**2
    changes = sum(x != y for x, y in pairwise(D))
    pins = 2 * half * gated.CLOCK_CAP + half * CAP * changes / cycles
    assert fj == pytest.approx(pins + gated.CLOSED_RISE + gated.CLOSED_FALL[0])
    assert fj == pytest.approx(split.total_fj)


def test_a_register_that_keeps_its_value_has_a_stage():
    """q takes d if e is set: q = AOI of (d AND e) and (q AND NOT e), inverted."""
    netlist = one_register()
    netlist["cells"] = {
        "n": cell("INV", A=3, Y=7),
        "k": cell("AND2", A=6, B=7, Y=8),
        "m": cell("AOI21", A=4, B=3, C=8, Y=9),
        "i": cell("INV", A=9, Y=10),
        "f0": cell("DFF", CK=2, D=10, Q=6),
    }
    mapped = network(netlist)
    stage = stages(mapped)
    assert stage[mapped.graph.nets[6]] == 1 and stage[mapped.graph.nets[10]] == 0
    drive(mapped, {"q": held(E, D)}, e=E, d=D)


def test_registers_are_dealt_to_gates_that_can_drive_them(tmp_path):
    path = tmp_path / "gated.lib"
    path.write_text(gated.built_in())
    library = cell_library(str(path)).cells
    assert [own.name for own in gates.clock_gates(library)] == ["GATE_X1", "GATE_X2", "GATE_X4"]
    for count in (1, 3, 40):
        netlist = {
            "ports": {
                "clk": port("input", 2),
                "e": port("input", 3),
                "d": port("input", *range(100, 100 + count)),
                "q": port("output", *range(200, 200 + count)),
            },
            "cells": {"gate": cell("GATE_X1", CK=2, E=3, GCK=5)}
            | {f"f{n}": cell("DFF_X1", CK=5, D=100 + n, Q=200 + n) for n in range(count)},
            "netnames": {},
        }
        before = deepcopy(netlist)
        made = gates.share(netlist, library, **CONDITIONS)
        graph = sta.TimingGraph(netlist, library, "BUF_X4", 5.0)
        own = [n for n, (_, kind, _) in enumerate(graph.instances) if kind.gate]
        assert made == len(own) and (made > 1) == (count == 40)
        sizes = [graph.gates.count(gate) for gate in own]
        assert sum(sizes) == count and max(sizes) - min(sizes) <= 1
        for gate in own:
            _, kind, pins = graph.instances[gate]
            limit = kind.max_ff["GCK"]
            assert graph.load[2 * pins["GCK"]] <= limit * (0.5 if count > 1 else 1)
            assert pins["E"] == graph.nets[3] and pins["CK"] == graph.nets[2]
        kept = {
            name: c["connections"]["D"]
            for name, c in netlist["cells"].items()
            if "D" in c["connections"]
        }
        assert kept == {f"f{n}": before["cells"][f"f{n}"]["connections"]["D"] for n in range(count)}


def test_a_library_without_clock_gates_is_refused():
    with pytest.raises(UserError, match="--clock-gates must have a library with clock gates"):
        gates.clock_gates(cell_library().cells)


@pytest.mark.parametrize("seed", range(3))
def test_random_gated_registers_agree_with_a_plain_evaluation(seed: int):
    rng = random.Random(seed)
    many, rows = 12, 60
    netlist = {
        "ports": {
            "clk": port("input", 2),
            "e": port("input", 3, 4),
            "d": port("input", 5, 6),
            "q": port("output", *range(20, 20 + many)),
        },
        "cells": {f"gate{n}": cell("GATE", CK=2, E=3 + n, GCK=7 + n) for n in range(2)},
        "netnames": {},
    }
    sources = [
        (rng.choice([5, 6, *range(20, 20 + many)]), rng.choice([2, 7, 8])) for _ in range(many)
    ]
    for n, (data, clock) in enumerate(sources):
        netlist["cells"][f"f{n}"] = cell("DFF", CK=clock, D=data, Q=20 + n)
    bits = np.random.default_rng(seed).integers(0, 2, (rows, 4)).astype(np.uint8)
    state, previous, expected = [0] * many, [0] * 4, []
    for row in bits.tolist():
        e, d = previous[:2], previous[2:]
        value = {5: d[0], 6: d[1], **{20 + n: bit for n, bit in enumerate(state)}}
        is_open = {2: 1, 7: e[0], 8: e[1]}
        state = [
            value[data] if is_open[clock] else old
            for old, (data, clock) in zip(state, sources, strict=True)
        ]
        expected.append(state)
        previous = row
    drawn = PowerStimulus(
        inputs={"e": bits[:, :2], "d": bits[:, 2:]},
        expected={"q": np.array(expected, np.uint8)},
    )
    mapped = network(netlist)
    plain, fast = run(mapped, drawn, label="x", plain=True), run(mapped, drawn, label="x")
    for one, other in zip(plain, fast, strict=True):
        assert (one == other).all()
    assert plain.opened.sum(1).tolist() == [rows - 1] * 2


#: q takes a + b if e is set, and r takes x if e is not set: 9 registers with each enable.
DESIGN = r"""
module \top
  wire input 1 \clk
  wire input 2 \e
  wire width 8 input 3 \a
  wire width 8 input 4 \b
  wire width 9 input 5 \x
  wire width 9 output 6 \q
  wire width 9 output 7 \r
  wire width 9 \next
  cell $add \plus
    parameter \A_SIGNED 0
    parameter \A_WIDTH 8
    parameter \B_SIGNED 0
    parameter \B_WIDTH 8
    parameter \Y_WIDTH 9
    connect \A \a
    connect \B \b
    connect \Y \next
  end
  cell $dffe \taken
    parameter \CLK_POLARITY 1
    parameter \EN_POLARITY 1
    parameter \WIDTH 9
    connect \CLK \clk
    connect \EN \e
    connect \D \next
    connect \Q \q
  end
  cell $dffe \left
    parameter \CLK_POLARITY 1
    parameter \EN_POLARITY 0
    parameter \WIDTH 9
    connect \CLK \clk
    connect \EN \e
    connect \D \x
    connect \Q \r
  end
end
"""


def sums(cycles: int) -> PowerStimulus:
    """Return random operands of ``DESIGN``, and its outputs."""
    rng = np.random.default_rng(5)
    e, a, b, x = (rng.integers(0, 1 << bits, cycles) for bits in (1, 8, 8, 9))
    q, r = [0], [0]
    for n in range(cycles - 1):
        q.append(int(a[n] + b[n]) if e[n] else q[-1])
        r.append(r[-1] if e[n] else int(x[n]))

    def bits(values, width: int) -> np.ndarray:
        return (np.array(values)[:, None] >> np.arange(width) & 1).astype(np.uint8)

    given = {"e": bits(e, 1), "a": bits(a, 8), "b": bits(b, 8), "x": bits(x, 9)}
    return PowerStimulus(inputs=given, expected={"q": bits(q, 9), "r": bits(r, 9)})


@pytest.mark.parametrize("adders", [False, True])
def test_synthesis_gates_registers_that_share_an_enable(adders: bool, tmp_path):
    path = tmp_path / "gated.lib"
    path.write_text(gated.built_in())
    library = cell_library(str(path))

    def mapped(least: int):
        recipe = SynthesisRecipe(adders=adders, clock_gates=least)
        found = synthesize(DESIGN, liberty=path, targets_ps=(500,), recipe=recipe, cache=False)
        return found[500]

    plain, few, none = mapped(0), mapped(9), mapped(10)
    for design, many in ((plain, 0), (few, 2), (none, 0)):
        kinds = [c["type"] for c in design.netlist["cells"].values()]
        assert sum(kind.startswith("GATE") for kind in kinds) == (many and pytest.approx(4, abs=2))
        assert design.cells == {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        area = sum(library.cells.cells[kind].area_um2 for kind in kinds)
        assert design.area_um2 == pytest.approx(area)
        network = build(design.netlist, library.cells, cells.load(path))
        run(network, sums(80), label="sums")
    registers = [c for c in few.netlist["cells"].values() if c["type"].startswith("DFF")]
    assert len(registers) == 18 and few.area_um2 < plain.area_um2
    gates_of_clk = [c for c in few.netlist["cells"].values() if c["type"].startswith("GATE")]
    (clock,) = few.netlist["ports"]["clk"]["bits"]
    assert {c["connections"]["CK"][0] for c in gates_of_clk} == {clock}
    assert all(c["connections"]["CK"][0] != clock for c in registers)
    # A gate whose enable is inverted in the netlist is noticed.
    wrong = deepcopy(few.netlist)
    enables = sorted({c["connections"]["E"][0] for c in gates_of_clk})
    for instance in wrong["cells"].values():
        if instance["type"].startswith("GATE"):
            (own,) = instance["connections"]["E"]
            instance["connections"]["E"] = [enables[1 - enables.index(own)]]
    with pytest.raises(WorkError, match="differs from golden"):
        run(build(wrong, library.cells, cells.load(path)), sums(80), label="sums")


def test_the_sizer_sees_the_paths_of_gated_registers(tmp_path):
    """The longest path is that of the analysis, and no clock gate becomes smaller."""
    path = tmp_path / "gated.lib"
    path.write_text(gated.built_in())
    library = cell_library(str(path)).cells
    recipe = SynthesisRecipe(clock_gates=4)
    design = synthesize(DESIGN, liberty=path, targets_ps=(500,), recipe=recipe, cache=False)[500]
    netlist = design.netlist
    size = {name for name, c in netlist["cells"].items() if c["type"] == "GATE_X1"}
    for name in size:
        netlist["cells"][name]["type"] = "GATE_X4"
    sized = SizedNetlist(deepcopy(netlist), library, **CONDITIONS)
    right = sta.analyse(netlist, library, **CONDITIONS).delay_ps
    assert right is not None
    assert sized.late()[0] == pytest.approx(right, abs=1e-6)
    # Without the arrival of the gated clock, the path would be another one.
    sized.circuit.clock[:] = 0
    sized.refresh()
    assert abs(sized.late()[0] - right) > 5
    fitted = fit(netlist, library, target_ps=0.9 * right, **CONDITIONS)
    assert fitted.hastened > 0 and fitted.delay < right
    assert {name for name, c in netlist["cells"].items() if c["type"] == "GATE_X4"} >= size
    assert sta.analyse(netlist, library, **CONDITIONS).delay_ps == pytest.approx(
        fitted.delay, abs=0.5
    )
