"""Graphs and points out of files: Matrix Market and lists of edges, read within bounds."""

import bz2
import csv
import gzip
import io
import warnings
import zlib
from pathlib import Path
from typing import Any

from vitruvian.sim.simd2.graph.edges import ENDS, EdgeList, named_ends
from vitruvian.sim.simd2.graph.memory import free_bytes

__all__ = [
    "EDGE_SUFFIXES",
    "UNPACKED_BYTES",
    "UNPACKED_LIST_BYTES",
    "is_edge_file",
    "read_edges",
    "read_matrix",
]

#: Most bytes that a packed Matrix Market file may unpack to: ten million entries or more.
UNPACKED_BYTES = 1 << 28

#: The same for a packed list of edges, which takes longer to read: three million edges or more.
UNPACKED_LIST_BYTES = 1 << 26

#: Ends of the names of lists of edges, before .gz or .bz2; every other file is Matrix Market.
EDGE_SUFFIXES = (".csv", ".tsv", ".edges", ".edgelist", ".txt")

_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
_BANNER = b"%%MatrixMarket"
_ENTRY_BYTES = 4  # of the shortest stored entry of a Matrix Market file, "1 1\n"
_READ_BYTES = 24  # of memory that an entry takes: two indices and a value
_LIST_BYTES = 80  # of memory for each byte of a list of edges; measured: 24 to 78


def is_edge_file(path: Path) -> bool:
    """Whether a file is read as a list of edges, by its name."""
    name = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return name.suffix.lower() in EDGE_SUFFIXES


def _content(path: Path, most: int) -> bytes:
    """Return a file's bytes; a packed one may unpack to ``most``.

    Raises
    ------
    ValueError
        For what is no regular file, cannot be unpacked, or unpacks to more.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"graph must be a file, not {path}")
    opened = _PACKED.get(path.suffix.lower())
    free = free_bytes()
    if opened is None:
        size = path.stat().st_size
        if free is not None and size > free:
            raise ValueError(
                f"graph must be a file of at most {free / 2**30:.1f} GiB, which are free, "
                f"not {path} of {size / 2**30:.1f} GiB"
            )
        return path.read_bytes()
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(
            f"graph must unpack to at most {most >> 20} MiB, not {path}; unpack a larger one first"
        )
    return content


def read_matrix(path: Path) -> Any:
    """Return a matrix out of a Matrix Market file (.mtx, .mtx.gz, .mtx.bz2): an array, or sparse.

    Raises
    ------
    ValueError
        If it cannot be read, its header promises more than it has or than there is memory for, or
        it unpacks to more than `UNPACKED_BYTES`.
    """
    from scipy.io import mmread

    try:
        content = _content(path, UNPACKED_BYTES)
        _check_header(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mmread(io.BytesIO(content))
    except (OSError, ValueError, TypeError, EOFError, OverflowError, zlib.error) as error:
        text = " ".join(str(error).split())
        if text.startswith("graph must"):
            raise ValueError(text) from None
        raise ValueError(f"graph must be a Matrix Market file, not {path}: {text}") from None


def _check_header(content: bytes) -> None:
    """Raise ValueError for a header that promises more than the file can have."""
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
        raise ValueError(f"the header promises {entries:,} entries, the file has no room for them")
    free = free_bytes()
    if free is not None and entries * _READ_BYTES > free:
        most = free // _READ_BYTES
        raise ValueError(
            f"graph must have at most {most:,} entries in the memory that is free, not {entries:,}"
        )


def read_edges(path: Path, weight: str | None) -> EdgeList:
    """Return the edges of a text file, one a line: source, target, and a weight or none.

    Columns are separated by tabs, semicolons, commas or blanks, whichever of them the first line
    has. Empty lines and those that begin with # or % are comments. A header is recognised by a
    third column that is no number, or by names of `ENDS`; with one, ``weight`` names the column.
    Vertices are whole numbers if all of them are.

    Raises
    ------
    ValueError
        If it cannot be read; the message names the line.
    """
    try:
        content = _content(path, UNPACKED_LIST_BYTES)
        free = free_bytes()
        if free is not None and len(content) * _LIST_BYTES > free:
            raise ValueError(
                f"a list of edges must have at most {free // _LIST_BYTES:,} bytes in the memory "
                f"that is free, not {len(content):,}"
            )
        text = content.decode("utf-8-sig")
        rows = _rows(text)
    except (OSError, ValueError, EOFError, zlib.error, csv.Error) as error:
        text = " ".join(str(error).split())
        if text.startswith("graph must"):
            raise ValueError(text) from None
        raise ValueError(f"graph must be a list of edges, not {path}: {text}") from None
    try:
        return _edges(rows, weight)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are no comments with their numbers, cut into cells."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and line.lstrip()[0] not in "#%"
    ]
    if not lines:
        raise ValueError("it has no edges")
    separator = next((mark for mark in "\t;," if mark in lines[0][1]), None)
    if separator is None:
        return [(number, line.split()) for number, line in lines]
    cells = csv.reader((line for _, line in lines), delimiter=separator, strict=True)
    found = [[cell.strip() for cell in row] for row in cells]
    if len(found) != len(lines):
        raise ValueError("a quoted name must end on its line")
    return [(number, row) for (number, _), row in zip(lines, found, strict=True)]


def _edges(rows: list[tuple[int, list[str]]], weight: str | None) -> EdgeList:
    first = rows[0][1]
    width = len(first)
    begin, end, place = 0, 1, 2
    if _is_header(first, weight):
        begin, end = named_ends(first)
        others = [name for i, name in enumerate(first) if i not in (begin, end)]
        if weight is not None and others and weight not in others:
            raise ValueError(
                f"weight must be one of the columns {', '.join(others)}, not {weight!r}"
            )
        place = first.index(weight) if weight in others else width
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
        cell = row[place] if weight is not None and place < len(row) else ""
        missing += weight is not None and not cell
        starts.append(row[begin])
        ends.append(row[end])
        try:
            weights.append(float(cell) if cell else 1.0)
        except ValueError:
            raise ValueError(f"weights must be numbers, not {cell!r} (line {number})") from None
    if all(_is_whole(name) for names in (starts, ends) for name in names):
        starts, ends = [int(name) for name in starts], [int(name) for name in ends]
    return EdgeList(starts, ends, weights, missing)


def _is_header(row: list[str], weight: str | None) -> bool:
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
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name
