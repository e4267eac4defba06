"""The address space of unit S when it is a RISC-V, and its opcodes.

===========  ==============================================================
0x0000_0000  UB: byte i of UB is at address i, so a pointer to UB needs no conversion
0x1000_0000  the processor's own memory: the kernel, its variables, and the stack
0x2000_0000  the queue register: the lower half of a word, then (at 4) its upper half
0x8000_0000  global memory: its byte i is at 0x8000_0000 + i
===========  ==============================================================

The image of a kernel stands in global memory and is copied to the start of the own memory. Its
first block of 32 bytes is the head: the first instruction, a jump (4 bytes), the number of blocks
of the image (4), the block of the kernel and the number of blocks that run (4 each). The arguments
follow from byte 32 on, 8 bytes each; then come code and variables. The stack begins at the end of
the memory and grows down.
"""

from collections.abc import Mapping
from types import MappingProxyType

#: The region of an address is its bits from this one on.
REGION_LOW = 28
#: First and last region of each memory.
REGIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"UB": (0, 0), "OWN": (1, 1), "QUEUE": (2, 2), "GM": (8, 15)}
)
#: First byte of each memory.
UB, CODE, QUEUE, GM = (REGIONS[name][0] << REGION_LOW for name in ("UB", "OWN", "QUEUE", "GM"))
#: Opcodes of RV32I, in bits 6 to 0 of an instruction.
LUI, AUIPC, JAL, JALR = 0x37, 0x17, 0x6F, 0x67
BRANCH, LOAD, STORE, IMMEDIATE, REGISTER, FENCE = 0x63, 0x03, 0x23, 0x13, 0x33, 0x0F
#: Bytes of the head of an image, and of an argument.
HEAD_BYTES, ARGUMENT_BYTES = 32, 8
