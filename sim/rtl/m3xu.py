"""Matrix products of values, in every precision of an M³XU, on its compiled RTL."""

import os
from dataclasses import replace
from functools import lru_cache

import numpy as np

from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.m3xu import Precision, as_precision, operand_dtype, result_dtype
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig

from .cube import CubeProduct, matmul

UNIT = CONFIGS["m3xu"]


def gemm(a, b, c=None, *, precision: Precision | str = "fp32", **settings) -> np.ndarray:
    """Compute D = C + A·B on the RTL and return D.

    This function returns the array ``d`` of ``compute`` and takes the same parameters. The
    parameters of ``golden.m3xu.gemm`` are among them, the bits of the result are the same as
    golden's, and so are the exceptions.
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
    """Compute D = C + A·B on the RTL of the unit that ``unit_for`` returns, and count its cycles.

    Parameters
    ----------
    a, b, c, precision, k, multiplier_bits, preset, window
        Parameters of ``golden.m3xu.gemm``.
    m, n : int
        Rows and columns of the unit; they change no bit of the result.
    threads : int, optional
        Number of instances of the model; by default the number of cores of this machine.

    Returns
    -------
    product : CubeProduct
        Its array ``d`` holds values. If K is 0 or the result is empty, the unit is not used and
        all counts are 0.

    Raises
    ------
    TypeError, ValueError
        If golden refuses the arguments, or no unit with these parameters exists. In both cases,
        nothing has been compiled or run.
    """
    kind = as_precision(precision)
    settings = {"k": k, "multiplier_bits": multiplier_bits, "preset": preset, "window": window}
    config = unit_for(kind.name, m=m, n=n, **settings)
    dtype = result_dtype(kind)
    a, b = (_checked(x, operand_dtype(kind), name) for x, name in ((a, "a"), (b, "b")))
    shape = check_factors(a, b)
    if c is not None:
        c = _checked(c, dtype, "c")
        check_addend(c, shape)
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, c) if x is not None))
    if not a.shape[-1] or 0 in (*lead, *shape):
        d = np.array(np.broadcast_to(dtype.type(0) if c is None else c, (*lead, *shape)))
        return CubeProduct(d=d, beats=0, steps=0, cycles=0, streams=0)
    threads = (os.cpu_count() or 1) if threads is None else threads
    return product(config, a, b, c, kind, threads=threads)


def product(config: MatrixUnitConfig, a, b, c, kind: Precision, *, threads: int = 1) -> CubeProduct:
    """Compute a product of values by ``sim.rtl.cube.matmul``.

    Parameters
    ----------
    config : MatrixUnitConfig
        Any unit that has the precision.
    a, b, c : (..., M, K), (..., K, N) and (..., M, N) ndarray
        Values in the operand and result dtypes of the precision; ``c`` may be None.
    kind : Precision
        Precision of the product.
    threads : int
        Number of instances of the model.

    Returns
    -------
    product : CubeProduct
        Its array ``d`` holds values.
    """
    codes = [None if x is None else _codes(x) for x in (a, b, c)]
    result = matmul(config, *codes, precision=kind.name, threads=threads)
    return replace(result, d=result.d.view(result_dtype(kind)))


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
    """Return the configuration of a unit that is bit-exact with golden for these parameters.

    An ``ieee`` M³XU keeps 48 fraction bits in all its precisions, because FP32 needs them. Golden
    without a window keeps the number of bits that the precision needs, which is smaller for FP16,
    BF16 and TF32. These precisions therefore run on ``CONFIGS["m3xu"]`` only with ``window=48`` or
    with the preset of a machine, and otherwise on a unit that has one precision.

    Parameters
    ----------
    precision : str
        Name of a precision of ``golden.m3xu``.
    k, multiplier_bits, preset, window
        Parameters of ``golden.m3xu.gemm``.
    m, n : int
        Rows and columns of the unit.

    Raises
    ------
    ValueError
        If golden refuses the parameters, or no unit with them exists.
    """
    kind = as_precision(precision)
    spec = kind.spec(k=k, multiplier_bits=multiplier_bits, preset=preset, window=window)
    settings = {"k": k, "multiplier_bits": multiplier_bits, "preset": preset, "window": window}
    requested = {"m": m, "n": n, **settings}
    present: dict[str, object] = {name: getattr(UNIT, name) for name in ("m", "n", "k", "preset")}
    present["multiplier_bits"] = UNIT.lane_bits
    present["window"] = UNIT.float_specs["fp32"].sum.window if window else None
    changes = {name: value for name, value in requested.items() if value != present[name]}
    # If possible, use the unit with all precisions: one compiled model then serves every call.
    shared = _unit(UNIT, changes)
    if shared and kind.name in shared.precisions and shared.spec(kind.name) == spec:
        return shared
    # Complex products need the real precision as well, for the last elements of K; see
    # ``sim.rtl.tiles.phases_of``.
    alone = ("fp32", "fp32c") if kind.is_complex else (kind.name,)
    config = replace(UNIT, precisions=alone, output=kind.output.name, **requested)
    if config.spec(kind.name) != spec:
        raise ValueError(f"a unit must compute {spec}, not {config.spec(kind.name)}")
    return config


def _unit(config: MatrixUnitConfig, changes) -> MatrixUnitConfig | None:
    """Return a unit with other parameters, or None if they are not allowed together."""
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
    """Return the bit patterns of values; a complex element is one pattern."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
