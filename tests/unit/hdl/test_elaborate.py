"""Shared sub-components are elaborated once, and all their instances are equal."""

import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.support.toys import Array, Multiply
from vitruvian.flows.asic.hierarchy import Design
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.hdl.elaborate import to_rtlil


def counted(monkeypatch, body):
    """Replace ``Multiply.elaborate`` by ``body`` and return the list of its calls.

    ``body`` takes the original function, the component, the platform and the number of the call.
    """
    calls = []
    original = Multiply.elaborate

    def elaborate(self, platform):
        calls.append(self.width)
        return body(original, self, platform, len(calls))

    monkeypatch.setattr(Multiply, "elaborate", elaborate)
    return calls


class Increments(wiring.Component):
    """A combinational path of many adders in a row."""

    x: Signal
    y: Signal

    def __init__(self):
        super().__init__({"x": In(8), "y": Out(8)})

    def elaborate(self, platform):
        m = Module()
        values = [self.x, *(Signal(8) for _ in range(2000)), self.y]
        for source, target in reversed(list(pairwise(values))):
            m.d.comb += target.eq(source + 1)
        return m


def test_paths_of_more_than_thousand_operators_are_followed():
    limit = sys.getrecursionlimit()
    assert to_rtlil(Increments()).count("cell $add") == 2001
    assert sys.getrecursionlimit() == limit


def test_shared_class_is_elaborated_once(monkeypatch):
    calls = counted(monkeypatch, lambda original, self, platform, n: original(self, platform))
    text = to_rtlil(Array(count=4), shared=(Multiply,))
    assert calls == [6]
    assert to_rtlil(Array(count=4), shared=(Multiply,), check=True) == text
    assert calls == [6, 6, 6]
    design = Design(text)
    body = [name for name in design.modules if "multiply" in name]
    assert len(body) == 1 and design.counts()[body[0]] == 4


def test_an_instance_that_is_not_the_same_is_found(monkeypatch):
    def other(original, self, platform, n):
        m = original(self, platform)
        if n == 2:
            m.d.sync += self.p.eq(0)
        return m

    counted(monkeypatch, other)
    with pytest.raises(ValueError, match="Multiply must depend on its attributes alone"):
        to_rtlil(Array(count=4), shared=(Multiply,), check=True)


@pytest.mark.parametrize("dataflow", ["broadcast", "systolic"])
@pytest.mark.parametrize("preset", ["tiny", "m3xu"])
def test_elements_and_data_assignments_are_all_alike(preset, dataflow):
    config = replace(CONFIGS[preset], m=2, n=2, dataflow=dataflow)
    unit = MatrixUnit(config=config)
    text = to_rtlil(unit, shared=MatrixUnit.shared, check=True)
    assert len([name for name in Design(text).modules if "element" in name]) == 1
