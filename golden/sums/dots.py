"""Rows of fused dot products by generated kernels, where they are worth their compilation.

A kernel takes up to two seconds to compile once, and a fraction of a second to load later. A rule
is therefore computed by its plain form until it has been given so much work that the kernel pays.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.sums import rows
from vitruvian.golden.sums.rule import facts
from vitruvian.golden.sums.store import load

#: Terms of a call below which a kernel that is loaded is not used, and terms of all calls with one
#: rule after which it is loaded: those of a plain rule, and of others, whose plain form is slower.
SMALL, MANY_PLAIN, MANY = 1 << 11, 1 << 24, 1 << 21

_work: dict[Hashable, int] = {}
_off = threading.local()


@contextmanager
def plain_forms() -> Iterator[None]:
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
def kernel(spec: Any, many: bool) -> Callable[..., None] | None:
    """Return the kernel of a ``DotSpec``, for one block or for any number, or None."""
    f = facts(spec)
    if not rows.computes(f):
        return None
    return load(rows.source(f, "Rows of fused dot products.", many)).rows


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
        K is a multiple of ``spec.k``, or a kernel does not compute it.
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    spec : DotSpec
    scale_a, scale_b : (n, K / block) ndarray of uint8, ``spec.scale`` codes, optional

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes, or None
    """
    terms = a.shape[1]
    if terms % spec.k or not is_worth(spec, a.size, MANY_PLAIN if spec.is_plain else MANY):
        return None
    compute = kernel(spec, terms > spec.k)
    if compute is None:
        return None
    given = [a, b, c] if scale_a is None or scale_b is None else [a, b, c, scale_a, scale_b]
    d = np.empty(c.shape, c.dtype)
    compute(*(np.ascontiguousarray(x).reshape(-1) for x in given), d, terms // spec.k)
    return d
