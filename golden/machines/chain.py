"""Dot products as sequences of rounded operations: chains of fused multiply-adds, trees of sums."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.dot import evaluate
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.general import add_rounded
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.fp.window import ieee_window
from vitruvian.validate import check_int, check_type, one_of

__all__ = ["ChainSpec", "chain_dot"]


@dataclass(frozen=True, kw_only=True)
class ChainSpec:
    """A dot product in which every operation is rounded to the output format.

    Parameters
    ----------
    step : DotSpec
        One fused multiply-add (``k`` = 1); its rounding and flushing hold for every operation.
    k : int or None
        Number of terms in a block; a longer dot product is computed block after block. None stands
        for any number of terms.
    accumulators : int
        Term k is added to accumulator k mod ``accumulators``. One accumulator begins with C,
        several begin with +0.
    descending : bool
        If True, the terms of a block are added in descending k.
    products : str
        "fused": a product is an operand of a fused multiply-add. "rounded": products are rounded,
        added in pairs until one sum is left, and C is added to it.
    add_c : str
        How several accumulators end. "last": their sum is added to C. "none": their sum is the
        result, and C is ignored; then the last additions do not flush.
    zero_subnormals : bool
        If True, subnormal and zero operands, C included, become +0 (CDNA 2).
    """

    step: DotSpec
    k: int | None = 1
    accumulators: int = 1
    descending: bool = False
    products: str = "fused"
    add_c: str = "last"
    zero_subnormals: bool = False

    def __post_init__(self) -> None:
        check_type("step", self.step, DotSpec)
        check_int("k of step", self.step.k, 1, 1)
        if self.k is not None:
            check_int("k", self.k, 1)
        one_of("accumulators", str(self.accumulators), ("1", "2", "4"))
        one_of("products", self.products, ("fused", "rounded"))
        one_of("add_c", self.add_c, ("last", "none"))

    @property
    def input(self) -> FloatFormat:
        """The format of A."""
        return self.step.input

    @property
    def input_b(self) -> FloatFormat:
        """The format of B."""
        return self.step.input_b

    @property
    def output(self) -> FloatFormat:
        """The format of C and D."""
        return self.step.output


def fma_step(input: FloatFormat | str, output: FloatFormat | str = "fp32", **rule: Any) -> DotSpec:
    """Return the correctly rounded fused multiply-add of these formats.

    Parameters
    ----------
    input, output : FloatFormat or str
    **rule
        Further parameters of ``DotSpec``: rounding, flush, flush_result, nan.
    """
    window = ieee_window(input, output)
    return DotSpec(input=input, output=output, k=1, window=window, **rule)


def chain_dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec) -> np.ndarray:
    """Return D as ``spec`` defines it.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    spec : ChainSpec

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
    if spec.zero_subnormals:
        a, b = _cleared(a, spec.input), _cleared(b, spec.input_b)
    block = _tree if spec.products == "rounded" else _chains
    for start in range(0, terms, k):
        c = block(a[:, start : start + k], b[:, start : start + k], c, spec)
    return c


def _cleared(codes: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return codes in which every zero and every subnormal is +0."""
    return np.where(codes & codes.dtype.type(format.exponent_mask) == 0, 0, codes)


def _chains(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec) -> np.ndarray:
    """Compute one block with fused multiply-adds."""
    terms, many = a.shape[1], spec.accumulators
    sums: list[np.ndarray] = [np.zeros_like(c) for _ in range(many)] if many > 1 else [c]
    for k in reversed(range(terms)) if spec.descending else range(terms):
        here = slice(k, k + 1)
        sums[k % many] = evaluate(a[:, here], b[:, here], sums[k % many], spec.step)
    if many == 1:
        return sums[0]
    if spec.add_c == "none":
        # Gaudi 1 adds the four accumulators beginning with that of the first term not taken.
        sums = [sums[(terms + i) % many] for i in range(many)]
        return _pairwise(sums, replace(spec.step, flush_result=None, flush=False))
    return add_rounded(_pairwise(sums, spec.step), c, spec.step)


def _tree(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: ChainSpec) -> np.ndarray:
    """Compute one block with rounded products, which are added in pairs."""
    if spec.zero_subnormals:
        c = _cleared(c, spec.output)
    # A product alone is the fused multiply-add with −0.
    nothing = np.full(len(c), spec.output.negative_zero, code_dtype(spec.output))
    products = [
        evaluate(a[:, k : k + 1], b[:, k : k + 1], nothing, spec.step) for k in range(a.shape[1])
    ]
    return add_rounded(_pairwise(products, spec.step), c, spec.step)


def _pairwise(values: list[np.ndarray], step: DotSpec) -> np.ndarray:
    """Return the sum of a power of two of values, added in neighbouring pairs."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [add_rounded(x, y, step) for x, y in pairs]
    return values[0]
