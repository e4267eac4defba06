"""Every path of a pipeline has as many registers as its latency says, and a lost one is noticed."""

from contextlib import nullcontext
from itertools import combinations

import pytest
from amaranth.hdl import Cat, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.flows.formal.balance import (
    NO_PIPELINE,
    coverage,
    findings,
    mutants,
    pipeline_of,
    sweep,
)
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl import balance
from vitruvian.hdl.balance import BalancePath, NotAPipeline, paths, signals_on_paths
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.multidot import MultiDot

PIPELINED = [name for name in UNITS if name not in NO_PIPELINE]


class Toy(wiring.Component):
    """``early`` and ``late`` meet behind ranks for ``early`` only; ``move`` can enable these."""

    early: Signal
    late: Signal
    move: Signal
    d: Signal
    constant: Signal

    def __init__(self, *, ranks: int = 1, hold: bool = False, loop: bool = False):
        self.ranks, self.hold, self.loop = ranks, hold, loop
        ports = {"early": In(4), "late": In(4), "move": In(1)}
        super().__init__({**ports, "d": Out(4), "constant": Out(1)})

    def elaborate(self, platform):
        m = Module()
        value = self.early
        for rank in range(self.ranks):
            later = Signal(4, name=f"rank{rank}")
            if self.hold:
                with m.If(self.move):
                    m.d.sync += later.eq(value)
            else:
                m.d.sync += later.eq(value)
            value = later
        idle = Signal(4, name="idle")
        m.d.sync += idle.eq(self.late)
        if self.loop:
            first, second = Signal(4, name="first"), Signal(4, name="second")
            m.d.sync += [first.eq(second), second.eq(first + self.late)]
            value = value ^ first
        m.d.comb += [self.d.eq(value + self.late), self.constant.eq(1)]
        return m


def test_a_missing_register_is_seen_and_a_late_input_is_not():
    toy = Toy()
    assert paths(toy) == {"d": BalancePath(0, 1)}
    toy = Toy()
    assert paths(toy, late=[(toy.late, 1)]) == {"d": BalancePath(1, 1)}
    toy = Toy()
    assert paths(toy, late=[(toy.late[:2], 1), (toy.late[2:], 2)]) == {"d": BalancePath(1, 2)}
    assert paths(Toy(ranks=0)) == {"d": BalancePath(0, 0)}


def test_a_register_that_keeps_its_value_counts_as_enabled():
    toy = Toy(ranks=2, hold=True)
    found = paths(toy, late=[(toy.late, 2)], ignored=[toy.move])
    assert found == {"d": BalancePath(2, 2)}


def test_state_must_be_named():
    with pytest.raises(NotAPipeline, match="depends on itself"):
        paths(Toy(loop=True))
    toy = Toy(loop=True)
    found = paths(toy, late=[(toy.late, 1)], state=["first", "second"])
    assert found == {"d": BalancePath(1, 1), "second": BalancePath(1, 1)}
    with pytest.raises(ValueError, match=r"^state must name registers or memories, not third$"):
        paths(Toy(), state=["third"])
    with pytest.raises(ValueError, match=r"^enables must name signals, not go$"):
        paths(Toy(), enables=["go"])


class Restarted(wiring.Component):
    """An expression that is used twice, once beside the reset."""

    def __init__(self):
        super().__init__({"a": In(4), "b": In(4), "d": Out(5), "e": Out(5)})

    def elaborate(self, platform):
        m = Module()
        a, b, d, e = (getattr(self, name) for name in "abde")
        both = (a + b) ^ a
        m.d.sync += d.eq(Cat(both[:4] & b, ResetSignal()))
        m.d.comb += e.eq(both)
        return m


@pytest.mark.parametrize(
    "unit", [Restarted, lambda: Adder(format="fp16", pipeline=2)], ids=["reset", "adder"]
)
def test_shared_expressions_have_the_same_paths(monkeypatch, unit):
    shared = paths(unit())
    monkeypatch.setattr(balance, "sharing", nullcontext)
    assert paths(unit()) == shared
    assert shared["d"] == (BalancePath(1, 1) if unit is Restarted else BalancePath(2, 2))


def test_signals_without_influence_are_on_no_path():
    on_paths = signals_on_paths(Toy())
    assert {"early", "late", "rank0", "d"} <= on_paths
    assert not {"idle", "constant"} & on_paths


@pytest.mark.parametrize("name", PIPELINED)
def test_every_unit_is_balanced_at_every_depth(name: str):
    """Each pair of values of two options is counted; the long test counts all configurations.

    DSP blocks are counted at the ends of the depths only.
    """
    variants = covering_pairs(at_the_ends_with_blocks(sweep(UNITS[name])))
    option = UNITS[name].options.get("pipeline")
    depths = {v.configuration["pipeline"] for v in variants if "pipeline" in v.configuration}
    # Rows of machines with more ranks have the units of dot, intdot and blockdot.
    most = 5 if name == "machine" else 11
    assert option is None or depths >= {d for d in range(most + 1) if accepted(option, d)}
    unbalanced = [(f.variant.arguments, f.unbalanced) for f in findings(variants) if f.unbalanced]
    assert not unbalanced


def at_the_ends_with_blocks(variants: list[Variant]) -> list[Variant]:
    """Leave out DSP blocks between the least and the greatest depth of each configuration."""
    depths: dict[str, set[int]] = {}
    for variant in variants:
        depths.setdefault(blocks(variant), set()).add(variant.configuration.get("pipeline", 0))
    return [
        variant
        for variant in variants
        if not (kind := blocks(variant))
        or variant.configuration.get("pipeline", 0) in (min(depths[kind]), max(depths[kind]))
    ]


def blocks(variant: Variant) -> str:
    """Return the configuration without its depth and its size, or no text if it has no blocks."""
    given = variant.configuration
    if given.get("multiplier") != "dsp":
        return ""
    return str([item for item in given.items() if item[0] not in ("pipeline", "m", "n", "k")])


def covering_pairs(variants: list[Variant]) -> list[Variant]:
    """Leave out variants that add no pair of values of two options and no way to the others."""
    found = [pairs_of_values(variant) for variant in variants]
    left, chosen = set().union(*found), []
    while left:
        chosen.append(max(range(len(found)), key=lambda n: len(found[n] & left)))
        left -= found[chosen[-1]]
    return [variants[n] for n in sorted(chosen)]


def pairs_of_values(variant: Variant) -> set[tuple]:
    """Return each pair of values of two options, and all values but depth and multiplier."""
    values = sorted((name, str(value)) for name, value in variant.configuration.items())
    way = tuple(item for item in values if item[0] not in ("pipeline", "multiplier"))
    return {way, *combinations(values, 2)}


def test_a_variant_with_a_new_pair_is_kept():
    variants = sweep(UNITS["blockdot"])
    chosen = covering_pairs(variants)
    assert len(chosen) < len(variants)
    everything = set().union(*map(pairs_of_values, variants))
    assert set().union(*map(pairs_of_values, chosen)) == everything
    first = variants[0]
    assert covering_pairs([first, first]) == [first]


def test_few_depths_with_blocks_are_left():
    variants = sweep(UNITS["intdot"])
    left = at_the_ends_with_blocks(variants)
    rest = [variant for variant in variants if variant not in left]
    assert rest and all(v.configuration["multiplier"] == "dsp" for v in rest)
    most = max(v.configuration["pipeline"] for v in variants)
    assert {v.configuration["pipeline"] for v in rest} == set(range(1, most))


def accepted(option, depth: int) -> bool:
    try:
        return option.read(str(depth)) is not None
    except ValueError:
        return False


@pytest.mark.long
@pytest.mark.parametrize("name", PIPELINED)
def test_every_listed_configuration_and_every_value_of_an_option_is_balanced(name: str):
    for finding in findings(sweep(UNITS[name], every=True)):
        assert not finding.unbalanced, finding.variant.arguments


@pytest.mark.parametrize("pipeline", range(12))
def test_two_windows_follow_their_precision(pipeline: int):
    """The select of the shorter window passes the ranks in front of the product."""
    specs = {name: PRESETS["h100"].spec(name, k=2) for name in ("fp16", "fp8e4m3")}
    unit = MultiDot(specs=specs, pipeline=pipeline, multiplier="dsp")
    assert paths(unit) == {"d": BalancePath(pipeline, pipeline)}


def test_two_windows_need_truncated_magnitudes():
    specs = {name: PRESETS["ieee"].spec(name, k=2) for name in ("fp16", "bf16")}
    text = (
        r"^specs must have one window unless they truncate magnitudes and round by RZ, not "
        r"windows of 32 and 45 bits$"
    )
    with pytest.raises(ValueError, match=text):
        MultiDot(specs=specs)


#: A unit of each family, with the number of its crossings whose loss must be noticed.
MUTATED = {
    "blockdot": ({"k": 2, "pipeline": 11, "multiplier": "dsp"}, 117),
    "dot": ({"preset": "ieee", "k": 1, "pipeline": 11, "multiplier": "dsp"}, None),
    "intdot": ({"k": 2, "pipeline": 6, "multiplier": "dsp"}, 13),
    "add": ({"format": "fp16", "pipeline": 3}, 18),
}


@pytest.mark.parametrize("name", MUTATED)
def test_the_loss_of_any_crossing_is_noticed(name: str):
    given, count = MUTATED[name]
    unit = UNITS[name]
    outcome = mutants(Variant(unit, unit.default(given)))
    assert not outcome.missed
    assert len(outcome.caught) >= (count or 1)


def test_a_wrong_latency_is_noticed():
    adder = Adder(format="fp16", pipeline=2)
    adder.latency = 3
    assert pipeline_of(adder).unbalanced() == ["d: 2 to 2 registers, not 3"]


#: Values that a unit refuses beside everything else that it accepts.
REFUSED = {
    *(("dot", "output", name) for name in ("tf32", "fp8e4m3", "fp6e2m3", "fp6e3m2")),
    ("vector", "passes", "128"),  # more than half of the lanes of the default
}


def test_every_value_of_an_option_is_covered():
    """A value has a row of ``make sim``, or the count of registers covers it."""
    kinds = {(name, *key): kind for name in UNITS for key, kind in coverage(UNITS[name]).items()}
    assert {key for key, kind in kinds.items() if kind == "refused"} == REFUSED
    assert not [key for key, kind in kinds.items() if not kind]
    assert sum(kind == "row" for kind in kinds.values()) > 150
