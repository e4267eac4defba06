"""Keywords of the dialect: address spaces, attributes, types, and named constants.

The constants have the values of the compiler's own headers as publicly documented (CCE 9.0
intrinsic guide; the enumerations pipe_t, event_t, pad_t, ConvRelu_t, QuantMode_t and so on).
"""

#: Pointer qualifiers, and the buffer that each of them names.
SPACES = {
    "__gm__": "GM",
    "__cbuf__": "L1",
    "__ca__": "L0A",
    "__cb__": "L0B",
    "__cc__": "L0C",
    "__ubuf__": "UB",
    "__fbuf__": "FB",
    "__biasbuf__": "BT",
}

#: Attributes that do not matter to a simulation; they are removed together with their arguments.
ATTRIBUTES = frozenset(
    """aicore __aicore__ __aic__ __aiv__ __mix__ __cube__ __vector__ __host__ __device__
    __host_aicore__ __restrict__ __restrict __attribute__ __forceinline__ __inline__
    __inline __always_inline__ __noinline__ __sync_alias__ __unused__ __sync_noalias__
    __constexpr__ __kfc_workspace__ __cce_global__ __simt_callee__ __no_simd_vf_fusion__
    __launch_bounds__ __declspec noexcept __ai_device_entry__ __tiling__ register explicit
    virtual alignas""".split()
)

#: Keywords that the source cannot redefine: a #define of one of them is ignored.
RESERVED = ATTRIBUTES | SPACES.keys() | {"__global__"}

#: Macros that are defined before the first line.
PREDEFINED = {
    "GM_ADDR": "__gm__ uint8_t *",
    "INFINITY": "(1.0f / 0.0f)",
    "NAN": "(0.0f / 0.0f)",
    "FLT_MAX": "3.40282346638528859812e+38f",
    "FLT_MIN": "1.17549435082228750797e-38f",
    "FLT_EPSILON": "1.1920928955078125e-07f",
    "M_PI": "3.14159265358979323846",
}
for _bits in (8, 16, 32, 64):
    _suffix = "LL" if _bits == 64 else ""
    PREDEFINED[f"INT{_bits}_MAX"] = f"{(1 << _bits - 1) - 1}{_suffix}"
    PREDEFINED[f"INT{_bits}_MIN"] = f"(-{(1 << _bits - 1) - 1}{_suffix} - 1)"
    PREDEFINED[f"UINT{_bits}_MAX"] = f"{(1 << _bits) - 1}{'U' if _bits > 16 else ''}{_suffix}"
PREDEFINED |= {"INT_MAX": PREDEFINED["INT32_MAX"], "INT_MIN": PREDEFINED["INT32_MIN"]}
PREDEFINED |= {"UINT_MAX": PREDEFINED["UINT32_MAX"]}

#: Types besides those of C, as (kind, bytes). The kinds are i (signed), u (unsigned), f (IEEE
#: floating point) and bf (bfloat16).
TYPE_NAMES = {
    "half": ("f", 2),
    "bfloat16_t": ("bf", 2),
    "int8_t": ("i", 1),
    "int16_t": ("i", 2),
    "int32_t": ("i", 4),
    "int64_t": ("i", 8),
    "uint8_t": ("u", 1),
    "uint16_t": ("u", 2),
    "uint32_t": ("u", 4),
    "uint64_t": ("u", 8),
    "intptr_t": ("i", 8),
    "ptrdiff_t": ("i", 8),
    "ssize_t": ("i", 8),
    "uintptr_t": ("u", 8),
    "size_t": ("u", 8),
    "uint": ("u", 4),
    "uchar": ("u", 1),
    "ushort": ("u", 2),
    "ulong": ("u", 8),
}
TYPE_NAMES |= dict.fromkeys(("float16_t", "__fp16", "_Float16", "half_t"), ("f", 2))
TYPE_NAMES |= dict.fromkeys(("float32_t",), ("f", 4))
TYPE_NAMES |= dict.fromkeys(("__bf16", "bfloat16"), ("bf", 2))

_ENUMERATIONS: dict[str, dict[str, int]] = {
    "pipe_t": {
        "PIPE_S": 0,
        "PIPE_V": 1,
        "PIPE_M": 2,
        "PIPE_MTE1": 3,
        "PIPE_MTE2": 4,
        "PIPE_MTE3": 5,
        "PIPE_ALL": 6,
        "PIPE_FIX": 10,
    },
    "event_t": {f"EVENT_ID{i}": i for i in range(8)},
    "pad_t": {"PAD_NONE": 0} | {f"PAD_MODE{i}": i for i in range(1, 9)},
    "bm_t": {"BM_DISABLE": 0, "BM_ENABLE": 1},
    "addr_cal_mode_t": {"inc": 0, "dec": 1},
    "csize_t": {"CSIZE0": 0, "CSIZE1": 1},
    "Order_t": {"VALUE_INDEX": 0, "INDEX_VALUE": 1, "ONLY_VALUE": 2, "ONLY_INDEX": 3},
    "ub_addr8_t": {f"VA{i}": i for i in range(8)},
    "vpart_t": {"L128": 0, "H128": 1},
    "mem_dsb_t": {"DSB_ALL": 0, "DSB_DDR": 1, "DSB_UB": 2, "DSB_SEQ": 3},
    "cache_line_t": {"SINGLE_CACHE_LINE": 0, "ENTIRE_DATA_CACHE": 1},
    "dcci_dst_t": {
        "CACHELINE_ALL": 0,
        "CACHELINE_UB": 1,
        "CACHELINE_OUT": 2,
        "CACHELINE_ATOMIC": 3,
    },
    "atomic_type_t": {
        "ATOMIC_NONE": 0,
        "ATOMIC_F32": 1,
        "ATOMIC_F16": 2,
        "ATOMIC_S16": 3,
        "ATOMIC_S32": 4,
        "ATOMIC_S8": 5,
        "ATOMIC_BF16": 6,
    },
    "atomic_op_t": {"ATOMIC_SUM": 0},
    "unit_flag_t": {"UFMode0": 0, "UFMode2": 2, "UFMode3": 3},
    "vtype_t": {
        "b8": 0,
        "b16": 1,
        "b32": 2,
        "s8": 3,
        "s32": 4,
        "f16": 5,
        "fmix": 6,
        "f32": 7,
    },
    "ConvRelu_t": {
        "CRMODE_NONE": 0,
        "CRMODE_F32toF16_NONE": 1,
        "CRMODE_F32toF16_RELU": 2,
        "CRMODE_S32toF16_NONE": 3,
        "CRMODE_F16toF32_NONE": 4,
        "CRMODE_NONE_RELU": 5,
        "CRMODE_F16_MUL": 6,
        "CRMODE_S32toF16_DEQSCALE_SPR": 7,
        "CRMODE_DEQSCALE_VDEQ8": 8,
        "CRMODE_DEQSCALE_DEQ8": 9,
        "CRMODE_DEQSCALE_VDEQ16": 10,
        "CRMODE_DEQSCALE_DEQ16": 11,
        "CRMODE_DEQSCALE_VDEQS16": 12,
        "CRMODE_DEQSCALE_DEQS16": 13,
    },
    "QuantMode_t": {
        "NoQuant": 0,
        "F322F16": 1,
        "VREQ8": 8,
        "REQ8": 9,
        "VDEQF16": 10,
        "DEQF16": 11,
        "F322BF16": 16,
        "VQF322B8_PRE": 23,
        "QF322B8_PRE": 24,
        "VDEQS16": 27,
        "DEQS16": 28,
    },
    "Relu_t": {"NoRELU": 0, "NormalRELU": 1, "LeakyRELU": 2, "PRELU": 3},
}

#: The (enumeration, value) of each named constant.
CONSTANTS = {
    name: (enumeration, value)
    for enumeration, members in _ENUMERATIONS.items()
    for name, value in members.items()
}
#: The values of each enumeration.
ENUMERATIONS = {name: tuple(members.values()) for name, members in _ENUMERATIONS.items()}
TYPE_NAMES |= dict.fromkeys(_ENUMERATIONS, ("i", 4))
