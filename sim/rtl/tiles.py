"""Conversion between matrices and the fractals that the compiled model of a matrix unit takes.

The code of a complex element is twice as wide as the code of a real one and has the real part in
its low half, like an element of a complex array in memory. A row of K complex codes is therefore a
row of 2·K real words.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden.fp import FORMATS
from vitruvian.golden.simd2.op import GROUP, KEPT
from vitruvian.hdl.cube import MatrixUnitConfig

INT8 = "int8"


@dataclass(frozen=True)
class Phase:
    """The kind of a beat, which is the same for every tile.

    Attributes
    ----------
    precision : str
        Precision in which the unit executes the beat.
    part : int or None
        Part of a complex result to which the beat adds: 0 for the real and 1 for the imaginary
        part. None means that it adds to the whole result.
    """

    precision: str
    part: int | None = None


def phases_of(
    config: MatrixUnitConfig, precision: str, depth: int, operation: str = "mma"
) -> list[Phase]:
    """Return the beats that a sum over ``depth`` elements takes.

    The last beat of real elements is padded to its full number of terms. Complex elements cannot be
    padded. The product of two elements consists of a_r·b_r, −a_i·b_i, a_r·b_i and a_i·b_r; whatever
    signs the zeros of a padding element have, at least one of these products is +0, and adding it
    would change a sum of −0 into +0. So the remaining complex elements are sent as two beats of
    real elements, one for each part of the result, which take the same number of steps.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    precision : str
        One of ``config.precisions``.
    depth : int
        Number of elements in a row of A, K.
    operation : str
        One of ``config.operations``.

    Raises
    ------
    ValueError
        If a remainder of complex elements needs the real precision, and the unit lacks it.
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
    """Return the precision of the parts of a complex precision."""
    return {"fp32c": "fp32"}[precision]


def _elements(config: MatrixUnitConfig, precision: str, operation: str) -> int:
    """Return the number of elements of a row of A in one beat."""
    return config.terms(precision) if operation == "mma" else config.pairs(operation)


def _fillers(precision: str, operation: str) -> tuple[int, int]:
    """Return the padding codes for A and for B, which change no bit of the result.

    A sum of products is padded with −0 · +0 = −0, the identity of addition. An addnorm is padded
    with (0 − 0)² = +0, which changes no sum of squares, because such a sum is never −0. For the
    other operations, a pair of NaNs is a candidate that loses every comparison.
    """
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
    """Return the bus words of A's rows and of B's columns for each beat.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    a : (batch, M, K) ndarray of codes
    b : (batch, N, K) ndarray of codes
        B transposed.
    precision, operation : str
        One of ``config.precisions``, and one of ``config.operations``.

    Returns
    -------
    left : (batch, tile rows, phases, m[, words]) ndarray
    right : (batch, tile columns, phases, n[, words]) ndarray
        Rows and columns beyond the matrix are +0. K is padded with codes that do not change the
        result; for a matrix product these are −0 in A and +0 in B.
    """
    terms, bits = _elements(config, precision, operation), config.operand_bits(precision)
    word = np.dtype(f"<u{bits // 8}")
    filler, other = _fillers(precision, operation)
    left, right = (np.ascontiguousarray(x).view(word) for x in (a, b))
    rest = left.shape[-1] % terms
    if precision in config.complex_precisions and rest:
        # The last elements become beats of real elements; see ``phases_of``. The filler of a matrix
        # product is −0, whose code is also the mask of the sign bit.
        left, x = np.split(left, [left.shape[-1] - rest], axis=-1)
        right, y = np.split(right, [right.shape[-1] - rest], axis=-1)
        pairs = real_operands(x, y, filler)
        left = np.concatenate([left, *(_filled(x, terms, filler) for x, _ in pairs)], axis=-1)
        right = np.concatenate([right, *(_filled(y, terms, 0) for _, y in pairs)], axis=-1)
    left, right = _filled(left, terms, filler), _filled(right, terms, other)
    octets = config.bus_bits // 8
    return _bus(left, config.m, terms, octets), _bus(right, config.n, terms, octets)


def cut_sparse(
    config: MatrixUnitConfig, a: np.ndarray, indices: np.ndarray, b: np.ndarray, operation: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bus words of a compressed A, of B, and of A's indices for each beat.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of a unit with sparsity.
    a : (batch, M, K/2) ndarray of codes
        A compressed 2:4.
    indices : (batch, M, K/2) ndarray of int
        Position 0 to 3 of each value of A in its group of four.
    b : (batch, N, K) ndarray of codes
        B transposed.
    operation : str
        One of ``config.operations``.

    Returns
    -------
    left, right, index : ndarray
        ``left`` and ``right`` are as in ``cut_operands``; ``index`` has the shape of ``left``.

    Raises
    ------
    ValueError
        If a beat takes an odd number of values greater than 1.
    """
    pairs = _elements(config, "fp16", operation)
    if pairs % KEPT and pairs != 1:
        raise ValueError(f"values of a beat must be 1 or even, not {pairs!r}")
    filler, other = _fillers("fp16", operation)
    left = _filled(np.ascontiguousarray(a, "<u2"), pairs, filler)
    beats = left.shape[-1] // pairs
    index = _filled(np.ascontiguousarray(indices, np.uint8), pairs, 0)
    bits = (index[..., None] >> np.arange(2, dtype=np.uint8) & 1).reshape(*index.shape[:-1], -1)
    # Lane l of B's bus gets row l mod 4 of group l // 4 of the beat. (With one value per beat, two
    # successive beats use the same group.) Lanes that the beat does not use get row K, a filler.
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
    """Return rows of bits, ``width`` of them in each beat, as numbers of ``total`` bits."""
    batch, height, length = bits.shape
    full = np.zeros((batch, round_up(height, side), length), np.uint8)
    full[:, :height] = bits
    split = full.reshape(batch, -1, side, length // width, width).swapaxes(2, 3)
    word = np.zeros((*split.shape[:-1], round_up(total, 8)), np.uint8)
    word[..., :width] = split
    return bus_words(np.packbits(word, axis=-1, bitorder="little"))


def real_operands(
    a: np.ndarray, b: np.ndarray, sign: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return real operands for the real part, and for the imaginary part, of complex products.

    Parameters
    ----------
    a, b : (..., 2·K) ndarray of codes
        Complex elements as real words.
    sign : int
        Mask of the sign bit.

    Returns
    -------
    real, imaginary : pair of ndarray
        Operands whose sums of real products are Σ a_r·b_r − a_i·b_i and Σ a_r·b_i + a_i·b_r.
    """
    negated = a.copy()
    negated[..., 1::2] ^= a.dtype.type(sign)
    swapped = b.reshape(*b.shape[:-1], -1, 2)[..., ::-1].reshape(b.shape)
    return (negated, b), (a, swapped)


def _format(precision: str) -> str:
    """Return the format of a real word."""
    return precision.removesuffix("c")


def _filled(words: np.ndarray, terms: int, filler: int) -> np.ndarray:
    """Pad the last axis to whole beats."""
    more = -words.shape[-1] % terms
    if not more:
        return words
    return np.concatenate([words, np.full((*words.shape[:-1], more), filler, words.dtype)], -1)


def _bus(words: np.ndarray, side: int, terms: int, octets: int) -> np.ndarray:
    batch, height, width = words.shape
    # The results of rows beyond the matrix are dropped by ``join_fractals``, so they may be zero.
    full = np.zeros((batch, round_up(height, side), width), words.dtype)
    full[:, :height] = words
    split = full.reshape(batch, -1, side, width // terms, terms).swapaxes(2, 3)
    raw = np.ascontiguousarray(split).view(np.uint8)
    bus = np.zeros((*raw.shape[:-1], octets), np.uint8)
    bus[..., : raw.shape[-1]] = raw
    return bus_words(bus)


def bus_words(octets: np.ndarray) -> np.ndarray:
    """Convert the bytes of buses to the form that the compiled model takes.

    Parameters
    ----------
    octets : (..., bytes) ndarray of uint8
        The first byte is the least significant.

    Returns
    -------
    (...,) ndarray of uint64, or (..., words) for buses wider than 64 bits
    """
    words = ceil_div(octets.shape[-1], 8)
    padded = np.zeros((*octets.shape[:-1], 8 * words), np.uint8)
    padded[..., : octets.shape[-1]] = octets
    numbers = padded.view("<u8")
    return numbers[..., 0] if words == 1 else numbers


def cut_fractals(config: MatrixUnitConfig, codes: np.ndarray, bits: int) -> np.ndarray:
    """Cut codes into C fractals, padded with +0.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    codes : (batch, M, N) ndarray of codes
    bits : int
        Width of a real code. Complex codes are twice as wide.

    Returns
    -------
    fractals : (batch, rows, columns, parts, m, n) ndarray
        Words of the unit, whose upper bits are 0 if the codes are narrower.
    """
    batch, height, width = codes.shape
    # A complex code is two words, the real part first.
    parts = 8 * codes.dtype.itemsize // bits
    words = np.ascontiguousarray(codes).view(f"<u{bits // 8}")
    words = words.astype(f"<u{config.word_bits // 8}", copy=False)
    words = words.reshape(batch, height, width, parts)
    rows, columns = ceil_div(height, config.m), ceil_div(width, config.n)
    full = np.zeros((batch, rows * config.m, columns * config.n, parts), words.dtype)
    full[:, :height, :width] = words
    split = full.reshape(batch, rows, config.m, columns, config.n, parts)
    return split.transpose(0, 1, 3, 5, 2, 4)


def join_fractals(fractals: np.ndarray, height: int, width: int) -> np.ndarray:
    """Join fractals into matrices; the inverse of ``cut_fractals``.

    Parameters
    ----------
    fractals : (batch, rows, columns, parts, m, n) ndarray of codes
    height, width : int
        M and N of the matrices.

    Returns
    -------
    codes : (batch, height, width) ndarray
    """
    batch, rows, columns, parts, m, n = fractals.shape
    full = fractals.transpose(0, 1, 4, 2, 5, 3).reshape(batch, rows * m, columns * n, parts)
    codes = np.ascontiguousarray(full[:, :height, :width])
    return codes.view(f"<u{parts * codes.dtype.itemsize}")[..., 0]
