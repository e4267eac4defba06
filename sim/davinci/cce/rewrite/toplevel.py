"""Split a source into top-level declarations, and rewrite CCE C++ into C that pycparser accepts.

Functions and declarations that the kernel cannot reach (host code, launch stubs with ``<<<...>>>``,
other kernels) are dropped before they are parsed. In the rest, C++ casts become C casts, functional
casts become calls, and attributes and ``extern "C"`` are removed. Address spaces stay as
qualifiers, which the lexer knows.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition, nearest
from vitruvian.sim.davinci.cce.language.keywords import ATTRIBUTES, SPACES, TYPE_NAMES
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.rewrite.classes import split
from vitruvian.sim.davinci.cce.rewrite.cplusplus import ASSEMBLY, rewrite

#: The form of a kernel, for messages.
A_KERNEL = "a kernel looks like: __global__ __aicore__ void name(__gm__ half *x, int32_t n) {...}"

#: The prefix of the function whose call represents a functional cast.
CAST_PREFIX = "__cast_to_"

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = {close: opening for opening, close in _OPEN.items()}
_CPP_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_C_TYPES = frozenset("void char short int long float double signed unsigned bool _Bool".split())
_BEFORE_A_DECLARATION = frozenset((";", "{", "}"))
_QUALIFIERS = frozenset("const volatile static auto struct".split())
_KEYWORDS = frozenset(("return", "case", "else", "do", "sizeof"))


@dataclass
class TopLevelDecl:
    """A function or another declaration at the outermost level of a source."""

    tokens: list[Token]
    name: str | None  # the function; None for another declaration
    is_global: bool = False
    launches: bool = False  # it contains <<<
    words: set[str] = field(default_factory=set)  # identifiers that it uses
    is_template: bool = False

    @property
    def position(self) -> SourcePosition:
        """The position of the first token."""
        return self.tokens[0].position


def split_declarations(tokens: list[Token]) -> list[TopLevelDecl]:
    """Split a source into its functions and declarations.

    Raises
    ------
    CceError
        If the brackets do not pair up.
    """
    tokens = _aliases(_without_attributes(tokens))
    tokens = _without_wrappers(tokens, _pairs(tokens))
    pairs = _pairs(tokens)
    decls, start, index = [], 0, 0
    while index < len(tokens):
        text = tokens[index].text
        if text == ";":
            index += 1
        elif text == "{" and _heads_function(tokens[start:index]):
            index = pairs[index] + 1
            if index < len(tokens) and tokens[index].text == ";":
                index += 1
        else:
            index = pairs[index] + 1 if text in _OPEN else index + 1
            if index < len(tokens):
                continue
        decl = _classified(tokens[start:index])
        if decl is not None:
            decls += with_methods(decl)
        start = index
    return decls


def with_methods(decl: TopLevelDecl) -> list[TopLevelDecl]:
    """Return a structure and its methods as separate declarations.

    The structure uses the names of its methods, so that they are reachable with it.
    """
    texts = [t.text for t in decl.tokens[:3]]
    if decl.name or texts[:1] not in (["struct"], ["class"]) or texts[2:] != ["{"]:
        return [decl]
    try:
        plain, methods = split(decl.tokens)
    except CceError:  # reported by `rewrite` if the kernel reaches the class
        return [decl]
    words = {t.text for t in plain if t.kind == "id"} | {name for name, _ in methods}
    result = [replace(decl, tokens=plain, words=words)]
    for name, tokens in methods:
        used = {t.text for t in tokens if t.kind == "id"}
        is_template = tokens[0].text == "template"
        result.append(TopLevelDecl(tokens, name, words=used, is_template=is_template))
    return result


def _classified(tokens: list[Token]) -> TopLevelDecl | None:
    """Return the tokens of one declaration with its properties.

    The result is None for an empty declaration, and for a prototype or an explicit instantiation
    of a template.
    """
    if all(t.text == ";" for t in tokens):
        return None
    texts = [t.text for t in tokens]
    name = None
    if "{" in texts and _heads_function(tokens[: texts.index("{")]):
        name = _function_name(tokens[: texts.index("{")])
    words = {t.text for t in tokens if t.kind == "id"}
    is_template = texts[0] == "template"
    if is_template and "{" not in texts:
        rest = texts[_template_end(tokens) :]
        # Without a value it is a prototype or an explicit instantiation.
        if "=" not in rest or "(" in rest[: rest.index("=")]:
            return None
    return TopLevelDecl(tokens, name, "__global__" in texts, "<<<" in texts, words, is_template)


def _pairs(tokens: list[Token]) -> dict[int, int]:
    """Return the index of the closing bracket by the index of the opening bracket."""
    pairs, stack = {}, []
    for index, token in enumerate(tokens):
        if token.kind != "punctuation":
            continue
        if token.text in _OPEN:
            stack.append(index)
        elif token.text in _CLOSE:
            if not stack:
                raise CceError(token.position, f"{token.text!r} has no matching opening bracket")
            opening = stack.pop()
            if _OPEN[tokens[opening].text] != token.text:
                raise CceError(
                    token.position,
                    f"{_OPEN[tokens[opening].text]!r} must close the {tokens[opening].text!r} of "
                    f"{tokens[opening].position}, not {token.text!r}",
                )
            pairs[opening] = index
    if stack:
        token = tokens[stack[-1]]
        raise CceError(token.position, f"the {token.text!r} here is not closed")
    return pairs


def _without_wrappers(tokens: list[Token], pairs: dict[int, int]) -> list[Token]:
    """Remove ``extern "C"``, namespaces around functions, and ``using namespace``."""
    dropped, index = set(), 0
    while index < len(tokens):
        text = tokens[index].text
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        end = index
        if text == "extern" and following is not None and following.kind == "string":
            end = index + 2
        elif text == "namespace":
            end = index + 1
            while end < len(tokens) and tokens[end].text not in ("{", ";"):
                end += 1
        elif text == "using" and (following is None or following.text == "namespace"):
            while end < len(tokens) and tokens[end].text != ";":
                end += 1
            end += 1
        if end == index:
            index = pairs[index] + 1 if text in _OPEN else index + 1
            continue
        dropped |= set(range(index, end))
        if end < len(tokens) and tokens[end].text == "{" and text != "using":
            dropped |= {end, pairs[end]}
            end += 1
        index = end
    return [t for i, t in enumerate(tokens) if i not in dropped]


def _aliases(tokens: list[Token]) -> list[Token]:
    """Rewrite ``using X = T;`` as ``typedef T X;``."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        texts = [t.text for t in tokens[index : index + 3]]
        if texts[0] != "using" or texts[2:] != ["="]:
            result.append(tokens[index])
            index += 1
            continue
        end = index + 3
        while end < len(tokens) and tokens[end].text != ";":
            end += 1
        result += [tokens[index]._replace(text="typedef"), *tokens[index + 3 : end]]
        result.append(tokens[index + 1])
        index = end
    return result


def _heads_function(head: list[Token]) -> bool:
    """Return True if a brace after these tokens begins a function's body."""
    # A head has parentheses, with no = before them: `int a[] = {` is a variable, while default
    # arguments are inside the parentheses.
    texts = [t.text for t in head[_template_end(head) :]]
    if not texts or texts[0] in ("typedef", "enum", "class") or ")" not in texts:
        return False
    return "=" not in texts[: texts.index("(")] if "(" in texts else False


def _template_end(tokens: list[Token]) -> int:
    """Return the index after a leading ``template <...>``, or 0 without one."""
    if len(tokens) < 2 or [t.text for t in tokens[:2]] != ["template", "<"]:
        return 0
    depth, inner = 0, 0
    for index, token in enumerate(tokens[1:], start=1):
        inner += (token.text in _OPEN) - (token.text in _CLOSE)
        if not inner:
            depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
        if depth <= 0:
            return index + 1
    return 0


def _function_name(head: list[Token]) -> str | None:
    """Return the name of the function that a head declares."""
    index = _template_end(head)
    if index == 3:  # template <>: the name is before its arguments
        named = (a for a, b in pairwise(head[3:]) if a.kind == "id" and b.text in ("<", "("))
        return next((a.text for a in named), None)
    while index < len(head) - 1:
        token, following = head[index], head[index + 1]
        if token.kind == "id" and following.text == "(":
            if token.text not in ATTRIBUTES:
                return token.text
            depth = 0
            while True:  # skip the attribute's arguments; the brackets pair up
                index += 1
                depth += {"(": 1, ")": -1}.get(head[index].text, 0)
                if depth == 0:
                    break
        index += 1
    return None


def entry_of(decls: list[TopLevelDecl], entry: str | None, file: str) -> TopLevelDecl:
    """Return the function to run.

    It is the function called ``entry``, or the only ``__global__`` function, or the only function.

    Raises
    ------
    CceError
        If there is no such function, or more than one, or it is a template.
    """
    functions = [p for p in decls if p.name and not p.launches and not p.is_template]
    start = SourcePosition(file, 1)
    names = [str(p.name) for p in functions]
    for decl in decls:
        if decl.is_template and decl.name and (decl.name == entry or not functions):
            message = f"the kernel must be a function; {decl.name} is a template"
            raise CceError(decl.position, message)
    if not functions:
        raise CceError(start, f"there is no function in this file; {A_KERNEL}")
    if entry is not None:
        for decl in functions:
            if decl.name == entry:
                return decl
        raise CceError(
            start, f"entry must be one of {', '.join(names)}, not {entry!r}{nearest(entry, names)}"
        )
    kernels = [p for p in functions if p.is_global] or functions
    if len(kernels) > 1:
        several = ", ".join(str(p.name) for p in kernels)
        raise CceError(kernels[1].position, f"entry must be given, as one of {several}")
    return kernels[0]


def choose(decls: list[TopLevelDecl], entry: TopLevelDecl) -> list[TopLevelDecl]:
    """Return the entry and all declarations that it can reach by name, in source order."""
    named: dict[str, list[TopLevelDecl]] = {}
    for decl in decls:
        if not decl.launches:
            for word in [decl.name] if decl.name else declared(decl):
                named.setdefault(word, []).append(decl)
    chosen, frontier = {id(entry)}, [entry]
    # Words are matched as text, without scopes: too much may be chosen, but never too little.
    while frontier:
        for word in frontier.pop().words & named.keys():
            for decl in named.pop(word):  # overloads are chosen together
                if id(decl) not in chosen:
                    chosen.add(id(decl))
                    frontier.append(decl)
    return [p for p in decls if id(p) in chosen]


def declared(decl: TopLevelDecl) -> set[str]:
    """Return the names that a declaration may declare: all of its identifiers but types of C.

    Members of a structure or class do not count, except static constants.
    """
    words = decl.words
    head = decl.tokens[_template_end(decl.tokens) :]
    texts = [t.text for t in head]
    if texts[0] in ("struct", "class", "union") and "{" in texts:
        inside = range(texts.index("{"), len(texts) - texts[::-1].index("}"))
        shared = {a for a, b in pairwise(texts) if b == "=" and "static" in texts}
        words = {t.text for i, t in enumerate(head) if t.kind == "id" and i not in inside} | shared
    return words - _C_TYPES - TYPE_NAMES.keys() - ATTRIBUTES


def to_c(tokens: list[Token], names: frozenset[str], words: frozenset[str]) -> list[Token]:
    """Rewrite one top-level declaration as C with address-space qualifiers.

    Parameters
    ----------
    tokens : list of Token
        The declaration.
    names, words : frozenset of str
        The results of ``type_words``.

    Raises
    ------
    CceError
        If the declaration uses C++ that is not part of the dialect.
    """
    name = _declared_function(tokens)
    tokens = rewrite(tokens, name, words, _pairs(tokens))
    return _functional_casts(_cpp_casts(tokens), names)


def type_words(types: set[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all types, and the words that a declaration may begin with.

    ``types`` are the types that the source defines.
    """
    names = frozenset(types | _C_TYPES | TYPE_NAMES.keys())
    return names, names | SPACES.keys() | _QUALIFIERS


def _declared_function(tokens: list[Token]) -> str | None:
    """Return the function that the tokens declare or define, or None."""
    texts = [t.text for t in tokens]
    head = tokens[: texts.index("{")] if "{" in texts else tokens
    shown = [t.text for t in head]
    if "(" not in shown or "=" in shown[: shown.index("(")] or texts[0] == "typedef":
        return None
    if "{" in texts and "=" not in shown and not _heads_function(head):
        return None
    return _function_name(head)


def _without_attributes(tokens: list[Token]) -> list[Token]:
    """Remove attributes, empty assembly and ``X::`` prefixes, and replace words that C lacks."""
    pairs, result, index = _pairs(tokens), [], 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.text in ATTRIBUTES:
            index = pairs[index + 1] + 1 if following == "(" else index + 1
        elif token.text in ASSEMBLY and _is_empty(tokens, index, pairs):
            index = next(i for i in range(index, len(tokens)) if i in pairs)
            index = pairs[index] + 1
        elif token.text == "[" and following in ("aicore", "[", "host"):
            index = pairs[index] + 1
        elif token.text == "::":  # std::max, ConvRelu_t::CRMODE_NONE: keep the last name
            if result and result[-1].kind == "id" and result[-1].text not in _KEYWORDS:
                result.pop()
            index += 1
        else:
            word = {"constexpr": "const", "nullptr": "0", "NULL": "0"}.get(token.text)
            if token.text == "class" and [t.text for t in tokens[index + 2 : index + 3]] == ["{"]:
                word = "struct" if not result or result[-1].text != "enum" else None
            kind = "number" if word == "0" else token.kind
            result.append(token._replace(kind=kind, text=word) if word else token)
            index += 1
    return result


def _is_empty(tokens: list[Token], index: int, pairs: dict[int, int]) -> bool:
    """Return True for assembly without text, which is only a barrier for the compiler."""
    at = index + 1
    while at < len(tokens) and tokens[at].text in ("volatile", "__volatile__"):
        at += 1
    inside = tokens[at + 1 : pairs.get(at, at)]
    return bool(inside) and inside[0].text == '""'


def _cpp_casts(tokens: list[Token]) -> list[Token]:
    """Rewrite ``static_cast<T>(x)`` as ``((T)(x))``."""
    result: list[Token] = []
    closing: set[int] = set()
    pairs, index = _pairs(tokens), 0
    while index < len(tokens):
        token = tokens[index]
        if token.text in _CPP_CASTS:
            if index + 1 >= len(tokens) or tokens[index + 1].text != "<":
                raise CceError(token.position, f"{token.text} must be followed by <a type>")
            end = index + 2
            while end < len(tokens) and tokens[end].text != ">":
                end += 1
            if end + 1 >= len(tokens) or tokens[end + 1].text != "(":
                raise CceError(token.position, f"{token.text}<...> must be followed by (a value)")
            bracket = token._replace(kind="punctuation", text="(")
            result += [bracket, bracket, *tokens[index + 2 : end], bracket._replace(text=")")]
            closing.add(pairs[end + 1])  # this bracket is written twice
            index = end + 1
            continue
        result.append(token)
        if index in closing:
            result.append(token)
        index += 1
    return result


def _functional_casts(tokens: list[Token], names: frozenset[str]) -> list[Token]:
    """Rewrite ``float(x)`` as a call of the function ``__cast_to_float``."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1].text if index else ";"
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        inside = tokens[index + 2].text if index + 2 < len(tokens) else ""
        # Not a cast: `unsigned int (`, or a declaration such as `int (*p)[2]`.
        cast = (
            token.text in names
            and after == "("
            and (before in _KEYWORDS or not _continues_type(tokens, index, names))
            and not (before in _BEFORE_A_DECLARATION and inside == "*")
        )
        result.append(token._replace(kind="id", text=CAST_PREFIX + token.text) if cast else token)
    return result


def _continues_type(tokens: list[Token], index: int, names: frozenset[str]) -> bool:
    """Return True if another word of the type precedes ``index``, as in ``unsigned int (``."""
    if not index:
        return True
    before = tokens[index - 1]
    return before.kind == "id" and (before.text in names or before.text.startswith("__"))
