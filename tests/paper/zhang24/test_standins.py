"""Synthetic stand-ins: rows and nonzeros to the unit, the pattern of each kind, bad input."""

from typing import Any

import numpy as np
import pytest

from benchmarks.papers.zhang24.standins import stand_in
from vitruvian.sim.sparse.originals import ORIGINALS

#: A factor for each stand-in that leaves between a thousand and twenty thousand rows.
SCALES = {
    "ca": 4,
    "gy": 4,
    "g2": 16,
    "co": 64,
    "bu": 64,
    "wi": 512,
    "ad": 512,
    "ro": 2048,
    "eu": 4096,
}


@pytest.fixture(scope="module")
def matrices():
    return {name: stand_in(name, scale=scale) for name, scale in SCALES.items()}


@pytest.mark.parametrize("name", ORIGINALS)
def test_rows_and_nonzeros_are_those_of_the_table(name, matrices):
    matrix, original = matrices[name], ORIGINALS[name]
    assert matrix.shape == (original.rows // SCALES[name],) * 2
    assert matrix.nnz == original.nonzeros // SCALES[name]
    assert matrix.has_canonical_format  # ascending, no duplicates
    rows, columns = matrix.nonzero()
    assert len(rows) == matrix.nnz  # no stored zeros
    assert (rows < columns).any() == (name == "wi")  # the others are lower triangles
    diagonal = np.count_nonzero(matrix.diagonal())
    expected = {"gy": matrix.shape[0], "g2": matrix.shape[0], "bu": matrix.shape[0]}
    if name == "wi":
        assert diagonal < 20
    else:
        assert diagonal == expected.get(name, 0)


def test_the_full_size_is_that_of_the_table():
    for name in ("ca", "gy", "g2"):
        original = ORIGINALS[name]
        matrix: Any = stand_in(name)
        assert (matrix.shape[0], matrix.nnz) == (original.rows, original.nonzeros)


def test_the_seed_decides():
    matrices: list[Any] = [stand_in("co", scale=256, seed=seed) for seed in (1, 1, 2)]
    one, same, other = matrices
    assert (one != same).nnz == 0 and (one != other).nnz > 0


def test_degrees_follow_the_power_law(matrices):
    """The number of vertices with a degree of at least d falls as d^−1.5, up to the cutoff."""
    matrix = matrices["co"]
    degrees = np.asarray(matrix.sum(0)).ravel().astype(int)
    degrees += np.bincount(matrix.nonzero()[0], minlength=len(degrees))
    mean = degrees.mean()
    near, far = (np.count_nonzero(degrees >= times * mean) for times in (0.5, 2))
    # The cutoff, nine times the mean here, thins the far end by some ten percent.
    assert near / far == pytest.approx(4**1.5, rel=0.2)
    assert degrees.max() < 1.5 * (2 * matrix.nnz) ** 0.5


def test_the_mesh_has_neighbours_only(matrices):
    matrix = matrices["ad"]
    side = round(matrix.shape[0] ** 0.5)
    rows, columns = matrix.nonzero()
    distances, counts = np.unique(rows - columns, return_counts=True)
    assert distances.tolist() == [1, side, side + 1]
    assert counts[2] < 0.02 * matrix.nnz  # the diagonals for those that the border lacks
    assert not (rows[(rows - columns) % side == 1] % side == 0).any()  # no edge around the border


def test_the_fem_couples_equal_unknowns(matrices):
    matrix = matrices["gy"]
    rows, columns = matrix.nonzero()
    side = round((matrix.shape[0] / 3) ** (1 / 3))
    nodes = -(-matrix.shape[0] // 3)
    assert (rows % 3 == columns % 3).all()
    places = [
        np.stack([n % side, n // side % side, n // side**2]) for n in (rows // 3, columns // 3)
    ]
    assert np.abs(places[0] - places[1]).max() == 1 and nodes <= (side + 1) ** 3


def test_connections_of_the_circuit_follow_rents_rule(matrices):
    """A part of m elements in sequence has connections to the others in proportion to m^0.6."""
    rows, columns = stand_in("g2").nonzero()

    def connections(size: int) -> float:
        inside = [(rows // size == part) != (columns // size == part) for part in range(10, 40)]
        return float(np.mean([each.sum() for each in inside]))

    exponent = np.log(connections(2048) / connections(128)) / np.log(16)
    assert exponent == pytest.approx(0.6, abs=0.08)  # short distances are drawn once only


def test_the_bundle_has_blocks(matrices):
    matrix = matrices["bu"]
    n = matrix.shape[0]
    cameras = n // 1206
    points = (n - 6 * cameras) // 3
    rows, columns = matrix.nonzero()
    point = rows < 3 * points
    assert (rows[point] // 3 == columns[point] // 3).all()
    camera = (columns >= 3 * points) & (rows != columns)
    first = 3 * points
    assert ((rows[camera] - first) // 6 == (columns[camera] - first) // 6).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("xx", {}, "name must be one of ca, gy, g2, co, bu, wi, ad, ro, eu, not 'xx'"),
        ("ca", {"scale": 0}, "scale must be"),
        ("ca", {"scale": 300}, "scale must be"),
    ],
)
def test_bad_input(name, options, message):
    with pytest.raises(ValueError, match=message):
        stand_in(name, **options)
