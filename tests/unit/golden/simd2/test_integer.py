"""The integer variant of SIMD² against Python integers."""

import numpy as np
import pytest

from vitruvian.golden.simd2 import Op
from vitruvian.golden.simd2.integer import INT_BITS, int_identity, int_mmo


def wrap(value, bits):
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


TIMES = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: int(a != 0 and b != 0),
    "sqdiff": lambda a, b: (a - b) ** 2,
}
PLUS = {
    "add": lambda x, y: x + y,
    "min": min,
    "max": max,
    "or": lambda x, y: int(x != 0 or y != 0),
}


def reference(op, a, b, c, bits):
    """Compute one result with Python integers, wrapped after every step."""
    for x, y in zip(a, b, strict=True):
        term = wrap(TIMES[op.times](wrap(x, bits), wrap(y, bits)), bits)
        c = wrap(PLUS[op.plus](wrap(c, bits), term), bits)
    return PLUS["or"](c, 0) if op.plus == "or" else wrap(c, bits)


@pytest.mark.parametrize("bits", INT_BITS)
@pytest.mark.parametrize("op", Op)
def test_equals_python(op, bits):
    rng = np.random.default_rng(7)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    edges = np.array([0, 0, 1, -1, low, high])

    def matrix(*shape):
        random = rng.integers(low, high, shape, endpoint=True)
        return np.where(rng.random(shape) < 0.5, random, rng.choice(edges, shape))

    a, b, c = matrix(3, 9, 5), matrix(3, 5, 8), matrix(3, 9, 8)
    a[:, 0], b[:, :, 0], c[:, 0, 0] = 0, 0, 0
    d = int_mmo(op, a, b, c, bits)
    assert d.dtype == np.dtype(f"i{bits // 8}") and d.shape == (3, 9, 8)
    for t, i, j in np.ndindex(d.shape):
        row, column = a[t, i].tolist(), b[t, :, j].tolist()
        assert d[t, i, j] == reference(op, row, column, int(c[t, i, j]), bits)


@pytest.mark.parametrize("op", Op)
def test_every_pair_of_bytes(op):
    """With K = 1 and the identity as C, there are 65536 results."""
    values = np.arange(-128, 128)
    d = int_mmo(op, values[:, None], values[None, :], bits=8)
    assert d.size == 65536
    start = int_identity(op, 8)
    expected = [[reference(op, [x], [y], start, 8) for y in range(-128, 128)] for x in values]
    assert np.array_equal(d, expected)


def test_codes_and_values_are_the_same_operand():
    a, b = np.array([[0x8000, 0xFFFF]]), np.array([[1], [2]])
    for op in Op:
        same = int_mmo(op, a.astype(np.uint16).view(np.int16), b, bits=16)
        assert np.array_equal(int_mmo(op, a, b, bits=16), same)


@pytest.mark.parametrize("op", Op)
def test_no_terms_leave_c(op):
    c = np.array([[5, -3]])
    d = int_mmo(op, np.zeros((1, 0), int), np.zeros((0, 2), int), c, 16)
    assert d.tolist() == ([[1, 1]] if op is Op.ORAND else [[5, -3]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 12}, "bits must be one of 8, 16, 32, 64, not 12"),
        ({"a": [[0.5]]}, "a must be integers, not float64"),
        ({"b": [[65536]]}, "b must be between -32768 and 65535, not 65536"),
        ({"a": [[1, 2]]}, "with the same K"),
        ({"c": [[1, 2, 3], [1, 2, 3]]}, r"c must be \(\.\.\., 1, 1\)"),
        ({"op": "minmin"}, "op must be one of"),
    ],
)
def test_bad_operands(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        int_mmo(**{"op": "mma", "a": [[1]], "b": [[1]], "bits": 16} | change)
