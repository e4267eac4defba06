"""Lists in angle brackets, and of calls, in a row of tokens."""

from vitruvian.sim.davinci.cce.language.condition import whole
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, too_deep
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token

__all__ = ["arguments_of", "count_of", "folded"]


def arguments_of(tokens: list[Token], index: int) -> tuple[list[list[Token]], int]:
    """What is between the angle brackets that begin at `index`, and the index behind them.

    Raises
    ------
    CceError
        For a bracket that is not there, or not closed.
    """
    start = tokens[index] if index < len(tokens) else tokens[-1]
    if start.text != "<":
        raise CceError(start.position, "template must be followed by <parameters>")
    groups: list[list[Token]] = [[]]
    depth, inner = 1, 0
    for at in range(index + 1, len(tokens)):
        token = tokens[at]
        inner += BRACKETS.get(token.text, 0)
        if not inner and token.text == "<":
            depth += 1
            if depth > BRACKETS_DEEP:
                raise too_deep(token.position)
        elif not inner and token.text in (">", ">>"):
            depth -= len(token.text)
            if depth <= 0:
                return ([] if groups == [[]] else groups), at + 1
        if token.text in (";", "{"):
            break
        if token.text == "," and depth == 1 and not inner:
            groups.append([])
        else:
            groups[-1].append(token)
    raise CceError(start.position, "the '<' here is not closed")


def count_of(tokens: list[Token], index: int) -> int:
    """Arguments of a call whose bracket is at `index`."""
    depth, commas = 0, 0
    for at in range(index, len(tokens)):
        text = tokens[at].text
        depth += BRACKETS.get(text, 0)
        commas += text == "," and depth == 1
        if depth == 0:
            return 0 if at == index + 1 else commas + 1
    return 0


def folded(tokens: list[Token]) -> list[Token]:
    """A constant expression of numbers as one of them, if it is not negative."""
    if len(tokens) < 2 or any(t.kind not in ("number", "punctuation") for t in tokens):
        return tokens
    try:
        value = whole(tokens, tokens[0].position)
    except CceError:  # it may be none of integers
        return tokens
    return tokens if value < 0 else [tokens[0]._replace(kind="number", text=str(value))]
