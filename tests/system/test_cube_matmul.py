"""Products of whole matrices on the compiled matrix unit."""

import numpy as np
import pytest

from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import FORMATS, from_float
from vitruvian.hdl.cube import CONFIGS
from vitruvian.sim.rtl.cube import matmul

CONFIG = CONFIGS["tiny"]
SEED = 7


def _padded(x: np.ndarray, terms: int, filler: int) -> np.ndarray:
    """Pad K as the unit does, so that golden adds the same blocks."""
    more = -x.shape[1] % terms
    return np.concatenate([x, np.full((len(x), more), filler, x.dtype)], 1)


@pytest.mark.parametrize("precision", CONFIG.precisions)
@pytest.mark.parametrize("with_c", [False, True], ids=["zero", "c"])
def test_any_size_equals_golden(precision, with_c):
    rng = np.random.default_rng(SEED)
    m, k, n = 7, 13, 5
    spec, terms = CONFIG.spec(precision), CONFIG.terms(precision)
    if precision == "int8":
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
        c = rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
        filler = 0
    else:
        a, b = (from_float(rng.standard_normal(s), precision) for s in ((m, k), (k, n)))
        c = from_float(rng.standard_normal((m, n)), "fp32")
        filler = FORMATS[precision].sign_mask
    c = c if with_c else None
    got = matmul(CONFIG, a, b, c, precision=precision, stall_rate=0.2)
    expected = mmad(_padded(a, terms, filler), _padded(b.T, terms, 0).T, c, spec=spec)
    assert got.d.shape == (m, n) and np.array_equal(got.d, expected)
    assert got.beats == 4 * 3 * -(-k // terms) and got.cycles > got.beats


def test_the_unit_takes_a_beat_in_every_cycle():
    a, b = np.zeros((64, 16), np.uint16), np.zeros((16, 64), np.uint16)
    product = matmul(CONFIG, a, b)
    assert product.beats == 32 * 32 * 8
    assert product.cycles <= product.beats + 100


def test_wrong_arguments_are_refused():
    a = np.zeros((4, 4), np.uint16)
    with pytest.raises(ValueError, match=r"a and b must be \(M, K\) and \(K, N\)"):
        matmul(CONFIG, a, np.zeros((5, 4), np.uint16))
    with pytest.raises(ValueError, match="precision must be one of"):
        matmul(CONFIG, a, a, precision="fp64")
    with pytest.raises(ValueError, match=r"c must be \(M, N\) = \(4, 4\)"):
        matmul(CONFIG, a, a, np.zeros((3, 4), np.uint32))
