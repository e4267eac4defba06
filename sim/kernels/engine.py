"""A matrix unit as a kernel sees it: products, and what they cost in instructions and cycles."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.golden.fp import PRESETS
from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.m3xu import gemm as golden_gemm
from vitruvian.validate import check_int, one_of

__all__ = ["BACKENDS", "INSTRUCTIONS", "Cost", "Engine", "Unit", "register_backend"]

#: (M, N, K) of the matrix instruction of each precision. K is two blocks of an 8-lane unit:
#: 32 bytes of a row. FP64, which the source has no shape for, gets two blocks of a 10-lane unit.
#: Source: Zhang 2024, Table 2.2, with Ampere's longer TF32 instruction (m16n8k8).
INSTRUCTIONS = {
    "fp16": (16, 8, 16),
    "bf16": (16, 8, 16),
    "tf32": (16, 8, 8),
    "fp32": (16, 8, 8),
    "fp32c": (16, 8, 4),
    "fp64": (16, 8, 4),
}

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


@dataclass(frozen=True)
class Cost:
    """What products took.

    Attributes
    ----------
    products : int
        Multiplications of elements, complex ones in FP32C.
    instructions : int
        Matrix instructions; the operands are filled up to whole ones.
    tiles : int
        Blocks of the unit's own size; the operands are filled up to whole ones.
    cycles : int
        Passes through the multipliers: tiles times the precision's steps, and nothing else.
    clocks : int
        Clock cycles that hardware took for it, by its hand-shakes; 0 if no hardware computed it.
    """

    products: int = 0
    instructions: int = 0
    tiles: int = 0
    cycles: int = 0
    clocks: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.products + other.products,
            self.instructions + other.instructions,
            self.tiles + other.tiles,
            self.cycles + other.cycles,
            self.clocks + other.clocks,
        )


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A matrix unit: rows, columns, lanes along K, width of its multipliers.

    Attributes
    ----------
    m, n : int
        Rows of A and columns of B that it takes at a time.
    k : int
        Lanes of 16 bits.
    multiplier_bits : int
    preset : str
        Accuracy of the precisions that take one step, a name in `golden.fp.PRESETS`.

    Raises
    ------
    TypeError, ValueError
        For a size below 1, multipliers outside 4 … 64 bits, or an unknown preset.
    """

    m: int = 8
    n: int = 4
    k: int = 8
    multiplier_bits: int = 12
    preset: str = "ieee"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            check_int(name, getattr(self, name), 1)
        check_int("multiplier_bits", self.multiplier_bits, 4, 64)
        one_of("preset", self.preset, PRESETS)

    def __str__(self) -> str:
        return (
            f"{self.m}×{self.n}×{self.k} lanes, {self.multiplier_bits}-bit multipliers, "
            f"{self.preset}"
        )

    def check(self, precision: str) -> None:
        """Refuse a precision that this unit cannot compute.

        Raises
        ------
        ValueError
            If the preset does not have it, or the lanes do not hold whole elements.
        """
        as_precision(precision).spec(
            k=self.k, multiplier_bits=self.multiplier_bits, preset=self.preset
        )

    def cost(self, precision: str, m: int, n: int, k: int, *, batch: int = 1) -> Cost:
        """Cost of ``batch`` products of an m × k by a k × n matrix.

        Raises
        ------
        ValueError
            If the unit's lanes do not hold whole elements of this precision.
        """
        kind = as_precision(precision)
        elements = kind.elements(self.k, self.multiplier_bits)
        rows, columns, depth = INSTRUCTIONS[kind.name]
        tiles = batch * _up(m, self.m) * _up(n, self.n) * _up(k, elements)
        return Cost(
            products=batch * m * n * k,
            instructions=batch * _up(m, rows) * _up(n, columns) * _up(k, depth),
            tiles=tiles,
            cycles=tiles * kind.steps(self.multiplier_bits),
        )


def _up(size: int, step: int) -> int:
    return -(-size // step)


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
                "(others are added by sim.kernels.register_backend)"
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
