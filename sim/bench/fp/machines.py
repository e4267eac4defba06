"""Batch checks of the units that realise rows of the table of machines."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.machines import ChainSpec, IntPhaseSpec, PhaseSpec, compute, find
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.machines import realise
from vitruvian.sim.machines.rtl import run_rtl
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .stimuli import dot_vectors

_UNIT = UNITS["machine"]


def operands(
    rule: DotSpec | ChainSpec | PhaseSpec, terms: int, count: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands of all classes of ``dot_vectors`` for a rule.

    Parameters
    ----------
    rule : DotSpec, ChainSpec or PhaseSpec
    terms : int
        Number of products.
    count : int
        Number of vectors.
    """
    formats = dot_spec(
        input=rule.input, input_b=rule.input_b, output=rule.output, k=terms, window=24
    )
    return dot_vectors(formats, count, seed=seed)


def unit_vectors(
    rule: DotSpec | ChainSpec | PhaseSpec | IntPhaseSpec, terms: int, count: int, *, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the values of a unit's inputs for random operands, and its results.

    The unit of a rule with several phases works on one of them, whose Dst is the result of the
    phases before.
    """
    scales: tuple[np.ndarray, ...] = ()
    if isinstance(rule, IntPhaseSpec):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 1 << 8, (2, count, terms), np.uint8)
        c = rng.integers(0, 1 << 32, count, np.uint32)
    elif isinstance(rule, PhaseSpec) and rule.shared_bits is not None:
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 1 << rule.shared_bits, (2, count, terms), np.uint8)
        scales = tuple(rng.integers(100, 150, (2, count, 1), np.uint8))
        _, _, c = operands(rule, terms, count, seed=seed)
    else:
        a, b, c = operands(rule, terms, count, seed=seed)
    inputs = {"a": a, "b": b, "c": c}
    inputs |= {f"scale_{name}": scale[:, 0] for name, scale in zip("ab", scales, strict=False)}
    if not isinstance(rule, PhaseSpec | IntPhaseSpec) or rule.phases == 1:
        return inputs, np.asarray(compute(rule, a, b, c, *scales))
    before = [c]
    for phases in range(1, rule.phases + 1):
        # A rule of only the first phases gives the Dst that the next phase takes.
        before.append(np.asarray(compute(replace(rule, phases=phases), a, b, c, *scales)))
    stages = np.stack(before)
    phase = np.arange(count) % rule.phases
    rows = np.arange(count)
    return inputs | {"c": stages[phase, rows], "phase": phase}, stages[phase + 1, rows]


def run_row(stem: str, vectors: int, seed: int) -> Result:
    """Compare the unit of a row with golden."""
    rule = find(stem).rule
    assert isinstance(rule, DotSpec | ChainSpec | PhaseSpec)
    unit = realise(rule)
    a, b, c = operands(rule, unit.k, vectors, seed=seed)
    return compare(
        stem,
        got=np.asarray(run_rtl(unit, a, b, c)),
        expected=np.asarray(compute(rule, a, b, c)),
        operands={"a": a, "b": b, "c": c},
        seed=seed,
    )


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the unit ``machine``."""
    for c in map(_UNIT.default, _UNIT.checked):
        component, _ = _UNIT.component(c)
        yield Check(
            unit=f"fp.{component.__name__}",
            configuration=c["row"].replace("_", " "),
            run=partial(run_row, c["row"]),
            weight=8,
        )
