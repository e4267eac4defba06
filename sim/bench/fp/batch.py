"""Batch checks of the dot products, which compare compiled RTL with golden."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.fp import PRESETS, DotSpec, IntDotSpec, fused_dot, int_dot
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .stimuli import dot_vectors, int_vectors

__all__ = ["CONFIGURATIONS", "checks", "depth_for", "dot_name", "run_dot", "run_int_dot"]

#: (preset, input, second input, output, K or None, pipeline)
CONFIGURATIONS = (
    ("v100", "fp16", None, "fp32", None, 0),
    ("v100", "fp16", None, "fp16", None, 1),
    ("a100", "fp16", None, "fp32", None, 0),
    ("a100", "fp16", None, "fp32", None, 3),
    ("a100", "fp16", None, "fp32", 16, 3),
    ("a100", "fp16", None, "fp16", None, 2),
    ("a100", "bf16", None, "fp32", None, 1),
    ("a100", "tf32", None, "fp32", None, 2),
    ("ada", "fp8e4m3", None, "fp32", None, 3),
    ("ada", "fp8e4m3", "fp8e5m2", "fp32", None, 0),
    ("h100", "fp16", None, "fp32", None, 3),
    ("h100", "tf32", None, "fp32", None, 1),
    ("h100", "fp8e5m2", None, "fp32", None, 3),
    ("ieee", "fp16", None, "fp16", 1, 0),
    ("ieee", "fp16", None, "fp32", 1, 0),
    ("ieee", "fp16", None, "fp32", None, 3),
    ("ieee", "bf16", None, "fp32", None, 2),
    ("ieee", "tf32", None, "fp32", None, 1),
    ("ieee", "fp8e5m2", "fp8e4m3", "fp32", None, 3),
    ("ieee", "fp32", None, "fp32", 1, 0),
    ("ieee", "fp32", None, "fp32", None, 3),
    ("ieee", "fp64", None, "fp64", 1, 0),
)

#: (K, signed A, signed B, saturate, pipeline)
INTEGER = (
    (16, True, True, False, 0),
    (16, True, True, True, 3),
    (32, False, True, False, 2),
    (5, False, False, True, 1),
)

#: More rows of ``CONFIGURATIONS`` and ``INTEGER``, with ``multiplier="dsp"``.
DSP = (("a100", "fp16", None, "fp32", 4, 3),)
DSP_INTEGER = ((16, True, True, True, 3),)


def depth_for(spec: DotSpec) -> int:
    """Return the largest pipeline depth in ``CONFIGURATIONS`` for a specification, or 3.

    A bench that may choose any depth uses this one, because the model of the unit is built anyway.
    """
    depths = [
        pipeline
        for preset, input, input_b, output, k, pipeline in CONFIGURATIONS
        if PRESETS[preset].spec(input, output, k=k, input_b=input_b) == spec
    ]
    return max(depths, default=3)


def dot_name(preset: str, spec: DotSpec, pipeline: int) -> str:
    """Return the name of a dot product's configuration for tables."""
    operands = spec.input.name
    if spec.input_b != spec.input:
        operands += f"×{spec.input_b.name}"
    return f"{preset} {operands}→{spec.output.name} K={spec.k} pipeline={pipeline}"


def run_dot(
    name: str,
    spec: DotSpec,
    pipeline: int,
    vectors: int,
    seed: int,
    *,
    unit: Callable[..., Any] = DotProduct,
    **options: Any,
) -> Result:
    """Compare a dot product unit with ``fused_dot`` on stimuli of all ``CLASSES``.

    Parameters
    ----------
    name : str
        Name of the configuration, for messages.
    spec : DotSpec
    pipeline : int
        Number of pipeline registers.
    vectors, seed : int
        Number of vectors, and seed of the stimuli.
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


def run_int_dot(
    k: int,
    signed_a: bool,
    signed_b: bool,
    saturate: bool,
    pipeline: int,
    vectors: int,
    seed: int,
    *,
    unit: Callable[..., Any] = IntDotProduct,
    **more: Any,
) -> Result:
    """Compare ``IntDotProduct`` with ``int_dot``.

    Parameters
    ----------
    k : int
        Number of terms.
    signed_a, signed_b, saturate : bool
        Options of the unit.
    pipeline : int
        Number of pipeline registers.
    vectors, seed : int
        Number of vectors, and seed of the stimuli.
    unit : callable
        Class of the unit.
    **more
        Further parameters of the unit.
    """
    options: dict[str, Any] = {"signed_a": signed_a, "signed_b": signed_b, "saturate": saturate}
    model = compile_unit(unit, spec=IntDotSpec(k=k, **options), pipeline=pipeline, **more)
    a, b, c = int_vectors(k, signed_a, signed_b, vectors, seed=seed)
    return compare(
        f"int_dot K={k}",
        got=model.run(a=a, b=b, c=c),
        expected=np.asarray(int_dot(a, b, c, **options)).astype(np.int32).view(np.uint32),
        operands={"a": a, "b": b, "c": c},
        seed=seed,
    )


def checks() -> Iterator[Check]:
    """Yield a row for every configuration."""
    for (preset, a, b, output, k, pipeline), kind, options in _rows(CONFIGURATIONS, DSP):
        spec = PRESETS[preset].spec(a, output, k=k, input_b=b)
        name = dot_name(preset, spec, pipeline) + kind
        yield Check(
            unit="fp.DotProduct",
            configuration=name,
            run=partial(run_dot, name, spec, pipeline, **options),
            weight=spec.k * spec.input.significand_bits // 8,
        )
    for row, kind, options in _rows(INTEGER, DSP_INTEGER):
        k, signed_a, signed_b, saturate, pipeline = row
        operands = f"{'int8' if signed_a else 'uint8'}×{'int8' if signed_b else 'uint8'}→int32"
        mode = "saturate" if saturate else "wrap"
        yield Check(
            unit="fp.IntDotProduct",
            configuration=f"{operands} {mode} K={k} pipeline={pipeline}{kind}",
            run=partial(run_int_dot, *row, **options),
        )


def _rows(
    booth: Sequence[tuple], dsp: Sequence[tuple]
) -> Iterator[tuple[tuple, str, dict[str, Any]]]:
    """Yield each row with a suffix for its name and with the options of its unit."""
    yield from ((row, "", {}) for row in booth)
    yield from ((row, " dsp", {"multiplier": "dsp"}) for row in dsp)
