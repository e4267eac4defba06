"""Parse a kernel's text into a syntax tree of C.

pycparser parses the rewritten text. Its lexer is adapted here: address spaces are type qualifiers,
and ``__global__`` is a function specifier.
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

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
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
    TopLevelDecl,
    choose,
    entry_of,
    split_declarations,
    to_c,
    type_words,
)


@dataclass(frozen=True)
class SyntaxTree:
    """A syntax tree.

    Attributes
    ----------
    file : str
        The name of the source file.
    entry : str
        The function to run.
    nodes : list of c_ast.Node
        The declarations of the outermost level.
    templates : Templates
        The function templates, whose instances are parsed when they are called.
    types : set of str
        The names of the types that the source defines.
    """

    file: str
    entry: str
    nodes: list
    templates: Templates
    types: set[str]

    def deduced(self, name: str, types: list[Type], position: SourcePosition) -> tuple[str, list]:
        """Return the template instance that a call names, and its nodes if it is new.

        The parameters and exceptions are those of ``Templates.deduced``.
        """
        instance, decls = self.templates.deduced(name, types, position)
        self.types.update(*(_type_names(p) for p in decls))
        return instance, _nodes(decls, self.types, self.file) if decls else []


#: Words of C that may precede an error without being the cause of it.
_WORDS = frozenset(
    """auto bool break case char const continue default do double else enum float for goto if inline
    int long return short signed sizeof static struct switch typedef union unsigned void volatile
    while""".split()
)


class _Lexer(CLexer):
    """The lexer of C, with qualifiers of the dialect and the columns of the source.

    ``columns`` maps (file, line, column) in the parsed text to the column in the source.
    """

    def __init__(self, columns: dict[tuple[str, int, int], int], **options):
        super().__init__(**options)
        self.columns = columns

    def token(self):
        """Return the next token."""
        token = super().token()
        if token is None:
            return None
        key = (token.filename, token.lineno, token.column)
        token.column = self.columns.get(key, token.column)
        if token.type == "ID":
            if token.value in SPACES or token.value == REFERENCE:
                token.type = "CONST"
            elif token.value == "__global__":
                token.type = "INLINE"
        return token


class _CParser(CParser):
    """The parser of pycparser with a position in every error, and bounded backtracking.

    It overrides methods that pycparser does not document as part of its interface.
    """

    reread = 0  # tokens that were read again after backtracking

    def _lex_error_func(self, msg, line, column):
        columns = getattr(self.clex, "columns", {})
        column = columns.get((self.clex.filename, line, column), column)
        super()._lex_error_func(msg, line, column)

    def _reset(self, mark):
        self.reread += self._mark() - mark
        if self.reread > EXPANDED:
            self._parse_error("Too many nested types in brackets", self.clex.filename)
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
    texts: dict[str, str] | None = None,
) -> SyntaxTree:
    """Parse the declarations that the entry reaches.

    Parameters
    ----------
    text, file, entry, directory, include_path
        As for ``cce.read``.
    defines : mapping of str to str, optional
        Macros in addition to ``PREDEFINED``.
    texts : dict of str to str, optional
        Receives the text of every included file by its name in positions.

    Returns
    -------
    SyntaxTree

    Raises
    ------
    CceError
        If the text is not in the dialect.
    """
    macros = {**PREDEFINED, **(defines or {})}
    folders = {"directory": directory, "include_path": include_path}
    tokens = preprocess(text, file, macros, reserved=RESERVED, texts=texts, **folders)
    decls = split_declarations(tokens)
    if not any(p.name for p in decls):
        message = (
            f"there is no function in this file{_undefined_macro(text, macros) or f'; {A_KERNEL}'}"
        )
        raise CceError(SourcePosition(file, 1), message)
    decls, first, templates = instantiate(decls, entry_of(decls, entry, file))
    chosen = choose(decls, first)
    for decl in chosen:
        check_nesting(decl.tokens, BRACKETS_DEEP)
    types = set().union(*(_type_names(p) for p in chosen))
    return SyntaxTree(file, str(first.name), _nodes(chosen, types, file), templates, types)


def _undefined_macro(text: str, macros: Mapping[str, str]) -> str:
    """Return a hint that names a compiler macro which the text tests, or nothing."""
    lines = re.findall(r"^[ \t]*#[ \t]*(?:el)?if(?:def)?\b(.*)", text, re.MULTILINE)
    words = [w for line in lines for w in re.findall(r"\b__\w+\b", line) if w not in macros]
    return f"; it asks for {words[0]}, which is not defined" if words else ""


def _nodes(decls: list[TopLevelDecl], types: set[str], file: str) -> list:
    """Parse declarations of a source that defines ``types``."""
    for token in (t for p in decls for t in p.tokens if t.kind == "other"):
        raise CceError(token.position, f"no C token begins with {token.text!r}")
    words = type_words(types)
    tokens = [t for p in decls for t in _with_typedef(p, to_c(p.tokens, *words))]
    check_nesting(tokens, 4 * BRACKETS_DEEP, 2 * NESTED)  # the rewrite adds brackets
    columns: dict[tuple[str, int, int], int] = {}
    # A typedef in the prelude must not redeclare a type that these declarations define.
    defined = set().union(*(_type_names(p) for p in decls))
    source = _prelude(defined, types - defined, tokens) + _layout(tokens, columns)
    parser = _CParser(lexer=partial(_Lexer, columns), dialect="c23")  # pyright: ignore[reportArgumentType]
    try:
        nodes = parser.parse(source, file).ext
    except ParseError as error:
        raise _readable(str(error), tokens, file, types) from None
    return [n for n in nodes if position_of(n).file != "<types>"]


def position_of(node: c_ast.Node) -> SourcePosition:
    """Return the position of a node, or of the first node within it that has one."""
    if node.coord is not None:
        return SourcePosition(node.coord.file, node.coord.line, node.coord.column or 1)
    children: Any = node.children()
    for _, child in children:
        return position_of(child)
    return SourcePosition("?", 0)


def _type_names(decl: TopLevelDecl) -> set[str]:
    """Return the names of the types that a declaration defines."""
    texts = [t.text for t in decl.tokens]
    if decl.name or not texts:
        return set()
    if texts[0] == "typedef":
        last = next((t for t in reversed(texts) if re.fullmatch(r"\w+", t)), "")
        return {last}
    if texts[:2] in (["enum", "class"], ["enum", "struct"]):
        return {texts[2]} if len(texts) > 2 else set()
    return {texts[1]} if _is_tagged(texts) else set()


def _is_tagged(texts: list[str]) -> bool:
    return texts[0] in ("struct", "union", "enum") and len(texts) > 2 and texts[2] == "{"


def _with_typedef(decl: TopLevelDecl, tokens: list[Token]) -> list[Token]:
    """Add a typedef for the tag of a structure, which is a type name in C++."""
    texts = [t.text for t in tokens]
    if decl.name or not _is_tagged(texts):
        return tokens
    end = tokens[-1]
    words = ["typedef", texts[0], texts[1], texts[1], ";"]
    return tokens + [end._replace(text=w, spaced=True) for w in words]


def _prelude(defined: set[str], known: set[str], tokens: list[Token]) -> str:
    """Return typedefs for the types that the tokens use without defining them.

    The parser only has to know that these words are types, so each of them is an int to it.
    """
    used = {t.text for t in tokens} - defined
    names = [n for n in TYPE_NAMES.keys() | known if n in used]
    return '# 1 "<types>"\n' + "".join(f"typedef int {n};\n" for n in names)


def _layout(tokens: list[Token], columns: dict[tuple[str, int, int], int]) -> str:
    """Return a text with every token in its line; ``columns`` gets the columns of the source."""
    # A line directive costs less than many empty lines, and more than a few.
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


def _readable(message: str, tokens: list[Token], file: str, types: set[str]) -> CceError:
    """Return the parser's message as a ``CceError`` with a position and a hint."""
    match = re.match(r"(?:(.*?):(\d+)(?::(\d+))?: )?(.*)", message, re.DOTALL)
    assert match is not None  # every part of the pattern is optional
    name, line, column, rest = match.groups()
    if line is None:
        last = tokens[-1].position if tokens else SourcePosition(file, 1)
        return CceError(last, f"syntax error at the end: {rest.removeprefix(f'{file}: ')}")
    position = SourcePosition(name, int(line), int(column or 1))
    word = rest.removeprefix("before: ") if rest.startswith("before: ") else None
    known = types | TYPE_NAMES.keys() | CONSTANTS.keys() | SPACES.keys() | _WORDS
    line_tokens = [t for t in tokens if t.position[:2] == position[:2]]
    suspect = _suspect(line_tokens, position, word)
    if suspect is not None and suspect not in known:
        hint = f"; {suspect} is not a known type"
    elif word is None and "&" in [t.text for t in line_tokens if t.position > position]:
        hint = "; such a reference is not part of the dialect"
    else:
        hint = ""
    if word is None:
        return CceError(position, f"syntax error: {rest[:1].lower()}{rest[1:]}{hint}")
    return CceError(position, f"syntax error before {word!r}{hint}")


def _suspect(line: list[Token], position: SourcePosition, word: str | None) -> str | None:
    """Return the name before the error that may be a misspelt type, or None."""
    before = [t for t in line if t.position < position]
    if word == ")":  # `(x *)`
        while before and before[-1].text == "*":
            before.pop()
    elif word is None:
        passed = SPACES.keys() | {"const", "static", "volatile"}
        before = [t for t in line if t.position >= position and t.text not in passed][:1]
    declares = len(before) > 1 and before[-2].text in ("auto", *TYPE_NAMES, *_WORDS)
    if not before or before[-1].kind != "id" or declares:
        return None
    return before[-1].text.removeprefix(CAST_PREFIX)
