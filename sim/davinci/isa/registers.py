"""The registers through which one instruction of a queue passes its result to a later one.

Registers that the scalar unit writes are no dependence within a queue: an instruction gets their
values when it is issued, and the scalar unit has executed everything before it by then. The vector
masks, atomic modes, padding values and quantisation parameters are such registers.
"""

from collections.abc import Mapping
from types import MappingProxyType

from vitruvian.sim.davinci.isa.instruction import Instruction

#: The register of comparisons, with a bit for each lane.
COMPARED = "CMPMASK"

#: The operations that may access a register, and that register.
REGISTER_OPERATIONS: Mapping[str, str] = MappingProxyType({"vcmp": COMPARED, "vsel": COMPARED})


def register_written(instruction: Instruction) -> str | None:
    """Return the register that an instruction writes, or None."""
    return COMPARED if instruction.op == "vcmp" else None


def register_read(instruction: Instruction) -> str | None:
    """Return the register that an instruction reads, or None.

    A selection reads the register unless it has bits in memory.
    """
    selects = instruction.op == "vsel" and "bits" not in instruction.operands
    return COMPARED if selects else None
