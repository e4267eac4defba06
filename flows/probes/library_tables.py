"""Tables of absorption: the tree in which a library call adds its terms, seen from outside.

Two products of a dot product are large and cancel, and one more is a unit. The result is zero if
the unit was added to the large number before the negative one was, and the unit otherwise. So the
unit is below the common node of the pair in the tree of the sum, or it is not. One call tells this
for every pair (a row of A) and every place of the unit (a column of B).
"""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable

import numpy as np
import torch

from vitruvian.flows.probes.library_calls import DTYPES, call, extras

#: Format -> factors of the large products and of the unit, each for A and for B.
FACTORS = {
    "fp16": (2.0**15, 1.0, 2.0**-13, 1.0),
    "bf16": (2.0**40, 1.0, 1.0, 1.0),
    "fp32": (2.0**60, 1.0, 1.0, 1.0),
    "tf32": (2.0**60, 1.0, 1.0, 1.0),
    "fp64": (2.0**100, 1.0, 1.0, 1.0),
    "e4m3": (2.0**8, 2.0**8, 2.0**-6, 2.0**-6),
    "e5m2": (2.0**8, 2.0**8, 2.0**-6, 2.0**-6),
}
_CALLS = 48  # most calls for one table
_FEW = 128  # results of a unit and of zero; longer K has a second window at its end


def _spread(count: int, first: int, last: int, between: int) -> np.ndarray:
    """Return indices below ``count``: the first, the last, and some at equal distances."""
    if count <= first + last + between:
        return np.arange(count)
    middle = np.linspace(first, count - last - 1, between).round().astype(int)
    return np.unique(np.concatenate((np.arange(first), middle, np.arange(count - last, count))))


def _pairs(marks: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    """Return pairs of places: with the first one, with themselves, with the next one, at random."""
    zero = np.full(len(marks), marks[0])
    groups = [
        np.stack((zero, marks), 1),
        np.stack((marks, marks), 1),
        np.stack((marks[:-1], marks[1:]), 1),
        np.stack((rng.permutation(marks), rng.permutation(marks)), 1),
    ]
    groups[3].sort(axis=1)
    order = [g[rng.permutation(len(g))] for g in groups]
    longest = max(len(g) for g in order)
    mixed = [g[n] for n in range(longest) for g in order if n < len(g)]
    return np.array(mixed[:limit])


def _table(
    case: dict, granule: int, offsets: tuple[int, ...], start: int, pairs: np.ndarray, units
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a table of pairs and units, the places of the units, and the number of calls.

    K is divided into granules. A pair has the large product at ``offsets[0]`` of one granule and
    its negative at ``offsets[1]`` of another one; the units are at ``offsets[2:]`` of theirs. The
    entries are 0 for an absorbed unit, 1 for one that survives, 2 for another result, and 3 where
    no call was made.
    """
    m, n, k = case["m"], case["n"], case["k"]
    big_a, big_b, one_a, one_b = FACTORS[case["a"]]
    places = np.concatenate([start + units * granule + o for o in offsets[2:]])
    calls = 0
    out = np.full((len(pairs), len(places)), 3, np.uint8)
    marks, free = torch.zeros(k, device="cuda"), torch.zeros(k, device="cuda")
    every = start + np.arange((k - start) // granule) * granule
    for o in offsets[:2]:
        marks[torch.from_numpy(every + o).cuda()] = big_b
    for o in offsets[2:]:
        free[torch.from_numpy(every + o).cuda()] = one_a
    for first in range(0, len(pairs), m):
        some = pairs[first : first + m]
        a = free.repeat(m, 1)
        r = torch.arange(len(some), device="cuda")
        a[r, torch.from_numpy(start + some[:, 0] * granule + offsets[0]).cuda()] = big_a
        a[r, torch.from_numpy(start + some[:, 1] * granule + offsets[1]).cuda()] = -big_a
        a = a.to(DTYPES[case["a"]])
        for left in range(0, len(places), n):
            if calls >= _CALLS:
                return out, places, calls
            own = places[left : left + n]
            w = marks.repeat(n, 1)
            w[torch.arange(len(own), device="cuda"), torch.from_numpy(own).cuda()] = one_b
            w = w.to(DTYPES[case["b"]])
            d = call(case, a, w, extras(case, w, True))[: len(some), : len(own)].to(torch.float64)
            bits = torch.where(d == 0, 0, torch.where(d == one_a * one_b, 1, 2)).to(torch.uint8)
            out[first : first + len(some), left : left + len(own)] = bits.cpu().numpy()
            calls += 1
    return out, places, calls


def tables(case: dict, keep: Callable[[np.ndarray], dict], rng: np.random.Generator) -> list[dict]:
    """Return the records of all tables of a call: a coarse one of all K, and fine ones.

    Parameters
    ----------
    keep : callable
        Function that stores an array and returns its place.
    """
    k = case["k"]
    designs: list[tuple] = []
    if k >= 16:
        marks, units = _spread(k // 8, 32, 32, 64), _spread(k // 8, 64, 64, 128)
        pairs = _pairs(marks, 320 if case["m"] >= 64 else 64, rng)
        designs.append((8, (0, 1, 4), 0, pairs, units))
    count = min(k // 4, 32)
    last = (k - 4 * count) if k > _FEW else 0
    for start in sorted({0, last}):
        for offsets in ((0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3)):
            if count and (start == 0 or offsets == (0, 1, 2, 3)):
                near = _pairs(np.arange(count), 96 if case["m"] >= 32 else 32, rng)
                designs.append((4, offsets, start, near, np.arange(count)))
    found: list[dict] = []
    for granule, offsets, start, pairs, units in designs:
        bits, places, calls = _table(case, granule, offsets, start, pairs, units)
        found.append(
            {
                "granule": granule,
                "offsets": list(offsets),
                "start": int(start),
                "calls": calls,
                "pairs": keep(pairs.astype(np.uint16)),
                "places": keep(places.astype(np.uint32)),
                "bits": keep(bits),
            }
        )
    return found
