"""Deduce the arguments of a function template from the argument types of a call."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.keywords import SPACES
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token
from vitruvian.sim.davinci.cce.language.types import PRIVATE, Pointer, Scalar, Structure, Type

_SKIPPED = frozenset(("const", "volatile", "restrict", "struct", "register", *SPACES))
_BUFFERS = {buffer: word for word, buffer in SPACES.items()}
_NUMBERS = {("f", 2): "half", ("f", 4): "float", ("f", 8): "double", ("bf", 2): "bfloat16_t"}


class ParameterPattern(NamedTuple):
    """The type of a function parameter as a pattern: a template parameter and ``stars`` pointers.

    Attributes
    ----------
    template : str or None
        The template parameter ``T`` in the type ``T *...*``; None if the type contains none.
    stars : int
        The number of pointers or array dimensions behind ``T``.
    has_space : bool
        If True, the parameter names its address space itself.
    is_reference : bool
        If True, the parameter is a reference.
    has_default : bool
        If True, the parameter has a default argument.
    """

    template: str | None
    stars: int = 0
    has_space: bool = False
    is_reference: bool = False
    has_default: bool = False


def parameter_patterns(
    tokens: Iterable[Token], name: str, types: set[str]
) -> list[ParameterPattern]:
    """Return the pattern of each parameter of a function template.

    Parameters
    ----------
    tokens : iterable of Token
        The declaration or definition of the function.
    name : str
        The name of the function.
    types : set of str
        The template parameters that are types.
    """
    words = [t.text for t in tokens]
    start = next((i for i, pair in enumerate(pairwise(words)) if pair == (name, "(")), None)
    if start is None:
        return []
    groups: list[list[str]] = [[]]
    depth = 1
    for word in words[start + 2 :]:
        depth += BRACKETS.get(word, 0)
        if depth == 0:
            break
        if word == "," and depth == 1:
            groups.append([])
        else:
            groups[-1].append(word)
    return [_pattern(g, types) for g in groups] if groups != [[]] else []


def _pattern(words: list[str], types: set[str]) -> ParameterPattern:
    has_default = "=" in words
    if has_default:
        words = words[: words.index("=")]
    has_space = any(w in SPACES for w in words)
    words = [w for w in words if w not in _SKIPPED]
    template = words[0] if words and words[0] in types else None
    stars = words.count("*") + words.count("[")
    return ParameterPattern(template, stars, has_space, "&" in words, has_default)


def deduce(
    name: str, patterns: list[ParameterPattern], types: list[Type], position: SourcePosition
) -> dict[str, list[str]]:
    """Return the words of the type of each template parameter that a call determines.

    Parameters
    ----------
    name : str
        The name of the template.
    patterns : list of ParameterPattern
        The parameters of the function.
    types : list of Type
        The argument types of the call.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    CceError
        If two arguments require different types, or an argument is not a pointer and must be one.
    """
    result: dict[str, list[str]] = {}
    for (template, stars, has_space, *_), type in zip(patterns, types, strict=False):
        if template is None:
            continue
        inner, space = type, PRIVATE
        for _ in range(stars):
            if not isinstance(inner, Pointer):
                message = f"an argument of template {name} must be a pointer, not {type}"
                raise CceError(position, message)
            inner, space = inner.target, inner.space
        # The parameter `T *x` accepts a pointer to any memory, so T gets the address space of the
        # argument, unless the parameter has its own: `__gm__ T *x`.
        words = _words(inner)
        if space != PRIVATE and not has_space:
            words.insert(0, _BUFFERS[space])
        if result.setdefault(template, words) != words:
            first, second = " ".join(result[template]), " ".join(words)
            message = f"must be one type, not {first} and {second}"
            raise CceError(position, f"{template} of template {name} {message}")
    return result


def _words(type: Type) -> list[str]:
    """Return the words that denote a type in a source."""
    if isinstance(type, Pointer):
        space = [] if type.space == PRIVATE else [_BUFFERS[type.space]]
        return [*space, *_words(type.target), "*"]
    if isinstance(type, Scalar):
        if type.is_bool:
            return ["bool"]
        word = f"{'u' if type.kind == 'u' else ''}int{8 * type.size}_t"
        return [_NUMBERS.get((type.kind, type.size), word)]
    return [type.name] if isinstance(type, Structure) else [str(type)]
