"""The vocabulary: every operation of a core, its operands and its fields.

An operation has the name of its CCE intrinsic if there is one. The name contains no dtypes, because
each operand has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vitruvian.sim.davinci.isa.vector import VECTOR_OPS


@dataclass(frozen=True, slots=True)
class Operation:
    """One word of the vocabulary.

    Attributes
    ----------
    name : str
    group : {"move", "matrix", "vector", "scalar", "sync"}
    operands : tuple of str
        Names in ``Instruction.operands``; one in brackets may be absent.
    fields : tuple of str
        Names in ``Instruction.fields``; one in brackets may be absent.
    meaning : str
        One line that says what the operation does; ``i`` counts bursts, repeats or fractals.
    """

    name: str
    group: str
    operands: tuple[str, ...]
    fields: tuple[str, ...]
    meaning: str


#: Fields of a copy that has padding around its bursts.
_PADDING = "[left] [right] [pad_bytes] [pad_code]"

#: Meaning of load.
_LOADED = (
    "fractal i of 512 bytes from src + i·src_stride to dst + i·dst_stride, transposed if "
    "asked; src_stride may be 0 or negative; with dst_fractal_stride squares of two fractals "
    "(four of 4 bits), that far apart in dst, and in src adjacent or src_fractal_stride "
    "apart; index is the first byte in L1 of 128 bytes for each fractal, the places of a "
    "sparse product"
)


def _table() -> dict[str, Operation]:
    table: dict[str, Operation] = {}

    def add(group: str, names: str, operands: str, fields: str, meaning: str) -> None:
        for name in names.split():
            words = tuple(operands.split()), tuple(fields.split())
            table[name] = Operation(name, group, *words, meaning.format(name[1:]))

    # Moves. Strides are in bytes from first byte to first byte.
    add(
        *("move", "copy", "dst src"),
        f"bursts burst_bytes dst_stride src_stride [atomic] [atomic_operation] {_PADDING}",
        "burst i of burst_bytes from src + i·src_stride to dst + i·dst_stride; with atomic, a "
        "dtype, elements are combined with those of dst by atomic_operation; left and right bytes "
        "of dst around each burst are elements of pad_bytes and pad_code",
    )
    add(
        "move",
        "nd2nz",
        "dst src",
        "matrices rows columns src_matrix_stride src_row_stride "
        "dst_c0_stride dst_row_stride dst_matrix_stride",
        "row-major matrices to fractals: a row is cut into blocks of 32 bytes, block c of row r "
        "goes to dst + c·dst_c0_stride + r·dst_row_stride; the last is filled up with zeros",
    )
    add(
        "move",
        "load",
        "dst src",
        "repeat src_stride dst_stride transpose [dst_fractal_stride] [src_fractal_stride] [index]",
        _LOADED,
    )
    add(
        "move",
        "im2col",
        "dst src",
        "repeat dst_stride patches position kernel_position channel mode pad_value",
        "fractals of patches of an image in NC1HWC0, as golden.scu.im2col_load defines them",
    )
    add("move", "fill", "dst", "value", "every element of dst is value")
    add(
        "move",
        "matrix_out",
        "dst src [scale]",
        "m n dst_stride src_stride relu quant layout [factor] [atomic] [atomic_operation]",
        "fractals of L0C to UB (unit V) or to GM or L1 (unit FIX), converted to the dtype of dst; "
        "layout is 'nz', 'split' (halves of columns) or 'nd'; strides in bytes between columns of "
        "fractals (nz), their halves (split) or rows (nd); "
        "factor is that of quant 'scalar', atomic and atomic_operation are as in copy",
    )
    # The Cube.
    add(
        "matrix",
        "mmad",
        "c a b [bias]",
        "m k n init [a_transposed] [operation] [a_layout] [sparse]",
        "c = a·b + (0 if init is 'zero', bias if 'bias', c if 'accumulate'), in fractals; "
        "operation is one of SIMD², whose operators take the places of · and +; a_layout is "
        "'vector' (a row as such) or 'even' (an even number of fractals in a row); if sparse, b "
        "has two of each four numbers of a column, at the places that its load took from index",
    )
    # The vector unit. Strides are in blocks of 32 bytes; bit l of the mask enables lane l.
    for op in VECTOR_OPS.values():
        fields = tuple(f"[{f.name}]" if f.optional else f.name for f in op.all_fields)
        table[op.name] = Operation(op.name, "vector", op.operands, fields, op.meaning)
    # The scalar unit.
    add("scalar", "scalar", "", "[cycles] [text]", "work of the scalar unit: cycles long")
    add("scalar", "scalar_load", "src", "[expected]", "one element to a register")
    add("scalar", "scalar_store", "dst", "value", "one element from a register")
    add("scalar", "set_mask", "", "mask [count]", "lane mask, or number of elements")
    add("scalar", "set_control", "", "name value", "any other control register")
    # Synchronisation.
    add("sync", "set_flag", "", "source target register", "source is done with all before it")
    add("sync", "wait_flag", "", "source target register", "target goes on after the set")
    add("sync", "pipe_barrier", "", "unit", "drain a unit, or all of the core if unit is None")
    add("sync", "cross_set", "", "register mode", "tell other cores (through global memory)")
    add("sync", "cross_wait", "", "register mode", "go on after the others' cross_set")
    return table


#: The vocabulary: every instruction's ``op`` is a key.
OPERATIONS: Mapping[str, Operation] = MappingProxyType(_table())
