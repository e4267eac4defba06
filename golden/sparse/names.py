"""The names of the operators and operations of the sparse cores, in the order of their codes.

The golden models and the hardware read the codes from here.
"""

#: Formats of the cores. A minimum needs an infinity as its identity.
FORMATS = ("fp16", "bf16", "fp32")
#: Reductions ⊕ of a semiring.
PLUS = ("add", "min", "max", "or")
#: Operators ⊗ of a semiring; the element-wise core uses all of them.
TIMES = ("mul", "add", "min", "max", "and", "aril", "sub", "or")
#: Operations of a beat of the input-stationary core.
KINDS = ("add", "write", "read")
#: Operations of an instruction of the element-wise core.
OPERATIONS = (
    "load", "store", "copy", "abs", "not", "exchange", "where", "equal",
    "add", "sub", "mul", "less", "min", "max", "and", "or",
)  # fmt: skip
