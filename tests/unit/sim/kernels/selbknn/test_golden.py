"""The algorithms of SelB-k-NN in NumPy against comparisons of IEEE 754 and sorting."""

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden import vector
from vitruvian.sim.kernels.kselection.shape import KnnShape
from vitruvian.sim.kernels.selbknn import fast_golden, golden
from vitruvian.sim.kernels.selbknn.golden import VARIANTS, Best, in_order, smallest
from vitruvian.sim.kernels.selbknn.operands import as_distances, prepared, random_points

ALL = np.arange(1 << 16, dtype=np.uint16)

#: First operands: both zeros, subnormals, one, the largest, infinities, NaNs, and each 4001st code.
FIRST = np.unique(
    np.concatenate(
        [
            np.array([0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF]),
            np.array([0x8000, 0x8001, 0x83FF, 0x8400, 0xBC00, 0xFBFF, 0xFC00, 0xFC01, 0xFFFF]),
            ALL[::4001],
        ]
    )
).astype(np.uint16)


def pairs():
    return np.broadcast_arrays(FIRST.view(np.float16)[:, None], ALL.view(np.float16))


def test_the_comparison_by_relu_differs_from_ieee_754_for_the_zeros_alone():
    a, b = pairs()
    mask = golden.less(a, b)
    assert mask.size == len(FIRST) << 16 and set(np.unique(mask)) == {0, 0xFFFF}
    differ = np.argwhere((mask != 0) != (a < b))
    assert [(FIRST[i], ALL[j]) for i, j in differ] == [(0x8000, 0)]


def test_the_mask_of_equation_3_5_is_set_where_numbers_differ():
    a, b = pairs()
    mask = golden.unequal(a, b) != 0
    nan = np.isnan(a) | np.isnan(b)
    assert not mask[nan].any()
    differ = np.argwhere((mask != (a != b)) & ~nan)
    assert {(FIRST[i], ALL[j]) for i, j in differ} == {(0x8000, 0), (0, 0x8000)}


def test_a_comparison_without_the_constant_one_is_noticed():
    """Without line 3's OR, ReLU keeps a zero for A ≥ B, and every mask is the same."""
    a, b = pairs()
    signs = vector.sub(a, b).view(np.uint16) & np.uint16(0x8000)
    mask = vector.relu(signs.view(np.float16)).view(np.int16) - np.int16(1)
    assert ((mask != 0) != (a < b)).any()


def test_a_selection_returns_the_bits():
    x, y = ALL, ALL[::-1].copy()
    mask = np.where(ALL % 3 == 0, np.uint16(0xFFFF), np.uint16(0))
    assert (golden.select(mask, x, y) == np.where(mask != 0, x, y)).all()


@pytest.mark.parametrize("compare", [True, False])
def test_an_index_is_the_last_one_of_the_target(compare):
    rng = np.random.default_rng(1)
    values = rng.integers(-50, 50, 4096).astype(np.float16) + np.float16(0)
    for target in np.unique(values):
        last = int(np.flatnonzero(values == target)[-1])
        assert golden.index_of(values, target, compare=compare) == last


def test_indices_reach_infinity_but_no_nan():
    values = np.zeros(golden.LARGEST_INDEX + 1, np.float16)
    values[-1] = 1
    assert golden.index_of(values, np.float16(1)) == golden.LARGEST_INDEX == 0x7C00
    with pytest.raises(ValueError, match="values must be at most 31745, not 31746"):
        golden.index_of(np.zeros(len(values) + 1, np.float16), np.float16(0))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(("k", "tile"), [(1, 40), (2, 16), (7, 300), (16, 64), (33, 40)])
def test_the_distances_are_those_of_a_sort(name, k, tile):
    rng = np.random.default_rng(k)
    # Many distances are equal, and none is −0.
    values = rng.integers(-60, 60, (16, 300)).astype(np.float16) + np.float16(0)
    best = Best.empty(k, 16)
    for first in range(0, 300, tile):
        golden.k_selection(
            values[:, first : first + tile], best, first=first, variant=VARIANTS[name]
        )
    index, found = in_order(best)
    expected_index, expected = smallest(values, k)
    assert (found == expected).all()
    assert (np.take_along_axis(values, index, axis=1) == found).all()
    assert all(len(set(row)) == k for row in index.tolist())
    # Only among points at the distance of the k-th neighbour, it is open which ones are found.
    below = expected < expected[:, -1:]
    assert (index[below] == expected_index[below]).all() or not VARIANTS[name].index


def test_the_first_of_equal_points_wins_in_one_tile_with_hardware_indexing():
    values = np.random.default_rng(0).integers(0, 9, (16, 200)).astype(np.float16)
    best = Best.empty(12, 16)
    golden.k_selection(values, best)
    assert (in_order(best)[0] == smallest(values, 12)[0]).all()
    last = Best.empty(12, 16)
    golden.k_selection(values, last, variant=VARIANTS["selb-soft-index"])
    numbers = np.sort(199 - smallest(values[:, ::-1], 12)[0], axis=1)
    assert (np.sort(in_order(last)[0], axis=1) == numbers).all()


def test_the_algorithm_returns_when_no_distance_is_smaller():
    near = np.arange(16 * 20, dtype=np.float16).reshape(16, 20)
    best = Best.empty(4, 16)
    assert len(golden.k_selection(near, best)) == 4
    (step,) = golden.k_selection(near + np.float16(400), best, first=20)
    assert step.left and len(step.found) == 16
    stay = golden.k_selection(near + np.float16(400), best, variant=VARIANTS["selb-stay"])
    assert [len(step.found) for step in stay] == [16, 0, 0, 0]
    # One query has a smaller distance: the next step skips the others.
    one = near + np.float16(400)
    one[5, 3] = -1
    assert [len(step.found) for step in golden.k_selection(one, best)] == [16, 1]


@pytest.mark.parametrize(("k", "scale"), [(1, 0), (5, 9), (16, 9), (3, 0)])
def test_whole_arrays_have_the_bits_of_the_algorithm(k, scale):
    query, train = random_points(40, 20, 1), random_points(500, 20, 2)
    if scale:  # small integers, so that many distances are equal
        query, train = (np.rint(x * np.float16(scale)) for x in (query, train))
    operands = prepared(query, train, "l2")
    one = golden.knn(*operands, k, tile=128)
    other = fast_golden.knn(*operands, k, tile=128)
    assert (one.index == other.index).all()
    assert (one.distances.view(np.uint16) == other.distances.view(np.uint16)).all()


def test_distances_are_exact_up_to_their_rounding():
    rng = np.random.default_rng(3)
    query, train = (rng.normal(size=(n, 50)).astype(np.float16) for n in (9, 70))
    x, y = query.astype(float), train.astype(float)
    products = golden.distances(*prepared(query, train, "l2"))
    exact = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    # A rounding to FP16, norms of 22 bits, and sums in FP32.
    norms = (x**2).sum(1)[:, None] + (y**2).sum(1)
    assert (
        np.abs(as_distances(products, "l2") - exact) <= exact * 2.0**-11 + norms * 2.0**-20
    ).all()
    products = golden.distances(*prepared(query, train, "cosine-product"))
    cosine = as_distances(products, "cosine-product")
    lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    # Each element of the two points is rounded, and the product once more.
    assert (np.abs(cosine - (1 - x @ y.T / lengths)) < 3 * 2.0**-11).all()
    cosine = as_distances(golden.distances(*prepared(query, train, "cosine")), "cosine")
    assert (np.abs(cosine - (1 - x @ y.T / lengths)) < 2 * 2.0**-11).all()


def test_points_out_of_range_are_refused():
    one, far = np.ones((1, 4), np.float16), np.full((1, 4), 100, np.float16)
    with pytest.raises(UserError, match="squared distances must be at most 65,504"):
        prepared(one, far * np.float16(2), "l2")
    with pytest.raises(UserError, match="points of train must have a length above 0, not point 0"):
        prepared(one, one * np.float16(0), "cosine")
    with pytest.raises(ValueError, match="k must be at most the 3 training points, not 4"):
        KnnShape(1, 3, 4, 4)
