"""Matrix products by the arithmetic of a machine, on arrays of values or of codes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.cube import mmad_any
from vitruvian.golden.cube.chopped import all_cores
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.fp.arith import from_float
from vitruvian.golden.fp.codec import as_codes, code_dtype, number_dtype
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.run import compute
from vitruvian.golden.machines.table import Rule, instruction_of, machines, spec

__all__ = ["multiply", "rule_of"]

_TERMS = 1 << 20  # terms of a step of the rules without fast loops, which bounds their memory

Progress = Callable[[int, int], object]


def rule_of(machine: str, instruction: str | None, formats: str | None, output: str | None) -> Rule:
    """Return the rule of a machine for these formats.

    Parameters
    ----------
    machine : str
        A machine, as "h100", or a row of the table, as "h100_wgmma_e4m3_fp32".
    instruction : str or None
        By default the machine's first instruction with these formats.
    formats : str or None
        Formats of the operands, as in the table ("fp16", "e4m3xe5m2"); None for a row.
    output : str or None
        By default fp32, or the only one that there is.

    Raises
    ------
    UserError
        If the table has no such row.
    """
    if machine in machines():
        return machines()[machine].rule
    if formats is None:
        raise ValueError("input must be a format of the table, as 'fp16', for an array of codes")
    output = "fp32" if output is None else output
    if instruction is None:
        instruction = instruction_of(machine, formats, output)
    return spec(machine, instruction, formats, output)


def multiply(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    machine: str,
    instruction: str | None = None,
    input: str | None = None,
    output: str | None = None,
    out: np.ndarray | None = None,
    threads: int | None = None,
    progress: Progress = lambda done, total: None,
) -> np.ndarray:
    """Return D = C + A·B as an instruction of a machine computes it.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) array_like
        Values (float16, float32, float64 or a type of ml_dtypes), which are rounded to the nearest
        number of the format if they are wider, or unsigned codes of the format. Leading axes
        broadcast; any order of the elements in memory is allowed.
    c : (..., M, N) array_like, optional
        Values or codes of the output format; zero by default.
    machine : str
        A machine ("h100"), or a row of the table of machines ("h100_wgmma_e4m3_fp32").
    instruction : str, optional
        By default the first one that has these formats.
    input : str, optional
        Formats of A and B, as in the table ("e4m3", "e4m3xe5m2"). By default that of the array's
        type; codes need it.
    output : str, optional
        Format of C and D, by default fp32.
    out : (..., M, N) ndarray, optional
        Array that receives D and is returned.
    threads : int, optional
        Number of threads for large products by the rules of tensor cores; by default all cores.
    progress : callable
        Function that is called with (rows done, rows in total) of a product without fast loops.

    Returns
    -------
    (..., M, N) ndarray
        Values of the output format's type, or codes if A holds codes. A K that is no multiple of
        the machine's step ends with a shorter step, as zeros would make it.

    Raises
    ------
    UserError
        If the table has no such machine, instruction or formats.
    TypeError, ValueError
        If an array has another type or shape, or if the rule has block scales.
    """
    x, y = np.asarray(a), np.asarray(b)
    shape = check_factors(x, y)
    codes = x.dtype.kind in "iu"
    name = _own_name(x, y) if input is None and not codes else input
    rule = rule_of(machine, instruction, name, output)
    if isinstance(rule, IntDotSpec | IntPhaseSpec):
        raise ValueError("machine must have a rule for floating point; use mmad for integers")
    scaled = isinstance(rule, DotSpec) and rule.scale is not None
    if scaled or (isinstance(rule, PhaseSpec) and rule.shared_bits is not None):
        raise ValueError("machine must have a rule without block scales; use machines.run")
    x, y = _codes(x, rule.input, "a"), _codes(y, rule.input_b, "b")
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if c is None:
        z = np.zeros((*lead, *shape), code_dtype(rule.output))
    else:
        z = _codes(np.asarray(c), rule.output, "c")
        check_addend(z, shape)
    if isinstance(rule, DotSpec) and rule.is_plain:
        d = mmad_any(x, y, z, spec=rule, threads=all_cores() if threads is None else threads)
    else:
        d = _by_rows(x, y, z, rule, progress)
    result = d if codes else d.view(number_dtype(rule.output))
    if out is None:
        return result
    if out.shape != result.shape or out.dtype != result.dtype:
        raise ValueError(
            f"out must be an array of {result.dtype} with the shape {result.shape}, "
            f"not of {out.dtype} with {out.shape}"
        )
    out[...] = result
    return out


def _own_name(a: np.ndarray, b: np.ndarray) -> str:
    """Return the formats of the arrays' types, as the table names them."""
    known: dict[np.dtype, str] = {}
    for f in (*FORMATS.values(), *OTHER_FORMATS.values()):
        if f.dtype is not None:
            known.setdefault(number_dtype(f), f.name)
    names: list[str] = []
    for array, thing in ((a, "a"), (b, "b")):
        name = known.get(array.dtype)
        if name is None:
            raise TypeError(f"{thing} must be floating point or codes, not {array.dtype}")
        # float32 is a type of several formats; alone it stands for FP32.
        name = "fp32" if array.dtype == np.float32 else name
        names.append(name.removeprefix("fp8").removeprefix("fp6").removeprefix("fp4"))
    return names[0] if names[0] == names[1] else "x".join(names)


def _codes(array: np.ndarray, format: FloatFormat, thing: str) -> np.ndarray:
    """Return codes of ``format``; values of another type are rounded to it."""
    f = as_format(format)
    if array.dtype.kind in "iu":
        return as_codes(array, f, thing)
    if array.dtype == number_dtype(f) and not f.storage_shift:
        return np.ascontiguousarray(array).view(code_dtype(f))
    try:
        values = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{thing} must be floating point or codes, not {array.dtype}") from None
    return from_float(values.ravel(), f).reshape(array.shape)


def _by_rows(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, rule: Rule, progress: Progress
) -> np.ndarray:
    """Compute a product by a rule without fast loops, a few rows of D at a time."""
    terms, step = a.shape[-1], getattr(rule, "k", None) or 1
    missing = -terms % step
    if missing:  # a shorter step is one with zeros
        a = np.concatenate([a, np.zeros((*a.shape[:-1], missing), a.dtype)], axis=-1)
        b = np.concatenate([b, np.zeros((*b.shape[:-2], missing, b.shape[-1]), b.dtype)], axis=-2)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    rows, columns = a.shape[-2], b.shape[-1]
    d = np.broadcast_to(c, (*lead, rows, columns)).copy()
    if not terms or not d.size:
        return d
    left, right = a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :]
    per_row = max(columns * a.shape[-1] * int(np.prod(lead, dtype=int)), 1)
    many = max(_TERMS // per_row, 1)
    for start in range(0, rows, many):
        progress(start, rows)
        part = slice(start, start + many)
        d[..., part, :] = compute(rule, left[..., part, :, :], right, d[..., part, :])
    progress(rows, rows)
    return d
