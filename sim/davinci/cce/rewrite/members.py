"""Rewrite C++ structures as C: initial values and constants are moved out of the structure."""

from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token

#: The prefix of the constants that hold the initial values of members.
MEMBER_PREFIX = "__member_"


def is_structure(tokens: list[Token]) -> bool:
    """Return True if the tokens define a structure or a union."""
    texts = [t.text for t in tokens[:4]]
    if texts[:1] == ["typedef"]:
        texts = texts[1:]
    return texts[:1] in (["struct"], ["union"]) and "{" in texts[1:3]


def structure(tokens: list[Token]) -> list[Token]:
    """Return a structure with plain members, followed by constants.

    The constants hold the initial values of members, and replace static constant members.

    Raises
    ------
    CceError
        If the structure has an operator, an array member has an initial value, or the structure
        cannot be parsed.
    """
    try:
        return _structure(tokens)
    except IndexError:
        raise CceError(tokens[0].position, "this structure cannot be parsed") from None


def _structure(tokens: list[Token]) -> list[Token]:
    opening = next(i for i, t in enumerate(tokens) if t.text == "{")
    depth, closing = 0, opening
    while depth or closing == opening:
        depth += BRACKETS.get(tokens[closing].text, 0)
        closing += 1
    head, behind = tokens[: opening + 1], tokens[closing - 1 :]
    if tokens[opening - 1].text in (
        "struct",
        "union",
    ):  # typedef struct {...} name;
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
    """Return the member declarations; ``classes.split`` has removed labels and methods."""
    members: list[list[Token]] = [[]]
    depth, called = 0, False
    for token in tokens:
        depth += BRACKETS.get(token.text, 0)
        called = called or (depth == 1 and token.text == "(")
        members[-1].append(token)
        if depth == 0 and (token.text == ";" or (called and token.text == "}")):
            members.append([])
            called = False
    return [m for m in members if m and m[0].text != ";"]


def _member(name: str, tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return a member without its initial values, and constants for the values."""
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
    # Declarations look up the constant by its name when they initialise an object.
    if texts[0] == "static" and "const" in texts:  # shared by all objects: a plain constant
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
            raise CceError(
                token.position, "initial values of arrays in structures are not supported"
            )
        words = ("static", "const", "auto", f"{MEMBER_PREFIX}{name}_{plain[-1].text}", "=")
        constants += [token._replace(kind="id", text=w, spaced=True) for w in words]
        constants += [*value, tokens[-1]]
        index = end
    return plain, constants
