"""A machine with a SIMD² unit: the programming model of the thesis' Table 3.3, in Python.

`Machine` has its five functions on 16×16 fragments, and `Machine.apply` for matrices of any size;
`minplus` and eight others call it by the name of the operation. Who computes is a back end: golden,
or whatever has been registered.
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
