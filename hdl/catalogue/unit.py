"""The description of a unit, and a unit with a value for every option (a variant).

Benches, flows and documentation all read the same description.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.lib import wiring

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of, shortened
from vitruvian.hdl.elaborate import only_described

#: Options of a unit and their values. A partial configuration lacks options, which have defaults.
Configuration = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """One setting of a unit.

    Parameters
    ----------
    read : callable
        Turns the text of one value into the value; raises UserError if it is not allowed.
    help : str
        The allowed values, for messages and help texts.
    flag : bool
        If True, the option is a switch without a value.
    samples : callable
        Returns the values that a check of all options tries: every name, or the ends of a range.
    """

    read: Callable[[str], Any]
    help: str
    flag: bool = False
    samples: Callable[[], Sequence[str]] = tuple

    def values(self, text: str | bool) -> list[Any]:
        """Return the values of a list ``4,8`` or a range ``0-3`` without repetitions.

        A flag has the single value True.

        Raises
        ------
        UserError
            If a value is not allowed, a range descends, or the list is empty.
        """
        if self.flag:
            return [True]
        values: list[Any] = []
        for word in str(text).split(","):
            ends = word.split("-")
            # A name such as mma-minplus has a dash as well, so only two numbers are a range.
            if len(ends) == 2 and all(end.isdecimal() for end in ends):
                low, high = (self.read(end) for end in ends)
                if low > high:
                    raise UserError(f"a range must ascend, as {high}-{low}, not {word!r}")
                values += range(low, high + 1)
            else:
                values.append(self.read(word))
        return list(dict.fromkeys(values))


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A named generator of hardware.

    Parameters
    ----------
    name : str
        Name on the command line.
    summary : str
        One line for lists of units.
    package : str
        Package of the component, whose page in ``docs/units`` has the table of its ports.
    options : dict of str to Option
        The options, in the order in which they appear in labels.
    default : callable
        Receives a partial configuration and returns the complete one.
    component : callable
        Receives a complete configuration and returns the class of the component and its parameters.
    macs : callable
        Returns the multiply-accumulates a cycle of a configuration, or 0 if the unit has none.
    rows : callable
        Returns the partial configurations that ``area`` and ``timing`` measure if the user names no
        unit.
    more : callable
        Returns further partial configurations. ``area`` and ``timing`` measure them if the user
        names the unit or gives ``--all``; ``verilog`` always writes them.
    checked : sequence of configurations
        Partial configurations that ``verify`` compares with golden on many vectors.
    simulated : sequence of configurations
        Partial configurations that ``verify`` also drives cycle by cycle from Python.
    documented : dict of str to configuration
        Partial configuration for each table of ports, and the words that tell readers which one
        it is.
    shared : tuple of Component classes
        Sub-components that are synthesised once and multiplied by their instance count.
    """

    name: str
    summary: str
    package: str
    options: dict[str, Option]
    default: Callable[[Configuration], dict[str, Any]]
    component: Callable[[Configuration], tuple[type[wiring.Component], dict[str, Any]]]
    macs: Callable[[Configuration], int] = lambda configuration: 0
    rows: Callable[[], Sequence[Configuration]] = lambda: ({},)
    more: Callable[[], Sequence[Configuration]] = lambda: ()
    checked: Sequence[Configuration] = ()
    simulated: Sequence[Configuration] = ()
    documented: Mapping[str, Configuration] = field(default_factory=dict)
    shared: tuple[type, ...] = ()

    def build(self, configuration: Configuration) -> wiring.Component:
        """Return the component of a complete configuration."""
        component, parameters = self.component(configuration)
        return component(**parameters)


@dataclass(frozen=True, kw_only=True)
class CataloguedPart:
    """A component that is a part of units and has a documented interface of its own.

    Parameters
    ----------
    package : str
        Package of the component, whose page in ``docs/units`` has the table of its ports.
    words : str
        The words that tell readers which configuration the table describes.
    build : callable
        Returns the component in this configuration.
    optional : frozenset of str
        Ports that only other configurations have.
    """

    package: str
    words: str
    build: Callable[[], wiring.Component]
    optional: frozenset[str] = frozenset()


#: Option -> letter before its number in a label.
_PREFIXES = {"m": "m", "n": "n", "k": "k", "pipeline": "p", "slots": "s", "ahead": "a", "rows": "r"}
_PREFIXES |= {"channels": "c"}


@dataclass(frozen=True)
class Variant:
    """A unit with a value for every option."""

    unit: Unit
    configuration: Configuration

    @property
    def label(self) -> str:
        """Name that is unique within the unit, for example ``a100-fp16-fp32-k8-p3``."""
        words = []
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            prefix = _PREFIXES.get(name, "")
            words.append(name if value is True else f"{prefix}{value}")
        return "-".join(words).replace("_", "-") or "default"

    @property
    def module(self) -> str:
        """Name of the Verilog module and file: the unit and the label as one identifier."""
        return f"{self.unit.name}_{self.label}".replace("-", "_")

    @property
    def arguments(self) -> str:
        """The unit and its options in the notation of the command line."""
        words = [self.unit.name]
        for name, value in self.configuration.items():
            if value is None or value is False:
                continue
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
        return " ".join(words)

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle, or 0 if the unit has none."""
        return self.unit.macs(self.configuration)

    def build(self) -> wiring.Component:
        """Return the component.

        Raises
        ------
        UserError
            If the configuration cannot be built.
        """
        try:
            return self.unit.build(self.configuration)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.unit.name}: {error}") from error

    def check(self) -> None:
        """Raise ``UserError`` if the configuration cannot be built."""
        only_described(self.build())


def named(what: str, allowed: Iterable[str]) -> Option:
    """Return an option that takes one of the names in ``allowed``; ``what`` is for messages."""
    names = list(allowed)
    return Option(lambda text: one_of(what, text, names), " | ".join(names), samples=lambda: names)


def number(what: str, least: int, most: int) -> Option:
    """Return an option that takes a whole number.

    Parameters
    ----------
    what : str
        Name of the option, for messages.
    least, most : int
        The allowed range, both ends included.
    """

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            raise UserError(
                f"{what} must be a number from {least} to {most}, not {shortened(text)}"
            )
        return int(text)

    return Option(read, f"{least} to {most}", samples=lambda: (str(least), str(most)))


def listed(what: str, numbers: Sequence[int]) -> Option:
    """Return an option that takes one of some numbers, in ascending order.

    Parameters
    ----------
    what : str
        Name of the option, for messages.
    numbers : sequence of int
        The allowed numbers.
    """
    texts = tuple(map(str, numbers))
    return Option(
        lambda text: int(one_of(what, text, texts)),
        " | ".join(texts),
        samples=lambda: (texts[0], texts[-1]),
    )


def flag(help: str) -> Option:
    """Return an option that is off unless the user gives it."""
    return Option(bool, help, flag=True)
