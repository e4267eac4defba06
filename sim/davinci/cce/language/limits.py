"""Resource limits of a source text, which bound the time and memory that a hostile text can take.

No kernel written by people or generators comes near them. A source that exceeds a limit is refused
with a message that names the limit and the position.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.tokens import Token

SOURCE_BYTES = 4 << 20  # total size of a file and all files that it includes
FILES = 1000  # included files
EXPANDED = 100_000  # tokens that macros or templates produce
WORD_LENGTH = 1 << 16  # characters of a token other than a comment
BRACKETS_DEEP = 256  # nesting of brackets, macro calls and conditional directives
NESTED = 2048  # nesting of brackets, operators and statements without braces
PARTS_OF_A_STEP = 16  # expressions of a loop iteration or call that count as one step
TYPE_LEVELS = 64  # nesting of pointers, arrays and structures in a type

_FRAMES = 30_000  # Python stack frames that the deepest accepted source needs
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_STATEMENTS = frozenset("if else for while do switch case default :".split())
_OPERATORS = frozenset(
    """+ - * / % & | ^ ~ ! < > = ? -> . ++ -- << >> <= >= == != && || += -= *= /= %= &= ^= |=
    <<= >>= sizeof""".split()
)


def too_deep(position: SourcePosition, limit: int = BRACKETS_DEEP) -> CceError:
    """Return the error for nesting more than ``limit`` deep."""
    return CceError(position, f"nesting must be at most {limit} deep")


def check_nesting(tokens: Sequence[Token], brackets: int, nested: int = NESTED) -> None:
    """Refuse a source that a recursive-descent parser could not read.

    The function counts nested brackets, and adds to them the operators of each open expression and
    the open statements without braces. The sum is an upper bound of the parser's recursion depth.

    Parameters
    ----------
    tokens : sequence of Token
        The source.
    brackets : int
        The most brackets that may be nested, and the most that may follow each other as in
        ``a[1][1]``.
    nested : int
        The largest sum.

    Raises
    ------
    CceError
        At the first token that exceeds a limit.
    """
    # For each open bracket: the counts outside of it, which apply again when it closes.
    outer: list[tuple[int, int, int, int]] = []
    # `pending` counts each ? whose : is still missing; `row` counts brackets in a row.
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
                # A block is a statement, and ends those that hold it.
                if text == "}" and not _goes_on(tokens, index):
                    statements = operators = pending = 0
        elif text == ";":  # ends an expression, and all statements that hold it, but for an else
            operators = pending = 0
            if not _goes_on(tokens, index):
                statements = 0
        elif text == ",":
            if not pending:  # in a ? b, c : d the comma does not end the conditional
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
    """Return True if the statement that ends at ``index`` continues with an else."""
    return index + 1 < len(tokens) and tokens[index + 1].text == "else"


_lock = threading.Lock()
_users: list[int] = []  # the recursion limit before each active `deep_stack`


@contextmanager
def deep_stack() -> Iterator[None]:
    """Raise Python's recursion limit to what a source within ``check_nesting`` needs.

    The limit belongs to the whole process, so the last of several concurrent users restores it.
    """
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
