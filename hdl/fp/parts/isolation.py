"""Operands that stay zero while nothing reads them, in a module of its own."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class OperandIsolation(wiring.Component):
    """Pass a value, or zero.

    Synthesis keeps a module with this name apart from the logic behind it (``flows.asic.synth``).
    Otherwise it would merge the AND gates with that logic, several gates would read each bit, and
    their input pins would take energy while the value is not passed.

    Parameters
    ----------
    bits : int
        Width of the value.

    Members
    -------
    value : In(bits)
    used : In(1)
        Whether the value is passed.
    held : Out(bits)
        The value or zero.
    """

    value: Signal
    used: Signal
    held: Signal

    def __init__(self, bits: int):
        super().__init__({"value": In(bits), "used": In(1), "held": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.held.eq(self.value & self.used.replicate(len(self.value)))
        return m
