"""An open matrix unit in RTL, its bit-exact golden models, and the DaVinci AI core around it.

The four packages are ``vitruvian.golden`` (NumPy models), ``vitruvian.hdl`` (Amaranth components),
``vitruvian.sim`` (compiled RTL, benches, simulators) and ``vitruvian.flows`` (area, delay and
Verilog). ``__all__`` lists the names that most programs need; each is imported at its first use.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.common.errors import UserError
    from vitruvian.golden.cube import mmad
    from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot
    from vitruvian.golden.machines.presets import PRESETS
    from vitruvian.golden.simd2 import mmo
    from vitruvian.products import gemm
    from vitruvian.sim.davinci import load_chip, simulate
    from vitruvian.sim.rtl import compile_unit

__all__ = [
    "DotSpec",
    "PRESETS",
    "UserError",
    "compile_unit",
    "dot_spec",
    "fused_dot",
    "gemm",
    "load_chip",
    "mmad",
    "mmo",
    "simulate",
]

#: Module of each public name of the core, below ``vitruvian``. The wings register ``load_chip``,
#: ``simulate``, ``ops`` and ``sparse`` (``common.wings``).
_HOMES = {
    "DotSpec": "golden.fp",
    "PRESETS": "golden.machines",
    "UserError": "common.errors",
    "compile_unit": "sim.rtl",
    "dot_spec": "golden.fp",
    "fused_dot": "golden.fp",
    "gemm": "products",
    "mmad": "golden.cube",
    "mmo": "golden.simd2",
}

#: Modules of the face that are imported at their first use.
_MODULES = ("formats", "machines", "plans")

# In a checkout the four packages are symbolic links in this folder. An unpacked sdist has no links,
# nor has a zip archive that was unpacked by a program without support for links; there the
# packages are one folder up.
if not (Path(__file__).parent / "golden").is_dir():
    __path__.append(str(Path(__file__).resolve().parents[1]))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"vitruvian.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"vitruvian.{name}")
    # A module that is being looked for by the import system has no wing, and loads none.
    if not name.startswith("_"):
        from vitruvian.common.wings import wings

        for wing in wings():
            if name in wing.faces:
                return importlib.import_module(f"vitruvian.{name}")
            if name in wing.names:
                return getattr(importlib.import_module(wing.names[name]), name)
    raise AttributeError(f"module 'vitruvian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
