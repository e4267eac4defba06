"""The gates that a unit does not need while some inputs keep their values, and their energy."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.flows.asic.test_power import CAP, LIBRARY, VOLTS, cell, network
from tests.unit.flows.asic.test_sta import port
from vitruvian.common.errors import UserError
from vitruvian.flows.asic.cells import library
from vitruvian.flows.asic.power import cells, idle
from vitruvian.flows.asic.power.energy import energies
from vitruvian.flows.asic.power.measure import PowerSettings, measure_power, run
from vitruvian.flows.asic.power.network import MappedNetwork
from vitruvian.flows.asic.power.report import table
from vitruvian.flows.asic.power.stimulus import PowerStimulus
from vitruvian.flows.units import variants

CYCLES = 40


@pytest.fixture
def mapped() -> MappedNetwork:
    """Return y = mode ? a AND b : q, where q is a AND c behind a register with an inverter.

    The AOI makes !(p · mode + other) of p = a AND b and other = q AND not mode.
    """
    netlist = {
        "ports": {
            "clk": port("input", 2),
            "mode": port("input", 3),
            "a": port("input", 4),
            "b": port("input", 5),
            "c": port("input", 6),
            "y": port("output", 20),
        },
        "cells": {
            "u_p": cell("AND2", A=4, B=5, Y=10),
            "u_q": cell("AND2", A=4, B=6, Y=11),
            "f_q": cell("DFF", CK=2, D=11, Q=12),
            "u_i": cell("INV", A=12, Y=13),
            "u_not": cell("INV", A=3, Y=14),
            "u_other": cell("AND2", A=13, B=14, Y=15),
            "u_y": cell("AOI21", A=10, B=3, C=15, Y=20),
        },
        "netnames": {},
    }
    return network(netlist)


def names(mapped: MappedNetwork, chosen: np.ndarray) -> set[str]:
    return {mapped.instances[i].name for i in np.flatnonzero(chosen)}


def test_the_gates_of_the_other_mode_are_idle(mapped: MappedNetwork):
    one = idle.idle_instances(mapped, {("mode", 0): 1})
    # The output of u_other is 0, and so is that of u_not: neither can change y.
    assert names(mapped, one) == {"u_q", "f_q", "u_i", "u_not", "u_other"}
    assert names(mapped, idle.idle_instances(mapped, {("mode", 0): 0})) == {"u_p", "u_not"}
    assert not idle.idle_instances(mapped, {}).any()


def test_a_constant_passes_a_register(mapped: MappedNetwork):
    held = {("mode", 0): 0, ("c", 0): 0}
    assert names(mapped, idle.idle_instances(mapped, held)) == {i.name for i in mapped.instances}


def test_idle_energy_is_that_of_the_gates_and_of_their_pins(mapped: MappedNetwork):
    power = cells.parse(LIBRARY, name="hand")
    rng = np.random.default_rng(3)
    bits = {name: rng.integers(0, 2, (CYCLES, 1)).astype(np.uint8) for name in "abc"}
    bits["mode"] = np.ones((CYCLES, 1), np.uint8)
    expected = {"y": 1 - (bits["a"] & bits["b"])}
    counts = run(mapped, PowerStimulus(inputs=bits, expected=expected), label="x", plain=True)
    counted = CYCLES - 1  # the first cycle is the warm-up
    _, split = energies(mapped, power, counts, cycles=counted, period_ps=100.0)
    chosen = idle.idle_instances(mapped, {("mode", 0): 1})
    options = {"volts": power.volts, "cycles": counted}
    fj = idle.idle_energy(mapped, split, counts, chosen, **options)
    own = sum(split.owned[i] for i in np.flatnonzero(chosen))
    # Pins of u_q at a and c, and of f_q at the clock; the mode has no edges.
    edges = sum(int((np.diff(bits[name][:, 0].astype(int)) != 0).sum()) for name in "ac")
    half = 0.5 * VOLTS**2
    assert fj == pytest.approx(own + half * (edges * CAP / counted + 2 * 0.9))
    assert 0 < own < fj < split.total_fj
    everything = idle.idle_energy(mapped, split, counts, np.ones(len(chosen), bool), **options)
    inputs = split.parts["inputs"] + 2 * half * 0.9
    assert everything == pytest.approx(split.owned[:-1].sum() + inputs)


def test_a_search_that_takes_constants_for_unknown_finds_nothing(
    mapped: MappedNetwork, monkeypatch: pytest.MonkeyPatch
):
    """A mutant without the propagation of constants misses idle gates."""
    monkeypatch.setattr(idle._NeededNets, "_settle", lambda self: None)
    found = names(mapped, idle.idle_instances(mapped, {("mode", 0): 1}))
    assert found != {"u_q", "f_q", "u_i", "u_not", "u_other"}


SMALL = {"precisions": ["fp8e4m3-int8"], "k": [1], "preset": ["ieee"], "pipeline": [1]}


def test_isolation_lowers_the_share_of_the_idle_precision():
    settings = PowerSettings(library=library(), cycles=60, stimuli=("uniform",))
    given = {**SMALL, "mode": ["fp8e4m3", "int8"], "isolated": [False, True]}
    rows = measure_power(variants("element", given), settings)
    share = {
        (row.variant.configuration["mode"], row.variant.configuration["isolated"]): row.idle_share
        for row in rows
    }
    for mode in ("fp8e4m3", "int8"):
        plain, isolated = share[mode, False], share[mode, True]
        assert plain is not None and isolated is not None and 0 < isolated < 0.5 * plain < 0.5
    header, lines = table(rows)
    printed = rows[0].as_json()["idle_share"]
    assert header[-1] == "idle" and lines[0][-1] == f"{100 * printed:.1f} %"
    assert printed == pytest.approx(share["fp8e4m3", False], abs=1e-4)
    assert "idle_fj" not in rows[0].as_json()
    none = [replace(row, idle_fj=None) for row in rows]
    assert "idle" not in table(none)[0] and "idle_share" not in none[0].as_json()


def test_macs_are_those_of_the_mode():
    variants_of = variants("element", {"precisions": ["fp16-tf32-int8"], "mode": ["int8", "tf32"]})
    assert [variant.macs for variant in variants_of] == [16, 4]
    assert variants("element", {})[0].macs == 8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mode": ["bf16"]}, "precision must be one of fp16, int8, not 'bf16'"),
        ({"precisions": ["fp32"]}, "precisions must be of fp16, .*, int8, not 'fp32'"),
        ({"precisions": ["fp16"], "isolated": [True]}, "isolated must be False without int8"),
    ],
)
def test_elements_that_are_not_possible_are_refused(given: dict, words: str):
    with pytest.raises(UserError, match=words):
        variants("element", given)[0].check()
