"""Batch checks of the exact dot product, which compare compiled RTL with golden."""

from collections.abc import Iterator
from functools import partial

from vitruvian.golden.fp import PRESETS, DotSpec
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.sim.bench.fp.batch import run_dot
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

__all__ = ["CONFIGURATIONS", "checks", "run_exact"]

#: (input, second input, output, K, pipeline)
CONFIGURATIONS = (
    ("fp8e4m3", None, "fp32", 16, 0),
    ("fp8e5m2", None, "fp16", 2, 3),
    ("fp8e4m3", "fp8e5m2", "fp32", 4, 2),
    ("fp16", None, "fp32", 8, 0),
    ("fp16", None, "fp32", 1, 4),
    ("fp16", None, "fp16", 3, 1),
    ("fp16", None, "fp64", 2, 0),
)


def run_exact(name: str, spec: DotSpec, pipeline: int, vectors: int, seed: int) -> Result:
    """Compare ``ExactDotProduct`` with ``fused_dot`` on stimuli of all ``CLASSES``."""
    return run_dot(name, spec, pipeline, vectors, seed, unit=ExactDotProduct)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration."""
    for a, b, output, k, pipeline in CONFIGURATIONS:
        spec = PRESETS["exact"].spec(a, output, k=k, input_b=b)
        operands = a if b is None else f"{a}×{b}"
        name = f"exact {operands}→{output} K={k} pipeline={pipeline}"
        yield Check(
            unit="fp.ExactDotProduct",
            configuration=name,
            run=partial(run_exact, name, spec, pipeline),
            weight=4,
        )
