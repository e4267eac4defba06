"""Compute what a machine computes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import as_codes, check_codes, unpack_pairs
from vitruvian.golden.fp.dot import fused_dot
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.intdot import int_dot
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.chain import ChainSpec, chain_dot
from vitruvian.golden.machines.int_phases import IntPhaseSpec, int_phase_dot
from vitruvian.golden.machines.phases import PhaseSpec, phase_dot, widen_shared
from vitruvian.golden.machines.rdna import rdna_dot
from vitruvian.golden.machines.spec import RdnaSpec
from vitruvian.golden.machines.table import Rule, find

_PACKED_BITS = 4  # of a code, two of which fill a byte


def run(
    stem: str,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
    *,
    packed: bool = False,
) -> np.ndarray:
    """Return D = C + Σ_k A_k·B_k as a machine computes it, to the bit.

    Parameters
    ----------
    stem : str
        Row of the table of machines, for example ``b200_tcgen05_e4m3_fp32``.
    a, b : (..., K) array_like of unsigned int, codes of the row's formats
        K is a multiple of the terms that the machine adds in one step.
    c : (...) array_like of unsigned int, codes of the row's output format
    scale_a, scale_b : (..., K / block) array_like of uint8, optional
        Scales of the blocks, for rows that have them.
    packed : bool
        If True, operands in FP4 hold two codes a byte, the first in the low bits, as libraries of
        GPUs store them: (..., K / 2). Otherwise each code has a byte of its own, from 0 to 15.

    Returns
    -------
    (...) ndarray of unsigned int, codes of the row's output format

    Raises
    ------
    UserError
        If there is no such row.
    TypeError, ValueError
        If an operand does not hold codes of its format, or if the shapes do not fit.

    Examples
    --------
    >>> run("v100_mma_fp16_fp32", [[0x3C00] * 4], [[0x3C00] * 4], [0]).tolist()  # 4 times 1·1
    [1082130432]
    """
    rule = find(stem).rule
    if packed:
        a, b = unpacked(a, b, rule)
    return compute(rule, a, b, c, scale_a, scale_b)


def unpacked(
    a: ArrayLike, b: ArrayLike, rule: Rule, axes: tuple[int, int] = (-1, -1)
) -> tuple[ArrayLike, ArrayLike]:
    """Return A and B with one code a byte, where those in FP4 have two.

    Parameters
    ----------
    a, b : array_like of unsigned int
    axes : tuple of int
        The axes along K.

    Raises
    ------
    ValueError
        If neither format is FP4.
    """
    formats = (getattr(rule, "input", None), getattr(rule, "input_b", None))
    short = [isinstance(f, FloatFormat) and f.width == _PACKED_BITS for f in formats]
    if not any(short):
        raise ValueError("packed must be False for a rule without operands in FP4")
    x, y = (
        unpack_pairs(codes, axis, name) if pairs else codes
        for codes, axis, name, pairs in zip((a, b), axes, "ab", short, strict=True)
    )
    return x, y


def compute(
    rule: Rule,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> np.ndarray:
    """Return D by a rule; parameters and result are those of ``run``.

    Examples
    --------
    >>> from vitruvian import machines
    >>> rule = machines.spec("v100", "mma", "fp16", "fp32")
    >>> hex(int(machines.compute(rule, [0x3C00] * 4, [0x3C00] * 4, 0)))  # 4.0
    '0x40800000'
    """
    if isinstance(rule, DotSpec):
        return fused_dot(a, b, c, rule, scale_a=scale_a, scale_b=scale_b)
    if isinstance(rule, PhaseSpec) and rule.shared_bits is not None:
        a = _widened(a, scale_a, rule.shared_bits, "a")
        b = _widened(b, scale_b, rule.shared_bits, "b")
        scale_a = scale_b = None
    for scale, name in ((scale_a, "scale_a"), (scale_b, "scale_b")):
        if scale is not None:
            raise ValueError(f"{name} must be None, because the rule has no scales")
    if isinstance(rule, IntPhaseSpec):
        x, y = (check_codes(codes, 8, name) for codes, name in ((a, "a"), (b, "b")))
        return int_phase_dot(x, y, check_codes(c, 32, "c"), rule)[()]
    if isinstance(rule, IntDotSpec):
        return _integers(rule, *(_unsigned(x) for x in (a, b, c)))
    function: Any = rdna_dot if isinstance(rule, RdnaSpec) else phase_dot
    function = chain_dot if isinstance(rule, ChainSpec) else function
    x, y, z, lead = _flattened(a, b, c, rule.input, rule.input_b, rule.output)
    return function(x, y, z, rule).reshape(lead)[()]


def _integers(rule: IntDotSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the codes of the sums; only a step that saturates differs from one long step."""
    terms = a.shape[-1] if a.ndim else 0
    step = rule.k if rule.saturate and b.ndim and b.shape[-1] == terms else max(terms, 1)
    d = c
    for first in range(0, max(terms, 1), step):
        chosen = (..., slice(first, first + step)) if terms else ()
        d = np.asarray(
            int_dot(
                a[chosen],
                b[chosen],
                d,
                signed_a=rule.signed_a,
                signed_b=rule.signed_b,
                saturate=rule.saturate,
            )
        )
    return d.view(np.uint32)


def _widened(codes: ArrayLike, exponents: ArrayLike | None, bits: int, name: str) -> np.ndarray:
    """Return the bf16 codes of operands that share exponents."""
    x = check_codes(codes, bits, name)
    terms = 16
    if exponents is None:
        raise ValueError(f"scale_{name} must be exponents, one for each {terms} values, not None")
    scales = check_codes(exponents, 8, f"scale_{name}")
    many = x.shape[-1] if x.ndim else 0
    if many % terms or not many:
        raise ValueError(f"K must be a multiple of {terms}, not {many!r}")
    expected = (*x.shape[:-1], many // terms)
    if scales.shape != expected:
        raise ValueError(f"scale_{name} must have the shape {expected}, not {scales.shape}")
    return widen_shared(x, scales, bits)


def _unsigned(values: ArrayLike) -> np.ndarray:
    """Return integers, or codes of integers, with a wide type."""
    return np.asarray(values).astype(np.int64)


def _flattened(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    input: FloatFormat,
    input_b: FloatFormat,
    output: FloatFormat,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return the operands as (n, K), (n, K) and (n,) codes, and the shape of the result."""
    x, y, z = as_codes(a, input, "a"), as_codes(b, input_b, "b"), as_codes(c, output, "c")
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1] or not x.shape[-1]:
        raise ValueError(
            f"a and b must be (..., K) with the same K of at least 1, not {x.shape} and {y.shape}"
        )
    terms = x.shape[-1]
    lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1], z.shape)
    return (
        np.broadcast_to(x, (*lead, terms)).reshape(-1, terms),
        np.broadcast_to(y, (*lead, terms)).reshape(-1, terms),
        np.broadcast_to(z, lead).reshape(-1),
        lead,
    )
