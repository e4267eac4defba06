"""Random matrices and passes for the benches of the OEI pipeline and its buffer."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.sparse.buffer import Column, CSCBeats, csc_beats, csr_beats
from vitruvian.golden.sparse.operators import PLUS, TIMES
from vitruvian.golden.sparse.pipeline import run_pass
from vitruvian.hdl.sparse.oei_config import Kind, OEIConfig

from .traffic import NAMED, codes

__all__ = [
    "FORMS",
    "Pass",
    "beats_of",
    "commands",
    "counts_of",
    "csc_payload",
    "matrix",
    "one_pass",
    "random_passes",
]

#: Forms of random matrices.
FORMS = ("sparse", "band", "arrow", "blocks", "full")


def matrix(
    rng: np.random.Generator, form: str, size: int, elements: int, format: str
) -> list[Column]:
    """Return the columns of a random square matrix with random values.

    Parameters
    ----------
    rng : Generator
    form : str
        "sparse" has elements anywhere, so that rows and columns are empty; some of them occur
        twice, and the rows of a column are in any order. "band" has elements near the diagonal.
        "arrow" has a full row, a full column and the diagonal. "blocks" has full blocks on the
        diagonal. "full" has all elements.
    size : int
        Number of rows and columns.
    elements : int
        Largest number of elements of "sparse" and of the band.
    format : str
        Format of the values.
    """
    if form == "sparse":
        rows, columns = rng.integers(0, size, (2, elements))
        again = rng.random(elements) < 0.1
        rows, columns = (np.where(again, np.roll(each, 1), each) for each in (rows, columns))
    elif form == "band":
        columns = rng.integers(0, size, elements)
        rows = np.clip(columns + rng.integers(-2, 3, elements), 0, size - 1)
    else:
        every = np.arange(size)
        row, column = np.divmod(np.arange(size * size), size)
        tip = int(rng.integers(size))
        block = int(rng.integers(1, 5))
        keep = {
            "arrow": (row == column) | (row == tip) | (column == tip),
            "blocks": row // block == column // block,
            "full": np.broadcast_to(every[0] == 0, row.shape),
        }[form]
        rows, columns = row[keep], column[keep]
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    values = codes(rng, len(rows), format)
    starts = np.searchsorted(columns, np.arange(size + 1))
    pairs = list(zip(rows.tolist(), values.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(starts.tolist())]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A pass: a matrix with as many columns as its sub-tensors have, and the vectors.

    ``z`` and ``y`` are golden's results; ``refused`` is True if the matrix needs more space than
    there is.
    """

    columns: list[Column]
    x: np.ndarray
    t: np.ndarray
    scale: int
    first: tuple[str, str]
    second: tuple[str, str]
    z: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    refused: bool


def one_pass(
    config: OEIConfig,
    columns: list[Column],
    x: np.ndarray,
    t: np.ndarray,
    scale: int,
    first: tuple[str, str],
    second: tuple[str, str],
) -> Pass:
    """Return a pass with the results of golden."""
    c = config
    z, y = run_pass(
        columns, x, t, scale, first=first, second=second,
        lanes=c.lanes, width=c.columns, format=c.format,
    )  # fmt: skip
    plan = csr_beats(columns, c.lanes, c.columns, c.capacity)
    return Pass(
        columns=columns, x=x, t=t, scale=scale, first=first, second=second,
        z=z, y=y, refused=plan.refused_at is not None,
    )  # fmt: skip


def random_passes(
    rng: np.random.Generator, config: OEIConfig, count: int, *, refused: bool = False
) -> list[Pass]:
    """Return random passes that fit in the buffer.

    Parameters
    ----------
    rng : Generator
    config : OEIConfig
    count : int
    refused : bool
        If True, a pass that does not fit follows.
    """

    def pair() -> tuple[str, str]:
        if rng.random() < 0.7:
            return NAMED[int(rng.integers(len(NAMED)))]
        return str(rng.choice(PLUS)), str(rng.choice(TIMES))

    found: list[Pass] = []
    while len(found) < count + refused:
        size = config.columns * int(rng.integers(1, config.subs + 1))
        elements = int(rng.integers(0, 2 * config.capacity))
        columns = matrix(rng, str(rng.choice(FORMS)), size, elements, config.format)
        x, t = (codes(rng, size, config.format) for _ in range(2))
        scale = int(codes(rng, 1, config.format)[0])
        made = one_pass(config, columns, x, t, scale, pair(), pair())
        if made.refused == (len(found) == count):
            found.append(made)
    return found


def counts_of(columns: Sequence[Column], config: OEIConfig) -> np.ndarray:
    """Return the number of elements of each row that the buffer can have, as (groups, lanes)."""
    rows = [row for column in columns for row, _ in column]
    return np.bincount(rows, minlength=config.rows).reshape(-1, config.lanes)


def commands(passes: Sequence[Pass], config: OEIConfig) -> dict[str, Any]:
    """Return the commands of passes as the payload of the pipeline's stream."""
    c = config
    dtype = code_dtype(c.number)
    kinds: list[Kind] = []
    groups: list[int] = []
    counts: list[np.ndarray] = []
    values: list[np.ndarray] = []
    runs: list[int] = []
    none = np.zeros(c.lanes, int), np.zeros(c.lanes, dtype)

    def put(n: int, kind: Kind, group: int, count: np.ndarray, value: np.ndarray) -> None:
        kinds.append(kind)
        groups.append(group)
        counts.append(count)
        values.append(value)
        runs.append(n)

    for n, each in enumerate(passes):
        for group, row in enumerate(counts_of(each.columns, c)):
            put(n, Kind.INDEX, group, row, none[1])
        for kind, vector in ((Kind.VECTOR, each.x), (Kind.OPERAND, each.t)):
            for group, part in enumerate(vector.reshape(-1, c.lanes)):
                put(n, kind, group, none[0], part)
        put(n, Kind.RUN, 0, *none)

    def semiring(name: str) -> dict[str, np.ndarray]:
        pairs = [getattr(passes[n], name) for n in runs]
        return {
            "plus": np.array([PLUS.index(plus) for plus, _ in pairs]),
            "times": np.array([TIMES.index(times) for _, times in pairs]),
        }

    return {
        "kind": np.array([kind.value for kind in kinds]),
        "group": np.array(groups),
        "counts": np.array(counts),
        "values": np.array(values, dtype),
        "last": np.array([len(passes[n].columns) // c.columns - 1 for n in runs]),
        "first": semiring("first"),
        "second": semiring("second"),
        "scale": np.array([passes[n].scale for n in runs], dtype),
    }


def csc_payload(beats: Sequence[CSCBeats], config: OEIConfig) -> dict[str, Any]:
    """Return the beats of matrices as the payload of a stream of columns."""
    joined = {
        name: np.concatenate([getattr(each, name) for each in beats])
        for name in ("values", "rows", "present", "last")
    }
    return {
        "lanes": {
            "value": joined["values"].astype(code_dtype(config.number)),
            "row": joined["rows"],
            "present": joined["present"].astype(np.uint8),
            "last": joined["last"].astype(np.uint8),
        }
    }


def beats_of(passes: Sequence[Pass], config: OEIConfig) -> dict[str, Any]:
    """Return the beats of the matrices of passes as the payload of the pipeline's stream."""
    return csc_payload([csc_beats(p.columns, config.lanes, config.columns) for p in passes], config)
