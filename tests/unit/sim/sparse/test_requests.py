"""The requests of a sweep: they have the bytes of its steps, and each burst is moved when due."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.engine_compiled import COLUMNS
from vitruvian.sim.sparse.pattern import blocked, pattern_of, stored_in_blocks
from vitruvian.sim.sparse.requests import PAGE_BYTES, matrix_requests, vector_requests
from vitruvian.sim.sparse.schedule import Sweep
from vitruvian.sim.sparse.timing import sweep_steps

MACHINE = dataclasses.replace(load_architecture(), pes=16, sub_tensor=8, buffer_bytes=1 << 12)
BYTES = ("csc", "reload", "prefetch", "vectors", "results")
VIEW = ("A", False)


def pattern(n: int = 60, share: float = 0.08, seed: int = 1):
    """Return a random matrix with some empty columns and rows."""
    rng = np.random.default_rng(seed)
    dense = rng.random((n, n)) < share
    dense[:, :2] = False
    dense[3] = False
    return pattern_of(sparse.csr_array(dense))


def sweep(kind: str, n: int = 60, features: int = 1, vectors: int = 2) -> Sweep:
    second = 0 if kind == "product" else features
    read, written = n * vectors + 3, n * (vectors - 1)
    return Sweep(kind, VIEW, features, second, read, written, 0, 0)


def table_and_requests(kind: str, given, machine=MACHINE, atom: int = 64, **options):
    each = sweep(kind, given.columns, **options)
    table, log = sweep_steps(each, {VIEW: given}, machine, logs=True)
    return each, table, matrix_requests(given, machine, each, log, atom=atom)


@pytest.mark.parametrize("kind", ["oei", "stream", "product"])
@pytest.mark.parametrize("side", [1, 4, 256])
@pytest.mark.parametrize("features", [1, 3])
def test_the_bytes_of_a_sweep_are_those_of_its_steps(kind, side, features):
    single = pattern()
    for given in (blocked(single, 4) if side == 4 else stored_in_blocks(single, side), single):
        machine = MACHINE if side == 1 else dataclasses.replace(MACHINE, buffer_bytes=1 << 20)
        _, table, found = table_and_requests(kind, given, machine, features=features)
        of = dict(zip(COLUMNS, table.sum(axis=0), strict=True))
        assert found.asked == sum(of[name] for name in BYTES)
        # With bursts of one byte, all that is asked for is moved, and in the step of the table.
        _, _, single_bytes = table_and_requests(kind, given, machine, atom=1, features=features)
        moved = np.bincount(single_bytes.steps, minlength=len(table))
        assert moved.sum() <= found.asked
        if of["reload"] == 0:
            names = [COLUMNS.index(name) for name in BYTES]
            np.testing.assert_array_equal(moved, table[:, names].sum(axis=1))


def test_the_small_buffer_reloads_and_its_fragments_move_more_than_they_need():
    _, table, found = table_and_requests("oei", pattern(120, 0.2))
    assert table[:, COLUMNS.index("reload")].sum() > 0
    assert 64 * len(found.atoms) > 1.02 * found.asked


def test_arrays_do_not_overlap_and_begin_at_pages():
    given, atom = pattern(), 64
    each, table, found = table_and_requests("product", given)
    # Values, coordinates, pointers, x, two read vectors and a rest, and a written one.
    begins = [0]
    for nbytes in (8 * given.nonzeros, 4 * given.nonzeros, 4 * 60, 8 * 60, 480, 480, 24, 480):
        begins.append(-(-(begins[-1] + nbytes) // PAGE_BYTES) * PAGE_BYTES)
    arrays = np.searchsorted(begins, found.atoms * atom, "right") - 1
    assert set(arrays.tolist()) == set(range(8))
    assert set(arrays[found.writes].tolist()) == {7}
    assert each.written == 60 and found.writes.sum() == -(-480 // atom)
    # Only x and the vectors come in another order than their addresses.
    for number in (0, 1, 2, 4, 5, 6, 7):
        assert (np.diff(found.atoms[arrays == number]) == 1).all()
    assert len(table) == found.steps.max() + 1


def test_x_comes_once_and_results_when_their_last_element_is_complete():
    given = pattern(90, 0.05)
    each, _, found = table_and_requests(
        "oei", given, dataclasses.replace(MACHINE, buffer_bytes=1 << 20)
    )
    assert len(found.atoms[found.writes]) == len(np.unique(found.atoms[found.writes]))
    # All columns' results, and the written vector
    assert found.writes.sum() == 2 * -(-90 * 8 // 64)
    log = sweep_steps(
        each, {VIEW: given}, dataclasses.replace(MACHINE, buffer_bytes=1 << 20), logs=True
    )[1]
    assert log is not None
    done = np.zeros(90, np.int64)
    for step, kind, first, last in log.tolist():
        if kind == 3:
            done[first:last] = step
    results = found.writes & (found.atoms < found.atoms[found.writes].min() + 12)
    last = [int(done[8 * k : 8 * k + 8].max()) for k in range(12)]
    order = np.argsort(found.atoms[results])
    assert found.steps[results][order].tolist() == last


def test_joined_steps_keep_the_bursts_and_take_turns_less_often():
    given = pattern(200, 0.05)
    each = sweep("product", 200)
    one = matrix_requests(given, MACHINE, each, None, atom=64)
    four = matrix_requests(given, MACHINE, each, None, atom=64, joined=4)
    assert sorted(one.atoms) == sorted(four.atoms)
    assert (np.diff(four.steps // 4) >= 0).all() and (np.diff(one.steps) >= 0).all()

    def jumps(found):
        return int((np.diff(found.atoms) != 1).sum())

    assert jumps(four) < jumps(one)


def test_vectors_alone_alternate_in_parts_of_a_sub_tensor():
    each = Sweep("vectors", None, 0, 0, 400, 200, 0, 0)
    found = vector_requests(MACHINE, each, atom=64)
    assert found.asked == 8 * 600
    assert found.writes.sum() == 25 and (~found.writes).sum() == 50
    # Fifty parts of eight values each; the first write is behind the first reads.
    assert found.steps.max() == 49 and not found.writes[0] and found.writes[:4].any()
    nothing = vector_requests(MACHINE, Sweep("vectors", None, 0, 0, 0, 0, 5, 0), atom=64)
    assert len(nothing.atoms) == nothing.asked == 0
