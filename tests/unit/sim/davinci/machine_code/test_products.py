"""Every product of a core's tile: its bytes, its cycles, and what is refused."""

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.simd2 import Op
from vitruvian.hdl.core.support import refusal
from vitruvian.hdl.cube.choices import PRECISIONS
from vitruvian.sim.davinci import Program, load_chip, simulate
from vitruvian.sim.davinci.chip.file import ChipError, read_chip
from vitruvian.sim.davinci.machine_code.chip import core_chip, core_chip_text
from vitruvian.sim.davinci.machine_code.core import (
    assemble,
    core_product,
    image_of,
    predicted_cycles,
    run_on_core,
)
from vitruvian.sim.davinci.machine_code.decode import decode, split
from vitruvian.sim.davinci.machine_code.encode import EncodingError, Texts
from vitruvian.sim.davinci.machine_code.text import lines, words_of
from vitruvian.sim.davinci.program.builder import ProgramError
from vitruvian.sim.davinci.semantics import Functional, FunctionalError
from vitruvian.sim.kernels import matmul
from vitruvian.sim.rtl.core import core_config, core_facts

#: Bytes of an element, and elements of a block of 32 bytes.
_SIZES = {"fp16": 2, "bf16": 2, "int8": 1, "fp32": 4, "tf32": 4, "fp8e4m3": 1, "fp8e5m2": 1}
_SIZES |= {"fp64": 8, "fp32c": 8}


#: A product of 32 × 64 × 32 of INT8.
_INT8 = """\
__global__ __aicore__ void product(__gm__ int8_t *a, __gm__ int8_t *b, __gm__ int32_t *c)
{
    __cbuf__ int8_t *l1 = (__cbuf__ int8_t *)((uintptr_t)0);
    __ca__ int8_t *l0a = (__ca__ int8_t *)((uintptr_t)0);
    __cb__ int8_t *l0b = (__cb__ int8_t *)((uintptr_t)0);
    __cc__ int32_t *l0c = (__cc__ int32_t *)((uintptr_t)0);
    __ubuf__ int32_t *ub = (__ubuf__ int32_t *)((uintptr_t)0);

    copy_gm_to_cbuf(l1, a, 0, 1, 64, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(l1 + 2048, b, 0, 1, 64, 0, 0, PAD_NONE);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    load_cbuf_to_ca(l0a, l1, 0, 4, 1, 0, 0, false, inc);
    load_cbuf_to_cb(l0b, l1 + 2048, 0, 4, 1, 0, 0, false, inc);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad(l0c, l0a, l0b, 32, 64, 32, 1);
    set_flag(PIPE_M, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_V, EVENT_ID0);
    copy_matrix_cc_to_ubuf(ub, l0c, 0, 2, 2, 0, 0, CRMODE_NONE);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(c, ub, 0, 1, 128, 0, 0);
}
"""


def _operands(dtype, m, k, n, seed=5):
    """Return random A and B; floats of all magnitudes of FP16, with some that are not finite."""
    rng = np.random.default_rng(seed)

    def operand(*shape):
        if dtype == "int8":
            return rng.integers(-128, 128, shape, np.int8)
        if dtype.startswith("fp8"):
            return rng.integers(0, 256, shape, np.uint8)  # with NaN and, in E5M2, infinities
        codes = rng.integers(0, 1 << 16, shape, dtype=np.uint16).view(np.float16)
        often = rng.random(shape) < 0.99
        values = np.where(often & ~np.isfinite(codes), np.float16(1.5), codes)
        if dtype == "fp16":
            return values
        single = values.astype(np.float32) * np.float32(1.0009765)
        if dtype == "fp64":
            return single * (1 + rng.random(shape) * 1e-9)
        if dtype == "fp32c":
            return single + np.complex64(1j) * rng.permuted(single)
        return (single.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bf16" else single

    return operand(m, k), operand(k, n)


def _products(core):
    return [(core, *name.split()) for name in core_facts(core)["products"]]


def test_the_cores_have_all_products():
    """Every precision but FP6 and FP4, which have no code, and every operation of SIMD²."""
    dtypes = {core: set(core_facts(core)["products"]) for core in ("mixed", "fp8")}
    assert dtypes["mixed"] == {"fp16", "bf16", "tf32", "int8", "fp32", "fp32c", "fp64"}
    assert dtypes["fp8"] == {"fp16", "bf16", "tf32", "int8", "fp8e4m3", "fp8e5m2"}
    without = {"fp6e2m3", "fp6e3m2", "fp4e2m1"}
    assert dtypes["mixed"] | dtypes["fp8"] == set(_SIZES) == set(PRECISIONS) - without
    operations = {name.partition(" ")[2] or "mma" for name in core_facts("semiring")["products"]}
    assert operations == {op.mnemonic for op in Op}


@pytest.mark.parametrize(
    "product",
    [each for core in ("mixed", "fp8", "semiring") for each in _products(core)],
    ids=" ".join,
)
def test_a_product_has_the_bytes_of_the_simulator_and_its_cycles(product):
    core, dtype, operation = product if len(product) == 3 else (*product, "mma")
    block = 32 // _SIZES[dtype]
    for m, k, n in ((16, 3 * block, 48), (40, 2 * block, 24)):
        program = matmul.build(
            m,
            k,
            n,
            chip=core_chip(core),
            dtype=dtype,
            out=matmul.DTYPES[dtype][2][-1],
            data=_operands(dtype, m, k, n),
            operation=operation,
        )
        expected = simulate(program, cube=core_product(core)).outputs["c"]
        done = run_on_core(program, core, latency=7)
        assert np.array_equal(done.outputs["c"].view(np.uint8), expected.view(np.uint8))
        assert done.run.cycles == predicted_cycles(program, core, latency=7)


def test_a_kernel_in_cce_multiplies_int8(tmp_path, capsys):
    file = tmp_path / "product.cce"
    file.write_text(_INT8)
    arrays = {"a": "uniform:2048", "b": "uniform:2048", "c": "zeros:1024"}
    given = [word for name, value in arrays.items() for word in ("--arg", f"{name}={value}")]
    assert main(["cce", str(file), "--core", "mixed", *given]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.endswith("8,192 bytes compared with the simulator: 0 differ"), told
    assert "834 cycles, 834 predicted" in told


def test_a_product_continues_a_sum_and_ends_within_a_beat():
    """K of one to 17 elements, from zero and from C, of each operation on FP16."""
    rng = np.random.default_rng(3)
    program = Program(core_chip("semiring"))
    core = program.core()
    for buffer in ("L0A", "L0B"):
        codes = rng.standard_normal(1024).astype(np.float16)
        core.copy(
            core.view("L1", 0, (1024,), "fp16"), program.tensor(buffer, (1024,), "fp16", codes)
        )
        core.pipe_barrier()
        core.load(core.view(buffer, 0, (1,), "fp16"), core.view("L1", 0, (1,), "fp16"), repeat=4)
        core.pipe_barrier()
    a, b = (core.view(buffer, 0, (1,), "fp16") for buffer in ("L0A", "L0B"))
    result = program.tensor("d", (len(Op) * 17, 256), "fp32")
    for i, op in enumerate(Op):
        for k in range(1, 18):
            c = core.view("L0C", 0, (256,), "fp32")
            sizes = {"m": 16, "n": 16, "operation": op.mnemonic}
            core.mmad(c, a, b, k=k, init="zero", **sizes)
            core.mmad(c, a, b, k=18 - k, init="accumulate", **sizes)
            core.pipe_barrier()
            core.matrix_out(core.view("UB", 0, (256,), "fp32"), c, m=16, n=16)
            core.pipe_barrier()
            core.copy(result[17 * i + k - 1], core.view("UB", 0, (256,), "fp32"))
            core.pipe_barrier()
    expected = simulate(program, cube=core_product("semiring")).outputs["d"]
    found = run_on_core(program, "semiring").outputs["d"]
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
    assert len({row.tobytes() for row in expected[1::17]}) == len(Op)


def _program(chip, operation="mma", *, dtype="fp16", sums="fp32"):
    program = Program(chip)
    core = program.core()
    a, b = (core.view(buffer, 0, (256,), dtype) for buffer in ("L0A", "L0B"))
    c = core.view("L0C", 0, (256,), sums)
    core.mmad(c, a, b, m=16, k=16, n=16, init="zero", operation=operation)
    return program


@pytest.mark.parametrize(
    ("core", "options", "message"),
    [
        ("tiny", {"operation": "minplus"}, "must not be minplus, which the tile of the core lacks"),
        ("semiring", {"dtype": "bf16"}, "must be of fp16 with sums in fp32, not bf16, bf16, fp32"),
        ("mixed", {"dtype": "int8"}, "int8 with sums in int32, fp32 with sums in fp32, fp32c wi"),
    ],
)
def test_what_the_tile_lacks_is_refused(core, options, message):
    chip = core_chip("semiring" if "operation" in options else "mixed")
    only = next(iter(_program(chip, **options)))
    with pytest.raises(EncodingError, match=message):
        assemble(only.instructions, core_config(core), Texts())


def test_a_chip_without_the_operation_refuses_it():
    with pytest.raises(ProgramError, match="operation of mmad on fp16 must be one of mma, not 'mi"):
        _program(load_chip("ascend310"), "minplus")
    with pytest.raises(ProgramError, match="operation of mmad on fp16 must be one of mma, minpl"):
        _program(core_chip("semiring"), "minsub")
    with pytest.raises(ValueError, match="k must be a multiple of 16 with minplus, not 24"):
        matmul.build(16, 24, 16, chip=core_chip("semiring"), operation="minplus")
    program = _program(core_chip("semiring"), "minplus")
    with pytest.raises(FunctionalError, match="this Cube has no minplus"):
        Functional(program, cube="fast").run()


def test_a_chip_file_names_its_operations():
    text = core_chip_text("semiring")
    cube = read_chip(text, "core").cube
    assert cube is not None and cube.operation_depths["fp16 addnorm"] == 1
    assert cube.steps(16, 16, 16, "fp16", "addnorm") == 4 * cube.steps(16, 16, 16, "fp16")
    wrong = text.replace('"fp16 minplus" = 4\n', '"fp16 minsub" = 4\n', 1)
    with pytest.raises(ChipError, match="must be of a dtype and an operation as 'fp16 min"):
        read_chip(wrong, "core")


def test_an_operation_comes_back_from_words_and_text():
    chip = core_chip("semiring")
    words = {
        name: [int(word) for word in image_of(_program(chip, name), "semiring").words]
        for name in ("mma", "addnorm")
    }
    assert sum(a != b for a, b in zip(*words.values(), strict=True)) == 1
    for name, code in words.items():
        ((_, encoding, own),) = split(code)
        instruction = decode(encoding, own, Program(chip).core())
        assert instruction.fields.get("operation", "mma") == name
        (shown,) = lines(code)
        assert ("operation=addnorm" in shown) == (name == "addnorm")
        assert words_of(shown)[0] == code


def test_only_mmad_has_the_dtypes_of_a_cube():
    """Other instructions move the elements as others of their size."""
    chip = core_chip("fp8")
    program = matmul.build(16, 32, 16, chip=chip, dtype="fp8e4m3")
    words, core = [int(word) for word in image_of(program, "fp8").words], Program(chip).core()
    found = [decode(encoding, own, core) for _, encoding, own in split(words)]
    dtypes = {(each.op, view.dtype) for each in found for view in each.operands.values()}
    assert {dtype for op, dtype in dtypes if op == "mmad"} == {"fp8e4m3", "fp32"}
    assert {dtype for op, dtype in dtypes if op in ("copy", "load")} == {"uint8", "fp32"}
    only = Program(chip)
    unit = only.core()
    source = unit.view("L1", 0, (1,), "fp8e4m3")
    unit.load(unit.view("L0A", 0, (1,), "fp8e4m3"), source, repeat=1, src_stride=512)
    words = [int(word) for word in image_of(only, "fp8").words]
    ((_, encoding, own), *_) = split(words)
    codes, _ = encoding.unpack(own)
    refused = refusal(core_config("fp8"), encoding, "MTE1", codes | {"src.dtype": 12})
    assert refused == "must have elements of fp8e4m3 as uint8"


def test_the_fast_cube_multiplies_what_only_a_cube_has():
    """Up to the error of sums in FP32, TF32 and FP8 have the products of their numbers."""
    rng = np.random.default_rng(3)
    for dtype in ("tf32", "fp8e4m3", "fp8e5m2"):
        a, b = rng.normal(size=(16, 32)), rng.normal(size=(32, 16))
        left, right = (from_float(x, dtype) for x in (a, b))
        exact = to_float(left, dtype) @ to_float(right, dtype)
        if dtype == "tf32":
            left, right = left.view(np.float32), right.view(np.float32)
        program = matmul.build(16, 32, 16, chip=core_chip("fp8"), dtype=dtype, data=(left, right))
        found = matmul.result(simulate(program, cube="fast").outputs["c"], 16, 16)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-4)
