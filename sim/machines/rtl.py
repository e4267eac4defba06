"""The compiled RTL of a machine's rule, as a function on arrays of codes."""

from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.fp.formats import FloatFormat, IntFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import Rule
from vitruvian.golden.machines.table import output_format
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.dots import spec_of
from vitruvian.hdl.machines import Realisation, realise
from vitruvian.sim.machines.sets import Differences, MachineSet, differences
from vitruvian.sim.rtl import compile_unit


def depth_for(spec: DotSpec) -> int:
    """Return the largest pipeline depth among the checked units of a specification, or 3.

    A bench that may choose any depth uses this one, because the model of the unit is built anyway.
    """
    return _depths().get(spec, 3)


@lru_cache
def _depths() -> dict[DotSpec, int]:
    """Return the largest pipeline depth of each checked specification."""
    depths: dict[DotSpec, int] = {}
    for c in map(UNITS["dot"].default, UNITS["dot"].checked):
        spec = spec_of(c)
        depths[spec] = max(depths.get(spec, 0), c["pipeline"])
    return depths


def unit_of(rule: Rule, terms: int | None = None) -> Realisation:
    """Return the unit that realises a rule, for ``terms`` products if the rule takes any number.

    Its pipeline depth is that of the units which ``vitruvian verify`` checks, if one has the rule,
    because the model of that unit is built anyway.

    Raises
    ------
    NoUnit
        If no unit realises the rule; the message says why.
    """
    depth = depth_for(rule) if isinstance(rule, DotSpec) else None
    return realise(rule, pipeline=depth, terms=terms)


def run_rtl(
    unit: Realisation,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    scale_a: np.ndarray | None = None,
    scale_b: np.ndarray | None = None,
    *,
    zeros: tuple[int, int] = (0, 0),
) -> np.ndarray:
    """Return D = C + Σ_k A_k·B_k as a compiled unit computes it.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int
    c : (n,) ndarray of unsigned int
    scale_a, scale_b : (n, K / block) ndarray of uint8, optional
        Scales of the blocks, for units that have them.
    zeros : (int, int)
        Codes of A and B whose product changes no sum. They follow the last products if K is not a
        multiple of the products of a step.
    """
    model = compile_unit(unit.component, **unit.parameters)
    terms = a.shape[1]
    # The products of the last step that the operands do not fill.
    missing = -terms % unit.k
    a, b = (
        np.pad(x, ((0, 0), (0, missing)), constant_values=zero)
        for x, zero in zip((a, b), zeros, strict=True)
    )
    for step in unit.steps(a.shape[1]):
        inputs: dict[str, Any] = {"a": a[:, step.terms], "b": b[:, step.terms], "c": c}
        for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
            if scale is not None:
                each = terms // scale.shape[1]
                part = scale[:, step.terms.start // each : step.terms.stop // each]
                # A port of one scale takes numbers, one of several takes rows.
                inputs[name] = part[:, 0] if part.shape[1] == 1 else part
        # The sum of a step is Dst of the next one.
        c = model.run(**inputs, **step.inputs)
    return c


def compare_rtl(data: MachineSet, unit: Realisation | None = None) -> Differences:
    """Compare a compiled unit with a set.

    Parameters
    ----------
    unit : Realisation, optional
        By default the unit of the set's rule.

    Raises
    ------
    NoUnit
        If no unit realises the rule; the message says why.
    """
    machine = data.machine
    a, b = _narrow(data.a, machine.input), _narrow(data.b, machine.input_b)
    # The product of −0 and +0 is −0, which changes no sum, not even one that is −0.
    zeros = (_negative_zero(machine.input), 0)
    output = output_format(machine)
    c = data.c.astype(np.uint32) if output is None else _narrow(data.c, output)
    unit = unit_of(machine.rule, a.shape[1]) if unit is None else unit
    got = run_rtl(unit, a, b, c, data.scale_a, data.scale_b, zeros=zeros)
    return differences(np.asarray(got), data.d, output)


def _negative_zero(format: FloatFormat | IntFormat) -> int:
    return format.negative_zero if isinstance(format, FloatFormat) else 0


def _narrow(codes: np.ndarray, format: FloatFormat | IntFormat) -> np.ndarray:
    """Return codes in the type of the port that takes them."""
    bits = format.storage_bits if isinstance(format, FloatFormat) else 8
    return codes.astype(f"u{bits // 8}")
