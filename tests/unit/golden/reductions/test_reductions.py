"""Orders of sums against the trees of kernels that an H200 ran."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.measured import FOLDER
from vitruvian import reductions
from vitruvian.common.errors import UserError
from vitruvian.golden.fp import fma
from vitruvian.golden.fp.fused import fused
from vitruvian.golden.reductions import SumOrder, TileOrder, add, add_tile, pytorch_order
from vitruvian.golden.triton import sum_order

with np.load(FOLDER / "sums.npz") as file:
    CALLS = json.loads(file["header"].tobytes())["calls"]
    PAIRS, KEPT = file["pairs"], file["kept"]
TORCH = [call for call in CALLS if call["sum"] != "tl.sum"]
TILES = [call for call in CALLS if call["sum"] == "tl.sum"]
RNG = np.random.default_rng(11)


def order_of(call: dict[str, Any]) -> SumOrder:
    """Return the order of a recorded sum of PyTorch."""
    sums = 1 if call["sum"] == "sum()" else call["rows"]
    return pytorch_order(call["n"], sums, inner=call["sum"] != "sum(dim=0)")


def tile_of(call: dict[str, Any]) -> TileOrder:
    """Return the layout of a recorded sum of Triton."""
    return TileOrder(each=call["each"], lanes=call["lanes"], warps=call["warps"])


def differences(call: dict[str, Any], order: SumOrder | TileOrder) -> int:
    """Return for how many pairs of places another number of ones is kept.

    A large number, its negative, and ones: those below the pair's common node are absorbed.
    """
    part = slice(call["at"], call["at"] + call["count"])
    pairs, rows = PAIRS[part], np.arange(call["count"])
    x = np.ones((call["count"], call["n"]), np.float32)
    x[rows, pairs[:, 0]], x[rows, pairs[:, 1]] = 2.0**60, -(2.0**60)
    d = add(x, order) if isinstance(order, SumOrder) else add_tile(x, order)
    return int((d != KEPT[part]).sum())


def test_trees_of_pytorch_are_equal():
    assert len(TORCH) == 106
    assert not [call for call in TORCH if differences(call, order_of(call))]
    kinds = [order_of(call) for call in TORCH]
    assert {order.blocks > 1 for order in kinds} == {True, False}
    assert {order.height > 1 for order in kinds} == {True, False}


def test_trees_of_triton_are_equal():
    assert len(TILES) == 46
    assert not [call for call in TILES if differences(call, tile_of(call))]


def test_layouts_of_triton_are_those_of_its_rule():
    """The compiler's own layouts, of Triton 3.6, for rows of a block of each size."""
    for call in TILES:
        shape = call["block"], call["n"]
        order = sum_order(shape, 1, warps=call["num_warps"], pairs=False)
        assert order == tile_of(call), call
    assert sum_order((1024,), 0, loaded=16, warps=2).each == 8


def test_the_trees_notice_another_order():
    by_size = {(call["sum"], call["n"], call["rows"]): call for call in TORCH}
    for key, change in (
        (("sum(dim=-1)", 1024, 64), {"vector": 1}),
        (("sum(dim=-1)", 1024, 64), {"width": 64}),
        (("sum(dim=-1)", 16384, 64), {"height": 8}),
        (("sum(dim=0)", 4096, 64), {"blocks": 16}),
        (("sum(dim=0)", 256, 64), {"accumulators": 2}),
    ):
        assert differences(by_size[key], replace(order_of(by_size[key]), **change)) > 3, key
    call = next(call for call in TILES if call["each"] > 1 and call["n"] == 1024)
    assert differences(call, replace(tile_of(call), each=1)) > 3


def test_pairs_of_registers_are_those_of_triton_3_8():
    x = RNG.standard_normal(16).astype(np.float32)  # 2 lanes, with two vectors of 4 each
    lanes = [[x[8 * v + 4 * lane + i] for v in (0, 1) for i in range(4)] for lane in (0, 1)]
    sums = []
    for r in lanes:
        first = (r[0] + r[1]) + (r[2] + r[3])
        sums.append(first + ((r[4] + r[5]) + (r[6] + r[7])))
    assert add_tile(x, TileOrder(each=4, lanes=2, pairs=True)) == sums[0] + sums[1]
    call = next(call for call in TILES if call["each"] == 4 and call["n"] == 1024)
    assert differences(call, replace(tile_of(call), pairs=True)) > 3  # not those of 3.6


def test_an_order_is_its_plain_form():
    x = RNG.standard_normal(1003).astype(np.float32)
    held = [np.float32(0)] * 12  # 4 threads, 3 accumulators
    for place, value in enumerate(x):
        thread, turn = place % 4, place // 4 % 3
        held[3 * thread + turn] += value
    threads = [held[3 * t] + held[3 * t + 1] + held[3 * t + 2] for t in range(4)]
    total = (threads[0] + threads[2]) + (threads[1] + threads[3])
    assert add(x, SumOrder(width=4, accumulators=3)) == total
    vectors = [np.float32(0)] * 8  # 4 threads, vectors of 2, and the last number apart
    for place, value in enumerate(x[:1002]):
        vectors[place % 8] += value
    vectors[0] += x[1002]
    threads = [vectors[2 * t] + vectors[2 * t + 1] for t in range(4)]
    total = (threads[0] + threads[2]) + (threads[1] + threads[3])
    assert add(x, SumOrder(width=4, vector=2)) == total
    blocks = [add(x[b::3], SumOrder(width=1, accumulators=1)) for b in range(3)]
    assert add(x, SumOrder(width=1, blocks=3, accumulators=1)) == blocks[0] + blocks[1] + blocks[2]


def test_sums_of_arrays_take_the_axis():
    x = RNG.standard_normal((64, 256, 8)).astype(np.float32)
    expected = add(np.moveaxis(x, 0, -1), pytorch_order(64, 2048, inner=False))
    assert np.array_equal(reductions.pytorch_sum(x, 0), expected)
    assert np.array_equal(reductions.pytorch_sum(x), add(x, pytorch_order(8, 64 * 256)))
    assert reductions.pytorch_sum(x, None) == add(x.ravel(), pytorch_order(x.size))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(reductions.pytorch_sum(wide), wide.sum(-1))
    assert reductions.pytorch_sum(x[0, :, 0], 0) == reductions.pytorch_sum(x[0, :, 0])
    assert set(reductions.__all__) < set(dir(reductions))
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        reductions.other  # noqa: B018


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pytorch_order(16, gpu="v100"), UserError, "gpu must be one of"),
        (lambda: pytorch_order(1001, 64), UserError, "terms must be a multiple of 4"),
        (lambda: pytorch_order(1 << 16, 1 << 15), UserError, "must be below"),
        (lambda: pytorch_order(0), ValueError, "terms"),
        (lambda: pytorch_order(16, format="fp16"), ValueError, "format must be"),
        (lambda: SumOrder(width=3), ValueError, "width must be a power of two, not 3"),
        (lambda: TileOrder(each=3, lanes=1), ValueError, "each must be a power of two"),
        (
            lambda: add_tile(np.zeros(6, np.float32), TileOrder(each=4, lanes=1)),
            ValueError,
            "from 4 on",
        ),
        (lambda: add_tile(np.zeros(4, int), TileOrder(each=4, lanes=1)), TypeError, "float32"),
        (lambda: add(np.zeros(4, np.float16), SumOrder(width=1)), TypeError, "float32"),
        (lambda: reductions.pytorch_sum(np.zeros((2, 2), np.float32), 1), ValueError, "axis must"),
        (lambda: reductions.pytorch_sum(np.zeros((0, 2), np.float32)), ValueError, "numbers"),
        (lambda: reductions.pytorch_sum(np.zeros(2, np.float16)), TypeError, "float32"),
    ],
)
def test_what_is_not_known_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("square", [True, False])
def test_fused_multiply_adds_are_those_of_the_golden_model(square):
    n = 20_000
    x, y, total = (RNG.standard_normal(n) * 2.0 ** RNG.integers(-80, 60, n) for _ in range(3))
    x, total = x.astype(np.float32), np.abs(total).astype(np.float32)
    y = x if square else y.astype(np.float32)
    total[::2] = np.abs(x[::2]) * np.float32(2) ** RNG.integers(-5, 30, n // 2)
    x[:5], total[:4] = (0, np.inf, 2.0**-140, 3, np.nan), (0, 1, 2.0**-149, np.inf)
    with np.errstate(all="ignore"):
        got = fused(x, y, total)
        codes = [v.view(np.uint32) for v in (x, y, total)]
        expected = fma(codes[0], codes[1], codes[2], "fp32").view(np.float32)
        np.testing.assert_array_equal(got, expected)
        twice = np.float32(np.float64(x) * y + total)
    assert (got != twice).any()  # rounding to FP64 first is seen


def test_means_and_norms_follow_the_sums():
    x = RNG.standard_normal((6, 4096)).astype(np.float32)
    mean = reductions.pytorch_sum(x) * (np.float32(6) / np.float32(x.size))
    assert (reductions.pytorch_mean(x) == mean).all()
    assert (reductions.pytorch_norm(x, 1) == reductions.pytorch_sum(np.abs(x))).all()
    norm, exact = reductions.pytorch_norm(x), np.linalg.norm(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(norm, exact, rtol=2**-21)
    whole = np.round(4 * x)  # sums of squares are exact, and so is their order
    sums = reductions.pytorch_sum(np.square(whole), axis=None)
    assert reductions.pytorch_norm(whole, axis=None) == np.sqrt(sums)
    assert reductions.pytorch_mean(x.astype(np.float64), axis=0).dtype == np.float64
    with pytest.raises(TypeError, match="squares"):
        reductions.pytorch_norm(x.astype(np.float64))
    with pytest.raises(ValueError, match="order"):
        reductions.pytorch_norm(x, 3)
