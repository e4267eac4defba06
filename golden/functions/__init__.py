"""Functions of a GPU: instructions by interpolation in tables, and CUDA's functions around them."""

from vitruvian.golden.functions.cuda import cuda, divide_full
from vitruvian.golden.functions.mufu import compute, instructions, missing

__all__ = ["compute", "cuda", "divide_full", "instructions", "missing"]
