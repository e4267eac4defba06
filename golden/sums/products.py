"""Matrix products by generated kernels, where they are worth their compilation."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.sums import matrix, phases, rows, sequence
from vitruvian.golden.sums.dots import MANY, MANY_PLAIN, is_worth
from vitruvian.golden.sums.rule import ChainFacts, Facts, PhaseFacts, read
from vitruvian.golden.sums.store import load

_PARTS = 4  # parts of the rows for each thread, after each of which progress is reported
_LEAST_ROWS = 64

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Operands:
    """The codes of one matrix product, and the codes of its scales if the rule has them.

    A is (M, K), B (K, N), C (M, N), the scales of A (M, K / block), those of B (K / block, N).
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None


@lru_cache(256)
def text(spec: Any) -> str | None:
    """Return the text of the kernel of a DotSpec, ChainSpec or PhaseSpec, or None.

    Every rule has a kernel whose sums ``golden.sums`` can generate; see ``computes`` of the modules
    ``rows``, ``sequence`` and ``phases``.
    """
    f = read(spec)
    if isinstance(f, Facts) and sequence.is_fma(f):
        f = sequence.single(f)
    if isinstance(f, ChainFacts):
        known = sequence.computes(f, f.k or f.accumulators)
        return sequence.matrix_source(f, "Products by rounded operations.") if known else None
    if isinstance(f, PhaseFacts):
        known = phases.computes(f)
        return phases.matrix_source(f, "Products in phases.") if known else None
    known = f is not None and rows.computes(f)
    return matrix.source(f, "Products by windowed sums.") if f and known else None


@lru_cache(256)
def kernel(spec: Any) -> ModuleType | None:
    """Return the module of ``text``, compiled, or None."""
    own = text(spec)
    return None if own is None else load(own)


def product(
    x: Operands, spec: Any, threads: int = 1, progress: Progress = lambda done, total: None
) -> np.ndarray | None:
    """Return D = C + A·B, or None if the plain form of the rule should compute it.

    Parameters
    ----------
    x : Operands
        K is a multiple of the terms of a step.
    spec : DotSpec, ChainSpec or PhaseSpec
    threads : int
        Number of threads; rows of D are divided among them.
    progress : callable
        Function that is called with (rows done, rows in total).

    Returns
    -------
    (M, N) ndarray of unsigned int, ``spec.output`` codes, or None
    """
    many = MANY_PLAIN if getattr(spec, "is_plain", False) else MANY
    terms = x.c.size * x.a.shape[1]
    whole = x.a.shape[1] % (spec.k or 1) == 0
    if not whole or text(spec) is None or not is_worth(("matrix", spec), terms, many):
        return None
    return compute(x, spec, threads, progress)


def compute(
    x: Operands, spec: Any, threads: int = 1, progress: Progress = lambda done, total: None
) -> np.ndarray:
    """Return what ``product`` returns by a rule that has a kernel, however little the work is."""
    module = kernel(spec)
    assert module is not None, f"{spec} must have a kernel"
    given = ((x.a, x.scale_a), (x.b, x.scale_b))
    left, right = (
        decode(*(np.ascontiguousarray(v) for v in codes if v is not None))
        for decode, codes in zip((module.left, module.right), given, strict=True)
    )
    c = np.ascontiguousarray(x.c)
    d = np.empty(c.shape, c.dtype)
    count = len(d)
    step = max(ceil_div(count, threads * _PARTS), min(_LEAST_ROWS, ceil_div(count, threads)), 1)
    parts = [slice(start, min(start + step, count)) for start in range(0, count, step)]

    def compute_part(part: slice) -> None:
        module.rows(*(v[part] for v in left), *right, c[part], d[part])

    if threads == 1 or len(parts) == 1:
        for part in parts:
            compute_part(part)
            progress(part.stop, count)
        return d
    with ThreadPoolExecutor(threads) as pool:
        for part, _ in zip(parts, pool.map(compute_part, parts), strict=True):
            progress(part.stop, count)
    return d


def all_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
