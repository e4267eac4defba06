"""Whole matrices through a compiled matrix unit: tiling, packing, and the cycles it took."""

from dataclasses import dataclass

import numpy as np

from golden.fp import FORMATS
from hdl.cube import MatrixUnit, MatrixUnitConfig, Start

from . import compile_unit

__all__ = ["CubeProduct", "bus_words", "matmul"]


@dataclass(frozen=True, kw_only=True)
class CubeProduct:
    """A product that a matrix unit computed.

    Attributes
    ----------
    d : (M, N) ndarray
        Codes of the unit's output format, or int32.
    beats, cycles : int
        Tiles sent in, and clock cycles until the last result had come.
    """

    d: np.ndarray
    beats: int
    cycles: int


def matmul(
    config: MatrixUnitConfig, a, b, c=None, *, precision: str = "fp16", stall_rate: float = 0.0
) -> CubeProduct:
    """``C + A · B`` on the compiled RTL of a unit, of any size.

    Edges are filled up: rows and columns with zeros, K with products that are -0 and change
    nothing.
    The unit goes round its accumulator slots, so that it takes a beat a cycle.

    Parameters
    ----------
    a : (M, K) ndarray
        Codes of ``precision``, or int8.
    b : (K, N) ndarray
    c : (M, N) ndarray, optional
        Codes of the output format, or int32. Zero by default.
    precision : str
        One of ``config.precisions``.
    stall_rate : float
        Probability that a stream idles in a cycle.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a precision that the unit does not have.
    """
    a, b = np.asarray(a), np.asarray(b)
    terms = config.terms(precision)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or not a.size or not b.size:
        raise ValueError(f"a and b must be (M, K) and (K, N), not {a.shape} and {b.shape}")
    shape = a.shape[0], b.shape[1]
    if c is not None and np.shape(c) != shape:
        raise ValueError(f"c must be (M, N) = {shape}, not {np.shape(c)}")
    rows, columns = (
        -(-size // tile) for size, tile in zip(shape, (config.m, config.n), strict=True)
    )
    blocks = -(-a.shape[1] // terms)
    left = _bus(a, config.m, terms, _minus_zero(precision))
    right = _bus(b.T, config.n, terms, 0)

    # tiles in groups of as many as there are slots; within a group K outermost
    slots = config.slot_count
    tile = np.arange(rows * columns)
    group, slot = tile // slots, tile % slots
    order = np.lexsort(
        (np.tile(slot, blocks), np.repeat(np.arange(blocks), len(tile)), np.tile(group, blocks))
    )
    tile, block = np.tile(tile, blocks)[order], np.repeat(np.arange(blocks), len(tile))[order]
    row, column = tile // columns, tile % columns
    first = Start.ZERO if c is None else Start.FROM_C
    beats = {
        "a": left[row, block],
        "b": right[column, block],
        "start": np.where(block == 0, first.value, Start.ACCUMULATE.value).astype(np.uint8),
        "slot": (tile % slots).astype(np.uint8),
        "emit": (block == blocks - 1).astype(np.uint8),
    }
    if config.precision_bits:
        beats["precision"] = np.full(len(tile), config.precisions.index(precision), np.uint8)
    addends = np.zeros((0, config.m, config.n), np.uint32)
    if c is not None:
        addends = _tiles(np.asarray(c), rows, columns, config)[tile[block == 0]]
    model = compile_unit(MatrixUnit, config=config)
    result = model.stream(
        inputs={"i": beats, "c": addends},
        outputs={"o": rows * columns},
        stall_rate=stall_rate,
    )
    done = tile[block == blocks - 1]
    d = np.empty((rows * columns, config.m, config.n), result.outputs["o"].dtype)
    d[done] = result.outputs["o"]
    d = d.reshape(rows, columns, config.m, config.n).swapaxes(1, 2)
    d = np.ascontiguousarray(d.reshape(rows * config.m, columns * config.n)[: shape[0], : shape[1]])
    if precision == "int8":
        d = d.view(np.int32)
    return CubeProduct(d=d, beats=len(tile), cycles=result.cycles)


def _minus_zero(precision: str) -> int:
    return 0 if precision == "int8" else FORMATS[precision].sign_mask


def _bus(matrix: np.ndarray, side: int, terms: int, filler: int) -> np.ndarray:
    """(tiles, blocks, side[, words]) of bus words, of a matrix with K along its second axis."""
    height, width = (
        -(-n // step) * step for n, step in zip(matrix.shape, (side, terms), strict=True)
    )
    full = np.zeros((height, width), np.dtype(f"<u{matrix.dtype.itemsize}"))
    full[:, matrix.shape[1] :] = filler
    full[: matrix.shape[0], : matrix.shape[1]] = matrix.view(f"u{matrix.dtype.itemsize}")
    split = full.reshape(height // side, side, width // terms, terms).swapaxes(1, 2)
    return bus_words(np.ascontiguousarray(split).view(np.uint8))


def bus_words(octets: np.ndarray) -> np.ndarray:
    """Buses as the compiled model takes them: (…,) numbers up to 64 bits, else (…, words)."""
    words = -(-octets.shape[-1] // 8)
    padded = np.zeros((*octets.shape[:-1], 8 * words), np.uint8)
    padded[..., : octets.shape[-1]] = octets
    found = padded.view("<u8")
    return found[..., 0] if words == 1 else found


def _tiles(matrix: np.ndarray, rows: int, columns: int, config: MatrixUnitConfig) -> np.ndarray:
    """(tiles, M, N) of a matrix, filled up with zeros."""
    full = np.zeros((rows * config.m, columns * config.n), f"u{matrix.dtype.itemsize}")
    full[: matrix.shape[0], : matrix.shape[1]] = matrix.view(full.dtype)
    split = full.reshape(rows, config.m, columns, config.n).swapaxes(1, 2)
    return split.reshape(rows * columns, config.m, config.n)
