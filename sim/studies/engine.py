"""Matrix products on a back end, with what they cost on a unit added up."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.m3xu import gemm as golden_gemm
from vitruvian.sim.matrix_unit import Cost, Unit

__all__ = ["BACKENDS", "Engine", "register_backend"]

#: Who computes: callables with the interface of `golden.m3xu.gemm`.
BACKENDS: dict[str, Callable[..., np.ndarray]] = {"golden": golden_gemm}


def register_backend(name: str, gemm: Callable[..., np.ndarray]) -> None:
    """Let engines compute with ``gemm``, which has the interface of `golden.m3xu.gemm`.

    If it has a method ``on(unit)``, engines call what that gives instead: a callable with the same
    parameters that returns D and the clock cycles it took on the unit.
    """
    if not callable(gemm):
        raise TypeError(f"gemm must be a callable like golden.m3xu.gemm, not {gemm!r}")
    BACKENDS[name] = gemm


class Engine:
    """Computes matrix products on a back end and adds up what they cost on a unit.

    Parameters
    ----------
    unit : Unit
    backend : str
        A name in `BACKENDS`.
    check : bool
        Compare every result with golden, bit for bit, and count the elements that differ.
    watch : callable, optional
        Called with the `Cost` of every product when it is done.

    Attributes
    ----------
    costs : dict of str to Cost
        By precision, in the order of first use.
    mismatches : int
        Elements that differed from golden, if that was checked.

    Raises
    ------
    ValueError
        For a back end that is not there.
    """

    def __init__(
        self,
        unit: Unit | None = None,
        backend: str = "golden",
        *,
        check: bool = False,
        watch: Callable[[Cost], None] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(
                f"backend must be one of {', '.join(BACKENDS)}, not {backend!r} "
                "(others are added by sim.studies.register_backend)"
            )
        self.unit = unit or Unit()
        self.backend = backend
        self.check = check
        self.watch = watch
        self.costs: dict[str, Cost] = {}
        self.mismatches = 0

    @property
    def total(self) -> Cost:
        """Sum over the precisions."""
        return sum(self.costs.values(), Cost())

    def gemm(self, a, b, c=None, *, precision: str = "fp32") -> np.ndarray:
        """D = C + A·B in a precision of the unit; see `golden.m3xu.gemm` for dtypes and errors."""
        kind = as_precision(precision)
        name = kind.name
        unit = self.unit
        settings = {
            "precision": name,
            "k": unit.k,
            "multiplier_bits": unit.multiplier_bits,
            "preset": unit.preset,
        }
        d, clocks = self._compute(a, b, c, **settings)
        if self.check:
            self.mismatches += _different(d, golden_gemm(a, b, c, **settings))
        batch = int(np.prod(d.shape[:-2]))
        cost = unit.cost(name, d.shape[-2], d.shape[-1], np.shape(a)[-1], batch=batch)
        cost = replace(cost, clocks=clocks)
        self.costs[name] = self.costs.get(name, Cost()) + cost
        if self.watch:
            self.watch(cost)
        return d

    def _compute(self, a, b, c, **settings: Any) -> tuple[np.ndarray, int]:
        """D and its clock cycles, as far as the back end says them."""
        gemm = BACKENDS[self.backend]
        if hasattr(gemm, "on"):
            return gemm.on(self.unit)(a, b, c, **settings)
        return gemm(a, b, c, **settings), 0


def _different(found: np.ndarray, expected: np.ndarray) -> int:
    """Elements with another bit pattern; all of them where shape or dtype differ."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return expected.size
    width = expected.dtype.itemsize
    one, other = (np.ascontiguousarray(x).view(np.uint8) for x in (found, expected))
    same = (one == other).reshape(*expected.shape, width).all(axis=-1)
    return int((~same).sum())
