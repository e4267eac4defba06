"""Times of tiles from the simulator."""

import numpy as np
import pytest

from benchmarks.papers.tang24.knn_tiling import TilingProblem, search
from benchmarks.papers.tang24.tile_times import SimulatedProfile, tile_seconds
from vitruvian.sim.davinci import load_chip

C310 = load_chip("ascend310")


def test_steps_explain_the_time_of_a_tile():
    """A tile with s of k selected points takes g₀ + s g if all queries select as many."""
    profile = SimulatedProfile(C310, 16, 6)
    constant, step = profile.constant_s(16, 128), profile.step_s(16, 128)
    first = np.random.default_rng(0).permutation(2048).reshape(16, 128).astype(np.float16)
    second = first + np.float16(4096)
    for q in range(16):  # each query has two nearer points
        second[q, 3 * q : 3 * q + 2] = -1
    times = tile_seconds([first, second, first + np.float16(4096)], 6, C310)
    assert times[1] == pytest.approx(constant + 2 * step, rel=1e-6)
    # The selection of all k points ends without a look for a further one.
    assert 5 * step < times[0] < constant + 6 * step
    assert times[2] == pytest.approx(constant, rel=1e-9)


def test_groups_of_queries_follow_each_other():
    profile = SimulatedProfile(C310, 16, 2)
    for name in ("step_s", "constant_s"):
        one = getattr(profile, name)(16, 128)
        assert one > 0
        assert getattr(profile, name)(1, 128) == one
        assert getattr(profile, name)(48, 128) == pytest.approx(3 * one)


def test_products_are_simulated_without_the_launch():
    profile = SimulatedProfile(C310, 32, 2)
    small, large = profile.product_s(16, 128), profile.product_s(64, 512)
    # At least the bytes of the operands and of the result have to pass the bus.
    assert small > 2 * (32 * (16 + 128) + 16 * 128) / 36e9
    assert small < large < 16 * small


def test_a_search_with_simulated_times_is_pruned_without_harm():
    some = TilingProblem(64, 2048, 32, 2, 1 << 18, (16, 64), (128, 256, 1024), 1024)
    profile = SimulatedProfile(C310, 32, 2)
    pruned, whole = search(some, profile), search(some, profile, prune=False)
    assert pruned.tiling == whole.tiling and pruned.pruned > 0
