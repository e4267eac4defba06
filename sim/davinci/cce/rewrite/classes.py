"""Rewrite classes: methods become free functions with an explicit ``__self`` parameter."""

from collections.abc import Iterator

from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.tokens import BRACKETS, Token
from vitruvian.sim.davinci.cce.rewrite.template_args import arguments_of

#: The parameter of a method that refers to its object.
SELF = "__self"

_LABELS = ("public", "private", "protected")


def method_name(structure: str, method: str) -> str:
    """Return the name of the function that a method becomes.

    A method with the name of its structure is the constructor.
    """
    return f"{structure}__{method}"


def split(tokens: list[Token]) -> tuple[list[Token], list[tuple[str, list[Token]]]]:
    """Split a class into a plain structure and its methods.

    Parameters
    ----------
    tokens : list of Token
        The definition of a structure or class.

    Returns
    -------
    structure : list of Token
        The definition without methods.
    methods : list of (str, list of Token)
        The name and the definition of the function for each method.

    Raises
    ------
    CceError
        If a method has no body, or the class cannot be parsed.
    """
    try:
        return _split(tokens)
    except IndexError:
        raise CceError(tokens[0].position, "this class cannot be parsed") from None


def _split(tokens: list[Token]) -> tuple[list[Token], list[tuple[str, list[Token]]]]:
    opening = next(i for i, t in enumerate(tokens) if t.text == "{")
    closing = _closing(tokens, opening)
    name = tokens[opening - 1].text
    plain: list[Token] = []
    methods = []
    for member in _members(tokens[opening + 1 : closing]):
        at = _bracket(member)
        if at is None:
            plain += member
            continue
        if [t.text for t in member[-3:]] in (["=", "default", ";"], ["=", "delete", ";"]):
            continue
        if member[at - 1].text == name and member[at - 2 : at - 1] and member[at - 2].text == "~":
            # No object is ever destroyed here, so only an empty destructor has the right effect.
            if [t.text for t in member[-2:]] != ["{", "}"]:
                raise CceError(member[at - 1].position, f"~{name} must have an empty body")
            continue
        function = method_name(name, member[at - 1].text)
        methods.append((function, _function(name, function, member, at)))
    templates = {function for function, m in methods if m[0].text == "template"}
    # Plain calls of methods are resolved when they are compiled, but calls of method templates have
    # to be instances before.
    methods = [(function, _with_self(name, m, templates)) for function, m in methods]
    return [*tokens[: opening + 1], *plain, *tokens[closing:]], methods


def _with_self(name: str, tokens: list[Token], templates: set[str]) -> list[Token]:
    """Rewrite calls ``f<T>(x)`` of a method template as calls of its function."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        function = method_name(name, token.text)
        if function not in templates or following != "<" or (result and result[-1].text == "."):
            result.append(token)
            index += 1
            continue
        _, end = arguments_of(tokens, index + 1)
        result += [token._replace(text=function), *tokens[index + 1 : end + 1]]
        result.append(token._replace(text=SELF))
        if end + 1 < len(tokens) and tokens[end + 1].text != ")":
            result.append(token._replace(kind="punctuation", text=","))
        index = end + 1
    return result


def _members(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the members: declarations with semicolons, methods with bodies; labels are skipped."""
    index = 0
    while index < len(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if tokens[index].text in _LABELS and following == ":":
            index += 2
            continue
        end = index
        while end < len(tokens) and tokens[end].text != ";":
            # A member with a body ends at its closing brace, any other at its semicolon. The braces
            # of `int a{3};` are not a body, nor those of a constructor's list `: a{3}, b{4} {...}`.
            if BRACKETS.get(tokens[end].text, 0) > 0:
                is_body = tokens[end].text == "{" and _bracket(tokens[index:end]) is not None
                end = _closing(tokens, end)
                after = tokens[end + 1].text if end + 1 < len(tokens) else ""
                is_body = is_body and after not in (",", "{")  # otherwise an initialiser in braces
                if is_body:
                    break
            end += 1
        member = tokens[index : end + 1]
        if member[0].text != ";":
            yield member
        index = end + 1


def _bracket(tokens: list[Token]) -> int | None:
    """Return the index of the parenthesis before a method's parameters, or None for data."""
    start, depth = 0, 0
    if tokens and tokens[0].text == "template":
        start, depth = 2, 1
    while depth > 0 and start < len(tokens):
        depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[start].text, 0)
        start += 1
    for at in range(start, len(tokens)):
        if tokens[at].text in ("=", "{"):
            return None
        if tokens[at].text == "(":
            inside = tokens[at + 1].text if at + 1 < len(tokens) else ""
            return at if tokens[at - 1].kind == "id" and inside != "*" else None
    return None


def _function(name: str, function: str, tokens: list[Token], at: int) -> list[Token]:
    """Return a method as the definition of ``function``; its parameters begin at ``at``."""
    method = tokens[at - 1]
    closing = _closing(tokens, at)
    body = next((i for i in range(closing, len(tokens)) if tokens[i].text == "{"), None)
    if tokens[-1].text != "}" or body is None:
        raise CceError(method.position, f"method {method.text} must be defined inside {name}")
    # The new first parameter is a reference to the object, which ``cplusplus`` rewrites like any
    # other reference.
    words = [method._replace(kind="id", text=w, spaced=True) for w in (name, "&", SELF)]
    words[1] = words[1]._replace(kind="punctuation")
    if closing > at + 1:
        words.append(method._replace(kind="punctuation", text=","))
    before = [t for t in tokens[: at - 1] if t.text != "static"]
    if method.text == name:
        before.append(method._replace(text="void", spaced=True))
    head = [*before, method._replace(text=function, spaced=True), tokens[at], *words]
    first, body = _initialisers(tokens, closing + 1)
    return [*head, *tokens[at + 1 : closing + 1], tokens[body], *first, *tokens[body + 1 :]]


def _initialisers(tokens: list[Token], index: int) -> tuple[list[Token], int]:
    """Return a constructor's list ``: a(1), b{2}`` as assignments, and the index of its body."""
    while tokens[index].text not in (":", "{"):
        index += 1
    if tokens[index].text == "{":
        return [], index
    result: list[Token] = []
    while tokens[index].text != "{":
        member, opening = tokens[index + 1], index + 2
        closing = _closing(tokens, opening)
        value = tokens[opening + 1 : closing]
        marks = [member._replace(kind="punctuation", text=t) for t in (".", "=", "(", ")", ";")]
        self_ = member._replace(text=SELF, spaced=True)
        if value:  # otherwise the member stays zero
            result += [self_, marks[0], member, marks[1], marks[2], *value, marks[3], marks[4]]
        index = closing + 1
    return result, index


def _closing(tokens: list[Token], opening: int) -> int:
    """Return the index of the bracket that closes the one at ``opening``."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += BRACKETS.get(tokens[index].text, 0)
        if depth == 0:
            return index
    raise CceError(tokens[opening].position, f"the {tokens[opening].text!r} here is not closed")
