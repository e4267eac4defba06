"""A machine with a SIMD² unit: the programming model of Zhang 2024 (Table 3.3) in Python.

``Machine`` has the five functions of that table on 16×16 fragments, and ``Machine.apply`` for
matrices of any size; ``minplus`` and eight other functions are named after the operations. A back
end computes: golden, the compiled RTL, or one that was added by ``register_backend``.
"""

from .backends import BACKENDS, SPARSE_BACKENDS, register_backend
from .calls import addnorm, maxmin, maxmul, maxplus, minmax, minmul, minplus, mma, orand
from .instructions import DEEP, TILE, Counts, Fragment
from .machine import Machine, padding
from .rtl import CompiledUnit

__all__ = [
    "BACKENDS",
    "DEEP",
    "SPARSE_BACKENDS",
    "TILE",
    "CompiledUnit",
    "Counts",
    "Fragment",
    "Machine",
    "addnorm",
    "maxmin",
    "maxmul",
    "maxplus",
    "minmax",
    "minmul",
    "minplus",
    "mma",
    "orand",
    "padding",
    "register_backend",
]
