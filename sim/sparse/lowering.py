"""A sweep as arrays: which bytes each step moves, and how long the cores take."""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.engine_compiled import COLUMNS, EngineProgram
from vitruvian.sim.sparse.layout import entry_bytes, index_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.schedule import Sweep


def lower(pattern: Pattern, architecture: Architecture, sweep: Sweep) -> EngineProgram:
    """Return a sweep of kind "oei" as the engine needs it.

    Step s loads columns and index arrays of sub-tensor s, and the vectors of sub-tensor s − 1 for
    the e-wise core, which processes sub-tensor s − 2.

    Parameters
    ----------
    pattern : Pattern
        Of a square matrix, as the output-stationary product reads it.

    Raises
    ------
    ValueError
        If a column or row is larger than a quarter of the buffer.
    """
    nonzero, entry = entry_bytes(pattern, architecture)
    capacity, value = architecture.buffer_bytes, architecture.value_bytes
    _check_room("row", _sizes(pattern.row_first, pattern.row_work, nonzero, entry), capacity)
    bounds, _ = sub_tensor_bounds(pattern, architecture)
    vectors, ewise_cycles = _vectors(pattern, architecture, sweep, bounds, arrays=2, steps=3)
    rate = architecture.bytes_per_cycle
    # The results of a block column have ``side`` elements, the last one perhaps fewer.
    width = value * sweep.is_features
    return EngineProgram(
        pattern.col_first,
        pattern.col_rows,
        pattern.row_first,
        pattern.row_cols,
        pattern.col_work,
        pattern.row_work,
        bounds,
        vectors,
        ewise_cycles,
        nonzero,
        entry,
        capacity,
        int(architecture.repack_share * capacity),
        architecture.pes,
        rate.numerator,
        rate.denominator,
        sweep.os_features,
        sweep.is_features,
        width * pattern.side,
        width * (pattern.columns - (pattern.indices - 1) * pattern.side),
    )


def product_steps(pattern: Pattern, architecture: Architecture, sweep: Sweep) -> np.ndarray:
    """Return the steps of a sweep of kind "product" or "stream".

    Nothing is held longer than the pipeline needs it: a column stays on chip for its step in the OS
    core and, in a stream, until its step in the IS core two steps later. The results of the
    input-stationary product are complete after the last column, and are then written.

    Returns
    -------
    (steps, len(COLUMNS)) ndarray of int64

    Raises
    ------
    ValueError
        If a column is larger than a quarter of the buffer.
    """
    stream = sweep.kind == "stream"
    bounds, col_bytes = sub_tensor_bounds(pattern, architecture)
    subs = len(bounds) - 1
    # Entries of one nonzero each have no prefix of their own.
    work = pattern.col_work if len(pattern.col_work) > 1 else np.arange(pattern.entries + 1)
    nonzeros = np.diff(work[pattern.col_first[bounds]])
    loaded = np.diff(col_bytes[bounds])
    # Steps behind the last load: the OS and the e-wise core, and in a stream the IS core and the
    # write of the results.
    more = 4 if stream else 2
    table = np.zeros((subs + more, len(COLUMNS)), np.int64)
    # Views by name, so that what is written to them is in the table.
    of = {name: table[:, column] for column, name in enumerate(COLUMNS)}
    of["vectors"][:], ewise_cycles = _vectors(
        pattern, architecture, sweep, bounds, arrays=1, steps=more
    )
    of["csc"][:subs] = loaded
    of["os_operations"][1 : subs + 1] = nonzeros * sweep.os_features
    if stream:
        of["is_operations"][3 : subs + 3] = nonzeros * sweep.is_features
        of["results"][-1] = architecture.value_bytes * sweep.is_features * pattern.elements
    for later in range(4 if stream else 2):
        # A sub-tensor stays until the last core that needs it has passed.
        of["csc_space"][later : later + subs] += loaded
    moved = of["csc"] + of["vectors"] + of["results"]
    rate, pes = architecture.bytes_per_cycle, architecture.pes
    cores = np.maximum(of["os_operations"], of["is_operations"])
    of["cycles"][:] = np.maximum.reduce(
        [
            np.ones_like(moved),
            -(-moved * rate.denominator // rate.numerator),
            ceil_div(cores, pes),
            ewise_cycles,
        ]
    )
    return table


def vector_steps(architecture: Architecture, sweep: Sweep) -> np.ndarray:
    """Return the single step of a sweep of kind "vectors".

    Returns
    -------
    (1, len(COLUMNS)) ndarray of int64
    """
    table = np.zeros((1, len(COLUMNS)), np.int64)
    nbytes = architecture.value_bytes * (sweep.read + sweep.written)
    rate = architecture.bytes_per_cycle
    cycles = max(
        1,
        -(-nbytes * rate.denominator // rate.numerator),
        ceil_div(sweep.operations, architecture.pes),
    )
    table[0, COLUMNS.index("vectors")] = nbytes
    table[0, COLUMNS.index("cycles")] = cycles
    return table


def _sizes(first: np.ndarray, work: np.ndarray, nonzero: int, entry: int) -> np.ndarray:
    """Return the bytes of each column (or row)."""
    return np.diff(_prefix(first, work, nonzero, entry))


def _prefix(first: np.ndarray, work: np.ndarray, nonzero: int, entry: int) -> np.ndarray:
    """Return the bytes of all columns (or rows) before each one."""
    # Each entry has an index, and as many values as it has nonzeros.
    return (first if len(work) == 1 else work[first]) * nonzero + first * entry


def _check_room(kind: str, sizes: np.ndarray, capacity: int) -> None:
    largest = int(sizes.argmax())
    if sizes[largest] > capacity // 4:
        raise ValueError(
            f"buffer must be at least four times as large as {kind} {largest} of "
            f"{sizes[largest]:,} bytes, not {capacity:,} bytes"
        )


def sub_tensor_bounds(
    pattern: Pattern, architecture: Architecture
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the sub-tensors, and the bytes of all columns before each one.

    A sub-tensor has at most ``architecture.sub_tensor`` columns and a quarter of the buffer.
    """
    nonzero, entry = entry_bytes(pattern, architecture)
    col_bytes = _prefix(pattern.col_first, pattern.col_work, nonzero, entry)
    limit = architecture.buffer_bytes // 4
    _check_room("column", np.diff(col_bytes), architecture.buffer_bytes)
    width = max(1, architecture.sub_tensor // pattern.side)
    bounds, n = [0], pattern.indices
    while bounds[-1] < n:
        first = bounds[-1]
        # As many columns as have at most ``limit`` bytes together; one always fits
        # (``_check_room``).
        last = int(np.searchsorted(col_bytes, col_bytes[first] + limit, "right")) - 1
        bounds.append(min(last, first + width, n))
    return np.array(bounds, np.int64), col_bytes


def _vectors(
    pattern: Pattern,
    architecture: Architecture,
    sweep: Sweep,
    bounds: np.ndarray,
    *,
    arrays: int,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of vectors and of index arrays, and the e-wise core's cycles, of each step.

    The vectors that operators read and write are spread over the sub-tensors in proportion to their
    columns. ``arrays`` is the number of index arrays that are read, and ``steps`` the number of
    steps after those of the loader.
    """
    subs, value = len(bounds) - 1, architecture.value_bytes
    edges = np.minimum(bounds * pattern.side, pattern.columns)
    vectors = np.zeros(subs + steps, np.int64)
    vectors[:subs] = arrays * index_bytes(pattern, architecture, bounds)
    _, uses, widths = first_uses(pattern, bounds)
    elements = np.bincount(uses, widths, subs).astype(np.int64)
    vectors[:subs] += value * sweep.os_features * elements
    # x is loaded with the columns, and the operands of operators one step later, before the e-wise
    # core needs them; its results are written in the step in which it works.
    vectors[1 : subs + 1] += value * spread(sweep.read, edges)
    vectors[2 : subs + 2] += value * spread(sweep.written, edges)
    cycles = np.zeros(subs + steps, np.int64)
    cycles[2 : subs + 2] = ceil_div(spread(sweep.operations, edges), architecture.pes)
    return vectors, cycles


def spread(total: int, edges: np.ndarray) -> np.ndarray:
    """Return whole shares of a total in proportion to the widths between the edges."""
    # Python ints, because the products exceed 64 bits. Differences of rounded sums add up to the
    # total.
    return np.diff(edges.astype(object) * total // int(edges[-1])).astype(np.int64)


def first_uses(pattern: Pattern, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which rows have entries, the step that loads a row's elements of x, and their number.

    A row's elements of x are loaded by the step that brings its first entry.
    """
    rows = np.flatnonzero(np.diff(pattern.row_first))
    # Row r of the matrix is what meets element r of x: its first entry decides when x[r] is loaded.
    steps = np.searchsorted(bounds, pattern.row_cols[pattern.row_first[rows]], "right") - 1
    return rows, steps, np.minimum(pattern.side, pattern.elements - rows * pattern.side)
