"""Mutants of RTL in one compiled model: each does what its change of the source would do."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.mutants.rtl.__main__ import equivalent
from tests.mutants.rtl.draw import LEAST, draw, shares
from tests.mutants.rtl.schemata import Mutant, Schemata
from tests.mutants.rtl.sites import HOOK, Site, rewrite
from vitruvian.sim.rtl import compile as compile_model

TOY = b"""
class Toy(wiring.Component):
    def __init__(self):
        super().__init__({"a": In(4), "b": In(4), "o": Out(5), "p": Out(1)})

    def elaborate(self, platform):
        m = Module()
        bits = [1 << n for n in range(4)]
        m.d.comb += self.o.eq(Mux(self.a > self.b, self.a + 2, self.a & ~self.b))
        with m.If(self.a.bit_select(self.b[:2], 1)):
            m.d.comb += [self.p.eq(self.b.any()), self.o[4].eq(1)]
        return m
"""


def _toy(a, b, *, o=None, on=None, p=None, high=16):
    """Return the outputs of the unit; a change replaces one of its expressions."""
    wide = a + 2 if a > b else a & ~b & 15
    wide = wide if o is None else o(a, b)
    on = bool(a >> (b & 3) & 1) if on is None else on(a, b)
    any_b = bool(b) if p is None else p(a, b)
    return (wide & 31 & ~16 | high if on and high is not None else wide & 31, int(on and any_b))


def _sum(a, b, take=lambda a, b: a > b, first=lambda a, b: a + 2, second=lambda a, b: a & ~b & 15):
    return first(a, b) if take(a, b) else second(a, b)


#: What each mutant of the unit does.
CHANGES = {
    "operator: self.a > self.b": {"o": lambda a, b: _sum(a, b, take=lambda a, b: a >= b)},
    "operator: self.a + 2": {"o": lambda a, b: _sum(a, b, first=lambda a, b: a - 2)},
    "constant: self.a + 2": {"o": lambda a, b: _sum(a, b, first=lambda a, b: a + 3)},
    "operator: self.a & ~self.b": {"o": lambda a, b: _sum(a, b, second=lambda a, b: a | ~b & 15)},
    "no inversion: ~self.b": {"o": lambda a, b: _sum(a, b, second=lambda a, b: a & b)},
    "swapped: Mux(self.a > self.b, self.a + 2, self.a & ~self.b)": {
        "o": lambda a, b: _sum(a, b, take=lambda a, b: a <= b)
    },
    "bit: self.o.eq(Mux(self.a > self.b, self.a + 2, self.a & ~self.b))": {
        "o": lambda a, b: _sum(a, b) ^ 4
    },
    "dropped: self.o.eq(Mux(self.a > self.b, self.a + 2, self.a & ~self.b))": {"o": lambda a, b: 0},
    "next: self.a.bit_select(self.b[:2], 1)": {"on": lambda a, b: bool(a >> ((b & 3) + 1 & 3) & 1)},
    "inverted: m.If(self.a.bit_select(self.b[:2], 1))": {"on": lambda a, b: not a >> (b & 3) & 1},
    "always: m.If(self.a.bit_select(self.b[:2], 1))": {"on": lambda a, b: True},
    "never: m.If(self.a.bit_select(self.b[:2], 1))": {"on": lambda a, b: False},
    "all: self.b.any()": {"p": lambda a, b: b == 15},
    "bit: self.p.eq(self.b.any())": {"p": lambda a, b: b == 0},
    "dropped: self.p.eq(self.b.any())": {"p": lambda a, b: False},
    "constant: self.o[4].eq(1)": {"high": 0},
    "dropped: self.o[4].eq(1)": {"high": None},
}


def _unit(schemata):
    tree, sites = rewrite("toy.py", TOY)
    schemata.sites["toy.py"] = sites
    names = {"wiring": wiring, "In": In, "Out": Out, "Module": Module, "Mux": Mux, HOOK: schemata}
    exec(compile(tree, "toy.py", "exec"), names)
    return names["Toy"]


def test_every_mutant_does_what_the_changed_source_does():
    schemata = Schemata()
    unit = _unit(schemata)

    class Chosen(wiring.Component):
        def __init__(self, mutants):
            self.mutants = mutants
            ports = {"a": In(4), "b": In(4), "o": Out(5), "p": Out(1), "mutant": In(12)}
            super().__init__(ports)

        def elaborate(self, platform):
            m, own = Module(), cast(Any, self)
            m.submodules.toy = toy = unit()
            schemata.begin(self.mutants, own.mutant)
            m.d.comb += [toy.a.eq(own.a), toy.b.eq(own.b), own.o.eq(toy.o), own.p.eq(toy.p)]
            return m

    with schemata.statements():
        unit().elaborate(None)
        found = schemata.mutants()
        texts = [f"{mutant.change}: {mutant.site.text}" for mutant in found]
        assert sorted(texts) == sorted(CHANGES)
        model = compile_model(Chosen([(mutant, 2 % mutant.width) for mutant in found]))
    a, b = (np.ravel(x) for x in np.meshgrid(np.arange(16), np.arange(16)))
    seen = set()
    for number, change in enumerate([{}, *(CHANGES[text] for text in texts)]):
        done = model.run(a=a, b=b, mutant=np.full(256, number))
        expected = np.array([_toy(int(x), int(y), **change) for x, y in zip(a, b, strict=True)])
        np.testing.assert_array_equal(np.stack([done["o"], done["p"]], axis=1), expected)
        seen.add(expected.tobytes())
    # Each mutant differs from the original, and from all others.
    assert len(seen) == 1 + len(CHANGES)


def test_a_signed_value_keeps_its_sign():
    """The multiplexer of a mutant must not change the width or the sign of what the source says."""
    schemata = Schemata()
    site = Site("x.py", 1, 0, "binary", "x - 1")
    schemata.sites["x.py"] = [site]
    select, x = Signal(12), Signal(4)
    schemata.begin([(Mutant(site, "operator", 6), 0)], select)
    plain, mutated = x - 1, schemata.binary(("x.py", 0), "-", x, 1)
    assert mutated.shape() == plain.shape() and plain.shape().signed


def test_the_draw_takes_from_each_file_its_share():
    sizes = {"large.py": 300, "small.py": 80, "least.py": 4, "one.py": 1}
    found = shares(sizes, 50)
    assert sum(found.values()) == 50
    assert found["least.py"] == LEAST and found["one.py"] == 1 and found["large.py"] >= 36
    assert shares(sizes, 1000) == sizes
    mutants = [
        Mutant(Site(file, n, 0, "binary", "a + b"), "bit", 7)
        for file, size in sizes.items()
        for n in range(size)
    ]
    drawn = draw(mutants, 50, 4)
    assert drawn == draw(mutants, 50, 4) != draw(mutants, 50, 5)
    assert Counter(m.site.file for m, _ in drawn) == found
    assert len({m for m, _ in drawn}) == 50 and {bit for _, bit in drawn} <= set(range(7))


def test_every_equivalent_mutant_is_recognised(root):
    """Entries whose line has changed since stay until the next campaign, which reports them."""
    folder = root / "tests" / "mutants" / "rtl"
    known = tomllib.loads((folder / "equivalent.toml").read_text())["mutant"]
    assert len(known) >= 10
    for entry in known:
        assert (root / "hdl" / "core" / entry["file"]).exists() and entry["reason"]
        mutant = Mutant(Site(entry["file"], 1, 0, "binary", entry["text"]), entry["change"], 8)
        low, high = entry.get("bits", (0, 7))
        assert equivalent(mutant, low, known) == entry["reason"] == equivalent(mutant, high, known)
        assert equivalent(replace(mutant, change="other"), low, known) is None
        if "bits" in entry:
            assert equivalent(mutant, high + 1, known) is None


@pytest.mark.slow
def test_programs_kill_ten_mutants_of_a_core(root):
    """A small core, because its model is compiled anew when the RTL changes."""
    command = [sys.executable, "-m", "tests.mutants.rtl", "--core", "least", "--count", "10"]
    command += ["--seed", "3", "--programs", "2"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    found = re.search(r"^(\d+) of 10 drawn killed", done.stdout, re.MULTILINE)
    # The draw changes with the RTL, and this core lacks what some mutants need to show.
    assert found and int(found[1]) >= 6, done.stdout + done.stderr
