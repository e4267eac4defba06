"""The integer dot product against Python integers."""

import numpy as np
import pytest

from vitruvian.golden.fp import int_dot


def reference(a, b, c, signed_a, signed_b, saturate):
    def value(code, bits, signed):
        code %= 1 << bits
        return code - (1 << bits) if signed and code >> (bits - 1) else code

    total = value(c, 32, True)
    for x, y in zip(a, b, strict=True):
        total += value(x, 8, signed_a) * value(y, 8, signed_b)
    if saturate:
        return min(max(total, -(1 << 31)), (1 << 31) - 1)
    return value(total, 32, True)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("signed_b", [False, True])
@pytest.mark.parametrize("signed_a", [False, True])
def test_equals_python(signed_a, signed_b, saturate):
    rng = np.random.default_rng(1)
    edges = [0, 1, 0x7F, 0x80, 0xFF]
    a = np.concatenate([rng.integers(0, 256, (500, 32)), rng.choice(edges, (500, 32))])
    b = np.concatenate([rng.integers(0, 256, (500, 32)), rng.choice(edges, (500, 32))])
    c = rng.integers(0, 1 << 32, 1000)
    c[::3] = 0x7FFFFFFF - rng.integers(0, 1 << 20, len(c[::3]))
    c[1::3] = 0x80000000 + rng.integers(0, 1 << 20, len(c[1::3]))
    flags = {"signed_a": signed_a, "signed_b": signed_b, "saturate": saturate}
    d = int_dot(a.astype(np.uint8), b.astype(np.uint8), c.astype(np.uint32), **flags)
    assert d.dtype == np.int32
    expected = [
        reference(*row, **flags) for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert d.tolist() == expected
    values = int_dot(
        a.astype(np.uint8).view(np.int8), b, c.astype(np.uint32).view(np.int32), **flags
    )
    assert values.tolist() == expected


def test_every_pair():
    a, b = np.meshgrid(np.arange(256), np.arange(256))
    assert a.size == 65536
    a, b = a.ravel().astype(np.uint8), b.ravel().astype(np.uint8)
    signed = a.view(np.int8).astype(int) * b.view(np.int8)
    assert np.array_equal(int_dot(a[:, None], b[:, None], 0), signed)
    unsigned = int_dot(a[:, None], b[:, None], 0, signed_a=False, signed_b=False)
    assert np.array_equal(unsigned, a.astype(int) * b)


def test_saturates_once_at_the_end():
    """A sum that leaves the range and returns is not clipped; one that stays out is."""
    top = (1 << 31) - 1
    assert int_dot([127, -127], [127, 127], top, saturate=True) == top
    assert int_dot([127, 1], [127, 1], top, saturate=True) == top
    assert int_dot([1], [1], top) == -(1 << 31)
    assert int_dot([-1], [1], -(1 << 31), saturate=True) == -(1 << 31)


@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ([256], [0], 0, "a must be between -128 and 255, not 256"),
        ([0], [-129], 0, "b must be between -128 and 255, not -129"),
        ([0], [0], 1 << 32, "c must be between -2147483648 and 4294967295"),
        ([0.5], [0], 0, "a must be integers, not float64"),
        ([0, 1], [0], 0, "same K"),
    ],
)
def test_bad_operands(a, b, c, message):
    with pytest.raises((TypeError, ValueError), match=message):
        int_dot(a, b, c)
