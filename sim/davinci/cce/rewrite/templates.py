"""Instantiate templates: each distinct list of arguments produces one instance.

``f<half, 16>(x)`` calls an instance of ``f``. In the tokens of the instance, each template
parameter is replaced by the argument in the brackets or by its default. Arguments that the source
does not write are deduced from the types of the call's arguments when the call is compiled.
"""

import re
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import EXPANDED
from vitruvian.sim.davinci.cce.language.tokens import Token
from vitruvian.sim.davinci.cce.language.types import Type
from vitruvian.sim.davinci.cce.rewrite.deduction import ParameterPattern, deduce, parameter_patterns
from vitruvian.sim.davinci.cce.rewrite.template_args import arguments_of, count_of, folded
from vitruvian.sim.davinci.cce.rewrite.toplevel import TopLevelDecl, declared, with_methods
from vitruvian.sim.davinci.cce.rewrite.traits import scalar, with_traits

_MOST = 200  # instances of all templates of a source
_WORDS = 256  # words of the arguments of an instance
_LONGEST = 1000  # characters of the name of an instance


class _TemplateParameter(NamedTuple):
    """A template parameter: its name, its kind (a type or a value), and its default."""

    name: str
    is_type: bool
    default: tuple[Token, ...] | None


class _Template(NamedTuple):
    """A template: its parameters, and the declaration (``tokens``) that follows them."""

    decl: TopLevelDecl
    parameters: tuple[_TemplateParameter, ...]
    tokens: tuple[Token, ...]

    @property
    def fewest(self) -> int:
        """The number of parameters without a default."""
        return sum(p.default is None for p in self.parameters)

    @property
    def patterns(self) -> list[ParameterPattern]:
        """The patterns of the function's parameters, in order."""
        types = {p.name for p in self.parameters if p.is_type}
        return parameter_patterns(self.tokens, str(self.decl.name), types)

    def takes(self, count: int) -> bool:
        """Return True if the function can be called with ``count`` arguments."""
        patterns = self.patterns
        return sum(not p.has_default for p in patterns) <= count <= len(patterns)


def instantiate(
    decls: list[TopLevelDecl], entry: TopLevelDecl
) -> "tuple[list[TopLevelDecl], TopLevelDecl, Templates]":
    """Replace templates by the instances that the entry reaches.

    Parameters
    ----------
    decls : list of TopLevelDecl
        The declarations of a source.
    entry : TopLevelDecl
        The function to run, an element of ``decls``.

    Returns
    -------
    decls : list of TopLevelDecl
        The declarations without templates, in source order.
    entry : TopLevelDecl
        The rewritten entry, an element of the returned ``decls``.
    templates : Templates
        The templates, for calls whose template arguments must be deduced.

    Raises
    ------
    CceError
        If the arguments of a reached template do not fit its parameters, or a limit is exceeded.
    """
    templates = Templates(decls)
    first = next(i for i, p in enumerate(decls) if p is entry)
    templates.visit(first)
    return templates.decls(), templates.rewritten[first], templates


class Templates:
    """The templates of a source, and the instances of them.

    Parameters
    ----------
    decls : list of TopLevelDecl
        The declarations of a source.
    """

    def __init__(self, decls: list[TopLevelDecl]):
        self.source = decls
        self.templates: dict[str, list[_Template]] = {}  # of functions, by name
        self.variables: dict[str, _Template] = {}
        self.classes: dict[str, _Template] = {}
        self.others: dict[str, list[int]] = {}  # indices of plain declarations, by name
        self.rewritten: dict[int, TopLevelDecl] = {}  # reached declarations, by index
        # Instances and the index of the template that each comes from, by name and arguments.
        self.instances: dict[tuple, TopLevelDecl] = {}
        self.owners: dict[tuple, int] = {}
        # Calls that write only some template arguments: the alias that stands for the name in the
        # rewritten tokens, with the template's name and the written arguments.
        self.written: dict[str, tuple[str, list[list[Token]]]] = {}
        self.methods: list[tuple[TopLevelDecl, int]] = []  # method templates of class instances
        self.count = 0  # tokens that instances have produced
        for index, decl in enumerate(decls):
            variable = _variable(decl) if decl.is_template and not decl.name else None
            if decl.is_template and decl.name:
                self.templates.setdefault(decl.name, []).append(_template(decl))
            elif variable is not None:
                self.variables[variable] = _template(decl)
            elif decl.is_template and _structure(decl) is not None:
                self.classes[str(_structure(decl))] = _template(decl)
            else:
                for word in [decl.name] if decl.name else declared(decl):
                    self.others.setdefault(word, []).append(index)

    def visit(self, first: int) -> None:
        """Rewrite the entry (the declaration at index ``first``) and all that it can reach."""
        frontier, known, seen = [first], 0, set[str]()
        while frontier:
            index = frontier.pop()
            if index in self.rewritten:
                continue
            self.rewritten[index] = self._rewritten(self.source[index])
            words = set(self.rewritten[index].words)
            for decl in islice(self.instances.values(), known, None):
                words |= decl.words
            known = len(self.instances)
            words = (words | self._behind(words)) - seen
            seen |= words
            frontier += [
                i for w in words for i in self.others.get(w, ()) if i not in self.rewritten
            ]

    def _behind(self, words: set[str]) -> set[str]:
        """Return the words of the templates that ``words`` name, and of those that they name.

        Such templates may be instantiated only when a call is compiled, but what they use must
        be kept now.
        """
        result: set[str] = set()
        frontier = list(words)
        while frontier:
            word = frontier.pop()
            for template in self.templates.get(self.written.get(word, (word,))[0], ()):
                new = template.decl.words - result
                result |= new
                frontier += new
        return result

    def decls(self) -> list[TopLevelDecl]:
        """Return all declarations in source order, with instances in place of templates."""
        result: list[TopLevelDecl] = []
        for index, decl in enumerate(self.source):
            if decl.is_template and (decl.name or _structure(decl)):
                result += [self.instances[k] for k, owner in self.owners.items() if owner == index]
            elif not (decl.is_template and _variable(decl)):
                result.append(self.rewritten.get(index, decl))
        return [replace(p, words=p.words | self._behind(p.words)) for p in result]

    def called(self, name: str) -> list[ParameterPattern] | None:
        """Return the parameters of the template that a call names, or None."""
        name, _ = self.written.get(name, (name, []))
        bodies = [t for t in self.templates.get(name, ()) if t.parameters]
        return max((t.patterns for t in bodies), key=len, default=None)

    def deduced(
        self, name: str, types: list[Type], position: SourcePosition
    ) -> tuple[str, list[TopLevelDecl]]:
        """Deduce the template arguments of a call, and return the instance that it calls.

        Parameters
        ----------
        name : str
            The name in the call.
        types : list of Type
            The types of the call's arguments.
        position : SourcePosition
            The position of the call.

        Returns
        -------
        instance : str
            The name of the instance.
        decls : list of TopLevelDecl
            The new declarations; empty if the instance existed already.

        Raises
        ------
        CceError
            If the types do not determine a template argument.
        """
        name, written = self.written.get(name, (name, []))
        # An argument that is written wins over one that is deduced, and that over the default.
        use = Token("id", name, position)
        template = self._chosen(use, len(types))
        deduced = deduce(name, template.patterns, types, position)
        groups: dict[str, list[Token]] = {}
        for number, parameter in enumerate(template.parameters):
            if number < len(written):
                group = written[number]
            elif parameter.name in deduced:
                group = [use._replace(text=w, spaced=True) for w in deduced[parameter.name]]
                group = [t._replace(kind="punctuation") if t.text == "*" else t for t in group]
            elif parameter.default is not None:
                group = [x for t in parameter.default for x in groups.get(t.text, [t])]
            else:
                raise CceError(
                    position,
                    f"argument {parameter.name} of template {name} must be written explicitly, "
                    f"as in {name}<...>(...)",
                )
            groups[parameter.name] = group
        before = set(self.instances)
        instance = self._instance(use, list(groups.values()), len(types))
        return instance, [decl for key, decl in self.instances.items() if key not in before]

    def _rewritten(self, decl: TopLevelDecl) -> TopLevelDecl:
        """Return a declaration with instances in place of templates, and traits evaluated."""
        tokens, result, index = decl.tokens, [], 0
        while index < len(tokens):
            token = tokens[index]
            following = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.text in self.variables and following == "<":
                arguments, end = arguments_of(tokens, index + 1)
                value = self._value(token, arguments)
                self._count(len(value), token)
                tokens = [*value, *tokens[end:]]  # the value may use templates itself
                index = 0
                continue
            if token.text in self.classes and following == "<":
                arguments, index = arguments_of(tokens, index + 1)
                result.append(token._replace(text=self._class(token, arguments)))
                continue
            if token.text not in self.templates or following != "<":
                result.append(token)
                index += 1
                continue
            arguments, index = arguments_of(tokens, index + 1)
            count = count_of(tokens, index)
            if self._is_complete(self._chosen(token, count), arguments):
                name = self._instance(token, arguments, count)
            else:
                name = f"{token.text}__written_{len(self.written)}"
                self.written[name] = (token.text, arguments)
            result.append(token._replace(text=name))
        result = with_traits(result)
        more = decl.words - {t.text for t in decl.tokens}  # the names of a structure's methods
        words = {t.text for t in result if t.kind == "id"} | more
        return replace(decl, tokens=result, words=words)

    def _count(self, tokens: int, use: Token) -> None:
        self.count += tokens
        if self.count > EXPANDED:
            raise CceError(use.position, f"templates must produce at most {EXPANDED} tokens")

    def _value(self, use: Token, arguments: list[list[Token]]) -> list[Token]:
        """Return the value of a variable template's instance, cast to its type."""
        template = self.variables[use.text]
        values = _matched(use, template, arguments)
        kept = [t for t in template.tokens if t.text != ";"]
        words = [x for t in kept for x in values.get(t.text, [t])]
        at = next(i for i, t in enumerate(words) if t.text == "=")
        type = [t for t in words[: at - 1] if t.text not in ("const", "static", "inline")]
        brackets = {text: Token("punctuation", text, use.position) for text in "()"}
        left, right = brackets["("], brackets[")"]
        return [left, left, *type, right, left, *words[at + 1 :], right, right]

    def _class(self, use: Token, arguments: list[list[Token]]) -> str:
        """Return the name of a class template's instance; create it with its methods if new."""
        template = self.classes[use.text]
        values = _matched(use, template, arguments)
        name = _named(use, values)
        owner = next(i for i, p in enumerate(self.source) if p is template.decl)
        if (name, owner, 0) in self.instances:
            return name
        tokens: list[Token] = []
        for index, token in enumerate(template.tokens):
            following = template.tokens[index + 1].text if index + 1 < len(template.tokens) else ""
            if token.text == use.text and following != "<":  # the class itself
                tokens.append(token._replace(text=name))
            else:
                tokens += values.get(token.text, [token]) if token.kind == "id" else [token]
        self._count(len(tokens), use)
        words = {t.text for t in tokens if t.kind == "id"}
        decls = with_methods(TopLevelDecl(tokens, None, words=words))
        for decl in decls:
            if decl.is_template:
                self.templates.setdefault(str(decl.name), []).append(_template(decl))
                self.methods.append((decl, owner))
        for number, decl in enumerate(p for p in decls if not p.is_template):
            key = (name, owner, number)
            if len(self.instances) >= _MOST:
                raise CceError(use.position, f"templates must have at most {_MOST} instances")
            # It is entered before it is rewritten, since it may name itself.
            self.instances[key], self.owners[key] = decl, owner
            self.instances[key] = self._rewritten(decl)
        return name

    def _instance(self, use: Token, arguments: list[list[Token]], count: int) -> str:
        """Return the name of a function template's instance; create it if it is new."""
        template = self._chosen(use, count)
        values = _matched(use, template, arguments)
        specialised = self._specialisation(use.text, values)
        if specialised is not None:
            template, values = specialised, {}
        every = [*enumerate(self.source), *((i, p) for p, i in self.methods)]
        owner = next(i for i, p in every if p is template.decl)
        key = (use.text, owner, *(tuple(t.text for t in a) for a in values.values()))
        if key in self.instances:
            return str(self.instances[key].name)
        if len(self.instances) >= _MOST:
            raise CceError(use.position, f"templates must have at most {_MOST} instances")
        name = _named(use, values)
        if any(p.name == name for p in self.instances.values()):
            name += f"_{len(self.instances)}"  # f<a, b> and f<a_b> have the same words
        tokens: list[Token] = []
        for index, token in enumerate(template.tokens):
            following = template.tokens[index + 1].text if index + 1 < len(template.tokens) else ""
            if token.kind == "id" and token.text in values:
                tokens += values[token.text]
            elif token.text == use.text and following == "(":  # a recursive call
                tokens.append(token._replace(text=name))
            else:
                tokens.append(token)
        self._count(len(tokens), use)
        decl = TopLevelDecl(tokens, name)
        # It is entered before it is rewritten, since it may call itself.
        self.instances[key] = decl
        self.owners[key] = owner
        self.instances[key] = self._rewritten(decl)
        return name

    def _specialisation(self, name: str, values: dict[str, list[Token]]) -> _Template | None:
        """Return the specialisation for these arguments, without its argument list, or None."""
        for template in self.templates[name]:
            if template.parameters:
                continue
            at = next(i for i, t in enumerate(template.tokens) if t.text == name)
            if template.tokens[at + 1].text != "<":
                raise CceError(
                    template.decl.position, f"a specialisation must be written as {name}<...>(...)"
                )
            arguments, end = arguments_of(list(template.tokens), at + 1)
            if [scalar(folded(a)) for a in arguments] == [scalar(a) for a in values.values()]:
                return template._replace(
                    tokens=(*template.tokens[: at + 1], *template.tokens[end:])
                )
        return None

    def _is_complete(self, template: _Template, arguments: list[list[Token]]) -> bool:
        """Return True if the list has all arguments that a call could determine."""
        missing = {p.name for p in template.parameters[len(arguments) :]}
        return not missing & {g.template for g in template.patterns}

    def _chosen(self, use: Token, count: int) -> _Template:
        """Return the template of that name that takes ``count`` function arguments."""
        bodies = [t for t in self.templates[use.text] if t.parameters]
        if len(bodies) > 1:
            bodies = [t for t in bodies if t.takes(count)] or bodies
        if len(bodies) != 1:
            position = bodies[1].decl.position if bodies else use.position
            raise CceError(position, f"template {use.text} must be defined only once")
        return bodies[0]


def _named(use: Token, values: dict[str, list[Token]]) -> str:
    """Return the name of an instance."""
    name = f"{use.text}__{_shown(values)}"
    if len(name) > _LONGEST:
        message = f"the name of an instance must have at most {_LONGEST} characters"
        raise CceError(use.position, message)
    return name


def _shown(values: dict[str, list[Token]]) -> str:
    """Return a template's arguments as part of an identifier."""
    return "_".join(re.sub(r"\W+", "", t.text) or "x" for a in values.values() for t in a)


def _structure(decl: TopLevelDecl) -> str | None:
    """Return the name of a structure template's structure; None for another template."""
    _, end = arguments_of(decl.tokens, 1)
    texts = [t.text for t in decl.tokens[end : end + 3]]
    is_structure = not decl.name and texts[:1] == ["struct"] and texts[2:] == ["{"]
    return texts[1] if is_structure else None


def _variable(decl: TopLevelDecl) -> str | None:
    """Return the name of a variable template's variable; None for another template."""
    _, end = arguments_of(decl.tokens, 1)
    texts = [t.text for t in decl.tokens[end:]]
    if "=" not in texts or texts[0] in ("struct", "class", "union", "typedef", "using"):
        return None
    before = texts[: texts.index("=")]
    return before[-1] if len(before) > 1 and "(" not in before else None


def _template(decl: TopLevelDecl) -> _Template:
    """Parse a template into its parameters and the declaration that follows them."""
    groups, end = arguments_of(decl.tokens, 1)
    parameters = []
    for group in groups:
        texts = [t.text for t in group]
        if not texts:
            continue
        if "..." in texts:  # refused where the template is used
            parameters.append(_TemplateParameter("...", False, None))
            continue
        at = texts.index("=") if "=" in texts else len(texts)
        default = tuple(group[at + 1 :]) if at < len(texts) else None
        is_type = texts[0] in ("typename", "class")
        parameters.append(_TemplateParameter(texts[at - 1], is_type, default))
    return _Template(decl, tuple(parameters), tuple(decl.tokens[end:]))


def _matched(
    use: Token, template: _Template, arguments: list[list[Token]]
) -> dict[str, list[Token]]:
    """Return the argument of each parameter; a value of several words is parenthesised.

    Raises
    ------
    CceError
        If the number of arguments does not fit, or they have too many words.
    """
    if any(p.name == "..." for p in template.parameters):
        position = template.decl.position
        raise CceError(position, "templates must have a fixed number of parameters")
    if sum(map(len, arguments)) > _WORDS:
        message = f"template {use.text} must have arguments of at most {_WORDS} words"
        raise CceError(use.position, message)
    count = len(template.parameters)
    fewest = template.fewest
    if not fewest <= len(arguments) <= count:
        expected = str(count) if fewest == count else f"{fewest} to {count}"
        raise CceError(
            use.position,
            f"template {use.text} must have {expected} arguments, not {len(arguments)}",
        )
    values: dict[str, list[Token]] = {}
    for number, (name, is_type, default) in enumerate(template.parameters):
        if number < len(arguments):
            tokens = arguments[number]
        else:
            tokens = [x for t in default or () for x in values.get(t.text, [t])]
        tokens = tokens if is_type else folded(tokens)
        if not is_type and len(tokens) > 1:
            bracket = tokens[0]._replace(kind="punctuation")
            tokens = [bracket._replace(text="("), *tokens, bracket._replace(text=")")]
        values[name] = [t._replace(position=use.position) for t in tokens]
    return values
