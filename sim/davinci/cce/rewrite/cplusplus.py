"""Rewrite C++ declarations into plain C that pycparser accepts.

A reference becomes a pointer with the qualifier ``__reference__`` (``auto &`` only gets the
qualifier), a default argument becomes a constant, ``T x{...}`` and ``T x(...)`` become
``T x = ...``, and an alias becomes a typedef.
"""

from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.rewrite.classes import split
from vitruvian.sim.davinci.cce.rewrite.members import is_structure, structure

ASSEMBLY = ("asm", "__asm__", "__asm")

#: The qualifier of a pointer that represents a reference.
REFERENCE = "__reference__"

#: The prefix of the constants that hold default arguments.
DEFAULT_PREFIX = "__default_"

# A declaration can begin after these.
_STARTS = frozenset((";", "{", "}"))
_NOT_NAMES = frozenset("return else do case goto sizeof if while for switch break continue".split())


def rewrite(
    tokens: list[Token], name: str | None, types: frozenset[str], pairs: dict[int, int]
) -> list[Token]:
    """Rewrite one top-level declaration.

    Parameters
    ----------
    tokens : list of Token
        The declaration.
    name : str or None
        The function that the tokens declare or define; None for other declarations.
    types : frozenset of str
        The words that are types or type qualifiers.
    pairs : dict of int to int
        The index of the closing bracket by the index of the opening bracket.

    Returns
    -------
    list of Token
        The declaration in C, after the constants of its default arguments.

    Raises
    ------
    CceError
        If the declaration is a template or a class, or contains assembly.
    """
    for word, plural in (("template", "templates"), ("class", "classes")):
        if tokens[0].text == word:
            raise CceError(tokens[0].position, f"{plural} are not part of the dialect")
    for token in tokens:
        if token.text in ASSEMBLY:
            raise CceError(token.position, "assembly is not part of the dialect")
    if name is None and is_structure(tokens):
        tokens = structure(split(tokens)[0])
    head, body = _head(tokens, name, pairs) if name else ([], tokens)
    return head + _initialisers(_statements(body), types)


def _head(tokens: list[Token], name: str, pairs: dict[int, int]) -> tuple[list[Token], list[Token]]:
    """Return the constants of default arguments with the function's head, and the rest."""
    opening = next(i for i, t in enumerate(tokens) if t.text == name and i + 1 in pairs) + 1
    closing = pairs[opening]
    constants: list[Token] = []
    head, number, index = list(tokens[: opening + 1]), 0, opening + 1
    while index < closing:
        token = tokens[index]
        if token.text in ("(", "["):  # such as those of a pointer to an array
            head += tokens[index : pairs[index] + 1]
            index = pairs[index] + 1
            continue
        if token.text == "=":
            end = index + 1
            while end < closing and tokens[end].text != ",":
                end = pairs[end] + 1 if end in pairs else end + 1
            # Calls find the constant by its name if the argument is omitted.
            words = ("static", "const", "auto", f"{DEFAULT_PREFIX}{name}_{number}", "=")
            constants += [token._replace(kind="id", text=w, spaced=True) for w in words]
            constants += [*tokens[index + 1 : end], token._replace(text=";")]
            index = end
            continue
        if token.text == "&":
            head += [token._replace(text="*"), token._replace(kind="id", text=REFERENCE)]
        else:
            head.append(token)
        number += token.text == ","
        index += 1
    return constants + head, tokens[closing:]


def _statements(tokens: list[Token]) -> list[Token]:
    """Rewrite ``if constexpr``, ``auto *`` and ``enum class X : type``."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        before = result[-1].text if result else ""
        if (token.text == "const" and before == "if") or (token.text == "*" and before == "auto"):
            index += 1
            continue
        # ``enum class`` becomes ``enum``: its names are then visible without ``X::``, which is
        # harmless because prefixes have been removed.
        if token.text in ("class", "struct") and before == "enum":
            index += 1
            continue
        if token.text == ":" and len(result) > 1 and result[-2].text == "enum":
            while index < len(tokens) and tokens[index].text not in ("{", ";"):
                index += 1
            continue
        result.append(token)
        index += 1
    return result


def _initialisers(tokens: list[Token], types: frozenset[str]) -> list[Token]:
    """Rewrite ``T x{...}``, ``T x(...)`` and ``T &x`` at the beginning of statements."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        starts = not result or result[-1].text in _STARTS
        starts = starts or (len(result) > 1 and [t.text for t in result[-2:]] == ["for", "("])
        sign = _reference(tokens, index, types) if starts else None
        if sign is not None:
            result += tokens[index:sign]
            # The type of ``auto &x`` is known only when its initial value has been compiled.
            if tokens[sign - 1].text != "auto":
                result.append(tokens[sign]._replace(text="*"))
            result.append(tokens[sign]._replace(kind="id", text=REFERENCE, spaced=True))
            index = sign + 1
            continue
        end = _declarator(tokens, index, types) if starts else None
        if end is None:
            result.append(tokens[index])
            index += 1
            continue
        result += tokens[index:end]
        result.append(tokens[end]._replace(kind="punctuation", text="="))
        index = end
    return result


def _reference(tokens: list[Token], index: int, types: frozenset[str]) -> int | None:
    """Return the index of the ``&`` if a declaration ``T &x =`` begins at ``index``, else None."""
    at = index
    while at < len(tokens) and tokens[at].text in types:
        at += 1
    if at == index:
        return None
    while at < len(tokens) and tokens[at].text in ("*", "const"):
        at += 1
    is_reference = [t.text for t in tokens[at : at + 3 : 2]] == ["&", "="] and tokens[
        at + 1
    ].kind == "id"
    return at if is_reference else None


def _declarator(tokens: list[Token], index: int, types: frozenset[str]) -> int | None:
    """Return the index of the initialiser's bracket if ``T x{`` or ``T x(`` begins at ``index``."""
    at, words = index, 0
    while at < len(tokens) and tokens[at].text in types:
        at, words = at + 1, words + (tokens[at].text not in ("const", "static", "volatile"))
    if not words:
        return None
    while at < len(tokens) and tokens[at].text in ("*", "const"):
        at += 1
    if at >= len(tokens) or tokens[at].kind != "id" or tokens[at].text in _NOT_NAMES:
        return None
    at += 1
    while at < len(tokens) and tokens[at].text == "[":
        while at < len(tokens) and tokens[at].text != "]":
            at += 1
        at += 1
    if at + 1 >= len(tokens):
        return None
    if tokens[at].text == "{":
        return at
    # `T x(` also begins a function prototype, with `)` or a type inside.
    inside = tokens[at + 1].text
    is_value = tokens[at].text == "(" and inside != ")" and inside not in types
    return at if is_value and tokens[at - 1].kind == "id" else None
