"""Programs of the k-selections: bits, findings, numbers of two words, bounds and bad input."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.sim.davinci import Program, load_chip, simulate
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.kernels.kselection import METHODS, Bitonic, Heap, build, result
from vitruvian.sim.kernels.kselection.build import expected, tile_of
from vitruvian.sim.kernels.kselection.shape import KnnShape

C310 = load_chip("ascend310")


def distances(queries, train, seed=0):
    """Return distances with many equal ones, zeros of both signs and subnormals."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-9, 10, (queries, train)).astype(np.float16)
    values *= rng.choice(np.array([1, -1, 2.0**-24], np.float16), (queries, train))
    return values


def run(shape, method, values, **options):
    program = build(shape, method=method, distances=values, **options)
    report = simulate(program, strict=True)
    assert not report.findings
    return program, result(shape, report.outputs["values"], report.outputs["numbers"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("queries", "train", "k", "tile"),
    [(1, 1, 1, None), (17, 130, 3, 128), (3, 384, 8, 384), (2, 300, 17, 128)],
)
def test_programs_have_the_bits_of_the_golden_model(method, queries, train, k, tile):
    shape, values = KnnShape(queries, train, 1, k), distances(queries, train)
    tile = tile_of(shape, C310, method) if tile is None else tile
    program, (found, numbers) = run(shape, method, values, tile=tile)
    golden, index = expected(shape, values, method=method, tile=tile)
    assert np.array_equal(found.view(np.uint16), np.ascontiguousarray(golden).view(np.uint16))
    assert np.array_equal(numbers, index)
    assert np.array_equal(np.sort(found, 1), np.sort(values, 1)[:, :k])
    bound = METHODS[method].instructions(shape, tile) + 64
    assert len(program) < bound * shape.groups * -(-train // tile)


def test_an_exchange_that_is_left_out_is_noticed(monkeypatch):
    exchange, calls = Bitonic._exchange, []

    def without_the_second(self, *args):
        calls.append(args)
        if len(calls) != 2:
            exchange(self, *args)

    monkeypatch.setattr(Bitonic, "_exchange", without_the_second)
    shape, values = KnnShape(16, 128, 1, 4), distances(16, 128, 4)
    program = build(shape, method="bitonic", distances=values)
    outputs = simulate(program, checks=False).outputs
    found, _ = result(shape, outputs["values"], outputs["numbers"])
    golden, _ = expected(shape, values, method="bitonic", tile=128)
    assert not np.array_equal(found, golden)


def test_a_heap_that_forgets_the_right_child_is_noticed(monkeypatch):
    shape, values = KnnShape(1, 128, 1, 6), distances(1, 128, 4)
    emitted = Heap._sink

    def only_left(self, q, distance, number):
        """Sink as if all right children were missing, by hiding them as −∞."""
        heap, right = self._heaps[q], self._heaps[q][2]
        heap[2] = -np.inf
        emitted(self, q, distance, number)
        heap[2] = right

    monkeypatch.setattr(Heap, "_sink", only_left)
    program = build(shape, method="heap", distances=values)
    # The loads state the elements that the program was built for.
    with pytest.raises(ValueError, match="scalar_load"):
        simulate(program, checks=False)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_two_words(method):
    """A tile from before point 65536 to behind it; the low words are codes of NaNs at first."""
    shape = KnnShape(2, 70000, 1, 3)
    program = Program(C310)
    core = program.core()
    values = distances(2, 384, 2)
    values[0, 200], values[1, 300] = -100, -200
    padded = np.full((16, 384), np.inf, np.float16)
    padded[:2] = values
    size = (384, 16) if METHODS[method].columns else (24, 16, 16)
    data = padded.T if METHODS[method].columns else padded.reshape(16, 24, 16).swapaxes(0, 1)
    source = program.tensor("x", size, "fp16", np.ascontiguousarray(data))
    best = program.tensor("best", (3, 16), "fp16")
    index = program.tensor("index", (2, 3, 16), "uint16")
    place = core.allocate("UB", size, "fp16")
    selector = METHODS[method](core, shape, 384)
    core.copy(place, source)
    core.pipe_barrier()
    selector.begin(2)
    selector.select(place, 65536 - 128, padded)
    core.pipe_barrier()
    core.copy(best, selector.best)
    core.copy(index, selector.index)
    report = simulate(program)
    low, high = report.outputs["index"].astype(int)
    numbers = (low + (high << 16))[:, :2].T - 65536 + 128
    assert np.array_equal(np.take_along_axis(values, numbers, 1), report.outputs["best"][:, :2].T)
    assert np.array_equal(np.sort(report.outputs["best"][:, :2].T, 1), np.sort(values, 1)[:, :3])
    assert 200 in numbers[0] and 300 in numbers[1] and numbers.min() < 128


@pytest.mark.parametrize("method", METHODS)
def test_scratch_bytes_are_those_that_are_allocated(method):
    for words, k, n in ((1, 5, 256), (2, 16, 128)):
        shape = KnnShape(16, n if words == 1 else 1 << 17, 1, k)
        core = Program(C310).core()
        METHODS[method](core, shape, n)
        used = core._used["UB"]
        assert used == METHODS[method].scratch_bytes(shape, n)


@pytest.mark.parametrize("name", ["kselect-bitonic", "kselect-heap"])
def test_the_bound_of_the_instructions_holds_and_is_not_far(name):
    kernel = KERNELS[name]
    for size in ((4, 128, 4), (18, 200, 9)):
        program = kernel.build(size, chip=C310, data=False).program
        needs = kernel.needs(size, C310, None)
        assert len(program) <= needs.instructions < 12 * len(program)


def test_bad_input_is_refused():
    shape = KnnShape(2, 200, 1, 129)
    with pytest.raises(ValueError, match="k of a bitonic selection must be at most 128, not 129"):
        build(shape, method="bitonic")
    with pytest.raises(ValueError, match="k must be at most the 5 training points, not 6"):
        KnnShape(1, 5, 1, 6)
    shape = KnnShape(2, 3, 1, 1)
    with pytest.raises(ValueError, match="distances must be 2×3, not 3×2"):
        build(shape, method="heap", distances=np.zeros((3, 2), np.float16))
    with pytest.raises(ValueError, match="method must be one of bitonic, heap, not 'sort'"):
        build(shape, method="sort")
    with pytest.raises(ValueError, match="n must be a multiple of 128"):
        Bitonic(Program(C310).core(), shape, 100)
    with pytest.raises(ValueError, match="tile must be a multiple of 128"):
        build(shape, method="bitonic", tile=100)
    small = replace(C310.kind().buffers["UB"], nbytes=16384)
    kinds = {"aicore": replace(C310.kind(), buffers={**C310.kind().buffers, "UB": small})}
    with pytest.raises(ValueError, match="must leave room for 128 points in UB, not 128"):
        tile_of(KnnShape(2, 200, 1, 128), replace(C310, kinds=kinds), "bitonic")
