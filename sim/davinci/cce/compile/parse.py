"""A kernel's text to a syntax tree of C.

pycparser parses; it is given its tokens by a lexer of ours that takes address spaces for qualifiers
and `__global__` for a function specifier.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pycparser import c_ast
from pycparser.c_lexer import CLexer
from pycparser.c_parser import CParser, ParseError

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.keywords import (
    CONSTANTS,
    PREDEFINED,
    RESERVED,
    SPACES,
    TYPE_NAMES,
)
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, EXPANDED, NESTED, check_nesting
from vitruvian.sim.davinci.cce.language.preprocess import preprocess
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.language.types import Type
from vitruvian.sim.davinci.cce.rewrite.cplusplus import REFERENCE
from vitruvian.sim.davinci.cce.rewrite.templates import Templates, instantiate
from vitruvian.sim.davinci.cce.rewrite.toplevel import (
    A_KERNEL,
    CAST_PREFIX,
    Part,
    choose,
    entry_of,
    parts_of,
    to_c,
    type_words,
)

__all__ = ["Tree", "parse", "position_of"]


@dataclass(frozen=True)
class Tree:
    """A syntax tree and the name of the function to run."""

    file: str
    entry: str
    nodes: list  # of c_ast.Node, at the outermost level
    templates: Templates
    types: set[str]

    def deduced(self, name: str, types: list[Type], position: Position) -> tuple[str, list]:
        """The instance of a template that a call is of, and nodes that were made for it."""
        instance, parts = self.templates.deduced(name, types, position)
        self.types.update(*(_type_names(p) for p in parts))
        return instance, _nodes(parts, self.types, self.file) if parts else []


#: Of C, that can stand before something wrong without being it.
_WORDS = frozenset(
    """auto bool break case char const continue default do double else enum float for goto if inline
    int long return short signed sizeof static struct switch typedef union unsigned void volatile
    while""".split()
)


class _Lexer(CLexer):
    """C's tokens; some names are qualifiers. `columns` are those of the source."""

    def __init__(self, columns: dict[tuple[str, int, int], int], **options):
        super().__init__(**options)
        self.columns = columns

    def token(self):
        """Give the next token."""
        token = super().token()
        if token is None:
            return None
        here = (token.filename, token.lineno, token.column)
        token.column = self.columns.get(here, token.column)
        if token.type == "ID":
            if token.value in SPACES or token.value == REFERENCE:
                token.type = "CONST"
            elif token.value == "__global__":
                token.type = "INLINE"
        return token


class _Parser(CParser):
    """A parser whose every complaint has a place."""

    def _lex_error_func(self, msg, line, column):
        columns = getattr(self.clex, "columns", {})
        column = columns.get((self.clex.filename, line, column), column)
        super()._lex_error_func(msg, line, column)

    reread = 0  # tokens that were read again as something else

    def _reset(self, mark):
        self.reread += self._mark() - mark
        if self.reread > EXPANDED:
            self._parse_error("Too many types in brackets within each other", self.clex.filename)
        super()._reset(mark)

    def _parse_error(self, msg, coord):
        token = None if hasattr(coord, "line") else self._tokens.peek()
        if token is not None:
            msg, coord = f"before: {token.value}", self._tok_coord(token)
        super()._parse_error(msg, coord)


def parse(
    text: str,
    file: str = "kernel.cce",
    *,
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    directory: Path | None = None,
    include_path: Sequence[str | Path] = (),
) -> Tree:
    """Parse what the entry reaches.

    Parameters
    ----------
    text, file : str
        The source, and its name in messages.
    entry : str, optional
        The function to run; by default the only `__global__` one, or the only one.
    defines : mapping of str to str, optional
    directory : Path, optional
        Where files that it includes are.
    include_path : sequence of str or Path
        Further folders of them.

    Raises
    ------
    CceError
        For whatever is not in the dialect.
    """
    macros = {**PREDEFINED, **(defines or {})}
    where = {"directory": directory, "include_path": include_path}
    tokens = preprocess(text, file, macros, reserved=RESERVED, **where)
    parts = parts_of(tokens)
    if not any(p.name for p in parts):
        message = f"there is no function in this file{_wanted(text, macros) or f'; {A_KERNEL}'}"
        raise CceError(Position(file, 1), message)
    parts, first, templates = instantiate(parts, entry_of(parts, entry, file))
    chosen = choose(parts, first)
    for part in chosen:
        check_nesting(part.tokens, BRACKETS_DEEP)
    types = set().union(*(_type_names(p) for p in chosen))
    return Tree(file, str(first.name), _nodes(chosen, types, file), templates, types)


def _wanted(text: str, macros: Mapping[str, str]) -> str:
    """What else a text asks for before it has a function: a macro of the compiler's."""
    lines = re.findall(r"^[ \t]*#[ \t]*(?:el)?if(?:def)?\b(.*)", text, re.MULTILINE)
    words = [w for line in lines for w in re.findall(r"\b__\w+\b", line) if w not in macros]
    return f"; it asks for {words[0]}, which is not defined" if words else ""


def _nodes(parts: list[Part], types: set[str], file: str) -> list:
    """Parse parts of a source; `types` are those that it makes."""
    for token in (t for p in parts for t in p.tokens if t.kind == "other"):
        raise CceError(token.position, f"no C token begins with {token.text!r}")
    words = type_words(types)
    tokens = [t for p in parts for t in _with_typedef(p, to_c(p.tokens, *words))]
    check_nesting(tokens, 4 * BRACKETS_DEEP, 2 * NESTED)  # casts and templates add brackets
    # A declaration of a name that is known here anyway would hide it.
    columns: dict[tuple[str, int, int], int] = {}
    made = set().union(*(_type_names(p) for p in parts))
    source = _prelude(made, types - made, tokens) + _layout(tokens, columns)
    parser = _Parser(lexer=partial(_Lexer, columns), dialect="c23")  # pyright: ignore[reportArgumentType]
    try:
        nodes = parser.parse(source, file).ext
    except ParseError as error:
        raise _clear(str(error), tokens, file, types) from None
    return [n for n in nodes if position_of(n).file != "<types>"]


def position_of(node: c_ast.Node) -> Position:
    """Where a node is; the first place known within it if it has none itself."""
    if node.coord is not None:
        return Position(node.coord.file, node.coord.line, node.coord.column or 1)
    children: Any = node.children()
    for _, child in children:
        return position_of(child)
    return Position("?", 0)


def _type_names(part: Part) -> set[str]:
    """Types that a declaration makes."""
    texts = [t.text for t in part.tokens]
    if part.name or not texts:
        return set()
    if texts[0] == "typedef":
        last = next((t for t in reversed(texts) if re.fullmatch(r"\w+", t)), "")
        return {last}
    if texts[:2] in (["enum", "class"], ["enum", "struct"]):
        return {texts[2]} if len(texts) > 2 else set()
    return {texts[1]} if _is_tagged(texts) else set()


def _is_tagged(texts: list[str]) -> bool:
    return texts[0] in ("struct", "union", "enum") and len(texts) > 2 and texts[2] == "{"


def _with_typedef(part: Part, tokens: list[Token]) -> list[Token]:
    """In C++ the tag of a structure is a type by itself."""
    texts = [t.text for t in tokens]
    if part.name or not _is_tagged(texts):
        return tokens
    end = tokens[-1]
    words = ["typedef", texts[0], texts[1], texts[1], ";"]
    return tokens + [end._replace(text=w, spaced=True) for w in words]


def _prelude(made: set[str], known: set[str], tokens: list[Token]) -> str:
    """Definitions of types that the tokens use and do not make, for the parser to know them."""
    used = {t.text for t in tokens} - made
    names = [n for n in TYPE_NAMES.keys() | known if n in used]
    return '# 1 "<types>"\n' + "".join(f"typedef int {n};\n" for n in names)


def _layout(tokens: list[Token], columns: dict[tuple[str, int, int], int]) -> str:
    """Text in which every token is in its line; `columns` gets where it was in that."""
    pieces: list[str] = []
    file, line, column = None, 0, 1
    for token in tokens:
        at = token.position
        if at.file != file or not 0 <= at.line - line < 8:
            pieces.append(f'\n# {at.line} "{at.file}"\n')
            file, line, column = at.file, at.line, 1
        elif at.line > line:
            pieces.append("\n" * (at.line - line))
            line, column = at.line, 1
        gap = max(at.column - column, 0 if column == 1 else 1)
        pieces.append(" " * gap + token.text)
        columns[at.file, at.line, column + gap] = at.column
        column += gap + len(token.text)
    return "".join(pieces)


def _clear(message: str, tokens: list[Token], file: str, types: set[str]) -> CceError:
    """The parser's message as one of ours, with its place and what it did not understand."""
    found = re.match(r"(?:(.*?):(\d+)(?::(\d+))?: )?(.*)", message, re.DOTALL)
    assert found is not None  # all of it is optional
    name, line, column, rest = found.groups()
    if line is None:
        last = tokens[-1].position if tokens else Position(file, 1)
        return CceError(last, f"syntax error at the end: {rest.removeprefix(f'{file}: ')}")
    here = Position(name, int(line), int(column or 1))
    word = rest.removeprefix("before: ") if rest.startswith("before: ") else None
    known = types | TYPE_NAMES.keys() | CONSTANTS.keys() | SPACES.keys() | _WORDS
    line_tokens = [t for t in tokens if t.position[:2] == here[:2]]
    suspect = _suspect(line_tokens, here, word)
    if suspect is not None and suspect not in known:
        hint = f"; {suspect} is not a type known here"
    elif word is None and "&" in [t.text for t in line_tokens if t.position > here]:
        hint = "; such a reference is not part of the dialect"
    else:
        hint = ""
    if word is None:
        return CceError(here, f"syntax error: {rest[:1].lower()}{rest[1:]}{hint}")
    return CceError(here, f"syntax error before {word!r}{hint}")


def _suspect(line: list[Token], here: Position, word: str | None) -> str | None:
    """What stands in a line where a type may have been meant; None when nothing does."""
    before = [t for t in line if t.position < here]
    if word == ")":  # `(x *)`
        while before and before[-1].text == "*":
            before.pop()
    elif word is None:
        passed = SPACES.keys() | {"const", "static", "volatile"}
        before = [t for t in line if t.position >= here and t.text not in passed][:1]
    declares = len(before) > 1 and before[-2].text in ("auto", *TYPE_NAMES, *_WORDS)
    if not before or before[-1].kind != "id" or declares:
        return None
    return before[-1].text.removeprefix(CAST_PREFIX)
