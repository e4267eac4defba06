"""The back end ``rtl``: matrix operations by the compiled RTL of the unit, with its cycles."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2.op import PARTS
from vitruvian.sim.matrix_unit import Unit

from .backends import register_backend

__all__ = ["CompiledSparseUnit", "CompiledUnit"]


class CompiledUnit:
    """A back end: `golden.simd2.mmo`'s interface and bits, from Verilator's model of the unit.

    Operands are FP16, or FP32 on a unit of its own with as many terms a sum (two or more), which
    has no addnorm and takes two cycles for a pair of operands elsewhere. addnorm is that of
    ``squares="products"``. Nothing is loaded or built before the first operation; a unit's model
    is built once and cached.
    """

    def __call__(self, op, a, b, c=None, *, k: int = 4, preset: str = "ieee") -> np.ndarray:
        """D = C ⊕ (A ⊗ B); see `sim.rtl.simd2.mmo`."""
        return self.on(Unit(m=4, n=4, k=k, preset=preset))(op, a, b, c)[0]

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """The same on a unit of given rows, columns and terms, with the clock cycles."""

        def mmo(op, a, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.simd2 import compute

            _check_squares(settings)
            wide = np.asarray(a).dtype == np.float32
            _check_addnorm(op, wide, unit.k)
            choose = _fp32_config if wide else _config
            config = choose(unit.m, unit.n, unit.k, unit.preset)
            found = compute(op, a, b, c, config=config)
            return found.d, found.cycles

        return mmo


class CompiledSparseUnit:
    """The same with A compressed 2:4: `golden.simd2.mmo_sparse`'s interface and bits."""

    def __call__(
        self, op, values, indices, b, c=None, *, k: int = 4, preset: str = "ieee"
    ) -> np.ndarray:
        """D = C ⊕ (A ⊗ B) over the kept elements of A."""
        return self.on(Unit(m=4, n=4, k=k, preset=preset))(op, values, indices, b, c)[0]

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """The same on a unit of given rows, columns and terms, with the clock cycles."""

        def mmo(op, values, indices, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.simd2 import compute

            _check_squares(settings)
            config = replace(_config(unit.m, unit.n, unit.k, unit.preset), sparsity=True)
            found = compute(op, values, b, c, indices=indices, config=config)
            return found.d, found.cycles

        return mmo


def _check_squares(settings: dict[str, Any]) -> None:
    squares = settings.get("squares", "products")
    if squares != "products":
        raise ValueError(f"squares must be products on compiled RTL, not {squares!r}")


def _check_addnorm(op: Op | str, wide: bool, k: int) -> None:
    if as_op(op) is not Op.ADDNORM:
        return
    if wide:
        raise ValueError(
            "operands of addnorm must be FP16 on compiled RTL, not FP32; inputs='fp16' rounds "
            "them, backend='golden' takes them as they are"
        )
    if k % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} for addnorm on compiled RTL, not {k!r}")


@lru_cache
def _config(m: int, n: int, k: int, preset: str):
    from vitruvian.sim.rtl.simd2 import UNIT

    operations = UNIT.operations if k % 4 == 0 else UNIT.operations[:-1]
    return replace(UNIT, m=m, n=n, k=k, preset=preset, operations=operations)


@lru_cache
def _fp32_config(m: int, n: int, k: int, preset: str):
    from vitruvian.sim.rtl.simd2 import UNIT_FP32

    if preset != "ieee":
        raise ValueError(f"preset must be ieee with FP32 operands on compiled RTL, not {preset!r}")
    if k < 2:
        raise ValueError(f"k must be at least 2 with FP32 operands on compiled RTL, not {k!r}")
    return replace(UNIT_FP32, m=m, n=n, k=2 * k)  # two lanes a term


register_backend("rtl", CompiledUnit(), CompiledSparseUnit())
