"""A template's arguments, worked out from the types that a call gives to its parameters."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.keywords import SPACES
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token
from vitruvian.sim.davinci.cce.language.types import PRIVATE, Pointer, Scalar, Structure, Type

__all__ = ["Given", "deduce", "given_of"]

_SKIPPED = frozenset(("const", "volatile", "restrict", "struct", "register", *SPACES))
_BUFFERS = {buffer: word for word, buffer in SPACES.items()}
_NUMBERS = {("f", 2): "half", ("f", 4): "float", ("f", 8): "double", ("bf", 2): "bfloat16_t"}


class Given(NamedTuple):
    """What a function's parameter tells about its template's: one of them, behind so many `*`."""

    template: str | None
    stars: int = 0
    has_space: bool = False
    is_reference: bool = False
    has_default: bool = False


def given_of(tokens: Iterable[Token], name: str, types: set[str]) -> list[Given]:
    """The parameters of a function.

    Parameters
    ----------
    tokens : iterable of Token
        That declare or define it.
    name : str
        Of the function.
    types : set of str
        Names of its template's parameters that are types.
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
    return [_given(g, types) for g in groups] if groups != [[]] else []


def _given(words: list[str], types: set[str]) -> Given:
    has_default = "=" in words
    if has_default:
        words = words[: words.index("=")]
    has_space = any(w in SPACES for w in words)
    words = [w for w in words if w not in _SKIPPED]
    template = words[0] if words and words[0] in types else None
    stars = words.count("*") + words.count("[")
    return Given(template, stars, has_space, "&" in words, has_default)


def deduce(
    name: str, given: list[Given], types: list[Type], position: Position
) -> dict[str, list[str]]:
    """Words of the type that every parameter of a template stands for, as far as a call tells it.

    Raises
    ------
    CceError
        For one that would have to be two types, and what is no pointer where one is needed.
    """
    found: dict[str, list[str]] = {}
    for (template, stars, has_space, *_), type in zip(given, types, strict=False):
        if template is None:
            continue
        inner, space = type, PRIVATE
        for _ in range(stars):
            if not isinstance(inner, Pointer):
                raise CceError(position, f"template {name} must be given a pointer, not {type}")
            inner, space = inner.target, inner.space
        words = _words(inner)
        if space != PRIVATE and not has_space:  # it is part of what is pointed to
            words.insert(0, _BUFFERS[space])
        if found.setdefault(template, words) != words:
            one, other = " ".join(found[template]), " ".join(words)
            raise CceError(
                position, f"{template} of template {name} must be one type, not {one} and {other}"
            )
    return found


def _words(type: Type) -> list[str]:
    """A type, as a source writes it."""
    if isinstance(type, Pointer):
        space = [] if type.space == PRIVATE else [_BUFFERS[type.space]]
        return [*space, *_words(type.target), "*"]
    if isinstance(type, Scalar):
        if type.is_bool:
            return ["bool"]
        word = f"{'u' if type.kind == 'u' else ''}int{8 * type.size}_t"
        return [_NUMBERS.get((type.kind, type.size), word)]
    return [type.name] if isinstance(type, Structure) else [str(type)]
