"""The chip file of a core in hardware, derived from its parameters."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from vitruvian.common.validate import check_int
from vitruvian.sim.davinci.chip.file import read_chip
from vitruvian.sim.davinci.chip.hardware import MEMORY
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES
from vitruvian.sim.rtl.core import core_facts

#: Clock in MHz unless one is given. Cycles do not depend on it.
CLOCK_MHZ = 50
#: The paths between memories, and the units that drive them.
_PATHS = {
    "MTE2": ("GM->L1", "GM->UB", "GM->L0A", "GM->L0B"),
    "MTE3": ("UB->GM", "UB->L1"),
    "MTE1": ("L1->UB", "L1->L0A", "L1->L0B"),
    "V": ("L0C->UB", "UB->L0C", "UB->UB"),
    "FIX": ("L0C->GM", "L0C->L1"),
}
_Facts = dict[str, dict[str, Any]]
_ALIGN = {"L1": 32, "L0A": 512, "L0B": 512, "L0C": 512, "UB": 32}


def core_chip_text(
    core: Any, *, name: str = "core", memory_latency: int = 1, clock_mhz: int = CLOCK_MHZ
) -> str:
    """Return the text of a chip file for a core with its global memory.

    Parameters
    ----------
    core : str or CoreConfig
        A name in ``hdl.core.CORES``, or parameters.
    name : str
        Name of the chip if ``core`` is no name.
    memory_latency : int
        Cycles from a read of global memory to its data, from 1 (block RAM) to 1000. The memory
        takes a block of 32 bytes in each cycle on each of its ports: MTE2, the fetch, and MTE3.
    clock_mhz : int

    Raises
    ------
    ValueError
        If there is no such core, or a number is out of range.
    """
    check_int("memory_latency", memory_latency, 1, 1000)
    check_int("clock_mhz", clock_mhz, 1, 10_000)
    facts = core_facts(core)
    name = core if isinstance(core, str) else name
    return "\n".join(_lines(name, facts, memory_latency, clock_mhz)) + "\n"


@lru_cache(32)
def core_chip(core: Any, *, memory_latency: int = 1, clock_mhz: int = CLOCK_MHZ) -> Chip:
    """Return a core with its global memory as a chip; see ``core_chip_text``."""
    text = core_chip_text(core, memory_latency=memory_latency, clock_mhz=clock_mhz)
    return read_chip(text, f"core {core}")


def _lines(name: str, facts: _Facts, latency: int, clock_mhz: int) -> Iterator[str]:
    cycle = Fraction(1000, clock_mhz)  # in ns
    rate = _number(BLOCK_BYTES / cycle)
    widths = json.dumps("hdl.core: a block of 32 bytes a cycle")
    yield f"# The core {name!r}, derived from its parameters by `vitruvian core describe`."
    yield "# Its cycles follow from the table hardware; the rates of paths are their limits."
    yield ""
    yield f"name = {json.dumps(name)}"
    yield f'description = "core in hardware, global memory of {latency} cycles"'
    yield ""
    yield "[chip]"
    yield f"clock_mhz = {clock_mhz}"
    yield f"launch_ns = {_number((latency + 2) * cycle)}"
    yield "dispatch_ns = 0"
    yield f"flag_ns = {_number(cycle)}"
    yield f"event_registers = {facts['flags']['count']}"
    yield 'source = "hdl.core: the first word comes two cycles behind the latency of the memory"'
    yield ""
    yield "[core.aicore]"
    yield "count = 1"
    units = ["S", "V", "M", "MTE1", "MTE2", "MTE3", *(["FIX"] if facts["units"]["fix"] else [])]
    yield f"units = {json.dumps(units)}"
    yield f"interlocks = {json.dumps(units[1:])}"
    yield "vsel_from_memory = false"
    why = "hdl.core: an instruction of a queue is taken when all before it have ended"
    bits = "hdl.core: a selection has its bits in the register of comparisons"
    yield f'source = {{ count = "one", interlocks = "{why}", vsel_from_memory = "{bits}" }}'
    yield ""
    yield "[core.aicore.buffer]"
    for buffer, nbytes in facts["buffers"].items():
        yield f'{buffer} = {{ bytes = {nbytes}, align = {_ALIGN[buffer]}, source = "CoreConfig" }}'
    yield ""
    yield f"[bus.{MEMORY}]"
    yield f"gb_per_s = [{rate}]"
    yield "per_core = true"
    yield f"source = {widths}"
    for unit, path in ((name, path) for name in units for path in _PATHS.get(name, ())):
        yield ""
        yield f'[path."{path}"]'
        yield f'unit = "{unit}"'
        yield f"gb_per_s = {rate}"
        yield "init_ns = 0"
        yield f"source = {widths}"
    yield from _arithmetic(facts, latency, cycle, rate)


def _arithmetic(facts: _Facts, latency: int, cycle: Fraction, rate: str) -> Iterator[str]:
    tile = facts["tile"]
    yield ""
    yield "[vector]"
    yield f"gb_per_s = {rate}"
    yield "init_ns = 0"
    yield 'source = "hdl.core: a block a cycle"'
    yield ""
    yield "[cube]"
    yield f"m = {tile['m']}"
    yield f"n = {tile['n']}"
    yield f"steps_per_us = {_number(1000 / cycle)}"
    yield "init_ns = 0"
    yield 'source = "hdl.core: a beat a cycle"'
    yield ""
    yield "[cube.depth]"
    others = {name: beat for name, beat in facts["products"].items() if " " in name}
    for name, beat in facts["products"].items():
        if name not in others:
            yield f"{name} = {beat['k']}"
    yield 'source = "MatrixUnitConfig of the core"'
    if others:
        yield ""
        yield "[cube.operation_depth]"
        for name, beat in others.items():
            yield f"{json.dumps(name)} = {beat['k']}"
        yield 'source = "MatrixUnitConfig of the core"'
    yield ""
    yield "[scalar]"
    yield f"default_ns = {_number(cycle)}"
    yield 'source = "hdl.core: a cycle"'
    yield ""
    yield "[hardware]"
    for key, value in facts["settings"].items():
        yield f"{key} = {value}"
    yield f"memory_latency = {latency}"
    yield 'source = "CoreConfig, and the named memory"'
    yield ""
    yield "[hardware.tile]"
    for key, value in tile.items():
        yield f"{key} = {value}"
    yield 'source = "MatrixUnitConfig of the core"'
    for name, beat in facts["products"].items():
        yield ""
        yield f"[hardware.products.{json.dumps(name)}]"
        for key, value in beat.items():
            yield f"{key} = {value}"
        yield 'source = "MatrixUnitConfig of the core"'
    for name, numbers in (("blocks", facts["blocks"]), ("latencies", facts["latencies"])):
        if numbers:
            yield ""
            yield f"[hardware.{name}]"
            for key, value in numbers.items():
                yield f"{json.dumps(key)} = {value}"
            yield 'source = "VectorConfig and ExtensionConfig of the core"'


def _number(value: Fraction) -> str:
    """Return a number with as many digits as a chip file may have."""
    return f"{float(value):.12g}"
