"""The decoded terms of fused sums."""

from typing import NamedTuple

import numpy as np


class Terms(NamedTuple):
    """The terms of n sums: K products and C, decoded by ``golden.fp.plain``, and their E_max."""

    sig_a: np.ndarray  # (K, n), as are the next three
    exp_a: np.ndarray
    sig_b: np.ndarray
    exp_b: np.ndarray
    sig_c: np.ndarray  # (n,), as are the next two
    exp_c: np.ndarray
    emax: np.ndarray
