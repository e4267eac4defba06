"""The values that the named parameters of a matrix unit can have."""

from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS

INT8 = "int8"
_FORMATS = (*FORMATS.values(), OTHER_FORMATS["fp4e2m1"])
#: The precisions whose significands fit into 11-bit multipliers.
NARROW = (*(f.name for f in _FORMATS if f.significand_bits <= 11), INT8)
#: The precisions that may need several lanes and steps (M³XU; Zhang 2024, chapter 2).
WIDE = ("fp32", "fp32c", "fp64")
#: All precisions that a unit can have, in the order of their codes.
PRECISIONS = (*NARROW, *WIDE)
#: The precisions that a unit may have whose semirings take one pair of FP32 operands per beat.
ONE_PAIR = ("fp16", "bf16", "tf32", "fp32", "fp32c")
DATAFLOWS = ("broadcast", "systolic")
#: The positions at which operands are decoded and assigned to the lanes.
ASSIGNMENTS = ("element", "edge", "pipelined")
#: Bits of an operand lane on the bus.
LANE_BITS = 16
