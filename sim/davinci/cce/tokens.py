"""Characters to tokens, every one with its place."""

import re
from typing import NamedTuple

from .errors import CceError, Position

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

_TOKEN = re.compile(
    r"(?P<splice>\\[ \t]*\r?\n)"
    r"|(?P<newline>\r?\n)"
    r"|(?P<space>[ \t\f\v\r]+|\ufeff)"
    r"|(?P<comment>//(?:\\\r?\n|[^\n])*|/\*(?:[^*]|\*(?!/))*\*/)"
    r"|(?P<open>/\*)"
    r"|(?P<id>[A-Za-z_$][A-Za-z_0-9$]*)"
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.]|'(?=[0-9A-Za-z]))*)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')"
    r"|(?P<punctuation>"
    + "|".join(map(re.escape, _PUNCTUATION))
    + r"|[-+*/%&|^~!<>=?:;,.(){}\[\]#])"
)


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
    while index < len(text):
        here = Position(file, line, index - start + 1)
        match = _TOKEN.match(text, index)
        if match is None:  # it may stand in text that is not read
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
