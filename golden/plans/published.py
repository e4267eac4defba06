"""Plans of calls that others recorded: ``_scaled_mm`` on an H100, from the package mmaemu.

mmaemu has the choices that cuBLASLt 12.8 made for many shapes. They are read where they are
installed, and nothing of them is kept here.
"""

import warnings
from importlib import import_module
from typing import Any

from vitruvian.common.errors import UserError

from .derived import of_slices
from .plan import Plan
from .recorded import LibraryCall

#: The formats by their names in mmaemu.
_NAMES = {
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
}
#: Terms of a tile of these kernels.
_TILE = 128


def published(call: LibraryCall) -> Plan:
    """Return the plan of a call of ``_scaled_mm`` with factors by tensor on an H100.

    Raises
    ------
    UserError
        If it is another call, mmaemu is not installed, or has no choice for this shape.
    """
    if call.op != "scaled" or call.scales != "tensor" or call.bias:
        raise UserError(f"calls on the H100 must be scaled with factors by tensor, not {call}")
    try:
        mmaemu: Any = import_module("mmaemu")
    except ModuleNotFoundError as missing:
        raise UserError(
            "plans of the H100 need the package mmaemu (pip install mmaemu), which has the choices "
            "of cuBLASLt"
        ) from missing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is uncertain is said by the evidence
        try:
            choice = mmaemu.resolve_splitk(
                call.m,
                call.n,
                call.k,
                a_dtype=_NAMES[call.a],
                b_dtype=_NAMES[call.b],
                out_dtype=_NAMES[call.output],
                use_fast_accum=call.fast,
                profile="hopper",
            )
        except mmaemu.errors.MmaemuError as unknown:
            raise UserError(f"mmaemu has no choice of slices for {call}") from unknown
    slices = "1" if choice.S == 1 else f"{choice.S} × {_TILE}"
    return of_slices(call, slices, "published", gpu="h100")
