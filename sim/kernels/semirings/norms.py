"""Squared distances by one matrix product: Σ(a − b)² = Σa² + Σb² − 2·Σab.

The norms are terms of the product. They are split into three FP16 numbers each, and one row of 16
terms more holds them, so a unit that takes ``addnorm`` at a quarter of its rate takes this form at
nearly the full one. The form loses the bits that cancel: its error is relative to the norms, not to
the distance, so ``addnorm`` remains the operation for close points.
"""

import numpy as np

from vitruvian.common.errors import UserError

#: Terms that the operands grow by, and the parts of a norm.
TERMS, PARTS = 16, 3


def operands(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float16 operands whose matrix product has the squared distances.

    Parameters
    ----------
    a : (M, K) ndarray of float16
    b : (K, N) ndarray of float16

    Returns
    -------
    (M, K + 16), (K + 16, N) ndarray of float16

    Raises
    ------
    ValueError
        If a norm or twice an element is beyond the range of FP16.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    rows, columns = (left**2).sum(axis=1), (right**2).sum(axis=0)
    limit = float(np.finfo(np.float16).max)
    largest = max(rows.max(initial=0), columns.max(initial=0), 2 * np.abs(left).max(initial=0))
    if not largest <= limit:
        raise UserError(f"norms must be at most {limit:g} for FP16, not {largest:g}")
    wide = np.zeros((len(rows), a.shape[1] + TERMS), np.float16)
    tall = np.zeros((a.shape[1] + TERMS, len(columns)), np.float16)
    wide[:, : a.shape[1]], tall[: a.shape[1]] = -2 * left, right
    at = a.shape[1]
    for part in range(PARTS):
        wide[:, at + part] = rows.astype(np.float16)
        tall[at + part] = 1
        wide[:, at + PARTS + part] = 1
        tall[at + PARTS + part] = columns.astype(np.float16)
        rows = rows - wide[:, at + part].astype(np.float64)
        columns = columns - tall[at + PARTS + part].astype(np.float64)
    return wide, tall
