"""The arithmetic of real matrix units, to the bit: tensor cores, AMX, Gaudi and others.

``run`` computes dot products as an instruction of a machine does; ``spec`` returns the parameter
object of an instruction, and ``table`` lists all of them. Each name is imported at its first use,
so that the import of this module is quick.

>>> from vitruvian import machines
>>> one = 0x3C00  # the code of 1.0 in fp16
>>> hex(machines.run("h100_mma_fp16_fp32", [one] * 16, [one] * 16, 0))
'0x41800000'
>>> machines.spec("b200", "tcgen05", "e4m3", "fp32").sum.window
25
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.machines import (
        Arithmetic,
        ChainSpec,
        IntPhaseSpec,
        Machine,
        PhaseSpec,
        RdnaSpec,
        compute,
        find,
        matching,
        missing,
        multiply,
        run,
        spec,
    )
    from vitruvian.golden.machines import machines as table

__all__ = [
    "Arithmetic",
    "ChainSpec",
    "IntPhaseSpec",
    "Machine",
    "PhaseSpec",
    "RdnaSpec",
    "compute",
    "find",
    "matching",
    "missing",
    "multiply",
    "run",
    "spec",
    "table",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = importlib.import_module("vitruvian.golden.machines")
        return getattr(home, "machines" if name == "table" else name)
    raise AttributeError(f"module 'vitruvian.machines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
