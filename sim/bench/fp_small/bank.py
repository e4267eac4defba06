"""A component that consists of many small units, so that one compiled model serves for all."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class SmallUnitBank(wiring.Component):
    """Units with the same source format and the same latency, side by side.

    Parameters
    ----------
    units : sequence of wiring.Component
        Each unit has an input ``a``, and may have an input ``b`` and a one-bit input of any name.

    Members
    -------
    a, b : In(source bits)
        Operands; ``b`` only if a unit has it.
    control : In(1)
        Value of the one-bit input of every unit that has one.
    d0, d1, … : Out
        All outputs of each unit, the first one in the lowest bits.

    Raises
    ------
    ValueError
        If the latencies of the units differ.
    """

    def __init__(self, units: Sequence[Any]):
        self.units = list(units)
        latencies = {unit.latency for unit in units}
        if len(latencies) != 1:
            raise ValueError(f"units must have one latency, not {sorted(latencies)}")
        self.latency = latencies.pop()
        bits = len(self.units[0].a)
        two = any(hasattr(unit, "b") for unit in units)
        super().__init__(
            {
                "a": In(bits),
                **({"b": In(bits), "control": In(1)} if two else {}),
                **{f"d{n}": Out(len(self._outputs(unit))) for n, unit in enumerate(units)},
            }
        )

    @staticmethod
    def _outputs(unit: Any) -> Value:
        members = unit.signature.members
        return Cat(*[getattr(unit, name) for name in members if members[name].flow is Out])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, unit in enumerate(self.units):
            m.submodules[f"u{n}"] = unit
            m.d.comb += getattr(self, f"d{n}").eq(self._outputs(unit))
            for name, member in unit.signature.members.items():
                if member.flow is In:
                    source = name if name in ("a", "b") else "control"
                    m.d.comb += getattr(unit, name).eq(getattr(self, source))
        return m
