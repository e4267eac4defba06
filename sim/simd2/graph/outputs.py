"""Writers of results to files: values of pairs of vertices, and neighbours of points."""

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from vitruvian.common.files import open_whole
from vitruvian.sim.simd2.graph.paths import Paths
from vitruvian.sim.simd2.graph.points import Neighbours

#: Suffixes of output files.
OUTPUT_SUFFIXES = (".npy", ".csv", ".mtx")

_NEIGHBOUR = np.dtype([("neighbour", np.int64), ("square", np.float32)])


def write_paths(paths: Paths, path: str | Path) -> None:
    """Write the values of all pairs of vertices; if writing fails, no file remains.

    Parameters
    ----------
    path : str or Path
        The suffix selects the format. ``.npy``: a float32 matrix in the order of the vertices,
        without their names. ``.csv``: the same as text, with the names of the vertices in the first
        row and the first column. ``.mtx``: coordinates of the pairs that have a finite value; pairs
        without a path are not stored. Comments state the names of the vertices unless they are 1,
        2, ….

    Raises
    ------
    ValueError
        If the suffix is none of these.
    OSError
        If the file cannot be written.
    """
    names, values = paths.graph.names, paths.values
    suffix = _suffix(path)
    if suffix == ".npy":
        with open_whole(path) as file:
            np.save(file, values, allow_pickle=False)
        return
    if suffix == ".csv":
        rows = zip(names, values, strict=True)
        _write_lines(path, _table(["", *names], ([name, *map(_text, row)] for name, row in rows)))
        return
    # Matrix Market has no infinity; 0 is stored unless it means that there is no path.
    absent = np.float32(paths.problem.op.no_edge or 0)
    stored = np.isfinite(values) & (values != absent)
    comments = [f"{paths.problem.name}: {paths.problem.title}; only finite values are stored"]
    if names != tuple(range(1, len(names) + 1)):
        plain = (" ".join(str(name).split()) for name in names)
        comments += [f"vertex {i} is {name}" for i, name in enumerate(plain, 1)]
    _write_lines(path, _coordinates(values, stored, comments))


def write_neighbours(neighbours: Neighbours, path: str | Path) -> None:
    """Write the nearest points of each point; if writing fails, no file remains.

    Points are numbered from 1.

    Parameters
    ----------
    path : str or Path
        The suffix selects the format. ``.npy``: an array of (neighbour, square) with a row for each
        point. ``.csv``: a line for each pair, with the square of the distance. ``.mtx``: the
        squares as coordinates.

    Raises
    ------
    ValueError
        If the suffix is none of these.
    OSError
        If the file cannot be written.
    """
    indices, squares = neighbours.indices, neighbours.squares
    suffix = _suffix(path)
    count = indices.shape[1]
    if suffix == ".npy":
        array = np.empty(indices.shape, _NEIGHBOUR)
        array["neighbour"], array["square"] = indices + 1, squares
        with open_whole(path) as file:
            np.save(file, array, allow_pickle=False)
        return
    points = np.repeat(np.arange(1, len(indices) + 1), count)
    triples = zip(points.tolist(), (indices.ravel() + 1).tolist(), squares.ravel(), strict=True)
    rows = ([point, other, _text(square)] for point, other, square in triples)
    if suffix == ".csv":
        _write_lines(path, _table(["point", "neighbour", "square"], rows))
        return
    size = len(indices)
    head = [
        "%%MatrixMarket matrix coordinate real general\n",
        "% knn: squares of the distances to the nearest points\n",
        f"{size} {size} {size * count}\n",
    ]
    _write_lines(path, iter([*head, *(" ".join(map(str, row)) + "\n" for row in rows)]))


def _suffix(path: str | Path) -> str:
    """Return the suffix of an output file; raise ValueError if no format has it."""
    suffix = Path(path).suffix.lower()
    if suffix not in OUTPUT_SUFFIXES:
        raise ValueError(f"output must end in {', '.join(OUTPUT_SUFFIXES)}, not {str(path)!r}")
    return suffix


def _write_lines(path: str | Path, lines: Iterator[str]) -> None:
    with open_whole(path) as file:
        for line in lines:
            file.write(line.encode())


def _table(head: list, rows: Iterator[list]) -> Iterator[str]:
    """Return the lines of a table of comma-separated values."""
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in chain([head], rows):
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _coordinates(values: np.ndarray, stored: np.ndarray, comments: list[str]) -> Iterator[str]:
    """Return the text of a Matrix Market file with the elements that are ``stored``."""
    yield "%%MatrixMarket matrix coordinate real general\n"
    yield from (f"% {text}\n" for text in comments)
    yield f"{len(values)} {len(values)} {np.count_nonzero(stored)}\n"
    for i, row in enumerate(values):
        columns = np.flatnonzero(stored[i])
        pairs = zip(columns.tolist(), row[columns], strict=True)
        yield "".join(f"{i + 1} {j + 1} {_text(value)}\n" for j, value in pairs)


def _text(value: float) -> str:
    """Return the shortest decimal that is read back as the same FP32 number."""
    text = str(np.float32(value))
    return text.removesuffix(".0")
