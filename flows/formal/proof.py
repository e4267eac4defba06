"""A proof and its mutations."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from vitruvian.flows.formal.harness import ProofHarness


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A change of one place in the source of the RTL, which a proof must notice.

    Attributes
    ----------
    name : str
        Effect of the change, for the table.
    owner : object
        The class or the module that has the function.
    function : str
        The name of the function or method whose source changes.
    old, new : str
        The text to replace, which must occur exactly once, and the new text.
    """

    name: str
    owner: Any
    function: str
    old: str
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Replace the function by its mutant while the block runs.

        Raises
        ------
        ValueError
            If the text to replace does not occur exactly once.
        """
        # Not getattr, which unwraps a static method, so that the original could not be put back.
        original = inspect.getattr_static(self.owner, self.function)
        plain = original.__func__ if isinstance(original, staticmethod) else original
        source = textwrap.dedent(inspect.getsource(plain))
        if source.count(self.old) != 1:
            raise ValueError(
                f"text {self.old!r} must occur once in {self.function}, "
                f"not {source.count(self.old)} times"
            )
        names: dict[str, Any] = {}
        code = compile(source.replace(self.old, self.new), f"<mutant: {self.name}>", "exec")
        # A method that calls super() without arguments, or reads names of a function around it,
        # cannot have mutations: the compiled text has no closure.
        exec(code, plain.__globals__, names)
        setattr(self.owner, self.function, names[self.function])
        try:
            yield
        finally:
            setattr(self.owner, self.function, original)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A property of a component.

    Attributes
    ----------
    name : str
        Short name, ``family.component.property``.
    component : str
        The component with its configuration.
    claim : str
        The property as a sentence.
    build : callable
        Function that adds the component and the rules to a harness.
    method : str
        See ``engine.prove``.
    mutations : tuple of Mutation
        Changes of the RTL, each of which must break a rule.
    clocked : bool
        False for a design without registers.
    """

    name: str
    component: str
    claim: str
    build: Callable[[ProofHarness], None]
    mutations: tuple[Mutation, ...]
    method: str = "pdr"
    clocked: bool = True

    def to_rtlil(self, mutation: Mutation | None = None) -> str:
        """Return the harness of the proof as RTLIL text, with one of its mutations or without."""
        harness = ProofHarness(clocked=self.clocked)
        if mutation is None:
            self.build(harness)
            return harness.to_rtlil()
        with mutation.planted():
            self.build(harness)
            return harness.to_rtlil()


def proof_of_cases(
    name: str,
    component: str,
    claim: str,
    build: Callable[..., None],
    mutations: tuple[Mutation, ...],
    **parameters: Any,
) -> Proof:
    """Return the proof of a unit without registers, for every operand.

    Parameters
    ----------
    name, component, claim, mutations
        As in ``Proof``.
    build : callable
        Function that adds the component and the rules to a harness.
    **parameters
        Keyword arguments of ``build``.
    """
    return Proof(
        name=name,
        component=component,
        claim=claim,
        build=partial(build, **parameters),
        method="cases",
        clocked=False,
        mutations=mutations,
    )
