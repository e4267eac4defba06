"""The second-level cache under kernels in steps, and the kernels that use it."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.kernels import gemm
from vitruvian.sim.kernels.cache import NOTHING, CacheRounds
from vitruvian.sim.kernels.convolution import cube_core, golden
from vitruvian.sim.kernels.convolution.catalogue import random_operands
from vitruvian.sim.kernels.convolution.cube_core import ConvBlocking
from vitruvian.sim.kernels.convolution.shape import ConvShape

C910B = load_chip("ascend910b")
SHAPE = ConvShape(
    images=3, channels=40, height=7, width=9, filters=70, kernel=(3, 3), pad=(1, 1, 1, 1)
)
SMALL = ConvBlocking(down=2, across=2, m=32, k=48, n=32, step_k=3)


def small_cache(nbytes):
    assert C910B.cache is not None
    return replace(C910B, cache=replace(C910B.cache, nbytes=nbytes))


def test_data_that_several_cores_read_comes_from_memory_once():
    cache = CacheRounds(C910B)
    round_ = [[[("a", 96)], [("b", 64)]], [[("a", 96)], [("c", 64)]], [[("a", 96)], [("c", 64)]]]
    assert cache.read(round_) == [((32, 3), (64, 1)), ((32, 3), (32, 2)), ((32, 3), (32, 2))]
    assert cache.read(round_) == [(NOTHING, NOTHING)] * 3
    pieces = [[[("a", 96), ("d", 10), ("e", 6)]], [[("e", 6)]]]
    assert cache.read(pieces) == [((13, 2),), ((3, 2),)], "parts of a transfer miss"


def test_the_least_recently_used_data_leave_the_cache():
    cache = CacheRounds(small_cache(100))

    def missed(name, size=40):
        return cache.read([[[(name, size)]]])[0][0][0]

    assert [missed(x) for x in "abab"] == [40, 40, 0, 0]
    assert missed("c") == 40 and missed("b") == 0 and missed("a") == 40
    cache.write([("d", 80)])  # a result takes room as well
    assert missed("a") == 40
    assert [missed(x, 101) for x in "zz"] == [101, 101], "larger than the cache"


def test_a_chip_without_a_cache_misses_nothing():
    cache = CacheRounds(load_chip("ascend310"))
    assert cache.read([[[("a", 96)]], [[("b", 1)]]]) == [(NOTHING,), (NOTHING,)]


def test_a_convolution_equals_its_golden_model():
    data = random_operands(SHAPE, 1, bias=False)
    outputs = simulate(cube_core.build(SHAPE, blocking=SMALL, data=data)).outputs
    expected = golden.dense(SHAPE, data.x, data.w, None)
    assert np.array_equal(
        cube_core.result(outputs["y"], SHAPE).view(np.uint16), expected.view(np.uint16)
    )


@pytest.mark.parametrize(
    "shape, blocking",
    [
        (replace(SHAPE, stride=(2, 1), images=1), replace(SMALL, m=16, step_k=1)),
        (replace(SHAPE, kernel=(1, 1), pad=(0, 0, 0, 0)), replace(SMALL, down=3, across=1, k=16)),
        (replace(SHAPE, dilation=(2, 1), pad=(2, 1, 0, 2)), replace(SMALL, k=32, step_k=2)),
    ],
)
def test_other_convolutions_and_blockings(shape, blocking):
    data = random_operands(shape, 2, bias=False)
    outputs = simulate(cube_core.build(shape, blocking=blocking, data=data)).outputs
    expected = golden.dense(shape, data.x, data.w, None)
    found = cube_core.result(outputs["y"], shape)
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))


def test_steps_that_are_built_once_take_the_times_of_the_program():
    chip = small_cache(20_000)  # so small that weights are read again
    program = lower(cube_core.build(SHAPE, chip=chip, blocking=SMALL))[0]
    steps = cube_core.lower_conv(SHAPE, chip=chip, blocking=SMALL)[0]
    for name in ("first", "unit", "kind", "init", "data", "drain", "bus", "rate", "posted"):
        assert np.array_equal(getattr(program, name), getattr(steps, name)), name
    assert engine.run(program).total == engine.run(steps).total
    whole = cube_core.lower_conv(SHAPE, chip=C910B, blocking=SMALL)[0]
    assert engine.run(whole).total < engine.run(steps).total, "fewer misses"


def test_convolutions_that_cannot_be_are_refused():
    data = random_operands(SHAPE, 1)
    with pytest.raises(ValueError, match=r"data of a convolution .* must be without a bias"):
        cube_core.build(SHAPE, data=data)
    with pytest.raises(ValueError, match="groups of a convolution on Cube cores must be 1, not 2"):
        cube_core.build(replace(SHAPE, groups=2))
    with pytest.raises(ValueError, match="k must be a multiple of 16, not 40"):
        cube_core.lower_conv(SHAPE, chip=C910B, blocking=replace(SMALL, k=40))
    with pytest.raises(ValueError, match="grid must have 1 … 24 cores, not 5×5"):
        cube_core.build(SHAPE, blocking=replace(SMALL, down=5, across=5))
    with pytest.raises(ValueError, match="base tiles must fit the 524288 bytes of L1, not take"):
        cube_core.build(replace(SHAPE, width=9_000), blocking=SMALL)
    with pytest.raises(ValueError, match="chip must have cores with a unit FIX, not ascend310"):
        cube_core.build(SHAPE, chip="ascend310")


@pytest.mark.parametrize("slots", [1, 3])
def test_a_product_with_b_by_rows(slots):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, size).astype(np.float16) for size in ((48, 64), (64, 80)))
    blocking = gemm.Blocking(2, 2, 32, 16, 32, 2, slots, False)
    program = gemm.build(48, 64, 80, blocking=blocking, data=(a, b))
    assert np.array_equal(simulate(program).outputs["c"], a.astype(np.float32) @ b)
    lowered = lower(gemm.build(48, 64, 80, blocking=blocking))[0]
    assert (
        engine.run(lowered).total
        == engine.run(gemm.lower_gemm(48, 64, 80, chip=C910B, blocking=blocking)[0]).total
    )
