"""The check of instructions whose form the chip does not have."""

from collections.abc import Iterator

from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Position
from vitruvian.sim.davinci.report.report import Finding


def unsupported_findings(chip: Chip, numbers: Numbers) -> Iterator[Finding]:
    """Report vsel with other bits for each repeat if the core lacks it, once for each source line.

    With one repeat, the bits in memory are those that set_cmpmask has loaded into the register,
    which every chip has.
    """
    seen: set[Position] = set()
    first = 0
    for stream in numbers.streams:
        lacking = not chip.kind(stream.kind).vsel_from_memory
        for number, instr in enumerate(stream.instructions if lacking else (), first):
            if instr.op != "vsel" or "bits" not in instr.operands or instr.fields["repeat"] < 2:
                continue
            if instr.position not in seen:
                seen.add(instr.position)
                text = f"unsupported: {numbers.text(number)} takes other bits for each repeat from"
                text += f" memory; all repeats on {chip.name} must use the mask register"
                yield Finding("unsupported", text, (number,))
        first += len(stream.instructions)
