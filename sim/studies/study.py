"""Case studies: the same computation by several methods, each compared with a reference."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vitruvian.sim.backends import check_unit
from vitruvian.sim.matrix_unit import Cost, Unit
from vitruvian.sim.studies.engine import BACKENDS, Engine
from vitruvian.sim.studies.methods import METHODS, BoundMethod, NumPy


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """The errors and the cost of one method: a row of the table.

    Attributes
    ----------
    method : str
    max_error, mean_error : float
        See ``errors``.
    extras : dict of str to float
        Additional figures of this kernel, by the title of their column.
    cost : Cost or None
        Total cost; None for a baseline, which no matrix unit computes.
    costs : dict of str to Cost
        Cost by precision.
    mismatches : int
        Elements of products that differed from golden; 0 if they were not compared.
    seconds : float
        Wall-clock time of the computation on this machine.
    """

    method: str
    max_error: float
    mean_error: float
    extras: dict[str, float]
    cost: Cost | None
    costs: dict[str, Cost]
    mismatches: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Study:
    """The result of a case study: a table with its title and notes.

    Attributes
    ----------
    kernel, title : str
        Name of the kernel, and a description of the computation.
    setting : str
        Description of the operands.
    reference : str
        Description of the reference that the errors refer to.
    unit, backend : str
        Description of the unit, and name of the back end.
    rows : list of StudyRow
    notes : tuple of str
        Sentences to print below the table.
    """

    kernel: str
    title: str
    setting: str
    reference: str
    unit: str
    backend: str
    rows: list[StudyRow]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of one run of a kernel.

    Attributes
    ----------
    unit : Unit
    backend : str
    methods : tuple of str
        Names in ``METHODS``.
    seed : int
        Seed of the random operands.
    check : bool
        If True, products are compared with golden.
    watch : callable, optional
        Called as ``watch(method, cost)``: with None when a method begins, and with the cost of each
        product when it is done.
    left_out : tuple of str
        Default methods of the kernel that the unit or the back end cannot compute.
    """

    unit: Unit = field(default_factory=Unit)
    backend: str = "golden"
    methods: tuple[str, ...] = ("FP16", "FP32")
    seed: int = 1
    check: bool = False
    watch: Callable[[str, Cost | None], None] | None = None
    left_out: tuple[str, ...] = ()

    def rows(
        self,
        compute: Callable[[Any], np.ndarray],
        reference: np.ndarray,
        *,
        extras: Callable[[np.ndarray, Any], dict[str, float]] | None = None,
        baselines: dict[str, Callable[[], np.ndarray]] | None = None,
    ) -> list[StudyRow]:
        """Run ``compute(gemm)`` with every method, and return a row for each.

        Parameters
        ----------
        compute : callable
            Function of ``gemm(a, b, c=None)`` that returns the result to compare.
        reference : ndarray
            Expected result in double precision.
        extras : callable, optional
            Function ``extras(result, gemm)`` that returns additional figures by the title of their
            column. The products it computes are not counted.
        baselines : dict of str to callable, optional
            Functions that compute the same result without a matrix unit, by name.
        """
        rows = []
        for name, baseline in (baselines or {}).items():
            start = time.perf_counter()
            result = baseline()
            seconds = time.perf_counter() - start
            rows.append(_row(name, result, reference, extras, NumPy(), None, seconds))
        for name in self.methods:
            engine = self.engine(name)
            gemm = BoundMethod(METHODS[name], engine)
            start = time.perf_counter()
            result = compute(gemm)
            seconds = time.perf_counter() - start
            costs = dict(engine.costs)  # a copy, as ``extras`` may compute more products
            rows.append(_row(name, result, reference, extras, gemm, engine, seconds, costs))
        return rows

    def engine(self, method: str) -> Engine:
        """Return a new engine for a method."""
        watch = self.watch
        if watch is None:
            return Engine(self.unit, self.backend, check=self.check)
        watch(method, None)
        return Engine(
            self.unit, self.backend, check=self.check, watch=lambda cost: watch(method, cost)
        )


def _row(name, result, reference, extras, gemm, engine, seconds, costs=None) -> StudyRow:
    largest, mean = errors(result, reference)
    more = extras(result, gemm) if extras else {}
    return StudyRow(
        method=name,
        max_error=largest,
        mean_error=mean,
        extras=more,
        cost=None if costs is None else sum(costs.values(), Cost()),
        costs=costs or {},
        mismatches=engine.mismatches if engine else 0,
        seconds=seconds,
    )


def errors(result, reference) -> tuple[float, float]:
    """Return the largest and the mean error, both divided by the reference's mean magnitude.

    Both errors have the same divisor, so the mean is never above the largest. They are not relative
    errors of single elements: if a sum cancels, the relative error of that element says nothing
    about the arithmetic. Both are infinite or NaN if an element of ``result`` is.
    """
    reference = np.asarray(reference)
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(result).astype(reference.dtype) - reference)
        magnitude = np.abs(reference).mean()
        return float(difference.max() / magnitude), float(difference.mean() / magnitude)


def _check_method(options: RunOptions, name: str) -> None:
    """Raise ValueError if the unit or the back end cannot compute a method."""
    precision = METHODS[name].precision
    options.unit.check(precision)
    check_unit(BACKENDS.get(options.backend), options.unit, precision)


@dataclass(frozen=True, kw_only=True)
class StudyKernel:
    """A case study that can be run by name.

    Attributes
    ----------
    name, title : str
    run : callable
        Function ``run(size, options)`` that returns a ``Study``.
    size : str
        Meaning of the size, such as "points".
    default, low, high : int
        Default, smallest and largest size.
    power_of_two : bool
        If True, the size must be a power of two.
    methods : tuple of str
        Methods run by default.
    supported : tuple of str
        Methods supported.
    unit : Unit
        Default unit.
    needs : str
        Module that the kernel imports and that is not a dependency of the project; empty if none.
    """

    name: str
    title: str
    run: Callable[[int, RunOptions], Study]
    size: str
    default: int
    low: int
    high: int
    power_of_two: bool = False
    methods: tuple[str, ...]
    supported: tuple[str, ...]
    unit: Unit = field(default_factory=Unit)
    needs: str = ""

    def check_size(self, size: int) -> None:
        """Check a size.

        Raises
        ------
        ValueError
            If the size is out of range, or must be a power of two and is not.
        """
        if not self.low <= size <= self.high or (self.power_of_two and size & (size - 1)):
            kind = "a power of two" if self.power_of_two else "a whole number"
            raise ValueError(
                f"size of {self.name} ({self.size}) must be {kind} from {self.low} to "
                f"{self.high}, not {size}"
            )

    def options(self, **changes: Any) -> RunOptions:
        """Return the default options of this kernel with some fields replaced.

        Default methods that the unit or the back end cannot compute are removed; ``left_out`` names
        them. If ``changes`` contains ``methods``, all of these must be computable.

        Parameters
        ----------
        **changes
            Fields of ``RunOptions``.

        Raises
        ------
        ValueError
            If the kernel does not support a method, the unit or the back end cannot compute a
            method in ``changes``, or none of the default methods remains.
        """
        options = RunOptions(**({"unit": self.unit, "methods": self.methods} | changes))
        refused: dict[str, ValueError] = {}
        for name in options.methods:
            if name not in self.supported:
                names = ", ".join(self.supported)
                raise ValueError(f"method of {self.name} must be one of {names}, not {name!r}")
            try:
                _check_method(options, name)
            except ValueError as error:
                refused[name] = error
        accepted = tuple(name for name in options.methods if name not in refused)
        # Methods that the user named are an error; default ones are left out with a note.
        if refused and ("methods" in changes or not accepted):
            raise next(iter(refused.values()))
        return replace(options, methods=accepted, left_out=tuple(refused))

    def __call__(self, size: int | None = None, **changes: Any) -> Study:
        """Run the kernel; see ``check_size`` and ``options`` for the errors."""
        size = self.default if size is None else size
        self.check_size(size)
        return self.run(size, self.options(**changes))
