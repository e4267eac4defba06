"""The ``ieee`` window has enough bits and, where the derivation says so, none too many."""

import numpy as np
import pytest

from vitruvian.golden.fp import (
    FORMATS,
    FloatFormat,
    Specials,
    dot_spec,
    fused_dot,
    ieee_window,
)
from vitruvian.golden.machines.presets import PRESETS

TINY = [
    FloatFormat("e2m1", 2, 1, 4),
    FloatFormat("e2m3", 2, 3, 6),
    FloatFormat("e3m1", 3, 1, 5),
    FloatFormat("e3m2", 3, 2, 6),
    FloatFormat("e2m1ocp", 2, 1, 4, specials=Specials.OCP_E4M3),
]
OUTPUTS = [*TINY, FloatFormat("e4m3", 4, 3, 8), FloatFormat("e5m2", 5, 2, 8)]


def all_triples(a, b, out):
    grids = np.meshgrid(*(np.arange(1 << f.storage_bits) for f in (a, b, out)), indexing="ij")
    x, y, z = (g.ravel().astype(np.uint8) for g in grids)
    return x[:, None], y[:, None], z


def differences(a, b, out, window):
    """Return how many of all triples with K = 1 differ from the exact sum rounded once."""
    spec = dot_spec(input=a, input_b=b, output=out, k=1, window=window)
    exact = spec.replace(window=None)
    x, y, z = all_triples(a, b, out)
    assert len(z) == 1 << (a.storage_bits + b.storage_bits + out.storage_bits)
    return np.count_nonzero(fused_dot(x, y, z, spec) != fused_dot(x, y, z, exact))


@pytest.mark.parametrize("out", OUTPUTS, ids=str)
@pytest.mark.parametrize("b", TINY, ids=str)
@pytest.mark.parametrize("a", TINY, ids=str)
def test_enough_for_every_input_of_tiny_formats(a, b, out):
    assert differences(a, b, out, ieee_window(a, out, b)) == 0


@pytest.mark.parametrize(
    ("a", "out"),
    [
        ("e2m1", "e4m3"),  # the wide rule: two subnormals reach C
        ("e2m3", "e5m2"),
        ("e3m1", "e5m2"),
        ("e4m2", "e4m2"),  # the narrow rule: one subnormal reaches C
    ],
)
def test_one_bit_less_is_too_few(a, out):
    named = {f.name: f for f in (*OUTPUTS, FloatFormat("e4m2", 4, 2, 7))}
    a, out = named[a], named[out]
    window = ieee_window(a, out)
    assert differences(a, a, out, window) == 0
    assert differences(a, a, out, window - 1) > 0


def test_windows_of_the_real_formats():
    expected = {
        ("fp16", "fp32"): 45,
        ("fp16", "fp16"): 22,
        ("bf16", "fp32"): 32,
        ("tf32", "fp32"): 35,
        ("fp32", "fp32"): 48,
        ("fp64", "fp64"): 106,
        ("fp8e4m3", "fp32"): 31,
        ("fp8e5m2", "fp32"): 29,
    }
    assert {key: ieee_window(*key) for key in expected} == expected
    assert ieee_window("fp8e4m3", "fp32", "fp8e5m2") == 30


@pytest.mark.parametrize(
    ("name", "out", "a", "b", "c_exponent"),
    [
        # fp16 to fp32: both operands the smallest subnormal; C three places below their product
        ("fp16", "fp32", 1, 1, -51),
        ("fp8e5m2", "fp32", 1, 1, -35),
        ("fp8e4m3", "fp32", 1, 1, -21),
        # one subnormal, times 2^e
        ("fp32", "fp32", 1, (127 + 100) << 23, -52),
        ("fp64", "fp64", 1, (1023 + 900) << 52, -177),
        ("bf16", "fp32", 1, (127 + 60) << 7, -76),
        ("tf32", "fp32", 1 << 13, (127 + 60) << 23, -79),
        ("fp16", "fp16", 1, (15 + 15) << 10, -12),
    ],
)
def test_witness_in_the_real_formats(name, out, a, b, c_exponent):
    """For P = 2^p and C = −(1 + 5·2^−f)·2^(p − 3), C's last bit is a quarter of the sum's."""
    spec = PRESETS["ieee"].spec(name, out, k=1)
    o = spec.output
    c = o.sign_mask | (c_exponent + o.bias) << o.fraction_bits | 0b101
    wrong = spec.replace(window=ieee_window(name, out) - 1)
    exact = spec.replace(window=None)
    results = {int(fused_dot([a], [b], c, s)) for s in (spec, exact)}
    assert len(results) == 1
    assert int(fused_dot([a], [b], c, wrong)) not in results


def test_truncated_windows_are_not_ieee():
    spec = PRESETS["ieee"].spec("fp16", k=1)
    a = np.full((4096, 1), FORMATS["fp16"].one, np.uint16)
    c = (np.arange(4096) << 12 | 0x3F800000).astype(np.uint32)
    short = spec.replace(window=23, truncate="magnitude", rounding="RZ")
    tiny = np.full((4096, 1), 0x8001, np.uint16)
    assert (fused_dot(a, tiny, c, spec) != fused_dot(a, tiny, c, short)).any()
