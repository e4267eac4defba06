"""The references of RVBNA's proofs equal golden, which the proofs themselves cannot show."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from vitruvian.flows.formal.rvbna import add_reference, dot_reference
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.fp.general import add_rounded
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.machines import compute, find
from vitruvian.sim.conformance import draw


def simulated(build, widths, rows):
    """Return the values of a combinational function for each row of operands."""
    m = Module()
    ports = [Signal(width, name=f"port{k}") for k, width in enumerate(widths)]
    out, found = build(m, ports), []

    async def drive(ctx):
        for row in rows.tolist():
            for port, value in zip(ports, row, strict=True):
                ctx.set(port, value)
            await ctx.delay(1e-9)
            found.append(ctx.get(out))

    simulator = Simulator(m)
    simulator.add_testbench(drive)
    simulator.run()
    return np.array(found)


@pytest.mark.parametrize(
    "stem", ["rvbna_e4m3_n2_fp32", "rvbna_e5m2_n2_fp32", "rvbna_e4m3_n4_fp32", "rvbna_e5m2_n4_fp32"]
)
def test_the_reference_of_the_dot_product_equals_golden(stem):
    machine = find(stem)
    rule = machine.rule
    assert isinstance(rule, DotSpec)
    x, k = draw(machine, 240), rule.k
    rows = np.concatenate([x.a, x.b], axis=1)
    got = simulated(lambda m, p: dot_reference(m, rule, p[:k], p[k:]), [8] * 2 * k, rows)
    np.testing.assert_array_equal(got, compute(rule, x.a, x.b, np.zeros_like(x.c)))


@pytest.mark.parametrize("name", ["fp16", "fp32"])
def test_the_reference_of_the_addition_equals_golden(name):
    f = FORMATS[name]
    rng = np.random.default_rng(4)
    n, fraction = 240, (1 << f.fraction_bits) - 1
    a, b = rng.integers(0, 1 << f.width, (2, n))
    # Most exponents differ by little; some numbers are subnormal, or one is the other's negative.
    near = (a >> f.fraction_bits) + rng.integers(-f.fraction_bits - 4, f.fraction_bits + 4, n)
    b = np.where(rng.random(n) < 0.8, (near << f.fraction_bits | b & fraction) % (1 << f.width), b)
    a[:40] &= f.sign_mask | 3 << f.fraction_bits | fraction
    b[:40] &= f.sign_mask | 3 << f.fraction_bits | fraction
    b[40:50] = a[40:50] ^ f.sign_mask
    codes = np.stack([a, b], axis=1).astype(np.uint16 if f.width == 16 else np.uint32)
    rule = dot_spec(input=f, output=f, k=1, window=24, rounding="RTO")
    expected = add_rounded(codes[:, 0], codes[:, 1], rule)
    got = simulated(lambda m, p: add_reference(m, f, *p), [f.width] * 2, codes)
    np.testing.assert_array_equal(got, expected)
    zero = expected & (f.sign_mask - 1) == 0
    assert zero.any() and (expected[~zero] & f.exponent_mask == 0).any()
