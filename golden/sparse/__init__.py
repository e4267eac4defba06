"""Sparse tensor algebra: products over semirings, and algorithms as tensor dataflow graphs."""

from vitruvian.golden.sparse.products import mxv, vxm
from vitruvian.golden.sparse.semirings import SEMIRINGS, as_semiring
from vitruvian.golden.sparse.storage import Sparse

__all__ = ["SEMIRINGS", "Sparse", "as_semiring", "mxv", "vxm"]
