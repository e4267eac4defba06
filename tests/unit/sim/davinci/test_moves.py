"""Moves and matrix products on memories against definitions byte by byte."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from vitruvian.golden.fp import from_float, to_float
from vitruvian.sim.davinci import DTYPES, Program, View, load_chip
from vitruvian.sim.davinci.semantics import Functional, FunctionalError

RNG = np.random.default_rng(5)


def on(chip, kind=None):
    """A core, its functional memories full of random bytes."""
    program = Program(load_chip(chip))
    program.tensor("gm", (1 << 16,), "uint8")
    core = program.core(0, kind)
    functional = Functional(program)
    for buffer in functional.memory(core).buffers.values():
        buffer[: 1 << 16] = RNG.integers(0, 256, min(1 << 16, len(buffer)), dtype=np.uint8)
    return core, functional


def view(buffer, offset, dtype="uint8"):
    return View(buffer, offset, dtype, (), ())


def last(core):
    return core.instructions[-1]


@pytest.mark.parametrize(
    ("chip", "src", "dst"),
    [
        ("ascend310", "GM", "UB"),
        ("ascend310", "UB", "GM"),
        ("ascend310", "GM", "L1"),
        ("ascend310", "UB", "L1"),
        ("ascend310", "UB", "UB"),
    ],
)
def test_bursts_and_gaps(chip, src, dst):
    core, functional = on(chip)
    buffers = functional.memory(core).buffers
    expected = buffers[dst].copy()
    source = buffers[src].copy()
    for burst in range(5):
        for byte in range(96):
            expected[20000 + 160 * burst + byte] = source[64 + 128 * burst + byte]
    options: dict[str, Any] = {"bursts": 5, "burst_bytes": 96, "dst_stride": 160, "src_stride": 128}
    core.copy(view(dst, 20000), view(src, 64), **options)
    functional.execute(core, last(core))
    assert np.array_equal(buffers[dst], expected)


def test_atomic_sums_into_global_memory():
    core, functional = on("ascend910")
    buffers = functional.memory(core).buffers
    buffers["UB"][:256] = np.arange(64, dtype=np.float32).view(np.uint8)
    buffers["GM"][:64] = np.ones(16, np.float32).view(np.uint8)
    options: dict[str, Any] = {"bursts": 4, "burst_bytes": 64, "dst_stride": 0, "src_stride": 64}
    instr = core.copy(view("GM", 0), view("UB", 0), **options, atomic="fp32")
    functional.execute(core, instr)
    sums = np.arange(64).reshape(4, 16).sum(axis=0) + 1
    assert buffers["GM"][:64].view(np.float32).tolist() == sums.tolist()


@pytest.mark.parametrize(("dtype", "columns"), [("fp16", 40), ("int8", 40), ("fp32", 21)])
def test_rows_to_fractals(dtype, columns):
    core, functional = on("ascend910b", "cube")
    buffers = functional.memory(core).buffers
    width, rows = DTYPES[dtype].itemsize, 19
    per = 32 // width
    options = {
        "matrices": 2,
        "rows": rows,
        "columns": columns,
        "src_row_stride": 50 * width,
        "src_matrix_stride": 1000 * width,
        "dst_c0_stride": 32 * 32,
        "dst_matrix_stride": 8192,
    }
    core.nd2nz(view("L1", 512, dtype), view("GM", 96, dtype), **options)
    expected = buffers["L1"].copy()
    kind = DTYPES[dtype]
    for matrix in range(2):
        for row in range(rows):
            for column in range(-(-columns // per) * per):
                at = 512 + 8192 * matrix + column // per * 1024 + row * 32 + column % per * width
                start = 96 + (1000 * matrix + 50 * row + column) * width
                value = buffers["GM"][start : start + width] if column < columns else 0
                expected[at : at + width] = value
    functional.execute(core, last(core))
    assert np.array_equal(buffers["L1"], expected) and kind.itemsize == width


@pytest.mark.parametrize("stride", [1024, 0, -512])
@pytest.mark.parametrize("transpose", [False, True])
def test_loads_of_fractals(stride, transpose):
    core, functional = on("ascend310")
    buffers = functional.memory(core).buffers
    options = {"repeat": 3, "src_stride": stride, "dst_stride": 512, "transpose": transpose}
    core.load(view("L0A", 1024, "fp16"), view("L1", 2048, "fp16"), **options)
    functional.execute(core, last(core))
    for i in range(3):
        at = 2048 + stride * i
        fractal = buffers["L1"][at : at + 512].view(np.uint16).reshape(16, 16)
        result = buffers["L0A"][1024 + 512 * i :][:512].view(np.uint16).reshape(16, 16)
        assert np.array_equal(result, fractal.T if transpose else fractal)


def exact_product(a, b, c):
    """Sums of exact products, block by block of 16 terms, each rounded once to FP32."""
    d = [[Fraction(float(x)) for x in row] for row in c]
    for start in range(0, a.shape[1], 16):
        for i, row in enumerate(d):
            for j in range(len(row)):
                terms = range(start, min(start + 16, a.shape[1]))
                total = row[j] + sum(
                    Fraction(float(a[i, k])) * Fraction(float(b[k, j])) for k in terms
                )
                row[j] = Fraction(float(to_float(from_float(np.float64(total), "fp32"), "fp32")))
    return np.array([[float(x) for x in row] for row in d], np.float32)


def fractals(matrix, rows, columns):
    """(R·r, C·c) as (R, C, r, c), filled up with a value that must not be used."""
    tall, wide = -(-matrix.shape[0] // rows) * rows, -(-matrix.shape[1] // columns) * columns
    whole = np.full((tall, wide), 77, matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole.reshape(tall // rows, rows, wide // columns, columns).transpose(0, 2, 1, 3)


def put(buffer, array, at=0):
    data = np.ascontiguousarray(array).view(np.uint8).ravel()
    buffer[at : at + len(data)] = data


@pytest.mark.parametrize("cube", ["golden", "fast"])
@pytest.mark.parametrize("init", ["zero", "accumulate"])
def test_matrix_products(cube, init):
    m, k, n = 20, 35, 18
    core, functional = on("ascend310")
    functional = Functional(core.program, cube)
    buffers = functional.memory(core).buffers
    # Sums of small multiples of 1/8 are exact in every window, so Fraction is the reference.
    a = RNG.integers(-30, 30, (m, k)).astype(np.float16) / 8
    b = RNG.integers(-30, 30, (k, n)).astype(np.float16) / 8
    c = RNG.integers(-300, 300, (m, n)).astype(np.float32) / 4
    put(buffers["L0A"], fractals(a, 16, 16))
    put(buffers["L0B"], fractals(b.T, 16, 16).transpose(1, 0, 2, 3))
    put(buffers["L0C"], fractals(c, 16, 16).transpose(1, 0, 2, 3))
    core.mmad(
        view("L0C", 0, "fp32"),
        view("L0A", 0, "fp16"),
        view("L0B", 0, "fp16"),
        m=m,
        k=k,
        n=n,
        init=init,
    )
    functional.execute(core, last(core))
    out = buffers["L0C"][: 2 * 2 * 1024].view(np.float32).reshape(2, 2, 16, 16)
    result = out.transpose(1, 2, 0, 3).reshape(32, 32)
    start = c if init == "accumulate" else np.zeros_like(c)
    assert np.array_equal(result[:m, :n], exact_product(a, b, start))
    assert (result[m:] == 77).all() and (result[:, n:] == 77).all()


def test_the_fast_cube_keeps_its_tolerance():
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(64, 200)).astype("f2"), rng.normal(size=(200, 48)).astype("f2")
    outs = {}
    for cube in ("golden", "fast"):
        core, _ = on("ascend310")
        functional = Functional(core.program, cube)
        buffers = functional.memory(core).buffers
        put(buffers["L0A"], fractals(a, 16, 16))
        put(buffers["L0B"], fractals(b.T, 16, 16).transpose(1, 0, 2, 3))
        operands = view("L0C", 0, "fp32"), view("L0A", 0, "fp16"), view("L0B", 0, "fp16")
        core.mmad(*operands, m=64, k=200, n=48, init="zero")
        functional.execute(core, last(core))
        out = buffers["L0C"][: 64 * 48 * 4].view(np.float32).reshape(3, 4, 16, 16)
        outs[cube] = out.transpose(1, 2, 0, 3).reshape(64, 48).astype(np.float64)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 201 * 2.0**-24 * (np.abs(a).astype(float) @ np.abs(b).astype(float))
    assert (np.abs(outs["fast"] - exact) <= bound).all()
    assert (np.abs(outs["golden"] - exact) <= bound).all()
    assert (outs["golden"] != outs["fast"]).any()


def test_integer_products_and_bias():
    m, k, n = 17, 70, 33
    core, functional = on("ascend910b", "cube")
    buffers = functional.memory(core).buffers
    a, b = (RNG.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (k, n)))
    bias = RNG.integers(-(2**31), 2**31, n).astype(np.int32)
    put(buffers["L0A"], fractals(a, 16, 32))
    put(buffers["L0B"], fractals(b.T, 16, 32).transpose(1, 0, 2, 3))
    put(buffers["BT"], bias, 64)
    core.mmad(
        view("L0C", 1024, "int32"),
        view("L0A", 0, "int8"),
        view("L0B", 0, "int8"),
        m=m,
        k=k,
        n=n,
        init="bias",
        bias=View("BT", 64, "int32", (n,), (4,)),
    )
    functional.execute(core, last(core))
    out = buffers["L0C"][1024 : 1024 + 3 * 2 * 1024].view(np.int32).reshape(3, 2, 16, 16)
    result = out.transpose(1, 2, 0, 3).reshape(32, 48)[:m, :n]
    expected = a.astype(np.int64) @ b.astype(np.int64) + bias
    assert np.array_equal(result, expected.astype(np.int32))


@pytest.mark.parametrize("layout", ["nz", "nd"])
def test_out_of_l0c(layout):
    core, functional = on("ascend910b", "cube")
    buffers = functional.memory(core).buffers
    m, n = 20, 40
    c = RNG.normal(0, 1e5, (48, 48)).astype(np.float32)  # some overflow in FP16
    put(buffers["L0C"], c.reshape(48, 3, 16).transpose(1, 0, 2))
    stride = 100 if layout == "nd" else 1024
    options = {"dst_stride": stride, "src_stride": 48 * 64, "layout": layout, "relu": True}
    core.matrix_out(view("GM", 640, "fp16"), view("L0C", 0, "fp32"), m=m, n=n, **options)
    before = buffers["GM"].copy()
    functional.execute(core, last(core))
    with np.errstate(over="ignore"):
        expected = np.maximum(c.astype(np.float16), 0)
    assert np.isinf(expected).any()
    for row in range(m):
        for column in range(n if layout == "nd" else 48):
            at = 640 + (100 * row + 2 * column)
            if layout == "nz":
                at = 640 + 1024 * (column // 16) + 32 * row + 2 * (column % 16)
            before[at : at + 2] = expected[row, column : column + 1].view(np.uint8)
    assert np.array_equal(buffers["GM"], before)


def test_quantised_out_of_l0c():
    core, functional = on("ascend910b", "cube")
    buffers = functional.memory(core).buffers
    c = RNG.integers(-5000, 5000, (16, 32)).astype(np.int32)
    put(buffers["L0C"], c.reshape(16, 2, 16).transpose(1, 0, 2))
    scale = RNG.uniform(0.001, 0.1, 32).astype(np.float32)
    put(buffers["FB"], scale)
    target, source = view("GM", 0, "int8"), view("L0C", 0, "int32")
    options: dict[str, Any] = {"m": 16, "n": 32, "layout": "nd", "dst_stride": 32}
    factors = View("FB", 0, "fp32", (32,), (4,))
    core.matrix_out(target, source, quant="vector", scale=factors, **options)
    functional.execute(core, last(core))
    result = buffers["GM"][:512].view(np.int8).reshape(16, 32)
    assert np.array_equal(result, np.clip(np.rint(c.astype(np.float32) * scale), -128, 127))
    instr = core.matrix_out(target, source, quant="scalar", factor=0.01, **options)
    functional.execute(core, instr)
    result = buffers["GM"][:512].view(np.int8).reshape(16, 32)
    single = c.astype(np.float32) * np.float32(0.01)
    assert np.array_equal(result, np.clip(np.rint(single), -128, 127))
    core.matrix_out(target, source, **options)
    with pytest.raises(FunctionalError, match="int32 must be quantised to become 8 bits wide"):
        functional.execute(core, last(core))


def test_fill_and_scalar_store():
    core, functional = on("ascend310")
    buffers = functional.memory(core).buffers
    core.fill(View("L0A", 512, "fp16", (256,), (2,)), 1.5)
    functional.execute(core, last(core))
    assert (buffers["L0A"][512:1024].view(np.float16) == 1.5).all()
    core.fill(View("L0A", 768, "fp16", (64,), (2,)))
    functional.execute(core, last(core))
    assert not buffers["L0A"][768:896].any() and buffers["L0A"][896:1024].any()
    core.scalar_store(view("UB", 8, "int32"), -7)
    functional.execute(core, last(core))
    assert buffers["UB"][8:12].view(np.int32) == -7


def test_a_program_runs_and_is_read():
    program = Program(load_chip("ascend310"))
    data = np.arange(1000, dtype=np.float16)
    x = program.tensor("x", (1000,), "fp16", data)
    y = program.tensor("y", (1000,), "fp16")
    core = program.core()
    u = core.allocate("UB", (1000,), "fp16")
    core.copy(u, x)
    core.vmuls(u, u, -2.0)
    core.vabs(u, u)
    core.copy(y, u)
    functional = Functional(program)
    functional.run()
    assert np.array_equal(functional.read("y"), 2 * data)
    assert np.array_equal(functional.read(u, core), 2 * data)
    functional.write("x", data + 1)
    functional.run()
    assert np.array_equal(functional.tensors()["y"], 2 * (data + 1))
    with pytest.raises(ValueError, match="core must be given for a view into UB"):
        functional.read(u)
    with pytest.raises(ValueError, match=r"cube must be one of golden, fast.*, not 'x'"):
        Functional(program, "x")


def test_what_cannot_be_done_is_named():
    core, functional = on("ascend310")
    core.copy(view("UB", 260000), view("GM", 0), bursts=1, burst_bytes=4096)
    with pytest.raises(FunctionalError, match=r"moves.py:\d+: copy.*bytes 260000 to 264096"):
        functional.execute(core, last(core))
    core.load(view("L0A", 0, "int8"), view("L1", 0, "int8"), repeat=1, transpose=True)
    with pytest.raises(FunctionalError, match="transposed of 16-bit elements, not int8"):
        functional.execute(core, last(core))
    instr = core.vector_views("vmrgsort", {"dst": view("UB", 0), "src": view("UB", 64)})
    with pytest.raises(FunctionalError, match="the data of this operation are not modelled"):
        functional.execute(core, instr)


def test_transposed_squares_that_overlap_are_written_in_order():
    """The second fractal of the first square gives way to the first one of the second square."""
    program = Program(load_chip("ascend910b"))
    core = program.core(0, "cube")
    data = np.arange(2048, dtype=np.int64).astype(np.int8)
    functional = Functional(program)
    functional.memory(core).buffers["L1"][:2048] = data.view(np.uint8)
    dst, src = core.view("L0B", 0, (2048,), "int8"), core.view("L1", 0, (2048,), "int8")
    load = core.load_squares(
        dst, src, repeat=2, src_stride=1024, dst_stride=512, dst_fractal_stride=512
    )
    functional.execute(core, load)
    first, second = (square.T.reshape(2, 512) for square in data.reshape(2, 32, 32))
    expected = np.concatenate([first[0], second[0], second[1]])
    assert np.array_equal(functional.memory(core).buffers["L0B"][:1536].view(np.int8), expected)
