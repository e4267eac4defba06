"""RVBNA as the pseudocode of its draft computes it, which is not as the draft's text says.

RISC-V's draft describes bulk normalisation twice, in sentences and in pseudocode. The sentences
agree with the simulator Spike and with the rows ``rvbna_…`` of the table of machines. The
pseudocode, as it is printed, drops bits in two places; ``printed_dot`` models it step by step, so
that both can be compared. Nothing else uses this module.

References
----------
RISC-V Instruction Set Manual, draft, "RISC-V Bulk Normalization Algorithm" (RVBNA), in the texts of
March and August 2026; issue 3195 and pull request 3244 of riscv/riscv-isa-manual.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import Unpacked, as_codes, code_dtype, unpack
from vitruvian.golden.fp.general import add_rounded
from vitruvian.golden.fp.round import bit_length
from vitruvian.golden.fp.spec import DotSpec

#: The errors of the pseudocode that ``printed_dot`` can repair.
REPAIRS = ("mask", "subnormal")
_FAR = 62  # a right shift that leaves no bit


class Accumulator(NamedTuple):
    """The sum of the aligned products before it is rounded, for n dot products.

    The pseudocode and the text agree up to here.
    """

    sign: np.ndarray  # (n,) bool
    magnitude: np.ndarray  # (n,) int64, below 2^width
    zeros: np.ndarray  # (n,) int64: the leading zeros of the magnitude in width bits
    field: np.ndarray  # (n,) int64: the exponent field of the leading one, below 1 if subnormal
    aligned: np.ndarray  # (n, K) int64: the magnitudes of the aligned products
    width: int  # bits of the accumulator: the result's significand, 1, and twice the guard bits


def accumulate(a: np.ndarray, b: np.ndarray, rule: DotSpec) -> Accumulator:
    """Align the products to odd and add them; infinities and NaNs count as zeros.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, codes of ``rule.input`` and ``rule.input_b``
    rule : DotSpec
        A rule of RVBNA.

    Raises
    ------
    ValueError
        If the rule is not one of RVBNA, K is not its K, or a product has more bits than the window.
    """
    x, y = unpack(a, rule.input), unpack(b, rule.input_b)
    precision, guard = rule.output.significand_bits, (rule.k - 1).bit_length()
    padding = precision + 1 + guard - rule.input.significand_bits - rule.input_b.significand_bits
    if rule.sum.truncate != "odd" or rule.addend.how != "late" or padding < 0:
        raise ValueError(f"rule must be one of RVBNA with formats of 8 or 16 bits, not {rule}")
    if x.sign.shape[-1] != rule.k:
        raise ValueError(f"K must be {rule.k}, not {x.sign.shape[-1]}")
    sign = x.sign ^ y.sign
    product = (x.significand * y.significand) << padding
    # The reference exponent is the sum of the exponent fields, and 0 for a zero.
    reference = x.exponent + rule.input.bias + y.exponent + rule.input_b.bias
    reference = np.where(product != 0, reference, 0)
    largest = reference.max(axis=1)
    shift = np.minimum(largest[:, None] - reference, _FAR)
    aligned = product >> shift
    aligned |= (aligned << shift) != product
    total = _signed(sign, aligned).sum(axis=1)
    width = precision + 1 + 2 * guard
    zeros = width - bit_length(np.abs(total))
    bias = rule.input.bias + rule.input_b.bias - rule.output.bias
    field = largest + guard + 1 - zeros - bias
    return Accumulator(total < 0, np.abs(total), zeros, field, aligned, width)


def printed_dot(
    a: ArrayLike, b: ArrayLike, rule: DotSpec, repairs: Collection[str] = ()
) -> np.ndarray:
    """Return dot products without C as the printed pseudocode of the draft computes them.

    The sum stands in an accumulator of 25 + 2·g bits with g guard bits (for a result in FP32). Its
    leading one is shifted to the top, the lowest g + g + 1 bits leave, and the last bit that stays
    is set if one of them was 1. Two of these steps are printed with an error:

    - "mask": the mask of the bits that leave is shifted right by g + g + 1 less the leading zeros,
      although the number has been shifted left already. It misses the bits that the sum brought.
    - "subnormal": the leading one of a subnormal result has the field 0, −1, −2, …, and the number
      must move right by one more place for each. It is taken before the normalisation and moves
      right by 23 plus the field, that is, by one place *less* for each; the mask of its lost bits
      shrinks, too.

    Parameters
    ----------
    a, b : (n, K) array_like of unsigned int, codes of ``rule.input`` and ``rule.input_b``
    rule : DotSpec
        A rule of RVBNA.
    repairs : collection of str
        The errors to repair, among ``REPAIRS``. With both, the result is that of the rule.

    Returns
    -------
    (n,) ndarray of unsigned int, codes of ``rule.output``

    Raises
    ------
    TypeError, ValueError
        If the operands are not codes of their formats, or as ``accumulate`` says.
    """
    unknown = [name for name in repairs if name not in REPAIRS]
    if unknown:
        raise ValueError(f"repairs must be among {', '.join(REPAIRS)}, not {unknown[0]!r}")
    x, y = as_codes(a, rule.input, "a"), as_codes(b, rule.input_b, "b")
    sum_ = accumulate(x, y, rule)
    out = rule.output
    leaving = sum_.width - out.significand_bits
    top = sum_.magnitude << sum_.zeros
    mask = (1 << leaving) - 1
    if "mask" not in repairs:
        mask = mask >> np.where(sum_.zeros > leaving, 0, leaving - sum_.zeros)
    fraction = ((top >> leaving) | ((top & mask) != 0)) & ((1 << out.fraction_bits) - 1)
    infinity = out.overflow
    code = np.where(
        sum_.field >= out.exponent_ones, infinity, (sum_.field << out.fraction_bits) | fraction
    )
    small = _subnormal(sum_, out.fraction_bits, "subnormal" in repairs)
    code = np.where(sum_.field < 1, small, code)
    # A code that has grown beyond its bits would spill into the sign.
    code = np.where(sum_.magnitude == 0, 0, code) & (out.sign_mask - 1)
    code = np.where(sum_.sign & (sum_.magnitude != 0), code | out.sign_mask, code)
    return _with_specials(code, unpack(x, rule.input), unpack(y, rule.input_b), rule)


def printed_run(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, rule: DotSpec, repairs: Collection[str] = ()
) -> np.ndarray:
    """Return D = C + dot product, where the dot product is that of ``printed_dot``.

    Parameters
    ----------
    a, b, rule, repairs
        As in ``printed_dot``.
    c : (n,) array_like of unsigned int, codes of ``rule.output``

    Returns
    -------
    (n,) ndarray of unsigned int, codes of ``rule.output``
    """
    return add_rounded(printed_dot(a, b, rule, repairs), as_codes(c, rule.output, "c"), rule)


def _signed(sign: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
    return np.where(sign, -magnitude, magnitude)


def _subnormal(sum_: Accumulator, fraction_bits: int, repaired: bool) -> np.ndarray:
    """Return the magnitude's code where the result is subnormal."""
    if repaired:
        value = sum_.magnitude << sum_.zeros
        shift = np.clip(sum_.width - fraction_bits - sum_.field, 0, _FAR)
        kept = value >> shift
        return kept | ((kept << shift) != value)
    shift = np.clip(fraction_bits + sum_.field, 0, _FAR)
    lost = sum_.magnitude & (((1 << fraction_bits) - 1) >> shift)
    printed = (sum_.magnitude >> shift) | (lost != 0)
    # Below all subnormal numbers, only the bit for "not zero" is left, and that is right.
    return np.where(sum_.field < -fraction_bits, 1, printed)


def _with_specials(code: np.ndarray, x: Unpacked, y: Unpacked, rule: DotSpec) -> np.ndarray:
    """Replace the results of infinities and NaNs, where the draft has no error."""
    sign = x.sign ^ y.sign
    zero = [(u.significand == 0) & ~u.infinity & ~u.nan for u in (x, y)]
    infinite = x.infinity | y.infinity
    nan = x.nan | y.nan | (x.infinity & zero[1]) | (y.infinity & zero[0])
    plus, minus = ((infinite & (sign == s)).any(axis=1) for s in (False, True))
    out = rule.output
    code = np.where(plus, out.overflow, code)
    code = np.where(minus, out.overflow | out.sign_mask, code)
    code = np.where(nan.any(axis=1) | (plus & minus), rule.nan_code, code)
    return code.astype(code_dtype(out))
