"""The back end ``rtl`` of a SIMD² machine: the compiled RTL of the unit, with its clock cycles."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2.op import PARTS
from vitruvian.sim.matrix_unit import Unit

from .backends import register_backend


class CompiledUnit:
    """A back end with the parameters and the bits of ``golden.simd2.mmo``, run by Verilator.

    Operands are FP16 or FP32. FP32 operands are computed by a different unit with the same number
    of terms in a sum (two or more); it has no ``addnorm``, and takes two cycles for each pair of
    operands in all operations but ``mma``. ``addnorm`` is the one of ``squares="products"``.

    Nothing is imported or built before the first operation. The model of a unit is built once and
    kept in the cache.
    """

    def __call__(self, op, a, b, c=None, *, k: int = 4, preset: str = "ieee") -> np.ndarray:
        """Return D = C ⊕ (A ⊗ B), on a unit of 4 rows, 4 columns and k terms.

        Parameters
        ----------
        op, a, b, c
            See ``golden.simd2.mmo``.
        k : int
            Terms in a sum.
        preset : str
            Accuracy of ``mma``.

        Returns
        -------
        (M, N) ndarray of float32
        """
        return self.on(Unit(m=4, n=4, k=k, preset=preset))(op, a, b, c)[0]

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """Return the function that computes on ``unit`` and returns D and the clock cycles."""

        def mmo(op, a, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.simd2 import compute

            _check_squares(settings)
            wide = np.asarray(a).dtype == np.float32
            _check_addnorm(op, wide, unit.k)
            choose = _fp32_config if wide else _config
            config = choose(unit.m, unit.n, unit.k, unit.preset)
            result = compute(op, a, b, c, config=config)
            return result.d, result.cycles

        return mmo


class CompiledSparseUnit:
    """A back end with the parameters and the bits of ``golden.simd2.mmo_sparse``."""

    def __call__(
        self, op, values, indices, b, c=None, *, k: int = 4, preset: str = "ieee"
    ) -> np.ndarray:
        """Return D = C ⊕ (A ⊗ B) over the kept elements of A.

        Parameters
        ----------
        op, values, indices, b, c
            See ``golden.simd2.mmo_sparse``.
        k : int
            Terms in a sum.
        preset : str
            Accuracy of ``mma``.

        Returns
        -------
        (M, N) ndarray of float32
        """
        return self.on(Unit(m=4, n=4, k=k, preset=preset))(op, values, indices, b, c)[0]

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """Return the function that computes on ``unit`` and returns D and the clock cycles."""

        def mmo(op, values, indices, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.simd2 import compute

            _check_squares(settings)
            config = replace(_config(unit.m, unit.n, unit.k, unit.preset), sparsity=True)
            result = compute(op, values, b, c, indices=indices, config=config)
            return result.d, result.cycles

        return mmo


def _check_squares(settings: dict[str, Any]) -> None:
    """Raise ValueError for the form of ``addnorm`` that the RTL does not compute."""
    squares = settings.get("squares", "products")
    if squares != "products":
        raise ValueError(f"squares must be products on compiled RTL, not {squares!r}")


def _check_addnorm(op: Op | str, wide: bool, k: int) -> None:
    """Raise ValueError for operands and lanes on which no unit computes ``addnorm``."""
    if as_op(op) is not Op.ADDNORM:
        return
    if wide:
        raise ValueError(
            "operands of addnorm must be FP16 on compiled RTL, not FP32; inputs='fp16' rounds "
            "them, backend='golden' takes them unchanged"
        )
    if k % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} for addnorm on compiled RTL, not {k!r}")


# A configuration is checked when it is made, so equal ones are made once.
@lru_cache
def _config(m: int, n: int, k: int, preset: str):
    from vitruvian.sim.rtl.simd2 import UNIT

    # addnorm, the last operation, needs four lanes for one pair of operands.
    operations = UNIT.operations if k % 4 == 0 else UNIT.operations[:-1]
    return replace(UNIT, m=m, n=n, k=k, preset=preset, operations=operations)


@lru_cache
def _fp32_config(m: int, n: int, k: int, preset: str):
    from vitruvian.sim.rtl.simd2 import UNIT_FP32

    if preset != "ieee":
        raise ValueError(f"preset must be ieee with FP32 operands on compiled RTL, not {preset!r}")
    if k < 2:
        raise ValueError(f"k must be at least 2 with FP32 operands on compiled RTL, not {k!r}")
    return replace(UNIT_FP32, m=m, n=n, k=2 * k)  # an FP32 term takes two lanes


register_backend("rtl", CompiledUnit(), CompiledSparseUnit())
