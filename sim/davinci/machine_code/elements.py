"""Numbers as codes of a dtype, and back."""

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci.isa.operands import DTYPES


def code_of(value: float, dtype: str, *, convert: bool = False) -> int:
    """Return the code of a number that is rounded to a dtype.

    Parameters
    ----------
    convert : bool
        If True, a number is converted to bf16; otherwise it is a code of bf16 already.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "bf16" and convert:
            element = np.asarray(vector.convert(np.asarray(value, np.float32), "fp32", "bf16"))
        else:
            element = np.asarray(value).astype(DTYPES[dtype])
    return int(element.view(f"u{element.itemsize}"))


def number_of(code: int, dtype: str, *, convert: bool = False) -> float:
    """Return the number that a code of a dtype stands for; ``code_of`` gives the code again."""
    if dtype == "bf16" and convert:
        return float(np.uint32(code << 16).view(np.float32))
    kind = DTYPES[dtype]
    return np.array(code & (1 << 8 * kind.itemsize) - 1, f"u{kind.itemsize}").view(kind).item()
