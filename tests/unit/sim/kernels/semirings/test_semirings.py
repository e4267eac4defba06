"""Products over semirings: the vector unit's kernel and the Cube against golden, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.simd2 import Op, mmo
from vitruvian.sim.davinci import Core, load_chip, simulate
from vitruvian.sim.kernels.kernel import KernelInstance
from vitruvian.sim.kernels.matmul import result
from vitruvian.sim.kernels.semirings import convergence, cube, norms, vector

CHIP = load_chip("ascend310p")
INF = np.float16(np.inf)


def operands(op, m, k, n, seed=1):
    """Return float16 operands with infinities and zeros of both signs; zeros and ones for orand."""
    rng = np.random.default_rng(seed)
    sides = [rng.normal(size=shape).astype(np.float16) for shape in ((m, k), (k, n))]
    if op is Op.ORAND:
        return [(x > 1.5).astype(np.float16) for x in sides]
    # A sum with both infinities is a NaN on a machine and in golden, whose signs may differ.
    special = [0.0, -0.0] if op.plus == "add" else [INF, 0.0, -0.0]
    for x in sides:
        chosen = rng.random(x.shape) < 0.1
        x[chosen] = rng.choice(np.array(special, np.float16), int(chosen.sum()))
    return sides


FORMS = [
    (op, out)
    for op in Op
    for out in ("fp16", "fp32")
    if out == "fp32" or op.plus != "add"
    if not (out == "fp32" and op.times in ("min", "max", "and"))
]


@pytest.mark.parametrize(("op", "out"), FORMS, ids=lambda x: getattr(x, "mnemonic", x))
@pytest.mark.parametrize("size", [(16, 4, 48), (144, 36, 592)], ids=str)
def test_the_vector_unit_computes_golden(op, out, size):
    """Two tiles of rows and of columns, partial tiles, repeats and steps."""
    a, b = operands(op, *size)
    program = vector.build(op, *size, chip=CHIP, out=out, data=(a, b))
    report = simulate(program, strict=True)
    assert not report.findings
    instance = KernelInstance(program, {"d": vector.expected(op, a, b, out)})
    assert instance.compare(report.outputs) == (size[0] * size[2], 0)


@pytest.mark.parametrize(("op", "out"), FORMS, ids=lambda x: getattr(x, "mnemonic", x))
@pytest.mark.parametrize("size", [(144, 36, 592), (272, 16, 128)], ids=str)
def test_a_step_that_is_built_once_takes_the_same_time(op, out, size):
    """``seconds`` builds each distinct step once; ``build`` builds them all."""
    program = vector.build(op, *size, chip=CHIP, out=out)
    whole = simulate(program, cube=None, checks=False).total_s
    assert vector.seconds(op, *size, chip=CHIP, out=out) == pytest.approx(whole, rel=1e-12)


def test_bits_of_orand():
    """An element is 16 elements of a row; the results are those of one element at a time."""
    a, b = operands(Op.ORAND, 32, 36, 2048)
    packed = np.packbits(b.astype(bool), axis=1, bitorder="little").view("<u2")
    data = np.where(a != 0, 0xFFFF, 0).astype(np.uint16), packed
    program = vector.build("orand", 32, 36, 128, chip=CHIP, out="bits", data=data)
    report = simulate(program, strict=True)
    assert not report.findings
    bits = np.unpackbits(report.outputs["d"].view(np.uint8), axis=1, bitorder="little")
    assert np.array_equal(bits, mmo("orand", a, b))


def test_a_missing_barrier_is_found(monkeypatch):
    """The kernel without its barriers between ⊗ and ⊕ has hazards."""
    monkeypatch.setattr(Core, "pipe_barrier", lambda self, unit: None)
    program = vector.build("minplus", 16, 4, 128, chip=CHIP)
    report = simulate(program, cube=None, strict=True)
    assert {finding.check for finding in report.findings} == {"hazard"}


def test_instructions_for_a_term():
    counts = {op: vector.instructions_per_term(op) for op in Op}
    assert counts.pop(Op.MMA) == 1 and set(counts.values()) == {2}
    for op, out in FORMS:
        size = (128, 64, 512)
        program = vector.build(op, *size, chip=CHIP, out=out)
        names = [x for x in vector._INSTRUCTIONS[op] if x]
        repeats = sum(x.work.repeats for x in program.core().instructions if x.op in names)
        lanes = 64 if out == "fp32" else 128
        terms = np.prod(size) // lanes
        # The first ⊕ of a selection is not needed.
        spared = 128 * 512 // lanes if op.plus != "add" else 0
        assert repeats == vector.instructions_per_term(op) * terms - spared


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_the_cube_computes_golden(op):
    a, b = operands(op, 80, 48, 96)
    program = cube.build(op, 80, 48, 96, chip=CHIP, out="fp32", data=(a, b))
    report = simulate(program, cube=cube.semiring_cube(op))
    assert not report.findings
    got, expected = result(report.outputs["c"], 80, 96), cube.expected(op, a, b, "fp32")
    assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("op", [op for op in Op if op.identity], ids=lambda op: op.mnemonic)
def test_a_start_from_zeros_is_noticed(op):
    """mmad starts from the identity of ⊕; a 0 would win against these operands."""
    sign = -1 if op.plus == "max" and op.times != "mul" else 1
    a, b = (sign * np.abs(x) for x in operands(op, 32, 32, 32))
    a, b = (a, -b) if op is Op.MAXMUL else (a, b)
    program = cube.build(op, 32, 32, 32, chip=CHIP, out="fp32", data=(a, b))
    product = cube.semiring_cube(op)
    right = result(simulate(program, cube=product).outputs["c"], 32, 32)
    assert np.array_equal(right, cube.expected(op, a, b, "fp32"))
    product.zero = 0
    wrong = result(simulate(program, cube=product).outputs["c"], 32, 32)
    assert not np.array_equal(wrong, right)


def test_steps_of_the_cube():
    """addnorm takes four times the steps, and a compressed A half of them."""

    def depth_of(op, **options):
        unit = cube.chip_for(CHIP, op, **options).cube
        assert unit is not None
        return unit.depths["fp16"]

    depth = {op: depth_of(op) for op in Op}
    assert depth.pop(Op.ADDNORM) == 4 and set(depth.values()) == {16}
    assert depth_of("minplus", sparse=True) == 32
    assert cube.SPARSE_FRACTAL == 256 + 32
    with pytest.raises(ValueError, match="k must be a multiple of 16, not 40"):
        cube.build("minplus", 16, 40, 16, chip=CHIP)
    with pytest.raises(ValueError, match="chip must have a Cube"):
        cube.chip_for(replace(CHIP, cube=None), "minplus")


def test_times_of_the_cube_are_those_of_its_program():
    for op in (Op.MINPLUS, Op.ADDNORM):
        program = cube.build(op, 256, 256, 256, chip=CHIP, out="fp32")
        whole = simulate(program, cube=None, checks=False).total_s
        assert cube.seconds(op, 256, 256, 256, chip=CHIP, out="fp32") == pytest.approx(whole)
    dense, sparse = (
        cube.seconds("minplus", 1024, 1024, 1024, chip=CHIP, sparse=sparse)
        for sparse in (False, True)
    )
    assert 1.5 < dense / sparse < 2


@pytest.mark.parametrize("elements", [2048, 3 * (1 << 14) + 2048])
def test_convergence(elements):
    rng = np.random.default_rng(3)
    old = rng.normal(size=elements).astype(np.float16)
    old[::7] = np.inf
    for place in (None, 0, elements // 2, elements - 1):
        new = old.copy()
        if place is not None:
            new[place] = 9.5
        program = convergence.build(elements, chip=CHIP, data=(new, old))
        report = simulate(program, strict=True)
        assert not report.findings
        assert report.outputs["changed"].any() == (place is not None)
    assert convergence.seconds(elements, chip=CHIP) == pytest.approx(report.total_s)
    with pytest.raises(ValueError, match="elements must be a multiple of 2048, not 100"):
        convergence.build(100, chip=CHIP)


def test_distances_by_one_product():
    """The error is that of sums of FP32 numbers as large as the norms: one rounding per 16 terms.

    Three FP16 numbers hold 33 bits of a norm, or 2⁻²⁴ and all above it, and C starts at zero.
    """
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=s).astype(np.float16) for s in ((48, 64), (64, 32)))
    wide, tall = norms.operands(a, b)
    assert wide.shape == (48, 80) and tall.shape == (80, 32)
    got = mmo("mma", wide, tall, k=16).astype(np.float64)
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = ((x[:, :, None] - y[None]) ** 2).sum(axis=1)
    size = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=0)
    # Partial sums of −2·a·b are at most the two norms; the split leaves at most 2⁻²⁴ of each.
    bound = (wide.shape[1] / 16 * 2**-24 + 2**-32) * size + 2 * 2**-25
    assert (np.abs(got - exact) <= bound).all()
    assert np.abs(got - exact).max() > 0
    with pytest.raises(ValueError, match="norms must be at most 65504 for FP16"):
        norms.operands(np.full((1, 16), 100, np.float16), tall[:16])


@pytest.mark.parametrize(
    ("op", "size", "out", "message"),
    [
        ("minplus", (24, 16, 128), None, "m must be a multiple of 16, not 24"),
        ("minplus", (16, 6, 128), None, "k must be a multiple of 4, not 6"),
        ("minplus", (16, 16, 40), None, "n must be a multiple of 16, not 40"),
        ("mma", (16, 16, 64), "fp16", "out of mma must be fp32, not 'fp16'"),
        ("minmax", (16, 16, 64), "fp32", "out of minmax must be fp16, not 'fp32'"),
        ("minplus", (16, 16, 64), "bits", "out of minplus must be fp16 or fp32, not 'bits'"),
    ],
)
def test_what_is_refused(op, size, out, message):
    with pytest.raises(ValueError, match=message):
        vector.build(op, *size, chip=CHIP, out=out)
