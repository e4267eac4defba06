"""Products by a plan."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.cube.shapes import check_factors
from vitruvian.golden.fp import convert, fused_dot
from vitruvian.golden.fp.codec import code_dtype, number_dtype
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.machines.products import codes_of, product_of_rule
from vitruvian.golden.machines.spec import fma_step

from .plan import BLOCK, Plan

#: Rows of which ``dots`` computes all products, and keeps the diagonal.
_ROWS = 8


def multiply(
    a: ArrayLike,
    b: ArrayLike,
    *,
    plan: Plan,
    bias: ArrayLike | None = None,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Return A·B as a library computes it by a plan.

    Parameters
    ----------
    a, b : (M, K), (K, N) array_like
        Values or codes, as ``vitruvian.machines.multiply`` takes them. FP32 values of a product in
        TF32 are rounded to nearest, as cuBLAS does.
    plan : Plan
    bias : (N,) array_like, optional
        Values or codes of the output format, if the plan has a bias.
    scale_a, scale_b : array_like of float32, optional
        Factors, if the plan has some: for "tensor" one each; for "row" (M,) and (N,); for "block"
        (M, ⌈K/128⌉) and (⌈K/128⌉, ⌈N/128⌉).
    threads : int, optional
        As those of ``vitruvian.machines.multiply``.

    Returns
    -------
    (M, N) ndarray
        Values of the output format's type, or codes if A holds codes. A NaN has all bits but the
        sign, as those of NVIDIA's conversions and instructions have.

    Raises
    ------
    TypeError, ValueError
        If an array has another type or shape, or there are factors or a bias that the plan lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.plans import multiply, scaled_mm
    >>> code = np.full((2, 256), 0x38, np.uint8)  # 1.0 in e4m3
    >>> plan = scaled_mm(256, output="fp32")
    >>> multiply(code, code.T, plan=plan, scale_a=0.5, scale_b=1.0).view(np.float32).tolist()
    [[128.0, 128.0], [128.0, 128.0]]
    """
    x, y = np.asarray(a), np.asarray(b)
    rows, columns = check_factors(x, y)
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError(f"a and b must be matrices, not of shapes {x.shape} and {y.shape}")
    spec, terms = plan.spec, x.shape[1]
    first, second = _factors(plan, scale_a, scale_b, rows, columns, terms)
    added = _bias(plan, bias, columns)
    values = x.dtype.kind not in "iu"
    x, y = codes_of(x, spec.input, "a"), codes_of(y, spec.input_b, "b")
    with np.errstate(all="ignore"):
        total = _total(
            plan,
            (rows, columns),
            plan.slices(terms),
            lambda parts: [_chain(x, y, plan, part, threads) for part in parts],
            lambda block: first[:, block, None] * np.repeat(second[block], BLOCK)[None, :columns],
        )
        factor = first[:, None] * second[None, :] if plan.scales in ("tensor", "row") else None
        return _finished(total, plan, factor, added, values)


def dots(
    a: ArrayLike,
    b: ArrayLike,
    *,
    plan: Plan,
    bias: ArrayLike | None = None,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> np.ndarray:
    """Return the dot products of rows of A and rows of B, as the elements of a product by a plan.

    Parameters
    ----------
    a, b : (S, K) array_like
        As those of ``multiply``.
    plan : Plan
    bias : (S,) array_like, optional
    scale_a, scale_b : array_like of float32, optional
        Factors, if the plan has some: (S,) for "tensor" and "row", (S, ⌈K/128⌉) for "block".

    Returns
    -------
    (S,) ndarray
        As of ``multiply``.

    Raises
    ------
    TypeError, ValueError
        As of ``multiply``.
    """
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim != 2 or x.shape != y.shape:
        raise ValueError(f"a and b must be matrices of one shape, not {x.shape} and {y.shape}")
    spec, (count, terms) = plan.spec, x.shape
    shape: tuple[int, ...] = (count,)
    if plan.scales == "block":
        shape = (count, -(-terms // BLOCK))
    first, second = _checked_factors(plan, (scale_a, scale_b), (shape, shape))
    added = _bias(plan, bias, count)
    values = x.dtype.kind not in "iu"
    x, y = codes_of(x, spec.input, "a"), codes_of(y, spec.input_b, "b")
    with np.errstate(all="ignore"):
        total = _total(
            plan,
            (count,),
            plan.slices(terms),
            lambda parts: _dots_of_parts(x, y, plan, parts),
            lambda block: first[:, block] * second[:, block],
        )
        factor = first * second if plan.scales in ("tensor", "row") else None
        return _finished(total, plan, factor, added, values)


def _dots_of_parts(
    x: np.ndarray, y: np.ndarray, plan: Plan, parts: list[np.ndarray]
) -> list[np.ndarray]:
    """Return the values of the sums of some terms, each from zero, those of one length at once."""
    if plan.spec.k == 1:  # long chains, whose whole products are compiled
        return [
            np.concatenate(
                [
                    np.diagonal(_chain(x[i : i + _ROWS], y[i : i + _ROWS].T, plan, part, 1))
                    for i in range(0, len(x), _ROWS)
                ]
            )
            for part in parts
        ]
    spec, found = plan.spec, dict[int, np.ndarray]()
    lengths: dict[int, list[int]] = {}
    for number, places in enumerate(parts):
        lengths.setdefault(len(places), []).append(number)
    for numbers in lengths.values():
        some: np.ndarray = np.stack([parts[number] for number in numbers])  # (parts, terms)
        codes = np.zeros((len(numbers), len(x)), code_dtype(spec.output))
        for steps in _steps(plan, np.arange(len(parts[numbers[0]]))):
            chosen = some[:, steps]
            p, q = (np.swapaxes(v[:, chosen], 0, 1) for v in (x, y))  # (parts, rows, terms)
            if missing := -p.shape[2] % spec.k:  # a shorter step is one with zeros
                p, q = (np.pad(v, ((0, 0), (0, 0), (0, missing))) for v in (p, q))
            codes = np.asarray(fused_dot(p, q, codes, spec))
        values = codes.view(number_dtype(spec.output))
        found |= dict(zip(numbers, values, strict=True))
    return [found[number] for number in range(len(parts))]


def _total(
    plan: Plan,
    shape: tuple[int, ...],
    slices: list[np.ndarray],
    chains: Callable[[list[np.ndarray]], list[np.ndarray]],
    factor: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Return the values of the sums before the epilogue: parts make slices, slices the total.

    Parameters
    ----------
    shape : tuple of int
        That of the results.
    slices : list of ndarray
        The places of each slice.
    chains : callable
        Function that returns the sums of parts, each of which begins at zero.
    factor : callable
        Function that returns the factor of a block.
    """
    total: np.ndarray | None = None
    parts = [plan.parts(places) for places in slices]
    sums = iter(chains([part for some in parts for part in some]))
    for some in parts:
        own: np.ndarray | None = None
        for part in some:
            sum_of_part = next(sums)
            if plan.scales == "block":
                own = _fused(sum_of_part, factor(part[0] // BLOCK), own)
            else:
                own = sum_of_part if own is None else own + sum_of_part
        assert own is not None
        total = own if total is None else total + own
    if total is None:  # no terms
        return np.zeros(shape, number_dtype(plan.spec.output))
    return total


def _chain(
    x: np.ndarray, y: np.ndarray, plan: Plan, places: np.ndarray, threads: int | None
) -> np.ndarray:
    """Return the values of the sum of some terms, from zero."""
    codes = None
    for some in _steps(plan, places):
        codes = product_of_rule(x[:, some], y[some], codes, plan.spec, threads)
    assert codes is not None
    return codes.view(number_dtype(plan.spec.output))


def _steps(plan: Plan, places: np.ndarray) -> list[np.ndarray]:
    """Return the terms of a chain in parts that each begin a new step."""
    rest = len(places) % plan.remainder_first if plan.remainder_first else 0
    return [part for part in (places[:rest], places[rest:]) if len(part)]


def _factors(
    plan: Plan, scale_a: Any, scale_b: Any, rows: int, columns: int, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors as arrays of float32, checked; ones if the plan has none."""
    blocks = -(-terms // BLOCK)
    shapes = {
        "row": ((rows,), (columns,)),
        "block": ((rows, blocks), (blocks, -(-columns // BLOCK))),
    }.get(plan.scales, ((1,), (1,)))
    return _checked_factors(plan, (scale_a, scale_b), shapes)


def _checked_factors(
    plan: Plan, scales: tuple[Any, Any], shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray]:
    given = scales[0] is not None, scales[1] is not None
    if given != (bool(plan.scales),) * 2:
        raise ValueError(
            f"scale_a and scale_b must {'' if plan.scales else 'not '}be given with {plan.rule}"
        )
    if not plan.scales:
        return np.ones(1, np.float32), np.ones(1, np.float32)
    found: list[np.ndarray] = []
    for name, value, shape in zip(("scale_a", "scale_b"), scales, shapes, strict=True):
        array = np.asarray(value, np.float32)
        if array.size != int(np.prod(shape)):
            raise ValueError(f"{name} must have the shape {shape}, not {array.shape}")
        found.append(array.reshape(shape))
    return found[0], found[1]


def _bias(plan: Plan, bias: Any, columns: int) -> np.ndarray | None:
    if (bias is not None) != plan.bias:
        raise ValueError(f"bias must {'' if plan.bias else 'not '}be given with this plan")
    if bias is None:
        return None
    array = np.asarray(bias)
    if array.shape != (columns,):
        raise ValueError(f"bias must have the shape ({columns},), not {array.shape}")
    codes = codes_of(array, FORMATS[plan.output], "bias")
    return np.asarray(convert(codes, plan.output, "fp32")).view(np.float32)


def _fused(x: np.ndarray, factor: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """Return x·factor + c, rounded once."""
    a, b = (np.ascontiguousarray(v).view(np.uint32)[..., None] for v in (x, factor))
    start = np.zeros(x.shape, np.uint32) if c is None else c.view(np.uint32)
    return np.asarray(fused_dot(a, b, start, fma_step("fp32"))).view(np.float32)


def _finished(
    total: np.ndarray,
    plan: Plan,
    factor: np.ndarray | None,
    added: np.ndarray | None,
    values: bool,
) -> np.ndarray:
    """Return the results of sums: multiplied by factors, with the bias, and rounded."""
    if factor is not None:
        total = total * factor
    if added is not None:
        total = total + added
    return _rounded(total, plan, values)


def _rounded(total: np.ndarray, plan: Plan, values: bool) -> np.ndarray:
    """Return the sum in the output format: values, or codes.

    NumPy and ml_dtypes round to nearest even as ``golden.fp.convert`` does, which tests compare,
    and in a twentieth of its time.
    """
    target = FORMATS[plan.output]
    codes = np.ascontiguousarray(total.astype(number_dtype(target))).view(code_dtype(target))
    codes[np.isnan(total)] = (1 << target.storage_bits - 1) - 1
    return codes.view(number_dtype(target)) if values else codes
