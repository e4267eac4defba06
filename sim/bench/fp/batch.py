"""Batch checks of the dot products, which compare compiled RTL with golden."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.fp import DotSpec, IntDotSpec, fused_dot, int_dot
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Configuration
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .stimuli import dot_vectors, int_vectors

_DOT, _INTDOT = UNITS["dot"], UNITS["intdot"]


def dot_name(preset: str, spec: DotSpec, pipeline: int) -> str:
    """Return the name of a dot product's configuration for tables."""
    operands = spec.input.name
    if spec.input_b != spec.input:
        operands += f"×{spec.input_b.name}"
    return f"{preset} {operands}→{spec.output.name} K={spec.k} pipeline={pipeline}"


def run_dot(
    name: str,
    spec: DotSpec,
    vectors: int,
    seed: int,
    *,
    pipeline: int,
    unit: Callable[..., Any] = DotProduct,
    **options: Any,
) -> Result:
    """Compare a dot product unit with ``fused_dot`` on stimuli of all ``CLASSES``.

    Parameters
    ----------
    name : str
        Name of the configuration, for messages.
    vectors, seed : int
        Number of vectors, and seed of the stimuli.
    pipeline : int
        Number of pipeline registers.
    unit : callable
        Class of the unit.
    **options
        Further parameters of the unit.
    """
    model = compile_unit(unit, spec=spec, pipeline=pipeline, **options)
    a, b, c = dot_vectors(spec, vectors, seed=seed)
    return compare(
        name,
        got=model.run(a=a, b=b, c=c),
        expected=fused_dot(a, b, c, spec),
        operands={"a": a, "b": b, "c": c},
        seed=seed,
    )


def int_results(spec: IntDotSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the codes that golden computes from the operands of ``int_vectors``, (N,) uint32."""
    signs = {"signed_a": spec.signed_a, "signed_b": spec.signed_b, "saturate": spec.saturate}
    return np.asarray(int_dot(a, b, c, **signs)).astype(np.int32).view(np.uint32)


def run_int_dot(
    spec: IntDotSpec,
    vectors: int,
    seed: int,
    *,
    pipeline: int,
    unit: Callable[..., Any] = IntDotProduct,
    **options: Any,
) -> Result:
    """Compare ``IntDotProduct`` with ``int_dot``.

    Parameters
    ----------
    vectors, seed : int
        Number of vectors, and seed of the stimuli.
    pipeline : int
        Number of pipeline registers.
    unit : callable
        Class of the unit.
    **options
        Further parameters of the unit.
    """
    model = compile_unit(unit, spec=spec, pipeline=pipeline, **options)
    a, b, c = int_vectors(spec.k, spec.signed_a, spec.signed_b, vectors, seed=seed)
    return compare(
        f"int_dot K={spec.k}",
        got=model.run(a=a, b=b, c=c),
        expected=int_results(spec, a, b, c),
        operands={"a": a, "b": b, "c": c},
        seed=seed,
    )


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the units ``dot`` and ``intdot``."""
    for c in map(_DOT.default, _DOT.checked):
        component, parameters = _DOT.component(c)
        spec, kind = parameters.pop("spec"), _kind(c)
        name = dot_name(c["rule"] or c["preset"], spec, c["pipeline"]) + kind
        yield Check(
            unit=f"fp.{component.__name__}",
            configuration=name,
            run=partial(run_dot, name, spec, unit=component, **parameters),
            weight=spec.k * spec.input.significand_bits // 8,
        )
    for c in map(_INTDOT.default, _INTDOT.checked):
        _, parameters = _INTDOT.component(c)
        spec = parameters.pop("spec")
        operands = "×".join("int8" if x else "uint8" for x in (spec.signed_a, spec.signed_b))
        mode = "saturate" if spec.saturate else "wrap"
        yield Check(
            unit="fp.IntDotProduct",
            configuration=f"{operands}→int32 {mode} K={spec.k} pipeline={c['pipeline']}{_kind(c)}",
            run=partial(run_int_dot, spec, **parameters),
        )


def _kind(c: Configuration) -> str:
    """Return the end of a row's name, which names the options that are not the default ones."""
    multiplier = f" {c['multiplier']}" if c["multiplier"] else ""
    return multiplier + (" low power" if c.get("low_power") else "")
