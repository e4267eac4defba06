"""Products of JAX under the arithmetic of a machine, forward and backward.

Needs the extra ``vitruvian[jax]``. The host computes the products, in ``jax.pure_callback``, so
that they work within ``jit``, ``grad`` and ``vmap``.

>>> import jax.numpy as jnp
>>> from vitruvian.jax import matmul
>>> matmul(jnp.ones((2, 16)), jnp.ones((16, 3)), machine="h100", forward="fp16").tolist()
[[16.0, 16.0, 16.0], [16.0, 16.0, 16.0]]
"""

# JAX is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from vitruvian.golden.machines import Arithmetic

__all__ = ["matmul"]


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    machine: str,
    forward: str,
    backward: str | None = None,
    instruction: str | None = None,
    scaled: bool | None = None,
) -> jax.Array:
    """Return A·B as a machine computes it, with gradients that are such products as well.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) array_like
        Floating-point numbers, which are converted to float32 and rounded to the formats. Leading
        axes broadcast.
    machine, forward, backward, instruction, scaled
        As of ``vitruvian.machines.Arithmetic``.

    Returns
    -------
    (..., M, N) array of the type of A
        Under ``vmap`` each product is scaled by itself; a stack has one scale for each operand.

    Raises
    ------
    UserError
        If the machine does not have these formats.
    ValueError
        If an operand has less than two axes, or if the shapes do not fit.
    """
    unit = Arithmetic(machine, forward, backward, instruction, scaled)
    x, y = jnp.asarray(a), jnp.asarray(b)
    if min(x.ndim, y.ndim) < 2 or x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N), not {x.shape} and {y.shape}"
        )
    d: Any = _product(unit, ("forward", "forward"), x.astype(jnp.float32), y.astype(jnp.float32))
    return d.astype(x.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(unit: Arithmetic, roles: Any, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the product of float32 operands with these roles."""

    def compute(x: Any, y: Any) -> np.ndarray:
        return unit.product(np.asarray(x), np.asarray(y), roles)

    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = jax.ShapeDtypeStruct((*lead, a.shape[-2], b.shape[-1]), jnp.float32)
    return jax.pure_callback(compute, result, a, b, vmap_method="sequential")


def _forward(
    unit: Arithmetic, roles: Any, a: jax.Array, b: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _product(unit, roles, a, b), (a, b)


def _backward(
    unit: Arithmetic, roles: Any, operands: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    a, b = operands
    of_a: Any = _product(unit, ("backward", roles[1]), gradient, jnp.swapaxes(b, -1, -2))
    of_b: Any = _product(unit, (roles[0], "backward"), jnp.swapaxes(a, -1, -2), gradient)
    return _summed(of_a, a.shape), _summed(of_b, b.shape)


def _summed(x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Add the elements along the axes along which an operand was repeated."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return x.sum(axis=axes, keepdims=True)


_product.defvjp(_forward, _backward)
