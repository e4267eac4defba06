"""What a core can carry out: the reasons to refuse an instruction before it runs."""

from collections.abc import Iterator, Mapping

from vitruvian.golden.core.encoding import BUFFERS, CARRIERS, DTYPES, Encoding

from ..vector.extension import EXTRA_GROUPS, Extra
from ..vector.operations import OPERATIONS
from .config import FLAGS, FRACTAL_BYTES, CoreConfig
from .lanes import (
    COMBINED,
    CONVERSIONS,
    EXTRA_CONVERSIONS,
    EXTRA_OPS,
    INTEGER_OPS,
    INTEGERS,
    LANE_OPS,
    REDUCTIONS,
    ExtraOp,
)
from .ports import BLOCK_BYTES
from .products import PLAIN, products_of

#: Instructions of units other than V, by unit.
MOVES = {
    "MTE1": ("copy", "load", "fill", "im2col"),
    "MTE2": ("copy", "nd2nz", "load", "fill"),
    "MTE3": ("copy",),
}
SCALARS = ("scalar", "scalar_load", "scalar_store", "set_mask", "set_control")
SYNCHRONISATION = ("set_flag", "wait_flag", "pipe_barrier")
#: The buffers that a unit moves to.
TARGETS = {
    "MTE1": ("L0A", "L0B", "UB"),
    "MTE2": ("L1", "L0A", "L0B", "UB"),
    "MTE3": ("GM", "L1"),
}
#: The buffer that a unit moves from.
SOURCES = {"MTE1": "L1", "MTE2": "GM", "MTE3": "UB"}
#: The dtypes of elements that do not have two bytes.
_SIZES = {1: ("int8", "uint8"), 4: ("fp32", "int32", "uint32"), 8: ("int64", "uint64")}
_WIDE = ("fp32", "int32", "uint32")
_ANY_16 = ("fp16", "bf16", "int16", "uint16")
#: The dtypes of L0C and of the target of ``matrix_out``; the last are those of results of 64 bits.
_RESULTS = (("fp32", "fp32"), ("fp32", "fp16"), ("int32", "int32"))
_WIDE_RESULTS = ("uint64", "uint64")


def refusal(
    config: CoreConfig, encoding: Encoding, unit: str, values: Mapping[str, int]
) -> str | None:
    """Return why a core lacks an instruction, in words that follow its name; None if it has it.

    Parameters
    ----------
    unit : str
        The unit that the instruction is for.
    values : mapping of str to int
        The codes of ``Encoding.unpack``.
    """
    return next(_reasons(config, encoding, unit, _Codes(encoding, values)), None)


class _Codes:
    """The parts of an instruction, with the names of its codes."""

    def __init__(self, encoding: Encoding, values: Mapping[str, int]):
        self._values = values
        self._members = {member.name: member for member in encoding.members}
        self.operands = tuple(n for n in encoding.operands if values.get(f"{n}?", 1))

    def dtype(self, operand: str) -> str:
        return DTYPES[self._values[f"{operand}.dtype"]]

    def buffer(self, operand: str) -> str:
        return BUFFERS[self._values[f"{operand}.buffer"]]

    def has(self, name: str) -> bool:
        return bool(self._values.get(f"{name}?", 0))

    def number(self, name: str) -> int:
        return self._values[name]

    def name(self, name: str) -> str:
        return self._members[name].names[self._values[name]]


def _reasons(config: CoreConfig, encoding: Encoding, unit: str, codes: _Codes) -> Iterator[str]:
    op = encoding.op
    if op != "mmad":
        carried = [codes.dtype(name) for name in codes.operands if codes.dtype(name) in CARRIERS]
        if carried:
            yield f"must have elements of {carried[0]} as {CARRIERS[carried[0]]}"
    if op in SYNCHRONISATION:
        if op != "pipe_barrier" and codes.number("register") >= FLAGS:
            yield f"must have a flag of 0 … {FLAGS - 1}"
        return
    if op in SCALARS:
        yield from _scalar(op, unit, codes)
        return
    if unit in MOVES:
        yield from _move(op, unit, codes)
    elif unit == "FIX" and config.fix:
        yield from _fixed(config, op, codes)
    elif op == "mmad":
        yield from _product(config, codes)
    elif unit == "V":
        yield from _vector(config, op, codes)
    else:
        yield f"must not be for unit {unit}, which the core lacks"


def _scalar(op: str, unit: str, codes: _Codes) -> Iterator[str]:
    if unit != "S":
        yield f"must be for unit S, not {unit}"
    if op not in ("scalar_load", "scalar_store"):
        return
    operand = codes.operands[0]
    if codes.buffer(operand) not in ("UB", "GM"):
        yield f"must be in UB or GM, not in {codes.buffer(operand)}"
    size = element_bytes(codes.dtype(operand))
    if codes.number(operand) % size:
        yield f"must have an element at a multiple of {size} bytes"


def element_bytes(dtype: str) -> int:
    """Return the bytes of an element."""
    return next((size for size, names in _SIZES.items() if dtype in names), 2)


def _move(op: str, unit: str, codes: _Codes) -> Iterator[str]:
    if op not in MOVES[unit]:
        yield f"is not an operation of {unit} in this core"
    elif codes.buffer("dst") not in TARGETS[unit]:
        yield f"must not move to {codes.buffer('dst')} in {unit}"
    elif "src" in codes.operands and codes.buffer("src") != SOURCES[unit]:
        yield f"must move from {SOURCES[unit]} in {unit}, not from {codes.buffer('src')}"
    elif op == "copy" and codes.has("atomic"):
        yield "must not combine elements in global memory"
    elif op == "load" and codes.has("dst_fractal_stride"):
        yield "must not transpose squares of two fractals"
    elif op == "load" and codes.number("transpose") and codes.dtype("src") not in _ANY_16:
        yield f"must transpose elements of 16 bits, not {codes.dtype('src')}"
    elif op == "load" and codes.number("transpose"):
        if codes.buffer("dst") not in ("L0A", "L0B"):
            yield f"must transpose to L0A or L0B, not to {codes.buffer('dst')}"
        elif (codes.number("dst") | codes.number("dst_stride")) % FRACTAL_BYTES:
            yield "must transpose to whole fractals of 512 bytes"
    elif op == "im2col" and codes.dtype("src") in _WIDE and codes.number("pad_value"):
        yield "must pad elements of 32 bits with 0"
    elif op == "fill" and codes.dtype("dst") in ("int64", "uint64"):
        yield "must not fill with elements of 64 bits"
    elif op == "nd2nz" and codes.dtype("src") in ("int64", "uint64"):
        yield "must not have elements of 64 bits"
    if unit == "MTE1" and op != "fill":
        yield from _blocks(op, codes)


def _blocks(op: str, codes: _Codes) -> Iterator[str]:
    """Demand places of whole blocks of a move between buffers."""
    places = ["dst", "src", *(("dst_stride", "src_stride") if op in ("copy", "load") else ())]
    if any(codes.number(name) % BLOCK_BYTES for name in places):
        yield "must have operands and strides at multiples of 32 bytes"


def _product(config: CoreConfig, codes: _Codes) -> Iterator[str]:
    for name, buffer in (("c", "L0C"), ("a", "L0A"), ("b", "L0B")):
        if codes.buffer(name) != buffer:
            yield f"must have {name.upper()} in {buffer}, not in {codes.buffer(name)}"
    operation = codes.name("operation") if codes.has("operation") else PLAIN
    given = tuple(codes.dtype(name) for name in "abc")
    products = [p for p in products_of(config.tile) if p.operation == operation]
    if not products:
        yield f"must not be {operation}, which the tile of the core lacks"
    elif given not in [(p.dtype, p.dtype, p.sums) for p in products]:
        allowed = ", ".join(f"{p.dtype} with sums in {p.sums}" for p in products)
        yield f"must be of {allowed}, not {', '.join(given)}"
    elif codes.name("init") == "bias":
        yield "must not start from a bias"
    elif codes.has("a_transposed") and codes.number("a_transposed"):
        yield "must not have a transposed A"
    elif codes.number("a") % 512 or codes.number("b") % 512 or codes.number("c") % 1024:
        yield "must have operands at whole fractals"


def _vector(config: CoreConfig, op: str, codes: _Codes) -> Iterator[str]:
    if op == "copy":
        if codes.buffer("src") != "UB" or codes.buffer("dst") not in ("UB", "L0C"):
            yield f"must be from UB in V, not {codes.buffer('src')} to {codes.buffer('dst')}"
        elif codes.has("atomic"):
            yield "must not combine elements"
        yield from _blocks(op, codes)
    elif op == "matrix_out":
        yield from _matrix_out(config, codes)
    elif op == "col2im":
        kinds = ("fp16", "fp32") if config.wide_images else ("fp16",)
        yield from _buffers(codes)
        if "add" not in config.vector.groups:
            yield "needs the group add of the vector unit, which the core lacks"
        elif codes.dtype("dst") not in kinds:
            yield f"must be of {' or '.join(kinds)}, not {codes.dtype('dst')}"
        elif (codes.number("dst") | codes.number("src")) % BLOCK_BYTES:
            yield "must have operands at multiples of 32 bytes"
    elif op == "vtranspose":
        if not config.transposes:
            yield "is not an operation of this core"
        yield from _buffers(codes)
        yield from _aligned(codes, codes.operands)
    elif op == "vconv":
        yield from _conversion(config, codes)
    elif op in REDUCTIONS:
        yield from _reduction(config, op, codes)
    elif op in EXTRA_OPS:
        yield from _extra(config, EXTRA_OPS[op], codes)
    elif op in INTEGER_OPS and codes.dtype(codes.operands[-1]) in INTEGERS:
        yield from _extra(config, INTEGER_OPS[op], codes)
    elif op in LANE_OPS:
        yield from _lanewise(config, op, codes)
    else:
        yield "is not an operation of this core"


def _buffers(codes: _Codes) -> Iterator[str]:
    others = [name for name in codes.operands if codes.buffer(name) != "UB"]
    if others:
        yield f"must have operands in UB, not in {codes.buffer(others[0])}"


def _aligned(codes: _Codes, names: tuple[str, ...]) -> Iterator[str]:
    if any(codes.number(name) % BLOCK_BYTES for name in names):
        yield "must have operands at multiples of 32 bytes"


def _lanewise(config: CoreConfig, op: str, codes: _Codes) -> Iterator[str]:
    operation = LANE_OPS[op].operation
    yield from _buffers(codes)
    if operation not in config.vector.operations:
        groups = ", ".join(sorted(OPERATIONS[operation].groups - set(config.vector.groups)))
        yield f"needs the group {groups} of the vector unit, which the core lacks"
    bits = ("dst",) if op in ("vcmpv", "vcmpvs") else ()
    lanes = tuple(name for name in codes.operands if name not in bits)
    kinds = {codes.dtype(name) for name in lanes}
    allowed = {"fp16", "fp32"}
    if op in ("vand", "vor", "vnot", "vdup", "vsel"):
        allowed |= {*_ANY_16, *_WIDE}
    if op in ("vexp", "vln"):
        allowed = {"fp16"}
    if len(kinds) > 1 or not kinds <= allowed:
        yield f"must be of one of {', '.join(sorted(allowed))}, not {', '.join(sorted(kinds))}"
    if op == "vsel" and codes.has("bits"):
        yield "must take its bits from the register of comparisons"
    yield from _aligned(codes, lanes)
    for name in bits:
        size = 1 if codes.dtype("src0" if op == "vcmpv" else "src") == "fp32" else 2
        size *= config.lane_blocks
        if codes.number(name) % size:
            yield f"must have bits at multiples of {size} bytes"


def _extra(config: CoreConfig, extra: ExtraOp, codes: _Codes) -> Iterator[str]:
    (group,) = (name for name, ops in EXTRA_GROUPS.items() if extra.operation in ops)
    yield from _buffers(codes)
    if group not in config.extension.groups:
        yield f"needs the group {group} of the vector unit, which the core lacks"
    kinds = {codes.dtype(name) for name in codes.operands}
    allowed = INTEGERS if group == "integer" else ("fp16", "fp32")
    if extra.operation is Extra.ABSOLUTE:
        allowed = (*allowed, "int16")
    if len(kinds) > 1 or not kinds <= set(allowed):
        yield f"must be of one of {', '.join(allowed)}, not {', '.join(sorted(kinds))}"
    yield from _aligned(codes, codes.operands)


def _conversion(config: CoreConfig, codes: _Codes) -> Iterator[str]:
    yield from _buffers(codes)
    pair = codes.dtype("src"), codes.dtype("dst")
    if pair in EXTRA_CONVERSIONS:
        if EXTRA_CONVERSIONS[pair] not in config.extension.operations:
            yield "needs the group elements of the vector unit, which the core lacks"
        elif codes.has("scale"):
            yield "must not have a scale"
    elif pair not in CONVERSIONS:
        yield f"must not convert {pair[0]} to {pair[1]}"
    elif "convert" not in config.vector.groups:
        yield "needs the group convert of the vector unit, which the core lacks"
    elif codes.has("scale"):
        yield "must not have a scale"
    elif pair == ("fp32", "fp16") and codes.name("rounding") not in ("none", "rint"):
        yield f"must round fp32 to nearest, not by {codes.name('rounding')}"
    elif codes.name("rounding") == "odd":
        yield "must not round to odd"
    yield from _aligned(codes, codes.operands)


def _reduction(config: CoreConfig, op: str, codes: _Codes) -> Iterator[str]:
    yield from _buffers(codes)
    operation = REDUCTIONS[op]
    if operation not in config.vector.operations:
        groups = ", ".join(sorted(OPERATIONS[operation].groups - set(config.vector.groups)))
        yield f"needs the group {groups} of the vector unit, which the core lacks"
    kind = codes.dtype("src")
    if kind not in ("fp16", "fp32") or codes.dtype("dst") not in (kind, "uint32", "int32"):
        yield f"must be of fp16 or fp32, not {kind} to {codes.dtype('dst')}"
    yield from _aligned(codes, ("src",))
    size = 4 if kind == "fp32" else 2
    if op == "vcpadd":
        size = BLOCK_BYTES // 2 if config.lane_blocks == 1 else BLOCK_BYTES
    elif op not in COMBINED:
        size *= config.lane_blocks
    elif op in ("vcmax", "vcmin"):
        order = codes.name("order") if codes.has("order") else "value_index"
        size = {"value": size, "index": 4}.get(order, 2 * size)
    if codes.number("dst") % size or codes.number("dst_repeat_bytes") % size:
        yield f"must have results at multiples of {size} bytes"


def _results(config: CoreConfig, kinds: tuple[str, str]) -> Iterator[str]:
    """Demand dtypes of ``matrix_out`` that the core has."""
    known = (*_RESULTS, _WIDE_RESULTS) if config.wide_sums else _RESULTS
    if kinds not in known:
        whole = "int32 or results of 64 bits" if config.wide_sums else "int32"
        given = " to ".join(kinds)
        yield f"must be from fp32 to fp32 or fp16, or {whole} as it is, not {given}"


def _fixed(config: CoreConfig, op: str, codes: _Codes) -> Iterator[str]:
    if op != "matrix_out":
        yield "is not an operation of FIX in this core"
        return
    kinds = codes.dtype("src"), codes.dtype("dst")
    if codes.buffer("src") != "L0C" or codes.buffer("dst") not in ("GM", "L1"):
        yield f"must be from L0C to GM or L1, not {codes.buffer('src')} to {codes.buffer('dst')}"
    elif kinds == _WIDE_RESULTS and codes.name("layout") != "nz":
        yield "must have the layout nz with results of 64 bits"
    elif codes.name("quant") or codes.has("atomic"):
        yield "must not have a quantisation or atomic"
    elif codes.number("relu") and kinds[0] != "fp32":
        yield f"must have relu of fp32, not of {kinds[0]}"
    elif codes.number("dst_stride") % BLOCK_BYTES or codes.number("src_stride") % BLOCK_BYTES:
        yield "must have strides of whole blocks of 32 bytes"
    yield from _results(config, kinds)
    yield from _aligned(codes, ("dst", "src"))


def _matrix_out(config: CoreConfig, codes: _Codes) -> Iterator[str]:
    kinds = codes.dtype("src"), codes.dtype("dst")
    if codes.buffer("src") != "L0C" or codes.buffer("dst") != "UB":
        yield f"must be from L0C to UB, not {codes.buffer('src')} to {codes.buffer('dst')}"
    elif kinds[1] == "fp16" and "convert" not in config.vector.groups:
        yield "needs the group convert of the vector unit, which the core lacks"
    elif codes.name("quant") or codes.has("atomic"):
        yield "must not have a quantisation or atomic"
    elif codes.number("relu") and kinds[1] != "fp16":
        yield f"must have relu with results in fp16, not {kinds[1]}"
    elif codes.name("layout") != "nz":
        yield "must have the layout nz"
    elif codes.number("dst_stride") % BLOCK_BYTES or codes.number("src_stride") % BLOCK_BYTES:
        yield "must have strides of whole blocks of 32 bytes"
    elif (codes.number("src") | codes.number("src_stride")) % (config.lane_blocks * BLOCK_BYTES):
        yield f"must have sources at multiples of {config.lane_blocks * BLOCK_BYTES} bytes"
    yield from _results(config, kinds)
    yield from _aligned(codes, ("dst", "src"))
