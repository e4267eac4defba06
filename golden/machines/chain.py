"""Dot products as sequences of rounded operations: chains of fused multiply-adds, trees of sums."""

from dataclasses import replace
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.general import add_rounded, evaluate
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.spec import ChainSpec
from vitruvian.golden.sums.dots import chain_rows

_FP16 = FORMATS["fp16"]
#: The operations of the first row: ("block", first term), ("fma", term, addend, result),
#: ("product", term, result) and ("add", x, y, result). The values are codes of the output format.
ChainTrace = list[tuple[Any, ...]]


def chain_dot(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: ChainSpec,
    trace: ChainTrace | None = None,
) -> np.ndarray:
    """Return D as ``spec`` defines it.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    trace : list, optional
        Receives the operations of the first row.

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes

    Raises
    ------
    ValueError
        If K is not a multiple of ``spec.k``.
    """
    terms = a.shape[1]
    k = spec.k or terms
    if terms % k:
        raise ValueError(f"K must be a multiple of {k}, not {terms!r}")
    a, spec = real_operand(a, spec)
    paired = spec.products == "paired"
    fast = chain_rows(a, b, c, spec) if trace is None and not paired else None
    if fast is not None:
        return fast
    if spec.zero_subnormals:
        a, b = (
            codes if paired and f.emin > _FP16.emin else _cleared(codes, f)
            for codes, f in ((a, spec.input), (b, spec.input_b))
        )
    block = {"rounded": _tree, "paired": _paired, "fused": _chains}[spec.products]
    for start in range(0, terms, k):
        if trace is not None:
            trace.append(("block", start))
        c = block(a[:, start : start + k], b[:, start : start + k], c, spec, trace)
    return c


def real_operand(a: np.ndarray, spec: ChainSpec) -> tuple[np.ndarray, ChainSpec]:
    """Return A and a rule of real numbers with the same results as a rule of complex ones.

    Parameters
    ----------
    a : (..., K) ndarray of unsigned int, ``spec.input`` codes, with an even K
    """
    if spec.complex is None:
        return a, spec
    parts = a.reshape(*a.shape[:-1], -1, 2)
    if spec.complex == "imaginary":
        parts = parts[..., ::-1]
    else:
        parts = parts ^ np.array([0, spec.input.sign_mask], a.dtype)  # i² is −1
    return parts.reshape(a.shape), replace(spec, complex=None)


def _cleared(codes: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return codes in which every zero and every subnormal is +0."""
    return np.where(codes & codes.dtype.type(format.exponent_mask) == 0, 0, codes)


def _chains(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec, trace: ChainTrace | None
) -> np.ndarray:
    """Compute one block with fused multiply-adds."""
    terms, many = a.shape[1], spec.accumulators
    sums: list[np.ndarray] = [np.zeros_like(c) for _ in range(many)] if many > 1 else [c]
    for k in reversed(range(terms)) if spec.descending else range(terms):
        here = slice(k, k + 1)
        addend = sums[k % many]
        sums[k % many] = total = evaluate(a[:, here], b[:, here], addend, spec.step)
        if trace is not None:
            trace.append(("fma", k, int(addend[0]), int(total[0])))
    if many == 1:
        return sums[0]
    if spec.add_c == "none":
        # Gaudi 1 adds the four accumulators beginning with that of the first term not taken.
        sums = [sums[(terms + i) % many] for i in range(many)]
        return _pairwise(sums, spec.step.replace(flush_result=None, flush=False), trace)
    return _add(_pairwise(sums, spec.step, trace), c, spec.step, trace)


def _paired(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec, trace: ChainTrace | None
) -> np.ndarray:
    """Compute one block with rounded products, whose neighbours are added first."""
    nothing = np.full(len(c), spec.output.negative_zero, code_dtype(spec.output))
    sums = [np.zeros_like(c) for _ in range(spec.accumulators)]
    for k in range(0, a.shape[1], 2):
        x, y = (evaluate(a[:, j : j + 1], b[:, j : j + 1], nothing, spec.step) for j in (k, k + 1))
        here = k // 2 % spec.accumulators
        sums[here] = _add(sums[here], _add(x, y, spec.step, trace), spec.step, trace)
    return _add(_pairwise(sums, spec.step, trace), c, spec.step, trace)


def _tree(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec, trace: ChainTrace | None
) -> np.ndarray:
    """Compute one block with rounded products, which are added in pairs."""
    if spec.zero_subnormals:
        c = _cleared(c, spec.output)
    # A product alone is the fused multiply-add with −0.
    nothing = np.full(len(c), spec.output.negative_zero, code_dtype(spec.output))
    products = [
        evaluate(a[:, k : k + 1], b[:, k : k + 1], nothing, spec.step) for k in range(a.shape[1])
    ]
    if trace is not None:
        trace += [("product", k, int(product[0])) for k, product in enumerate(products)]
    return _add(_pairwise(products, spec.step, trace), c, spec.step, trace)


def _add(x: np.ndarray, y: np.ndarray, step: DotSpec, trace: ChainTrace | None) -> np.ndarray:
    """Return rounded sums."""
    total = add_rounded(x, y, step)
    if trace is not None:
        trace.append(("add", int(x[0]), int(y[0]), int(total[0])))
    return total


def _pairwise(values: list[np.ndarray], step: DotSpec, trace: ChainTrace | None) -> np.ndarray:
    """Return the sum of a power of two of values, added in neighbouring pairs."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [_add(x, y, step, trace) for x, y in pairs]
    return values[0]
