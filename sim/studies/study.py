"""One case study: the same computation by several methods, each held against a reference."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vitruvian.sim.matrix_unit import Cost, Unit
from vitruvian.sim.studies.engine import BACKENDS, Engine
from vitruvian.sim.studies.methods import METHODS, Bound, NumPy

__all__ = ["Kernel", "Row", "Setting", "Study", "errors"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one method gave.

    Attributes
    ----------
    method : str
    max_error, mean_error : float
        See `errors`.
    extras : dict of str to float
        Figures of this kernel alone, by column.
    cost : Cost or None
        None for a yardstick that no matrix unit computed.
    costs : dict of str to Cost
        By precision.
    mismatches : int
        Elements of products that differed from golden, where that was checked.
    seconds : float
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
    """A table and what stands around it.

    Attributes
    ----------
    kernel, title, setting, reference : str
        Name; what is computed; on what; against what.
    unit, backend : str
    rows : list of Row
    notes : tuple of str
    """

    kernel: str
    title: str
    setting: str
    reference: str
    unit: str
    backend: str
    rows: list[Row]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Who computes, and with what methods.

    Attributes
    ----------
    unit : Unit
    backend : str
    methods : tuple of str
        Names in `METHODS`.
    seed : int
        Of the operands.
    check : bool
        Whether products are compared with golden.
    watch : callable, optional
        Called as ``watch(method, cost)``: with None when a method begins, and with the cost of each
        product when it is done.
    left_out : tuple of str
        Methods of the kernel's own choice that the unit or the back end does not have.
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
        yardsticks: dict[str, Callable[[], np.ndarray]] | None = None,
    ) -> list[Row]:
        """Run ``compute(gemm)`` with every method.

        Parameters
        ----------
        compute : callable
            Takes ``gemm(a, b, c=None)``, returns what is compared.
        reference : ndarray
            What would be right, in double precision.
        extras : callable, optional
            ``extras(result, gemm)``: more figures. Products that it forms are not counted.
        yardsticks : dict of str to callable, optional
            Other ways to the result, which no matrix unit takes.
        """
        found = []
        for name, other in (yardsticks or {}).items():
            begun = time.perf_counter()
            result = other()
            seconds = time.perf_counter() - begun
            found.append(_row(name, result, reference, extras, NumPy(), None, seconds))
        for name in self.methods:
            engine = self.engine(name)
            gemm = Bound(METHODS[name], engine)
            begun = time.perf_counter()
            result = compute(gemm)
            seconds = time.perf_counter() - begun
            counted = dict(engine.costs)
            found.append(_row(name, result, reference, extras, gemm, engine, seconds, counted))
        return found

    def engine(self, method: str) -> Engine:
        """A new engine for a method."""
        watch = self.watch
        if watch is None:
            return Engine(self.unit, self.backend, check=self.check)
        watch(method, None)
        return Engine(
            self.unit, self.backend, check=self.check, watch=lambda cost: watch(method, cost)
        )


def _row(name, result, reference, extras, gemm, engine, seconds, costs=None) -> Row:
    largest, mean = errors(result, reference)
    more = extras(result, gemm) if extras else {}
    return Row(
        method=name,
        max_error=largest,
        mean_error=mean,
        extras=more,
        cost=None if costs is None else sum(costs.values(), Cost()),
        costs=costs or {},
        mismatches=engine.mismatches if engine else 0,
        seconds=seconds,
    )


def errors(found, reference) -> tuple[float, float]:
    """Return the largest and the mean error, both divided by the reference's mean magnitude.

    One divisor for both, so the mean is never above the largest. The errors are not relative
    element by element: where a sum cancels, the relative error of that element says nothing about
    the arithmetic. Both are infinite or NaN as soon as one element of ``found`` is.
    """
    reference = np.asarray(reference)
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(found).astype(reference.dtype) - reference)
        magnitude = np.abs(reference).mean()
        return float(difference.max() / magnitude), float(difference.mean() / magnitude)


def _check_method(setting: Setting, name: str) -> None:
    """Raise ValueError for a method that the unit or the back end cannot compute."""
    precision = METHODS[name].precision
    setting.unit.check(precision)
    check = getattr(BACKENDS.get(setting.backend), "check", None)
    if check:
        check(setting.unit, precision)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A case study that can be run by name.

    Attributes
    ----------
    name, title : str
    run : callable
        ``run(size, setting)`` returns a `Study`.
    size : str
        What its size means.
    default, low, high : int
        Sizes.
    power_of_two : bool
        Whether only powers of two are sizes.
    methods : tuple of str
        That it runs unless told otherwise.
    able : tuple of str
        That it can run.
    unit : Unit
        That it runs on unless told otherwise.
    needs : str
        A module that it imports and that the project does not need.
    """

    name: str
    title: str
    run: Callable[[int, Setting], Study]
    size: str
    default: int
    low: int
    high: int
    power_of_two: bool = False
    methods: tuple[str, ...]
    able: tuple[str, ...]
    unit: Unit = field(default_factory=Unit)
    needs: str = ""

    def check_size(self, size: int) -> None:
        """Refuse what cannot be run.

        Raises
        ------
        ValueError
            For a size out of range, or no power of two where it must be one.
        """
        if not self.low <= size <= self.high or (self.power_of_two and size & (size - 1)):
            kind = "a power of two" if self.power_of_two else "a whole number"
            raise ValueError(
                f"size of {self.name} ({self.size}) must be {kind} from {self.low} to "
                f"{self.high}, not {size}"
            )

    def setting(self, **changes: Any) -> Setting:
        """Return the kernel's own setting with some fields replaced.

        The kernel's own methods are reduced to those that the unit and the back end can compute;
        ``left_out`` names the others. Methods that are asked for must all be computable.

        Raises
        ------
        ValueError
            For a method that the kernel does not have, or that the unit or a back end with a
            method ``check(unit, precision)`` cannot compute; without ``methods``, if no method is
            left.
        """
        setting = Setting(**({"unit": self.unit, "methods": self.methods} | changes))
        refused: dict[str, ValueError] = {}
        for name in setting.methods:
            if name not in self.able:
                raise ValueError(
                    f"method of {self.name} must be one of {', '.join(self.able)}, not {name!r}"
                )
            try:
                _check_method(setting, name)
            except ValueError as error:
                refused[name] = error
        left = tuple(name for name in setting.methods if name not in refused)
        if refused and ("methods" in changes or not left):
            raise next(iter(refused.values()))
        return replace(setting, methods=left, left_out=tuple(refused))

    def __call__(self, size: int | None = None, **changes: Any) -> Study:
        """Run it; see `check_size` and `setting` for what is refused."""
        size = self.default if size is None else size
        self.check_size(size)
        return self.run(size, self.setting(**changes))
