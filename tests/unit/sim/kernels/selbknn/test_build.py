"""Programs that search nearest neighbours: equal to golden to the bit, and without findings."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.sim.davinci import Unit, load_chip, simulate
from vitruvian.sim.davinci.semantics.memory import FunctionalError
from vitruvian.sim.kernels.kselection.shape import KnnShape
from vitruvian.sim.kernels.selbknn.build import METHODS, build, largest_tile, result
from vitruvian.sim.kernels.selbknn.catalogue import expected, instance, needs
from vitruvian.sim.kernels.selbknn.golden import VARIANTS, knn
from vitruvian.sim.kernels.selbknn.operands import prepared, random_points

CHIP = load_chip("ascend310")


def operands(shape, seed=0):
    query = random_points(shape.queries, shape.features, 2 * seed)
    train = random_points(shape.train, shape.features, 2 * seed + 1)
    return prepared(query, train, shape.metric)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_right_and_without_a_finding(method):
    """The last tile has 26 points that fill it, and the last group of queries 14 lanes."""
    shape = KnnShape(18, 358, 20, 3, "l2")
    points = operands(shape)
    program = build(shape, CHIP, points, method=method, tile=128)
    report = simulate(program, strict=True)
    assert not report.findings
    found, golden = result(report.outputs, shape), expected(shape, points, method, 128)
    assert (found.index == golden.index).all()
    assert (found.distances.view(np.uint16) == golden.distances.view(np.uint16)).all()


@pytest.mark.parametrize(
    ("sizes", "chip", "cores"),
    [
        ((1, 1, 1, 1), "ascend310", 1),
        ((16, 130, 150, 5), "ascend310", 1),
        ((33, 200, 8, 16), "ascend910", 3),
        ((3, 256, 16, 33), "ascend310p", None),
    ],
)
def test_any_size_is_right(sizes, chip, cores):
    shape = KnnShape(*sizes)
    made = instance(shape, operands(shape), load_chip(chip), cores=cores)
    report = simulate(made.program, strict=True)
    assert not report.findings
    assert made.compare(report.outputs) == (2 * shape.queries * shape.k, 0)


def test_numbers_of_two_words_are_right():
    """The points of the second tile have numbers above 65535."""
    shape = replace(KnnShape(2, 65536 + 64, 1, 2, "l2"))
    train = np.full((shape.train, 1), 4, np.float16)
    train[[65535, 65540]] = 1
    points = prepared(np.array([[1], [2]], np.float16), train, "l2")
    report = simulate(build(shape, CHIP, points), checks=False)
    assert np.sort(result(report.outputs, shape).index, axis=0).tolist() == [
        [65535] * 2,
        [65540] * 2,
    ]


def test_a_program_built_for_other_data_is_refused():
    """Every scalar load that decides the control flow is compared with memory."""
    shape = KnnShape(4, 256, 8, 2)
    one, other = operands(shape, 1), operands(shape, 2)
    program = build(shape, CHIP, one)
    program.data = build(shape, CHIP, other).data
    with pytest.raises(
        FunctionalError, match=r"the loaded element is .*, which the program expects"
    ):
        simulate(program, checks=False)


def test_a_program_without_its_last_barrier_or_wait_is_found():
    shape = KnnShape(4, 256, 8, 2)
    core = build(shape, CHIP, operands(shape)).core(0)
    waits = [
        i
        for i, instr in enumerate(core.instructions)
        if instr.op == "wait_flag" and instr.unit == Unit.S
    ]
    for at in (waits[0], waits[-1]):
        program = build(shape, CHIP, operands(shape))
        instructions = program.core(0).instructions
        # The wait and its set are removed, so that only the order is missing.
        sets = [i for i in range(at) if instructions[i].op == "set_flag"]
        del instructions[at], instructions[sets[-1]]
        findings = simulate(program, cube=None).findings
        assert {f.check for f in findings} & {"race"}


def seconds(distances, method="selb", k=8, tile=512):
    """Return the seconds of a search in tiles of given distances."""
    train = np.zeros((tile * len(distances), 16), np.float16)
    train[:, 0] = np.concatenate(distances)
    query = np.zeros((16, 16), np.float16)
    query[:, 0] = 1
    shape = KnnShape(16, len(train), 16, k)
    program = build(shape, CHIP, (query, train), method=method, tile=tile, data=False)
    return simulate(program, cube=None, checks=False).total_s


def test_early_exit_saves_the_time_of_the_steps():
    first = np.linspace(1, 2, 512).astype(np.float16)
    times = []
    for smaller in (0, 2, 4, 8):
        second = np.full(512, 4, np.float16)
        second[:smaller] = 0.5
        times.append(seconds([first, second]) - seconds([first]))
    steps = np.diff(times) / np.diff((0, 2, 4, 8))
    assert (steps > 0).all() and np.allclose(steps[:2], steps[0], rtol=0.02)
    # Without the return, the skipped steps cost their branches and the exchanges.
    stay = seconds([first, second * 4], "selb-stay") - seconds([first], "selb-stay")
    assert stay > 2 * times[0]


def test_the_branches_are_counted():
    """Each step has a branch for every query and one for the early exit."""
    shape = KnnShape(16, 128, 16, 3)
    points = operands(shape)
    core = build(shape, CHIP, points).core(0)
    branches = sum(i.fields.get("text") == "branch" for i in core.instructions)
    assert branches == 3 * (16 + 1)


def test_variants_have_the_same_distances():
    shape = KnnShape(16, 300, 12, 6)
    points = operands(shape)
    all_ = [knn(*points, 6, tile=128, variant=v).distances for v in VARIANTS.values()]
    assert all((np.sort(d, axis=0) == np.sort(all_[0], axis=0)).all() for d in all_)


def test_a_tile_is_as_large_as_the_buffers_allow():
    shape = KnnShape(16, 204800, 128, 16)
    assert largest_tile(shape, CHIP) == 4096
    assert largest_tile(KnnShape(16, 200, 128, 16), CHIP) == 256
    with pytest.raises(ValueError, match=r"k must be at most \d+ for selb on ascend310, not 9000"):
        largest_tile(KnnShape(16, 204800, 128, 9000), CHIP)
    with pytest.raises(ValueError, match="tile must be a multiple of 128 up to 4096, not 100"):
        build(shape, CHIP, (np.zeros((0, 1)), np.zeros((0, 1))), tile=100)
    with pytest.raises(ValueError, match=r"method must be one of selb, .*, heap, not 'best'"):
        build(shape, CHIP, (np.zeros((0, 1)), np.zeros((0, 1))), method="best")


@pytest.mark.parametrize("method", METHODS)
def test_the_needs_are_an_upper_bound(method):
    shape = KnnShape(16, 128 if method == "heap" else 300, 16, 4)
    program = build(shape, CHIP, operands(shape), method=method, data=False)
    assert len(program) <= needs(shape, CHIP, method).instructions
