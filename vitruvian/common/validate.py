"""Checks of arguments that all packages share. Each error message says what is allowed."""

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any, TypeVar, overload

from vitruvian.common.errors import UserError

_LONG = 160  # characters of a list of names that a message with a nearest name leaves out
_WORD = 80  # characters of a word that is compared with names

T = TypeVar("T")


def check_int(thing: str, value: Any, low: int, high: int | None = None) -> int:
    """Return ``value`` if it is an int from ``low`` to ``high``.

    Parameters
    ----------
    thing : str
        Name of the argument, for the message.
    value : object
        Value to check. A bool is not an int.
    low, high : int
        Smallest and largest allowed value. By default there is no largest value.

    Raises
    ------
    TypeError
        If ``value`` is not an int.
    UserError
        If ``value`` is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{thing} must be an int, not {value!r}")
    if value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise UserError(f"{thing} must be {allowed}, not {value!r}")
    return value


@overload
def ceil_div(number: int, divisor: int) -> int: ...
@overload
def ceil_div(number: Any, divisor: Any) -> Any: ...
def ceil_div(number: Any, divisor: Any) -> Any:
    """Return the quotient rounded up, of integers or of arrays of them.

    >>> ceil_div(17, 16)
    2
    """
    return -(-number // divisor)


@overload
def round_up(number: int, multiple: int) -> int: ...
@overload
def round_up(number: Any, multiple: Any) -> Any: ...
def round_up(number: Any, multiple: Any) -> Any:
    """Return the smallest multiple of ``multiple`` that is at least ``number``.

    >>> round_up(17, 16)
    32
    """
    return -(-number // multiple) * multiple


def check_type(thing: str, value: object, *allowed: type) -> None:
    """Refuse a value that is of none of the ``allowed`` types.

    Parameters
    ----------
    thing : str
        Name of the argument, for the message.
    value : object
        Value to check.
    *allowed : type
        Allowed types, which the message lists.

    Raises
    ------
    TypeError
        If ``value`` is of another type.
    """
    if not isinstance(value, allowed):
        names = " or ".join(f"{_article(each.__name__)} {each.__name__}" for each in allowed)
        raise TypeError(f"{thing} must be {names}, not {value!r}")


def _article(noun: str) -> str:
    return "an" if noun[0].lower() in "aeiou" else "a"


def one_of(thing: str, value: T, allowed: Iterable[object]) -> T:
    """Return ``value`` if it is one of ``allowed``.

    Parameters
    ----------
    thing : str
        Name of the argument, for the message.
    value : object
        Value to check. A bool is not an int, although Python finds True in (1, 2).
    allowed : iterable
        Allowed values, which the message lists; see ``refusal``.

    Raises
    ------
    UserError
        If ``value`` is not allowed.
    """
    names = list(allowed)
    if value not in names or (isinstance(value, bool) and bool not in map(type, names)):
        raise UserError(refusal(thing, value, names))
    return value


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Return names for a message, the first ``limit`` of them and the number of all."""
    texts = [str(name) for name in names]
    texts = [text if len(text) <= 60 else f"{text[:60]}…" for text in texts]
    if len(texts) <= limit:
        return ", ".join(texts)
    return f"{', '.join(texts[:limit])}, … ({len(texts):,} in all)"


def refusal(thing: str, value: object, allowed: Iterable[object], among: str = "be one of") -> str:
    """Return the message for a value that is not one of the allowed names.

    The message names the nearest allowed name if one is near; it then leaves out a long list.

    Parameters
    ----------
    thing : str
        Name of the argument.
    allowed : iterable
        Allowed values.
    among : str
        Words between "must" and the list.
    """
    names = list(dict.fromkeys(map(str, allowed)))
    shown = shortened(value) if isinstance(value, str) else repr(value)
    hint = nearest(value, names) if isinstance(value, str) else ""
    listed = ", ".join(names)
    if hint and len(listed) > _LONG:
        listed = f"{len(names)} names"
    return f"{thing} must {among} {listed}, not {shown}{hint}"


def nearest(value: str, names: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` with the name most similar to ``value``, or an empty text."""
    if len(value) > _WORD:
        return ""
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(value.lower(), lower, n=1, cutoff=0.7)
    return f" (did you mean {lower[near[0]]}?)" if near else ""


def shortened(value: str, limit: int = 60) -> str:
    """Return ``value`` in quotes for a message, truncated to ``limit`` characters."""
    return repr(value if len(value) <= limit else value[:limit] + "…")


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control characters escaped, such as ``\x1b`` for the escape character.

    Names in files may be hostile: their escape sequences must not reach a terminal.

    Parameters
    ----------
    keep : str
        Control characters that stay as they are, for example line breaks.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) or c in keep else repr(c)[1:-1] for c in text)


def _is_shown(c: str) -> bool:
    """Return True if a character is printable; for Python, spaces but the usual one are not."""
    return c.isprintable() or unicodedata.category(c) == "Zs"
