"""Parse the grammar of liberty files: groups, attributes and the line of a syntax error."""

import re
from dataclasses import dataclass, field
from typing import Any

from vitruvian.common.errors import UserError

#: Groups that are skipped, from their name to the closing brace.
_SKIPPED = {"internal_power", "leakage_power", "pg_pin", "wire_load_selection"}
_POWER = {"internal_power", "leakage_power"}
_OPENING = re.compile(r"\s*\([^)]{0,1000}\)\s*\{")
_BRACE = re.compile(r"[{}]")
_COMMENT = re.compile(r"/\*|//[^\n]*|\\\r?\n")
#: Limits for one file; the largest published libraries stay below a tenth of them.
MOST_BYTES, MOST_TOKENS = 64 << 20, 5_000_000
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([\w.+\-!*&|^\'\[\]<>:/]+?(?=[\s:;,(){}"]|$))|([:;,(){}]))')


class LibertyError(UserError):
    """The file is not valid liberty, or lacks data that the flow needs."""


@dataclass
class Group:
    """One ``name (arguments) { … }`` of a liberty file."""

    name: str
    arguments: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    groups: list["Group"] = field(default_factory=list)
    repeated: dict[str, list[list[str]]] = field(default_factory=dict)

    def all(self, name: str) -> list["Group"]:
        """Return the direct subgroups called ``name``."""
        return [group for group in self.groups if group.name == name]


def parse_groups(text: str, name: str, *, power: bool = False) -> Group:
    """Return a nameless group that holds the groups of ``text``.

    Parameters
    ----------
    text : str
        Content of a liberty file.
    name : str
        Name of the file, for error messages.
    power : bool
        If True, keep the groups of power, which are a large part of a file.

    Raises
    ------
    LibertyError
        If the text is not valid liberty.
    """
    text = _without_comments(text, name)
    if not re.match(r"\s*library\s*\(", text):
        raise LibertyError(f"{name} must be a liberty file that starts with `library (NAME) {{`")
    root = Group("", [])
    stack = [root]
    tokens = _tokens(text, name, _SKIPPED - _POWER if power else _SKIPPED)
    position = 0
    while position < len(tokens):
        kind, word, at = tokens[position]
        following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        if kind == "mark" and word == "}" and len(stack) > 1:
            stack.pop()
            position += 1
        elif kind == "mark" and word == ";":
            position += 1
        elif kind == "word" and following == ":":
            value, position = _value(tokens, position + 2)
            stack[-1].attributes[word] = value
        elif kind == "word" and following == "(":
            arguments, position = _arguments(tokens, position + 2, text, name)
            if position < len(tokens) and tokens[position][:2] == ("mark", "{"):
                stack.append(Group(word, arguments))
                stack[-2].groups.append(stack[-1])
                position += 1
            else:
                stack[-1].attributes[word] = arguments
                stack[-1].repeated.setdefault(word, []).append(arguments)
        else:
            line = text.count("\n", 0, at) + 1
            raise LibertyError(f"{name} line {line}: liberty statement expected, not {word!r}")
    if len(stack) > 1:
        raise LibertyError(
            f"{name}: group `{stack[-1].name}` must be closed by `}}` before the end"
        )
    return root


def _without_comments(text: str, name: str) -> str:
    """Replace comments and line continuations by the same number of line ends."""
    parts, position = [], 0
    while comment := _COMMENT.search(text, position):
        parts.append(text[position : comment.start()])
        end = comment.end()
        if comment.group() == "/*":
            end = text.find("*/", end) + 2
            if end < 2:
                line = text.count("\n", 0, comment.start()) + 1
                raise LibertyError(f"{name} line {line}: a comment must be closed by `*/`")
        parts.append("\n" * text.count("\n", comment.start(), end) or " ")
        position = end
    return "".join([*parts, text[position:]])


def _skipped(text: str, position: int) -> int:
    """Return the position behind the group whose name ends at ``position``.

    If no group starts there, return ``position`` itself.
    """
    opening = _OPENING.match(text, position)
    if not opening:
        return position
    depth, end = 1, opening.end()
    while depth:
        brace = _BRACE.search(text, end)
        if not brace:
            return len(text)
        depth += 1 if brace.group() == "{" else -1
        end = brace.end()
    return end


def _tokens(text: str, name: str, skipped: set[str]) -> list[tuple[str, str, int]]:
    tokens = []
    position, end = 0, len(text.rstrip())
    match = _TOKEN.match
    while position < end:
        token = match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            snippet = text[position : position + 20].strip().split("\n")[0]
            raise LibertyError(f"{name} line {line}: not liberty: {snippet!r}")
        number = token.lastindex or 0
        # Timing does not need the power tables, so that they are not tokenised.
        if number == 2 and token.group(2) in skipped:
            behind = _skipped(text, token.end())
            if behind > token.end():
                position = behind
                continue
        tokens.append((("", "word", "word", "mark")[number], token.group(number), position))
        if len(tokens) > MOST_TOKENS:
            raise LibertyError(f"{name} must have at most {MOST_TOKENS} words and marks")
        position = token.end()
    return tokens


def _value(tokens: list[tuple[str, str, int]], position: int) -> tuple[str, int]:
    words = []
    while position < len(tokens) and tokens[position][1] not in (";", "}"):
        words.append(tokens[position][1])
        position += 1
        # A missing semicolon is tolerated: the next statement ends the value.
        if tokens[position - 1][2] and position < len(tokens):
            following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
            if tokens[position][0] == "word" and following in (":", "("):
                break
    return " ".join(words), position


def _arguments(
    tokens: list[tuple[str, str, int]], position: int, text: str, name: str
) -> tuple[list[str], int]:
    arguments = []
    while position < len(tokens) and tokens[position][:2] != ("mark", ")"):
        if tokens[position][0] == "word":
            arguments.append(tokens[position][1])
        elif tokens[position][1] != ",":
            line = text.count("\n", 0, tokens[position][2]) + 1
            raise LibertyError(f"{name} line {line}: `)` expected, not {tokens[position][1]!r}")
        position += 1
    return arguments, position + 1
