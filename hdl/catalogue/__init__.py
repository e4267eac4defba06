"""Every unit by name: its options, and the configurations that others verify, measure and document.

A new unit needs one new entry in one of these modules, or in a module that a wing registers.
Benches (``checked``, ``simulated``), flows (``rows``, ``more``) and the generated documentation
(``documented``) all read it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.hdl.catalogue.collection import DESIGNS, PARTS, UNITS

__all__ = ["DESIGNS", "PARTS", "UNITS"]


def __getattr__(name: str) -> Any:
    # Collected at the first use: the units of a wing import modules of this package.
    if name in __all__:
        return getattr(importlib.import_module("vitruvian.hdl.catalogue.collection"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
