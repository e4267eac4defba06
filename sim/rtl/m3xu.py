"""Matrix products in every precision of an M³XU, on values, through its compiled RTL."""

import os
from dataclasses import replace
from functools import lru_cache

import numpy as np

from vitruvian.golden.m3xu import Precision, as_precision, operand_dtype, result_dtype
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig

from .cube import CubeProduct, matmul

__all__ = ["compute", "gemm", "product", "unit_for"]

UNIT = CONFIGS["m3xu"]


def gemm(a, b, c=None, *, precision: Precision | str = "fp32", **settings) -> np.ndarray:
    """D = C + A·B through the RTL: `compute` without the figures.

    Parameters, result, its bits and what is raised are those of `golden.m3xu.gemm`; those of
    `compute` are there as well.
    """
    return compute(a, b, c, precision=precision, **settings).d


def compute(
    a,
    b,
    c=None,
    *,
    precision: Precision | str = "fp32",
    k: int = 8,
    multiplier_bits: int = 12,
    preset: str = "ieee",
    window: int | None = None,
    m: int = UNIT.m,
    n: int = UNIT.n,
    threads: int | None = None,
) -> CubeProduct:
    """D = C + A·B through the RTL of `unit_for` these parameters, and the cycles it took.

    Parameters
    ----------
    a, b, c, precision, k, multiplier_bits, preset, window
        As `golden.m3xu.gemm` takes them.
    m, n : int
        Rows and columns of the unit; they change no bit of the result.
    threads : int, optional
        Instances of the model; by default as many as there are cores.

    Returns
    -------
    CubeProduct
        With values in ``d``. Where K or the result is empty, the unit has done nothing.

    Raises
    ------
    TypeError, ValueError
        As golden does; and for parameters that no unit has. Nothing has been built or run then.
    """
    kind = as_precision(precision)
    settings = {"k": k, "multiplier_bits": multiplier_bits, "preset": preset, "window": window}
    config = unit_for(kind.name, m=m, n=n, **settings)
    dtype = result_dtype(kind)
    a, b = (_checked(x, operand_dtype(kind), name) for x, name in ((a, "a"), (b, "b")))
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N) with one K, not {a.shape} and {b.shape}"
        )
    shape = a.shape[-2], b.shape[-1]
    if c is not None:
        c = _checked(c, dtype, "c")
        if c.shape[-2:] != shape:
            raise ValueError(f"c must be (..., {shape[0]}, {shape[1]}), not {c.shape}")
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, c) if x is not None))
    if not a.shape[-1] or 0 in (*lead, *shape):
        d = np.array(np.broadcast_to(dtype.type(0) if c is None else c, (*lead, *shape)))
        return CubeProduct(d=d, beats=0, steps=0, cycles=0, streams=0)
    threads = (os.cpu_count() or 1) if threads is None else threads
    return product(config, a, b, c, kind, threads=threads)


def product(config: MatrixUnitConfig, a, b, c, kind: Precision, *, threads: int = 1) -> CubeProduct:
    """`sim.rtl.cube.matmul` of values, on any unit that has the precision."""
    codes = [None if x is None else _codes(x) for x in (a, b, c)]
    found = matmul(config, *codes, precision=kind.name, threads=threads)
    return replace(found, d=found.d.view(result_dtype(kind)))


@lru_cache
def unit_for(
    precision: str,
    *,
    k: int = 8,
    multiplier_bits: int = 12,
    preset: str = "ieee",
    window: int | None = None,
    m: int = UNIT.m,
    n: int = UNIT.n,
) -> MatrixUnitConfig:
    """The unit that computes what golden does with these parameters, to the bit.

    An ``ieee`` M³XU keeps as many fraction bits in all its precisions as FP32 needs, 48. Golden
    without a window keeps what the precision asks for: less in FP16, BF16 and TF32. So these run on
    ``CONFIGS["m3xu"]`` with ``window=48`` or a machine's preset, else on a unit of their own.

    Raises
    ------
    ValueError
        For parameters that golden refuses or that no unit has.
    """
    kind = as_precision(precision)
    spec = kind.spec(k=k, multiplier_bits=multiplier_bits, preset=preset, window=window)
    settings = {"k": k, "multiplier_bits": multiplier_bits, "preset": preset, "window": window}
    wanted = {"m": m, "n": n, **settings}
    have: dict[str, object] = {name: getattr(UNIT, name) for name in ("m", "n", "k", "preset")}
    have["multiplier_bits"] = UNIT.lane_bits
    have["window"] = UNIT.float_specs["fp32"].window if window else None
    changes = {name: value for name, value in wanted.items() if value != have[name]}
    shared = _unit(UNIT, changes)
    if shared and kind.name in shared.precisions and shared.spec(kind.name) == spec:
        return shared
    alone = ("fp32", "fp32c") if kind.is_complex else (kind.name,)
    config = replace(UNIT, precisions=alone, output=kind.output.name, **wanted)
    if config.spec(kind.name) != spec:
        raise ValueError(f"a unit must compute {spec}, not {config.spec(kind.name)}")
    return config


def _unit(config: MatrixUnitConfig, changes) -> MatrixUnitConfig | None:
    """The unit with other parameters, if it can have them."""
    try:
        return replace(config, **changes)
    except ValueError:
        return None


def _checked(array, dtype, name):
    array = np.asarray(array)
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {dtype.name}, not {array.dtype.name}")
    return array


def _codes(values: np.ndarray) -> np.ndarray:
    """Bit patterns; a complex element is one."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
