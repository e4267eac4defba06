"""Structures as C++ has them, rewritten as C's: values of members, and constants within."""

from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token

__all__ = ["MEMBER_PREFIX", "is_structure", "structure"]

#: What the names of constants for members' values begin with.
MEMBER_PREFIX = "__member_"


def is_structure(tokens: list[Token]) -> bool:
    """Whether a part of a source makes a structure or a union."""
    texts = [t.text for t in tokens[:4]]
    if texts[:1] == ["typedef"]:
        texts = texts[1:]
    return texts[:1] in (["struct"], ["union"]) and "{" in texts[1:3]


def structure(tokens: list[Token]) -> list[Token]:
    """One with plain members, and behind it constants for their values and those within it.

    Raises
    ------
    CceError
        For a method, and what else is not understood.
    """
    try:
        return _structure(tokens)
    except IndexError:
        raise CceError(tokens[0].position, "this structure is not understood") from None


def _structure(tokens: list[Token]) -> list[Token]:
    opening = next(i for i, t in enumerate(tokens) if t.text == "{")
    depth, closing = 0, opening
    while depth or closing == opening:
        depth += BRACKETS.get(tokens[closing].text, 0)
        closing += 1
    head, behind = tokens[: opening + 1], tokens[closing - 1 :]
    if tokens[opening - 1].text in ("struct", "union"):  # its name is behind it
        if len(behind) < 2 or behind[1].kind != "id":
            return tokens
        head = [*tokens[:opening], behind[1], tokens[opening]]
    name = head[-2].text
    kept: list[Token] = []
    constants: list[Token] = []
    for member in _members(tokens[opening + 1 : closing - 1]):
        plain, values = _member(name, member)
        kept += plain
        constants += values
    return [*head, *kept, *behind, *constants]


def _members(tokens: list[Token]) -> list[list[Token]]:
    """The declarations, with their semicolons; labels and methods have gone (`classes.split`)."""
    found: list[list[Token]] = [[]]
    depth, called = 0, False
    for token in tokens:
        depth += BRACKETS.get(token.text, 0)
        called = called or (depth == 1 and token.text == "(")
        found[-1].append(token)
        if depth == 0 and (token.text == ";" or (called and token.text == "}")):
            found.append([])
            called = False
    return [m for m in found if m and m[0].text != ";"]


def _member(name: str, tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """A declaration without values, and constants for them."""
    texts = [t.text for t in tokens]
    if texts[0] in ("struct", "union", "enum") and "{" in texts:
        return tokens, []
    first = texts.index("=") if "=" in texts else texts.index("{") if "{" in texts else len(texts)
    at = texts.index("(") if "(" in texts[:first] else None
    if at is not None and texts[at + 1] != "*":
        which = tokens[at - 1] if at else tokens[at]
        raise CceError(
            which.position, f"operators of classes are not part of the dialect: {which.text}"
        )
    if texts[0] == "static" and "const" in texts:  # of all of them: a constant by itself
        return [], tokens
    plain: list[Token] = []
    constants: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text not in ("=", "{"):
            plain.append(token)
            index += 1
            continue
        end, depth = index + (token.text == "="), 0
        while depth or tokens[end].text not in (",", ";"):
            depth += BRACKETS.get(tokens[end].text, 0)
            end += 1
        value = tokens[index + (token.text == "=") : end]
        if value[0].text == "{":
            value = value[1:-1] or [token._replace(kind="number", text="0")]
        if plain[-1].text == "]" or any(t.text == "," for t in value):
            raise CceError(token.position, "values of arrays within structures are not known here")
        words = ("static", "const", "auto", f"{MEMBER_PREFIX}{name}_{plain[-1].text}", "=")
        constants += [token._replace(kind="id", text=w, spaced=True) for w in words]
        constants += [*value, tokens[-1]]
        index = end
    return plain, constants
