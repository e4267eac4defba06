"""The vector instructions: one entry of one table for each.

Everything else that depends on the list of vector instructions is derived from ``VECTOR_OPS``:

- its row in ``OPERATIONS`` (``isa.operations``), which every builder checks against;
- its builder method (``program.vector_methods``, a generated file);
- the function that computes it (``semantics.vectors``);
- the signatures and the packed 64-bit word of its CCE intrinsics (``cce.intrinsics.vector``);
- the alignment of its result (``checks.check``).

To add an instruction that works lane by lane, write its arithmetic in ``golden.vector``, add an
entry here, run ``python -m vitruvian.sim.davinci.program.generate``, and add a test. Speeds are not
in this table: they belong to a chip and stand, with their sources, in the chip's file.

References
----------
CCE 9.0 intrinsic guide: names, order of the arguments, and layouts of the packed words.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from vitruvian.golden import vector
from vitruvian.sim.davinci.isa.vector_op import VectorField, VectorForm, VectorOp

#: Comparisons, as they end the names of intrinsics.
CONDITIONS = ("eq", "ne", "lt", "le", "gt", "ge")

#: Number of elements that vbitsort sorts, and bytes of a score with its index.
SORTED, PAIR_BYTES = 32, 8

#: Patterns of vreduce by number: pattern (i, n) keeps element i of every n. Pattern 0 reads bits.
PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}

_FLOATS = "fp16 fp32"
_NUMBERS = "fp16 fp32 int32 int16"
_ANY = "fp16 fp32 bf16 int8 uint8 int16 uint16 int32 uint32 int64 uint64"
_INTEGERS = "int16 uint16 int32 uint32"


def _integers(names: str) -> tuple[VectorField, ...]:
    return tuple(VectorField(name) for name in names.split())


_SOURCES = "src0_block_stride src0_repeat_stride src1_block_stride src1_repeat_stride"
# The ranges are the widths of the fields in the intrinsics' 64-bit word: 8 bits each.
_BINARY_ARGUMENTS = (
    "repeat:0..255 dst_blk:0..255 src0_blk:0..255 src1_blk:0..255 "
    "dst_rep:0..255 src0_rep:0..255 src1_rep:0..255"
)
_UNARY_ARGUMENTS = "repeat:0..255 dst_blk:0..65535 src_blk:0..65535 dst_rep:0..4095 src_rep:0..4095"
# Name, lowest bit and width of each field; the repeat is in the top byte of all words.
_UNARY_PACKED = (
    ("dst_blk", 0, 16),
    ("src_blk", 16, 16),
    ("dst_rep", 32, 8),
    ("src_rep", 40, 8),
    ("repeat", 56, 8),
)

BINARY = VectorForm(
    operands=("dst", "src0", "src1"),
    fields=_integers(f"repeat mask dst_block_stride dst_repeat_stride {_SOURCES}"),
    arguments=_BINARY_ARGUMENTS,
    packed=(
        ("dst_blk", 0, 8),
        ("src0_blk", 8, 8),
        ("src1_blk", 16, 8),
        ("dst_rep", 24, 8),
        ("src0_rep", 32, 8),
        ("src1_rep", 40, 8),
        ("repeat", 56, 8),
    ),
    lanewise=True,
)
UNARY = VectorForm(
    operands=("dst", "src"),
    fields=_integers(
        "repeat mask dst_block_stride dst_repeat_stride src_block_stride src_repeat_stride"
    ),
    arguments=_UNARY_ARGUMENTS,
    packed=_UNARY_PACKED,
    lanewise=True,
)
#: The intrinsic has the strides of a source too, although there is no source.
FILL = VectorForm(
    operands=("dst",),
    fields=_integers("repeat mask dst_block_stride dst_repeat_stride"),
    arguments=_UNARY_ARGUMENTS,
    packed=_UNARY_PACKED,
    lanewise=True,
)
COMPARE = VectorForm(
    operands=("src0", "src1"),
    fields=(*_integers(f"repeat mask {_SOURCES}"), VectorField("condition", "str")),
    arguments=_BINARY_ARGUMENTS,
)
_COMPARE_BITS = VectorForm(
    operands=("dst", "src0", "src1"), fields=COMPARE.fields, arguments=_BINARY_ARGUMENTS
)
_COMPARE_SCALAR = VectorForm(
    operands=("dst", "src"),
    fields=(
        *_integers("repeat mask src_block_stride src_repeat_stride"),
        VectorField("condition", "str"),
    ),
    arguments=_UNARY_ARGUMENTS,
)
_SELECT = VectorForm(
    operands=("dst", "src0", "src1", "[bits]"),
    fields=BINARY.fields,
    arguments=_BINARY_ARGUMENTS,
)
REDUCE = VectorForm(
    operands=("dst", "src"),
    fields=(
        *_integers("repeat mask dst_repeat_bytes src_block_stride src_repeat_stride"),
        VectorField("order", "str", "value_index", optional=True),
    ),
    arguments="repeat:0..255 dst_rep:0..65535 src_blk:0..65535 src_rep:0..65535",
)

_SCALAR = (VectorField("scalar", "float", argument="number"),)
_SHIFT = (
    VectorField("amount", "int", argument="0..32"),
    VectorField("round", "bool", False, optional=True),
)
# vmla alone may add FP16 products to FP32 sums.
_WIDENING = ("dst:UB<T> src0:UB<T> src1:UB<T>", "dst:UB<fp32> src0:UB<fp16> src1:UB<fp16>")
_BITS = "dst:UB<uint8,int8,uint16,uint32,uint64>"


def _binary(
    name: str, compute: Callable[..., Any], meaning: str, dtypes: str = _NUMBERS, **more: Any
) -> VectorOp:
    return VectorOp(name=name, form=BINARY, compute=compute, meaning=meaning, dtypes=dtypes, **more)


def _unary(
    name: str, compute: Callable[..., Any], meaning: str, dtypes: str = _FLOATS, **more: Any
) -> VectorOp:
    return VectorOp(name=name, form=UNARY, compute=compute, meaning=meaning, dtypes=dtypes, **more)


def _scalar(
    name: str, compute: Callable[..., Any], meaning: str, dtypes: str = _NUMBERS, **more: Any
) -> VectorOp:
    return _unary(name, compute, meaning, dtypes, fields=_SCALAR, **more)


def _reduction(name: str, results: int, meaning: str, **more: Any) -> VectorOp:
    options: dict[str, Any] = {"options": "", **more}
    return VectorOp(
        name=name,
        form=REDUCE,
        kernel="reduction",
        meaning=meaning,
        short_dst=True,
        results=results,
        word=False,
        **options,
    )


def _names(op: str) -> tuple[str, ...]:
    return tuple(f"{op}_{condition}" for condition in CONDITIONS)


def _lanewise() -> tuple[VectorOp, ...]:
    """Return the instructions whose lanes do not depend on each other."""
    return (*_of_two_operands(), *_with_a_scalar(), *_of_one_operand())


def _of_two_operands() -> tuple[VectorOp, ...]:
    return (
        _binary("vadd", vector.add, "dst = src0 + src1"),
        _binary("vsub", vector.sub, "dst = src0 − src1"),
        _binary("vmul", vector.mul, "dst = src0 · src1"),
        _binary("vmax", vector.maximum, "dst = the larger of src0 and src1"),
        _binary("vmin", vector.minimum, "dst = the smaller of src0 and src1"),
        _binary("vdiv", vector.div, "dst = src0 / src1", _FLOATS),
        _binary("vand", vector.bitwise_and, "dst = src0 AND src1, bit by bit", _ANY, bitwise=True),
        _binary("vor", vector.bitwise_or, "dst = src0 OR src1, bit by bit", _ANY, bitwise=True),
        _binary(
            "vmadd",
            # In vmadd the target is a factor, in vmla (below) the addend.
            lambda d, a, b: vector.multiply_add(d, a, b),
            "dst = dst · src0 + src1, rounded once",
            _FLOATS,
            reads_dst=True,
        ),
        _binary(
            "vmaddrelu",
            lambda d, a, b: vector.relu(vector.multiply_add(d, a, b)),
            "dst = the larger of dst · src0 + src1, rounded once, and 0",
            _FLOATS,
            reads_dst=True,
        ),
        _binary(
            "vaddrelu",
            lambda a, b: vector.relu(vector.add(a, b)),
            "dst = the larger of src0 + src1 and 0",
            "fp16 fp32 int16",
        ),
        _binary(
            "vsubrelu",
            lambda a, b: vector.relu(vector.sub(a, b)),
            "dst = the larger of src0 − src1 and 0",
            "fp16 fp32 int16",
        ),
        _binary(
            "vmla",
            lambda d, a, b: vector.multiply_add(a, b, d),
            "dst = dst + src0 · src1, rounded once",
            _FLOATS,
            reads_dst=True,
            pointers=_WIDENING,
        ),
    )


def _with_a_scalar() -> tuple[VectorOp, ...]:
    return (
        _scalar("vadds", vector.add, "dst = src + scalar"),
        _scalar("vmuls", vector.mul, "dst = src · scalar"),
        _scalar("vmaxs", vector.maximum, "dst = the larger of src and scalar"),
        _scalar("vmins", vector.minimum, "dst = the smaller of src and scalar"),
        _scalar(
            "vlrelu", vector.leaky_relu, "dst = src if it is above 0, else src · scalar", _FLOATS
        ),
        _scalar(
            "vaxpy",
            lambda d, a, scalar: vector.multiply_add(a, scalar, d),
            "dst = dst + src · scalar, rounded once",
            _FLOATS,
            reads_dst=True,
            pointers=("dst:UB<T> src:UB<T>", "dst:UB<fp32> src:UB<fp16>"),
            word=False,
        ),
    )


def _of_one_operand() -> tuple[VectorOp, ...]:
    return (
        _unary("vexp", vector.exp, "dst = e to the power of src"),
        _unary("vln", vector.ln, "dst = the natural logarithm of src"),
        _unary("vrec", vector.rec, "dst = 1 / src"),
        _unary("vrsqrt", vector.rsqrt, "dst = 1 / the square root of src"),
        _unary("vsqrt", vector.sqrt, "dst = the square root of src"),
        _unary("vabs", vector.absolute, "dst = |src|", "fp16 fp32 int16"),
        _unary("vrelu", vector.relu, "dst = the larger of src and 0", "fp16 fp32 int32"),
        _unary("vnot", vector.bitwise_not, "dst = NOT src, bit by bit", "", bitwise=True),
        VectorOp(
            name="vshl",
            form=UNARY,
            kernel="shift",
            meaning="dst = src shifted left by amount",
            fields=_SHIFT,
            dtypes=_INTEGERS,
            options="round:bool=0",
            word=False,
        ),
        VectorOp(
            name="vshr",
            form=UNARY,
            kernel="shift",
            meaning="dst = src shifted right by amount; with round, to nearest, ties up",
            fields=_SHIFT,
            dtypes=_INTEGERS,
            options="round:bool=0",
            word=False,
        ),
        VectorOp(
            name="vconv",
            form=UNARY,
            kernel="conversion",
            meaning="dst = src converted to the dtype of dst; with scale, src · scale converted",
            fields=(
                VectorField("rounding", "str", "none"),
                VectorField("scale", "float | None", None, optional=True),
            ),
            intrinsics=(),  # cce.intrinsics.table names them by dtypes and rounding
        ),
        VectorOp(
            name="vdup",
            form=FILL,
            kernel="fill",
            meaning="dst = scalar",
            fields=_SCALAR,
            intrinsics=("vector_dup",),
            dtypes="fp16 fp32 bf16 int16 uint16 int32 uint32",
        ),
    )


def _comparisons() -> tuple[VectorOp, ...]:
    return (
        VectorOp(
            name="vcmp",
            form=COMPARE,
            kernel="comparison",
            meaning="compare src0 with src1 into the mask register",
            intrinsics=_names("vcmp"),
            word=False,
        ),
        VectorOp(
            name="vcmpv",
            form=_COMPARE_BITS,
            kernel="comparison",
            meaning="compare src0 with src1 into bits in memory, one for each lane",
            intrinsics=_names("vcmpv"),
            dtypes="fp16 fp32 int32",
            pointers=(f"{_BITS} src0:UB<T> src1:UB<T>",),
            word=False,
        ),
        VectorOp(
            name="vcmpvs",
            form=_COMPARE_SCALAR,
            kernel="comparison",
            meaning="compare src with scalar into bits in memory, one for each lane",
            fields=_SCALAR,
            intrinsics=_names("vcmpvs"),
            dtypes="fp16 fp32 int32",
            pointers=(f"{_BITS} src:UB<T>",),
            word=False,
        ),
        VectorOp(
            name="vsel",
            form=_SELECT,
            kernel="selection",
            meaning="dst = src0 where the bit of the lane is set, else src1",
            options="mode:0..2=0",
            # In mode 1, src1 points to bits.
            pointers=("dst:UB<T> src0:UB<T> src1:UB<T>", "dst:UB<T> src0:UB<T> src1:UB"),
            word=False,
        ),
    )


def _reductions() -> tuple[VectorOp, ...]:
    # The order of value and index in the result is an operand of these two only.
    indexed: dict[str, Any] = {"options": "order:Order_t=0", "dtypes": "fp16 fp32 int16 int32"}
    fields = (VectorField("total", "str", "", optional=True),)
    total: dict[str, Any] = {"options": "mode:bool=0", "fields": fields}
    return (
        # The number is that of the results of a repeat; 0 says half as many as lanes.
        _reduction("vcadd", 1, "dst = the sum of each repeat", **total),
        _reduction("vcmax", 2, "dst = the largest lane of each repeat and its index", **indexed),
        _reduction("vcmin", 2, "dst = the smallest lane of each repeat and its index", **indexed),
        _reduction("vcgadd", 8, "dst = the sum of each block of 32 bytes"),
        _reduction("vcgmax", 8, "dst = the largest lane of each block of 32 bytes"),
        _reduction("vcgmin", 8, "dst = the smallest lane of each block of 32 bytes"),
        _reduction("vcpadd", 0, "dst = the sum of each pair of lanes"),
    )


def _irregular() -> tuple[VectorOp, ...]:
    """Return the instructions that move elements between lanes."""
    return (*_transpositions(), *_gathers())


def _transpositions() -> tuple[VectorOp, ...]:
    no_word: dict[str, Any] = {"options": "", "word": False}
    unary = ("dst", "src")
    return (
        VectorOp(
            name="vtranspose",
            form=VectorForm(operands=unary, fields=_integers("repeat")),
            kernel="transposition",
            meaning="transpose 16×16 elements of 16 bits",
            dtypes="uint16 int16 fp16",
            **no_word,
        ),
        VectorOp(
            name="v4dtrans",
            form=VectorForm(operands=unary, fields=_integers("repeat pixels channels mode")),
            kernel="channels",
            meaning="pixels × channels to channels × pixels in mode 0, back in mode 1",
            dtypes="uint8 int8 fp16 uint16 int16 fp32 uint32 int32",
            pointers=("dst:UB<T> src:UB<T> pixels:1..4095 channels:1..4095 mode:bool",),
            **no_word,
        ),
        VectorOp(
            name="vnchwconv",
            form=VectorForm(
                operands=(),
                fields=(
                    VectorField("dst", "Sequence[View]"),
                    VectorField("src", "Sequence[View]"),
                    *_integers("repeat dst_repeat_stride src_repeat_stride"),
                ),
                packed=(("dst_rep", 0, 16), ("src_rep", 16, 16), ("repeat", 56, 8)),
                arguments="repeat:0..255 dst_rep:0..65535 src_rep:0..65535",
            ),
            kernel="rows",
            meaning="transpose 16 rows of a block each; dst and src are tuples of 16 views",
            intrinsics=("scatter_vnchwconv_b16", "scatter_vnchwconv_b32"),
            dtypes="",
            pointers=("dst:ub_addr8_t src:ub_addr8_t",),
            options="",
        ),
        VectorOp(
            name="vbrcb",
            form=VectorForm(
                operands=unary, fields=_integers("repeat dst_block_stride dst_repeat_stride")
            ),
            kernel="broadcast",
            meaning="fill a block of dst with each of 8 elements of src",
            dtypes="fp16 fp32 bf16 int16 uint16 int32 uint32",
            pointers=("dst:UB<T> src:UB<T> dst_blk:0..65535 dst_rep:0..65535 repeat:0..255",),
            **no_word,
        ),
    )


def _gathers() -> tuple[VectorOp, ...]:
    no_word: dict[str, Any] = {"options": "", "word": False}
    unary = ("dst", "src")
    return (
        VectorOp(
            name="vgather",
            form=VectorForm(
                operands=("dst", "src", "offsets"),
                fields=_integers("repeat mask dst_repeat_stride base"),
            ),
            kernel="gather",
            meaning="lane by lane the element at byte base + offset of UB",
            dtypes="",
            pointers=tuple(
                f"dst:UB<{dtype}> src:UB<uint32> offset:0..4294967295 dst_rep:0..4095 repeat:0..255"
                for dtype in ("uint16", "uint32")
            ),
            **no_word,
        ),
        VectorOp(
            name="vreduce",
            form=VectorForm(
                operands=("dst", "src", "[src1]"),
                fields=_integers(
                    "repeat mode count src_block_stride src_repeat_stride bits_repeat_stride"
                ),
            ),
            kernel="compaction",
            meaning="keep those of count elements a repeat that pattern mode names; in mode 0, "
            "those whose bits in src1 are set",
            intrinsics=("vreducev2",),
            dtypes="",
            pointers=tuple(
                f"dst:UB<{dtype}> src0:UB<{dtype}> src1:UB<{dtype}> repeat:0..65535 "
                "src0_blk:0..255 pattern:0..7 src0_rep:0..65535 src1_rep:0..255"
                for dtype in ("uint16", "uint32")
            ),
            **no_word,
        ),
        VectorOp(
            name="vmrgsort",
            form=VectorForm(
                operands=unary, fields=(*_integers("repeat"), VectorField("lists", "Lists"))
            ),
            kernel="merge",
            meaning="merge sorted lists, each (first byte, elements), the highest score first",
            intrinsics=("vmrgsort4",),
            pointers=("dst:UB<T> lists:OWN lengths:u64 control:u64",),
            **no_word,
        ),
        VectorOp(
            name="vbitsort",
            form=VectorForm(operands=("dst", "src", "src1"), fields=_integers("repeat")),
            kernel="sort",
            meaning="sort 32 scores with their indices, the highest score first",
            pointers=("dst:UB<T> src0:UB<T> src1:UB<uint32> repeat:0..255",),
            **no_word,
        ),
        VectorOp(
            name="col2im",
            form=VectorForm(
                operands=unary,
                fields=(
                    *_integers("repeat"),
                    VectorField("patches", "Patches"),
                    VectorField("position", "tuple[int, int]"),
                    VectorField("kernel_position", "tuple[int, int]"),
                    VectorField("channel"),
                ),
            ),
            kernel="col2im",
            meaning="add fractals to the image they come from, as golden.scu.col2im_add does",
            intrinsics=(),  # its register of image sizes makes it one of cce.sink.images
        ),
    )


#: The vector instructions by name.
VECTOR_OPS: Mapping[str, VectorOp] = MappingProxyType(
    {op.name: op for op in (*_lanewise(), *_comparisons(), *_reductions(), *_irregular())}
)
