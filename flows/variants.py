"""The units that M³XU is measured against, and its own variants, as in the thesis' Table 2.4.

All have 8×4 outputs and 8 lanes, one alignment window, one pipeline, as many slots, and decode at
the edge of the array, which is our best baseline.
"""

from dataclasses import replace

from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.cube.config import WIDE

__all__ = ["REPORTED", "TABLE", "VARIANTS", "variant"]

_SIXTEEN_BIT = ("fp16", "bf16", "tf32")
_BASELINE = MatrixUnitConfig(
    m=8, n=4, k=8, precisions=_SIXTEEN_BIT, window=48, slots=6, assignment="edge"
)
_FP32C = replace(_BASELINE, precisions=(*_SIXTEEN_BIT, "fp32", "fp32c"))
_SEMIRINGS = tuple(op.mnemonic for op in Op if op is not Op.ADDNORM)
_FP64 = replace(_BASELINE, window=106, multiplier_bits=14)

#: By name: the 16-bit unit; the same on 12-bit multipliers; the same decoding in every element;
#: with FP32; with FP32 and FP32C; that with a rank behind the data assignment; with min-plus, or
#: with the eight operations that FP32 operands have; FP32 alone on full multipliers, at the 16-bit
#: unit's rate and at half of it; every precision, FP64 in four steps, and the 16-bit unit with that
#: one's window and multipliers. Those called a100 compute as that machine does in the 16-bit modes,
#: and FP32 as ``ieee`` all the same.
VARIANTS = {
    "baseline": _BASELINE,
    "baseline-12bit": replace(_BASELINE, multiplier_bits=12),
    "baseline-element": replace(_BASELINE, assignment="element"),
    "fp32": replace(_BASELINE, precisions=(*_SIXTEEN_BIT, "fp32")),
    "fp32c": _FP32C,
    "pipelined": replace(_FP32C, assignment="pipelined"),
    "fp32c-minplus": replace(_FP32C, operations=("mma", "minplus")),
    "fp32c-semirings": replace(_FP32C, operations=_SEMIRINGS),
    "naive-fp32": replace(_BASELINE, k=16, precisions=("fp32",), multiplier_bits=24),
    "naive-fp32-half": replace(_BASELINE, precisions=("fp32",), multiplier_bits=24),
    "fp64": replace(_FP64, precisions=(*_SIXTEEN_BIT, *WIDE)),
    "baseline-fp64": _FP64,
    "baseline-a100": replace(_BASELINE, preset="a100", window=None),
    "fp32-a100": replace(_BASELINE, preset="a100", precisions=(*_SIXTEEN_BIT, "fp32")),
    "fp32c-a100": replace(_FP32C, preset="a100"),
    "pipelined-a100": replace(_FP32C, preset="a100", assignment="pipelined"),
}

#: Those that are compared with the 16-bit unit; they share most of what has to be synthesised.
REPORTED = ("baseline", "fp32", "fp32c", "pipelined")
#: Those of the published table; the others are there to be asked for.
TABLE = ("baseline", "baseline-12bit", "fp32", "fp32c", "pipelined", "naive-fp32")


def variant(name: str, *, pipeline: int, window: int | None) -> MatrixUnitConfig:
    """Return a variant at a pipeline depth and with a window of its own.

    Raises
    ------
    ValueError
        A window is given for a variant that has a machine's.
    """
    config = replace(VARIANTS[name], pipeline=pipeline)
    if window is None:
        return config
    if config.preset != "ieee":
        raise ValueError(f"window must be left out for {name}, which has that of {config.preset}")
    return replace(config, window=window)
