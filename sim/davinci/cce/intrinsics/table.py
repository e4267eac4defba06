"""The table of intrinsics: every signature, its pipe, and the bounds of its arguments.

Names and orders of arguments are those of the public documentation (CCE 9.0 intrinsic guide) and of
the public headers for the 310, 910 and 910B; bounds are the widths of the fields. Counts of
gaps and strides are in the units of the guide: 32-byte blocks, fractals or elements.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic, intrinsic
from vitruvian.sim.davinci.cce.intrinsics.vector import vector_rows
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition

#: Names of the pipes by their numbers.
PIPES = {0: "S", 1: "V", 2: "M", 3: "MTE1", 4: "MTE2", 5: "MTE3", 6: "ALL", 10: "FIX"}

# Each parameter is a name with its range or its type; a value behind an equals sign is a default.
_BURSTS = "sid:0..15 n_burst:0..4095 len_burst:0..65535 src_gap:0..65535 dst_gap:0..65535"
_BYTES = (
    "sid:0..15 n_burst:0..4095 len_burst:0..2097151 left_padding:0..63 right_padding:0..63 "
    "src_gap:0..4294967295 dst_gap:0..4294967295"
)
_IMAGE = (
    "pos_w:0..255 pos_h:0..255 first_w:-255..32767 first_h:-255..32767 channel:0..4095 "
    "stride_w:1..63 stride_h:1..63 kernel_w:1..255 kernel_h:1..255 dilation_w:1..255 "
    "dilation_h:1..255 jump:0..127 mode:bool repeat:1..255 c_size:csize_t"
)
_MATRIX_OF_IMAGE = (
    "step_k:0..65535 step_m:0..65535 pos_k:0..65535 pos_m:0..65535 stride_w:1..63 stride_h:1..63 "
    "kernel_w:0..255 kernel_h:0..255 dilation_w:1..255 dilation_h:1..255 filter_w:bool "
    "filter_h:bool transpose:bool fmatrix_b:bool channels:0..65535"
)
_SIZES = "m:0..4095 k:0..4095 n:0..4095"
_ANY = "fp16 fp32 bf16 int8 uint8 int16 uint16 int32 uint32 int64 uint64"


def _moves():
    for name, pipe, dst, src, more in (
        ("copy_gm_to_ubuf", "MTE2", "UB", "GM", ""),
        ("copy_gm_to_cbuf", "MTE2", "L1", "GM", " pad_mode:pad_t=0"),
        ("copy_ubuf_to_gm", "MTE3", "GM", "UB", " byte_mode:bm_t=0"),
        ("copy_ubuf_to_ubuf", "V", "UB", "UB", ""),
        ("copy_ubuf_to_cbuf", "MTE3", "L1", "UB", ""),
        ("copy_cbuf_to_ubuf", "MTE1", "UB", "L1", ""),
        ("copy_cbuf_to_gm", "MTE3", "GM", "L1", ""),
    ):
        yield name, pipe, f"dst:{dst} src:{src} {_BURSTS}{more}"
        # A move exists twice: with one argument for each field, and with the packed word.
        yield name, pipe, f"dst:{dst} src:{src} config:u64{more}"
    for bits in ("_b8", "_b16", "_b32", ""):
        yield f"copy_gm_to_ubuf_align{bits}", "MTE2", f"dst:UB src:GM {_BYTES}"
        yield f"copy_ubuf_to_gm_align{bits}", "MTE3", f"dst:GM src:UB {_BYTES}"
    for suffix, letters in (
        ("b16", "fp16 bf16 int16 uint16"),
        ("b8", "int8 uint8"),
        ("b32s", "fp32 int32 uint32"),
    ):
        yield (
            f"copy_gm_to_cbuf_multi_nd2nz_{suffix}",
            "MTE2",
            "dst:L1<T> src:GM<T> sid:0..15 nd_num:0..4095 rows:0..16384 columns:0..65535 "
            "src_matrix_stride:0..65535 src_row_stride:0..65535 dst_c0_stride:0..16384 "
            "dst_row_stride:0..16384 dst_matrix_stride:0..65535",
            letters,
        )
        yield (
            f"copy_gm_to_cbuf_multi_nd2nz_{suffix}",
            "MTE2",
            "dst:L1<T> src:GM<T> xm:u64 xt:u64",
            letters,
        )


def _matrix():
    yield from _matrix_loads()
    yield from _special_loads()
    yield from _image_loads()
    yield from _products()
    yield from _matrix_moves()


def _matrix_loads():
    base = "base_idx:0..65535 repeat:1..255 src_stride:0..65535"
    for side in ("a", "b"):
        name, dst = f"load_cbuf_to_c{side}", f"dst:L0{side.upper()}<T> src:L1<T>"
        for tail in (
            "sid:0..15 transpose:bool",
            "dst_gap:0..65535 sid:0..15 transpose:bool",
            "sid:0..15 transpose:bool addr_mode:addr_cal_mode_t",
            "dst_gap:0..65535 sid:0..15 transpose:bool addr_mode:addr_cal_mode_t",
        ):
            yield name, "MTE1", f"{dst} {base} {tail}", _ANY
        yield name, "MTE1", f"{dst} config:u64 transpose:bool addr_mode:addr_cal_mode_t=0", _ANY
        for mode in ("bool", "addr_cal_mode_t"):
            tail = f"dst_gap:0..65535 addr_mode:{mode} dst_fraction_gap:0..65535"
            yield f"{name}_transpose", "MTE1", f"{dst} {base} {tail}", _ANY
        # Pointers to integers of 4 bits point to no type.
        name, dst = f"load_cbuf_to_c{side}_s4", f"dst:L0{side.upper()} src:L1"
        tail = "transpose:bool addr_mode:addr_cal_mode_t"
        yield name, "MTE1", f"{dst} {base} dst_gap:0..65535 sid:0..15 {tail}"
        yield name, "MTE1", f"{dst} config:u64 {tail}"
        name, dst = f"load_gm_to_c{side}", f"dst:L0{side.upper()}<T> src:GM<T>"
        for tail in (
            "sid:0..15",
            "dst_gap:0..65535 sid:0..15",
            "sid:0..15 addr_mode:addr_cal_mode_t",
            "dst_gap:0..65535 sid:0..15 addr_mode:addr_cal_mode_t",
        ):
            yield name, "MTE2", f"{dst} {base} {tail}", _ANY
        yield name, "MTE2", f"{dst} config:u64", _ANY
        if side == "a":
            yield "create_cbuf_matrix", "MTE2", "dst:L1 config:u64 value:number"
        yield f"set_l0{side}_2d", "MTE1", f"dst:L0{side.upper()} config:u64"
        yield f"create_c{side}_matrix", "MTE1", f"dst:L0{side.upper()} config:u64 value:number"


def _special_loads():
    """Yield the loads of integers of 4 bits, and those of sparse products, to L0B alone."""
    base = "base_idx:0..65535 repeat:1..255 src_stride:0..65535"
    for mode in ("bool", "addr_cal_mode_t"):
        tail = f"dst_gap:0..65535 addr_mode:{mode} dst_fraction_gap:0..65535"
        yield "load_cbuf_to_cb_transpose_s4", "MTE1", f"dst:L0B src:L1 {base} {tail}"
    # The address of src is in the lower half of its word, that of the places in the upper.
    operands = "dst:L0B<int8> src:L1<int8>"
    yield "load_cbuf_to_cb_sp", "MTE1", f"{operands} base_idx:0..65535 repeat:0..255"
    yield "img2colv2_cbuf_to_ca_s4", "MTE1", f"dst:L0A src:L1 {_MATRIX_OF_IMAGE}"


def _image_loads():
    for buffer, dst in (("ca", "L0A"), ("cb", "L0B"), ("ub", "UB")):
        name = f"img2col_cbuf_to_{buffer}"
        for rest in (_IMAGE, "xm:u64 xt:u64 c_size:csize_t"):
            yield name, "MTE1", f"dst:{dst}<T> src:L1<T> {rest}", "fp16 int8 uint8"
        words = "fmatrix:u64 xm:u64 xt:u64 c_size:csize_t"
        yield name, "MTE1", f"dst:{dst}<T> src:L1<T> {words}", "fp16 int8 uint8"
    words = "fp16 fp32 bf16 int8 uint8 int16 uint16 int32 uint32"
    for side in "ab":
        operands = f"dst:L0{side.upper()}<T> src:L1<T>"
        yield f"img2colv2_cbuf_to_c{side}", "MTE1", f"{operands} {_MATRIX_OF_IMAGE}", words
    yield "col2img", "V", "dst:UB<T> src:UB<T> xm:u64 xt:u64", "fp16 fp32"
    yield (
        "col2img",
        "V",
        "dst:UB<T> src:UB<T> first_h:-255..32767 pos_w:0..255 pos_h:0..255 first_w:-255..32767 "
        "repeat:1..255 stride_w:1..63 stride_h:1..63 kernel_w:1..255 kernel_h:1..255 "
        "dilation_w:1..255 dilation_h:1..255 repeat_mode:bool",
        "fp16 fp32",
    )


def _products():
    # Formats of C, A and B that a Cube multiplies; a chip file says which of them it has.
    for c, a, b in (
        ("fp32", "fp16", "fp16"),
        ("fp16", "fp16", "fp16"),
        ("fp32", "bf16", "bf16"),
        ("fp32", "fp32", "fp32"),
        ("int32", "int8", "int8"),
        ("int32", "uint8", "int8"),
        ("uint32", "uint8", "uint8"),
    ):
        operands = f"c:L0C<{c}> a:L0A<{a}> b:L0B<{b}>"
        flags = "k_direction_align:bool"
        yield "mad", "M", f"{operands} {_SIZES} init:bool"
        yield "mad", "M", f"{operands} config:u64"
        for bias in ("", " bias:address"):
            short = f"unit_flag:0..3 {flags} c_matrix_source:bool init:bool"
            yield "mad", "M", f"{operands}{bias} {_SIZES} {short}"
            offsets = "feat_offset:0..255 smask_offset:0..255"
            long = f"unit_flag:0..3 {flags} is_weight_offset:bool c_matrix_source:bool init:bool"
            yield "mad", "M", f"{operands}{bias} {_SIZES} {offsets} {long}"

    flags = "c_matrix_source:bool init:bool"
    c = "c:L0C<int32>"
    more = f"unit_flag:0..3 k_direction_align:bool {flags}"
    yield "mad_s4", "M", f"{c} a:L0A b:L0B {_SIZES} {more}"
    yield "mad_sp", "M", f"{c} a:L0A<int8> b:L0B<int8> {_SIZES} unit_flag:0..3 {flags}"


def _matrix_moves():
    for dst, src in (("UB", "L0C"), ("L0C", "UB")):
        words = {"UB": "ubuf", "L0C": "cc"}
        for shape in ("matrix", "vector"):
            name = f"copy_{shape}_{words[src]}_to_{words[dst]}"
            yield name, "V", f"dst:{dst} src:{src} {_BURSTS} cr_mode:ConvRelu_t"
    yield (
        "broadcast_ub_to_cc",
        "V",
        "dst:L0C src:UB n_burst:1..255 len_burst:1..255 src_gap:0..255 dst_gap:0..255 "
        "repeat:bool=0",
    )
    # Cores without a path from L0C to UB have these (FIX, 910B).
    for name, dst in (("copy_matrix_cc_to_gm", "GM"), ("copy_matrix_cc_to_cbuf", "L1")):
        yield (
            name,
            "FIX",
            f"dst:{dst} src:L0C sid:0..15 n_size:0..65535 m_size:0..65535 "
            "dst_stride:0..4294967295 src_stride:0..65535 unit_flag:0..3 quant_pre:QuantMode_t "
            "relu_pre:Relu_t channel_split:bool nz2nd:bool",
        )
        yield name, "FIX", f"dst:{dst} src:L0C xm:u64 xt:u64"
    yield (
        "copy_cbuf_to_bt",
        "MTE1",
        "dst:address src:L1 convert:bool n_burst:1..4095 len_burst:0..65535 src_gap:0..65535 "
        "dst_gap:0..65535",
    )
    yield (
        "copy_cbuf_to_fbuf",
        "FIX",
        "dst:FB src:L1 n_burst:0..65535 len_burst:0..65535 src_step:0..65535 dst_step:0..65535",
    )


def _registers():
    """Yield the rows of the vector unit that access registers or have no instruction."""
    yield "set_cmpmask", "V", "src:UB"
    yield "set_mov_pad_val", "S", "config:u64"
    yield "get_cmpmask", "V", "dst:UB"
    yield (
        "scatter_vnchwconv_b8",
        "V",
        "dst:ub_addr8_t src:ub_addr8_t repeat:0..255 dst_rep:0..65535 src_rep:0..65535 "
        "dst_high:bool src_high:bool",
    )
    for name in ("set_va_reg", "set_va_reg_sb"):
        yield name, "S", "register:ub_addr8_t addresses:OWN<uint64>"


def _control():
    yield "set_vector_mask", "S", "high:u64 low:u64"
    yield "set_vector_mask_dup", "S", "mask:u64"
    yield "set_mask_norm", "S", ""
    yield "set_mask_count", "S", ""
    yield "set_flag", "source", "source:pipe_t target:pipe_t register:event_t"
    yield "wait_flag", "target", "source:pipe_t target:pipe_t register:event_t"
    yield "pipe_barrier", "unit", "unit:pipe_t"
    for operation in ("none", "add", "max", "min", "f32", "f16", "bf16", "s32", "s16", "s8"):
        yield f"set_atomic_{operation}", "S", ""
    for name in ("set_fmatrix", "set_fmatrix_b", "set_padding", "set_l1_3d_size", "set_l3d_rpt"):
        yield name, "S", "config:u64"
    yield "set_fcol2img", "S", "config:u64"
    for name in ("set_nd_para", "set_fpc", "set_ctrl", "set_st_atomic_cfg", "set_quant_pre"):
        yield name, "S", "config:u64"
    for name in ("set_ffts_base_addr", "set_mask_spr", "set_channel_para"):
        yield name, "S", "config:u64"
    for name in ("set_hf32_mode", "set_hf32_trans_mode", "set_mm_layout_transform"):
        yield name, "S", "on:bool"
    for name in ("set_deqscale", "set_lrelu_alpha", "set_quant_post"):
        yield name, "S", "value:number"
    for suffix in ("", "_h", "_bf16", "_ui"):
        yield f"set_l0_set_value{suffix}", "S", "value:number"
    yield "dcci", "S", "address:ANY line:cache_line_t=0 target:dcci_dst_t=0"
    yield "dsb", "S", "kind:mem_dsb_t"
    yield "ffts_cross_core_sync", "unit", "unit:pipe_t config:u64"
    yield "wait_flag_dev", "S", "register:0..15"
    yield "wait_flag_dev", "unit", "unit:pipe_t register:0..15"


@cache
def intrinsic_table() -> Mapping[str, tuple[Intrinsic, ...]]:
    """Return the signatures of every intrinsic by name."""
    table: dict[str, list[Intrinsic]] = {}
    for rows in (_moves, _matrix, vector_rows, _registers, _control):
        for name, *rest in rows():
            # A name may have many signatures, which the compiler tells apart by number and types of
            # arguments.
            table.setdefault(name, []).append(intrinsic(name, *rest))
    return MappingProxyType({name: tuple(signatures) for name, signatures in table.items()})


def pipe_name(name: str, number: int, position: SourcePosition) -> str:
    """Return the name of a pipe that an intrinsic has as a number.

    Raises
    ------
    CceError
        If no pipe has this number, or the intrinsic takes one pipe and not all.
    """
    if number not in PIPES or (PIPES[number] == "ALL" and name != "pipe_barrier"):
        allowed = ", ".join(f"PIPE_{p}" for p in PIPES.values() if p != "ALL")
        raise CceError(position, f"{name}: a pipe must be one of {allowed}, not {number!r}")
    return PIPES[number]
