"""Rows of fused dot products by generated kernels, where they are worth their compilation.

A kernel takes up to two seconds to compile once, and a fraction of a second to load later. A rule
is therefore computed by its plain form until it has been given so much work that the kernel pays.
"""

import threading
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from vitruvian.golden.sums import phases, rows, sequence
from vitruvian.golden.sums.rule import ChainFacts, chain_facts, facts, phase_facts
from vitruvian.golden.sums.store import load

#: Terms of a call below which a kernel that is loaded is not used, and terms of all calls with one
#: rule after which it is loaded: those of a plain rule, and of others, whose plain form is slower.
SMALL, MANY_PLAIN, MANY = 1 << 11, 1 << 24, 1 << 21
_STEP = 8  # terms of a step of a chain that may be cut anywhere

_work: dict[Hashable, int] = {}
_off = threading.local()


@contextmanager
def plain_forms() -> Generator[None]:
    """Compute every rule by its plain form within this context, in this thread."""
    before = getattr(_off, "value", False)
    _off.value = True
    try:
        yield
    finally:
        _off.value = before


def is_worth(key: Hashable, terms: int, many: int) -> bool:
    """Count the terms of a call, and return True if a kernel should compute them."""
    if terms < SMALL or getattr(_off, "value", False):
        return False
    done = _work.get(key, 0)
    if done < many:
        _work[key] = done + terms
    return done + terms >= many


@lru_cache(256)
def kernel(spec: Any, terms: int) -> tuple[Callable[..., None], int] | None:
    """Return the kernel of a ``DotSpec`` for rows of so many terms, and the terms of its steps."""
    f = facts(spec)
    if sequence.is_fma(f) and sequence.computes(sequence.single(f), terms):
        return _sequence(sequence.single(f), terms)
    if terms % spec.k or not rows.computes(f):
        return None
    text = rows.source(f, "Rows of fused dot products.", terms > spec.k)
    return load(text).rows, spec.k


@lru_cache(256)
def chain_kernel(spec: Any, terms: int) -> tuple[Callable[..., None], int] | None:
    """Return the kernel of a ``ChainSpec``, as ``kernel`` does."""
    f = chain_facts(spec)
    return _sequence(f, terms) if sequence.computes(f, terms) else None


@lru_cache(256)
def phase_kernel(spec: Any, terms: int) -> tuple[Callable[..., None], int] | None:
    """Return the kernel of a ``PhaseSpec``, as ``kernel`` does."""
    f = phase_facts(spec)
    if terms % spec.k or not phases.computes(f):
        return None
    return load(phases.source(f, "Rows of products in phases.")).rows, spec.k


def _sequence(f: ChainFacts, terms: int) -> tuple[Callable[..., None], int]:
    """Return the kernel of a sequence; a chain with one accumulator is cut into short steps."""
    if f.accumulators == 1 and f.products == "fused" and not f.descending:
        f = f._replace(k=gcd(terms, _STEP))
    return load(sequence.source(f, "Rows of rounded operations.", terms)).rows, f.k or terms


def chain_rows(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: Any) -> np.ndarray | None:
    """Return rows by a ``ChainSpec``; parameters and result are those of ``dot_rows``."""
    return _computed((a, b, c), spec, chain_kernel, MANY)


def phase_rows(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: Any) -> np.ndarray | None:
    """Return rows by a ``PhaseSpec``; parameters and result are those of ``dot_rows``."""
    return _computed((a, b, c), spec, phase_kernel, MANY)


def _computed(given: tuple[np.ndarray, ...], spec: Any, find: Any, many: int) -> np.ndarray | None:
    """Compute rows with the kernel that ``find`` returns, if it is worth while."""
    terms, c = given[0].shape[1], given[2]
    if not is_worth(spec, given[0].size, many):
        return None
    found = find(spec, terms)
    if found is None:
        return None
    compute, step = found
    d = np.empty(c.shape, c.dtype)
    compute(*(np.ascontiguousarray(x).reshape(-1) for x in given), d, terms // step)
    return d


def dot_rows(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: Any,
    scale_a: np.ndarray | None = None,
    scale_b: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return n fused dot products, or None if the plain form of the rule should compute them.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
        If K is not a multiple of ``spec.k``, the plain form computes it.
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    spec : DotSpec
    scale_a, scale_b : (n, K / block) ndarray of uint8, ``spec.scales.format`` codes, optional

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes, or None
    """
    given = (a, b, c) if scale_a is None or scale_b is None else (a, b, c, scale_a, scale_b)
    return _computed(given, spec, kernel, MANY_PLAIN if spec.is_plain else MANY)
