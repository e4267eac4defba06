"""M³XU: matrix products of wide significands in several steps on narrow multipliers."""

from vitruvian.golden.m3xu.gemm import gemm, operand_dtype, result_dtype
from vitruvian.golden.m3xu.limbs import limb_pairs, product_by_steps, split, step_shifts
from vitruvian.golden.m3xu.precision import PRECISIONS, Precision, as_precision

__all__ = [
    "PRECISIONS",
    "Precision",
    "as_precision",
    "gemm",
    "limb_pairs",
    "operand_dtype",
    "product_by_steps",
    "result_dtype",
    "split",
    "step_shifts",
]
