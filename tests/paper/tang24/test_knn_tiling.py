"""The workload of the k-selection, and the search for tilings on profiles that are given."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.tang24 import knn_tiling as tiling
from benchmarks.papers.tang24.knn_tiling import (
    Tiling,
    TilingProblem,
    divisors,
    fit_inverse,
    individual,
    prunable,
    search,
    selections,
    workload,
)


@dataclass(frozen=True)
class Given:
    """A profile of three functions."""

    product: Callable[[int, int], float] = lambda m, n: 1e-6 + 1e-12 * m * n
    step: Callable[[int, int], float] = lambda m, n: 1e-7 * m + 1e-12 * m * n
    constant: Callable[[int, int], float] = lambda m, n: 1e-6 * m

    def product_s(self, m1, n1):
        return self.product(m1, n1)

    def step_s(self, m2, n2):
        return self.step(m2, n2)

    def constant_s(self, m2, n2):
        return self.constant(m2, n2)


def problem(**changes):
    values: dict[str, Any] = {
        "queries": 64,
        "train": 1024,
        "features": 16,
        "k": 4,
        "memory_bytes": 1 << 15,
    }
    values |= {"rows": (16, 32, 64), "columns": (64, 128, 256, 512)} | changes
    return TilingProblem(**values)


# The workload.


def test_selections_are_k_over_t():
    """The mean of 64 queries in each tile is within five standard errors of k / t."""
    k, tiles, n, m = 6, 5, 40, 64
    values = np.random.default_rng(4).normal(size=(m, n * tiles)).astype(np.float16)
    selected, steps = selections(values, k, n)
    assert (selected[:, 0] == k).all()
    # The k nearest of t tiles are in tile t with probability 1 / t each: hypergeometric.
    t = np.arange(2, tiles + 1)
    error = np.sqrt(k / t * (1 - 1 / t) / m)
    assert (abs(selected.mean(0)[1:] - workload(k, tiles)[1:]) < 5 * error).all()
    # All queries together take the steps of the one with the most, and one to find the end.
    assert np.array_equal(steps, np.minimum(selected.max(0) + 1, k))


def test_selections_count_the_neighbours_that_a_tile_has_when_it_ends():
    values = np.random.default_rng(5).permutation(48 * 3).reshape(3, 48).astype(np.float16)
    selected, _ = selections(values, 4, 12)
    for t in range(4):
        nearest = np.argsort(values[:, : 12 * (t + 1)], axis=1)[:, :4]
        assert np.array_equal(selected[:, t], (nearest >= 12 * t).sum(1))


def test_training_points_in_a_bad_order_are_all_selected():
    """The law of k / t needs a random order."""
    values = np.sort(np.random.default_rng(6).random((1, 64)).astype(np.float16), 1)[:, ::-1]
    assert (selections(np.ascontiguousarray(values), 4, 16)[0] == 4).all()


@pytest.mark.parametrize("tile", [0, 7, 2])
def test_tiles_that_do_not_divide_the_points(tile):
    with pytest.raises(ValueError, match=rf"tile must divide the 16 points .* not {tile}"):
        selections(np.zeros((1, 16), np.float16), 4, tile)


def test_a_fit_finds_its_parameters():
    t = np.arange(1, 9)
    fit = fit_inverse(3 / t + 0.5)
    assert (fit.slope, fit.constant, fit.r2) == pytest.approx((3, 0.5, 1))
    assert fit_inverse(t).r2 < 0.8
    residual = np.array([1.0, -1, 1, -1, 1, -1, 1, -1])
    assert fit_inverse(3 / t + residual).r2 < 0.7


@pytest.mark.parametrize("values", [[1, 2], [1, 1, 1], [[1, 2, 3]]])
def test_values_that_have_no_fit(values):
    with pytest.raises(ValueError, match="three or more, and not all equal"):
        fit_inverse(np.array(values))


# The search.


def by_hand(some, profile):
    """Return all allowed tilings with their times by eq. 3.9, term by term."""
    found = []
    for m1, n1, m2, n2 in product(some.rows, some.columns, some.rows, some.columns):
        if m1 % m2 or n1 % n2 or not some.k <= n2 <= some.most_columns:
            continue
        if 2 * (some.features * (m1 + n1) + m2 * (n2 + some.k)) >= some.memory_bytes:
            continue
        multiply = some.queries * some.train / (m1 * n1) * profile.product_s(m1, n1)
        select = 0
        for t in range(1, some.train // n2 + 1):
            select += some.k / t * profile.step_s(m2, n2) + profile.constant_s(m2, n2)
        found.append((multiply + some.queries / m2 * select, Tiling(m1, n1, m2, n2)))
    return found


def test_the_search_finds_the_minimum_of_eq_3_9():
    some, profile = problem(), Given()
    points = by_hand(some, profile)
    found = search(some, profile, prune=False)
    assert found.points == len(points) and found.pruned == 0
    least, where = min(points)
    assert found.tiling == where and found.seconds == pytest.approx(least)


positive = st.floats(1e-9, 1e-3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(positive, min_size=12, max_size=12),
    st.lists(positive, min_size=12, max_size=12),
    st.lists(positive, min_size=12, max_size=12),
    st.integers(1, 64),
    st.integers(3000, 60000),
    st.sampled_from([64, 128, 256, 512]),
)
def test_the_pruned_search_agrees_with_the_exhaustive_one(f, g, g0, k, memory, most):
    """For any times, also where the largest n2 does not fit the memory or the selection."""
    some = problem(k=k, memory_bytes=memory, most_columns=most)
    places = {key: i for i, key in enumerate(product(some.rows, some.columns))}
    profile = Given(*((lambda m, n, x=x: x[places[m, n]]) for x in (f, g, g0)))
    if not by_hand(some, profile):
        with pytest.raises(ValueError, match="memory must be more than"):
            search(some, profile)
        return
    pruned, whole = search(some, profile), search(some, profile, prune=False)
    assert (pruned.tiling, pruned.seconds) == (whole.tiling, whole.seconds)
    assert pruned.points == whole.points and 0 <= pruned.pruned < whole.points


def test_tilings_are_pruned_by_eq_3_14():
    """With the times of the profile, p = 4 is excluded and p = 2 is not."""
    profile = Given(step=lambda m, n: 0.5, constant=lambda m, n: 1.0)
    assert not prunable(profile, 4, 16, 512, 256) and prunable(profile, 4, 16, 512, 128)
    assert not prunable(profile, 6, 16, 512, 128)  # equality does not exclude
    found = search(problem(memory_bytes=1 << 22), profile)
    # Rows: 6 pairs. Columns: n1 = 256 loses n2 = 64, and n1 = 512 loses 128 and 64.
    assert (found.points, found.pruned) == (6 * 10, 6 * 3)
    assert found.pruned_share == pytest.approx(0.3)


def test_without_the_guard_the_optimum_is_missed(monkeypatch):
    """Mutation: eq. 3.14 is applied although n2 = n1 does not fit the k-selection."""
    some = problem(columns=(128, 512), most_columns=128, memory_bytes=1 << 17)
    # Large products are fast, and selections take their constants alone.
    profile = Given(product=lambda m, n: 1e-2, constant=lambda m, n: 1e-3)
    right = search(some, profile)
    assert right.tiling == search(some, profile, prune=False).tiling == Tiling(64, 512, 64, 128)
    assert right.pruned == 0
    monkeypatch.setattr(tiling, "_compares", lambda *_: True)
    assert search(some, profile).tiling == Tiling(64, 128, 64, 128)


def test_a_wrong_sign_in_eq_3_14_is_noticed(monkeypatch):
    some = problem(memory_bytes=1 << 20)
    profile = Given(constant=lambda m, n: 1e-9, step=lambda m, n: 1e-9 * n * n)
    right = search(some, profile)
    assert right.tiling.n2 < right.tiling.n1
    monkeypatch.setattr(
        tiling, "prunable", lambda profile, k, m2, n1, n2: not prunable(profile, k, m2, n1, n2)
    )
    assert search(some, profile).tiling != right.tiling


def test_individual_sizes_are_used_for_both_phases():
    profile = Given(
        product=lambda m, n: 1.0, step=lambda m, n: 1e-6 * m * n * n, constant=lambda m, n: 0.0
    )
    some = problem()
    products, selections_ = individual(some, profile)
    # The most distances that fit the memory; then the shortest rows.
    assert products.tiling == Tiling(32, 256, 32, 256)
    assert (selections_.tiling.m1, selections_.tiling.n1) == (16, 64)
    times = {t: s for s, t in by_hand(some, profile)}
    assert products.seconds == pytest.approx(times[products.tiling])
    assert selections_.seconds == pytest.approx(times[selections_.tiling])


def test_divisors():
    assert divisors(64, 16) == (16, 32, 64) and divisors(48, 16) == (16, 48)
    with pytest.raises(ValueError, match="whole must be a multiple of 16, not 40"):
        divisors(40, 16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": (24,)}, r"rows must be divisors of 64, not \(24,\)"),
        ({"columns": ()}, r"columns must be divisors of 1024, not \(\)"),
        ({"k": 2000}, "k must be at most the 1024 training points, not 2000"),
        ({"features": 0}, "features must be at least 1, not 0"),
    ],
)
def test_problems_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        problem(**changes)


@pytest.mark.parametrize("find", [search, individual])
@pytest.mark.parametrize("changes", [{"memory_bytes": 4736}, {"k": 64, "most_columns": 63}])
def test_no_feasible_tiling_is_one_clear_line(find, changes):
    with pytest.raises(ValueError, match=r"memory must be more than [0-9,]+ bytes") as error:
        find(problem(**changes), Given())
    assert "\n" not in str(error.value)


def test_the_stated_memory_is_just_too_small():
    with pytest.raises(ValueError, match=r"more than 4,736 bytes .* not 4,736"):
        search(problem(memory_bytes=4736), Given())
    assert search(problem(memory_bytes=4737), Given()).points == 1
