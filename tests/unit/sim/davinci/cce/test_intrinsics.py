"""Signatures of the CCE intrinsics: every one checks count, types and bounds."""

import re

import pytest

from tests.support.cce_sinks import body, run
from vitruvian.sim.davinci.cce import CceError, SourcePosition
from vitruvian.sim.davinci.cce.intrinsics.signature import bind, intrinsic, select
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.cce.language.keywords import CONSTANTS, ENUMERATIONS
from vitruvian.sim.davinci.cce.language.types import (
    FLOAT,
    HALF,
    INT,
    NAMED,
    PRIVATE,
    UINT64,
    Pointer,
    Scalar,
)

HERE = SourcePosition("k.cce", 1)

#: Rows of the dialect's table, by the pipe that they run on.
TABLE = {
    "MTE2": "copy_gm_to_ubuf copy_gm_to_cbuf copy_gm_to_cbuf_multi_nd2nz_b16 load_gm_to_ca "
    "load_gm_to_cb",
    "MTE3": "copy_ubuf_to_gm copy_ubuf_to_cbuf",
    "MTE1": "copy_cbuf_to_ubuf load_cbuf_to_ca load_cbuf_to_cb img2col_cbuf_to_ca "
    "img2col_cbuf_to_cb img2col_cbuf_to_ub set_l0a_2d set_l0b_2d",
    "M": "mad",
    "FIX": "copy_matrix_cc_to_gm",
    "V": "copy_ubuf_to_ubuf copy_matrix_cc_to_ubuf vadd vsub vmul vdiv vmax vmin vand vor vadds "
    "vmuls vexp vln vabs vrec vrsqrt vsqrt vrelu vnot vconv_f162f32 vconv_f322f16 vconv_f162s32 "
    "vconv_s322f16 vector_dup vcmp_lt vcmp_gt vcmp_eq vsel vcmpv_lt vcmpv_gt vcadd vcmax vcmin "
    "vcgadd vcgmax vcgmin vtranspose v4dtrans scatter_vnchwconv_b16",
    "S": "set_fmatrix set_l0_set_value set_vector_mask set_mask_norm set_mask_count "
    "set_atomic_none set_nd_para set_ffts_base_addr wait_flag_dev",
}


def _type(parameter, signature):
    kind = parameter.kind
    if kind in ENUMERATIONS:
        return Scalar("i", 4, kind)
    if kind in ("int", "bool"):
        return INT
    if kind in ("u64", "address"):
        return UINT64
    if kind == "number":
        return FLOAT
    dtype = (parameter.types or ("fp16",))[0]
    dtype = signature.letters[0] if len(dtype) == 1 else dtype
    element = next(t for t in NAMED.values() if isinstance(t, Scalar) and t.dtype == dtype)
    return Pointer(PRIVATE if kind == "OWN" else "GM" if kind == "ANY" else kind, element)


def _value(parameter):
    return parameter.high if parameter.kind == "int" else 1 if parameter.kind == "bool" else 0


EVERY = [s for signatures in intrinsic_table().values() for s in signatures]


def test_every_row_of_the_table_is_there():
    for pipe, names in TABLE.items():
        for name in names.split():
            assert {s.pipe for s in intrinsic_table()[name]} & {pipe, "unit"}, name
    for name in ("set_flag", "wait_flag", "pipe_barrier", "ffts_cross_core_sync"):
        assert name in intrinsic_table()
    assert len(EVERY) > 500


def test_every_signature_takes_what_it_says():
    for signature in EVERY:
        types = [_type(p, signature) for p in signature.parameters]
        chosen, _ = select(intrinsic_table()[signature.name], types, HERE)
        assert len(chosen.parameters) == len(types), signature
        values = [_value(p) for p in signature.parameters]
        bound = bind(signature, values, types, HERE)
        assert list(bound) == [p.name for p in signature.parameters]


def test_every_signature_refuses_what_it_does_not():
    refused = 0
    for signature in EVERY:
        types = [_type(p, signature) for p in signature.parameters]
        values = [_value(p) for p in signature.parameters]
        for at, parameter in enumerate(signature.parameters):
            bad = []
            if parameter.kind == "int":
                bad = [parameter.low - 1, parameter.high + 1]
            elif parameter.kind == "bool":
                bad = [-1, 2]
            elif parameter.kind in ENUMERATIONS:
                bad = [-1, max(ENUMERATIONS[parameter.kind]) + 1]
            for value in bad:
                with pytest.raises(CceError, match=f"{signature.name}: {parameter.name} must be"):
                    bind(signature, values[:at] + [value] + values[at + 1 :], types, HERE)
                refused += 1
            pointer = types[at]
            if isinstance(pointer, Pointer):
                other = "L0A" if pointer.space == "FB" else "FB"
                for wrong in (INT, Pointer(other, pointer.target)):
                    if parameter.kind == "ANY" and wrong is not INT:
                        continue
                    changed = types[:at] + [wrong] + types[at + 1 :]
                    with pytest.raises(CceError):
                        select([signature], changed, HERE)
                    refused += 1
        with pytest.raises(CceError, match=f"{signature.name} must have .* arguments?, not"):
            select([signature], [*types, INT], HERE)
    assert refused > 5000


def test_letters_stand_for_one_type():
    signature = intrinsic("f", "V", "dst:UB<T> src:UB<T>", "fp16 fp32")
    half, single = Pointer("UB", HALF), Pointer("UB", FLOAT)
    assert select([signature], [half, half], HERE)[1] == {"T": "fp16"}
    with pytest.raises(CceError, match="f: src must point to fp16, not fp32"):
        select([signature], [half, single], HERE)
    with pytest.raises(CceError, match="f: dst must point to fp16 or fp32, not int32"):
        select([signature], [Pointer("UB", INT)] * 2, HERE)


def test_constants_have_their_public_values():
    values = {name: value for name, (_, value) in CONSTANTS.items()}
    expected = {"PIPE_S": 0, "PIPE_MTE3": 5, "PIPE_ALL": 6, "PIPE_FIX": 10, "EVENT_ID7": 7}
    expected |= {"CRMODE_F32toF16_NONE": 1, "CRMODE_NONE_RELU": 5, "F322F16": 1, "dec": 1}
    assert expected.items() <= values.items()


BEFORE = """
#define L1(a) ((__cbuf__ half *)get_imm(a))
#define UB(a) ((__ubuf__ half *)get_imm(a))
#define L0A ((__ca__ half *)get_imm(0))
#define L0B ((__cb__ half *)get_imm(0))
#define L0C ((__cc__ float *)get_imm(0))
"""


def one(statement: str, **options) -> dict:
    """The arguments of the only intrinsic of a kernel."""
    sink = run(body(statement, "__gm__ half *gm", BEFORE), [4096], **options)
    assert len(sink.calls) == 1
    return dict(sink.calls[0].arguments)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "load_cbuf_to_ca(L0A, L1(512), 3, 4, 2, 0, true);",
            {"base_idx": 3, "repeat": 4, "src_stride": 2, "sid": 0, "transpose": 1},
        ),
        (
            "load_cbuf_to_ca(L0A, L1(512), 3, 4, 2, 5, 0, false);",
            {"dst_gap": 5, "sid": 0, "transpose": 0},
        ),
        (
            "load_cbuf_to_ca(L0A, L1(512), 3, 4, 2, 1, false, dec);",
            {"sid": 1, "transpose": 0, "addr_mode": 1},
        ),
        (
            "load_cbuf_to_cb(L0B, L1(512), 3, 4, 2, 5, 0, 1, inc);",
            {"dst_gap": 5, "transpose": 1, "addr_mode": 0},
        ),
        ("load_gm_to_cb(L0B, gm, 0, 8, 1, 0);", {"repeat": 8, "src_stride": 1, "sid": 0}),
        (
            "load_cbuf_to_ca(L0A, L1(0), (uint64_t)3 | 7ULL << 16 | 2ULL << 24, false);",
            {"base_idx": 3, "repeat": 7, "src_stride": 2, "sid": 0, "transpose": 0},
        ),
        (
            "copy_gm_to_ubuf(UB(0), gm, (uint64_t)5 << 4 | 6ULL << 16 | 7ULL << 32 | 8ULL << 48);",
            {"sid": 0, "n_burst": 5, "len_burst": 6, "src_gap": 7, "dst_gap": 8},
        ),
        (
            "vadd(UB(0), UB(256), UB(512), 0x0408070603020105ULL);",
            {
                "repeat": 4,
                "dst_blk": 5,
                "src0_blk": 1,
                "src1_blk": 2,
                "dst_rep": 3,
                "src0_rep": 6,
                "src1_rep": 7,
            },
        ),
        ("mad(L0C, L0A, L0B, 16, 32, 48, 1);", {"m": 16, "k": 32, "n": 48, "init": 1}),
        (
            "mad(L0C, L0A, L0B, 16, 32, 48, 3, 0, 0, 1);",
            {"unit_flag": 3, "k_direction_align": 0, "c_matrix_source": 0, "init": 1},
        ),
        (
            "mad(L0C, L0A, L0B, (uint64_t)64, 16, 32, 48, 3, 1, 1, 0);",
            {"bias": 64, "m": 16, "unit_flag": 3, "c_matrix_source": 1, "init": 0},
        ),
        (
            "mad(L0C, L0A, L0B, 16, 32, 48, 0, 0, 2, 0, 0, 0, 1);",
            {"feat_offset": 0, "unit_flag": 2, "is_weight_offset": 0, "init": 1},
        ),
        ("vmuls(UB(0), UB(0), 0.1f, 1, 1, 1, 8, 8);", {"scalar": 0.0999755859375}),
        ("vector_dup(UB(0), (half)2.5, 1, 1, 1, 8, 8);", {"scalar": 2.5, "src_rep": 8}),
        ("set_vector_mask((uint64_t)-1, -1);", {"high": 2**64 - 1, "low": 2**64 - 1}),
        (
            "wait_flag((pipe_t)1, PIPE_MTE3, (event_t)3);",
            {"source": "V", "target": "MTE3", "register": 3},
        ),
        (
            "uint64_t a[8] = {32, 64}; a[7] = (uint64_t)UB(96); set_va_reg_sb(VA3, a);",
            {"register": 3, "addresses": (32, 64, 0, 0, 0, 0, 0, 96)},
        ),
        (
            "copy_matrix_cc_to_gm(gm, L0C, 0, 64, 32, 128, 32, 0, QuantMode_t::F322F16, 1, 0, 1);",
            {"n_size": 64, "m_size": 32, "quant_pre": 1, "relu_pre": 1, "nz2nd": 1},
        ),
        (
            "img2col_cbuf_to_ca(L0A, L1(0), 0, 0, -1, -1, 0, 1, 1, 3, 3, 1, 1, 1, 1, 4, CSIZE0);",
            {"first_w": -1, "kernel_h": 3, "mode": 1, "repeat": 4},
        ),
    ],
)
def test_arguments_arrive_by_name(statement, expected):
    call = one(statement)
    assert expected.items() <= call.items(), call


def test_pointers_arrive_as_buffer_byte_and_dtype():
    call = one("copy_gm_to_ubuf(UB(2048) + 16, gm + 3, 0, 1, 1, 0, 0);")
    assert call["dst"] == ("UB", 2048 + 32, "fp16") and call["src"] == ("GM", 4102, "fp16")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "load_cbuf_to_ca(L0A, L1(0), 0, 0, 1, 0, false);",
            "k.cce:9:1: load_cbuf_to_ca: repeat must be 1 to 255, not 0",
        ),
        ("load_cbuf_to_ca(L0A, L1(0), 0ULL, false);", "repeat must be 1 to 255, not 0"),
        (
            "set_flag(PIPE_V, PIPE_M, (event_t)8);",
            "set_flag: register must be 0 to 7, not 8",
        ),
        ("set_flag(PIPE_V, PIPE_ALL, EVENT_ID0);", "a pipe must be one of PIPE_S, PIPE_V,"),
        (
            "set_flag(PIPE_V, EVENT_ID0, PIPE_M);",
            "set_flag: target must be a pipe_t, not a event_t",
        ),
        (
            "copy_gm_to_ubuf(UB(0), gm, 0, 1, 16, 0);",
            "copy_gm_to_ubuf must have 3 or 7 arguments, not 6: copy_gm_to_ubuf(dst, src, sid,",
        ),
        ("copy_gm_to_ubuf(gm, UB(0), 0, 1, 16, 0, 0);", "dst must be a pointer to UB, not a GM"),
        ("vadd(UB(0), UB(0), UB(0), 256, 1, 1, 1, 8, 8, 8);", "repeat must be 0 to 255, not 256"),
        (
            "vadd(UB(0), (__ubuf__ float *)UB(0), UB(0), 1, 1, 1, 1, 8, 8, 8);",
            "vadd: src0 must point to fp16, not fp32",
        ),
        ("vaddd(UB(0));", "k.cce:9:1: vaddd is not a known function; did you mean vadd?"),
        ("vfoo_bar_baz(3);", "k.cce:9:1: vfoo_bar_baz is not a known function"),
        (
            "vexp((__ubuf__ int32_t *)UB(0), (__ubuf__ int32_t *)UB(0), 1, 1, 1, 8, 8);",
            "vexp: dst must point to fp16 or fp32, not int32",
        ),
        (
            "vmuls(UB(0), UB(0), gm, 1, 1, 1, 8, 8);",
            "vmuls: scalar must be a number, not a GM half*",
        ),
        ("pipe_barrier();", "pipe_barrier must have 1 argument, not 0"),
        ("mad(L0C, L0B, L0A, 16, 16, 16, 1);", "mad: a must be a pointer to L0A, not a L0B half*"),
        (
            "copy_gm_to_ubuf(UB(0), gm, 0, 1.5f, 1, 0, 0);",
            "n_burst must be an integer, not a float",
        ),
    ],
)
def test_wrong_arguments_are_named(statement, message):
    with pytest.raises(CceError, match=re.escape(message)):
        one(statement)


def test_a_bad_argument_of_a_loop_is_found_when_it_comes():
    text = "for (int i = 3; i >= 0; --i)\n load_cbuf_to_ca(L0A, L1(0), 0, i, 1, 0, false);"
    with pytest.raises(
        CceError, match=r"k.cce:10:2: load_cbuf_to_ca: repeat must be 1 to 255, not 0"
    ):
        one(text)


def test_a_bad_argument_that_does_not_come_is_none():
    one("if (block_num > 1) load_cbuf_to_ca(L0A, L1(0), 0, 0, 1, 0, false); set_mask_norm();")
