"""Where and why a core has stopped, in words."""

from collections.abc import Mapping
from dataclasses import dataclass

#: What the names of ``hdl.core.faults.Fault`` say to a user.
_FAULTS = {
    "UNIT": "a word is for a unit that it lacks",
    "FLAG": "a flag was set that was set already",
    "VALUE": "a scalar load found another element than the program expects",
    "CODE": "the unit has no such instruction",
    "ALIGN": "the first byte of an operand is not at a multiple that the operation needs",
    "BOUNDS": "an operand reaches beyond its buffer",
    "BUS": "global memory has answered with an error",
}


@dataclass(frozen=True)
class Stop:
    """What the registers of a stopped core say.

    Attributes
    ----------
    fault : str
        Name of a ``hdl.core.faults.Fault``.
    unit : str
        The unit that has the fault.
    op : str
        Its operation; empty if the unit was fetching, or for an unknown opcode.
    pc : int
        The number of the first word of the instruction in its program.
    waits : dict of str to (str, int, int)
        For each unit that waits for a flag: the unit that sets it, its number, and the number of
        the waiting word.
    processor : bool
        True if S is a RISC-V.
    """

    fault: str
    unit: str
    op: str
    pc: int
    waits: dict[str, tuple[str, int, int]]
    processor: bool = False

    def __str__(self) -> str:
        what = f"{self.unit}: {self.op or 'a word'} at word {self.pc}"
        if self.fault == "DEADLOCK":
            each = [
                f"{unit} waits at word {pc} for flag {register} of {source}"
                for unit, (source, register, pc) in self.waits.items()
            ]
            return f"the core has stopped in a deadlock: {', '.join(each)}"
        if self.fault == "VALUE" and self.processor:
            return "the core has stopped: S found an unknown instruction or an address of no memory"
        return f"the core has stopped at {what}: {_FAULTS.get(self.fault, self.fault)}"


def stop_of(
    code: int,
    *,
    unit: int,
    opcode: int,
    pc: int,
    waits: Mapping[str, Mapping[str, int]],
    processor: bool = False,
) -> Stop:
    """Return what the numbers of the registers mean.

    Parameters
    ----------
    code, unit, opcode, pc : int
        The fault and its place.
    waits : mapping of str to mapping
        For each unit its fields of ``hdl.core.faults.WAIT``.
    processor : bool
        As for ``Stop``.
    """
    from vitruvian.golden.core.encoding import ENCODINGS, UNITS
    from vitruvian.hdl.core.faults import Fault

    ops = {encoding.code: op for op, encoding in ENCODINGS.items()}
    names = dict(enumerate(UNITS))
    flags = {
        name: (names.get(wait["source"], "?"), wait["register"], wait["pc"])
        for name, wait in waits.items()
        if wait["waits"]
    }
    kinds = {fault.value: fault.name for fault in Fault}
    kind, place = kinds.get(code, f"fault {code}"), names.get(unit, f"unit {unit}")
    return Stop(kind, place, ops.get(opcode, ""), pc, flags, processor)
