"""How the vector unit carries out the operations of a program."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..vector.extension import Extra
from ..vector.operations import Operation

#: The conversions of ``vconv`` by the dtypes of source and target.
CONVERSIONS: Mapping[tuple[str, str], Operation] = MappingProxyType(
    {
        ("fp16", "fp32"): Operation.TO_FP32,
        ("fp32", "fp16"): Operation.TO_FP16,
        ("fp16", "int32"): Operation.TO_INT32,
        ("fp32", "int32"): Operation.TO_INT32,
        ("fp16", "int16"): Operation.TO_INT16,
        ("fp32", "int16"): Operation.TO_INT16,
        ("fp16", "int8"): Operation.TO_INT8,
        ("fp16", "uint8"): Operation.TO_UINT8,
    }
)


@dataclass(frozen=True, kw_only=True)
class LaneOp:
    """An operation of a program that works lane by lane.

    Attributes
    ----------
    operation : Operation
        The operation of the vector unit.
    scalar : bool
        True if the second operand is a scalar.
    two : bool
        True if the second operand is in memory.
    one : bool
        True if the first operand is in memory.
    """

    operation: Operation
    scalar: bool = False
    two: bool = False
    one: bool = True


LANE_OPS: Mapping[str, LaneOp] = MappingProxyType(
    {
        "vadd": LaneOp(operation=Operation.ADD, two=True),
        "vsub": LaneOp(operation=Operation.SUB, two=True),
        "vmul": LaneOp(operation=Operation.MUL, two=True),
        "vmax": LaneOp(operation=Operation.MAX, two=True),
        "vmin": LaneOp(operation=Operation.MIN, two=True),
        "vand": LaneOp(operation=Operation.AND, two=True),
        "vor": LaneOp(operation=Operation.OR, two=True),
        "vadds": LaneOp(operation=Operation.ADD, scalar=True),
        "vmuls": LaneOp(operation=Operation.MUL, scalar=True),
        "vmaxs": LaneOp(operation=Operation.MAX, scalar=True),
        "vmins": LaneOp(operation=Operation.MIN, scalar=True),
        "vrelu": LaneOp(operation=Operation.RELU),
        "vnot": LaneOp(operation=Operation.NOT),
        "vexp": LaneOp(operation=Operation.EXP),
        "vln": LaneOp(operation=Operation.LN),
        "vdup": LaneOp(operation=Operation.DUP, scalar=True, one=False),
        "vcmp": LaneOp(operation=Operation.COMPARE_BITS, two=True),
        "vcmpv": LaneOp(operation=Operation.COMPARE_BITS, two=True),
        "vcmpvs": LaneOp(operation=Operation.COMPARE_BITS, scalar=True),
        "vsel": LaneOp(operation=Operation.SELECT, two=True),
    }
)


@dataclass(frozen=True, kw_only=True)
class ExtraOp:
    """An operation of a program that the extension of the vector unit carries out.

    Attributes
    ----------
    operation : Extra
    scalar, two : bool
        As those of a ``LaneOp``.
    third : bool
        True if it reads the target.
    relu : bool
        True if negative results become 0.
    """

    operation: Extra
    scalar: bool = False
    two: bool = False
    third: bool = False
    relu: bool = False


EXTRA_OPS: Mapping[str, ExtraOp] = MappingProxyType(
    {
        "vdiv": ExtraOp(operation=Extra.DIVIDE, two=True),
        "vrec": ExtraOp(operation=Extra.RECIPROCAL),
        "vsqrt": ExtraOp(operation=Extra.SQRT),
        "vrsqrt": ExtraOp(operation=Extra.RSQRT),
        "vshl": ExtraOp(operation=Extra.SHIFT_LEFT),
        "vshr": ExtraOp(operation=Extra.SHIFT_RIGHT),
        "vmla": ExtraOp(operation=Extra.MULTIPLY_ADD, two=True, third=True),
        "vaxpy": ExtraOp(operation=Extra.MULTIPLY_ADD, scalar=True, third=True),
        "vmadd": ExtraOp(operation=Extra.MULTIPLY_TARGET, two=True, third=True),
        "vmaddrelu": ExtraOp(operation=Extra.MULTIPLY_TARGET, two=True, third=True, relu=True),
        "vaddrelu": ExtraOp(operation=Extra.SUM, two=True, relu=True),
        "vsubrelu": ExtraOp(operation=Extra.DIFFERENCE, two=True, relu=True),
        "vlrelu": ExtraOp(operation=Extra.LEAKY, scalar=True),
        "vabs": ExtraOp(operation=Extra.ABSOLUTE),
    }
)
#: Operations that the extension carries out on integers.
INTEGER_OPS: Mapping[str, ExtraOp] = MappingProxyType(
    {
        "vadd": ExtraOp(operation=Extra.INTEGER_ADD, two=True),
        "vsub": ExtraOp(operation=Extra.INTEGER_SUB, two=True),
        "vadds": ExtraOp(operation=Extra.INTEGER_ADD, scalar=True),
        "vaddrelu": ExtraOp(operation=Extra.INTEGER_ADD, two=True, relu=True),
        "vsubrelu": ExtraOp(operation=Extra.INTEGER_SUB, two=True, relu=True),
    }
)
#: The conversions of ``vconv`` that the extension carries out, by the dtypes of source and target.
EXTRA_CONVERSIONS: Mapping[tuple[str, str], Extra] = MappingProxyType(
    {("int8", "fp16"): Extra.FROM_BYTES, ("uint8", "fp16"): Extra.FROM_BYTES}
)
#: The integers of the extension.
INTEGERS = ("int16", "uint16", "int32", "uint32")

#: Reductions of a repeat to one result, to one for each block, or to one for each pair of lanes.
REDUCTIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "vcadd": Operation.SUM,
        "vcmax": Operation.LARGEST,
        "vcmin": Operation.SMALLEST,
        "vcgadd": Operation.SUM_BLOCK,
        "vcgmax": Operation.LARGEST_BLOCK,
        "vcgmin": Operation.SMALLEST_BLOCK,
        "vcpadd": Operation.SUM_PAIR,
    }
)
#: Those whose blocks are combined in the same way once more, and those that give a lane too.
COMBINED = ("vcadd", "vcmax", "vcmin")
INDEXED = ("vcmax", "vcmin")
