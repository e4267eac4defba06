"""Messages about operands of vector instructions that are no views and no scalars."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.davinci.isa.operands import DTYPES, View, is_integer
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS


def no_view(op: str, operands: Mapping[str, Any]) -> str:
    """Return the message about the first operand that is no view.

    Parameters
    ----------
    op : str
        Name of the instruction.
    operands : mapping of str to object
        The operands, of which at least one is no view.
    """
    name, wrong = next((n, v) for n, v in operands.items() if not isinstance(v, View))
    scalar = op + "s"
    takes = scalar in VECTOR_OPS and isinstance(wrong, int | float)
    hint = f" ({scalar} takes a scalar)" if takes else ""
    return f"{name} of {op} must be a View{hint}, not {wrong!r}"


def no_scalar(op: str, scalar: Any, dtype: str) -> str:
    """Return the message about a scalar that a dtype does not have; "" if it has the scalar.

    A floating-point dtype has every number, because the scalar is rounded. An integer dtype has the
    integers of its range, whatever their Python type.

    Parameters
    ----------
    op : str
        Name of the instruction.
    dtype : str
        A key of ``DTYPES``.
    """
    # NumPy's numbers have the method too; an array with one element is not a number here.
    is_number = hasattr(scalar, "__float__") and not getattr(scalar, "shape", ())
    if not is_number:
        return f"scalar of {op} must be a number, not {scalar!r}"
    if not is_integer(dtype):
        return ""
    limits = np.iinfo(DTYPES[dtype])
    if limits.min <= scalar <= limits.max and scalar == int(scalar):
        return ""
    allowed = f"an integer from {limits.min} to {limits.max}"
    return f"scalar of {op} must be {allowed} for {dtype}, not {scalar!r}"
