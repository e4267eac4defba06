"""Values of pairs of vertices, and neighbours of points, written to files."""

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from vitruvian.files import open_whole
from vitruvian.sim.simd2.graph.points import Neighbours
from vitruvian.sim.simd2.graph.problems import Paths

__all__ = ["OUTPUT_SUFFIXES", "write_neighbours", "write_paths"]

#: What the name of an output file may end in.
OUTPUT_SUFFIXES = (".npy", ".csv", ".mtx")

_NEIGHBOUR = np.dtype([("neighbour", np.int64), ("square", np.float32)])


def write_paths(found: Paths, path: str | Path) -> None:
    """Write the values of all pairs of vertices, whole or not at all.

    Parameters
    ----------
    found : Paths
    path : str or Path
        ``.npy``: a float32 matrix in the order of the vertices, without their names. ``.csv``: the
        same as text, the first row and the first column name the vertices. ``.mtx``: coordinates of
        the pairs that have a finite value; pairs without a path are not stored. Vertices that are
        not named 1, 2, … are named in comments.

    Raises
    ------
    ValueError
        For another ending of the name.
    OSError
        If the file cannot be written.
    """
    names = found.graph.names
    suffix = _suffix(path)
    if suffix == ".npy":
        with open_whole(path) as file:
            np.save(file, found.values, allow_pickle=False)
        return
    if suffix == ".csv":
        rows = zip(names, found.values, strict=True)
        _write_lines(path, _table(["", *names], ([name, *map(_text, row)] for name, row in rows)))
        return
    absent = np.float32(found.problem.op.no_edge or 0)
    stored = np.isfinite(found.values) & (found.values != absent)
    comments = [f"{found.problem.name}: {found.problem.title}; only finite values are stored"]
    if names != tuple(range(1, len(names) + 1)):
        plain = (" ".join(str(name).split()) for name in names)
        comments += [f"vertex {i} is {name}" for i, name in enumerate(plain, 1)]
    _write_lines(path, _coordinates(found.values, stored, comments))


def write_neighbours(found: Neighbours, path: str | Path) -> None:
    """Write the nearest points of each point, numbered from 1, whole or not at all.

    Parameters
    ----------
    found : Neighbours
    path : str or Path
        ``.npy``: an array of (neighbour, square), a row for each point. ``.csv``: a row for each
        pair, with the square of the distance. ``.mtx``: the squares as coordinates.

    Raises
    ------
    ValueError
        For another ending of the name.
    OSError
        If the file cannot be written.
    """
    suffix = _suffix(path)
    count = found.indices.shape[1]
    if suffix == ".npy":
        array = np.empty(found.indices.shape, _NEIGHBOUR)
        array["neighbour"], array["square"] = found.indices + 1, found.squares
        with open_whole(path) as file:
            np.save(file, array, allow_pickle=False)
        return
    points = np.repeat(np.arange(1, len(found.indices) + 1), count)
    triples = zip(
        points.tolist(), (found.indices.ravel() + 1).tolist(), found.squares.ravel(), strict=True
    )
    rows = ([point, other, _text(square)] for point, other, square in triples)
    if suffix == ".csv":
        _write_lines(path, _table(["point", "neighbour", "square"], rows))
        return
    size = len(found.indices)
    head = [
        "%%MatrixMarket matrix coordinate real general\n",
        "% knn: squares of the distances to the nearest points\n",
        f"{size} {size} {size * count}\n",
    ]
    _write_lines(path, iter([*head, *(" ".join(map(str, row)) + "\n" for row in rows)]))


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in OUTPUT_SUFFIXES:
        raise ValueError(f"output must end in {', '.join(OUTPUT_SUFFIXES)}, not {str(path)!r}")
    return suffix


def _write_lines(path: str | Path, lines: Iterator[str]) -> None:
    with open_whole(path) as file:
        for line in lines:
            file.write(line.encode())


def _table(head: list, rows: Iterator[list]) -> Iterator[str]:
    """Return the lines of a table with commas."""
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in chain([head], rows):
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _coordinates(values: np.ndarray, stored: np.ndarray, comments: list[str]) -> Iterator[str]:
    yield "%%MatrixMarket matrix coordinate real general\n"
    yield from (f"% {text}\n" for text in comments)
    yield f"{len(values)} {len(values)} {np.count_nonzero(stored)}\n"
    for i, row in enumerate(values):
        places = np.flatnonzero(stored[i])
        pairs = zip(places.tolist(), row[places], strict=True)
        yield "".join(f"{i + 1} {j + 1} {_text(value)}\n" for j, value in pairs)


def _text(value: float) -> str:
    """Return the shortest decimal that gives the FP32 number back."""
    text = str(np.float32(value))
    return text.removesuffix(".0")
