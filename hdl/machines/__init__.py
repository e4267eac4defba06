"""The hardware of machines: which unit realises the rule of an instruction."""

from vitruvian.hdl.machines.units import MachineStep, NoUnit, Realisation, realise

__all__ = ["NoUnit", "Realisation", "MachineStep", "realise"]
