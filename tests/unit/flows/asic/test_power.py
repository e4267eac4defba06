"""Power agrees with sums done by hand, and the simulation with a plain evaluation of netlists."""

import random
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from tests.unit.flows.asic.test_sta import both, inverter, plane, port
from vitruvian.common.errors import UserError, WorkError
from vitruvian.flows.asic import liberty
from vitruvian.flows.asic.cells import CellLibrary, library
from vitruvian.flows.asic.liberty_text import LibertyError
from vitruvian.flows.asic.measure import Settings, measure
from vitruvian.flows.asic.power import cells, energy, events
from vitruvian.flows.asic.power.functions import truth_table
from vitruvian.flows.asic.power.measure import PowerSettings, measure_power, run
from vitruvian.flows.asic.power.network import MappedNetwork, build
from vitruvian.flows.asic.power.stages import stages, switching_by_stage
from vitruvian.flows.asic.power.stimulus import STIMULI, PowerStimulus, stimulus
from vitruvian.flows.units import variants

VOLTS, LEAK_NW, LOAD_FF = 1.2, 3.0, 5.0
CAP, CLOCK_CAP = 1.5, 0.9
#: Internal energy of both edges of a gate's output in fJ: a + b · load
FALL, RISE = (0.25, 0.01), (0.5, 0.02)
#: Internal energy of the clock pin of a register whose value stays: falling and rising edge, fJ
CLOCK_FALL, CLOCK_RISE, CHANGED_FALL = 0.75, 0.375, 2.0
PERIOD_PS = 1000.0


def internal(pin: str = "", when: str = "") -> str:
    related = f'related_pin : "{pin}"; ' if pin else f'when : "{when}"; '
    tables = [
        plane(f"{edge}_power", *values, 0.0) for edge, values in (("fall", FALL), ("rise", RISE))
    ]
    return f"internal_power () {{ {related} {' '.join(tables)} }}"


def clock_energy(when: str, fall: float, rise: float) -> str:
    tables = [plane("fall_power", fall, 0, 0), plane("rise_power", rise, 0, 0)]
    return f'internal_power () {{ when : "{when}"; {" ".join(tables)} }}'


def gate(name: str, function: str, delay: float) -> str:
    """Return a cell whose delay is ``delay`` ps at every load and slew."""
    inputs = sorted(set(function) & set("ABC"))
    pins = "".join(f"pin ({p}) {{ direction : input; capacitance : {CAP}; }} " for p in inputs)
    tables = both((delay, 0.0, 0.0), (1.0, 0.0, 0.0))
    timing = "".join(f'timing () {{ related_pin : "{p}"; {tables} }} {internal(p)}' for p in inputs)
    return (
        f"cell ({name}) {{ area : 1; cell_leakage_power : {LEAK_NW}; {pins}"
        f'pin (Y) {{ direction : output; function : "{function}"; {timing} }} }}'
    )


GATES = {
    "INV": ("!A", 10.0),
    "SLOW_INV": ("A'", 30.0),
    "AND2": ("A B", 20.0),
    "XOR2": ("A ^ B", 25.0),
    "AOI21": ("!((A * B) + C)", 15.0),
    "MAJ": ("(A & B) | (C & (A | B))", 22.0),
}
LIBRARY = f"""
library (hand) {{
  time_unit : "1ps"; capacitive_load_unit (1, ff); voltage_unit : "1V"; nom_voltage : {VOLTS};
  leakage_power_unit : "1nW";
  lu_table_template (t) {{ variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 1"); }}
  power_lut_template (t) {{ variable_1 : input_transition_time;
    variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 1"); }}
  {" ".join(gate(name, *values) for name, values in GATES.items())}
  cell (BUF_X4) {{ area : 1.0; pin (A) {{ direction : input; capacitance : 3.0; }}
    pin (Z) {{ direction : output; function : "A"; timing () {{ related_pin : "A";
      timing_sense : positive_unate; {both((20.0, 0.0, 0.0), (2.0, 0.0, 0.0))} }} }} }}
  cell (DFF) {{ area : 4.0; cell_leakage_power : {LEAK_NW};
    ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    pin (D) {{ direction : input; capacitance : {CAP};
      timing () {{ related_pin : "CK"; timing_type : setup_rising;
        {plane("rise_constraint", 1.0, 0, 0)} {plane("fall_constraint", 1.0, 0, 0)} }} }}
    pin (CK) {{ direction : input; clock : true; capacitance : {CLOCK_CAP};
      {clock_energy("D & Q & !QN", CLOCK_FALL, CLOCK_RISE)}
      {clock_energy("!D & !Q & QN", CLOCK_FALL, CLOCK_RISE)}
      {clock_energy("D ^ Q", CHANGED_FALL, 0.0)} }}
    pin (Q) {{ direction : output; function : "IQ"; timing () {{ related_pin : "CK";
      timing_type : rising_edge; {both((12.0, 0.0, 0.0), (1.0, 0.0, 0.0))} }} {internal("CK")} }}
    pin (QN) {{ direction : output; function : "IQN"; timing () {{ related_pin : "CK";
      timing_type : rising_edge; {both((14.0, 0.0, 0.0), (1.0, 0.0, 0.0))} }} }} }}
}}
"""


@pytest.fixture(scope="module")
def power() -> cells.PowerLibrary:
    return cells.parse(LIBRARY, name="hand")


def network(netlist: dict, text: str = LIBRARY) -> MappedNetwork:
    parsed = liberty.parse(text, name="hand")
    return build(netlist, parsed, cells.parse(text, name="hand"), load_ff=LOAD_FF)


def drive(
    mapped: MappedNetwork, expected: dict[str, list[int]], latency: int = 0, **given: list[int]
):
    """Simulate one row of bits for each port, and return the counts without a warm-up."""
    inputs = {name: np.array(bits, np.uint8)[:, None] for name, bits in given.items()}
    outputs = {name: np.array(bits, np.uint8)[:, None] for name, bits in expected.items()}
    drawn = PowerStimulus(inputs=inputs, expected=outputs, latency=latency)
    return run(mapped, drawn, label="hand", plain=True)


def cell(kind: str, **pins: int | str) -> dict:
    return {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()}}


PYTHON = {"!((A * B) + C)": "1 - (A & B | C)", "!A": "1 - A", "A'": "1 - A", "A B": "A & B"}


@pytest.mark.parametrize(
    ("function", "python"),
    [
        *PYTHON.items(),
        ("A ^ B & C", "(A ^ B) & C"),
        ("A | B C'", "A | (B & (1 - C))"),
        ("!A B + !(C + 0)", "(1 - A) & B | (1 - C)"),
        ("(A ^ !B)' * 1", "1 - (A ^ (1 - B))"),
    ],
)
def test_functions_are_those_of_python(function: str, python: str):
    word = truth_table(function, "ABC").word
    for row, (c, b, a) in enumerate(product((0, 1), repeat=3)):
        assert word >> row & 1 == eval(python, {"A": a, "B": b, "C": c})


@pytest.mark.parametrize("function", ["", "A &", "(A", "A)", "D", "A $ B", "!"])
def test_what_is_no_function_is_refused(function: str):
    with pytest.raises(LibertyError, match="must be a Boolean expression"):
        truth_table(function, "ABC")
    with pytest.raises(LibertyError, match="at most 6 inputs"):
        truth_table("A", "ABCDEFG")


CHAIN = {
    "ports": {"a": port("input", 2), "y": port("output", 5)},
    "cells": {"u0": inverter(2, 3), "u1": inverter(3, 4), "u2": inverter(4, 5)},
    "netnames": {},
}


def chain_energy(rises: int, falls: int) -> dict[str, float]:
    """Return the energy in fJ of edges of the input of ``CHAIN``, by hand."""
    half = 0.5 * VOLTS**2
    edges = rises + falls
    inside = 0.0
    for stage, load in enumerate((CAP, CAP, LOAD_FF)):
        up, down = (falls, rises) if stage % 2 == 0 else (rises, falls)
        inside += edges * half * load
        inside += up * (RISE[0] + RISE[1] * load) + down * (FALL[0] + FALL[1] * load)
    return {"inputs": edges * half * CAP, "combinational": inside}


def test_the_energy_of_a_chain_of_inverters_is_the_sum_by_hand(power: cells.PowerLibrary):
    mapped = network(CHAIN)
    a = [0, 1, 1, 0, 1]  # the first cycle is the warm-up
    counts = drive(mapped, {"y": [1 - bit for bit in a]}, a=a)
    both_splits = energy.energies(mapped, power, counts, cycles=4, period_ps=PERIOD_PS)
    for split in both_splits:  # a chain has no glitches
        for part, fj in chain_energy(rises=2, falls=1).items():
            assert split.parts[part] == pytest.approx(fj / 4)
        assert split.parts["leakage"] == pytest.approx(3 * LEAK_NW * PERIOD_PS * 1e-6)
        assert split.parts["clock"] == split.parts["registers"] == 0
    assert counts.last[0] == 30_000  # fs: three delays of 10 ps


def test_a_wrong_energy_is_noticed(power: cells.PowerLibrary, monkeypatch: pytest.MonkeyPatch):
    """The check by hand fails if an edge has the energy of the other one."""
    mapped = network(CHAIN)
    counts = drive(mapped, {"y": [1, 0, 1, 0]}, a=[0, 1, 0, 1])
    wrong = counts._replace(events=counts.events[:, ::-1], arcs=counts.arcs[:, ::-1])
    _, split = energy.energies(mapped, power, wrong, cycles=3, period_ps=PERIOD_PS)
    assert split.parts["combinational"] != pytest.approx(
        chain_energy(rises=2, falls=1)["combinational"] / 3
    )


def hazard(kind: str) -> dict:
    """Return y = a & !a, whose inverter has the delay of ``kind``."""
    return {
        "ports": {"a": port("input", 2), "y": port("output", 4)},
        "cells": {"u0": cell(kind, A=2, Y=3), "u1": cell("AND2", A=2, B=3, Y=4)},
        "netnames": {},
    }


def edges_of_y(mapped: MappedNetwork, counts: events.EventCounts) -> list[int]:
    return counts.events[mapped.network.outputs[0]].tolist()


def test_a_hazard_gives_a_pulse_at_each_rise():
    mapped = network(hazard("SLOW_INV"))  # 30 ps of overlap pass a gate of 20 ps
    a = [0, 1, 0, 1, 1, 0, 1]
    counts = drive(mapped, {"y": [0] * 7}, a=a)
    assert edges_of_y(mapped, counts) == [3, 3]
    assert counts.settled[mapped.network.outputs[0]].tolist() == [0, 0]


def test_a_pulse_shorter_than_the_delay_is_swallowed():
    mapped = network(hazard("INV"))  # 10 ps do not pass
    counts = drive(mapped, {"y": [0] * 5}, a=[0, 1, 0, 1, 0])
    assert edges_of_y(mapped, counts) == [0, 0]


def test_without_the_cancelling_of_pulses_the_hazard_test_fails(monkeypatch: pytest.MonkeyPatch):
    """A mutant of the engine with transport delays lets the short pulse pass."""
    import inspect

    text = inspect.getsource(events.simulate)
    mutant = text.replace("                    due[gate] = -1\n", "                    pass\n")
    assert mutant != text
    scope = dict(vars(events))
    exec(mutant, scope)
    monkeypatch.setattr("vitruvian.flows.asic.power.measure.simulate", scope["simulate"])
    mapped = network(hazard("INV"))
    with pytest.raises(WorkError, match="differs from golden"):
        drive(mapped, {"y": [0] * 5}, a=[0, 1, 0, 1, 0])


def test_a_register_costs_its_clock_by_its_state(power: cells.PowerLibrary):
    netlist = {
        "ports": {"clk": port("input", 2), "d": port("input", 3), "q": port("output", 4)},
        "cells": {"f0": cell("DFF", CK=2, D=3, Q=4)},
        "netnames": {},
    }
    mapped = network(netlist)
    d = [0, 0, 1, 1, 0, 1, 1]
    counts = drive(mapped, {"q": d}, latency=1, d=d)
    # The warm-up is two cycles. At the edges of the other five, (d, q) of the cycle before is
    # (0, 0), (1, 0), (1, 1), (0, 1), (1, 0).
    _, split = energy.energies(mapped, power, counts, cycles=5, period_ps=PERIOD_PS)
    half = 0.5 * VOLTS**2
    clock = 5 * 2 * half * CLOCK_CAP + 2 * (CLOCK_FALL + CLOCK_RISE) + 3 * CHANGED_FALL
    assert split.parts["clock"] == pytest.approx(clock / 5)
    q = 2 * (RISE[0] + RISE[1] * LOAD_FF) + (FALL[0] + FALL[1] * LOAD_FF) + 3 * half * LOAD_FF
    assert split.parts["registers"] == pytest.approx(q / 5)
    assert split.parts["inputs"] == pytest.approx(3 * half * CAP / 5)


def random_netlist(rng: random.Random, gates: int, inputs: int, registers: int) -> dict:
    """Return gates on inputs, registers, constants and earlier gates; all nets are outputs."""
    nets = list(range(2, 2 + inputs + registers))
    own: dict[str, dict] = {}
    for number in range(gates):
        kind = rng.choice(list(GATES))
        pins = sorted(set(GATES[kind][0]) & set("ABC"))
        chosen = {pin: rng.choice([*nets, *nets[-8:], "0", "1"]) for pin in pins}
        own[f"u{number}"] = cell(kind, **chosen, Y=len(nets) + 2)
        nets.append(len(nets) + 2)
    clock = len(nets) + 2
    for number in range(registers):
        outputs = {rng.choice(["Q", "QN"]): 2 + inputs + number}
        own[f"f{number}"] = cell("DFF", CK=clock, D=rng.choice(nets), **outputs)
    return {
        "ports": {
            "clk": port("input", clock),
            "a": port("input", *range(2, 2 + inputs)),
            "y": port("output", *nets[inputs:]),
        },
        "cells": own,
        "netnames": {},
    }


def evaluated(netlist: dict, rows: np.ndarray) -> list[dict[int | str, int]]:
    """Return the settled value of every net in every cycle, by Python expressions in order."""
    inputs = netlist["ports"]["a"]["bits"]
    flops = [c for c in netlist["cells"].values() if c["type"] == "DFF"]
    state, found = [0] * len(flops), []
    values: dict[int | str, int] = {}
    for row in rows:
        if values:
            state = [values[c["connections"]["D"][0]] for c in flops]
        else:  # the first edge takes what settles from all zeros
            state = [
                settle(netlist, dict.fromkeys(inputs, 0), [0] * len(flops))[
                    c["connections"]["D"][0]
                ]
                for c in flops
            ]
        values = settle(netlist, dict(zip(inputs, map(int, row), strict=True)), state)
        found.append(values)
    return found


def settle(netlist: dict, given: dict[int | str, int], state: list[int]) -> dict[int | str, int]:
    values: dict[int | str, int] = {**given, "0": 0, "1": 1}
    flops = [c["connections"] for c in netlist["cells"].values() if c["type"] == "DFF"]
    for pins, bit in zip(flops, state, strict=True):
        for name, value in (("Q", bit), ("QN", 1 - bit)):
            if name in pins:
                values[pins[name][0]] = value
    for instance in netlist["cells"].values():
        if instance["type"] != "DFF":
            pins = {pin: bits[0] for pin, bits in instance["connections"].items()}
            function = GATES[instance["type"]][0]
            scope = {pin: values[net] for pin, net in pins.items() if pin != "Y"}
            values[pins["Y"]] = eval(PYTHON.get(function, function), scope)
    return values


@pytest.mark.parametrize("seed", range(6))
def test_settled_values_are_those_of_a_plain_evaluation(seed: int):
    rng = random.Random(seed)
    netlist = random_netlist(rng, gates=120, inputs=6, registers=8)
    mapped = network(netlist)
    rows = np.random.default_rng(seed).integers(0, 2, (40, 6)).astype(np.uint8)
    values = evaluated(netlist, rows)
    bits = netlist["ports"]["y"]["bits"]
    expected = np.array([[v[bit] for bit in bits] for v in values], np.uint8)
    drawn = PowerStimulus(inputs={"a": rows}, expected={"y": expected})
    plain, fast = run(mapped, drawn, label="x", plain=True), run(mapped, drawn, label="x")
    for one, other in zip(plain, fast, strict=True):
        assert (one == other).all()
    for bit in bits:
        pairs = [(v[bit], w[bit]) for v, w in pairwise(values)]
        counted = [pairs.count((1, 0)), pairs.count((0, 1))]
        assert plain.settled[mapped.graph.nets[bit]].tolist() == counted
    # Every pulse has two edges.
    assert not ((plain.events - plain.settled).sum(1) % 2).any()
    assert (plain.events >= plain.settled).all()
    # An inverted gate is noticed.
    gate_net = int(mapped.network.target[0])
    mapped.network.truth[gate_net] ^= np.uint64((1 << 64) - 1)
    with pytest.raises(WorkError, match="differs from golden"):
        run(mapped, drawn, label="x", plain=True)


def test_the_stages_of_a_pipeline_share_the_switching():
    """A rank of registers separates the input and its inverter from the output."""
    netlist = {
        "ports": {"clk": port("input", 2), "d": port("input", 3), "q": port("output", 5)},
        "cells": {"u0": cell("INV", A=3, Y=4), "f0": cell("DFF", CK=2, D=4, Q=5)},
        "netnames": {},
    }
    mapped = network(netlist)
    counts = drive(mapped, {"q": [1, 0, 1, 0, 1]}, latency=0, d=[1, 0, 1, 0, 1])
    found = switching_by_stage(mapped, counts, volts=VOLTS, cycles=4)
    half = 0.5 * VOLTS**2
    # In each of the four cycles all three nets change once.
    expected = [half * (CAP + CAP), half * LOAD_FF]
    for name in ("zero_delay_fj", "timed_fj"):
        assert [stage[name] for stage in found] == pytest.approx(expected)
    netlist["cells"] |= {
        "u0": cell("INV", A=6, Y=4),
        "f1": cell("DFF", CK=2, D=5, Q=6),
    }
    with pytest.raises(ValueError, match="pipeline without feedback"):
        stages(network(netlist))


@pytest.mark.parametrize("seed", range(3))
def test_the_energy_of_random_netlists_is_an_independent_sum(power: cells.PowerLibrary, seed: int):
    """Loads and energies are taken from the numbers of this file, not from the library."""
    rng = random.Random(seed)
    netlist = random_netlist(rng, gates=80, inputs=5, registers=0)
    netlist["ports"].pop("clk")
    mapped = network(netlist)
    rows = np.random.default_rng(seed).integers(0, 2, (50, 5)).astype(np.uint8)
    bits = netlist["ports"]["y"]["bits"]
    expected = np.array([[v[b] for b in bits] for v in evaluated(netlist, rows)], np.uint8)
    counts = run(mapped, PowerStimulus(inputs={"a": rows}, expected={"y": expected}), label="x")
    load = dict.fromkeys(mapped.graph.nets, 0.0) | dict.fromkeys(bits, LOAD_FF)
    for instance in netlist["cells"].values():
        for pin, (net,) in instance["connections"].items():
            if pin != "Y" and isinstance(net, int):
                load[net] += CAP
    total = 0.0
    for net, ff in load.items():
        fall, rise = (int(n) for n in counts.events[mapped.graph.nets[net]])
        total += 0.5 * VOLTS**2 * ff * (fall + rise)
        if net in bits:
            total += fall * (FALL[0] + FALL[1] * ff) + rise * (RISE[0] + RISE[1] * ff)
    _, split = energy.energies(mapped, power, counts, cycles=49, period_ps=0.0)
    assert split.total_fj == pytest.approx(total / 49)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('next_state : "D";', 'next_state : "D"; clear : "!D";', "plain D flip-flops"),
        ('clocked_on : "CK"', 'clocked_on : "!CK"', "clock at its rising edge"),
        ('function : "!A"', 'function : ""', "must have a function"),
        (f"nom_voltage : {VOLTS};", "", "must state nom_voltage"),
        ('voltage_unit : "1V"', 'voltage_unit : "1kV"', "voltage_unit must be"),
    ],
)
def test_libraries_that_cannot_be_simulated_are_refused(old: str, new: str, words: str):
    netlist = {
        "ports": {"clk": port("input", 2), "d": port("input", 3), "q": port("output", 5)},
        "cells": {"f0": cell("DFF", CK=2, D=3, Q=4), "u0": cell("INV", A=4, Y=5)},
        "netnames": {},
    }
    assert old in LIBRARY
    with pytest.raises(LibertyError, match=words):
        network(netlist, LIBRARY.replace(old, new))


@pytest.fixture(scope="module")
def built_in() -> CellLibrary:
    return library()


SMALL = {"preset": ["ieee"], "input": ["fp8e4m3"], "k": [1], "pipeline": [1]}


def test_power_of_a_unit_is_that_of_its_parts(built_in: CellLibrary):
    settings = PowerSettings(library=built_in, cycles=60)
    rows = measure_power([*variants("dot", SMALL), *variants("intdot", {"k": [2]})], settings)
    assert [row.stimulus for row in rows] == [*STIMULI] * 2
    for row in rows:
        assert 0 < row.zero_delay.total_fj < row.timed.total_fj
        assert row.settled_ps <= row.path_ps <= row.period_ps
        assert row.timed.parts["leakage"] == 0  # the built-in cells have none
        json = row.as_json()
        assert json["timed_fj"]["total"] == pytest.approx(sum(row.timed.parts.values()), abs=0.01)
        switching = sum(stage["timed_fj"] for stage in json["switching_by_stage"])
        assert len(json["switching_by_stage"]) == row.variant.configuration["pipeline"] + 1
        # The clock is the only net without events, and these cells have no internal energy.
        rest = json["timed_fj"]["switching"] - switching
        assert rest == pytest.approx(row.timed.parts["clock"], abs=0.1)
        assert json["mw"] == pytest.approx(row.timed.total_fj / row.period_ps, abs=1e-4)
    assert rows == measure_power(
        [*variants("dot", SMALL), *variants("intdot", {"k": [2]})], settings
    )


def test_a_wrong_cell_in_a_real_netlist_is_noticed(built_in: CellLibrary):
    (variant,) = variants("dot", SMALL)
    drawn = stimulus(variant, "uniform", cycles=300, seed=1)
    area = Settings(library=built_in, targets_ps=(500,), cut="whole")
    netlist = measure([variant], area)[0].pieces[0].mapped[500].netlist
    power = cells.load(built_in.path)
    run(build(netlist, built_in.cells, power), drawn, label="right")
    kinds = {name: c["type"] for name, c in netlist["cells"].items()}
    name = next(name for name, kind in kinds.items() if kind == "NAND2_X1")
    wrong = {**netlist["cells"][name], "type": "NOR2_X1"}
    changed = {**netlist, "cells": {**netlist["cells"], name: wrong}}
    with pytest.raises(WorkError, match=r"wrong: d\[\d+\] of the netlist differs from golden"):
        run(build(changed, built_in.cells, power), drawn, label="wrong")


def test_a_period_shorter_than_the_longest_path_is_refused(built_in: CellLibrary):
    settings = PowerSettings(library=built_in, cycles=2)
    (row,) = measure_power(variants("dot", SMALL), replace(settings, stimuli=["uniform"]))
    for period in (row.path_ps + 1, row.path_ps - 1):
        given = replace(settings, period_ps=period)
        if period > row.path_ps:
            measure_power(variants("dot", SMALL), given)
        else:
            with pytest.raises(UserError, match=r"period must be at least the longest path"):
                measure_power(variants("dot", SMALL), given)


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [("zzz", "dot", "stimulus must be one of uniform"), ("relu", "m3xu", "power must be asked")],
)
def test_wrong_operands_are_refused(name: str, unit: str, words: str):
    with pytest.raises((UserError, ValueError), match=words):
        stimulus(variants(unit, {})[0], name, cycles=3, seed=1)


def test_leakage_and_internal_energy_have_the_units_of_the_file(tmp_path: Path):
    """Another unit of voltage or capacitance scales energies as the format says."""
    text = LIBRARY.replace("capacitive_load_unit (1, ff)", "capacitive_load_unit (1, pf)")
    (small,), (large,) = (
        [e.table(0.0, 0.0) for e in cells.parse(t, name="x").cells["INV"].energies if e.edge]
        for t in (LIBRARY, text)
    )
    assert large == pytest.approx(1000 * small) and small == pytest.approx(RISE[0])
    watts = cells.parse(LIBRARY.replace('unit : "1nW"', 'unit : "1uW"'), name="x")
    assert watts.cells["INV"].leakage_nw == pytest.approx(1000 * LEAK_NW)
