"""The dot product RTL with K = 1 and preset ``ieee`` equals SoftFloat's fused multiply-add."""

import pytest

from tests.unit.golden.fp.test_softfloat import BINARY, check_fma
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.rtl import compile_unit

CASES = 100_000


def run_rtl(a, b, c, spec):
    """Compute ``fused_dot`` on the compiled RTL."""
    return compile_unit(DotProduct, spec=spec, pipeline=0).run(a=a, b=b, c=c)


@pytest.mark.parametrize("format", BINARY)
def test_a_hundred_thousand_fused_multiply_adds(format):
    assert check_fma(run_rtl, format, CASES, seed=4) >= CASES
