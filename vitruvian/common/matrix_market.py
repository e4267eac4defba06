"""A reader of Matrix Market files that names the line of every mistake."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitruvian.common import matrix_market_compiled as scanner
from vitruvian.common.compiling import fitting
from vitruvian.common.errors import UserError
from vitruvian.common.files import MOST_BYTES, read_bounded
from vitruvian.common.memory import free_bytes
from vitruvian.common.validate import shortened

_FORMATS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")

#: Numbers that are converted at once because the scanner cannot
_CHUNK = 1 << 18

#: Bytes of memory for each entry while a file is read: indices, value, and the order of the rows
_ENTRY_BYTES = 48


@dataclass(frozen=True, eq=False)
class MatrixEntries:
    """The entries of a file with a matrix of R rows and C columns.

    Attributes
    ----------
    shape : (int, int)
        R and C.
    rows, columns : (Z,) ndarray of int
        Indices from 0 in the order of the file. The entries of the triangle that a symmetric or
        skew-symmetric file leaves out follow those of the file.
    values : (Z,) ndarray of float64
        All are 1 in a pattern.
    is_dense : bool
        True if the file states every element (``array``), and not only entries (``coordinate``).
    """

    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    is_dense: bool

    def toarray(self) -> np.ndarray:
        """Return an (R, C) ndarray of float64; repeated entries are added, as SciPy does."""
        array = np.zeros(self.shape)
        np.add.at(array, (self.rows, self.columns), self.values)
        return array


def read_entries(
    path: str | os.PathLike[str], *, thing: str = "matrix", infinite: bool = False
) -> MatrixEntries:
    """Read a Matrix Market file, which may be packed by gzip or bzip2.

    Parameters
    ----------
    path : str or path
    thing : str
        Name of the matrix, for messages about the file as a whole.
    infinite : bool
        If True, ``inf`` and ``infinity`` are values, with a sign and in any letters.

    Raises
    ------
    ValueError
        If the file is a device, unpacks to more than 256 MiB, has more than a third of the free
        memory, or is not a Matrix Market file of a real matrix. The message names the line, and not
        the file. NaN is refused, and so are complex and Hermitian matrices.
    OSError
        If the file cannot be read.

    References
    ----------
    Boisvert et al. 1996.
    """
    content = _content(Path(path), thing)
    header = _header(content)
    rows, columns, values = _entries(content, header, infinite)
    if header.symmetry:
        # The file has one triangle; the diagonal has no mirror image.
        other = np.flatnonzero(rows != columns)
        sign = -1.0 if _SYMMETRIES[header.symmetry] == "skew-symmetric" else 1.0
        mirrored = columns[other], rows[other], sign * values[other]
        rows, columns, values = (
            np.concatenate(pair) for pair in zip((rows, columns, values), mirrored, strict=True)
        )
    return MatrixEntries(header.shape, rows, columns, values, header.is_array)


@dataclass(frozen=True)
class _Header:
    """The first line and the line of sizes.

    Attributes
    ----------
    is_array, is_pattern, is_whole : bool
    symmetry : int
        Index in ``_SYMMETRIES``.
    shape : (int, int)
    entries : int
        Lines with entries that must follow.
    at : int
        Where the first of them begins.
    """

    is_array: bool
    is_pattern: bool
    is_whole: bool
    symmetry: int
    shape: tuple[int, int]
    entries: int
    at: int


def _content(path: Path, thing: str) -> bytes:
    """Return the bytes of a file, unpacked.

    A file that is not packed has its size on the disk, and may take a third of the free memory.
    """
    free = free_bytes()
    # Content, entries and the matrix made of them are in memory together.
    limit = MOST_BYTES if free is None else max(free // 3, 1 << 20)
    unpacked = min(limit, MOST_BYTES)
    return read_bounded(path, thing=thing, limit=limit, unpack=True, unpacked_limit=unpacked)


def _line(content: bytes, at: int) -> tuple[int, str]:
    """Return the number of the line around a position, and its text from the position on."""
    end = content.find(b"\n", at)
    text = content[at : len(content) if end < 0 else end].decode(errors="replace").strip()
    return content.count(b"\n", 0, at) + 1, text


def _header(content: bytes) -> _Header:
    """Return what the lines before the entries say."""
    end = content.find(b"\n")
    # The standard allows 1024 characters in a line; a binary file may have no line end at all.
    first = content[: end if end >= 0 else len(content)][:1024].decode(errors="replace")
    words = first.lower().split()
    if not words or words[0] != "%%matrixmarket":
        raise UserError(f"line 1 must begin with %%MatrixMarket, not {shortened(first.strip())}")
    if len(words) != 5:
        raise UserError(
            "line 1 must be '%%MatrixMarket matrix FORMAT FIELD SYMMETRY', "
            f"not {shortened(first.strip())}"
        )
    for thing, word, allowed in (
        ("object", words[1], ("matrix",)),
        ("format", words[2], _FORMATS),
        ("field", words[3], _FIELDS),
        ("symmetry", words[4], _SYMMETRIES),
    ):
        if word not in allowed:
            raise UserError(
                f"{thing} must be {' or '.join(allowed)}, not {shortened(word)} (line 1)"
            )
    is_array, is_pattern = words[2] == "array", words[3] == "pattern"
    symmetry = _SYMMETRIES.index(words[4])
    if is_pattern and (is_array or symmetry == 2):
        kind = "an array" if is_array else "a skew-symmetric matrix"
        raise UserError(f"field of {kind} must be real or integer, not pattern (line 1)")
    at = len(first) if end < 0 else end + 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end
        text = content[at:end].strip()
        if text and not text.startswith(b"%"):
            sizes = _sizes(content, at, 2 if is_array else 3)
            break
        at = end + 1
    else:
        raise UserError("line of sizes is missing")
    shape = sizes[0], sizes[1]
    number = _line(content, at)[0]
    if symmetry and shape[0] != shape[1]:
        raise UserError(
            f"{_SYMMETRIES[symmetry]} matrix must be square, not {shape[0]} by {shape[1]} "
            f"(line {number})"
        )
    entries = sizes[-1]
    if is_array:
        n = shape[0]
        # A symmetric array lists the lower triangle with the diagonal, a skew-symmetric one without
        # it.
        entries = (n * shape[1], n * (n + 1) // 2, n * (n - 1) // 2)[symmetry]
    # The shortest lines are "1 1" and "1".
    minimum = entries * (2 if is_array else 4)
    if minimum > len(content) - end:
        raise UserError(
            f"{entries:,} entries must follow line {number}, "
            f"but the file ends {len(content) - end} bytes later"
        )
    free = free_bytes()
    if free is not None and entries * _ENTRY_BYTES + sum(shape) * 16 > free:
        raise UserError(
            f"matrix must fit into the free memory of {free >> 20} MiB, not {shape[0]} by "
            f"{shape[1]} with {entries:,} entries (line {number})"
        )
    return _Header(
        is_array,
        is_pattern,
        "integer" in words[3],
        symmetry,
        shape,
        entries,
        min(end + 1, len(content)),
    )


def _sizes(content: bytes, at: int, count: int) -> list[int]:
    """Return the numbers of the line of sizes."""
    number, text = _line(content, at)
    words = text.split()
    if len(words) != count or not all(re.fullmatch(r"\d{1,18}", word, re.ASCII) for word in words):
        names = "rows and columns" if count == 2 else "rows, columns and entries"
        raise UserError(f"sizes must be {names}, not {shortened(text)} (line {number})")
    sizes = [int(word) for word in words]
    if max(sizes[:2]) >= 1 << 31:
        raise UserError(f"sizes must be less than {1 << 31}, not {shortened(text)} (line {number})")
    return sizes


def _entries(
    content: bytes, header: _Header, infinite: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of all lines after the sizes."""
    scan = fitting(scanner.scan, header.entries)
    # An element of an array of uint8 would overflow in plain Python.
    text = content if scan is scanner.scan else np.frombuffer(content, np.uint8)
    count = 0 if header.is_array else header.entries
    rows, columns = np.empty(count, np.int32), np.empty(count, np.int32)
    values = np.ones(header.entries)
    slow = [np.empty(min(_CHUNK, header.entries + 1), np.int64) for _ in range(3)]
    at, done, triangle, state = header.at, 0, 0, scanner.MORE
    while state == scanner.MORE:
        state, at, done, triangle, found = scan(
            text, at, not header.is_array, not header.is_pattern, header.is_whole,
            infinite, np.array(header.shape), header.symmetry, triangle, done, header.entries,
            rows, columns, values, *slow,
        )  # fmt: skip
        _convert(content, values, *(each[:found] for each in slow))
    if state != scanner.DONE:
        raise UserError(_mistake(content, header, state, at, done, infinite))
    if header.is_array:
        rows, columns = _places(header)
    return rows, columns, values


def _convert(
    content: bytes,
    values: np.ndarray,
    entries: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Convert the numbers whose rounding the scanner leaves open."""
    if not len(entries):
        return
    width = int((ends - begins).max())
    if width <= 64:
        tokens = np.zeros((len(entries), width), np.uint8)
        copy_tokens = fitting(scanner.copy_tokens, len(entries))
        copy_tokens(np.frombuffer(content, np.uint8), begins, ends, tokens)
        # NumPy converts a column of texts at once, rounded as Python's float does.
        numbers = tokens.view(f"S{width}").ravel().astype(np.float64)
    else:
        numbers = np.array(
            [float(content[i:j]) for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]
        )
    if not np.isfinite(numbers).all():
        at = int(begins[np.argmin(np.isfinite(numbers))])
        number, rest = _line(content, at)
        raise UserError(
            f"value must be less than 1.8e308, not {shortened(rest.split()[0])} (line {number})"
        )
    values[entries] = numbers


def _places(header: _Header) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the elements of an array, which is stored column by column."""
    size, width = header.shape
    if header.symmetry == 0:
        return np.tile(np.arange(size), width), np.repeat(np.arange(width), size)
    # Columns of the lower triangle are rows of the upper one.
    columns, rows = np.triu_indices(size, k=header.symmetry - 1)
    return rows, columns


def _mistake(
    content: bytes, header: _Header, state: int, at: int, done: int, infinite: bool
) -> str:
    """Return the message for a mistake at a position."""
    if state == scanner.TOO_FEW and at >= len(content):
        stated = (
            f"{header.entries:,} entries" if not header.is_array else f"{header.entries:,} values"
        )
        return f"{stated} must follow the sizes, not {done:,}"
    number, rest = _line(content, at)
    word = shortened(rest.split()[0])
    if state == scanner.TOO_MANY and done == header.entries:
        return f"{header.entries:,} entries must follow the sizes, not more (line {number})"
    if state in (scanner.BAD_ROW, scanner.BAD_COLUMN):
        index = state - scanner.BAD_ROW
        thing = ("row", "column")[index]
        return f"{thing} must be between 1 and {header.shape[index]}, not {word} (line {number})"
    if state == scanner.BAD_VALUE:
        kind = "a number or infinite" if infinite else "a finite number"
        kind = "a whole number" if header.is_whole else kind
        return f"value must be {kind}, not {word} (line {number})"
    if state == scanner.DIAGONAL:
        return f"skew-symmetric matrix must have no entry on the diagonal (line {number})"
    if state == scanner.OTHER_TRIANGLE:
        return (
            f"entries of a {_SYMMETRIES[header.symmetry]} matrix must be in one triangle, "
            f"not {shortened(rest)} (line {number})"
        )
    wanted = ["value"] if header.is_array else ["row", "column", "value"]
    wanted = wanted[:2] if header.is_pattern else wanted
    names = " and ".join([", ".join(wanted[:-1]), wanted[-1]] if len(wanted) > 1 else wanted)
    return f"entry must be {names}, not {shortened(rest)} (line {number})"
