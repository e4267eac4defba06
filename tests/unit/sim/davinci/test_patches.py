"""Im2Col and Col2Im as instructions: bytes, data, times, and kernels made of them."""

from typing import Any

import numpy as np
import pytest

from tests.unit.golden.test_scu import CASES
from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.scu import Patches, col2im_add, im2col, im2col_load, kernel_matrix, to_nc1hwc0
from vitruvian.sim.davinci import Program, ProgramError, Unit, View, check, load_chip, simulate
from vitruvian.sim.davinci.semantics import Functional

RNG = np.random.default_rng(11)
WIDE = Patches(height=9, width=11, kernel=(3, 2), stride=(2, 1), pad=(1, 0, 0, 1), dilation=(1, 2))


def touched(spans):
    return {b for s in spans for first, last in s.intervals().tolist() for b in range(first, last)}


def view(buffer, offset, dtype="fp16", shape=()):
    return View(buffer, offset, dtype, shape, ())


def on(chip="ascend910"):
    program = Program(load_chip(chip))
    core = program.core()
    functional = Functional(program)
    for name, buffer in functional.memory(core).buffers.items():
        if name != "GM":
            buffer[: 1 << 15] = RNG.integers(0, 0x70, 1 << 15, dtype=np.uint8)  # no NaN
    return core, functional


@pytest.mark.parametrize("mode", [0, 1])
def test_bytes_are_those_of_the_pixels(mode):
    """Every pixel by itself, of small images and of one whose patches begin anywhere."""
    core, _ = on()
    geometries = [(p, 0, (0, 0)) for p in CASES[::40]]
    geometries += [(WIDE, n, k) for n in range(0, WIDE.count, 7) for k in ((0, 1), (2, 0))]
    for p, number, kernel_position in geometries:
        steps = 2 * p.kernel[0] * p.kernel[1] - kernel_position[0] * p.kernel[1]
        repeat = steps - kernel_position[1] if mode == 0 else 2
        options = {
            "position": p.corner(number),
            "kernel_position": kernel_position,
            "repeat": repeat,
        }
        instr = core.im2col(
            view("UB", 64), view("L1", 96), p, mode=mode, dst_stride=1024, **options
        )
        expected = set()
        steps = p.walk(p.corner(number), kernel_position, 0, repeat, mode)
        for group, rows, columns, inside in steps:
            for row, column in zip(rows[inside], columns[inside], strict=True):
                first = 96 + 32 * ((group * p.height + row) * p.width + column)
                expected |= set(range(first, first + 32))
        assert touched(instr.reads) == expected
        assert touched(instr.writes) == {
            64 + 1024 * i + b for i in range(repeat) for b in range(512)
        }
        if mode == 1:
            instr = core.col2im(view("UB", 96, "fp32"), view("UB", 1 << 16, "fp32"), p, **options)
            pixels = {96 + 2 * (b - 96) + half for b in expected for half in (0, 1)}
            assert touched(instr.writes) == pixels
            assert touched(instr.reads) == pixels | set(range(1 << 16, (1 << 16) + 2048))


def test_few_spans_say_it():
    """A whole image of one position of the kernel: first and last row, and those between."""
    core, _ = on()
    p = Patches(height=50, width=30, kernel=(3, 3), pad=(1, 1, 1, 1))
    where: dict[str, Any] = {"position": p.corner(5), "kernel_position": (1, 2)}
    instr = core.im2col(view("UB", 0), view("L1", 0), p, repeat=80, mode=1, **where)
    assert len(instr.reads) <= 3


@pytest.mark.parametrize("dst", ["L0A", "L0B", "UB"])
@pytest.mark.parametrize("dtype", ["fp16", "int8"])
def test_a_load_is_golden(dst, dtype):
    core, functional = on()
    buffers = functional.memory(core).buffers
    c0 = {"fp16": 16, "int8": 32}[dtype]
    size = 2 * WIDE.height * WIDE.width * 32
    kind = np.dtype({"fp16": "f2", "int8": "i1"}[dtype])
    image = buffers["L1"][64 : 64 + size].view(kind).reshape(2, WIDE.height, WIDE.width, c0)
    for mode, stride in ((0, 512), (1, 1024)):
        options = {"position": WIDE.corner(13), "kernel_position": (1, 1), "channel": mode}
        options |= {"repeat": 3, "mode": mode, "pad_value": -3}
        expected = buffers[dst].copy()
        for i, fractal in enumerate(im2col_load(image, WIDE, **options)):
            expected[512 + stride * i :][:512] = fractal.ravel().view(np.uint8)
        source = view("L1", 64, dtype)
        functional.execute(
            core, core.im2col(view(dst, 512, dtype), source, WIDE, dst_stride=stride, **options)
        )
        assert np.array_equal(buffers[dst], expected)


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_a_col2im_is_golden(dtype):
    core, functional = on()
    ub = functional.memory(core).buffers["UB"]
    kind = np.dtype({"fp16": "f2", "fp32": "f4"}[dtype])
    fractals = RNG.normal(0, 9, (3, 16, 16)).astype(kind)
    image = RNG.normal(0, 9, (2, WIDE.height, WIDE.width, 16)).astype(kind)
    ub[: fractals.nbytes] = fractals.ravel().view(np.uint8)
    ub[8192 : 8192 + image.nbytes] = image.ravel().view(np.uint8)
    where = {"position": WIDE.corner(4), "kernel_position": (2, 0), "channel": 1}
    expected = ub.copy()
    after = col2im_add(image, fractals, WIDE, **where)
    assert not np.array_equal(after, image)
    expected[8192 : 8192 + image.nbytes] = after.ravel().view(np.uint8)
    src = view("UB", 0, dtype, (3, 16, 16))
    functional.execute(core, core.col2im(view("UB", 8192, dtype), src, WIDE, **where))
    assert np.array_equal(ub, expected)


def test_times():
    """The cycles of the RTL come on top of the initialisation of a load or a vector instruction."""
    core, _ = on("ascend310")
    chip = core.program.chip

    def cycles(instruction, init_ns):
        return (chip.timing(instruction).period - init_ns * 10**9) * chip.clock_hz / 10**18

    for dst, each in (("L0A", 2), ("L0B", 2), ("UB", 4)):
        image = core.im2col(view(dst, 0), view("L1", 0), WIDE, repeat=5, mode=1)
        assert round(cycles(image, 40), 6) == 5 + 5 * each and image.unit == Unit.MTE1
    add = core.vadd(*(view("UB", 0) for _ in range(3)), repeat=10)[0]
    instr = core.col2im(view("UB", 0), view("UB", 8192), WIDE, repeat=5)
    assert round(cycles(instr, 40) - cycles(add, 40), 6) == 7 and instr.unit == Unit.V
    assert instr.work.operations == 5 * 256


def signal(core, source, target, register=0):
    core.set_flag(source, target, register)
    core.wait_flag(source, target, register)


def convolution(chip, images, kernels, p, flags=True):
    """A kernel: patches of the image in L0A as 16 rows each, all weights in L0B, sums in L0C."""
    program = Program(load_chip(chip), "convolution")
    x = program.tensor("x", images.shape, "fp16", images)
    weights = kernel_matrix(kernels)
    depth, filters = weights.shape
    fractals = weights.reshape(depth // 16, 16, filters // 16, 16).transpose(0, 2, 3, 1)
    w = program.tensor("w", fractals.shape, "fp16", np.ascontiguousarray(fractals))
    rows = 16 * p.fractals
    y = program.tensor("y", (filters // 16, rows, 16), "fp32")
    core = program.core()
    l1 = core.allocate("L1", images.shape, "fp16")
    weights_l1 = core.allocate("L1", fractals.shape, "fp16")
    a = core.allocate("L0A", (p.fractals, depth // 16, 16, 16), "fp16")
    b = core.allocate("L0B", fractals.shape, "fp16")
    c = core.allocate("L0C", (filters // 16, rows, 16), "fp32")
    core.copy(l1, x)
    core.copy(weights_l1, w)
    if flags:
        signal(core, Unit.MTE2, Unit.MTE1)
    for i in range(p.fractals):
        core.im2col(a[i], l1, p, position=p.corner(16 * i), mode=0)
    core.load(b, weights_l1)
    signal(core, Unit.MTE1, Unit.M)
    core.mmad(c, a, b, m=rows, k=depth, n=filters, init="zero")
    out = core.allocate("UB", c.shape, "fp32")
    signal(core, Unit.M, Unit.V)
    core.matrix_out(out, c, m=rows, n=filters)
    signal(core, Unit.V, Unit.MTE3)
    core.copy(y, out)
    return program


P = Patches(height=7, width=6, kernel=(3, 2), stride=(1, 2), pad=(1, 1, 1, 0))
IMAGES = to_nc1hwc0(RNG.normal(size=(20, 7, 6)).astype(np.float16))
KERNELS = RNG.normal(size=(32, 20, 3, 2)).astype(np.float16)


@pytest.mark.parametrize("chip", ["ascend310", "ascend910"])
def test_a_convolution_kernel_equals_golden(chip):
    report = simulate(convolution(chip, IMAGES, KERNELS, P))
    assert not report.findings
    rows = im2col(IMAGES, P).swapaxes(1, 2).reshape(16 * P.fractals, -1)
    spec = PRESETS["ieee"].spec("fp16", k=16)
    weights = np.ascontiguousarray(kernel_matrix(KERNELS))
    expected = mmad(rows.view(np.uint16), weights.view(np.uint16), spec=spec)
    got = np.moveaxis(report.outputs["y"], 0, 1).reshape(16 * P.fractals, 32)
    assert np.array_equal(got.view(np.uint32), expected) and len(np.unique(expected)) > 500


def test_a_missing_flag_before_im2col_is_a_race():
    findings = check(convolution("ascend310", IMAGES, KERNELS, P, flags=False))
    assert any(f.check == "race" and "im2col" in str(f) for f in findings)


@pytest.mark.parametrize(("row", "races"), [(0, True), (1, False), (2, True), (3, False)])
def test_only_pixels_that_are_touched_race(row, races):
    """A kernel of one row with stride 2 leaves every second row of the image alone."""
    p = Patches(height=4, width=4, kernel=(1, 2), stride=(2, 1))
    program = Program(load_chip("ascend310"))
    x = program.tensor("x", (4, 4, 16), "fp16", np.ones((4, 4, 16), np.float16))
    core = program.core()
    l1 = core.allocate("L1", (4, 4, 16), "fp16")
    core.copy(l1, x)
    signal(core, Unit.MTE2, Unit.MTE1)
    core.im2col(core.allocate("UB", (256,), "fp16"), l1, p, kernel_position=(0, 1))
    core.copy(l1[row], x[row])
    assert any(f.check == "race" for f in check(program)) == races


def test_max_pooling_and_its_gradient():
    """Rohwedder 2021, ch. 4: loads in mode 1, maxima of fractals; mask times gradient, Col2Im."""
    p = Patches(height=9, width=9, kernel=(3, 3), stride=(2, 2))
    image = RNG.permutation(9 * 9 * 16).reshape(1, 9, 9, 16).astype(np.float16)
    gradient = RNG.integers(1, 5, (16, 16)).astype(np.float16)
    # The bits of vsel come from memory here, which the 910 does not have.
    program = Program(load_chip("ascend310p"), "maxpool")
    x = program.tensor("x", image.shape, "fp16", image)
    g = program.tensor("g", (16, 16), "fp16", gradient)
    y, dx = program.tensor("y", (16, 16), "fp16"), program.tensor("dx", image.shape, "fp16")
    core = program.core()
    l1 = core.allocate("L1", image.shape, "fp16")
    columns = core.allocate("UB", (9, 256), "fp16")
    top, slope, bits, mask = (core.allocate("UB", (256,), "fp16") for _ in range(4))
    ones, zeros = (core.allocate("UB", (256,), "fp16") for _ in range(2))
    back = core.allocate("UB", image.shape, "fp16")
    core.copy(l1, x)
    core.copy(slope.reshape(16, 16), g)
    signal(core, Unit.MTE2, Unit.MTE1)
    signal(core, Unit.MTE2, Unit.V)
    for step in range(9):
        core.im2col(columns[step], l1, p, mode=1, kernel_position=divmod(step, 3))
    signal(core, Unit.MTE1, Unit.V)
    core.vdup(top, -np.inf)
    core.vdup(ones, 1.0)
    core.vdup(zeros, 0.0)
    core.vdup(back, 0.0)
    for step in range(9):
        core.pipe_barrier(Unit.V)
        core.vmax(top, top, columns[step])
    core.pipe_barrier(Unit.V)
    for step in range(9):
        core.vcmpv(bits, columns[step], top, "eq", repeat=2)
        core.pipe_barrier(Unit.V)
        core.vsel(mask, ones, zeros, bits=bits, repeat=2)
        core.pipe_barrier(Unit.V)
        core.vmul(columns[step], mask, slope)
        core.pipe_barrier(Unit.V)
        core.col2im(back, columns[step], p, kernel_position=divmod(step, 3))
    signal(core, Unit.V, Unit.MTE3)
    core.copy(y, top.reshape(16, 16))
    core.copy(dx, back)
    report = simulate(program)
    assert not report.findings
    windows = [image[0, i : i + 3, j : j + 3] for i in range(0, 7, 2) for j in range(0, 7, 2)]
    assert np.array_equal(report.outputs["y"], [v.max(axis=(0, 1)) for v in windows])
    expected = np.zeros_like(image)
    for n, c in np.ndindex(16, 16):
        where = np.unravel_index(windows[n][..., c].argmax(), (3, 3))
        expected[0, n // 4 * 2 + where[0], n % 4 * 2 + where[1], c] += gradient[n, c]
    assert np.array_equal(report.outputs["dx"], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda c: c.im2col(view("L0A", 0), view("L1", 0), WIDE, repeat=256),
            "repeat of im2col must be 1 … 255, not 256",
        ),
        (
            lambda c: c.im2col(view("L0A", 0), view("L1", 0), WIDE, repeat=1, mode=2),
            "im2col: mode must be 0 or 1, not 2",
        ),
        (
            lambda c: c.im2col(view("L0A", 0), view("L1", 0), WIDE, repeat=1, position=(0, 99)),
            "im2col: position must be at least -1 and from 0 to 9",
        ),
        (
            lambda c: c.im2col(view("L0A", 0), view("UB", 0), WIDE, repeat=1),
            "path must be one of",
        ),
        (
            lambda c: c.im2col(view("L0A", 0), view("L1", 0), WIDE, repeat=1, channel=-1),
            "channel of im2col must be 0 or more, not -1",
        ),
        (
            lambda c: c.col2im(view("UB", 0, "int8"), view("UB", 0, "int8"), WIDE, repeat=1),
            "col2im must be of fp16 or of fp32, not of int8 and int8",
        ),
        (
            lambda c: c.col2im(view("UB", 0), view("UB", 0), WIDE, repeat=0),
            "repeat of col2im must be 1 … 255, not 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ProgramError, match=rf"test_patches.py:\d+: {message}"):
        call(Program(load_chip("ascend310")).core())
