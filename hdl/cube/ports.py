"""The inputs and outputs of a matrix unit: layouts of the payloads, and enumerations in them."""

from dataclasses import dataclass
from functools import lru_cache
from types import new_class
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data, enum

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU

from ..m3xu.lanes import bus_layout, significand_bits
from ..simd2.mode import bits_layout
from ..simd2.operand import lane_layout
from ..simd2.pair import ASSIGNMENT_BITS, ELEMENT_BITS, chosen_layout
from .choices import INT8
from .config import MatrixUnitConfig
from .tile import TileConfig


class Start(enum.Enum, shape=2):
    """The value to which a beat adds its products: zero, C, or the value of its slot.

    The unused fourth code acts like ``ACCUMULATE``.
    """

    ZERO = 0
    FROM_C = 1
    ACCUMULATE = 2


@dataclass(frozen=True, kw_only=True)
class Beat:
    """The inputs of an element in one cycle, and two values of the cycle of their result.

    Attributes
    ----------
    a, b : View of ``operand_layouts``, or Value
        The operands.
    control : View of ``control_layout``
        The operation and the slot.
    kept : Value
        The slot's value in the cycle in which the result is written.
    integer : Value
        One bit of that cycle: the beat was of INT8.
    """

    a: Any
    b: Any
    control: data.View
    kept: Value
    integer: Value


@lru_cache
def precision_enum(precisions: tuple[str, ...]) -> Any:
    """Return an enumeration of a unit's precisions; a code is an index in ``config.precisions``."""
    width = (len(precisions) - 1).bit_length()
    members = {name.upper(): code for code, name in enumerate(precisions)}
    return new_class("Precision", (enum.Enum,), {"shape": width}, lambda body: body.update(members))


@lru_cache
def operation_enum(operations: tuple[str, ...]) -> Any:
    """Return an enumeration of a unit's operations; a code is an index in ``config.operations``."""
    width = (len(operations) - 1).bit_length()
    members = {name.upper(): code for code, name in enumerate(operations)}
    return new_class("Operation", (enum.Enum,), {"shape": width}, lambda body: body.update(members))


def _precision(config: TileConfig) -> Any:
    """Return the shape of a precision's code."""
    return precision_enum(config.precisions) if config.precision_bits else 0


def beat_layout(config: TileConfig) -> data.StructLayout:
    """Return the layout of a beat: a fractal of A, a fractal of B, and the control of both.

    ``a[i]`` is row i of A and ``b[j]`` is column j of B, with the operands in rising k from bit 0.
    In a unit of ``hdl.cube.blocks``, the scales of a row or column are above its operands.
    With sparsity, ``index[i]`` has the indices of the values of ``a[i]`` in their groups of four.
    In a unit of ``hdl.cube.mixed``, ``precision`` is that of A, and ``precision_b`` that of B.
    """
    return data.StructLayout(
        {
            "a": data.ArrayLayout(config.bus_bits, config.m),
            "b": data.ArrayLayout(config.b_bus_bits, config.n),
            "index": data.ArrayLayout(config.index_bits, config.m),
            "precision": _precision(config),
            **({"precision_b": _precision(config)} if config.mixed else {}),
            "operation": operation_enum(config.operations) if config.operation_bits else 0,
            "start": Start,
            "slot": config.slot_bits,
            "emit": 1,
        }
    )


def fractal_layout(config: TileConfig) -> data.ArrayLayout:
    """Return the layout of a C or D fractal: M rows of N words."""
    return data.ArrayLayout(data.ArrayLayout(config.word_bits, config.n), config.m)


def step_layout(config: TileConfig) -> data.StructLayout:
    """Return the layout of the control bits of a data assignment.

    ``digit`` is the index of B's digit in this step. ``part`` is 1 in the steps that form the
    imaginary part of a complex product. In units with semirings, ``a`` and ``b`` control how the
    operands of these sides are decoded; with FP32 operands, ``deal`` selects their products.
    """
    if config.semirings and not config.one_pair:
        return data.StructLayout({side: bits_layout(config.ops, side) for side in "ab"})
    return data.StructLayout(
        {
            "precision": config.precision_bits,
            "digit": config.digit_bits,
            "part": int(bool(config.complex_precisions)),
        }
        | ({"deal": chosen_layout(config.ops, ASSIGNMENT_BITS)} if config.one_pair else {})
    )


def operand_layouts(config: TileConfig) -> tuple[Any, Any]:
    """Return the layouts of an element's inputs from a row of A and from a column of B.

    These are codes or decoded lanes. Beside decoded lanes, a unit with INT8 has the codes of the
    INT8 operands, and a unit whose elements compare FP32 operands has the code of the first one.
    """
    if config.assignment == "element":
        # The buses differ in width only with sparsity, which elements cannot decode.
        return config.bus_bits, config.bus_bits
    if config.semirings and not config.one_pair:
        lane = lane_layout(FORMATS["fp16"], config.ops)
        indices = data.ArrayLayout(2 if config.sparsity else 0, config.k)
        a = data.StructLayout({"lanes": data.ArrayLayout(lane, config.k), "index": indices})
        return a, data.ArrayLayout(lane, config.k * (2 if config.sparsity else 1))
    assert isinstance(config, MatrixUnitConfig), "others decode their operands in the elements"
    bits = max(M3XU[name].format.exponent_bits for name in config.floats)
    digits = [config.lane_bits] * config.lanes
    codes = 8 * config.terms(INT8) if INT8 in config.precisions else 0
    if config.one_pair and any(op.times in ("min", "max") for op in config.ops):
        codes = config.operand_bits("fp32")
    a, b = (
        data.StructLayout({"lanes": bus_layout(bits, widths), "codes": codes})
        for widths in (significand_bits(config.limb_bits, recoded=config.fast), digits)
    )
    return a, b


def control_layout(config: TileConfig) -> data.StructLayout:
    """Return the layout of an element's control bits. A field that is not needed has a width of 0.

    - ``precision``: for elements that decode their operands.
    - ``precision_b``: for elements whose operands of B may have another precision.
    - ``wide``, ``again``, ``last``: for elements that may get limbs.
    - ``chop``: if some precisions follow a machine's preset and others ``ieee``.
    - ``small``: if some results are shorter than others.
    - ``integer``: for elements that get decoded lanes and codes of INT8 operands.
    - ``mode``: for elements with semirings.
    - ``from_c``: for elements with their slots in a memory.
    - ``accumulate``, ``slot``: for all elements.
    """
    if config.one_pair:
        mode = chosen_layout(config.ops, ELEMENT_BITS)
    else:
        mode = bits_layout(config.ops) if config.semirings else 0
    decodes, stepped = config.assignment == "element", bool(config.limb_counts)
    integers, mixed = INT8 in config.precisions and not decodes, config.mixed
    return data.StructLayout(
        {
            "precision": config.precision_bits if decodes else 0,
            **({"precision_b": config.precision_bits} if mixed else {}),
            "wide": len(config.limb_counts),
            "again": int(stepped),
            "last": int(stepped),
            "chop": int(bool(config.chopped)),
            "small": int(bool(config.small_results)),
            "integer": int(integers and bool(config.floats)),
            "mode": mode,
            "from_c": int(config.slot_memory),
            "accumulate": 1,
            "slot": config.slot_bits,
        }
    )
