"""Arrays in FP16 that a command reads from .npy files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of

if TYPE_CHECKING:
    import numpy as np


def read_half(name: str, text: str) -> "np.ndarray":
    """Return the array of a file in FP16, and print a note if elements were rounded.

    Parameters
    ----------
    name : str
        Name of the option, without the dashes.
    text : str
        Name of a file that ends in .npy, with real numbers of any type.

    Returns
    -------
    ndarray of float16

    Raises
    ------
    UserError
        If the file cannot be read, or has other elements or finite ones above 65,504.
    """
    import numpy as np

    path = Path(text)
    if path.suffix != ".npy":
        raise UserError(f"--{name} must be a file .npy, not {text!r}")
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is a folder, a device or a pipe")
        with path.open("rb") as file:
            x = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--{name} must be an array of numbers, not {path}: {reason}") from None
    except OSError as error:
        raise UserError(f"{path}: {reason_of(error)}") from None
    if x.dtype.kind not in "fiub":
        raise UserError(f"--{name} must be an array of real numbers, not of {x.dtype}")
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    large = np.isinf(half) & np.isfinite(x)
    if large.any():
        raise UserError(
            f"--{name} must have elements up to 65,504, the largest FP16 number, not "
            f"{x[large].flat[0]:g}"
        )
    with np.errstate(invalid="ignore"):
        rounded = int((half.astype(np.float64) != x).sum() - np.isnan(half).sum())
    if rounded:
        shown = f"{rounded:,} of {x.size:,} elements"
        print(f"note: {shown} of {path} were rounded to FP16", file=sys.stderr)
    return half
