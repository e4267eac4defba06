"""Readers of files with graphs or points: Matrix Market and lists of edges.

A reader refuses a file before it takes more memory than is free.
"""

import bz2
import csv
import gzip
import io
import warnings
import zlib
from pathlib import Path
from typing import Any

from vitruvian.common.extras import need
from vitruvian.common.files import reason_of
from vitruvian.common.memory import free_bytes
from vitruvian.common.validate import listed, shortened
from vitruvian.sim.simd2.graph.edges import ENDS, EdgeList, end_columns

#: Largest size of an unpacked Matrix Market file in bytes; it holds at least ten million entries.
UNPACKED_BYTES = 1 << 28

#: The same for a list of edges, which takes longer to read; it holds at least three million edges.
UNPACKED_LIST_BYTES = 1 << 26

#: Suffixes of lists of edges, before .gz or .bz2. Every other file is read as Matrix Market.
EDGE_SUFFIXES = (".csv", ".tsv", ".edges", ".edgelist", ".txt")

_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
_BANNER = b"%%MatrixMarket"
_ENTRY_BYTES = 4  # length of the shortest entry of a Matrix Market file, "1 1\n"
_READ_BYTES = 24  # memory for each entry: two indices and a value
_LIST_BYTES = 80  # memory for each byte of a list of edges; measured: 24 to 78


def is_edge_file(path: Path) -> bool:
    """Return True if the suffix of a file says that it is a list of edges."""
    name = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return name.suffix.lower() in EDGE_SUFFIXES


def _content(path: Path, most: int) -> bytes:
    """Return the bytes of a file, unpacked.

    Parameters
    ----------
    most : int
        Largest size of the unpacked content of a packed file, in bytes.

    Raises
    ------
    ValueError
        If the path is not a regular file, or the content is too large.
    OSError, EOFError, zlib.error
        If the file cannot be read or unpacked.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"graph must be a file, not {path}")
    unpack = _PACKED.get(path.suffix.lower())
    free = free_bytes()
    if unpack is None:
        size = path.stat().st_size
        if free is not None and size > free:
            raise ValueError(
                f"graph must be a file of at most {free / 2**30:.1f} GiB, the free memory, "
                f"not {path} of {size / 2**30:.1f} GiB"
            )
        return path.read_bytes()
    with unpack(path) as file:
        content = file.read(most + 1)  # never more, whatever the file unpacks to
    if len(content) > most:
        raise ValueError(
            f"graph must unpack to at most {most >> 20} MiB, not {path}; unpack a larger one first"
        )
    return content


def read_matrix(path: Path) -> Any:
    """Return the matrix of a Matrix Market file (.mtx, .mtx.gz, .mtx.bz2).

    Returns
    -------
    ndarray or sparse matrix
        Depending on the format that the header of the file states.

    Raises
    ------
    ValueError
        If the file cannot be read, its header states more entries than the file or the free memory
        can hold, or it unpacks to more than ``UNPACKED_BYTES``.
    """
    mmread = need("scipy.io", "graphs").mmread

    try:
        content = _content(path, UNPACKED_BYTES)
        _check_header(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mmread(io.BytesIO(content))
    except (OSError, ValueError, TypeError, EOFError, OverflowError, zlib.error) as error:
        text = reason_of(error)
        if text.startswith("graph must"):
            raise ValueError(text) from None
        raise ValueError(f"graph must be a Matrix Market file, not {path}: {text}") from None


def _check_header(content: bytes) -> None:
    """Raise ValueError if the header states more entries than the file can contain."""
    lines = io.BytesIO(content)
    if not lines.readline(1024).startswith(_BANNER):
        raise ValueError(f"the first line must begin with {_BANNER.decode()}")
    sparse = b"coordinate" in content[:1024].split(b"\n", 1)[0].lower()
    for line in lines:
        if line.strip() and not line.startswith(b"%"):
            break
    else:
        raise ValueError("the line of sizes is missing")
    try:
        sizes = [int(word) for word in line[:256].split()]
    except ValueError:
        sizes = []
    if len(sizes) != 2 + sparse or min(sizes) < 0 or max(sizes) >= 1 << 62:
        text = line[:40].decode(errors="replace").strip()
        raise ValueError(f"the sizes must be {2 + sparse} whole numbers, not {text!r}")
    entries = sizes[2] if sparse else sizes[0] * sizes[1]
    kind = content[:1024].split(b"\n", 1)[0].lower()
    if not sparse and (b"symmetric" in kind or b"hermitian" in kind or b"skew" in kind):
        entries //= 2
    least = entries * (_ENTRY_BYTES if sparse else 2)
    if least > len(content) + 1:
        raise ValueError(f"the header states {entries:,} entries, but the file is too short")
    free = free_bytes()
    if free is not None and entries * _READ_BYTES > free:
        most = free // _READ_BYTES
        raise ValueError(
            f"graph must have at most {most:,} entries to fit into the free memory, not {entries:,}"
        )


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
        content = _content(path, UNPACKED_LIST_BYTES)
        free = free_bytes()
        if free is not None and len(content) * _LIST_BYTES > free:
            raise ValueError(
                f"a list of edges must have at most {free // _LIST_BYTES:,} bytes to fit into the "
                f"free memory, not {len(content):,}"
            )
        text = content.decode("utf-8-sig")
        rows = _rows(text)
    except (OSError, ValueError, EOFError, zlib.error, csv.Error) as error:
        text = reason_of(error)
        if text.startswith("graph must"):
            raise ValueError(text) from None
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
