"""Kernels that are compiled for the RISC-V: words and bytes of the unrolled program."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.cce import build, read_file
from vitruvian.sim.davinci.machine_code.core import core_product, image_of
from vitruvian.sim.davinci.machine_code.decode import split
from vitruvian.sim.davinci.riscv import header
from vitruvian.sim.davinci.riscv.rules import rule_of
from vitruvian.sim.davinci.riscv.run import kernel_image, run_model, run_riscv
from vitruvian.sim.davinci.semantics import Functional

pytest.importorskip("ziglang", reason="the compiler for the RISC-V is in the package ziglang")

CHIP = load_chip("ascend310")
_MEMORY = 32 << 10
#: Operations that S carries out itself, or that no unit needs.
_OF_S = ("scalar", "scalar_load", "scalar_store", "set_mask", "set_control")


def _numbers(count, seed=0, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(count).astype(dtype)


def _compare(path, arguments, core=None):
    """Compare words and bytes of a kernel, with a core also those of its RTL; return the model."""
    program, _ = build(read_file(path), CHIP, arguments)
    image = kernel_image(program, path, arguments, memory_bytes=_MEMORY)
    functional = Functional(program, core_product("tiny"))
    model = run_model(program, image, functional, _MEMORY)
    words = [
        word
        for _, encoding, instruction in split(image_of(program).words.tolist())
        for word in instruction
        if encoding.op not in _OF_S
    ]
    assert model.words == [*words, 0]
    reference = Functional(program, core_product("tiny"))
    reference.run()
    for name, array in reference.tensors().items():
        assert functional.read(name).tobytes() == array.tobytes(), name
    if core:
        done = run_riscv(program, image, core)
        assert done.run.cycles and not done.differing(dict(reference.tensors()))
    return model


def _text(tmp_path, body, parameters="__gm__ half *x, __gm__ half *y, int32_t n"):
    path = tmp_path / "k.cce"
    path.write_text(f"__global__ __aicore__ void k({parameters})\n{{\n{body}\n}}\n")
    return path


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "scale_add",
            {
                "a": _numbers(8192),
                "b": _numbers(8192, 1),
                "y": np.zeros(8192, np.float16),
                "scale": 2.3,
                "tiles": 4,
            },
        ),
        ("softmax", {"x": _numbers(784), "y": np.zeros(784, np.float16), "rows": 7, "n": 112}),
        (
            "cube",
            {
                "a": _numbers(32 * 48),
                "b": _numbers(48 * 64, 1),
                "c": np.zeros(32 * 64, np.float16),
                "m": 32,
                "k": 48,
                "n": 64,
            },
        ),
    ],
)
def test_the_kernels_of_the_project(name, arguments, root):
    _compare(root / f"sim/kernels/text/{name}.cce", arguments)


def test_a_kernel_of_the_compiler(root):
    """It has macros of the device, constants with suffixes, and arrays of its own."""
    data = {"data_a": _numbers(3072), "data_b": _numbers(3072, 1)}
    path = root / "tests/unit/sim/davinci/cce/kernels/vec_add.cce"
    _compare(path, data | {"res": np.zeros(3072, np.float16)})


#: All forms of words: masks of every length, strides, packed words, comparisons, copies.
_FORMS = """
    __ubuf__ half *a = (__ubuf__ half *)((uintptr_t)0), *b = a + 4096, *c = b + 4096;
    __ubuf__ float *f = (__ubuf__ float *)((uintptr_t)32768);
    copy_gm_to_ubuf(a, x, 0, 2, 64, n, n + 1);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int i = 1; i < 3; ++i) {
        uint64_t low = i == 1 ? (1ULL << (n + 5)) - 1 : (uint64_t)-1;
        for (int j = 0; j < 3; ++j) {
            set_vector_mask(j == 0 ? 0 : j == 1 ? (uint64_t)-1 : (uint64_t)n, low);
            vadd(c, a, b, i, 1, n, 1, 8, n * 8, 8);
            vmul(c, a, b, (uint64_t)i << 56 | 1 | 1 << 8 | 1 << 16 | 8 << 24 | 8ULL << 32);
            vadds(c, a, (half)(i * 0.3f - j), i, 1, 1, 8, 8);
            vmaxs(c, a, -2, i, 0, 1, 8, 8);
            vconv_f162f32(f, a, i, 1, 1, 8, 4);
            vadd(f, f, f, i, 1, 1, 1, 8, 8, 8);
            vconv_f322f16(c, f, i, 1, 1, 4, 8);
            vcgmax(c, a, i, 1, 1, 8);
            vcmax(c, a, i, 1, 1, 8, ONLY_VALUE);
            vcmin(c, a, i, 1, 1, 8);
            vcmp_lt(a, b, 1, 1, 1, 1, 8, 8, 8);
            vsel(c, a, b, i, 1, 1, 1, 8, 8, 8);
            vcmpv_ge((__ubuf__ uint8_t *)f, a, b, i, 1, 1, 1, 8, 8, 8);
            vector_dup(c, (half)(i + j), i, 1, 1, 8, 8);
            pipe_barrier(PIPE_V);
        }
    }
    set_mask_count();
    set_vector_mask(0, 333);
    vrelu(c, a, 0, 1, 1, 8, 8);
    set_mask_norm();
    copy_ubuf_to_ubuf(b, a, 0, 2, 3, 1, 2);
    pipe_barrier(PIPE_ALL);
    set_flag(PIPE_V, PIPE_S, EVENT_ID1); wait_flag(PIPE_V, PIPE_S, EVENT_ID1);
    int32_t steps = 0;
    for (int i = 0; i < 8; ++i) {
        if (a[i] > (half)0) c[i] = a[i] * a[i + 1] + a[i + 2] / a[i];
        else steps += i;
    }
    *(__gm__ int32_t *)(y + 2048) = steps;
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID1); wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID1);
    copy_ubuf_to_gm(y, c, 0, 1, 128, 0, 0);
"""


@pytest.mark.parametrize("core", [None, "tiny"])
def test_intrinsics_with_numbers_from_the_data(core, tmp_path):
    """The core in hardware has no reductions, so they are left out there."""
    lines = [
        line for line in _FORMS.splitlines() if not (core and re.search("vcgmax|vcmax|vcmin", line))
    ]
    path = _text(tmp_path, "\n".join(lines))
    arguments = {"x": _numbers(4096), "y": np.zeros(2080, np.float16), "n": 3}
    model = _compare(path, arguments, core)
    assert len(model.words) > 250


#: Calls of intrinsics, one to a line; i is 1 and 2.
_CALLS = """
vdiv(c, a, b, i, 1, 1, 1, 8, 8, 8);
vsqrt(c, a, i, 1, 1, 8, 8);
vrec(c, a, i, 1, 1, 8, 8);
vrsqrt(c, a, i, 1, 1, 8, 8);
vmla(c, a, b, i, 1, 1, 1, 8, 8, 8);
vmla(f, a, b, i, 1, 1, 1, 8, 4, 4);
vaxpy(c, a, (half)i, i, 1, 1, 8, 8);
vmadd(c, a, b, i, 1, 1, 1, 8, 8, 8);
vaddrelu(c, a, b, i, 1, 1, 1, 8, 8, 8);
vlrelu(c, a, (half)0.1f, i, 1, 1, 8, 8);
vshl(s, s, i, i, 1, 1, 8, 8);
vshr(s, s, i, i, 1, 1, 8, 8);
vshr(s, s, i, i, 1, 1, 8, 8, true);
vadds(s, s, i-2, i, 1, 1, 8, 8);
vand(s, s, s, i, 1, 1, 1, 8, 8, 8);
vnot(s, s, i, 1, 1, 8, 8);
vcopy(s, s, i, 1, 1, 8, 8);
vconv_f162s32(q, a, i, 1, 1, 8, 4);
vconv_f162s32f(q, a, i, 1, 1, 8, 4);
vconv_s322f16(c, q, i, 1, 1, 4, 8);
vcadd(c, a, i, 1, 1, 8);
vcpadd(c, a, i, 1, 1, 8);
vcgadd(c, a, i, 1, 1, 8);
vcmpvs_gt((__ubuf__ uint8_t*)f, a, (half)0, i, 1, 1, 8, 8);
vabs(c, a, i, 1, 1, 8, 8);
vexp(c, a, i, 1, 1, 8, 8);
copy_ubuf_to_cbuf(l1, a, 0, 1, 64, 0, 0);
load_cbuf_to_ca(l0a, l1, 0, 2, 1, 0, false, inc);
load_cbuf_to_ca(l0a, l1, 1, 2, 1, 1, 0, true);
load_cbuf_to_cb(l0b, l1, 3, 2, 1, 0, 0, false, dec);
load_cbuf_to_ca_transpose(l0a, l1, 1, 2, 1, 0, inc, 0);
mad(l0c, l0a, l0b, 16, 16, 16, 0);
mad(l0c, l0a, l0b, (uint64_t)16|16<<12|16<<24|1ULL<<63);
copy_gm_to_cbuf_multi_nd2nz_b16(l1, x, 0, 1, 3, 20, 0, 20, 16, 1, 0);
copy_gm_to_ubuf_align_b16(a, x, 0, 2, 34, 0, 0, i, 6);
copy_ubuf_to_gm_align_b16(y, a, 0, 2, 34, 0, 0, i, 6);
copy_matrix_cc_to_ubuf(c, l0c, 0, 1, 1, 0, i, CRMODE_F32toF16_RELU);
copy_matrix_ubuf_to_cc(l0c, f, 0, 1, 1, 0, 0, CRMODE_NONE);
set_fmatrix((uint64_t)8|8<<16|1ULL<<32|1ULL<<48); set_padding(0x3c00);
    img2col_cbuf_to_ca(l0a, l1, 0, 0, -1, -1, 0, 1, 1, 3, 3, 1, 1, 2, 1, i, CSIZE0);
set_fcol2img((uint64_t)8|8<<16); col2img(c, a, 0, 0, 0, 0, i, 1, 1, 3, 3, 1, 1, 0);
load_gm_to_ca(l0a, x, 0, 2, 1, 0);
"""
_POINTERS = """
__ubuf__ half *a = (__ubuf__ half *)((uintptr_t)0), *b = a + 4096, *c = b + 4096;
__ubuf__ float *f = (__ubuf__ float *)((uintptr_t)32768);
__ubuf__ int16_t *s = (__ubuf__ int16_t *)f;
__ubuf__ int32_t *q = (__ubuf__ int32_t *)f;
__cbuf__ half *l1 = (__cbuf__ half *)get_imm(0);
__ca__ half *l0a = (__ca__ half *)get_imm(0);
__cb__ half *l0b = (__cb__ half *)get_imm(0);
__cc__ float *l0c = (__cc__ float *)get_imm(0);
set_vector_mask((uint64_t)n, (uint64_t)-1);
"""


def test_the_words_of_many_intrinsics(tmp_path):
    """Forms that no kernel of the project has, in one kernel, so that it is compiled once."""
    path = _text(tmp_path, f"{_POINTERS} for (int i = 1; i < n; ++i) {{ {_CALLS} }}")
    with np.errstate(all="ignore"):
        model = _compare(path, {"x": _numbers(4096), "y": np.zeros(2080, np.float16), "n": 3})
    assert len(model.words) > 250


def test_a_wrong_rule_is_noticed(tmp_path, monkeypatch):
    """The comparison of words sees a field that an intrinsic fills from another argument."""

    def wrong(signature):
        rule = rule_of(signature)
        return rule and replace(rule, values=dict(rule.values) | {"dst_repeat_stride": "src_rep"})

    path = _text(tmp_path, f"{_POINTERS} vrelu(c, a, 1, 1, 1, n + 5, 8);")
    arguments = {"x": _numbers(16), "y": np.zeros(16, np.float16), "n": 2}
    _compare(path, arguments)
    monkeypatch.setattr(header, "rule_of", wrong)
    with pytest.raises(AssertionError):
        _compare(path, arguments)


def test_scalar_arithmetic_has_the_bits_of_the_simulator(tmp_path):
    """Operations of half and float on random bit patterns without NaNs; sums and products too."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 1 << 16, 512, dtype=np.uint16)
    codes[(codes & 0x7C00) == 0x7C00] &= 0x83FF  # subnormal numbers instead of NaNs
    path = _text(
        tmp_path,
        """
    for (int i = 0; i + 3 < n; i += 4) {
        half a = x[i], b = x[i + 1];
        float c = (float)x[i + 2], d = (float)x[i + 3];
        y[i] = a * b + a;
        y[i + 1] = b == (half)0 ? a - b : a / b;
        y[i + 2] = (half)(c * d - c / (d == 0.0f ? 3.0f : d));
        int32_t whole = a < (half)9 ? i * 3 : -i;
        y[i + 3] = (half)sqrt(c < 0 ? -c : c) + (half)whole + min(a, b);
    }
""",
    )
    y = np.zeros(512, np.float16)
    with np.errstate(all="ignore"):
        _compare(path, {"x": codes.view(np.float16), "y": y, "n": 512})


def test_what_the_header_lacks_is_refused_with_the_line(tmp_path):
    """No core in hardware has this instruction; the simulator has."""
    path = _text(
        tmp_path, "    __ubuf__ half *a = (__ubuf__ half *)get_imm(0);\n    vtranspose(a, a);"
    )
    arguments = {"x": np.zeros(16, np.float16), "y": np.zeros(16, np.float16), "n": 1}
    program, _ = build(read_file(path), CHIP, arguments)
    message = "k: the compiler for the RISC-V refuses line 4 of k.cce: use of undeclared identifier"
    with pytest.raises(UserError, match=message):
        kernel_image(program, path, arguments, memory_bytes=_MEMORY)


def test_the_command_compares_the_bytes_on_the_core(capsys, root, monkeypatch):
    monkeypatch.chdir(root)
    kernel = str(Path("sim/kernels/text/scale_add.cce"))
    values = ["a=normal:4096", "b=normal:4096", "y=zeros:4096", "scale=2", "tiles=2"]
    arguments = [word for value in values for word in ("--arg", value)]
    assert main(["cce", kernel, "--core", "tiny", "--feed", "riscv", *arguments]) == 0
    out = capsys.readouterr().out
    assert "words of the RISC-V's image; 24,576 bytes compared with the simulator: 0 differ" in out
