"""Function templates of C++: an instance of its own for every list of arguments.

`f<half, 16>(x)` calls an instance of `f`; the template's parameters are replaced, word by word, by
what is in the brackets or by their defaults. What is not written is worked out from the types of
a call's operands when the call is compiled.
"""

import re
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.limits import EXPANDED
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.language.types import Type
from vitruvian.sim.davinci.cce.rewrite.deduction import Given, deduce, given_of
from vitruvian.sim.davinci.cce.rewrite.template_args import arguments_of, count_of, folded
from vitruvian.sim.davinci.cce.rewrite.toplevel import Part, declared, with_methods
from vitruvian.sim.davinci.cce.rewrite.traits import scalar, with_traits

__all__ = ["Templates", "instantiate"]

_MOST = 200  # instances of all templates of a source
_WORDS = 256  # of an instance's arguments
_LONGEST = 1000  # characters of its name


class _Parameter(NamedTuple):
    """Of a template: its name, whether it is a type, its default."""

    name: str
    is_type: bool
    default: tuple[Token, ...] | None


class _Template(NamedTuple):
    """A template's parameters, and the function that it is of."""

    part: Part
    parameters: tuple[_Parameter, ...]
    tokens: tuple[Token, ...]

    @property
    def fewest(self) -> int:
        """Arguments that have no default."""
        return sum(p.default is None for p in self.parameters)

    @property
    def given(self) -> list[Given]:
        """What the function's parameters tell about the template's."""
        types = {p.name for p in self.parameters if p.is_type}
        return given_of(self.tokens, str(self.part.name), types)

    def takes(self, count: int) -> bool:
        """Whether the function may be called with so many arguments."""
        given = self.given
        return sum(not g.has_default for g in given) <= count <= len(given)


def instantiate(parts: list[Part], entry: Part) -> "tuple[list[Part], Part, Templates]":
    """Instances that the entry reaches in the place of templates.

    Parameters
    ----------
    parts : list of Part
        Of a source.
    entry : Part
        The one of them that is run.

    Returns
    -------
    parts : list of Part
        Without templates of functions, in the source's order.
    entry : Part
        The one of them that is run.
    templates : Templates
        For calls that do not write all arguments.

    Raises
    ------
    CceError
        For templates of something else than functions, if they are reached, and for arguments
        that do not fit their parameters.
    """
    work = Templates(parts)
    first = next(i for i, p in enumerate(parts) if p is entry)
    work.visit(first)
    return work.parts(), work.changed[first], work


class Templates:
    """The function templates of a source, and the instances that are made of them."""

    def __init__(self, parts: list[Part]):
        self.source = parts
        self.templates: dict[str, list[_Template]] = {}
        self.others: dict[str, list[int]] = {}
        self.changed: dict[int, Part] = {}
        self.made: dict[tuple, Part] = {}
        self.owners: dict[tuple, int] = {}
        self.written: dict[str, tuple[str, list[list[Token]]]] = {}  # of calls that lack some
        self.variables: dict[str, _Template] = {}
        self.classes: dict[str, _Template] = {}
        self.count = 0  # tokens that have been made
        self.within: list[tuple[Part, int]] = []  # templates of methods, of instances of classes
        for index, part in enumerate(parts):
            variable = _variable(part) if part.is_template and not part.name else None
            if part.is_template and part.name:
                self.templates.setdefault(part.name, []).append(_template(part))
            elif variable is not None:
                self.variables[variable] = _template(part)
            elif part.is_template and _structure(part) is not None:
                self.classes[str(_structure(part))] = _template(part)
            else:
                for word in [part.name] if part.name else declared(part):
                    self.others.setdefault(word, []).append(index)

    def visit(self, first: int) -> None:
        """Rewrite the entry and all that it can reach."""
        frontier, made, seen = [first], 0, set[str]()
        while frontier:
            index = frontier.pop()
            if index in self.changed:
                continue
            self.changed[index] = self._rewritten(self.source[index])
            words = set(self.changed[index].words)
            for part in islice(self.made.values(), made, None):
                words |= part.words
            made = len(self.made)
            words = (words | self._behind(words)) - seen
            seen |= words
            frontier += [i for w in words for i in self.others.get(w, ()) if i not in self.changed]

    def _behind(self, words: set[str]) -> set[str]:
        """Words of templates that are called without all their arguments, and of theirs."""
        found: set[str] = set()
        frontier = list(words)
        while frontier:
            word = frontier.pop()
            for template in self.templates.get(self.written.get(word, (word,))[0], ()):
                new = template.part.words - found
                found |= new
                frontier += new
        return found

    def parts(self) -> list[Part]:
        """All of them; templates that nothing needs are left out."""
        result: list[Part] = []
        for index, part in enumerate(self.source):
            if part.is_template and (part.name or _structure(part)):
                result += [self.made[k] for k, owner in self.owners.items() if owner == index]
            elif not (part.is_template and _variable(part)):
                result.append(self.changed.get(index, part))
        return [replace(p, words=p.words | self._behind(p.words)) for p in result]

    def called(self, name: str) -> list[Given] | None:
        """Parameters of the template that a call is of, or None."""
        name, _ = self.written.get(name, (name, []))
        bodies = [t for t in self.templates.get(name, ()) if t.parameters]
        return max((t.given for t in bodies), key=len, default=None)

    def deduced(self, name: str, types: list[Type], position: Position) -> tuple[str, list[Part]]:
        """The instance that a call is of, by the types it gives.

        Parameters
        ----------
        name : str
            As the call has it.
        types : list of Type
            Of the call's arguments.
        position : Position
            Of the call.

        Returns
        -------
        instance : str
            The function's name.
        parts : list of Part
            What was made for it, the first time.

        Raises
        ------
        CceError
            For arguments that the types do not tell.
        """
        name, written = self.written.get(name, (name, []))
        use = Token("id", name, position)
        template = self._chosen(use, len(types))
        found = deduce(name, template.given, types, position)
        groups: dict[str, list[Token]] = {}
        for number, parameter in enumerate(template.parameters):
            if number < len(written):
                group = written[number]
            elif parameter.name in found:
                group = [use._replace(text=w, spaced=True) for w in found[parameter.name]]
                group = [t._replace(kind="punctuation") if t.text == "*" else t for t in group]
            elif parameter.default is not None:
                group = [x for t in parameter.default for x in groups.get(t.text, [t])]
            else:
                raise CceError(
                    position,
                    f"{parameter.name} of template {name} must be written, as in {name}<...>(...)",
                )
            groups[parameter.name] = group
        before = set(self.made)
        instance = self._instance(use, list(groups.values()), len(types))
        return instance, [part for key, part in self.made.items() if key not in before]

    def _rewritten(self, part: Part) -> Part:
        tokens, result, index = part.tokens, [], 0
        while index < len(tokens):
            token = tokens[index]
            following = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.text in self.variables and following == "<":
                given, end = arguments_of(tokens, index + 1)
                value = self._value(token, given)
                self._count(len(value), token)
                tokens = [*value, *tokens[end:]]
                index = 0
                continue
            if token.text in self.classes and following == "<":
                given, index = arguments_of(tokens, index + 1)
                result.append(token._replace(text=self._class(token, given)))
                continue
            if token.text not in self.templates or following != "<":
                result.append(token)
                index += 1
                continue
            arguments, index = arguments_of(tokens, index + 1)
            count = count_of(tokens, index)
            if self._is_whole(self._chosen(token, count), arguments):
                name = self._instance(token, arguments, count)
            else:
                name = f"{token.text}__written_{len(self.written)}"
                self.written[name] = (token.text, arguments)
            result.append(token._replace(text=name))
        result = with_traits(result)
        more = part.words - {t.text for t in part.tokens}  # methods that go with a structure
        words = {t.text for t in result if t.kind == "id"} | more
        return replace(part, tokens=result, words=words)

    def _count(self, tokens: int, use: Token) -> None:
        self.count += tokens
        if self.count > EXPANDED:
            raise CceError(use.position, f"templates must make at most {EXPANDED} tokens")

    def _value(self, use: Token, arguments: list[list[Token]]) -> list[Token]:
        """What an instance of a variable is, with its type, in the place of its name."""
        template = self.variables[use.text]
        given = _matched(use, template, arguments)
        kept = [t for t in template.tokens if t.text != ";"]
        words = [x for t in kept for x in given.get(t.text, [t])]
        at = next(i for i, t in enumerate(words) if t.text == "=")
        type = [t for t in words[: at - 1] if t.text not in ("const", "static", "inline")]
        brackets = {text: Token("punctuation", text, use.position) for text in "()"}
        left, right = brackets["("], brackets[")"]
        return [left, left, *type, right, left, *words[at + 1 :], right, right]

    def _class(self, use: Token, arguments: list[list[Token]]) -> str:
        """The name of an instance of a class, which is made with its methods if it is new."""
        template = self.classes[use.text]
        given = _matched(use, template, arguments)
        name = _named(use, given)
        owner = next(i for i, p in enumerate(self.source) if p is template.part)
        if (name, owner, 0) in self.made:
            return name
        tokens: list[Token] = []
        for index, token in enumerate(template.tokens):
            following = template.tokens[index + 1].text if index + 1 < len(template.tokens) else ""
            if token.text == use.text and following != "<":  # itself
                tokens.append(token._replace(text=name))
            else:
                tokens += given.get(token.text, [token]) if token.kind == "id" else [token]
        self._count(len(tokens), use)
        words = {t.text for t in tokens if t.kind == "id"}
        parts = with_methods(Part(tokens, None, words=words))
        for part in parts:
            if part.is_template:
                self.templates.setdefault(str(part.name), []).append(_template(part))
                self.within.append((part, owner))
        for number, part in enumerate(p for p in parts if not p.is_template):
            key = (name, owner, number)
            if len(self.made) >= _MOST:
                raise CceError(use.position, f"templates must have at most {_MOST} instances")
            self.made[key], self.owners[key] = part, owner
            self.made[key] = self._rewritten(part)
        return name

    def _instance(self, use: Token, arguments: list[list[Token]], count: int) -> str:
        """The name of an instance, which is made if it is new."""
        template = self._chosen(use, count)
        given = _matched(use, template, arguments)
        special = self._special(use.text, given)
        if special is not None:
            template, given = special, {}
        every = [*enumerate(self.source), *((i, p) for p, i in self.within)]
        owner = next(i for i, p in every if p is template.part)
        key = (use.text, owner, *(tuple(t.text for t in a) for a in given.values()))
        if key in self.made:
            return str(self.made[key].name)
        if len(self.made) >= _MOST:
            raise CceError(use.position, f"templates must have at most {_MOST} instances")
        name = _named(use, given)
        if any(p.name == name for p in self.made.values()):
            name += f"_{len(self.made)}"
        tokens: list[Token] = []
        for index, token in enumerate(template.tokens):
            following = template.tokens[index + 1].text if index + 1 < len(template.tokens) else ""
            if token.kind == "id" and token.text in given:
                tokens += given[token.text]
            elif token.text == use.text and following == "(":  # itself
                tokens.append(token._replace(text=name))
            else:
                tokens.append(token)
        self._count(len(tokens), use)
        part = Part(tokens, name)
        self.made[key] = part
        self.owners[key] = owner
        self.made[key] = self._rewritten(part)
        return name

    def _special(self, name: str, given: dict[str, list[Token]]) -> _Template | None:
        """The specialisation for these arguments, without them."""
        for one in self.templates[name]:
            if one.parameters:
                continue
            at = next(i for i, t in enumerate(one.tokens) if t.text == name)
            if one.tokens[at + 1].text != "<":
                raise CceError(
                    one.part.position, f"a specialisation must be written as {name}<...>(...)"
                )
            arguments, end = arguments_of(list(one.tokens), at + 1)
            if [scalar(folded(a)) for a in arguments] == [scalar(a) for a in given.values()]:
                return one._replace(tokens=(*one.tokens[: at + 1], *one.tokens[end:]))
        return None

    def _is_whole(self, template: _Template, arguments: list[list[Token]]) -> bool:
        """Whether a list has all arguments that a call could tell."""
        missing = {p.name for p in template.parameters[len(arguments) :]}
        return not missing & {g.template for g in template.given}

    def _chosen(self, use: Token, count: int) -> _Template:
        """The template of that name with a body, of several the one with so many parameters."""
        bodies = [t for t in self.templates[use.text] if t.parameters]
        if len(bodies) > 1:
            bodies = [t for t in bodies if t.takes(count)] or bodies
        if len(bodies) != 1:
            here = bodies[1].part.position if bodies else use.position
            raise CceError(here, f"template {use.text} must be defined once")
        return bodies[0]


def _named(use: Token, given: dict[str, list[Token]]) -> str:
    """The name of an instance."""
    name = f"{use.text}__{_shown(given)}"
    if len(name) > _LONGEST:
        raise CceError(
            use.position, f"the name of an instance must have at most {_LONGEST} letters"
        )
    return name


def _shown(given: dict[str, list[Token]]) -> str:
    """A template's arguments as a part of a name."""
    return "_".join(re.sub(r"\W+", "", t.text) or "x" for a in given.values() for t in a)


def _structure(part: Part) -> str | None:
    """The name of the structure that a template is of; None if it is of something else."""
    _, end = arguments_of(part.tokens, 1)
    texts = [t.text for t in part.tokens[end : end + 3]]
    is_one = not part.name and texts[:1] == ["struct"] and texts[2:] == ["{"]
    return texts[1] if is_one else None


def _variable(part: Part) -> str | None:
    """The name of the variable that a template is of; None if it is of something else."""
    _, end = arguments_of(part.tokens, 1)
    texts = [t.text for t in part.tokens[end:]]
    if "=" not in texts or texts[0] in ("struct", "class", "union", "typedef", "using"):
        return None
    before = texts[: texts.index("=")]
    return before[-1] if len(before) > 1 and "(" not in before else None


def _template(part: Part) -> _Template:
    """A template's parameters, and what follows them."""
    groups, end = arguments_of(part.tokens, 1)
    parameters = []
    for group in groups:
        texts = [t.text for t in group]
        if not texts:
            continue
        if "..." in texts:  # an error where it is used
            parameters.append(_Parameter("...", False, None))
            continue
        at = texts.index("=") if "=" in texts else len(texts)
        default = tuple(group[at + 1 :]) if at < len(texts) else None
        is_type = texts[0] in ("typename", "class")
        parameters.append(_Parameter(texts[at - 1], is_type, default))
    return _Template(part, tuple(parameters), tuple(part.tokens[end:]))


def _matched(
    use: Token, template: _Template, arguments: list[list[Token]]
) -> dict[str, list[Token]]:
    """Arguments by the parameters' names; a value of several words is put in parentheses."""
    if any(p.name == "..." for p in template.parameters):
        here = template.part.position
        raise CceError(here, "templates must have a fixed number of parameters")
    if sum(map(len, arguments)) > _WORDS:
        message = f"template {use.text} must have arguments of at most {_WORDS} words"
        raise CceError(use.position, message)
    count = len(template.parameters)
    fewest = template.fewest
    if not fewest <= len(arguments) <= count:
        wanted = str(count) if fewest == count else f"{fewest} to {count}"
        raise CceError(
            use.position,
            f"template {use.text} must have {wanted} arguments, not {len(arguments)}",
        )
    given: dict[str, list[Token]] = {}
    for number, (name, is_type, default) in enumerate(template.parameters):
        if number < len(arguments):
            tokens = arguments[number]
        else:
            tokens = [x for t in default or () for x in given.get(t.text, [t])]
        tokens = tokens if is_type else folded(tokens)
        if not is_type and len(tokens) > 1:
            bracket = tokens[0]._replace(kind="punctuation")
            tokens = [bracket._replace(text="("), *tokens, bracket._replace(text=")")]
        given[name] = [t._replace(position=use.position) for t in tokens]
    return given
