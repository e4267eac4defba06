"""The nine operations in plain NumPy on float32, as someone without a library would write them."""

import numpy as np

from vitruvian.golden.simd2 import Op

_FUNCTIONS = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def product(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A ⊗ B.

    Sums are matrix products of BLAS, ``addnorm`` by norms; ``orand`` counts the trues of zeros and
    ones by such a product. The others take one vector operation for ⊗ and one for ⊕ per term, on
    whole matrices.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32
    """
    if op is Op.MMA:
        return a @ b
    if op is Op.ORAND:
        return (a @ b > 0).astype(np.float32)
    if op is Op.ADDNORM:
        rows, columns = np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->j", b, b)
        return rows[:, None] + columns - 2 * (a @ b)
    plus, times = _FUNCTIONS[op.plus], _FUNCTIONS[op.times]
    d = np.full((len(a), b.shape[1]), op.identity, np.float32)
    term = np.empty_like(d)
    for k in range(len(b)):
        times(a[:, k, None], b[k], out=term)
        plus(d, term, out=d)
    return d
