"""Matrices cut into a matrix unit's fractals, as the compiled model takes them, and put together.

A code of a complex element is twice as wide as that of a real one, with the real part in its low
half: the memory of a complex array. Seen as real words, a row of K such codes is 2·K words.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.golden.fp import FORMATS
from vitruvian.golden.simd2.op import GROUP, KEPT
from vitruvian.hdl.cube import MatrixUnitConfig

__all__ = [
    "Phase",
    "bus_words",
    "cut_fractals",
    "cut_operands",
    "cut_sparse",
    "join_fractals",
    "phases_of",
]

INT8 = "int8"


@dataclass(frozen=True)
class Phase:
    """One beat of every tile.

    Attributes
    ----------
    precision : str
    part : int or None
        The part of a complex result that it adds to; None if it adds to all of the result.
    """

    precision: str
    part: int | None = None


def phases_of(
    config: MatrixUnitConfig, precision: str, depth: int, operation: str = "mma"
) -> list[Phase]:
    """The beats that a K of ``depth`` elements takes.

    A last beat of real elements is filled up. No filler does so for complex ones: of the products
    of two elements, a_r·b_r, −a_i·b_i, a_r·b_i and a_i·b_r, an odd number is positive, and +0 turns
    a sum of zeros with the sign − into +0. So what is left over goes as two real beats, one for
    each part; they take as many steps.

    Raises
    ------
    ValueError
        If that needs FP32, and the unit does not have it.
    """
    is_complex = precision in config.complex_precisions
    elements = _elements(config, precision, operation) // (2 if is_complex else 1)
    whole, left = divmod(depth, elements)
    phases = [Phase(precision)] * whole
    if not left:
        return phases
    if not is_complex:
        return [*phases, Phase(precision)]
    real = _real(precision)
    if real not in config.precisions or config.spec(real) != config.spec(precision):
        raise ValueError(
            f"K must be a multiple of {elements} on a unit with {precision} and without {real}, "
            f"not {depth}"
        )
    return [*phases, Phase(real, 0), Phase(real, 1)]


def _real(precision: str) -> str:
    """The precision of the parts of a complex one."""
    return {"fp32c": "fp32"}[precision]


def _elements(config: MatrixUnitConfig, precision: str, operation: str) -> int:
    """Of a row of A, in one beat."""
    return config.terms(precision) if operation == "mma" else config.pairs(operation)


def _fillers(config: MatrixUnitConfig, precision: str, operation: str) -> tuple[int, int]:
    """Codes that change nothing: pairs of NaNs lose, a square of 0 − 0 is +0 as any square is."""
    if precision == INT8:
        return 0, 0
    format = FORMATS[_format(precision)]
    if operation == "mma":
        return format.sign_mask, 0
    return (0, 0) if operation == "addnorm" else (format.canonical_nan, format.canonical_nan)


def cut_operands(
    config: MatrixUnitConfig,
    a: np.ndarray,
    b: np.ndarray,
    precision: str,
    operation: str = "mma",
) -> tuple[np.ndarray, np.ndarray]:
    """Bus words of A's rows and B's columns, beat by beat.

    Parameters
    ----------
    a : (batch, M, K) ndarray of codes
    b : (batch, N, K) ndarray of codes
        B transposed.

    Returns
    -------
    (batch, tile rows, phases, m[, words]), (batch, tile columns, phases, n[, words]) ndarray
        Rows and columns past the end are +0. K is filled up with what changes nothing: for a
        matrix product −0 in A and +0 in B.
    """
    terms, bits = _elements(config, precision, operation), config.operand_bits(precision)
    word = np.dtype(f"<u{bits // 8}")
    filler, other = _fillers(config, precision, operation)
    left, right = (np.ascontiguousarray(x).view(word) for x in (a, b))
    rest = left.shape[-1] % terms
    if precision in config.complex_precisions and rest:
        left, x = np.split(left, [left.shape[-1] - rest], axis=-1)
        right, y = np.split(right, [right.shape[-1] - rest], axis=-1)
        pairs = real_operands(x, y, filler)
        left = np.concatenate([left, *(_filled(x, terms, filler) for x, _ in pairs)], axis=-1)
        right = np.concatenate([right, *(_filled(y, terms, 0) for _, y in pairs)], axis=-1)
    left, right = _filled(left, terms, filler), _filled(right, terms, other)
    octets = config.bus_bits // 8
    return _bus(left, config.m, terms, octets), _bus(right, config.n, terms, octets)


def cut_sparse(
    config: MatrixUnitConfig, a: np.ndarray, places: np.ndarray, b: np.ndarray, operation: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with A compressed 2:4, and the places of its values.

    Parameters
    ----------
    a : (batch, M, K/2) ndarray of codes
    places : (batch, M, K/2) ndarray of int
    b : (batch, N, K) ndarray of codes

    Raises
    ------
    ValueError
        If a beat takes an odd number of values above 1.
    """
    pairs = _elements(config, "fp16", operation)
    if pairs % KEPT and pairs != 1:
        raise ValueError(f"values of a beat must be 1 or even, not {pairs!r}")
    filler, other = _fillers(config, "fp16", operation)
    left = _filled(np.ascontiguousarray(a, "<u2"), pairs, filler)
    beats = left.shape[-1] // pairs
    index = _filled(np.ascontiguousarray(places, np.uint8), pairs, 0)
    bits = (index[..., None] >> np.arange(2, dtype=np.uint8) & 1).reshape(*index.shape[:-1], -1)
    lanes = np.arange(config.k * GROUP // KEPT)
    group = np.arange(beats)[:, None] * pairs // KEPT + lanes // GROUP
    rows = np.where(lanes // GROUP * KEPT < pairs, group * GROUP + lanes % GROUP, b.shape[-1])
    full = np.full((*b.shape[:-1], max(b.shape[-1], int(rows.max())) + 1), other, "<u2")
    full[..., : b.shape[-1]] = b
    right = full[..., rows].reshape(*b.shape[:-1], -1)
    return (
        _bus(left, config.m, pairs, config.bus_bits // 8),
        _bus(right, config.n, len(lanes), config.b_bus_bits // 8),
        _packed(bits, config.m, 2 * pairs, config.index_bits),
    )


def _packed(bits: np.ndarray, side: int, width: int, total: int) -> np.ndarray:
    """Rows of bits, so many a beat, as numbers."""
    batch, height, length = bits.shape
    full = np.zeros((batch, _up(height, side) * side, length), np.uint8)
    full[:, :height] = bits
    split = full.reshape(batch, -1, side, length // width, width).swapaxes(2, 3)
    word = np.zeros((*split.shape[:-1], -(-total // 8) * 8), np.uint8)
    word[..., :width] = split
    return bus_words(np.packbits(word, axis=-1, bitorder="little"))


def real_operands(
    a: np.ndarray, b: np.ndarray, sign: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Real words whose products are those of the real, and of the imaginary parts."""
    negated = a.copy()
    negated[..., 1::2] ^= a.dtype.type(sign)
    swapped = b.reshape(*b.shape[:-1], -1, 2)[..., ::-1].reshape(b.shape)
    return (negated, b), (a, swapped)


def _format(precision: str) -> str:
    """The format of one real word."""
    return precision.removesuffix("c")


def _filled(words: np.ndarray, terms: int, filler: int) -> np.ndarray:
    """The last axis filled up to whole beats."""
    more = -words.shape[-1] % terms
    if not more:
        return words
    return np.concatenate([words, np.full((*words.shape[:-1], more), filler, words.dtype)], -1)


def _bus(words: np.ndarray, side: int, terms: int, octets: int) -> np.ndarray:
    batch, height, width = words.shape
    full = np.zeros((batch, _up(height, side) * side, width), words.dtype)
    full[:, :height] = words
    split = full.reshape(batch, -1, side, width // terms, terms).swapaxes(2, 3)
    raw = np.ascontiguousarray(split).view(np.uint8)
    bus = np.zeros((*raw.shape[:-1], octets), np.uint8)
    bus[..., : raw.shape[-1]] = raw
    return bus_words(bus)


def bus_words(octets: np.ndarray) -> np.ndarray:
    """Buses as the compiled model takes them: (…,) numbers up to 64 bits, else (…, words)."""
    words = -(-octets.shape[-1] // 8)
    padded = np.zeros((*octets.shape[:-1], 8 * words), np.uint8)
    padded[..., : octets.shape[-1]] = octets
    found = padded.view("<u8")
    return found[..., 0] if words == 1 else found


def cut_fractals(config: MatrixUnitConfig, codes: np.ndarray, bits: int) -> np.ndarray:
    """(batch, rows, columns, parts, m, n) C fractals of (batch, M, N) codes, filled up with +0.

    Codes have ``bits`` bits, complex ones twice as many; what they lack of a word is filled with 0.
    """
    batch, height, width = codes.shape
    parts = 8 * codes.dtype.itemsize // bits
    words = np.ascontiguousarray(codes).view(f"<u{bits // 8}")
    words = words.astype(f"<u{config.word_bits // 8}", copy=False)
    words = words.reshape(batch, height, width, parts)
    rows, columns = _up(height, config.m), _up(width, config.n)
    full = np.zeros((batch, rows * config.m, columns * config.n, parts), words.dtype)
    full[:, :height, :width] = words
    split = full.reshape(batch, rows, config.m, columns, config.n, parts)
    return split.transpose(0, 1, 3, 5, 2, 4)


def join_fractals(fractals: np.ndarray, height: int, width: int) -> np.ndarray:
    """(batch, height, width) codes of what `cut_fractals` gives."""
    batch, rows, columns, parts, m, n = fractals.shape
    full = fractals.transpose(0, 1, 4, 2, 5, 3).reshape(batch, rows * m, columns * n, parts)
    found = np.ascontiguousarray(full[:, :height, :width])
    return found.view(f"<u{parts * found.dtype.itemsize}")[..., 0]


def _up(size: int, step: int) -> int:
    return -(-size // step)
