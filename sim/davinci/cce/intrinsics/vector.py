"""The intrinsics of the vector unit, derived from the table of vector instructions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from vitruvian.sim.davinci.isa.operands import FOURS
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.isa.vector_op import Layout, VectorOp

#: Dtypes by their names in the names of conversions.
_NAMES = {"f16": "fp16", "f32": "fp32", "bf16": "bf16"}
_NAMES |= {f"{s}{b}": f"{'u' if s == 'u' else ''}int{b}" for s in "su" for b in (8, 16, 32, 64)}

#: Letters that say how a conversion rounds; no letter is to nearest, ties to even.
_ROUNDINGS = ("", "r", "a", "f", "c", "z", "o")

_PAIRS = """f162f32 f322f16 f162s32 s322f16 f162s8 f162u8 s82f16 u82f16 f162s16 s162f16 f322s32
s322f32 f322s16 s162f32 f322s64 s642f32 f322bf16 bf162f32 bf162s32 s322s16 s322s64 s642s32
f162bf16 f322f32""".split()


def _conversion(pair: str) -> tuple[str, str]:
    source, target = next((a, b) for a in _NAMES for b in _NAMES if f"{a}2{b}" == pair)
    return _NAMES[source], _NAMES[target]


#: Roundings of conversions to integers of 4 bits; asc-devkit has no other.
_TO_FOURS = ("", "r", "a", "f", "c", "z")

#: Dtypes of source and target, and the rounding, of every name ``vconv_...``.
CONVERSIONS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {f"vconv_{p}{r}": (*_conversion(p), r or "r") for p in _PAIRS for r in _ROUNDINGS}
    | {"vconv_deq": ("int32", "fp16", "r"), "vconv_s42f16": (FOURS, "fp16", "r")}
    | {f"vconv_f162s4{r}": ("fp16", FOURS, r or "r") for r in _TO_FOURS}
)

#: Intrinsics that are no instruction of their own: vcopy becomes a vor of src with itself, and
#: vxor is read, but not modelled.
_WITHOUT_INSTRUCTION = (
    replace(VECTOR_OPS["vor"], intrinsics=("vxor",)),
    replace(
        VECTOR_OPS["vabs"],
        intrinsics=("vcopy",),
        dtypes="int16 uint16 int32 uint32 fp16 fp32 bf16",
    ),
)


def _names(op: VectorOp) -> tuple[str, ...]:
    return (op.name,) if op.intrinsics is None else op.intrinsics


def _pointers(op: VectorOp) -> tuple[str, ...]:
    """Return the alternatives for the pointers of an intrinsic."""
    if op.pointers:
        return op.pointers
    # Instructions on bits take pointers to any dtype.
    dtype = "" if op.bitwise else "<T>"
    return (" ".join(f"{name}:UB{dtype}" for name in op.operands if name[0] != "["),)


def vector_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield the signatures of the vector intrinsics as rows of ``intrinsics.table``.

    Yields
    ------
    name, pipe, parameters, letters : str
        As ``intrinsics.signature.intrinsic`` takes them.
    """
    for op in (*VECTOR_OPS.values(), *_WITHOUT_INSTRUCTION):
        arguments = [f"{f.name}:{f.argument}" for f in op.fields if f.argument]
        for pointers in _pointers(op):
            lead = " ".join((pointers, *arguments))
            for name in _names(op):
                yield name, "V", " ".join((lead, op.form.arguments, op.options)), op.dtypes
                if op.word:
                    yield name, "V", f"{lead} config:u64", op.dtypes
    for name, (source, target, _) in CONVERSIONS.items():
        op = VECTOR_OPS["vconv"]
        # Pointers to integers of 4 bits point to no type.
        types = ("" if d == FOURS else f"<{d}>" for d in (target, source))
        pointers = "dst:UB{} src:UB{}".format(*types)
        yield name, "V", f"{pointers} {op.form.arguments} {op.options}", ""
        yield name, "V", f"{pointers} config:u64", ""


#: The instruction that each intrinsic of the vector unit becomes.
VECTOR_INTRINSICS: Mapping[str, VectorOp] = MappingProxyType(
    {name: op for op in VECTOR_OPS.values() for name in _names(op)}
    | dict.fromkeys(CONVERSIONS, VECTOR_OPS["vconv"])
    | {"vcopy": VECTOR_OPS["vor"]}
)

#: Layout of the word ``config`` of every vector intrinsic that takes one.
PACKED: Mapping[str, Layout] = MappingProxyType(
    {
        name: op.form.packed
        for op in (*VECTOR_OPS.values(), *_WITHOUT_INSTRUCTION)
        if op.word
        for name in _names(op)
    }
    | dict.fromkeys(CONVERSIONS, VECTOR_OPS["vconv"].form.packed)
)
