"""Workload of the k-selection and the tiling of a search: Tang 2024, §3.4.

A search of M queries among N training points is cut twice: into products of m₁ × n₁ distances, and
into selections of m₂ × n₂ of them. ``search`` finds the fastest sizes for measured times of both,
which any ``Profile`` states; ``profile`` measures them on a simulated chip.

Our restrictions of eq. 3.9, which make its sums exact: all sizes divide those of the search, n₂
divides n₁, and m₂ divides m₁. Sizes of memory are in bytes of FP16.

References
----------
Tang 2024, eq. 3.6 to 3.14.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vitruvian.common.validate import check_int
from vitruvian.sim.kernels.selbknn.golden import Best, k_selection


def workload(k: int, tiles: int) -> np.ndarray:
    """Return the expected selections of a query in tiles 1 … ``tiles``: k / t (eq. 3.8).

    The k nearest of the first t tiles are equally likely in each of them, so this is exact for
    training points in random order, and the number of selections is their number in tile t.
    """
    check_int("k", k, 1)
    check_int("tiles", tiles, 1)
    return k / np.arange(1, tiles + 1)


def selections(distances: np.ndarray, k: int, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """Carry out Alg. 4 tile by tile, and count.

    Parameters
    ----------
    distances : (m, n) ndarray of float16
    tile : int
        Training points of a tile; it divides n.

    Returns
    -------
    selected : (m, tiles) ndarray of int64
        Distances of each tile that each query selects.
    steps : (tiles,) ndarray of int64
        Steps that the queries take together, the one in which they return included.

    Raises
    ------
    ValueError
        If the tile does not divide n, or is smaller than k.
    """
    m, n = distances.shape
    if tile < 1 or n % tile or k > tile:
        raise ValueError(f"tile must divide the {n} points and hold {k} of them, not {tile!r}")
    best = Best.empty(k, m)
    selected, steps = [], []
    for first in range(0, n, tile):
        # Each step of Alg. 4 selects one neighbour for every query that still has one.
        steps.append(len(k_selection(distances[:, first : first + tile], best, first=first)))
        selected.append((best.index >= first).sum(axis=0))
    return np.stack(selected, 1), np.array(steps)


@dataclass(frozen=True)
class Fit:
    """The least-squares fit of y = slope / t + constant.

    Attributes
    ----------
    slope, constant : float
        In the unit of y.
    r2 : float
        The coefficient of determination.
    """

    slope: float
    constant: float
    r2: float


def fit_inverse(y: np.ndarray) -> Fit:
    """Fit the values of tiles 1, 2, … with a multiple of 1 / t and a constant.

    Parameters
    ----------
    y : (tiles,) ndarray
        Three or more values that are not all equal.

    Raises
    ------
    ValueError
        If there are fewer values, or they are all equal.
    """
    y = np.asarray(y, float)
    if y.ndim != 1 or len(y) < 3 or not np.ptp(y):
        raise ValueError("values of a fit must be three or more, and not all equal")
    # Eq. 3.8: the work of tile t falls with 1 / t.
    inverse = 1 / np.arange(1, len(y) + 1)
    matrix = np.stack([inverse, np.ones_like(inverse)], 1)
    (slope, constant), *_ = np.linalg.lstsq(matrix, y, rcond=None)
    rest = y - slope * inverse - constant
    r2 = 1 - float(rest @ rest) / float(((y - y.mean()) ** 2).sum())
    return Fit(float(slope), float(constant), r2)


class Profile(Protocol):
    """Measured times in seconds: f, g and g₀ of eq. 3.9."""

    def product_s(self, m1: int, n1: int) -> float:
        """Return the time of a product of m₁ queries by n₁ training points, f."""
        ...

    def step_s(self, m2: int, n2: int) -> float:
        """Return the time of a step of the k-selection in m₂ × n₂ distances, g."""
        ...

    def constant_s(self, m2: int, n2: int) -> float:
        """Return the time of a k-selection without a step, g₀."""
        ...


@dataclass(frozen=True)
class TilingProblem:
    """The problem of eq. 3.9.

    Attributes
    ----------
    queries, train, features, k : int
        M, N, d and k.
    memory_bytes : int
        Memory of a core for operands, distances and results, Size_mem.
    rows, columns : tuple of int
        Sizes to search for m₁ and m₂, which divide ``queries``, and for n₁ and n₂, which divide
        ``train``.
    most_columns : int
        The largest n₂ that the k-selection can take.
    """

    queries: int
    train: int
    features: int
    k: int
    memory_bytes: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    most_columns: int = 1 << 31

    def __post_init__(self) -> None:
        for name in ("queries", "train", "features", "k", "memory_bytes", "most_columns"):
            check_int(name, getattr(self, name), 1)
        for name, whole in (("rows", self.queries), ("columns", self.train)):
            sizes = getattr(self, name)
            if not sizes or any(size < 1 or whole % size for size in sizes):
                raise ValueError(f"{name} must be divisors of {whole}, not {sizes!r}")
        if self.k > self.train:
            raise ValueError(f"k must be at most the {self.train} training points, not {self.k}")

    def bytes_of(self, tiling: "Tiling") -> int:
        """Return the bytes that a tiling needs: d (m₁ + n₁) + m₂ (n₂ + k) elements of FP16."""
        t = tiling
        # Two bytes an element.
        return 2 * (self.features * (t.m1 + t.n1) + t.m2 * (t.n2 + self.k))

    def allows(self, tiling: "Tiling") -> bool:
        """Return True if a tiling fits the memory and the k-selection."""
        small = self.k <= tiling.n2 <= self.most_columns
        return small and self.bytes_of(tiling) < self.memory_bytes

    def product_s(self, profile: Profile, m1: int, n1: int) -> float:
        """Return the seconds of all products, T_mm."""
        return self.queries * self.train / (m1 * n1) * profile.product_s(m1, n1)

    def selection_s(self, profile: Profile, m2: int, n2: int) -> float:
        """Return the seconds of all k-selections, T_kSel."""
        tiles = self.train // n2
        steps = float(workload(self.k, tiles).sum())
        each = steps * profile.step_s(m2, n2) + tiles * profile.constant_s(m2, n2)
        # m₂ queries are selected at a time.
        return self.queries / m2 * each


@dataclass(frozen=True, order=True)
class Tiling:
    """The sizes of products (m₁ × n₁) and of k-selections (m₂ × n₂)."""

    m1: int
    n1: int
    m2: int
    n2: int


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes
    ----------
    tiling : Tiling
    seconds : float
    points : int
        Tilings that are allowed.
    pruned : int
        Those of them that the search did not time, because eq. 3.14 excludes them.
    """

    tiling: Tiling
    seconds: float
    points: int
    pruned: int

    @property
    def pruned_share(self) -> float:
        """The part of the search space that was pruned."""
        return self.pruned / self.points


def divisors(whole: int, step: int) -> tuple[int, ...]:
    """Return the multiples of ``step`` that divide ``whole``, in ascending order.

    Raises
    ------
    ValueError
        If there are none.
    """
    check_int("whole", whole, 1)
    check_int("step", step, 1)
    if whole % step:
        raise ValueError(f"whole must be a multiple of {step}, not {whole}")
    parts = whole // step
    return tuple(step * part for part in range(1, parts + 1) if parts % part == 0)


def prunable(profile: Profile, k: int, m2: int, n1: int, n2: int) -> bool:
    """Return True if eq. 3.14 holds: n₂ = n₁ / p is slower than n₂ = n₁, whatever N is."""
    whole = profile.constant_s(m2, n1) + k * profile.step_s(m2, n1)
    return n1 // n2 * profile.constant_s(m2, n2) > whole


def search(problem: TilingProblem, profile: Profile, *, prune: bool = True) -> Found:
    """Find the fastest tiling of eq. 3.9; the first one, if several are equally fast.

    Eq. 3.14 compares a tiling with the one whose n₂ is n₁, so it says nothing if that one does not
    fit the memory or the k-selection. The thesis does not mention this; without it, the pruned
    search may miss the optimum.

    Parameters
    ----------
    prune : bool
        If False, time every tiling.

    Raises
    ------
    ValueError
        If no tiling is allowed.
    """
    best: Tiling | None = None
    least, points, pruned = float("inf"), 0, 0
    # The time of a selection does not depend on the product around it.
    known: dict[tuple[int, int], float] = {}
    for m1, n1 in ((m, n) for m in problem.rows for n in problem.columns):
        product: float | None = None
        # The product around several selections is priced once.
        for m2 in (m for m in problem.rows if m1 % m == 0):
            whole = prune and _compares(problem, m1, n1, m2)
            for tiling in _inner(problem, m1, n1, m2):
                points += 1
                n2 = tiling.n2
                if whole and n2 < n1 and prunable(profile, problem.k, m2, n1, n2):
                    pruned += 1
                    continue
                if product is None:
                    product = problem.product_s(profile, m1, n1)
                if (m2, n2) not in known:
                    known[m2, n2] = problem.selection_s(profile, m2, n2)
                seconds = product + known[m2, n2]
                # Strictly: the first of equals stays.
                if seconds < least:
                    best, least = tiling, seconds
    if best is None:
        raise ValueError(_too_small(problem))
    return Found(best, least, points, pruned)


def _compares(problem: TilingProblem, m1: int, n1: int, m2: int) -> bool:
    """Return True if the tiling that eq. 3.14 compares others with is allowed."""
    return problem.allows(Tiling(m1, n1, m2, n1))


def _inner(problem: TilingProblem, m1: int, n1: int, m2: int) -> Iterator[Tiling]:
    """Yield the tilings that are allowed, the smallest n₂ first."""
    for n2 in sorted(problem.columns):
        tiling = Tiling(m1, n1, m2, n2)
        if n1 % n2 == 0 and problem.allows(tiling):
            yield tiling


def individual(problem: TilingProblem, profile: Profile) -> tuple[Found, Found]:
    """Find the best sizes of the products, and of the k-selections, and use them for both.

    Returns
    -------
    product, selection : Found
        The times of a search whose m₁ = m₂ and n₁ = n₂ minimise T_mm, or T_kSel.

    Raises
    ------
    ValueError
        If no such tiling is allowed.
    """
    square = [Tiling(m, n, m, n) for m in problem.rows for n in problem.columns]
    allowed = [tiling for tiling in square if problem.allows(tiling)]
    if not allowed:
        raise ValueError(_too_small(problem))
    times = [
        (problem.product_s(profile, t.m1, t.n1), problem.selection_s(profile, t.m2, t.n2))
        for t in allowed
    ]
    product, selection = (
        Found(allowed[at], sum(times[at]), len(allowed), 0)
        for at in (min(range(len(times)), key=lambda i: times[i][phase]) for phase in range(2))
    )
    return product, selection


def _too_small(problem: TilingProblem) -> str:
    smallest = Tiling(*(min(sizes) for sizes in (problem.rows, problem.columns) * 2))
    return (
        f"memory must be more than {problem.bytes_of(smallest):,} bytes with an n2 from k to "
        f"{problem.most_columns:,}, so that {smallest.m1}×{smallest.n1} distances fit with "
        f"k {problem.k}, not {problem.memory_bytes:,}"
    )
