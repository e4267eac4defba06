"""The hardware of machines: which unit realises the rule of an instruction."""

from vitruvian.hdl.machines.units import NoUnit, Realisation, Step, realise

__all__ = ["NoUnit", "Realisation", "Step", "realise"]
