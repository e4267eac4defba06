"""What a unit is to the flows: options, defaults, how to build it; and a unit with all decided."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.lib import wiring

from vitruvian.errors import UserError
from vitruvian.validate import one_of, shortened

Configuration = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """One setting of a unit: how to read it, and what is allowed (for messages and help)."""

    read: Callable[[str], Any]
    help: str
    flag: bool = False

    def values(self, text: str | bool) -> list[Any]:
        """Read ``4,8`` or ``0-3`` or, for a flag, True; every value once.

        Raises
        ------
        UserError
            A value is not allowed, a range descends, or the list is empty.
        """
        if self.flag:
            return [True]
        found: list[Any] = []
        for word in str(text).split(","):
            ends = word.split("-")
            if len(ends) == 2 and all(end.isdecimal() for end in ends):
                low, high = (self.read(end) for end in ends)
                if low > high:
                    raise UserError(f"a range must ascend, as {high}-{low}, not {word!r}")
                found += range(low, high + 1)
            else:
                found.append(self.read(word))
        return list(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A named generator.

    Parameters
    ----------
    summary : str
        One line for lists.
    options : dict of str to Option
        In the order in which they appear in names.
    default : callable
        Takes the given options, returns the complete configuration.
    build : callable
        Takes a complete configuration, returns the component.
    macs : callable
        Multiply-accumulates a cycle of a configuration, 0 where that means nothing.
    rows : callable
        The configurations that `area` and `timing` treat when nothing is asked for.
    more : callable
        Those that they also treat when the unit or ``--all`` is asked for, and `verilog` always.
    shared : tuple of Component classes
        Sub-components that are synthesised once and counted.
    """

    name: str
    summary: str
    options: dict[str, Option]
    default: Callable[[Configuration], dict[str, Any]]
    build: Callable[[Configuration], wiring.Component]
    macs: Callable[[Configuration], int] = lambda configuration: 0
    rows: Callable[[], Sequence[Configuration]] = lambda: ({},)
    more: Callable[[], Sequence[Configuration]] = lambda: ()
    shared: tuple[type, ...] = field(default=())


#: Letters before the numbers of a label.
_PREFIXES = {"m": "m", "n": "n", "k": "k", "pipeline": "p", "slots": "s", "ahead": "a"}


@dataclass(frozen=True)
class Variant:
    """A unit with every option decided."""

    unit: Unit
    configuration: Configuration

    @property
    def label(self) -> str:
        """Name that is unique within the unit, e.g. ``a100-fp16-fp32-k8-p3``."""
        words = []
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            prefix = _PREFIXES.get(name, "")
            words.append(name if value is True else f"{prefix}{value}")
        return "-".join(words).replace("_", "-") or "default"

    @property
    def module(self) -> str:
        """Name of the Verilog module and file: unit and label as one identifier."""
        return f"{self.unit.name}_{self.label}".replace("-", "_")

    @property
    def arguments(self) -> str:
        """The options as they are written on the command line."""
        words = [self.unit.name]
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
        return " ".join(words)

    @property
    def macs(self) -> int:
        return self.unit.macs(self.configuration)

    def build(self) -> wiring.Component:
        """Return the component; a configuration that cannot be built is a `UserError`."""
        try:
            return self.unit.build(self.configuration)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.unit.name}: {error}") from error

    def check(self) -> None:
        """Raise `UserError` if the configuration cannot be built."""
        component = self.build()
        setattr(component, "_MustUse__used", True)  # noqa: B010 Amaranth warns of what is not elaborated


def named(what: str, allowed: Iterable[str]) -> Option:
    """Return an option that takes one of `allowed`."""
    names = list(allowed)
    return Option(lambda text: one_of(what, text, names), " | ".join(names))


def number(what: str, least: int, most: int) -> Option:
    """Return an option that takes a whole number in a range."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            raise UserError(
                f"{what} must be a number from {least} to {most}, not {shortened(text)}"
            )
        return int(text)

    return Option(read, f"{least} to {most}")


def flag(help: str) -> Option:
    """Return an option that is on when it is named."""
    return Option(bool, help, flag=True)
