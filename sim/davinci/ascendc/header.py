"""The header of the recorder that is generated from the table of intrinsics."""

from functools import cache

from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.cce.language.keywords import CONSTANTS, ENUMERATIONS
from vitruvian.sim.davinci.cce.language.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    NAMED,
    VOID,
    Type,
)

#: Types by their codes in a record; ``code`` of vitruvian_recorder.h has the same order.
TYPES: tuple[Type, ...] = (
    VOID,
    *(NAMED[f"{sign}int{bits}_t"] for bits in (8, 16, 32, 64) for sign in ("", "u")),
    *(HALF, FLOAT, DOUBLE, BFLOAT),
)

#: Enumerations of intrinsics; a record has their number from 1, and 0 stands for any other.
ENUMS: tuple[str, ...] = tuple(sorted(ENUMERATIONS))

#: Constants that kernels and libraries name and that no modelled intrinsic takes.
_MORE = {
    "pipe_t": {"PIPE_MTE4": 7, "PIPE_MTE5": 8, "PIPE_V2": 9},
    "addr_cal_mode_t": {"INC": 0, "DEC": 1},
    "QuantMode_t": {
        "DEQS32": 2,
        "VREQ4": 12,
        "REQ4": 13,
        "VSHIFTS322S16": 14,
        "SHIFTS322S16": 15,
        "QF322F16_PRE": 32,
        "VQF322F16_PRE": 33,
        "QF322BF16_PRE": 34,
        "QS322BF16_PRE": 35,
        "VQF322BF16_PRE": 36,
        "VQS322BF16_PRE": 39,
    },
    "atomic_op_t": {"ATOMIC_MAX": 1, "ATOMIC_MIN": 2},
}

#: Intrinsics whose second argument points to the kernel's own memory: the number of words there.
_WORDS = {"set_va_reg": 8, "set_va_reg_sb": 8, "vmrgsort4": 4}

#: Registers that a kernel reads back, by the intrinsic that sets them.
_READ_BACK = {"set_ctrl": 0, "set_fpc": 1}

#: Intrinsics that libraries name and the simulator does not have.
_MISSING = """load_gm_to_cbuf_unzip vconcat vextract hset_flag hwait_flag vld_va_reg
    vmulconv_f162s8 vmulconv_f162u8 set_data_exp_0 set_data_exp_1 set_data_exp_2 set_data_exp_3
    copy_gm_to_ubuf_align_v2 copy_ubuf_to_gm_align_v2 st_atomic vgatherb set_intra_block
    wait_intra_block""".split()
_MISSING += [f"set_aipp_spr_{i}" for i in (*range(10), *range(18, 25))]

#: Names without an effect on data or time, which return 0.
_IGNORED = """asc_prof_start asc_prof_stop dc_preload preload get_arch_ver get_icache_prl_st get_pc
    trap __ib_set_stub __ib_wait_stub __sync_all_stub""".split()


@cache
def names() -> tuple[str, ...]:
    """Return the intrinsics of the table; a record has the index of one."""
    return tuple(sorted(intrinsic_table()))


@cache
def intrinsics_header() -> str:
    """Return the text of ``vitruvian_intrinsics.h``: enumerations, and a template for each name.

    Examples
    --------
    >>> "inline void vadd(A... a)" in intrinsics_header()
    True
    """
    lines = ["#pragma once"]
    for number, name in enumerate(ENUMS, 1):
        members = {n: v for n, (enum, v) in CONSTANTS.items() if enum == name}
        members |= _MORE.get(name, {})
        text = ", ".join(f"{n} = {v}" for n, v in members.items())
        lines.append(f"enum {name} {{ {text} }};")
        lines.append(
            f"template <> struct vitruvian::EnumCode<{name}> "
            f"{{ static constexpr uint8_t value = {number}; }};"
        )
    # The device's compiler has them in this namespace too.
    lines.append(f"namespace __cce_scalar {{ {' '.join(f'using ::{name};' for name in ENUMS)} }}")
    for number, name in enumerate(names()):
        lines.append(_template(number, name))
    for name in (*_MISSING, *_IGNORED):
        # g++ drops the value of a call in ``return call();`` of a function without a value.
        result = "uint64_t" if name.startswith("get_") else "void"
        body = f'vitruvian::missing("{name}"); ' if name in _MISSING else ""
        body += "return 0;" if result != "void" else ""
        lines.append(f"template <class... A> inline {result} {name}(A...) {{ {body} }}")
    return "\n".join(lines) + "\n"


def _template(number: int, name: str) -> str:
    if name in _WORDS:
        return (
            f"template <class F, class T, class... A> inline void {name}(F f, T *p, A... a) "
            f"{{ vitruvian::issue({number}, f, vitruvian::Words{{"
            f"reinterpret_cast<const uint64_t *>(p), {_WORDS[name]}}}, a...); }}"
        )
    signatures = intrinsic_table()[name]
    if {1} != {count for each in signatures for count in (each.fewest, len(each.parameters))}:
        return (
            f"template <class... A> inline void {name}(A... a) "
            f"{{ vitruvian::issue({number}, a...); }}"
        )
    kept = ""
    if name in _READ_BACK:
        kept = f"vitruvian::state.registers[{_READ_BACK[name]}] = uint64_t(a); "
    # A kernel's own function of this name and more arguments goes before the second one.
    return (
        f"template <class A> inline void {name}(A a) "
        f"{{ {kept}vitruvian::issue({number}, a); }}\n"
        f"inline void {name}(vitruvian::Any, ...) "
        f'{{ vitruvian::missing("{name} with more than one argument"); }}'
    )
