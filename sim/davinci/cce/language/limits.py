"""What a source may ask for: bounds that no kernel written by people or generators comes near.

Each is checked where it is passed, with a message that names the limit and the place.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.tokens import Token

__all__ = [
    "BRACKETS_DEEP",
    "EXPANDED",
    "FILES",
    "NESTED",
    "PARTS_OF_A_STEP",
    "SOURCE_BYTES",
    "TYPE_LEVELS",
    "WORD_LENGTH",
    "check_nesting",
    "deep_stack",
    "too_deep",
]

SOURCE_BYTES = 4 << 20  # of a file and all that it includes
FILES = 1000  # that it includes
EXPANDED = 100_000  # tokens that macros and templates make
WORD_LENGTH = 1 << 16  # characters of a token that is no comment
BRACKETS_DEEP = 256  # brackets, calls of macros, conditions and files within each other
NESTED = 2048  # brackets, operators and statements without braces within each other
PARTS_OF_A_STEP = 16  # expressions that a pass of a loop, or a call, has for one step
TYPE_LEVELS = 64  # pointers, arrays and structures within each other

_FRAMES = 30_000  # of Python's, for a reader and a kernel that nest as deeply as they may
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_STATEMENTS = frozenset("if else for while do switch case default :".split())
_OPERATORS = frozenset(
    """+ - * / % & | ^ ~ ! < > = ? -> . ++ -- << >> <= >= == != && || += -= *= /= %= &= ^= |=
    <<= >>= sizeof""".split()
)


def too_deep(position: Position, limit: int = BRACKETS_DEEP) -> CceError:
    """The mistake of nesting more than `limit` deep."""
    return CceError(position, f"nesting must be at most {limit} deep")


def check_nesting(tokens: Sequence[Token], brackets: int, nested: int = NESTED) -> None:
    """Refuse what a parser that calls itself could not read.

    Counted are brackets within each other, and with them operators of one expression and
    statements that hold each other without braces: together no less than a parser's depth.

    Raises
    ------
    CceError
        At the token that is too deep.
    """
    outer: list[tuple[int, int, int, int]] = []
    total, statements, operators, pending, row = 0, 0, 0, 0, 0
    last = ""
    for index, token in enumerate(tokens):
        text = token.text
        if text in _OPEN:
            row = row + 1 if text != "{" and last in _CLOSE else 1
            outer.append((statements, operators, pending, row))
            total += 1 + statements + operators
            statements = operators = pending = row = 0
            if len(outer) > brackets:
                raise too_deep(token.position, brackets)
        elif text in _CLOSE:
            if outer:
                statements, operators, pending, row = outer.pop()
                total -= 1 + statements + operators
                if text == "}" and not _goes_on(tokens, index):
                    statements = operators = pending = 0
        elif text == ";":
            operators = pending = 0
            if not _goes_on(tokens, index):
                statements = 0
        elif text == ",":
            if not pending:
                operators = 0
        elif text in _STATEMENTS:
            statements += 1
            pending -= text == ":" and pending > 0
        elif text in _OPERATORS:
            operators += 1
            pending += text == "?"
        if total + statements + operators > nested:
            raise too_deep(token.position, nested)
        if row > brackets:
            raise CceError(token.position, f"brackets in a row must be at most {brackets}")
        last = text


def _goes_on(tokens: Sequence[Token], index: int) -> bool:
    """Whether a statement that ends here is the first half of an if."""
    return index + 1 < len(tokens) and tokens[index + 1].text == "else"


_lock = threading.Lock()
_users: list[int] = []  # the limit before each of those that are within `deep_stack`


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let Python's calls nest as deeply as what `check_nesting` lets through needs."""
    with _lock:
        _users.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_users[-1], _FRAMES))
    try:
        yield
    finally:
        with _lock:
            before = _users.pop() if len(_users) > 1 else _users.pop(0)
            if not _users:
                sys.setrecursionlimit(before)
