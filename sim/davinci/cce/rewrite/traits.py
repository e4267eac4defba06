"""Replace type traits of the C++ library (``is_same``, ``numeric_limits``...) by constants."""

from collections.abc import Callable

from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token, tokenize
from vitruvian.sim.davinci.cce.language.types import NAMED, Scalar, integer
from vitruvian.sim.davinci.cce.rewrite.template_args import arguments_of

_EXTREMES = ("max", "min")
_SAME = frozenset(("is_same", "IsSameType"))

#: Traits of one type, as predicates.
_PREDICATES: dict[str, Callable[[Scalar], bool]] = {
    "is_arithmetic": lambda t: True,
    "is_integral": lambda t: not t.is_float,
    "is_floating_point": lambda t: t.is_float,
    "is_signed": lambda t: t.kind != "u",
    "is_unsigned": lambda t: t.kind == "u",
}

#: The largest finite number of each floating-point type, by kind and size, as an exact C literal.
_LARGEST = {
    ("f", 2): "65504.0f",
    ("f", 4): "3.40282346638528859812e+38f",
    ("f", 8): "1.7976931348623157e+308",
    ("bf", 2): "3.38953138925153547590e+38f",
}
#: The smallest positive normal number of each.
_LEAST = {
    ("f", 2): "6.103515625e-05f",
    ("f", 4): "1.17549435082228750797e-38f",
    ("f", 8): "2.2250738585072014e-308",
    ("bf", 2): "1.17549435082228750797e-38f",
}
_LIMITS = ("max", "min", "lowest", "infinity")


def with_traits(tokens: list[Token]) -> list[Token]:
    """Replace traits such as ``std::is_same<A, B>::value`` by 1 or 0, and limits by literals.

    ``std::max<T>`` and ``std::min<T>`` get casts of their arguments. The ``::`` of all names must
    have been removed before.

    Raises
    ------
    CceError
        If a trait has the wrong number of types, or a limit is not supported.
    """
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        name = token.text.removesuffix("_v")
        expected = 2 if name in _SAME else 1
        known = name in _SAME or name in _PREDICATES or name == "numeric_limits"
        # `max < 4` is a comparison, while `max<T>(` casts both arguments to T.
        if token.text in _EXTREMES and following == "<":
            end = index + 2
            while end < len(tokens) and tokens[end].kind == "id":
                end += 1
            if [t.text for t in tokens[end : end + 2]] == [">", "("]:
                call, index = _converted(tokens, index, end)
                result += with_traits(call)
                continue
        if not known or following != "<":
            result.append(token)
            index += 1
            continue
        types, index = arguments_of(tokens, index + 1)
        if len(types) != expected:
            words = "1 type" if expected == 1 else f"{expected} types"
            raise CceError(token.position, f"{token.text} must have {words}, not {len(types)}")
        member = tokens[index].text if index < len(tokens) else ""
        if name == "numeric_limits":
            result += _limit(token, types[0], member)
            index += 3  # past the member and its ()
            continue
        index += member == "value"
        scalars = [scalar(t) for t in types]
        if name in _SAME:
            holds = scalars[0] == scalars[1]
        else:
            holds = isinstance(scalars[0], Scalar) and _PREDICATES[name](scalars[0])
        result.append(token._replace(kind="number", text=str(int(holds))))
    return result


def _converted(tokens: list[Token], index: int, end: int) -> tuple[list[Token], int]:
    """Return ``max<T>(a, b)`` as ``max((T)(a), (T)(b))``, and the index after the call."""
    opening = end + 1
    left, right = tokens[opening], tokens[opening]._replace(text=")")
    cast = [left, *tokens[index + 2 : end], right]
    result, depth = [tokens[index], left, *cast, left], 1
    at = opening + 1
    while at < len(tokens) and depth:
        token = tokens[at]
        depth += BRACKETS.get(token.text, 0)
        result += [right, token, *cast, left] if token.text == "," and depth == 1 else [token]
        at += 1
    return [*result[:-1], right, right], at


def _limit(use: Token, words: list[Token], member: str) -> list[Token]:
    """Return ``numeric_limits<words>::member()`` as a parenthesised literal with a cast."""
    type = scalar(words)
    if (
        not isinstance(type, Scalar)
        or member not in _LIMITS
        or (not type.is_float and "inf" in member)
    ):
        shown = " ".join(t.text for t in words)
        raise CceError(use.position, f"numeric_limits<{shown}>::{member} is not supported")
    if type.is_float:
        largest = _LARGEST[type.kind, type.size]
        smallest = _LEAST[type.kind, type.size]
        values = {
            "max": largest,
            "lowest": f"-{largest}",
            "min": smallest,
            "infinity": "1.0f / 0.0f",
        }
        text = values[member]
    else:
        bits = 8 * type.size - (type.kind == "i")
        highest = f"{(1 << bits) - 1}{'ull' if bits == 64 else 'll'}"
        text = highest if member == "max" else "0" if type.kind == "u" else f"-{highest} - 1"
    shown = " ".join(t.text for t in words)
    tokens = tokenize(f"(({shown})({text}))", use.position.file)
    return [t._replace(position=use.position) for t in tokens]


def scalar(tokens: list[Token]) -> object:
    """Return a type in a form that can be compared: a ``Scalar``, or the words of another type."""
    words = [t.text for t in tokens if t.text not in ("const", "volatile")]
    if len(words) == 1 and words[0] in NAMED:
        return NAMED[words[0]]
    return integer(words) or tuple(words)
