"""Kernels for DaVinci cores: bit-exact results, no findings, and comparison with NumPy."""

import subprocess
import sys
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian.sim.davinci import Kind, Unit, load_chip, simulate
from vitruvian.sim.davinci.chip.file import CHIPS, read_chip
from vitruvian.sim.kernels import KERNELS, LIMITS, gemm, matmul
from vitruvian.sim.kernels.layout import pack_a, pack_b, unpack_c
from vitruvian.sim.kernels.tiling import Cut, Tiling, blocks_of, choose, feasible, plan

C310, C910, C910B = (load_chip(name) for name in ("ascend310", "ascend910", "ascend910b"))

#: Sizes for the kernels whose default size takes long.
SIZES = {
    "matmul": (96, 128, 80),
    "cubeKer": (32, 64, 48),
    "cubefx": (600,),
    "cube": (2,),
    "cc2ub": (2,),
    "cc2ub+cast": (2,),
    "mte1A": (2,),
    "mte1B": (2,),
    "softmax": (3, 5),
    "maxpool": (3, 13, 3, 2),
    "cce-scale-add": (3,),
    "cce-softmax": (3, 80),
    "cce-cube": (32, 48, 16),
}


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "gemm"])
@pytest.mark.parametrize("chip", [C310, C910])
def test_every_kernel_is_right_and_without_a_finding(name, chip):
    instance = KERNELS[name].build(SIZES.get(name), chip=chip, cores=2, seed=5)
    report = simulate(instance.program, strict=True)
    assert not report.findings
    count, wrong = instance.compare(report.outputs)
    assert count and not wrong
    assert report.total_s > float(chip.launch_s)


@pytest.mark.parametrize("name", ["cce-scale-add", "cce-softmax"])
def test_texts_run_on_vector_cores(name):
    instance = KERNELS[name].build(SIZES[name], chip=C910B)
    report = simulate(instance.program)
    assert not report.findings and instance.compare(report.outputs)[1] == 0
    assert {stream.kind for stream in report.streams} == {"vector"}


def test_a_wrong_bit_is_counted():
    instance = KERNELS["vadd"].build((1, 256), chip=C310, cores=1)
    outputs = simulate(instance.program).outputs
    outputs["y0"].view(np.uint16)[17] ^= 1
    assert instance.compare(outputs) == (256, 1)


def test_softmax_and_pooling_by_numpy():
    instance = KERNELS["softmax"].build((2, 9), chip=C310)
    x = instance.program.data["x"].astype(float)
    exact = np.exp(x - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    # Half an ulp each: the difference (at most 16, in the exponent), exp, eight sums, the quotient.
    assert (
        np.abs(instance.golden("y") / exact - 1)[exact > 2**-10].max() < (16 + 1 + 8 + 1) * 2**-11
    )
    instance = KERNELS["maxpool"].build((1, 7, 2, 3), chip=C310)
    x, y = instance.program.data["x"], instance.golden("y")
    for i, j in np.ndindex(2, 2):
        window = x[0, 3 * i : 3 * i + 2, 3 * j : 3 * j + 2]
        assert np.array_equal(y[0, i, j], window.max(axis=(0, 1)))


def test_kernels_measure_what_their_name_says():
    def busy(name):
        report = simulate(KERNELS[name].build((16, 16), chip=C310, cores=1).program, cube=None)
        return report.total_s

    alone, both, after = busy("mte2"), busy("mte2+3Con"), busy("mte2+3Seq")
    assert alone < both < after
    units = {"mte1A": Unit.MTE1, "mte1B": Unit.MTE1, "cube": Unit.M, "cc2ub": Unit.V}
    for name, unit in units.items():
        program = KERNELS[name].build((7,), chip=C310, cores=1).program
        ones = [i for i in program.core().instructions if i.unit == unit and i.kind == Kind.NORMAL]
        assert len(ones) >= 7


# The tiled product.

shapes = st.tuples(*[st.integers(1, 90)] * 3)


@settings(max_examples=25)
@given(shapes, st.data())
def test_any_shape_and_tiling_is_golden_to_the_bit(shape, data):
    dtype = data.draw(st.sampled_from(["fp16", "int8"]))
    out = data.draw(st.sampled_from(["fp16", "fp32"])) if dtype == "fp16" else "int32"
    blocks = blocks_of(shape[0], shape[1], shape[2], dtype)
    tiles = [data.draw(st.integers(1, b)) for b in blocks]
    tiling = Tiling(tiles[0], tiles[1], tiles[2], data.draw(st.integers(1, 8)))
    cores = data.draw(st.integers(1, 4))
    pair = matmul.operands(*shape, dtype=dtype, seed=sum(shape))
    options = {"chip": C910, "cores": cores, "dtype": dtype, "out": out}
    report = simulate(matmul.build(*shape, tiling=tiling, data=pair, **options))
    assert not report.findings
    result = matmul.result(report.outputs["c"], shape[0], shape[2])
    assert result.tobytes() == matmul.expected(*pair, out=out).tobytes()


def test_golden_is_near_numpy():
    a, b = matmul.operands(60, 200, 50)
    exact = a.astype(float) @ b.astype(float)
    sums = np.abs(a).astype(float) @ np.abs(b).astype(float)
    # 13 blocks, each rounded once.
    assert (np.abs(matmul.expected(a, b, "fp32") - exact) <= 13 * 2.0**-24 * sums).all()
    a, b = matmul.operands(33, 70, 20, dtype="int8")
    assert np.array_equal(matmul.expected(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_a_missing_flag_of_the_product_is_found():
    """Every pair of units needs its flags: without them, a race is found."""
    pair = matmul.operands(64, 64, 64)
    good = matmul.build(64, 64, 64, tiling=Tiling(2, 4, 2, 2), cores=1, data=pair)
    flags = {
        (i.fields["source"], i.fields["target"])
        for i in good.core().instructions
        if i.kind == Kind.SET
    }
    assert len(flags) == 8
    for pair_of_units in flags:
        program = matmul.build(64, 64, 64, tiling=Tiling(2, 4, 2, 2), cores=1, data=pair)
        core = program.core()
        core.instructions[:] = [
            i
            for i in core.instructions
            if (i.fields.get("source"), i.fields.get("target")) != pair_of_units
        ]
        assert any(f.check == "race" for f in simulate(program, cube=None).findings), pair_of_units


def test_layouts_go_there_and_back():
    x = np.arange(48 * 80, dtype=np.float16).reshape(48, 80)
    columns = pack_a(x).transpose(1, 0, 2, 3)
    assert np.array_equal(unpack_c(columns, 48, 80), x)
    assert np.array_equal(pack_b(x)[2, 3], x[32:48, 48:64].T)
    assert pack_a(x[:33, :70]).shape == (3, 5, 16, 16) and not pack_a(x[:33, :70])[2, :, 1:].any()


@given(st.integers(1, 40), st.integers(1, 40))
def test_cuts_are_equal_but_for_one_block(blocks, tiles):
    cut = Cut(blocks, min(tiles, blocks))
    sizes = [cut.size(t) for t in range(cut.tiles)]
    assert sum(sizes) == blocks and max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == cut.largest


def test_what_fits_l1_stays_there():
    """A small product stays in L1 as a whole, of a large one only a panel of A."""
    small = plan(C910, (8, 4, 8), Tiling(4, 2, 4, 1), 4)
    assert small.across[0] == (0, 2, 0, 2) and small.keep_a and small.keep_b
    large = plan(C910, (64, 64, 64), Tiling(16, 16, 16, 2), 1)
    assert large.keep_a and not large.keep_b


def test_integers_are_exact_with_the_fast_cube():
    """Use three steps along K, so that the later ones accumulate."""
    rng = np.random.default_rng(8)
    a, b = rng.integers(-128, 128, (32, 96)), rng.integers(-128, 128, (96, 32))
    data = a.astype(np.int8), b.astype(np.int8)
    program = matmul.build(32, 96, 32, dtype="int8", data=data, tiling=Tiling(2, 3, 2, 1), cores=1)
    result = unpack_c(simulate(program, cube="fast").outputs["c"], 32, 32)
    assert result.dtype == np.int32 and np.array_equal(result, a @ b)


def test_plans_deal_every_tile_once():
    for tiling in feasible(C910, (6, 4, 10), 5):
        p = plan(C910, (6, 4, 10), tiling, 5)
        tiles = [
            (i, j) for i0, i1, j0, j1 in p.across for i in range(i0, i1) for j in range(j0, j1)
        ]
        assert sorted(tiles) == list(np.ndindex(tiling.m_tiles, tiling.n_tiles))
    assert choose(C310, (67, 1, 1), 2).m_tiles >= 2


def test_tilings_are_those_for_fp16_results_unless_they_are_asked_for_others():
    """With half of the 910's UB, the size of a result decides which tilings fit."""
    text = (CHIPS / "ascend910.toml").read_text(encoding="utf-8")
    small = read_chip(text.replace("UB = { kib = 256", "UB = { kib = 128"))
    blocks = (64, 4, 64)
    result = list(feasible(small, blocks, 2))
    assert result == list(feasible(small, blocks, 2, c_bytes=2))
    assert len(result) > len(list(feasible(small, blocks, 2, c_bytes=4))) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiling": Tiling(5, 1, 1)}, "mTiles must be 1 … 4, the number of blocks, not 5"),
        ({"tiling": Tiling(1, 1, 1, 9)}, "bNum must be 1 … 8, not 9"),
        ({"cores": 3}, "cores must be 1 … 2, not 3"),
        ({"chip": "ascend910b", "cores": 25}, "cores must be 1 … 24, not 25"),
        ({"dtype": "fp64"}, "dtype must be one of fp16, int8"),
        ({"out": "int8"}, "out of fp16 must be one of fp16, fp32"),
    ],
)
def test_mistakes_of_the_product(change, message):
    with pytest.raises(ValueError, match=message):
        matmul.build(64, 64, 64, **change)


def test_tiles_that_do_not_fit():
    with pytest.raises(ValueError, match="a tile of C must fit the 262144 bytes of L0C, not take"):
        matmul.build(512, 16, 512, tiling=Tiling(1, 1, 1, 1))
    with pytest.raises(ValueError, match="2 tiles of A must fit the 65536 bytes of L0A"):
        matmul.build(512, 512, 16, tiling=Tiling(1, 1, 1, 2))
    with pytest.raises(ValueError, match="M must be an integer of 1 or more, not 0"):
        matmul.build(0, 1, 1)


# The 910B.


@pytest.mark.parametrize("cores", [None, 1, 6])
def test_gemm_is_a_kernel_of_the_910b(cores):
    instance = KERNELS["gemm"].build((160, 96, 240), chip=C910B, cores=cores)
    report = simulate(instance.program)
    assert not report.findings and instance.compare(report.outputs) == (160 * 240, 0)
    with pytest.raises(ValueError, match="chip must have cores with a unit FIX, not ascend310"):
        KERNELS["gemm"].build(chip=C310)


@settings(max_examples=10)
@given(st.tuples(*[st.integers(1, 8)] * 3), st.data())
def test_gemm_is_golden_and_its_sequences_are_its_program(blocks, data):
    m, k, n = (16 * b for b in blocks)
    base = [16 * data.draw(st.integers(1, 4)) for _ in range(3)]
    grid = [data.draw(st.integers(1, 3)) for _ in range(2)]
    step = data.draw(st.integers(1, 4))
    blocking = gemm.Blocking(grid[0], grid[1], base[0], base[1], base[2], step)
    pair = matmul.operands(m, k, n, seed=m)
    report = simulate(gemm.build(m, k, n, blocking=blocking, data=pair))
    assert not report.findings
    assert report.outputs["c"].tobytes() == matmul.expected(*pair, out="fp32").tobytes()
    from vitruvian.sim.davinci.timing.lowering import lower

    lowered = lower(gemm.build(m, k, n, blocking=blocking))[0]
    other = gemm.lower_gemm(m, k, n, chip=C910B, blocking=blocking)[0]
    for name in lowered.__dataclass_fields__:
        assert np.array_equal(getattr(lowered, name), getattr(other, name)), name


def test_mistakes_of_gemm():
    with pytest.raises(ValueError, match="K must be a multiple of 16, not 20"):
        gemm.build(16, 20, 16)
    with pytest.raises(ValueError, match="bytes of L1"):
        gemm.build(16, 16, 16, blocking=gemm.Blocking(step_k=8))
    with pytest.raises(ValueError, match="grid must have 1 … 24 cores, not 5×5"):
        gemm.build(16, 16, 16, blocking=replace(gemm.Blocking(), down=5, across=5))


def test_neither_amaranth_nor_the_rtl_is_loaded():
    code = (
        "import sys, vitruvian.sim.kernels as k, vitruvian.sim.davinci as d;"
        "c = d.load_chip('ascend310');"
        "d.simulate(k.KERNELS['matmul'].build((16, 16, 16), chip=c).program);"
        "sys.exit(any(m.split('.')[0] == 'amaranth' for m in sys.modules)"
        " or 'vitruvian.hdl' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


#: Sizes with edges of all kinds.
NEEDS = {
    "matmul": [(100, 70, 500), (16, 16, 16)],
    "gemm": [(160, 96, 240), (16, 16, 16)],
    "softmax": [(2, 9), (1, 1)],
    "maxpool": [(1, 7, 2, 3), (2, 20, 5, 1)],
    "relu": [(3, 60), (5, 33000)],
    "cubefx": [(1,), (16384,)],
    "mte2": [(3, 60), (50, 7)],
    "reluKer": [(1,), (5000,)],
    "cce-scale-add": [(5,), (1,)],
    "cce-cube": [(256, 16, 16), (16, 16, 128)],
}

#: Kernels with coarser bounds: the number of swaps in a heap depends on the data, and the steps of
#: a sorting network on few vectors need fewer barriers.
COARSE = {"kselect-bitonic": 3.5, "kselect-heap": 3.0}


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_kernel_needs_is_known_before_it_is_built(name):
    """The needs are upper bounds, and a program without data has the same instructions."""
    chip = C910B if name == "gemm" else C310
    for size in NEEDS.get(name, [KERNELS[name].default]):
        needs = KERNELS[name].needs(size, chip, None)
        timed = KERNELS[name].build(size, chip=chip, data=False)
        whole = KERNELS[name].build(size, chip=chip)
        result = len(timed.program)
        most = COARSE.get(name, 2.1) * result + 700
        assert result <= needs.instructions <= most, size
        assert not timed.program.data and whole.program.data
        kinds = [
            [
                (instr.unit, instr.op, instr.work)
                for core in instance.program
                for instr in core.instructions
            ]
            for instance in (timed, whole)
        ]
        assert kinds[0] == kinds[1]
        held = sum(array.nbytes for array in whole.program.data.values())
        assert held <= needs.nbytes <= 100 * held


@pytest.mark.parametrize(
    ("name", "size", "what"),
    [
        (
            "matmul",
            (100000,) * 3,
            "instructions of matmul 100000×100000×100000 must be at most 2,0",
        ),
        (
            "matmul",
            (999999999,) * 3,
            "instructions of matmul .* must be at most 2,000,000, not about",
        ),
        ("matmul", (32768, 16, 32768), "bytes of data of matmul .* must be at most 4,294,967,296,"),
        (
            "matmul",
            (4096, 4112, 4096),
            "multiply-accumulates of matmul .* at most 68,719,476,736, not",
        ),
        ("gemm", (999999984,) * 3, "instructions of gemm .* must be at most 2,000,000"),
        ("relu", (999999999, 1), "instructions of relu .* must be at most 2,000,000"),
        ("vadd", (1, 999999999), "bytes of data of vadd .* must be at most 4,294,967,296"),
        ("reluKer", (999999999,), "instructions of reluKer 999999999 must be at mo"),
        ("softmax", (999999999, 1), "instructions of softmax"),
        ("maxpool", (999999999, 3, 3, 1), "instructions of maxpool"),
        ("maxpool", (9, 999999999, 3, 1), "instructions of maxpool|must be at most 255 blocks"),
        ("cubefx", (999999999,), "instructions of cubefx|bytes of data of cubefx"),
        ("mte2", (999999999, 1), "instructions of mte2"),
        ("cube", (999999999,), "instructions of cube"),
        ("cce-scale-add", (999999999,), "instructions of cce-scale-add"),
        ("cce-softmax", (999999999, 16), "instructions of cce-softmax"),
        ("cce-cube", (2**30, 2**30, 2**30), "bytes of data of cce-cube"),
    ],
)
def test_a_size_that_takes_hours_is_refused_before_the_work(name, size, what):
    before = process_time()
    with pytest.raises(ValueError, match=what):
        KERNELS[name].build(size, chip=C910B if name == "gemm" else C310)
    assert process_time() - before < 10


def test_times_alone_take_no_memory_for_data(monkeypatch):
    """A product whose matrices would take 8 GB is rejected with data and timed without them."""
    size = (8192, 65536, 16)
    with pytest.raises(ValueError, match="bytes of data of matmul"):
        KERNELS["matmul"].build(size, chip=C310)
    KERNELS["matmul"].needs(size, C310, None).check("matmul", replace(LIMITS, nbytes=1 << 40))
    monkeypatch.setattr(matmul, "operands", None)
    for name, chip in (("matmul", C310), ("gemm", C910B)):
        instance = KERNELS[name].build((64, 64, 64), chip=chip, data=False)
        assert not instance.program.data and simulate(instance.program, cube=None).total_s > 0
