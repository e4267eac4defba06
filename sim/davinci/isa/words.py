"""How long an instruction is in machine code (``golden.core``)."""

from vitruvian.golden.core.encoding import ENCODINGS
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.lanes import lanes_of, prefix
from vitruvian.sim.davinci.isa.operands import View

_MASK_BITS = 64


def lane_views(instruction: Instruction) -> list[View]:
    """Return the operands whose dtypes decide how many lanes a repeat has."""
    operands = dict(instruction.operands)
    operands.pop("bits", None)
    op = instruction.op
    if op == "vgather":
        return [operands["dst"]]
    if op.startswith(("vcmpv", "vc")) and op != "vconv":  # bits and results have no lanes
        operands.pop("dst", None)
    return list(operands.values())


def mask_words(instruction: Instruction) -> tuple[int, ...]:
    """Return the words of a lane mask: none if all lanes are enabled."""
    mask = instruction.fields["mask"]
    if instruction.op != "set_mask" and mask == prefix(lanes_of(*lane_views(instruction))):
        return ()
    count = max(1, -(-mask.bit_length() // _MASK_BITS))
    return tuple(mask >> _MASK_BITS * i & (1 << _MASK_BITS) - 1 for i in range(count))


def word_count(instruction: Instruction) -> int:
    """Return the number of words of an instruction."""
    encoding = ENCODINGS[instruction.op]
    tail = 0
    if encoding.tail == "mask":
        tail = len(mask_words(instruction))
    elif encoding.tail == "levels":
        tail = len(instruction.operands["dst"].span.levels)
    elif encoding.tail == "views":
        tail = len(instruction.fields["dst"])
    elif encoding.tail == "lists":
        tail = len(instruction.fields["lists"])
    return encoding.words + tail
