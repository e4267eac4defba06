"""The grammar of the hostile command lines of one command."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Grammar:
    """The grammar of the lines of a command.

    Attributes
    ----------
    words : tuple of str
        Program and command.
    places : tuple of tuples
        Values of each positional argument, a good one first.
    given : tuple of str
        Arguments that keep the work small, unless an option replaces them.
    options : dict
        Values by option: a tuple of good and bad ones, or None for a flag.
    """

    words: tuple[str, ...]
    places: tuple[tuple[str, ...], ...] = ()
    given: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...] | None] = dataclasses.field(default_factory=dict)
