"""Kernels on the Ascend 910B, whose Cube and vector unit are in cores of their own.

Results are golden to the bit, no check finds anything, and the checks find every flag and barrier
that is deleted, also those between the cores.
"""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian import ops
from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.kernels import KERNELS, convolution, matmul
from vitruvian.sim.kernels.convolution import ConvShape, ConvTiling, depthwise, fold, unfold
from vitruvian.sim.kernels.convolution.areas import Area
from vitruvian.sim.kernels.convolution.catalogue import random_operands
from vitruvian.sim.kernels.exits import Handover
from vitruvian.sim.kernels.semirings import convergence, vector

C910, C910B = load_chip("ascend910"), load_chip("ascend910b")

#: Kernels that need a path within a core that the 910B does not have, with the reason.
REFUSED = {
    **dict.fromkeys(("mte2", "mte3", "mte2+3Seq", "mte2+3Con"), "cores with all units"),
    **dict.fromkeys(("cc2ub", "cc2ub+cast", "cce-cube"), "cores with all units"),
    **{
        name: "its vector cores have no Im2Col"
        for name in KERNELS
        if "pool" in name and name.endswith("im2col")
    },
}

#: Sizes that are smaller than the default ones.
SIZES = {
    "matmul": (40, 50, 60),
    "gemm": (64, 32, 64),
    "reluKer": (9000,),
    "softmax": (3, 5),
    "conv2d": (2, 20, 9, 40, 3, 2),
    "depthwise": (1, 20, 9, 3, 2),
    "selbknn": (50, 300, 24, 5),
    "kselect-bitonic": (20, 128, 3),
    "kselect-heap": (3, 40, 2),
    **dict.fromkeys(("mte1A", "mte1B", "cube"), (2,)),
    **dict.fromkeys(("relu", "vadd", "vnot", "vmax"), (2, 200)),
}


@pytest.mark.parametrize(
    "name", [name for name in KERNELS if not name.startswith(("series", "cub"))]
)
def test_a_kernel_is_golden_on_the_910b_or_refused_by_name(name):
    kernel = KERNELS[name]
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]) as error:
            kernel.build(chip=C910B)
        assert "\n" not in str(error.value)
        return
    instance = kernel.build(SIZES.get(name), chip=C910B)
    report = simulate(instance.program)
    count, wrong = instance.compare(report.outputs)
    assert count and not wrong and not report.findings
    assert not check(instance.program, strict=True)


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float16)


X, GRADIENT = random(1, 20, 11, 9), random(1, 20, 6, 5)
POINTS, QUERIES = random(300, 20), random(37, 20)
OPERATORS = {
    "conv2d": lambda c: ops.conv2d(X, random(24, 20, 3, 3), random(24), padding=1, **c),
    "groups": lambda c: ops.conv2d(X, random(40, 5, 3, 3), random(40), 1, 1, groups=4, **c),
    "depthwise": lambda c: ops.conv2d(X, random(20, 1, 3, 3), random(20), 2, 1, groups=20, **c),
    "multiplier": lambda c: ops.conv2d(X, random(40, 1, 2, 3), None, 1, 1, groups=20, **c),
    "max_pool2d": lambda c: ops.max_pool2d(X, 3, 2, 1, return_indices=True, **c),
    "avg_pool2d": lambda c: ops.avg_pool2d(X, 3, 2, 1, count_include_pad=False, **c),
    "max_pool2d_backward": lambda c: ops.max_pool2d_backward(GRADIENT, X, 3, 2, 1, **c),
    "avg_pool2d_backward": lambda c: ops.avg_pool2d_backward(GRADIENT, X, 3, 2, 1, **c),
    "unfold": lambda c: ops.unfold(X, 3, 1, 1, 2, **c),
    "fold": lambda c: ops.fold(random(1, 180, 30), (11, 9), 3, 1, 1, 2, **c),
    "knn": lambda c: ops.knn(POINTS, QUERIES, 5, **c),
    "knn bitonic": lambda c: ops.knn(POINTS, QUERIES, 3, method="bitonic", **c),
    "knn heap": lambda c: ops.knn(POINTS[:64], QUERIES[:17], 2, method="heap", **c),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_the_bits_of_other_chips_on_the_910b(name):
    *expected, _ = OPERATORS[name]({"chip": C910, "report": True})
    *found, report = OPERATORS[name]({"chip": C910B, "report": True})
    assert len(found) == len(expected) and not report.findings
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


SHAPE = ConvShape(
    images=1, channels=20, height=7, width=9, filters=20, kernel=(3, 2), pad=(1, 1, 1, 1)
)
GAPS = replace(SHAPE, kernel=(2, 2), stride=(3, 4), pad=(0, 0, 0, 0))


@pytest.mark.parametrize("area", [None, Area(3, 4), Area(2, 100)])
@pytest.mark.parametrize("shape", [replace(SHAPE, dilation=(2, 2)), GAPS])
def test_tiles_of_any_form_are_equal_without_im2col(shape, area):
    p, alone = shape.patches, replace(shape, groups=20)
    data = random_operands(alone, 1)
    patches = random(1, 2, shape.taps, p.rows, p.columns, 16)
    for build in (
        lambda chip: depthwise.build(alone, chip=chip, bias=True, relu=True, data=data, area=area),
        lambda chip: unfold.build(shape, chip=chip, data=data.x, area=area),
        lambda chip: fold.build(shape, chip=chip, data=patches, area=area),
    ):
        expected, found = (simulate(build(chip)) for chip in (C910, C910B))
        assert not found.findings
        assert found.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


@pytest.mark.parametrize("tiling", [ConvTiling(2, 4, 1, 1, 2), ConvTiling(3, 9, 2, 2, 6, "pixels")])
def test_fix_stores_tiles_whose_rows_are_not_adjacent(tiling):
    shape = replace(SHAPE, kernel=(3, 3))
    data = random_operands(shape, 2)
    program = convolution.build(shape, chip=C910B, tiling=tiling, bias=True, relu=True, data=data)
    report = simulate(program)
    y = convolution.result(report.outputs["y"], shape.filters)
    expected = convolution.golden.dense(shape, data.x, data.w, data.b, relu=True)
    assert not report.findings and y.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("dtype", "out"), [("fp16", "fp32"), ("int8", "int32")])
def test_fix_stores_products_of_other_dtypes(dtype, out):
    a, b = matmul.operands(40, 50, 30, dtype=dtype)
    program = matmul.build(40, 50, 30, chip=C910B, dtype=dtype, out=out, data=(a, b))
    report = simulate(program)
    found = matmul.result(report.outputs["c"], 40, 30)
    assert not report.findings
    assert found.tobytes() == matmul.expected(a, b, out=out).tobytes()


def test_semirings_run_on_vector_cores():
    a, b = random(80, 8), random(8, 16)
    report = simulate(vector.build("minplus", 80, 8, 16, chip=C910B, data=(a, b)))
    assert report.outputs["d"].tobytes() == vector.expected("minplus", a, b, "fp16").tobytes()
    report = simulate(convergence.build(4096, chip=C910B, data=(a := random(4096), a)))
    assert not report.findings and not report.outputs["changed"].any()


#: Programs whose flags are deleted in turn, and the barriers that separate nothing in them.
def mutants():
    conv = replace(SHAPE, channels=16, height=3, width=4, kernel=(2, 1), pad=(0, 0, 0, 0))
    alone = replace(SHAPE, groups=20, height=5, width=5, kernel=(2, 1), stride=(2, 2))
    data, single = random_operands(conv, 1), random_operands(alone, 1)
    tiling = ConvTiling(1, 4, 1, 1, 1)
    yield (
        "convolution",
        convolution.build(conv, chip=C910B, cores=1, tiling=tiling, bias=True, data=data),
    )
    area = Area(1, 100)
    yield (
        "depthwise",
        depthwise.build(alone, chip=C910B, cores=1, area=area, bias=True, data=single),
    )
    yield "unfold", unfold.build(alone, chip=C910B, cores=1, area=area, data=single.x)
    yield "selbknn", KERNELS["selbknn"].build((64, 200, 16, 1), chip=C910B, cores=1).program


@pytest.mark.parametrize(("name", "program"), list(mutants()))
def test_every_deleted_flag_is_found_also_between_cores(name, program):
    assert not check(program, strict=True)
    across, unnoticed = 0, []
    for core in program:
        whole = list(core.instructions)
        for i, instr in enumerate(whole):
            if instr.kind in (Kind.SET, Kind.WAIT):
                across += instr.op.startswith("cross")
                core.instructions[:] = whole[:i] + whole[i + 1 :]
                if not check(program):
                    unnoticed.append((str(core), i, str(instr)))
        core.instructions[:] = whole
    assert not unnoticed
    assert bool(across) == (name == "selbknn")


def test_a_handover_leaves_out_flags_for_which_nobody_waits():
    program, handover = Program(C910B), Handover(3)
    cube, core = program.core(0, "cube"), program.core(0, "vector")
    for tile in range(3):
        with handover.give(cube, tile), handover.take(core, tile):
            pass
    flags = [(x.op, x.unit, x.fields["register"]) for x in (*cube.instructions, *core.instructions)]
    fix, mte2 = Unit.FIX, Unit.MTE2
    assert flags[:4] == [("cross_set", fix, r) for r in (0, 1)] + [
        ("cross_wait", fix, 2),
        ("cross_set", fix, 0),
    ]
    assert flags[4:] == [
        ("cross_wait", mte2, 0),
        ("cross_set", mte2, 2),
        ("cross_wait", mte2, 1),
        ("cross_wait", mte2, 0),
    ]


def test_a_tiling_is_chosen_by_the_measured_times_of_transfers():
    """Transfers of 1 KiB take as long as those of 16: whole depths are loaded at once."""
    shape = ConvShape(images=1, channels=256, height=14, width=14, filters=64, kernel=(1, 1))
    chosen = convolution.choose(shape, C910B, 24)
    assert chosen.channels >= 8
    small = replace(chosen, channels=1, depth=1)
    times = [
        simulate(convolution.build(shape, chip=C910B, tiling=tiling), cube=None).total_s
        for tiling in (chosen, small)
    ]
    assert (times[0] - C910B.launch_s) * 1.5 < times[1] - C910B.launch_s


def test_names_of_many_vector_cores_stand_apart_from_their_units():
    report = simulate(KERNELS["depthwise"].build(chip=C910B, data=False).program, cube=None)
    rows = [line for line in report.text().splitlines() if line.startswith("vector")]
    names = {row[: row.index(f" {row.split()[-5]} ")].strip() for row in rows}
    assert any(" to " in name and len(name) == 15 for name in names)
    assert all(row.split()[-5] in ("V", "MTE2", "MTE3") for row in rows)
