"""Random codes and columns for the benches of the sparse cores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.names import KINDS, PLUS, TIMES

#: The semirings of Zhang 2024, §4.4.3, as pairs of ⊕ and ⊗.
NAMED = (("add", "mul"), ("or", "and"), ("min", "add"), ("add", "aril"))


def format_label(config: Any) -> str:
    """Return a core's format for the name of a row, and the form of its multipliers."""
    return config.format if config.multiplier == "booth" else f"{config.format} dsp"


def codes(
    rng: np.random.Generator, shape: int | tuple[int, ...], format: FloatFormat | str
) -> np.ndarray:
    """Return random codes: bit patterns, special numbers, and small integers that cancel.

    Parameters
    ----------
    format : FloatFormat or str
        A format with infinities.

    Returns
    -------
    ndarray of unsigned int
    """
    f = as_format(format)
    dtype = code_dtype(f)
    bits = rng.integers(0, 1 << f.code_bits, shape, np.uint64).astype(dtype)
    one = f.bias << f.fraction_bits
    assert f.infinity is not None
    special = np.array(
        [0, 1, f.fraction_mask, f.min_normal, f.max_finite, f.infinity, f.canonical_nan, one],
        dtype,
    )
    special = np.concatenate([special, special | dtype.type(f.sign_mask)])
    # The codes of 1 to 4, some with a low bit set, so that sums round and cancel.
    small = one + (rng.integers(0, 3, shape) << f.fraction_bits) + rng.integers(0, 2, shape)
    small = small.astype(dtype) | np.where(rng.random(shape) < 0.5, dtype.type(f.sign_mask), 0)
    # Of all codes, 40 % are bit patterns, 15 % special numbers and 45 % small ones.
    kind = rng.random(shape)
    chosen = np.where(kind < 0.15, rng.choice(special, shape), small.astype(dtype))
    return np.where(kind > 0.6, bits, chosen).astype(dtype)


@dataclass(frozen=True, kw_only=True)
class Beats:
    """A stream of beats; see ``golden.sparse.cores.os_columns`` for the arrays."""

    a: np.ndarray
    b: np.ndarray
    present: np.ndarray
    last: np.ndarray
    plus: np.ndarray
    times: np.ndarray

    def payload(self) -> dict[str, object]:
        """Return the beats as the payload of a core's input stream."""
        return {
            "lanes": {
                "a": self.a,
                "b": self.b,
                "present": self.present.astype(np.uint8),
                "last": self.last.astype(np.uint8),
            },
            "plus": np.array([PLUS.index(name) for name in self.plus]),
            "times": np.array([TIMES.index(name) for name in self.times]),
        }


def zeros(beats: Beats, format: FloatFormat | str) -> Beats:
    """Return beats whose elements are zeros with the signs of the given ones.

    In a column with other numbers, a minimum or a sum rarely is a zero.
    """
    mask = beats.a.dtype.type(as_format(format).sign_mask)
    return replace(beats, a=beats.a & mask, b=beats.b & mask)


def lengths(rng: np.random.Generator, count: int, lanes: int) -> list[int]:
    """Return random numbers of elements of columns: none, few, about a beat, and several beats."""
    kinds = (
        lambda: 0,
        lambda: 1,
        lambda: int(rng.integers(1, lanes // 2 + 2)),
        lambda: int(rng.integers(max(lanes - 1, 1), lanes + 2)),
        lambda: int(rng.integers(lanes, 5 * lanes)),
    )
    return [kinds[int(rng.integers(len(kinds)))]() for _ in range(count)]


def columns(
    rng: np.random.Generator,
    sizes: Sequence[int],
    lanes: int,
    format: FloatFormat | str,
    *,
    gaps: float = 0.1,
    semiring: tuple[str, str] | None = None,
) -> Beats:
    """Return the beats of columns, with random elements and operators.

    Parameters
    ----------
    sizes : sequence of int
        Number of elements of each column. A column without elements takes one lane, its mark.
    lanes : int
        Lanes of a beat.
    gaps : float
        Share of lanes without an element. A mark is then sometimes in a lane after the last element
        of its column.
    semiring : pair of str, optional
        ⊕ and ⊗ of all beats. By default each beat has its own, so that a column may change them.
    """
    present: list[bool] = []
    last: list[bool] = []

    def gap() -> None:
        while rng.random() < gaps:
            present.append(False)
            last.append(False)

    for size in sizes:
        for _ in range(size):
            gap()
            present.append(True)
            last.append(False)
        gap()
        if size and rng.random() >= gaps:
            last[-1] = True
        else:
            present.append(False)
            last.append(True)
    while len(last) % lanes:
        present.append(False)
        last.append(False)
    shape = (len(last) // lanes, lanes)
    if semiring is not None:
        pairs = [semiring] * shape[0]
    else:
        # Runs of beats with one semiring, named ones half of the time.
        pairs = []
        while len(pairs) < shape[0]:
            named = NAMED[int(rng.integers(len(NAMED)))]
            other = str(rng.choice(PLUS)), str(rng.choice(TIMES))
            pair = named if rng.random() < 0.5 else other
            pairs += [pair] * int(rng.integers(1, 9))
    return Beats(
        a=codes(rng, shape, format),
        b=codes(rng, shape, format),
        present=np.array(present, bool).reshape(shape),
        last=np.array(last, bool).reshape(shape),
        plus=np.array([pair[0] for pair in pairs[: shape[0]]]),
        times=np.array([pair[1] for pair in pairs[: shape[0]]]),
    )


@dataclass(frozen=True, kw_only=True)
class RowBeats:
    """A stream of beats; see ``golden.sparse.rows.is_rows`` for the arrays."""

    a: np.ndarray
    x: np.ndarray
    columns: np.ndarray
    present: np.ndarray
    kinds: np.ndarray
    plus: np.ndarray
    times: np.ndarray

    def payload(self) -> dict[str, object]:
        """Return the beats as the payload of a core's input stream."""
        return {
            "lanes": {
                "a": self.a,
                "column": self.columns,
                "present": self.present.astype(np.uint8),
            },
            "x": self.x,
            "kind": np.array([KINDS.index(name) for name in self.kinds]),
            "plus": np.array([PLUS.index(name) for name in self.plus]),
            "times": np.array([TIMES.index(name) for name in self.times]),
        }


def rows(
    rng: np.random.Generator, count: int, lanes: int, size: int, format: FloatFormat | str
) -> RowBeats:
    """Return random beats that add, write and read, the first of which write all columns.

    Columns are random in some beats, so that many of them share a bank, ascending without gaps in
    others, and one column in all lanes in a few.

    Parameters
    ----------
    count : int
        Number of random beats between the first ones, which write, and the last ones, which read
        all columns.
    size : int
        Number of columns, a multiple of ``lanes``.
    """
    groups = np.arange(size).reshape(-1, lanes)
    kinds = rng.choice(["add", "add", "add", "write", "read"], count)
    scattered = rng.integers(0, size, (count, lanes))
    run = (rng.integers(0, size, (count, 1)) + np.arange(lanes)) % size
    form = rng.random((count, 1))
    middle = np.where(form < 0.5, scattered, np.where(form < 0.9, run, scattered[:, :1]))
    columns = np.concatenate([groups, middle, groups])
    # A beat is full, or about a third full.
    present = rng.random(columns.shape) < rng.choice([0.3, 1.0], (len(columns), 1))
    # All columns are written first, so no result depends on what the memory held before.
    present[: len(groups)] = True
    pairs = [NAMED[k] for k in rng.integers(0, len(NAMED), len(columns))]
    # Three of ten beats draw each operator alone.
    mixed = rng.random(len(columns)) < 0.3
    return RowBeats(
        a=codes(rng, columns.shape, format),
        x=codes(rng, len(columns), format),
        columns=columns,
        present=present,
        kinds=np.concatenate([["write"] * len(groups), kinds, ["read"] * len(groups)]),
        plus=np.where(mixed, rng.choice(PLUS, len(columns)), [p for p, _ in pairs]),
        times=np.where(mixed, rng.choice(TIMES, len(columns)), [q for _, q in pairs]),
    )
