"""Products of JAX against products by the same arithmetic."""

# pyright: reportMissingImports=false

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from vitruvian.golden.machines import Arithmetic

H100: dict[str, Any] = {"machine": "h100", "forward": "e4m3", "backward": "e5m2"}
UNIT = Arithmetic(**H100)
RNG = np.random.default_rng(6)
A, B = (RNG.standard_normal(s).astype(np.float32) for s in ((2, 3, 40), (40, 4)))


@pytest.fixture
def jax():
    """Return the module, or skip the test."""
    return pytest.importorskip("jax", reason="the extra vitruvian[jax] is not installed")


def test_a_product_and_its_gradients_are_those_of_the_machine(jax):
    from vitruvian.jax import matmul

    def total(a, b):
        return (matmul(a, b, **H100) ** 2).sum() / 2

    np.testing.assert_array_equal(matmul(A, B, **H100), UNIT.product(A, B))
    of_a, of_b = jax.jit(jax.grad(total, (0, 1)))(A, B)
    g = UNIT.product(A, B)
    np.testing.assert_array_equal(of_a, UNIT.product(g, B.T, ("backward", "forward")))
    expected = UNIT.product(A.swapaxes(1, 2), g, ("forward", "backward")).sum(axis=0)
    np.testing.assert_allclose(of_b, expected, rtol=1e-5)


def test_a_mapped_product_is_one_for_each_element(jax):
    from vitruvian.jax import matmul

    a = A * np.array([1, 1e-4], np.float32)[:, None, None]
    got = jax.vmap(lambda x: matmul(x, B, **H100))(a)
    np.testing.assert_array_equal(got, [UNIT.product(x, B) for x in a])
    assert not np.array_equal(got, matmul(a, B, **H100))  # a stack has one scale


def test_shapes_and_types(jax):
    from vitruvian.jax import matmul

    half = jax.numpy.asarray(A, jax.numpy.bfloat16)
    assert matmul(half, B, **H100).dtype == jax.numpy.bfloat16
    for a, b in ((A[0, 0], B), (A, A)):
        with pytest.raises(ValueError, match="a and b must be"):
            matmul(a, b, **H100)


def test_the_package_imports_neither_framework():
    code = "import sys, vitruvian, vitruvian.machines; print({'torch', 'jax'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
