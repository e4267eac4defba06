"""Parse the argument lists of templates and calls in a sequence of tokens."""

from vitruvian.sim.davinci.cce.language.condition import evaluate
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, too_deep
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token


def arguments_of(tokens: list[Token], index: int) -> tuple[list[list[Token]], int]:
    """Return the comma-separated list in the angle brackets at ``index``.

    Returns
    -------
    arguments : list of list of Token
        The tokens of each item.
    end : int
        The index after the closing bracket.

    Raises
    ------
    CceError
        If there is no opening bracket at ``index``, or it is not closed.
    """
    start = tokens[index] if index < len(tokens) else tokens[-1]
    if start.text != "<":
        raise CceError(start.position, "the parameters of a template must be in angle brackets")
    groups: list[list[Token]] = [[]]
    depth, inner = 1, 0
    for at in range(index + 1, len(tokens)):
        token = tokens[at]
        inner += BRACKETS.get(token.text, 0)
        if not inner and token.text == "<":
            depth += 1
            if depth > BRACKETS_DEEP:
                raise too_deep(token.position)
        elif not inner and token.text in (">", ">>"):  # >> closes two lists, as in A<B<int>>
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
    """Return the number of arguments of the call whose parenthesis is at ``index``."""
    depth, commas = 0, 0
    for at in range(index, len(tokens)):
        text = tokens[at].text
        depth += BRACKETS.get(text, 0)
        commas += text == "," and depth == 1
        if depth == 0:
            return 0 if at == index + 1 else commas + 1
    return 0


def folded(tokens: list[Token]) -> list[Token]:
    """Return a constant expression as a single number.

    An expression with names or with a negative value is returned as it is.
    """
    if len(tokens) < 2 or any(t.kind not in ("number", "punctuation") for t in tokens):
        return tokens
    try:
        value = evaluate(tokens, tokens[0].position)
    except CceError:  # for example a floating-point number
        return tokens
    return tokens if value < 0 else [tokens[0]._replace(kind="number", text=str(value))]
