"""Split a source text into tokens with positions."""

import re
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition

#: The change of nesting depth at each bracket.
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

# "@@" stands for the patterns of quoted strings and characters, which depend on the line.
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

#: The pattern of C tokens, keyed by the quotes that do not begin a token.
_PATTERNS = {
    without: re.compile(
        _SOURCE.replace("@@", "".join(p for c, p in _QUOTED.items() if c not in without))
    )
    for without in ("", '"', "'", "\"'")
}


class Token(NamedTuple):
    """A token; ``spaced`` is True if white space precedes it."""

    kind: str  # id, number, string, char, punctuation, newline, or other (not a C token)
    text: str
    position: SourcePosition
    spaced: bool = False


def tokenize(text: str, file: str) -> list[Token]:
    """Return the tokens of a source, line ends included, without comments and line splices.

    A character that begins no C token becomes a token of kind "other": it is an error only if the
    parser reads it.

    Raises
    ------
    CceError
        If a comment does not end.
    """
    tokens, index, line, start, spaced = [], 0, 1, 0, True
    pattern, closed, end = _PATTERNS[""], "", 0
    while index < len(text):
        if closed and index >= end:
            pattern, closed = _PATTERNS[""], ""
        position = SourcePosition(file, line, index - start + 1)
        match = pattern.match(text, index)
        if match is None:
            if text[index] in _QUOTED and text[index] not in closed:
                # The line has no closing quote of this kind. Later quotes of the line have none
                # either, and searching again for each of them would take quadratic time.
                closed = "".join(sorted(closed + text[index]))
                pattern, end = _PATTERNS[closed], text.find("\n", index) % (len(text) + 1)
            tokens.append(Token("other", text[index], position, spaced))
            index, spaced = index + 1, False
            continue
        kind, word = str(match.lastgroup), match[0]
        index = match.end()
        if kind == "open":
            raise CceError(position, "the comment that begins here does not end")
        if kind in ("space", "comment", "splice"):
            spaced = True
        else:
            tokens.append(Token(kind, word, position, spaced))
            spaced = kind == "newline"
        if "\n" in word:
            line += word.count("\n")
            start = match.start() + word.rindex("\n") + 1
    return tokens
