"""Sparse tensor algebra: products over semirings, and algorithms as tensor dataflow graphs."""

from vitruvian.golden.sparse.products import mxm, mxv, triangles, vxm
from vitruvian.golden.sparse.semirings import SEMIRINGS, as_semiring
from vitruvian.golden.sparse.storage import Sparse

__all__ = ["SEMIRINGS", "Sparse", "as_semiring", "mxm", "mxv", "triangles", "vxm"]
