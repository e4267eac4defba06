"""AscendC on the 910B: registers of the vector unit, numbers of 4 bits, and sparse products."""

import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.cube.structured import compress, pack_places
from vitruvian.golden.vector import pack_fours, to_fours
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.cce import CceError

SOURCE = str(Path(__file__).parent / "kernels" / "counts.cpp")
CHIP = load_chip("ascend910b")
RNG = np.random.default_rng(8)

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def run(kernel, arguments, **defines):
    defines = {"PLACES": "0x3000"} | defines
    compiled = compile_kernel(SOURCE, CHIP, kernel=kernel, defines=defines)
    program, functional = build({compiled.kind: compiled}, CHIP, arguments)
    report = simulate(program)
    assert not report.findings
    return program, functional


def tree(row):
    """Return the sum of a row as a binary tree of neighbours."""
    while len(row) > 1:
        row = row[::2] + row[1::2]
    return row[0]


@pytest.mark.parametrize(
    ("kernel", "dtype", "n", "repeats"),
    [
        ("sums", np.float16, 1024, 1),
        ("sums", np.float16, 700, 0),
        ("singles", np.float32, 640, 1),
        ("singles", np.float32, 1000, 0),
    ],
)
def test_a_sum_of_repeats_is_in_a_register(kernel, dtype, n, repeats):
    """Each repeat is a tree, and their sums are added in order; nothing else is written."""
    x = (RNG.standard_normal(1024) * 8).astype(dtype)
    arguments = {"x": x, "out": np.zeros(1, dtype), "n": n, "r": repeats}
    program, functional = run(kernel, arguments)
    lanes = 256 // x.itemsize
    padded = np.append(x[:n], np.full(-n % lanes, -0.0, dtype)).reshape(-1, lanes)
    total = tree(padded[0])
    for row in padded[1:]:
        total = dtype(total + tree(row))
    assert functional.read("out")[0] == total
    adds = [i for i in program.cores["vector", 0].instructions if i.op == "vcadd"]
    assert [i.fields["accumulate"] for i in adds] == ["first", "more"][: len(adds)]
    assert len(adds) == (1 if repeats else 2) and not any(i.writes for i in adds)


def test_extremes_of_all_repeats_are_in_a_register():
    """The code is in the low bits; the index of the first such lane is above them."""
    x = RNG.integers(-50, 50, 1024).astype(np.float16)
    x[[300, 900]], x[[40, 511]] = 60, -60
    _, functional = run("extremes", {"x": x, "out": np.zeros(2, np.int64)})
    codes = [int(np.float16(value).view(np.uint16)) for value in (60, -60)]
    assert functional.read("out").tolist() == [codes[0] | 300 << 32, codes[1] | 40 << 32]


def test_a_merge_that_stops_counts_what_it_took():
    """The second list is exhausted first; the pairs behind stay as they were."""
    scores = np.sort(RNG.standard_normal((4, 32)).astype(np.float32), axis=1)[:, ::-1].copy()
    scores[1] += 2
    pairs = np.zeros((4, 32, 2), np.float32)
    pairs[..., 0], pairs[..., 1] = scores, np.arange(128).reshape(4, 32)
    arguments = {"x": pairs.ravel(), "y": np.full(256, -9, np.float32)}
    arguments |= {"out": np.zeros(1, np.int64), "control": 1 | 31 << 8}
    _, functional = run("merges", arguments)
    last = scores[1, -1]
    counts = [int((row > last).sum()) + (i == 1) for i, row in enumerate(scores)]
    assert functional.read("out")[0] == sum(c << 16 * i for i, c in enumerate(counts))
    merged = functional.read("y").reshape(-1, 2)
    taken = sum(counts)
    assert 32 < taken < 128 and (merged[taken:] == -9).all()
    assert np.array_equal(merged[:taken, 0], np.sort(scores.ravel())[::-1][:taken])


@pytest.mark.parametrize("control", [2 | 31 << 8, 1 | 30 << 8])
def test_a_merge_that_stops_has_one_repeat_of_the_first_lists(control):
    arguments = {"x": np.zeros(256, np.float32), "y": np.zeros(256, np.float32)}
    arguments |= {"out": np.zeros(1, np.int64), "control": control}
    with pytest.raises(CceError, match="must have one repeat, of the first lists"):
        run("merges", arguments)


def test_a_register_that_nothing_has_set_is_refused():
    message = "counts.cpp:.* vcadd with mode 1 must come before a read of its register"
    with pytest.raises(CceError, match=message):
        run("unset", {"out": np.zeros(1, np.int64)})


def test_a_product_of_4_bits():
    a, b = (RNG.integers(-8, 8, shape).astype(np.int8) for shape in ((16, 64), (64, 16)))
    left, right = np.zeros(1024, np.int8), pack_fours(np.ascontiguousarray(b.T)).ravel()
    left[:512] = pack_fours(a).ravel().view(np.int8)
    arguments = {"a": left, "b": right.view(np.int8), "places": np.zeros(128, np.int8)}
    _, functional = run("products", arguments | {"c": np.zeros(256, np.int32)})
    assert np.array_equal(functional.read("c").reshape(16, 16), a.astype(int) @ b.astype(int))


@pytest.mark.parametrize("places_at", ["0x3000", "0x120"])
def test_a_sparse_product(places_at):
    """The word with both addresses looks like an address of global memory if the places are low."""
    a = RNG.integers(-128, 128, (16, 64)).astype(np.int8)
    b = RNG.integers(-128, 128, (64, 16)).astype(np.int8)
    b.reshape(16, 4, 16)[:, [1, 2]] = 0
    weights, places = compress(b)
    arguments = {
        "a": a.reshape(16, 2, 32).transpose(1, 0, 2).ravel(),
        "b": np.ascontiguousarray(weights.T).ravel(),
        "places": pack_places(np.ascontiguousarray(places.T)).ravel().view(np.int8),
        "c": np.zeros(256, np.int32),
    }
    _, functional = run("products", arguments, SPARSE="1", PLACES=places_at)
    assert np.array_equal(functional.read("c").reshape(16, 16), a.astype(int) @ b.astype(int))


def test_casts_to_4_bits():
    x = (RNG.standard_normal(512) * 5).astype(np.float16)
    _, functional = run("casts", {"x": x, "y": np.full(256, 0x53, np.uint8), "n": 330})
    expected = np.where(np.arange(256) < 165, to_fours(x, "c"), 0x53)
    assert np.array_equal(functional.read("y"), expected)


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ("", "AscendC::AtomicAdd(x, 1)", "k.cpp:4: AtomicAdd is of the Ascend 950"),
        ("using namespace AscendC;", "AtomicCas(x, 1, 2)", "k.cpp:4: AtomicCas is of the Ascend"),
        # The library declares them for all chips.
        (
            "namespace AscendC { template <class T> T AtomicMax(T *, T); }",
            "AscendC::AtomicMax(x, 1)",
            "^AtomicMax is of the Ascend 950",
        ),
    ],
)
def test_scalar_atomics_are_of_the_950(tmp_path, before, call, message):
    """The 910B has none, so that one line says so."""
    source = tmp_path / "k.cpp"
    source.write_text(
        f'#include "kernel_operator.h"\n{before}\n'
        f"__global__ __vector__ void k(__gm__ int *x) {{\n    {call};\n}}\n"
    )
    with pytest.raises(UserError, match=message) as caught:
        compile_kernel(str(source), CHIP)
    assert "\n" not in str(caught.value)
