"""The segments of a memory: pieces that every access touches as a whole or not at all."""

import numpy as np

from vitruvian.sim.davinci.isa.operands import Span


def segments(spans: list[Span]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut a memory into segments at the bounds of all spans.

    Returns
    -------
    edges : ndarray of int64
        The first byte of each segment, ascending.
    first, low, high : ndarray of int64
        Span s covers the segments low[k] … high[k] − 1 for first[s] ≤ k < first[s + 1].
    """
    intervals = [span.intervals() for span in spans]
    counts = np.array([0] + [len(x) for x in intervals])
    flat = np.concatenate(intervals) if intervals else np.zeros((0, 2), np.int64)
    edges = np.unique(flat)
    low, high = np.searchsorted(edges, flat[:, 0]), np.searchsorted(edges, flat[:, 1])
    return edges, np.cumsum(counts), low, high
