"""The compiled long sum never receives a term for which it has no limbs."""

import numpy as np
import pytest

from vitruvian.golden.fp import dot_compiled as compiled
from vitruvian.golden.fp import dot_spec, fused_dot
from vitruvian.golden.fp.plain import plain_sum

HUGE, TINY = 0x7FE0_0000_0000_0000, 0x0010_0000_0000_0000  # 2^1023, 2^-1022
SPECIAL = {"infinity": 0x7FF0_0000_0000_0000, "NaN": 0x7FF8_0000_0000_0000}


@pytest.mark.parametrize("window", [106, 300])
@pytest.mark.parametrize("special", SPECIAL)
def test_specials_beside_huge_products_write_outside_no_buffer(monkeypatch, window, special):
    """A row with an infinity or NaN has no E_max, so its products of 2^2046 must not be added."""
    args = []

    def spy(terms, spec):
        product = (terms.sig_a != 0) & (terms.sig_b != 0)
        assert (terms.exp_a + terms.exp_b <= terms.emax)[product].all()
        assert (terms.exp_c <= terms.emax)[terms.sig_c != 0].all()
        args.append(len(terms.sig_c))
        return plain_sum(terms, spec, wide=True)

    monkeypatch.setattr(compiled, "compiled_sum", spy)
    spec = dot_spec(input="fp64", output="fp64", k=4, window=window)
    a = np.full((200, 4), HUGE, np.uint64)
    b = a.copy()
    c = np.zeros(200, np.uint64)
    a[::4, 1] = SPECIAL[special]
    c[1::4] = SPECIAL[special]
    b[2::4] = TINY
    d = fused_dot(a, b, c, spec)
    assert args == [200]
    assert (d[0::4] == SPECIAL[special]).all() and (d[1::4] == SPECIAL[special]).all()
    assert (d[2::4] == 0x4020_0000_0000_0000).all()  # 4 · 2^1
    assert (d[3::4] == SPECIAL["infinity"]).all()  # a finite sum that overflows
