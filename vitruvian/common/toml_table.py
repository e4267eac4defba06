# pyright: basic
"""A table of a chip file: its keys are taken and checked one by one."""

import difflib
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

#: The range of numbers other than 0, and the largest number of digits.
_LEAST, _MOST, _DIGITS = Decimal("1e-6"), Decimal("1e9"), 30

#: The largest number of cores or registers, side of the Cube, and length of a list.
_COUNT = 1024

TABLES = "name description chip core path bus cache vector cube scalar cross hardware".split()

#: The keys of all tables; a key of this set is never taken for a misspelling of another.
_KEYS = frozenset(
    """align block_ns buffer bursts bus bytes clock_mhz count counts default_ns depth dispatch_ns
    drain_ns event_registers flag_ns gb_per_s gib_per_s init_ns interlocks issue_ns kib
    latency_cycles latency_ns launch_ns m mib n operation operation_ns per_core per_group
    posted repeats_factor source start_ns steps_per_us unit units""".split()
).union(TABLES)


class TableReader(Protocol):
    """The attributes of a file's reader that its tables use.

    Attributes
    ----------
    sources : dict of str to str
        The source of each table of numbers.
    """

    sources: dict[str, str]

    def fail(self, where: tuple[str, ...], message: str) -> Any:
        """Raise an error for a key or table."""
        ...


class TomlTable:
    """A table of the file: each method takes and checks a key; ``done`` reports the keys left."""

    def __init__(self, reader: TableReader, where: tuple[str, ...], data: Any) -> None:
        self.reader: TableReader = reader
        self.where: tuple[str, ...] = where
        if not isinstance(data, dict):
            reader.fail(where, f"{'.'.join(where)} must be a table, not {_shown(data)}")
        self.data: dict[str, Any] = dict(data)
        self.taken: set[str] = set()

    def fail(self, key: str, must: str) -> Any:
        """Raise ``ChipError`` for a key; ``must`` describes the allowed values."""
        where = (*self.where, key)
        if key in self.data:
            shown = _shown(self.data[key])
            self.reader.fail(where, f"{'.'.join(where)} must be {must}, not {shown}")
        # An unknown key of a similar name is most likely a misspelling, so name it with its line.
        near = difflib.get_close_matches(key, [k for k in self.data if k not in _KEYS], 1)
        at = (*self.where, near[0]) if near else self.where
        hint = f" ({'.'.join(at)} is not a key known here)" if near else ""
        self.reader.fail(at, f"{'.'.join(where)} is missing{hint}; it must be {must}")

    def has(self, key: str) -> bool:
        """Return True if the table has a key."""
        return key in self.data

    def take(self, key: str, default: Any = None) -> Any:
        """Return the value of a key without a check, and mark the key as known."""
        self.taken.add(key)
        return self.data.get(key, default)

    def number(
        self, key: str, default: Any = None, *, zero: bool = True, scale: Any = 1
    ) -> Fraction:
        """Return a number times ``scale``; 0 is allowed if ``zero`` is True."""
        value = self.take(key, default)
        kind = "0 or more" if zero else "more than 0"
        if isinstance(value, Fraction):  # a default
            return value * scale
        if not _is_number(value):
            self.fail(key, f"a number, {kind}")
        if value < 0 or (value == 0 and not zero):
            self.fail(key, kind)
        if value and not _is_sensible(value):
            self.fail(key, f"{RANGE}{', or 0' if zero else ''}")
        return Fraction(value) * scale

    def whole(self, key: str, default: int | None = None, low: int = 1, high: int = _COUNT) -> int:
        """Return an integer from ``low`` to ``high``."""
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            self.fail(key, f"an integer, {low} or more")
        if value > high:
            self.fail(key, f"an integer, {low} … {high}")
        return value

    def numbers(self, key: str, *, rising: bool = False) -> list[Fraction]:
        """Return a list of positive numbers, each larger than the last if ``rising`` is True."""
        values = self.take(key)
        must = "a list of numbers more than 0" + (", rising" if rising else "")
        if not isinstance(values, list) or not values:
            self.fail(key, must)
        for value in values:
            if not _is_number(value) or not value > 0:
                self.fail(key, must)
        if len(values) > _COUNT or not all(map(_is_sensible, values)):
            self.fail(key, f"a list of at most {_COUNT} numbers, each {RANGE}")
        if rising and any(a >= b for a, b in pairwise(values)):
            self.fail(key, must)
        return [Fraction(v) for v in values]

    def word(self, key: str, allowed: Iterable[str] | None = None, default: Any = None) -> str:
        """Return a text, one of ``allowed`` if these are given."""
        value = self.take(key, default)
        must = "one of " + ", ".join(allowed) if allowed else "a text"
        if not isinstance(value, str) or (allowed and value not in allowed):
            self.fail(key, must)
        return value

    def words(self, key: str, allowed: Iterable[str]) -> list[str]:
        """Return a list of texts, each one of ``allowed``."""
        values, allowed = self.take(key), list(allowed)
        if not isinstance(values, list) or not values or any(v not in allowed for v in values):
            self.fail(key, f"a list of {', '.join(allowed)}")
        return values

    def table(self, key: str, *, needed: bool = True) -> "TomlTable | None":
        """Return the table of a key, or None if it is absent and not ``needed``."""
        value = self.take(key)
        if value is None and not needed:
            return None
        if not isinstance(value, dict):
            self.fail(key, "a table")
        return TomlTable(self.reader, (*self.where, key), value)

    def tables(self, key: str, *, needed: bool = True) -> dict[str, "TomlTable"]:
        """Return the tables in the table of a key, by name."""
        inner = self.table(key, needed=needed)
        if inner is None:
            return {}
        if not inner.data:
            self.fail(key, "a table of tables")
        return {
            name: TomlTable(self.reader, (*inner.where, name), v) for name, v in inner.data.items()
        }

    def done(self) -> None:
        """Check that the numbers have a source and that no key is left over."""
        source = self.take("source")
        numbers = [k for k, v in self.data.items() if _has_number(v)]
        if isinstance(source, dict):
            lacking = [k for k in numbers if not isinstance(source.get(k), str)]
            if lacking:
                self.fail("source", f"a text for each number, also for {lacking[0]}")
            for key, why in source.items():
                self.reader.sources[".".join((*self.where, key))] = why
        elif numbers or source is not None:
            if not isinstance(source, str) or not source.strip():
                self.fail("source", "where the numbers are from, or 'assumed: why'")
            self.reader.sources[".".join(self.where)] = source
        left = [k for k in self.data if k not in self.taken]
        if left:
            known = ", ".join(sorted(self.taken))
            where = (*self.where, left[0])
            near = difflib.get_close_matches(left[0], self.taken, 1)
            hint = f"; the nearest is {near[0]}" if near else ""
            self.reader.fail(where, f"{'.'.join(where)} must be one of the keys {known}{hint}")


RANGE = f"{_LEAST:f} … {_MOST:,f} with at most {_DIGITS} digits"


def _is_number(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_sensible(value: int | Decimal) -> bool:
    """Return True for numbers with fast exact sums and times within the simulated range."""
    if not _LEAST <= value <= _MOST:
        return False
    return isinstance(value, int) or len(value.as_tuple().digits) <= _DIGITS


def _has_number(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_number(v) for v in value)
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) >> 200:
        return f"an integer of {value.bit_length()} bits"
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
