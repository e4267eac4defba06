"""The vectorised fused dot product of any length: checked operands, computed block after block.

``DotSpec`` defines the result. ``golden.fp.plain`` computes a block by a plain rule, and
``golden.fp.general`` by any rule. Where a rule has much work, ``golden.sums`` generates a kernel,
which returns the same bits.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_type
from vitruvian.golden.fp.codec import as_codes
from vitruvian.golden.fp.general import evaluate
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.sums.dots import dot_rows


def fused_dot(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    spec: DotSpec,
    *,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> np.ndarray:
    """Return the fused dot product D = C + Σ_k A_k·B_k as ``spec`` defines it, to the bit.

    Parameters
    ----------
    a : (..., K) array_like of unsigned int, ``spec.input`` codes
    b : (..., K) array_like of unsigned int, ``spec.input_b`` codes
    c : (...) array_like of unsigned int, ``spec.output`` codes
        Leading axes broadcast.
    spec : DotSpec
        Parameters of a block. If K is at most ``spec.k``, it is one block of K terms. Otherwise K
        must be a multiple of ``spec.k``; the blocks follow in ascending k, and the D of a block is
        the C of the next.
    scale_a, scale_b : (..., K / block) array_like of uint8, ``spec.scales.format`` codes, optional
        Scales of the blocks of A and B; given exactly if ``spec.scales`` is.

    Returns
    -------
    (...) ndarray of unsigned int, ``spec.output`` codes

    Raises
    ------
    TypeError
        If ``spec`` is not a ``DotSpec`` or an operand does not hold integers.
    ValueError
        If a code is too wide, or if the shapes or K do not fit.

    Examples
    --------
    >>> from vitruvian import PRESETS, fused_dot
    >>> spec = PRESETS["a100"].spec("fp16")  # eight products, fp32 results
    >>> one, two = 0x3C00, 0x4000  # codes of 1.0 and 2.0
    >>> hex(int(fused_dot([one] * 8, [two] * 8, 0, spec)))  # 16.0
    '0x41800000'
    """
    check_type("spec", spec, DotSpec)
    a, b = as_codes(a, spec.input, "a"), as_codes(b, spec.input_b, "b")
    c = as_codes(c, spec.output, "c")
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1] or not a.shape[-1]:
        raise ValueError(
            f"a and b must be (..., K) with the same K of at least 1, not {a.shape} and {b.shape}"
        )
    terms = a.shape[-1]
    if terms > spec.k and terms % spec.k:
        raise ValueError(f"K must be at most {spec.k} or a multiple of it, not {terms!r}")
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1], c.shape)
    a = np.broadcast_to(a, (*lead, terms)).reshape(-1, terms)
    b = np.broadcast_to(b, (*lead, terms)).reshape(-1, terms)
    d = np.broadcast_to(c, lead).reshape(-1)
    scales_a, scales_b = (
        _block_scales(scale, name, lead, terms, spec)
        for scale, name in ((scale_a, "scale_a"), (scale_b, "scale_b"))
    )
    fast = dot_rows(a, b, d, spec, scales_a, scales_b)
    if fast is not None:
        return fast.reshape(lead)[()]
    for start in range(0, terms, spec.k):
        block = slice(start, start + spec.k)
        if spec.scales is None or scales_a is None or scales_b is None:
            d = evaluate(a[:, block], b[:, block], d, spec)
        else:
            scales = slice(start // spec.scales.block, (start + spec.k) // spec.scales.block)
            d = evaluate(
                a[:, block],
                b[:, block],
                d,
                spec,
                scale_a=scales_a[:, scales],
                scale_b=scales_b[:, scales],
            )
    return d.reshape(lead)[()]


def _block_scales(
    scale: ArrayLike | None, name: str, lead: tuple[int, ...], terms: int, spec: DotSpec
) -> np.ndarray | None:
    """Return the scales of all blocks as (n, K / block) codes, or None for a rule without scales.

    Raises
    ------
    ValueError
        If scales are missing, of the wrong shape or not wanted, or if K is no multiple of a block.
    """
    if spec.scales is None:
        if scale is not None:
            raise ValueError(f"{name} must be None, because the rule has no scales")
        return None
    if terms % spec.scales.block:
        raise ValueError(f"K must be a multiple of the block of {spec.scales.block}, not {terms!r}")
    if scale is None:
        raise ValueError(
            f"{name} must be {spec.scales.format} codes, one for each {spec.scales.block} values"
        )
    codes = np.asarray(scale)
    if codes.dtype.kind not in "iu" or (codes.size and not 0 <= codes.min() <= codes.max() <= 255):
        raise ValueError(f"{name} must be {spec.scales.format} codes from 0 to 255")
    shape = (*lead, terms // spec.scales.block)
    try:
        return np.broadcast_to(codes, shape).reshape(-1, shape[-1]).astype(np.uint8)
    except ValueError:
        raise ValueError(f"{name} must have the shape {shape}, not {codes.shape}") from None
