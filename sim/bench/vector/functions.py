"""The arithmetic of the unit for exp and ln in integers, and a search for its widths.

``python -m vitruvian.sim.bench.vector.functions`` searches, for each number of segments and each
degree, the smallest widths with which all FP16 results are correctly rounded. The unit
(``hdl.vector.functions``) is compared with golden, not with this model.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from vitruvian.golden import vector
from vitruvian.hdl.vector.tables import (
    FRACTION,
    FunctionDesign,
    exp_table,
    ln_of_2,
    ln_table,
    log2_of_e,
)

_CODES = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
_SIGN = (_CODES >> 15).astype(np.int64)
_FIELD = ((_CODES >> FRACTION) & 31).astype(np.int64)
_EXPONENT = np.maximum(_FIELD, 1)
_SIGNIFICAND = (_CODES & 1023).astype(np.int64) + ((_FIELD > 0) << FRACTION)


def _polynomial(
    design: FunctionDesign, table: list[list[int]], segment: np.ndarray, u: np.ndarray, bits: int
) -> np.ndarray:
    """Return Σ c_j u^j by Horner's rule; u has ``bits`` bits and is cut in every product."""
    columns = np.array(table, np.int64)
    result = columns[segment, design.degree]
    for power in reversed(range(design.degree)):
        width = design.position_bits(power)
        cut = u >> (bits - width) if bits >= width else u << (width - bits)
        result = columns[segment, power] + ((result * cut) >> width)
    return result


def _packed(word: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Return the FP16 codes of word · 2^exponent, rounded to nearest, ties to even."""
    length = np.floor(np.log2(np.maximum(word, 1))).astype(np.int64) + 1  # words are below 2^53
    top = length - 1 + exponent
    low = np.maximum(top, -14) - FRACTION  # weight of the result's last place
    drop = np.clip(low - exponent, -60, 60)
    kept = np.where(drop > 0, word >> np.maximum(drop, 0), word << np.maximum(-drop, 0))
    guard = np.where(drop > 0, (word >> np.maximum(drop - 1, 0)) & 1, 0)
    rest = (word & ((np.int64(1) << np.maximum(drop - 1, 0)) - 1)) != 0
    kept = kept + (guard & (rest | (kept & 1)))
    code = np.maximum(low + FRACTION + 14, 0) * 1024 + kept
    return np.minimum(code, 0x7C00)


def _exp_place(design: FunctionDesign) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n, the segment of f, and the position in the segment, for x = every FP16 code."""
    t = _SIGNIFICAND * log2_of_e(design.constant_bits)
    down = design.constant_bits + 25 - _EXPONENT - design.argument_bits
    t = np.where(down > 0, t >> np.clip(down, 0, 62), t << np.clip(-down, 0, 20))
    t = np.where(_SIGN == 1, ~t, t)
    g, k = design.argument_bits, design.exp_segments
    rest = t & ((1 << g) - 1)
    return t >> g, rest >> (g - k), rest & ((1 << (g - k)) - 1)


def exp_codes(design: FunctionDesign) -> np.ndarray:
    """Return exp of all FP16 codes with |x| < 32, as the unit computes it."""
    whole, segment, u = _exp_place(design)
    bits = design.argument_bits - design.exp_segments
    y = _polynomial(design, exp_table(design), segment, u, bits)
    return _packed(y, np.clip(whole, -40, 40) - design.bits)


def _ln_place(design: FunctionDesign) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the exponent, the segment of m, and the position in the segment."""
    shift = FRACTION - np.floor(np.log2(np.maximum(_SIGNIFICAND, 1))).astype(np.int64)
    fraction = (_SIGNIFICAND << shift) & 1023
    bits = FRACTION - design.ln_segments
    u = ~fraction & ((1 << bits) - 1)
    return _EXPONENT - 15 - shift + (fraction >> 9), fraction >> bits, u


def ln_codes(design: FunctionDesign) -> np.ndarray:
    """Return ln of all positive FP16 codes, as the unit computes it."""
    exponent, segment, u = _ln_place(design)
    bits = FRACTION - design.ln_segments
    value = _polynomial(design, ln_table(design), segment, u, bits)
    total = value - exponent * ln_of_2(design.bits)  # -ln(x)
    magnitude = np.where(total < 0, ~total, total)
    magnitude = np.where(_CODES == 0x3C00, 0, magnitude)
    sign = np.where((total >= 0) & (magnitude > 0), 0x8000, 0)
    return _packed(magnitude, np.full(1 << 16, -design.bits)) * (magnitude > 0) | sign


@lru_cache
def _golden() -> tuple[np.ndarray, np.ndarray]:
    numbers = _CODES.view(np.float16)
    return vector.exp(numbers).view(np.uint16), vector.ln(numbers).view(np.uint16)


def _bad(design: FunctionDesign, function: int) -> np.ndarray:
    """Return for every code whether exp (0) or ln (1) of it is wrong."""
    golden = _golden()[function]
    # Other codes have results that do not depend on the tables: infinities, zeros and NaNs.
    if function == 0:
        return (exp_codes(design) != golden) & (_FIELD < 20)
    return (ln_codes(design) != golden) & (_SIGN == 0) & (_SIGNIFICAND > 0) & (_FIELD < 31)


def wrong(design: FunctionDesign) -> tuple[int, int]:
    """Return the number of results of exp and of ln that are not correctly rounded."""
    return int(_bad(design, 0).sum()), int(_bad(design, 1).sum())


def _offsets(
    design: FunctionDesign, function: int, bias: int
) -> tuple[tuple[int, int], ...] | None:
    """Return the offsets with which every segment is right; None if a segment has none.

    ``function`` is 0 for exp and 1 for ln. The smallest changes of ``bias`` are preferred.
    """
    place = (_exp_place, _ln_place)[function](design)[1]
    count = 1 << (design.exp_segments, design.ln_segments)[function]
    chosen: dict[int, int] = {}
    for offset in sorted(_OFFSETS, key=lambda offset: (abs(offset - bias), offset)):
        bad = _bad(replace(design, bias=offset), function)
        wrong_in = np.bincount(place[bad], minlength=count)
        for segment in np.flatnonzero(wrong_in == 0):
            chosen.setdefault(int(segment), offset)
        if len(chosen) == count:
            return tuple((i, o) for i, o in sorted(chosen.items()) if o != bias)
    return None


def search(
    degree: int, exp_segments: int, ln_segments: int, *, narrowest: int = 20, widest: int = 30
) -> FunctionDesign | None:
    """Return the first design without a wrong result in the order of its widths.

    For each width, the search moves c_0 of the segments that have wrong results.
    """
    for bits in range(narrowest, widest):
        design = FunctionDesign(
            degree=degree,
            exp_segments=exp_segments,
            ln_segments=ln_segments,
            bits=bits,
            argument_bits=bits,
            constant_bits=bits,
            bias=1,
        )
        ln = _offsets(design, 1, design.bias)
        if ln is None:
            continue
        for argument, constant in product(range(bits - 2, bits + 2), range(bits - 4, bits + 4)):
            narrow = replace(design, argument_bits=argument, constant_bits=constant)
            exp = _offsets(narrow, 0, design.bias)
            if exp is not None:
                return replace(narrow, exp_offsets=exp, ln_offsets=ln)
    return None


#: Units of the last place by which the search moves a coefficient.
_OFFSETS = range(-5, 8)


def main() -> None:
    """Print the narrowest design for each degree and numbers of segments."""
    for degree, exp_segments, ln_segments in _SHAPES:
        print(search(degree, exp_segments, ln_segments), flush=True)


#: Degree, and base-2 logarithms of the numbers of segments of exp and ln.
_SHAPES = ((2, 8, 7), (2, 7, 7), (2, 6, 6), (2, 5, 6), (2, 5, 5), (3, 4, 4), (3, 3, 4), (3, 3, 3))


if __name__ == "__main__":
    main()
