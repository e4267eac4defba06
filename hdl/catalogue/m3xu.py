"""The variants of M³XU and the units that it is measured against, as in Zhang 2024, Table 2.4.

All have 8×4 outputs, 8 lanes, one alignment window, the same pipeline and the same number of slots.
They decode operands at the edge of the array, which is our best baseline.
"""

from dataclasses import replace
from typing import Any

from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.cube.choices import WIDE

_SIXTEEN_BIT = ("fp16", "bf16", "tf32")
_BASELINE = MatrixUnitConfig(
    m=8, n=4, k=8, precisions=_SIXTEEN_BIT, window=48, slots=6, assignment="edge"
)
_FP32C = replace(_BASELINE, precisions=(*_SIXTEEN_BIT, "fp32", "fp32c"))
#: The operations that a unit with FP32 operands can have.
SEMIRINGS = tuple(op.mnemonic for op in Op if op is not Op.ADDNORM)
_FAST: dict[str, Any] = {"pipeline": 4, "assignment": "pipelined", "fast": True}
_FP64 = replace(_BASELINE, window=106, multiplier_bits=14)

#: Name -> configuration. ``baseline`` is the 16-bit unit, which exists also on 12-bit multipliers
#: and with decoding in every element. ``fp32`` adds FP32, ``fp32c`` also complex FP32, and
#: ``pipelined`` is ``fp32c`` with a register stage behind the data assignment, and ``fast`` is
#: ``pipelined`` with a shorter cycle; ``baseline-fast`` is the 16-bit unit in that form.
#: ``fp32c-minplus`` and ``fp32c-semirings`` add min-plus, or the eight operations that FP32
#: operands have.
#: ``naive-fp32`` computes FP32 alone on full multipliers at the 16-bit unit's rate, and
#: ``naive-fp32-half`` at half of that rate. ``fp64`` has every precision, FP64 in four steps, and
#: ``baseline-fp64`` is the 16-bit unit with the same window and multipliers. The a100 variants
#: compute like that machine in the 16-bit modes, but FP32 like ``ieee``.
VARIANTS = {
    "baseline": _BASELINE,
    "baseline-12bit": replace(_BASELINE, multiplier_bits=12),
    "baseline-element": replace(_BASELINE, assignment="element"),
    "fp32": replace(_BASELINE, precisions=(*_SIXTEEN_BIT, "fp32")),
    "fp32c": _FP32C,
    "pipelined": replace(_FP32C, assignment="pipelined"),
    "fast": replace(_FP32C, **_FAST),
    "baseline-fast": replace(_BASELINE, **_FAST),
    "fp32c-minplus": replace(_FP32C, operations=("mma", "minplus")),
    "fp32c-semirings": replace(_FP32C, operations=SEMIRINGS),
    "naive-fp32": replace(_BASELINE, k=16, precisions=("fp32",), multiplier_bits=24),
    "naive-fp32-half": replace(_BASELINE, precisions=("fp32",), multiplier_bits=24),
    "fp64": replace(_FP64, precisions=(*_SIXTEEN_BIT, *WIDE)),
    "baseline-fp64": _FP64,
    "baseline-a100": replace(_BASELINE, preset="a100", window=None),
    "fp32-a100": replace(_BASELINE, preset="a100", precisions=(*_SIXTEEN_BIT, "fp32")),
    "fp32c-a100": replace(_FP32C, preset="a100"),
    "pipelined-a100": replace(_FP32C, preset="a100", assignment="pipelined"),
}

#: The variants that are reported by default; most of their pieces are shared.
REPORTED = ("baseline", "fp32", "fp32c", "pipelined")
#: The variants of the published table and the fast one; the others are measured only on request.
TABLE = (
    "baseline",
    "baseline-12bit",
    "fp32",
    "fp32c",
    "pipelined",
    "naive-fp32",
    "fast",
)


def variant(name: str, *, pipeline: int, window: int | None) -> MatrixUnitConfig:
    """Return a variant with another pipeline depth and, if given, another window.

    Parameters
    ----------
    name : str
        A key of ``VARIANTS``.
    pipeline : int
        Number of pipeline stages.
    window : int or None
        Fraction bits of the alignment window; None keeps the variant's own.

    Raises
    ------
    ValueError
        If a window is given for a variant with the preset of a machine, whose window is fixed.
    """
    config = replace(VARIANTS[name], pipeline=pipeline)
    if window is None:
        return config
    if config.preset != "ieee":
        raise ValueError(f"window must be left out for {name}, which has that of {config.preset}")
    return replace(config, window=window)
