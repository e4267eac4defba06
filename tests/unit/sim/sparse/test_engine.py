"""The engine equals the reference in every step, and the comparison notices mutations."""

import dataclasses
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from vitruvian.common.compiling import compiled
from vitruvian.sim.sparse import engine_compiled
from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.engine_compiled import COLUMNS, EngineProgram
from vitruvian.sim.sparse.lowering import lower
from vitruvian.sim.sparse.pattern import blocked, pattern_of
from vitruvian.sim.sparse.reference import run_reference
from vitruvian.sim.sparse.schedule import Sweep

CASES = 60


def oei(n: int, features: int = 1, vectors: int = 0) -> Sweep:
    """Return a sweep with a pair of products, and vectors that are read, written and computed."""
    size = n * vectors
    return Sweep("oei", ("A", False), features, features, size, size, 3 * size, 0)


def program(seed: int) -> EngineProgram:
    """Return a random matrix on a random machine, often with too small a buffer."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    dense = rng.random((n, n)) < rng.choice([0.02, 0.1, 0.4])
    dense[:, rng.random(n) < 0.1] = False
    dense[rng.random(n) < 0.1] = False
    if rng.random() < 0.3:
        dense[int(rng.integers(n))] = True
    if rng.random() < 0.3:
        dense[:, int(rng.integers(n))] = True
    pattern = pattern_of(sparse.csr_array(dense))
    pattern = blocked(pattern, int(rng.choice([1, 1, 1, 2, 4])))
    machine = dataclasses.replace(
        load_architecture(),
        buffer_bytes=1 << 20,
        pes=int(rng.choice([1, 2, 16])),
        sub_tensor=int(rng.choice([1, 2, 5, 16])),
        memory_bytes_per_s=10**9 * int(rng.choice([7, 64, 400])),
        repack_share=rng.choice([0, 0.1, 1]),
    )
    sweep = oei(n, int(rng.choice([1, 1, 3])), seed % 2)
    lowered = lower(pattern, machine, sweep)
    # The smallest buffer that is allowed, or up to thrice that.
    sizes = [
        largest(lowered.col_first, lowered.col_work, lowered),
        largest(lowered.row_first, lowered.row_work, lowered),
        16,
    ]
    capacity = int(4 * max(sizes) * rng.choice([1, 1, 1.5, 3]))
    small = dataclasses.replace(machine, buffer_bytes=capacity)
    return lower(pattern, small, sweep)


def largest(first: np.ndarray, work: np.ndarray, lowered: EngineProgram) -> int:
    """Return the bytes of the largest column or row."""
    weights = np.diff(first if len(work) == 1 else work[first])
    return int((weights * lowered.nonzero_bytes + np.diff(first) * lowered.entry_bytes).max())


@pytest.fixture(scope="module")
def references() -> list[tuple[EngineProgram, np.ndarray]]:
    return [(case, run_reference(case)[0]) for case in map(program, range(CASES))]


@pytest.fixture(scope="module")
def logs() -> list[np.ndarray]:
    return [run_reference(program(seed))[1] for seed in range(CASES)]


def test_every_step_is_that_of_the_reference(references):
    for seed, (case, steps) in enumerate(references):
        np.testing.assert_array_equal(engine_compiled.run(case, False)[0], steps, f"seed {seed}")


def test_the_cases_reach_every_rule(references):
    total = np.sum([steps.sum(axis=0) for _, steps in references], axis=0)
    assert len(total) == len(COLUMNS) and (total > 0).all()


def test_the_compiled_form_is_the_plain_one(references):
    run = compiled(engine_compiled.run)
    for seed, (case, steps) in enumerate(references):
        np.testing.assert_array_equal(run(case, False)[0], steps, f"seed {seed}")


def test_the_log_is_that_of_the_reference_and_has_the_bytes_of_the_steps(references, logs):
    kinds = ("csc", "reload", "prefetch", "results")
    for seed, ((case, steps), log) in enumerate(zip(references, logs, strict=True)):
        again, requests = engine_compiled.run(case, True)
        np.testing.assert_array_equal(requests, log, f"seed {seed}")
        np.testing.assert_array_equal(again, steps, f"seed {seed}")
        np.testing.assert_array_equal(compiled(engine_compiled.run)(case, True)[1], log)
        assert not len(engine_compiled.run(case, False)[1])
        for kind, name in enumerate(kinds):
            nbytes = np.zeros(len(steps), np.int64)
            for step, _, first, last in log[log[:, 1] == kind].tolist():
                nbytes[step] += request_bytes(case, kind, first, last)
            np.testing.assert_array_equal(nbytes, steps[:, COLUMNS.index(name)], f"seed {seed}")


def request_bytes(case: EngineProgram, kind: int, first: int, last: int) -> int:
    """Return the bytes of a request of the log."""
    n = len(case.col_first) - 1
    if kind == engine_compiled.RESULT:
        return (last - first) * case.result + (last == n) * (case.last_result - case.result)
    work = case.col_work if kind == engine_compiled.CSC else case.row_work
    nonzeros = last - first if len(work) == 1 else int(work[last] - work[first])
    return nonzeros * case.nonzero_bytes + (last - first) * case.entry_bytes


def test_bytes_and_operations_are_conserved(references):
    for case, steps in references:
        of = dict(zip(COLUMNS, steps.sum(axis=0), strict=True))
        nonzeros = case.col_work[-1] if len(case.col_work) > 1 else len(case.col_rows)
        matrix = nonzeros * case.nonzero_bytes + len(case.col_rows) * case.entry_bytes
        n = len(case.col_first) - 1
        assert of["os_operations"] == nonzeros * case.os_features
        assert of["is_operations"] == nonzeros * case.is_features
        assert of["results"] == (n - 1) * case.result + case.last_result
        assert of["vectors"] == case.vectors.sum()
        # Every entry comes at least once. What comes again was evicted, was refused by a full
        # buffer, or was prefetched for the IS core only: at most once for each core.
        assert matrix <= of["csc"] + of["prefetch"] + of["reload"]
        assert of["csc"] <= matrix
        assert of["prefetch"] <= matrix + of["evicted"]
        assert of["reload"] <= matrix + of["evicted"]


def test_no_step_exceeds_capacity_or_rates(references):
    for case, steps in references:
        of = dict(zip(COLUMNS, steps.T, strict=True))
        assert (of["csr_space"] + of["csc_space"] <= case.capacity).all()
        assert (of["held"] <= of["csr_space"]).all()
        kinds = ("csc", "reload", "prefetch", "vectors", "results")
        moved = sum(of[kind] for kind in kinds)
        assert (moved * case.per <= of["cycles"] * case.rate).all()
        assert (of["os_operations"] <= of["cycles"] * case.pes).all()
        assert (of["is_operations"] <= of["cycles"] * case.pes).all()


def test_a_buffer_that_holds_all_reads_each_nonzero_once():
    rng = np.random.default_rng(3)
    pattern = pattern_of(sparse.csr_array(rng.random((60, 60)) < 0.1))
    machine = dataclasses.replace(load_architecture(), sub_tensor=4, pes=16)
    steps, _ = engine_compiled.run(lower(pattern, machine, oei(60)), False)
    of = dict(zip(COLUMNS, steps.sum(axis=0), strict=True))
    assert of["reload"] == of["evicted"] == 0
    assert of["csc"] + of["prefetch"] >= 12 * pattern.nonzeros
    slow = dataclasses.replace(machine, memory_bytes_per_s=10**9)  # no bandwidth to prefetch with
    steps, _ = engine_compiled.run(lower(pattern, slow, oei(60)), False)
    assert steps[:, COLUMNS.index("csc")].sum() == 12 * pattern.nonzeros
    assert steps[:, COLUMNS.index("prefetch")].sum() == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if 2 <= s < subs + 2:", "if 2 <= s < subs + 1:"),
        ("max(s - 2, 0)", "max(s - 1, 0)"),
        ("low = eligible if r < eligible else r + 1", "low = eligible"),
        ("fetched // (r - finished + 1)", "fetched // (r + 1)"),
        ("state[_AHEAD] + whole <= quarter", "state[_AHEAD] + whole <= capacity"),
        ("quota = min(ready, cycles * pes // is_features)", "quota = min(ready, cycles * pes)"),
        ("operations *= os_features", "operations *= 1"),
        ("-(-ready * is_features // pes)", "-(-ready // pes)"),
        ("if state[_DEAD] > threshold:", "if state[_DEAD] >= threshold:"),
        ("while i < row_first[r + 1] and row_cols[i] < passed:", "while i < row_first[r + 1]:"),
        ("k < col_first[c + 1] and col_rows[k] == r", "k < col_first[c + 1]"),
        ("share = max(1, ", "share = max(2, "),
    ],
)
def test_a_mutation_is_noticed(references, old, new):
    source = Path(engine_compiled.__file__).read_text()
    assert source.count(old) == 1
    mutant = ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), mutant.__dict__)
    for case, steps in references:
        try:
            mutated, _ = mutant.run(case, False)
        except (IndexError, KeyError):
            return
        if not np.array_equal(mutated, steps):
            return
    pytest.fail(f"no case tells {new!r} from {old!r}")
