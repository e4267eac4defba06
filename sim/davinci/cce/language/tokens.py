"""Characters to tokens, every one with its place."""

import re
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, Position

__all__ = ["BRACKETS", "Token", "tokenize"]

#: How deep a bracket leads, or back.
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

_PUNCTUATION = (
    "<<<",
    ">>>",
    "<<=",
    ">>=",
    "...",
    "->",
    "++",
    "--",
    "<<",
    ">>",
    "<=",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "&=",
    "^=",
    "|=",
    "##",
    "::",
)

_SOURCE = (
    r"(?P<splice>\\[ \t]*\r?\n)"
    r"|(?P<newline>\r?\n)"
    r"|(?P<space>[ \t\f\v\r]+|\ufeff)"
    r"|(?P<comment>//(?:\\\r?\n|[^\n])*|/\*(?:[^*]|\*(?!/))*\*/)"
    r"|(?P<open>/\*)"
    r"|(?P<id>[A-Za-z_$][A-Za-z_0-9$]*)"
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.]|'(?=[0-9A-Za-z]))*)"
    r"@@|(?P<punctuation>"
    + "|".join(map(re.escape, _PUNCTUATION))
    + r"|[-+*/%&|^~!<>=?:;,.(){}\[\]#])"
)


_QUOTED = {
    '"': r'|(?P<string>"(?:\\.|[^"\\\n])*")',
    "'": r"|(?P<char>'(?:\\.|[^'\\\n])+')",
}

#: The tokens of C, by the quotes that begin none of them.
_PATTERNS = {
    without: re.compile(
        _SOURCE.replace("@@", "".join(p for c, p in _QUOTED.items() if c not in without))
    )
    for without in ("", '"', "'", "\"'")
}


class Token(NamedTuple):
    """A word of the source: its kind, its text, where it is, and whether a space precedes it."""

    kind: str  # id, number, string, char, punctuation, newline, or other: no token of C
    text: str
    position: Position
    spaced: bool = False


def tokenize(text: str, file: str) -> list[Token]:
    """Tokens of a source, ends of line among them; comments and spliced lines are gone.

    Raises
    ------
    CceError
        For a comment that does not end.
    """
    tokens, index, line, start, spaced = [], 0, 1, 0, True
    pattern, closed, end = _PATTERNS[""], "", 0
    while index < len(text):
        if closed and index >= end:
            pattern, closed = _PATTERNS[""], ""
        here = Position(file, line, index - start + 1)
        match = pattern.match(text, index)
        if match is None:  # it may stand in text that is not read
            if text[index] in _QUOTED and text[index] not in closed:
                # No later one of them in the line has its other end either: none is looked for.
                closed = "".join(sorted(closed + text[index]))
                pattern, end = _PATTERNS[closed], text.find("\n", index) % (len(text) + 1)
            tokens.append(Token("other", text[index], here, spaced))
            index, spaced = index + 1, False
            continue
        kind, word = str(match.lastgroup), match[0]
        index = match.end()
        if kind == "open":
            raise CceError(here, "the comment that begins here does not end")
        if kind in ("space", "comment", "splice"):
            spaced = True
        else:
            tokens.append(Token(kind, word, here, spaced))
            spaced = kind == "newline"
        if "\n" in word:
            line += word.count("\n")
            start = match.start() + word.rindex("\n") + 1
    return tokens
