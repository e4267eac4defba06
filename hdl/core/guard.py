"""The connections between units and buffers, which let no request beyond the end of a buffer."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value

from vitruvian.golden.core.encoding import BUFFERS

from .ports import BLOCK_BITS, connect_read, connect_split, connect_write


def reaches(value: Value, limit: int) -> Value:
    """Return 1 if a number is not below a limit; for a power of two its high bits tell."""
    if limit & (limit - 1) == 0:
        return value[limit.bit_length() - 1 :].any()
    return value >= limit


def guard_read(m: Module, port: Any, memory: Any, blocks: int, careless: Value | int = 0) -> Value:
    """Connect a unit's port to a memory of so many blocks; return 1 for a request beyond its end.

    Such a request is never granted, so its unit stops there. One that is ``careless`` gets any
    block.
    """
    over = Signal(name="read_over")
    far = reaches(port.address, blocks * BLOCK_BITS // len(port.data))
    m.d.comb += over.eq(port.request & far & ~Value.cast(careless))
    connect_read(m, port, memory, ~over)
    return over


def guard_split(
    m: Module, target: Value | None, port: Any, memories: dict[str, tuple[Any, int]]
) -> Value:
    """Connect the writes of a unit to the memory that it names; return 1 for one beyond its end.

    Such a write is never granted. One without bytes may have any address.

    Parameters
    ----------
    target : Value or None
        The code of the memory; None if there is only one.
    memories : dict of str to (WritePort, int)
        The memories by name, and their numbers of blocks; 0 for one without an end.
    """
    overs: list[Value] = []
    for name, (memory, blocks) in memories.items():
        here = Signal(name=f"here_{name.lower()}")
        m.d.comb += here.eq(1 if target is None else target == BUFFERS.index(name))
        inside: Value = here
        if blocks:
            over = Signal(name=f"over_{name.lower()}")
            far = reaches(port.address, blocks * BLOCK_BITS // len(port.data))
            m.d.comb += over.eq(port.request & here & far & port.enable.any())
            inside = here & ~over
            overs.append(over)
        join = connect_split if len(memory.data) < len(port.data) else connect_write
        join(m, port, memory, inside)
    return Cat(*overs).any()
