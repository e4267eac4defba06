"""The unit that realises a machine's rule, and the steps in which it computes a long sum.

All units of this table have the ports ``a``, ``b``, ``c`` and ``d``. One step of a unit adds some
of the products to C; a longer dot product takes several steps, and the D of one is the C of the
next.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from amaranth.lib import wiring

from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.spec import ChainSpec, IntPhaseSpec, PhaseSpec
from vitruvian.hdl.elaborate import only_described
from vitruvian.hdl.fp.aligned import AlignedDotProduct
from vitruvian.hdl.fp.chain import ChainDot
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.fma import FusedMultiplyAdd
from vitruvian.hdl.fp.groups import GroupDot
from vitruvian.hdl.fp.int_phases import IntMatrixPhase
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.phases import MatrixPhase
from vitruvian.hdl.fp.scaled import ScaledDot

_TERMS = 8  # products of a rule for any number of them
_WIDE_SUM_BITS = 528  # an exact sum of BF16 products (CDNA 1)
_PIPELINE = 3  # register ranks of a dot product, as in most presets of matrix units


class NoUnit(ValueError):
    """The error of a rule that no unit realises; the message says why."""


@dataclass(frozen=True, kw_only=True)
class MachineStep:
    """One step of a dot product.

    Attributes
    ----------
    terms : slice
        The products of the step.
    inputs : dict of str to int
        Values of further input ports.
    """

    terms: slice
    inputs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Realisation:
    """A unit that computes by a rule.

    Attributes
    ----------
    component : callable
        Class of the unit.
    parameters : dict
        Its parameters.
    k : int
        Number of products that one step takes.
    phases : int
        Number of steps with the same products.
    """

    component: Callable[..., wiring.Component]
    parameters: dict[str, Any]
    k: int
    phases: int = 1

    @property
    def name(self) -> str:
        """The class of the unit."""
        return getattr(self.component, "__name__", str(self.component))

    def build(self) -> wiring.Component:
        """Return the unit."""
        return self.component(**self.parameters)

    def steps(self, terms: int) -> Iterator[MachineStep]:
        """Yield the steps of a dot product of ``terms`` products, a multiple of ``k``."""
        for start in range(0, terms, self.k):
            block = slice(start, start + self.k)
            for phase in range(self.phases):
                yield MachineStep(terms=block, inputs={} if self.phases == 1 else {"phase": phase})


def realise(
    rule: object,
    *,
    pipeline: int | None = None,
    terms: int | None = None,
    multiplier: str = "booth",
) -> Realisation:
    """Return the unit that realises a rule.

    Parameters
    ----------
    rule : DotSpec, IntDotSpec, ChainSpec, PhaseSpec or IntPhaseSpec
        The rule of a row of the table of machines.
    pipeline : int, optional
        Number of register ranks, by default 3; of every operation of a chain, by default 0.
    terms : int, optional
        Number of products of a rule that has no number of its own, by default 8.
    multiplier : {"booth", "dsp"}
        Form of the products. The phases of Tenstorrent have short products, which are always ``*``.

    Raises
    ------
    NoUnit
        If there is none; the message says why.
    """
    depth = _PIPELINE if pipeline is None else pipeline
    parameters: dict[str, Any] = {"spec": rule, "pipeline": depth, "multiplier": multiplier}
    if isinstance(rule, DotSpec):
        component = _dot_unit(rule)
        if component is ExactDotProduct and _is_wide(rule):
            return _checked(component, {**parameters, "max_sum_bits": _WIDE_SUM_BITS}, rule.k)
        try:
            return _checked(component, parameters, rule.k)
        except NoUnit:
            if rule.k > 1:
                raise
            return _checked(FusedMultiplyAdd, parameters, 1)
    if isinstance(rule, IntDotSpec):
        return _checked(IntDotProduct, parameters, rule.k)
    if isinstance(rule, ChainSpec):
        if rule.products == "paired":  # a unit that refuses its rule would be one that is not used
            raise NoUnit("no unit adds neighbouring products before it accumulates them")
        k = rule.k or terms or _TERMS
        return _checked(ChainDot, {**parameters, "k": k, "pipeline": pipeline or 0}, k)
    if isinstance(rule, PhaseSpec):
        depth = 2 if pipeline is None else pipeline
        found = _checked(MatrixPhase, {"spec": rule, "pipeline": depth}, rule.k)
        return replace(found, phases=rule.phases)
    if isinstance(rule, IntPhaseSpec):
        depth = 2 if pipeline is None else pipeline
        found = _checked(IntMatrixPhase, {"spec": rule, "pipeline": depth}, rule.k)
        return replace(found, phases=rule.phases)
    raise NoUnit(f"no unit computes by a rule of the kind {type(rule).__name__}")


def _dot_unit(rule: DotSpec) -> Callable[..., wiring.Component]:
    """Return the class of the unit for a fused dot product."""
    if rule.scales is not None:
        return GroupDot if rule.sum.lanes == "sixteens" else ScaledDot
    if rule.addend.how == "aligned":
        return AlignedDotProduct
    exact = rule.sum.window is None and rule.addend.how == "tree"
    return ExactDotProduct if exact else DotProduct


def _is_wide(rule: DotSpec) -> bool:
    """Return True for an exact sum of BF16 products."""
    return rule.input.name == rule.input_b.name == "bf16"


def _checked(
    component: Callable[..., wiring.Component], parameters: dict[str, Any], k: int
) -> Realisation:
    """Return a realisation, after the unit accepted the parameters."""
    found = Realisation(component=component, parameters=parameters, k=k)
    try:
        only_described(found.build())
    except ValueError as error:
        raise NoUnit(str(error)) from None
    return found
