"""The instruction that each intrinsic becomes, as expressions of its arguments in C++.

They say for the compiler what the functions of ``cce.sink`` say for the simulator; the words of
every kernel are compared in the tests. What a core in hardware lacks has no rule here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vitruvian.golden.core.encoding import CONDITIONS, ROUNDINGS
from vitruvian.sim.davinci.cce.intrinsics.signature import Intrinsic
from vitruvian.sim.davinci.cce.intrinsics.vector import CONVERSIONS, VECTOR_INTRINSICS
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, FRACTAL_BYTES
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How an intrinsic becomes an instruction.

    Attributes
    ----------
    op : str
        The operation of ``golden.core.ENCODINGS``.
    operands : mapping of str to (pointer, offset)
        For each operand, the argument that points to it, and what is added to its first byte.
    dtypes : mapping of str to str
        Operands whose dtype is not that of the pointer: a type of C++.
    values : mapping of str to str
        The other parts by the names of ``Encoding.places``.
    guard : str
        A condition under which there is no instruction.
    lanes : tuple of str
        The operands whose widest element decides how many lanes a repeat has; () without a mask.
    """

    op: str
    operands: Mapping[str, tuple[str, str]]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    guard: str = ""
    lanes: tuple[str, ...] = ()


def rule_of(signature: Intrinsic) -> Rule | None:
    """Return the rule of a signature; None if the cores in hardware have no such instruction."""
    name = signature.name
    for names, make in _RULES:
        if name in names:
            return make(signature)
    op = VECTOR_INTRINSICS.get(name)
    if op is None:
        return None
    if op.form is REDUCE:
        return _reduction(name)
    if op.name in _COMPARISONS:
        return _comparison(name)
    if op.name == "vsel" or op.form.lanewise:
        return _lanewise(signature)
    return None


def _plain(*names: str) -> dict[str, tuple[str, str]]:
    return {name: (name, "") for name in names}


def _bursts(signature: Intrinsic) -> Rule:
    has_mode = any(p.name == "byte_mode" for p in signature.parameters)
    one = "byte_mode" if has_mode else "false"
    size = f"len_burst * {BLOCK_BYTES}"
    return Rule(
        op="copy",
        operands=_plain("dst", "src"),
        values={
            "bursts": "n_burst",
            "burst_bytes": f"({one} ? len_burst : {size})",
            "dst_stride": f"({one} ? 0 : (len_burst + dst_gap) * {BLOCK_BYTES})",
            "src_stride": f"({one} ? 0 : (len_burst + src_gap) * {BLOCK_BYTES})",
        },
        guard="!n_burst || !len_burst",
    )


def _aligned(signature: Intrinsic) -> Rule:
    block = BLOCK_BYTES
    inside = f"((len_burst + {block - 1}) / {block} + %s_gap) * {block}"
    outside = "len_burst + %s_gap"
    loads = signature.name.startswith("copy_gm")
    dst, src = (inside, outside) if loads else (outside, inside)
    return Rule(
        op="copy",
        operands=_plain("dst", "src"),
        values={
            "bursts": "n_burst",
            "burst_bytes": "len_burst",
            "dst_stride": dst % "dst",
            "src_stride": src % "src",
        },
        guard="!n_burst || !len_burst",
    )


def _nd2nz(signature: Intrinsic) -> Rule:
    return Rule(
        op="nd2nz",
        operands=_plain("dst", "src"),
        values={
            "matrices": "nd_num",
            "rows": "rows",
            "columns": "columns",
            "src_matrix_stride": "src_matrix_stride * sizeof(*src)",
            "src_row_stride": "src_row_stride * sizeof(*src)",
            "dst_c0_stride": f"dst_c0_stride * {BLOCK_BYTES}",
            "dst_row_stride": f"dst_row_stride * {BLOCK_BYTES}",
            "dst_matrix_stride": "dst_matrix_stride * sizeof(*src)",
        },
        guard="!nd_num || !rows || !columns",
    )


def _fractals(signature: Intrinsic) -> Rule:
    names = {p.name for p in signature.parameters}
    transposes = "transpose" if "transpose" in names else "0"
    sign = "(addr_mode ? -1 : 1) * " if "addr_mode" in names else ""
    if signature.name.endswith("_transpose"):
        transposes = "1"
    gap = "dst_gap" if "dst_gap" in names else "0"
    return Rule(
        op="load",
        operands={"dst": ("dst", ""), "src": ("src", f"base_idx * {FRACTAL_BYTES}")},
        values={
            "transpose": transposes,
            "repeat": "repeat",
            "src_stride": f"{sign}(int32_t)src_stride * {FRACTAL_BYTES}",
            "dst_stride": f"(1 + {gap}) * {FRACTAL_BYTES}",
        },
    )


def _product(signature: Intrinsic) -> Rule | None:
    if any(p.name == "bias" for p in signature.parameters):
        return None
    return Rule(
        op="mmad",
        operands=_plain("c", "a", "b"),
        values={"init": "(init ? 0 : 2)", "m": "m", "k": "k", "n": "n"},
        guard="!m || !k || !n",
    )


def _to_ub(signature: Intrinsic) -> Rule:
    return Rule(
        op="matrix_out",
        operands=_plain("dst", "src"),
        values={
            "relu": "(cr_mode == 2 || cr_mode == 5)",
            "m": "16 * len_burst",
            "n": "16 * n_burst",
            "src_stride": "(len_burst + src_gap) * 256 * sizeof(*src)",
            "dst_stride": f"len_burst * 256 * sizeof(*dst) + dst_gap * {BLOCK_BYTES}",
        },
        guard="!n_burst || !len_burst",
    )


def _unconverted(signature: Intrinsic) -> Rule:
    elements = 256 if "matrix" in signature.name else 16
    units = {p.name: p.kind for p in signature.parameters if p.name in ("dst", "src")}
    gaps = {
        name: "256 * sizeof(*src)" if kind == "L0C" else str(BLOCK_BYTES)
        for name, kind in units.items()
    }
    size = f"len_burst * {elements} * sizeof(*src)"
    return Rule(
        op="copy",
        operands=_plain("dst", "src"),
        values={
            "bursts": "n_burst",
            "burst_bytes": size,
            "dst_stride": f"{size} + dst_gap * {gaps['dst']}",
            "src_stride": f"{size} + src_gap * {gaps['src']}",
        },
        guard="!n_burst || !len_burst",
    )


def _image(register: str) -> dict[str, str]:
    """Return the geometry of patches; a register has the image and its padding."""
    values = {
        "height": f"({register} >> 16)",
        "width": register,
        "kernel_rows": "kernel_h",
        "kernel_columns": "kernel_w",
        "stride_rows": "stride_h",
        "stride_columns": "stride_w",
        "dilation_rows": "dilation_h",
        "dilation_columns": "dilation_w",
        "row": "first_h",
        "column": "first_w",
        "kernel_row": "pos_h",
        "kernel_column": "pos_w",
        "repeat": "repeat",
    }
    for bit, side in ((32, "left"), (40, "right"), (48, "top"), (56, "bottom")):
        values[side] = f"({register} >> {bit})"
    return values


def _im2col(signature: Intrinsic) -> Rule | None:
    if any(p.name == "fmatrix" for p in signature.parameters):
        return None
    values = _image("fmatrix") | {
        "mode": "mode",
        "dst_stride": f"(mode ? jump : 1) * {FRACTAL_BYTES}",
        "channel": "channel",
        "pad_value": "padding",
    }
    return Rule(op="im2col", operands=_plain("dst", "src"), values=values)


def _col2im(signature: Intrinsic) -> Rule:
    return Rule(op="col2im", operands=_plain("dst", "src"), values=_image("fcol2img"))


def _strides(names: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for name in names:
        block = f"({name}_blk ? {name}_blk : 1)" if name == "dst" else f"{name}_blk"
        values |= {f"{name}_block_stride": block, f"{name}_repeat_stride": f"{name}_rep"}
    return values


def _moved(names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return operands that begin some repeats later, as pieces of the counting mode do."""
    return {name: (name, f"first * {name}_rep * {BLOCK_BYTES}") for name in names}


def _lanewise(signature: Intrinsic) -> Rule | None:
    name = signature.name
    op = VECTOR_INTRINSICS[name]
    names = tuple(n for n in op.operands if n[0] != "[")
    given = ("dst", "src", "src") if name == "vcopy" else names
    operands = {n: _moved((g,))[g] for n, g in zip(names, given, strict=True)}
    values = {"repeat": "count"}
    for n, g in zip(names, given, strict=True):
        values |= {k.replace(g, n, 1): v for k, v in _strides((g,)).items()}
    if name in CONVERSIONS:
        if name == "vconv_deq":
            return None
        letters = {"r": "rint", "a": "round", "f": "floor", "c": "ceil", "z": "trunc", "o": "odd"}
        values["rounding"] = str(ROUNDINGS.index(letters[CONVERSIONS[name][2]]))
    arguments = {p.name for p in signature.parameters}
    for extra in op.fields:
        if extra.name in arguments and extra.name != "scalar":
            values[extra.name] = extra.name
    if op.has_scalar:
        values["scalar"] = "scalar"
    dtypes = dict.fromkeys(names, "uint16_t") if op.bitwise else {}
    return Rule(op=op.name, operands=operands, values=values, dtypes=dtypes, lanes=names)


def _comparison(name: str) -> Rule:
    op, _, condition = name.rpartition("_")
    sources = ("src",) if op == "vcmpvs" else ("src0", "src1")
    values = {"repeat": "repeat", "condition": str(CONDITIONS.index(condition))} | _strides(sources)
    operands = _plain(*sources) if op == "vcmp" else _plain("dst", *sources)
    if op == "vcmpvs":
        values["scalar"] = "scalar"
    dtypes = {} if op == "vcmp" else {"dst": "uint8_t"}
    lanes = sources if op == "vcmp" else ()
    return Rule(
        op=op, operands=operands, values=values, dtypes=dtypes, lanes=lanes, guard="!repeat"
    )


def _reduction(name: str) -> Rule:
    op = VECTOR_OPS[name]
    step = {1: "1", 2: "(order == 2 ? 1 : 2)", 8: "8", 0: "(128 / sizeof(*src))"}[op.results]
    size = f"{step} * sizeof(*src)"
    values = {"repeat": "count", "order": "0"} | _strides(("src",))
    if op.results == 2:
        size = f"(order == 3 ? 4 : {size})"
        values["order"] = "order"
    values["dst_repeat_bytes"] = f"dst_rep * {size}"
    operands = {"dst": ("dst", f"first * dst_rep * {size}")} | _moved(("src",))
    return Rule(op=name, operands=operands, values=values, lanes=("src",))


_COMPARISONS = ("vcmp", "vcmpv", "vcmpvs")
_PATHS = "gm_to_ubuf gm_to_cbuf ubuf_to_gm ubuf_to_ubuf ubuf_to_cbuf cbuf_to_ubuf cbuf_to_gm"
_ALIGNED = [
    f"copy_{path}_align{bits}"
    for path in ("gm_to_ubuf", "ubuf_to_gm")
    for bits in ("", "_b8", "_b16", "_b32")
]
_RULES: tuple[tuple[frozenset[str], Callable[[Intrinsic], Rule | None]], ...] = (
    (frozenset(f"copy_{path}" for path in _PATHS.split()), _bursts),
    (frozenset(_ALIGNED), _aligned),
    (frozenset(f"copy_gm_to_cbuf_multi_nd2nz_{bits}" for bits in ("b8", "b16", "b32s")), _nd2nz),
    (frozenset(f"load_{s}_to_c{side}" for s in ("cbuf", "gm") for side in "ab"), _fractals),
    (frozenset(f"load_cbuf_to_c{side}_transpose" for side in "ab"), _fractals),
    (frozenset(["mad"]), _product),
    (frozenset(["copy_matrix_cc_to_ubuf"]), _to_ub),
    (
        frozenset(["copy_vector_cc_to_ubuf", "copy_vector_ubuf_to_cc", "copy_matrix_ubuf_to_cc"]),
        _unconverted,
    ),
    (frozenset(f"img2col_cbuf_to_{buffer}" for buffer in ("ca", "cb", "ub")), _im2col),
    (frozenset(["col2img"]), _col2im),
)
