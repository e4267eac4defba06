"""Readers of files with graphs or points: Matrix Market and lists of edges.

A reader refuses a file before it takes more memory than is free.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.files import MOST_BYTES, read_bounded, reason_of
from vitruvian.common.matrix_market import MatrixEntries, read_entries
from vitruvian.common.memory import free_bytes
from vitruvian.common.validate import listed, shortened
from vitruvian.sim.simd2.graph.edges import ENDS, EdgeList, end_columns

#: Largest size of an unpacked list of edges in bytes; it holds at least three million edges. A file
#: in Matrix Market's format takes less time, and may have 256 MiB.
UNPACKED_LIST_BYTES = 1 << 26

#: Suffixes of lists of edges, before .gz or .bz2. Every other file is read as Matrix Market.
EDGE_SUFFIXES = (".csv", ".tsv", ".edges", ".edgelist", ".txt")

_PACKED = (".gz", ".bz2")
_LIST_BYTES = 80  # memory for each byte of a list of edges; measured: 24 to 78


def is_edge_file(path: Path) -> bool:
    """Return True if the suffix of a file says that it is a list of edges."""
    name = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return name.suffix.lower() in EDGE_SUFFIXES


def _content(path: Path) -> bytes:
    """Return the bytes of a list of edges, unpacked."""
    free = free_bytes()
    limit = MOST_BYTES if free is None else free
    return read_bounded(
        path, thing="graph", limit=limit, unpack=True, unpacked_limit=UNPACKED_LIST_BYTES
    )


def read_matrix(path: Path) -> np.ndarray | MatrixEntries:
    """Return the matrix of a Matrix Market file (.mtx, .mtx.gz, .mtx.bz2).

    Its numbers may be infinite. The result is an array if the file states every element.

    Raises
    ------
    ValueError
        If the file cannot be read, its header states more entries than the file or the free memory
        can hold, or it unpacks to more than 256 MiB. The message names the file and the line.
    """
    try:
        matrix = read_entries(path, thing="graph", infinite=True)
    except (OSError, ValueError) as error:
        text = reason_of(error)
        if text.startswith("graph must"):
            raise ValueError(f"{path}: {text}") from None
        raise ValueError(f"graph must be a Matrix Market file, not {path}: {text}") from None
    return matrix.toarray() if matrix.is_dense else matrix


def read_edges(path: Path, weight: str | None) -> EdgeList:
    """Return the list of edges of a text file, which has one edge in each line.

    A line contains the source, the target and, optionally, the weight. The columns are separated by
    tabs, semicolons, commas or blanks; the first of these that occurs in the first line is the
    separator. Empty lines and lines that begin with # or % are ignored. The first line is a header
    if its third column is not a number, or if it contains names of ``ENDS``. If all names of
    vertices are whole numbers, they are converted to int.

    Parameters
    ----------
    weight : str or None
        Name of the column of the weights, if there is a header. If None, every edge gets the
        weight 1.

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the line.
    """
    try:
        content = _content(path)
        free = free_bytes()
        if free is not None and len(content) * _LIST_BYTES > free:
            raise ValueError(
                f"a list of edges must have at most {free // _LIST_BYTES:,} bytes to fit into the "
                f"free memory, not {len(content):,}"
            )
        text = content.decode("utf-8-sig")
        rows = _rows(text)
    except (OSError, ValueError, csv.Error) as error:
        text = reason_of(error)
        if text.startswith("graph must"):
            raise ValueError(f"{path}: {text}") from None
        raise ValueError(f"graph must be a list of edges, not {path}: {text}") from None
    try:
        return _edges(rows, weight)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not comments as lists of cells, with their line numbers."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and line.lstrip()[0] not in "#%"
    ]
    if not lines:
        raise ValueError("the file has no edges")
    separator = next((mark for mark in "\t;," if mark in lines[0][1]), None)
    if separator is None:
        return [(number, line.split()) for number, line in lines]
    cells = csv.reader((line for _, line in lines), delimiter=separator, strict=True)
    table = [[cell.strip() for cell in row] for row in cells]
    if len(table) != len(lines):
        raise ValueError("a quoted name must end on its line")
    return [(number, row) for (number, _), row in zip(lines, table, strict=True)]


def _edges(rows: list[tuple[int, list[str]]], weight: str | None) -> EdgeList:
    """Return the list of edges of numbered lines, of which the first may be a header."""
    first = rows[0][1]
    width = len(first)
    begin, end, weight_column = 0, 1, 2
    if _is_header(first, weight):
        begin, end = end_columns(first)
        others = [name for i, name in enumerate(first) if i not in (begin, end)]
        if weight is not None and others and weight not in others:
            raise ValueError(
                f"weight must be one of the columns {listed(others)}, not {shortened(weight)}"
            )
        weight_column = first.index(weight) if weight in others else width  # width: no column
        rows = rows[1:]
    elif not 2 <= width <= 3:
        raise ValueError(
            "columns must be source, target and weight, or a header must name them, "
            f"not {width} without a header (line {rows[0][0]})"
        )
    starts: list[Any] = []
    ends: list[Any] = []
    weights, missing = [], 0
    for number, row in rows:
        if len(row) not in (width, 2) or max(begin, end) >= len(row):
            raise ValueError(f"line {number} must have {width} columns, not {len(row)}")
        cell = row[weight_column] if weight is not None and weight_column < len(row) else ""
        missing += weight is not None and not cell
        starts.append(row[begin])
        ends.append(row[end])
        try:
            weights.append(float(cell) if cell else 1.0)
        except ValueError:
            message = f"weights must be numbers, not {shortened(cell)} (line {number})"
            raise ValueError(message) from None
    if all(_is_whole(name) for names in (starts, ends) for name in names):
        starts, ends = [int(name) for name in starts], [int(name) for name in ends]
    return EdgeList(starts, ends, weights, missing)


def _is_header(row: list[str], weight: str | None) -> bool:
    """Return True if the first line names the columns."""
    lower = {cell.lower() for cell in row}
    if any(lower >= set(ends) for ends in ENDS) or (weight or "weight") in row:
        return True
    if len(row) < 3 or not row[2]:
        return False
    try:
        float(row[2])
    except ValueError:
        return True
    return False


def _is_whole(name: str) -> bool:
    """Return True if a name is a whole number of at most 18 digits, without leading zeros."""
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name
