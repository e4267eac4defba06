"""Matrix products by the arithmetic of a machine, on arrays of values or of codes."""

import re
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.cube import mmad_any
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.fp.codec import as_codes, code_dtype, number_dtype
from vitruvian.golden.fp.convert import from_float
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.chain import real_operand
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.run import compute, unpacked
from vitruvian.golden.machines.scaled import in_blocks
from vitruvian.golden.machines.spec import ChainSpec
from vitruvian.golden.machines.table import Rule, instruction_of, machines, output_of, spec
from vitruvian.golden.sums.products import Operands, Progress, all_cores, product

_TERMS = 1 << 20  # terms of a step of the plain forms, which bounds their memory
_LARGE = 1 << 22  # terms of a product for each thread


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
    if output is None:
        output = output_of(machine, instruction, formats)
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
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
    tensor_scale: Literal["auto"] | None = None,
    packed: bool = False,
    out: np.ndarray | None = None,
    threads: int | None = None,
    progress: Progress = lambda done, total: None,
) -> np.ndarray:
    """Return D = C + A·B as an instruction of a machine computes it.

    The instruction is repeated along K, block after block, from C on. That is the instruction's
    chain and not the product of a library: a library may add K in another order, in several parts,
    or with other instructions, and then returns other bits. With its default, ``_scaled_mm`` of
    PyTorch on an H100 begins each part of K with an accumulator of zero and adds the parts in FP32.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) array_like
        Values (float16, float32, float64 or a type of ml_dtypes), which are rounded to the nearest
        number of the format if they are wider, or unsigned codes of the format. Leading axes
        broadcast; any order of the elements in memory is allowed. If the rule has block scales,
        values are quantised along K, as ``golden.fp.quantise`` does; zeros fill the last block.
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
    scale_a, scale_b : (..., M, K / block), (..., K / block, N) array_like of uint8, optional
        Scales of the blocks, which codes need and values must not have.
    tensor_scale : "auto", optional
        For values and rules with UE4M3 scales (NVFP4): each matrix also has a factor of its own, as
        large as ``quantise`` chooses it. The product without C is multiplied by both factors, and
        C is added to it, with a rounding to the output format after each operation.
    packed : bool
        If True, operands in FP4 are codes, two a byte along K, the first in the low bits:
        (..., M, K / 2) and (..., K / 2, N). Otherwise each code has a byte of its own.
    out : (..., M, N) ndarray, optional
        Array that receives D and is returned.
    threads : int, optional
        Number of threads for products by rules that have a kernel; by default all cores if the
        product is large.
    progress : callable
        Function that is called with (rows done, rows in total) of the product.

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
        If an array has another type or shape, or if the rule is one for integers.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import machines
    >>> ones = np.full((2, 32), 0x3C00, np.uint16)  # codes of 1.0 in fp16
    >>> d = machines.multiply(ones, ones.T, machine="h100", input="fp16")
    >>> d.view(np.float32).tolist()
    [[32.0, 32.0], [32.0, 32.0]]
    """
    x, y = np.asarray(a), np.asarray(b)
    codes = x.dtype.kind in "iu"
    rule = _rule(x, y, machine, instruction, input, output)
    if packed:
        x, y = map(np.asarray, unpacked(x, y, rule, (-1, -2)))
    shape = check_factors(x, y)
    if isinstance(rule, IntDotSpec | IntPhaseSpec):
        raise ValueError("machine must have a rule for floating point; use mmad for integers")
    if isinstance(rule, PhaseSpec) and rule.shared_bits is not None:
        raise ValueError("machine must have a rule without shared exponents; use machines.run")
    threads = _threads(threads, x, y)
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    scales, factor = (None, None), 1.0
    if isinstance(rule, DotSpec) and rule.scales is not None:
        x, y, scales, factor = in_blocks(x, y, rule, scale_a, scale_b, tensor_scale)
    elif not (scale_a is None is scale_b) or tensor_scale is not None:
        raise ValueError("scales must be None, because the rule has no block scales")
    else:
        x, y = codes_of(x, rule.input, "a"), codes_of(y, rule.input_b, "b")
    if c is None:
        z = np.zeros((*lead, *shape), code_dtype(rule.output))
    else:
        z = codes_of(np.asarray(c), rule.output, "c")
        check_addend(z, shape)
    if out is not None:
        full = (*np.broadcast_shapes(lead, z.shape[:-2]), *shape)
        _check_out(out, full, code_dtype(rule.output) if codes else number_dtype(rule.output))
    if tensor_scale is not None:
        d = _product(x, y, np.zeros_like(z), rule, scales, threads, progress)
        with np.errstate(all="ignore"):
            values = d.view(np.float32) * np.float32(factor) + z.view(np.float32)
        d = np.where(np.isnan(values), np.uint32(_nan_code(rule)), values.view(np.uint32))
    else:
        d = _product(x, y, z, rule, scales, threads, progress)
    result = d if codes else d.view(number_dtype(rule.output))
    if out is None:
        return result
    out[...] = result
    return out


def product_of_rule(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, rule: DotSpec, threads: int | None
) -> np.ndarray:
    """Return the codes of C + A·B by a rule of dot products without scales.

    Parameters
    ----------
    a, b, c : (M, K), (K, N), (M, N) ndarray of codes
        C is zero by default.
    threads
        As those of ``multiply``.
    """
    if c is None:
        c = np.zeros((a.shape[0], b.shape[1]), code_dtype(rule.output))
    return _product(a, b, c, rule, (None, None), _threads(threads, a, b), lambda done, total: None)


def _threads(threads: int | None, a: np.ndarray, b: np.ndarray) -> int:
    if threads is None:
        threads = min(all_cores(), 1 + a.shape[-2] * b.shape[-1] * a.shape[-1] // _LARGE)
    check_int("threads", threads, 1)
    return threads


def _rule(
    a: np.ndarray,
    b: np.ndarray,
    machine: str,
    instruction: str | None,
    input: str | None,
    output: str | None,
) -> Rule:
    """Return the rule for formats that are given, or else those of the arrays' types."""
    if input is not None or a.dtype.kind in "iu":
        return rule_of(machine, instruction, input, output)
    try:
        return rule_of(machine, instruction, _own_name(a, b), output)
    except UserError as error:
        if not str(error).startswith("formats"):
            raise
        raise UserError(f"{error} (the type of a and b; input= rounds them to others)") from None


def _check_out(out: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Check an array for results, before anything is computed."""
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(
            f"out must be an array of {dtype} with the shape {shape}, "
            f"not of {out.dtype} with {out.shape}"
        )


def _nan_code(rule: Rule) -> int:
    assert isinstance(rule, DotSpec)
    return rule.nan_code


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
        names.append(re.sub("^fp[468](?=e)", "", name))
    return names[0] if names[0] == names[1] else "x".join(names)


def codes_of(array: np.ndarray, format: FloatFormat, thing: str) -> np.ndarray:
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


def _product(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    rule: Rule,
    scales: tuple[np.ndarray | None, np.ndarray | None],
    threads: int,
    progress: Progress,
) -> np.ndarray:
    """Compute a stack of products, one matrix after the other."""
    step = getattr(rule, "k", None) or 1
    missing = -a.shape[-1] % step  # a shorter step is one with zeros
    if missing:
        a, b = _extended(a, missing, -1), _extended(b, missing, -2)
    if isinstance(rule, ChainSpec):
        a, rule = real_operand(a, rule)
    if missing and isinstance(rule, DotSpec) and rule.scales is not None:
        many = missing // rule.scales.block
        first, second = scales
        scales = (
            None if first is None else _extended(first, many, -1),
            None if second is None else _extended(second, many, -2),
        )
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    d = np.empty((*lead, a.shape[-2], b.shape[-1]), c.dtype)
    stack = [
        None if v is None else np.broadcast_to(v, (*lead, *v.shape[-2:]))
        for v in (a, b, c, *scales)
    ]
    total, done = d.size // max(d.shape[-1], 1), 0
    for i in np.ndindex(lead):
        x = Operands(*(None if v is None else v[i] for v in stack))  # pyright: ignore
        before = done

        def report(rows: int, _: int, before: int = before) -> None:
            progress(before + rows, total)

        if not x.a.shape[1] or not d.size:
            d[i] = x.c
        else:
            compiled = product(x, rule, threads, report)
            d[i] = _plain(x, rule, report) if compiled is None else compiled
        done += x.c.shape[0]
    progress(total, total)
    return d


def _extended(array: np.ndarray, zeros: int, axis: int) -> np.ndarray:
    """Return an array with zeros appended along an axis."""
    width = [(0, 0)] * array.ndim
    width[axis] = (0, zeros)
    return np.pad(array, width)


def _plain(x: Operands, rule: Rule, progress: Progress = lambda done, total: None) -> np.ndarray:
    """Compute a product by the plain form of its rule."""
    if isinstance(rule, DotSpec) and rule.is_plain:
        return mmad_any(x.a, x.b, x.c, spec=rule)
    return _by_rows(x, rule, progress)


def _by_rows(x: Operands, rule: Rule, progress: Progress = lambda done, total: None) -> np.ndarray:
    """Compute a product by the plain form of a rule, a few rows of D at a time."""
    rows, columns = x.c.shape
    d = x.c.copy()
    right, scale_b = x.b.T[None], None if x.scale_b is None else x.scale_b.T[None]
    many = max(_TERMS // max(columns * x.a.shape[1], 1), 1)
    for start in range(0, rows, many):
        progress(start, rows)
        part = slice(start, start + many)
        scale_a = None if x.scale_a is None else x.scale_a[part, None, :]
        d[part] = compute(rule, x.a[part, None, :], right, d[part], scale_a, scale_b)
    progress(rows, rows)
    return d
