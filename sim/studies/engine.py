"""Matrix products on a back end, with the total of their costs on a unit."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.m3xu import gemm as golden_gemm
from vitruvian.sim.backends import Backend, check_callable, check_name, compute
from vitruvian.sim.matrix_unit import Cost, Unit

#: Back ends by name; each has the parameters of ``golden.m3xu.gemm``.
BACKENDS: dict[str, Backend] = {"golden": golden_gemm}


def register_backend(name: str, gemm: Backend) -> None:
    """Let engines compute with ``gemm``, which has the parameters of ``golden.m3xu.gemm``.

    If ``gemm`` has a method ``on(unit)``, engines call the function that this method returns. That
    function has the same parameters, and returns D and the clock cycles it took on the unit (see
    ``sim.backends.MeasuresCycles``).

    Raises
    ------
    TypeError
        If ``gemm`` is not callable.
    """
    check_callable("gemm", "golden.m3xu.gemm", gemm)
    BACKENDS[name] = gemm


class Engine:
    """Matrix products on a back end, and the total of their costs on a unit.

    Parameters
    ----------
    backend : str
        A name in ``BACKENDS``.
    check : bool
        If True, compare every result with golden, bit for bit, and count the elements that differ.
    watch : callable, optional
        Called with the ``Cost`` of every product when it is done.

    Attributes
    ----------
    costs : dict of str to Cost
        Cost by precision, in the order of first use.
    mismatches : int
        Elements that differed from golden; always 0 if ``check`` is False.

    Raises
    ------
    ValueError
        If the back end is unknown.
    """

    def __init__(
        self,
        unit: Unit | None = None,
        backend: str = "golden",
        *,
        check: bool = False,
        watch: Callable[[Cost], None] | None = None,
    ) -> None:
        check_name(backend, BACKENDS, "sim.studies.register_backend")
        self.unit = unit or Unit()
        self.backend = backend
        self.check = check
        self.watch = watch
        self.costs: dict[str, Cost] = {}
        self.mismatches = 0

    @property
    def total(self) -> Cost:
        """Sum of the costs over the precisions."""
        return sum(self.costs.values(), Cost())

    def gemm(self, a, b, c=None, *, precision: str = "fp32") -> np.ndarray:
        """Return D = C + A·B in a precision of the unit.

        Parameters
        ----------
        a, b, c : ndarray
            See ``golden.m3xu.gemm`` for shapes and dtypes.

        Returns
        -------
        (..., M, N) ndarray

        Raises
        ------
        TypeError, ValueError
            See ``golden.m3xu.gemm``. A product that is refused costs nothing.
        """
        kind = as_precision(precision)
        name = kind.name
        unit = self.unit
        settings = {
            "precision": name,
            "k": unit.k,
            "multiplier_bits": unit.multiplier_bits,
            "preset": unit.preset,
        }
        d, cycles = compute(BACKENDS[self.backend], unit, (a, b, c), settings)
        if self.check:
            self.mismatches += _mismatches(d, golden_gemm(a, b, c, **settings))
        # The cost is added last, so that a product that raises an error costs nothing.
        batch = int(np.prod(d.shape[:-2]))
        cost = unit.cost(name, d.shape[-2], d.shape[-1], np.shape(a)[-1], batch=batch)
        cost = replace(cost, measured_cycles=cycles)
        self.costs[name] = self.costs.get(name, Cost()) + cost
        if self.watch:
            self.watch(cost)
        return d


def _mismatches(result: np.ndarray, expected: np.ndarray) -> int:
    """Count the elements with another bit pattern; all of them if shape or dtype differ."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return expected.size
    # Bytes are compared, because == takes +0 for −0 and a NaN for different from itself.
    width = expected.dtype.itemsize
    x, y = (np.ascontiguousarray(array).view(np.uint8) for array in (result, expected))
    same = (x == y).reshape(*expected.shape, width).all(axis=-1)
    return int((~same).sum())
