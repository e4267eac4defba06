"""Wings: parts of the project that register themselves, so that the core imports none of them.

The core is numbers and hardware. A wing is a folder of ``vitruvian/wings`` whose ``__init__.py``
has a ``WING``: names of modules, and nothing that takes long to import. The core asks for what the
wings registered under a word, and imports it when it is needed:

===================  =============================================================================
kind                 what a module of the kind has
===================  =============================================================================
units                ``UNITS``, a sequence of ``hdl.catalogue.unit.Unit``
checks               ``checks()``, the rows of ``vitruvian verify``
vectors              ``MAKERS``, functions of golden vectors by unit
header rules         ``RULES``, functions of lines in the header of emitted Verilog by component
pipelines            ``PIPELINES``, functions of the register balance's object by component
proofs               ``PROOFS``, formal proofs
completion           ``NAMES`` and ``FILES``, words that a shell completes
listed               ``rows(pattern)`` and ``line(row)``, further rows of ``vitruvian list``
pages                ``update(check=...)``, generated pages of the documentation
===================  =============================================================================

A wing whose folders are absent is left out, and the rest works without it.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

#: The kinds of modules that a wing may register.
KINDS = (
    *("units", "checks", "vectors", "header rules", "pipelines", "proofs"),
    *("completion", "listed", "pages", "hosted"),
)


@dataclass(frozen=True, kw_only=True)
class CliCommand:
    """A command of the command line.

    Attributes
    ----------
    module : str
        Module whose function ``register(name, commands)`` adds the command to the parser.
    text : str
        Line of the help.
    group : str
        Group of commands in the help.
    main : bool
        Whether the first screen of the help shows the command.
    """

    module: str
    text: str
    group: str
    main: bool = False


@dataclass(frozen=True, kw_only=True)
class Wing:
    """The parts that a wing registers, as names of modules.

    Attributes
    ----------
    folders : tuple of str
        Packages without which the wing is absent.
    commands : mapping of str to CliCommand
        Commands by name.
    names : mapping of str to str
        Names that ``vitruvian`` offers, and the module of each.
    faces : tuple of str
        Modules ``vitruvian.NAME`` that ``vitruvian`` offers.
    modules : mapping of str to tuple of str
        Modules by kind, one of ``KINDS``.
    """

    folders: tuple[str, ...]
    commands: Mapping[str, CliCommand]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    faces: tuple[str, ...] = ()
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        for kind in self.modules:
            if kind not in KINDS:
                raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")


@cache
def wings() -> tuple[Wing, ...]:
    """Return the wings that are present, in the order of their names."""
    folder = Path(__file__).parents[1] / "wings"
    names = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    found: list[Wing] = [importlib.import_module(f"vitruvian.wings.{name}").WING for name in names]
    return tuple(wing for wing in found if all(map(_exists, wing.folders)))


def registered(kind: str) -> Iterator[ModuleType]:
    """Import and yield the modules that the wings registered under ``kind``, one of ``KINDS``."""
    for name in registered_names(kind):
        yield importlib.import_module(name)


def registered_names(kind: str) -> list[str]:
    """Return the names of the modules that ``registered`` imports."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    return [name for wing in wings() for name in wing.modules.get(kind, ())]


def _exists(package: str) -> bool:
    """Return whether a package can be imported; only the packages around it are imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
