"""Cores that wait for each other: a scalar load sees what another core wrote before."""

import threading

import numpy as np
import pytest

from vitruvian.sim.davinci import Deadlock, load_chip, simulate
from vitruvian.sim.davinci.cce import CceError, build, build_mixed, read

C910B = load_chip("ascend910b")

HEAD = """
#define UB(T, a) ((__ubuf__ T *)get_imm(a))
#define SYNC(mode, flag) (1 | (mode) << 4 | (flag) << 8)
#define ALL pipe_barrier(PIPE_ALL)
"""

#: Every core writes how many numbers it has, waits, and finds the start of its own numbers from the
#: counts of the cores before it.
OFFSETS = """
__global__ __aicore__ void k(__gm__ int *counts, __gm__ int *out) {
    int me = block_idx;
    counts[8 * me] = 2 * me + 1;
    ALL;
    ffts_cross_core_sync(PIPE_MTE3, SYNC(0, 3));
    wait_flag_dev(3);
    int start = 0;
    for (int i = 0; i < me; ++i) start += counts[8 * i];
    for (int i = 0; i < counts[8 * me]; ++i) out[start + i] = me;
    ALL;
    ffts_cross_core_sync(PIPE_MTE3, SYNC(0, 3));
    wait_flag_dev(3);
    if (me == 0) out[63] = counts[8 * (block_num - 1)];
}
"""


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_a_core_sees_what_others_have_written(blocks):
    arguments = {"counts": np.full(64, 99, np.int32), "out": np.full(64, -1, np.int32)}
    kernel = read(HEAD + OFFSETS, "k.cce")
    program, functional = build(kernel, C910B, arguments, blocks=blocks, kind="vector")
    report = simulate(program)
    expected = np.full(64, -1, np.int32)
    expected[: blocks**2] = np.repeat(np.arange(blocks), 2 * np.arange(blocks) + 1)
    expected[63] = 2 * blocks - 1
    assert functional is not None
    assert np.array_equal(functional.read("out"), expected)
    assert np.array_equal(report.outputs["out"], expected)


#: The cores of both kinds alternately change a number, and read what the other kind has written.
THERE_AND_BACK = """
__global__ __aicore__ void k(__gm__ int *x) {
#ifdef __DAV_C220_CUBE__
    for (int i = 0; i < 3; ++i) {
        if (i) wait_flag_dev(1);
        x[0] = 2 * x[0] + 1;
        ALL;
        ffts_cross_core_sync(PIPE_FIX, SYNC(2, 0));
    }
    wait_flag_dev(1);
#else
    for (int i = 0; i < 3; ++i) {
        wait_flag_dev(0);
        if (get_subblockid() == 0) {
            for (int n = x[0]; n > 0; n -= 2) x[0] += 1;
            x[8 + i] = x[0];
        }
        ALL;
        ffts_cross_core_sync(PIPE_MTE3, SYNC(2, 1));
    }
#endif
}
"""


@pytest.mark.parametrize("order", [("cube", "vector"), ("vector", "cube")])
def test_cube_and_vector_cores_take_turns(order):
    macros = {"cube": "__DAV_C220_CUBE__", "vector": "__DAV_C220_VEC__"}
    kernels = {k: read(HEAD + THERE_AND_BACK, "k.cce", defines={macros[k]: "1"}) for k in order}
    start = np.zeros(16, np.int32)
    start[0] = 5
    report = simulate(build_mixed(kernels, C910B, {"x": start}))
    value, expected = 5, []
    for _ in range(3):
        value = 2 * value + 1
        value += (value + 1) // 2
        expected.append(value)
    assert report.outputs["x"][8:11].tolist() == expected


def test_cores_that_wait_for_ever_are_for_simulate_to_name():
    text = HEAD + "__global__ void k(__gm__ int *x) { wait_flag_dev(2); x[block_idx] = 1; }"
    program, functional = build(
        read(text, "k.cce"), C910B, {"x": np.zeros(8, np.int32)}, blocks=2, kind="vector"
    )
    assert functional is not None and functional.read("x").tolist()[:2] == [1, 1]
    with pytest.raises(Deadlock, match=r"deadlock: cross_wait.* at k.cce:5 on S of vector 0"):
        simulate(program)


def test_the_mistake_of_one_core_ends_all():
    text = """__global__ void k(__gm__ int *x) {
    if (block_idx == 2) x[1 / (x[0] - x[0])] = 3;
    ffts_cross_core_sync(PIPE_MTE3, SYNC(0, 3));
    wait_flag_dev(3);
    x[8] = 1;
}"""
    before = threading.active_count()
    with pytest.raises(CceError, match=r"k.cce:6:\d+: the right side of / is zero"):
        build(
            read(HEAD + text, "k.cce"),
            C910B,
            {"x": np.zeros(16, np.int32)},
            blocks=4,
            kind="vector",
        )
    assert threading.active_count() == before


def test_cores_know_their_number_among_all():
    text = """__global__ __aicore__ void k(__gm__ int *x) {
#ifdef __DAV_C220_VEC__
    x[8 * GetBlockIdx()] = 100 * (GetBlockNum() + 1) + 10 * get_block_idx() + get_subblockid();
#endif
    ALL;
}"""
    kernels = {
        "cube": read(HEAD + text, "k.cce"),
        "vector": read(HEAD + text, "k.cce", defines={"__DAV_C220_VEC__": "1"}),
    }
    start = np.zeros(32, np.int32)
    report = simulate(build_mixed(kernels, C910B, {"x": start}, blocks=2))
    assert report.outputs["x"][::8].tolist() == [300, 301, 310, 311]
