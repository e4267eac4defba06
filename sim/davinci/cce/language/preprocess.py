"""The preprocessor: conditional directives, macros and included files.

Every token keeps its position. A token that a macro produces has the position of the macro call, so
that a message names the line that the user wrote.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.condition import holds
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, EXPANDED, WORD_LENGTH, too_deep
from vitruvian.sim.davinci.cce.language.sources import IncludedSources
from vitruvian.sim.davinci.cce.language.tokens import Token, tokenize


class Macro(NamedTuple):
    """A macro definition; ``parameters`` is None for a macro without parentheses."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    variadic: bool = False


class _Condition(NamedTuple):
    """An open #if, #ifdef or #ifndef."""

    position: SourcePosition  # of the directive that opened it
    reading: bool  # the current branch is read
    taken: bool  # some branch up to here was read
    last: bool  # the current branch is the #else


def preprocess(
    text: str,
    file: str,
    defines: Mapping[str, str] | None = None,
    *,
    reserved: frozenset[str] = frozenset(),
    directory: Path | None = None,
    include_path: Sequence[str | Path] = (),
    texts: dict[str, str] | None = None,
) -> list[Token]:
    """Return the tokens of a source after preprocessing, without line ends.

    Parameters
    ----------
    text, file : str
        The source text, and its file name in positions.
    defines : mapping of str to str, optional
        Macros without parameters that are defined before the first line.
    reserved : frozenset of str
        Keywords of the language; a #define of one of them is ignored.
    directory : Path, optional
        The folder in which the file of an ``#include "..."`` is looked for; an included file looks
        in its own folder. An #include of a missing file, and any with angle brackets, is ignored.
        The reader knows the declarations of the usual headers; an error message names any other
        word that the kernel uses and nothing declares.
    include_path : sequence of str or Path
        Further folders in which included files are looked for.
    texts : dict of str to str, optional
        Receives the text of every included file by its name in positions.

    Returns
    -------
    list of Token

    Raises
    ------
    CceError
        If a directive is unknown, conditional directives do not pair up, a macro has the wrong
        number of arguments, an #error is reached, an included file is outside those folders, or one
        of ``limits`` is exceeded.
    """
    preprocessor = _Preprocessor(reserved, IncludedSources(directory, include_path), texts)
    for name, value in (defines or {}).items():
        body = [t for t in tokenize(value, f"-D{name}") if t.kind != "newline"]
        preprocessor.macros[name] = Macro(None, tuple(body))
    preprocessor.sources.take(text, SourcePosition(file, 1))
    return preprocessor.run(text, file, directory)


class _Preprocessor:
    """The macros and counters of one preprocessing run."""

    def __init__(
        self,
        reserved: frozenset[str],
        sources: IncludedSources,
        texts: dict[str, str] | None = None,
    ):
        self.reserved = reserved
        self.texts = {} if texts is None else texts
        self.macros: dict[str, Macro] = {}
        self.sources = sources
        self.once: set[Path] = set()  # files with #pragma once
        self.produced = 0  # tokens that macros have produced
        self.deep = 0  # nesting of macro calls in macro arguments

    def run(self, text: str, file: str, directory: Path | None) -> list[Token]:
        """Return the tokens of one file."""
        result: list[Token] = []
        pending: list[Token] = []  # lines since the last directive: a macro call may span lines
        conditions: list[_Condition] = []
        for line in _lines(tokenize(text, file)):
            if not line or line[0].text != "#":
                if all(c.reading for c in conditions):
                    pending += line
                continue
            reading = all(c.reading for c in conditions)
            if len(line) == 1:
                continue
            word, rest = line[1], line[2:]
            if word.text in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                result += self.expand(pending)
                pending.clear()
                self._condition(word, rest, conditions)
            elif reading:
                result += self.expand(pending)
                pending.clear()
                if word.text == "include":
                    result += self._include(rest, directory, word.position)
                else:
                    self._directive(word, rest, file, directory)
        if conditions:
            raise CceError(conditions[-1].position, "this condition has no #endif")
        return result + self.expand(pending)

    def _condition(self, word: Token, rest: list[Token], conditions: list[_Condition]) -> None:
        """Process #if, #ifdef, #ifndef, #elif, #else or #endif."""
        name = word.text
        if len(conditions) > BRACKETS_DEEP:
            raise too_deep(word.position)
        if name in ("elif", "else", "endif"):
            if not conditions:
                raise CceError(word.position, f"#{name} without an #if before it")
            old = conditions.pop()
            if name == "endif":
                return
            if old.last:
                raise CceError(word.position, f"#{name} after the #else of {old.position}")
            outer = all(c.reading for c in conditions)
            now = outer and not old.taken and (name == "else" or self._holds(word, rest))
            conditions.append(_Condition(old.position, now, old.taken or now, name == "else"))
            return
        if not all(c.reading for c in conditions):
            # Inside a branch that is not read, neither this branch nor a later one is read.
            conditions.append(_Condition(word.position, False, True, False))
            return
        if name == "if":
            now = self._holds(word, rest)
        else:
            if not rest or rest[0].kind != "id":
                raise CceError(word.position, f"#{name} must be followed by a name")
            now = (rest[0].text in self.macros) == (name == "ifdef")
        conditions.append(_Condition(word.position, now, now, False))

    def _holds(self, word: Token, rest: list[Token]) -> bool:
        """Evaluate the expression of #if or #elif; ``defined`` precedes macro expansion."""
        known, index = [], 0
        while index < len(rest):
            token = rest[index]
            if token.text != "defined":
                known.append(token)
                index += 1
                continue
            bracket = index + 1 < len(rest) and rest[index + 1].text == "("
            at = index + 2 if bracket else index + 1
            closed = not bracket or (at + 1 < len(rest) and rest[at + 1].text == ")")
            if at >= len(rest) or rest[at].kind != "id" or not closed:
                raise CceError(token.position, "defined must be followed by a name")
            value = "1" if rest[at].text in self.macros else "0"
            known.append(Token("number", value, token.position, True))
            index = at + 2 if bracket else at + 1
        return holds(self.expand(known), word.position)

    def _directive(self, word: Token, rest: list[Token], file: str, directory: Path | None) -> None:
        name = word.text
        if name == "define":
            self._define(word, rest)
        elif name == "undef":
            self.macros.pop(rest[0].text if rest else "", None)
        elif name == "error":
            raise CceError(word.position, "#error " + " ".join(t.text for t in rest))
        elif name == "pragma":
            if directory is not None and [t.text for t in rest] == ["once"]:
                self.once.add((directory / Path(file).name).resolve())
        elif name not in ("line", "warning", "ident") and word.kind != "number":
            raise CceError(word.position, f"#{name} is not a directive of the preprocessor")

    def _define(self, word: Token, rest: list[Token]) -> None:
        if not rest or rest[0].kind != "id":
            raise CceError(word.position, "#define must be followed by a name")
        name, rest = rest[0].text, rest[1:]
        parameters, variadic = None, False
        if rest and rest[0].text == "(" and not rest[0].spaced:
            texts = [t.text for t in rest]
            if ")" not in texts:
                raise CceError(rest[0].position, f"the parameters of macro {name} have no ')'")
            end = texts.index(")")
            parameters = tuple(t for t in texts[1:end] if t != ",")
            rest = rest[end + 1 :]
            if parameters and parameters[-1] == "...":
                variadic, parameters = True, (*parameters[:-1], "__VA_ARGS__")
        if name not in self.reserved:
            self.macros[name] = Macro(parameters, tuple(rest), variadic)

    def _include(
        self, rest: list[Token], directory: Path | None, position: SourcePosition
    ) -> list[Token]:
        if directory is None or not rest or rest[0].kind != "string":
            return []
        name = rest[0].text[1:-1]
        path = self.sources.find(name, directory, position)
        if path is None or path in self.once:
            return []
        with self.sources.within(path, position) as text:
            self.texts.setdefault(name, text)
            return self.run(text, name, path.parent)

    def expand(self, tokens: list[Token]) -> list[Token]:
        """Return tokens with all macros replaced."""
        macros, result, index = self.macros, [], 0
        while index < len(tokens):
            token = tokens[index]
            index += 1
            if token.kind != "id" or token.text not in macros:
                if token.kind != "newline":
                    result.append(token)
                continue
            # Only the macro and the parentheses behind it are expanded together, so that a long
            # file costs linear time. More than one group may belong to it: F(1)(2).
            first = index - 1
            while (end := _group(tokens, index)) is not None:
                index = end
            result += self._expand([(t, frozenset()) for t in tokens[first:index]])
        return result

    def _expand(self, pairs: list[tuple[Token, frozenset[str]]]) -> list[Token]:
        """Expand tokens, each paired with the macros whose expansion produced it.

        A macro is not replaced within its own expansion (C11, section 6.10.3.4).
        """
        stack, result = pairs[::-1], []
        while stack:
            token, hidden = stack.pop()
            macro = self.macros.get(token.text) if token.kind == "id" else None
            if macro is None or token.text in hidden:
                if token.kind != "newline":
                    result.append(token)
                continue
            arguments: list[list[Token]] = []
            if macro.parameters is not None:
                if not stack or stack[-1][0].text != "(":
                    result.append(token)
                    continue
                arguments = _arguments(stack, token)
            inside = hidden | {token.text}
            position = token.position  # of the macro call, for all that it produces
            self._count(sum(map(len, arguments)), position)
            body = self._substitute(token, macro, arguments)
            self._count(len(body), position)
            stack += [(Token(k, t, position, s), inside) for k, t, _, s in reversed(body)]
        return result

    def _count(self, tokens: int, position: SourcePosition) -> None:
        self.produced += tokens
        if self.produced > EXPANDED:
            raise CceError(position, f"macros must produce at most {EXPANDED} tokens")

    def _argument(self, use: Token, tokens: list[Token]) -> list[Token]:
        """Return an argument with its macros replaced."""
        self.deep += 1
        if self.deep > BRACKETS_DEEP:
            raise too_deep(use.position)
        result = self.expand(tokens)
        self.deep -= 1
        return result

    def _substitute(self, use: Token, macro: Macro, arguments: list[list[Token]]) -> list[Token]:
        """Return the body of a macro with its arguments in place; # and ## are applied."""
        names = macro.parameters or ()
        if macro.variadic and len(arguments) >= len(names):
            rest = arguments[len(names) - 1 :]
            arguments = arguments[: len(names) - 1] + [_joined(rest)]
        elif macro.variadic:
            arguments = arguments + [[]] * (len(names) - len(arguments))
        if not names and arguments == [[]]:
            arguments = []
        if len(arguments) != len(names):
            raise CceError(
                use.position,
                f"macro {use.text} must have {len(names)} arguments, not {len(arguments)}",
            )
        values = dict(zip(names, arguments, strict=True))
        result: list[Token] = []
        body, index = macro.body, 0
        while index < len(body):
            token = body[index]
            following = body[index + 1] if index + 1 < len(body) else None
            if token.text == "#" and following is not None and following.text in values:
                text = _quoted(values[following.text])
                self._check_word(text, use)
                result.append(Token("string", text, use.position, True))
                index += 2
            elif token.text == "##" and following is not None and result:
                right = values.get(following.text, [following])
                left = result.pop()
                text = left.text + (right[0].text if right else "")
                self._check_word(text, use)
                joined = tokenize(text, use.position.file)
                result += [t._replace(position=use.position) for t in joined] + right[1:]
                index += 2
            elif token.text in values:
                # An operand of ## is not expanded (C11, section 6.10.3.1).
                pasted = following is not None and following.text == "##"
                argument = values[token.text]
                result += argument if pasted else self._argument(use, argument)
                index += 1
            else:
                result.append(token)
                index += 1
        return result

    def _check_word(self, text: str, use: Token) -> None:
        """Bound the length of a word that # or ## produces; long words count as several tokens."""
        if len(text) > WORD_LENGTH:
            message = f"a word that macro {use.text} produces must have at most {WORD_LENGTH}"
            raise CceError(use.position, f"{message} characters")
        self._count(len(text) >> 6, use.position)


def _group(tokens: list[Token], index: int) -> int | None:
    """Return the index after the parenthesised group that begins at ``index``.

    The result is None if no group begins there.
    """
    while index < len(tokens) and tokens[index].kind == "newline":
        index += 1
    if index >= len(tokens) or tokens[index].text != "(":
        return None
    depth = 0
    for at in range(index, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if depth == 0:
            return at + 1
    return len(tokens)


def _lines(tokens: list[Token]):
    """Yield the tokens of each line, without its end."""
    line: list[Token] = []
    for token in tokens:
        if token.kind == "newline":
            yield line
            line = []
        else:
            line.append(token)
    yield line


def _arguments(stack: list[tuple[Token, frozenset[str]]], use: Token) -> list[list[Token]]:
    """Pop a macro's parenthesised arguments from the stack and return them."""
    stack.pop()
    arguments: list[list[Token]] = [[]]
    depth = 1
    while stack:
        token, _ = stack.pop()
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return arguments
        if token.text == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    raise CceError(use.position, f"the arguments of macro {use.text} have no ')'")


def _quoted(tokens: list[Token]) -> str:
    """Return a macro argument as the string literal that ``#`` makes of it (C11, 6.10.3.2)."""
    pieces = ['"']
    for token in tokens:
        if token.kind == "newline":  # the next token is spaced
            continue
        if token.spaced and len(pieces) > 1:
            pieces.append(" ")
        word = token.text
        if token.kind in ("string", "char"):
            word = word.replace("\\", "\\\\").replace('"', '\\"')
        pieces.append(word)
    return "".join([*pieces, '"'])


def _joined(parts: list[list[Token]]) -> list[Token]:
    """Return the parts with commas between them."""
    result: list[Token] = []
    for index, part in enumerate(parts):
        if index and part:
            result.append(Token("punctuation", ",", part[0].position, False))
        result += part
    return result
