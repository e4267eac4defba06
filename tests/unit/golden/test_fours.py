"""Integers of 4 bits: all bytes, all FP16 numbers in all roundings, and wrong arguments."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from vitruvian.golden.vector import from_fours, pack_fours, to_fours, unpack_fours

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def nearest(value, *, away):
    below = floor(value)
    rest = value - below
    if rest == Fraction(1, 2):
        up = (value > 0) if away else below % 2
        return below + bool(up)
    return below + (rest > Fraction(1, 2))


#: Rounding -> the integer of an exact number.
RULES = {
    "r": lambda value: nearest(value, away=False),
    "a": lambda value: nearest(value, away=True),
    "f": floor,
    "c": ceil,
    "z": int,
}


def test_all_bytes_are_two_numbers_the_low_one_first():
    codes = np.arange(256, dtype=np.uint8)
    numbers = unpack_fours(codes)
    signed = [code - 16 * (code > 7) for code in range(16)]
    assert numbers[::2].tolist() == [signed[code % 16] for code in range(256)]
    assert numbers[1::2].tolist() == [signed[code // 16] for code in range(256)]
    assert np.array_equal(pack_fours(numbers), codes)
    assert pack_fours([6, 7]).tolist() == [118]  # the example of the manual
    assert np.array_equal(from_fours(codes), numbers.astype(np.float16))
    assert from_fours(codes.reshape(2, 128)).shape == (2, 256)


@pytest.mark.parametrize("rounding", RULES)
def test_all_numbers_are_rounded_once_and_saturate(rounding):
    rule, expected = RULES[rounding], []
    for number in HALVES.tolist():
        if number != number:
            expected.append(0)
        elif abs(number) > 100:
            expected.append(7 if number > 0 else -8)
        else:
            expected.append(min(max(rule(Fraction(number)), -8), 7))
    result = unpack_fours(to_fours(HALVES, rounding))
    assert len(expected) == 1 << 16 and result.tolist() == expected


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([8, 0], ValueError, "must be -8 to 7, not 8"),
        ([0, -9], ValueError, "must be -8 to 7, not -9"),
        ([1, 2, 3], ValueError, r"must be \(..., 2·N\), not \(3,\)"),
        ([1.0, 2.0], TypeError, "must be integers, not float64"),
    ],
)
def test_wrong_numbers_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        pack_fours(values)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="codes must be bytes, not int32"):
        unpack_fours(np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="values must be float16"):
        to_fours(np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="odd rounding"):
        to_fours(np.zeros(2, np.float16), "o")
