"""The nine operations on matrices of any size, by their names in Zhang 2024, Table 3.2."""

from collections.abc import Callable

import numpy as np

from vitruvian.golden.simd2 import Op

from .machine import Machine


def _call(op: Op) -> Callable[..., np.ndarray]:
    """Return the function of one operation, with its name and docstring."""

    def call(a, b, c=None, *, machine: Machine | None = None) -> np.ndarray:
        return (machine or Machine()).apply(op, a, b, c)

    call.__name__ = call.__qualname__ = op.mnemonic
    call.__doc__ = f"""Return D = C {op.plus} (A {op.times} B); see ``Machine.apply``.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float16, bfloat16 or float32
    c : (M, N) ndarray of float32, optional
        By default every element is {op.identity}.
    machine : Machine, optional
        Machine that computes; the instructions are added to its counts. By default a new machine
        on golden.

    Returns
    -------
    (M, N) ndarray of float32
    """
    return call


mma = _call(Op.MMA)
minplus = _call(Op.MINPLUS)
maxplus = _call(Op.MAXPLUS)
minmul = _call(Op.MINMUL)
maxmul = _call(Op.MAXMUL)
minmax = _call(Op.MINMAX)
maxmin = _call(Op.MAXMIN)
orand = _call(Op.ORAND)
addnorm = _call(Op.ADDNORM)
