"""Results of ``ieee`` for K > 1 if large terms cancel: the figures of docs/units/fp.md."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from vitruvian.golden.fp import FORMATS, from_float, fused_dot, to_float
from vitruvian.golden.machines.presets import PRESETS

PAIRS = [
    ("fp16", "fp32"), ("bf16", "fp32"), ("tf32", "fp32"), ("fp32", "fp32"), ("fp64", "fp64"),
    ("fp8e4m3", "fp32"), ("fp8e5m2", "fp32"), ("fp16", "fp16"), ("fp8e4m3", "fp16"),
    ("fp8e5m2", "fp16"),
]  # fmt: skip


def cancelled(input: str, output: str, large: int, small: int):
    """Return the result and the spec of x² − x² + y² − y² for x = 2^large and y = 2^small.

    The exact sum is 0, and C is +0.
    """
    spec = PRESETS["ieee"].spec(input, output, k=4)
    big, little = (from_float(np.array([2.0**e, -(2.0**e)]), input) for e in (large, small))
    a, b = [big[0], big[1], little[0], little[1]], [big[0], big[0], little[0], little[0]]
    return fused_dot(np.array([a]), np.array([b]), np.zeros(1, np.uint64), spec)[0], spec


def worst(input: str, output: str) -> tuple[int, float]:
    """Return the window, and the result if the largest power of two cancels."""
    f = FORMATS[input]
    code, spec = cancelled(input, output, f.emax, f.emin - f.fraction_bits)
    return spec.sum.window or 0, float(to_float(code, output))


def gives_minus_zero(input: str, output: str) -> bool:
    """Return True if an exact sum of 0 can give −0 for some powers of two."""
    f = FORMATS[input]
    exponents = range(f.emin - f.fraction_bits, 1)
    window = PRESETS["ieee"].spec(input, output).sum.window or 0
    for large in exponents:
        small = max(exponents.start, large - window // 2 - 1)
        if 2 * small < 2 * large - window:
            code, _ = cancelled(input, output, large, small)
            if code == FORMATS[output].negative_zero:
                return True
    return False


@pytest.mark.parametrize(("input", "output"), PAIRS)
def test_documented_figures_of_full_cancellation(root: Path, input: str, output: str):
    """The result is q/2 below zero, −2^(2·emax − F − 1), which may exceed the output's range."""
    window, result = worst(input, output)
    half_unit = 2 * FORMATS[input].emax - window - 1
    largest = float(to_float(FORMATS[output].max_finite, output))
    expected = -math.inf if half_unit > math.log2(largest) else -(2.0**half_unit)
    assert result == expected
    shown = "−∞" if math.isinf(result) else f"−2^{half_unit}".replace("^-", "^−")
    row = rf"\| {input} → {output} \| {window} \| {re.escape(shown)} \| (yes|no) \|"
    match = re.search(row, (root / "docs" / "units" / "fp.md").read_text())
    assert match, row
    assert (match[1] == "yes") == gives_minus_zero(input, output)


def test_the_worked_example_of_the_documentation():
    spec = PRESETS["ieee"].spec("fp32", k=4)
    big, one = (int(from_float(2.0**e, "fp32")) for e in (100, 0))
    minus = 1 << 31
    for sign, expected in ((0, math.inf), (minus, -math.inf)):  # the exact sum is 1 or −1
        d = fused_dot([big, big | minus, one | sign, 0], [big, big, one, 0], 0, spec)
        assert to_float(d, "fp32") == expected
    tiny, less = (int(from_float(2.0**e, "fp32")) for e in (-52, -80))
    a, b = [tiny, tiny | minus, less, less | minus], [tiny, tiny, less, less]
    assert fused_dot(a, b, 0, spec) == minus  # −0; the exact sum is 0, in IEEE 754 +0
    large = int(from_float(2.0**63, "fp32"))
    a, b = [large, large | minus, one, 0], [large, large, one, 0]
    assert to_float(fused_dot(a, b, 0, spec), "fp32") == 2.0**77  # the exact sum is 1
    chain = PRESETS["ieee"].spec("fp32", k=1)
    assert to_float(fused_dot(a, b, 0, chain), "fp32") == 1  # fused multiply-adds in this order


def test_complex_products_have_two_terms():
    """The real part x·x − y·y of (x + iy)² is rounded once.

    With a second product in the block it cancels like any other sum.
    """
    spec = PRESETS["ieee"].spec("fp32", k=2)
    x, y = 1.0 + 2.0**-23, 1.0 + 2.0**-22
    codes = [int(c) for c in from_float(np.array([x, y, -y]), "fp32")]
    got = to_float(fused_dot([codes[0], codes[2]], [codes[0], codes[1]], 0, spec), "fp32")
    exact = (x - y) * (x + y)
    assert got == np.float32(exact)
