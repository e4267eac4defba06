"""The operands and results of the compiled loops of Tenstorrent's MVMUL."""

from collections.abc import Callable

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.machines.phases import source
from vitruvian.golden.machines.spec import PhaseSpec


def to_dst(codes: np.ndarray, spec: PhaseSpec) -> np.ndarray:
    """Return codes of ``spec.output`` as int32 with 8 bits of exponent field, 23 of fraction."""
    out = spec.output
    bits = codes.astype(np.int64)
    sign, number = bits & out.sign_mask, bits & (out.sign_mask - 1)
    wide = sign << (32 - out.width) | number << (23 - out.fraction_bits)
    return np.ascontiguousarray(wide.astype(np.uint32).view(np.int32))


def from_dst(numbers: np.ndarray, spec: PhaseSpec) -> np.ndarray:
    """Return the codes of ``spec.output`` of what ``to_dst`` returns."""
    out = spec.output
    bits = numbers.view(np.uint32).astype(np.int64)
    sign, number = bits >> 31 << (out.width - 1), bits & 0x7FFFFFFF
    return (sign | number >> (23 - out.fraction_bits)).astype(code_dtype(out))


def phase_kernel(
    a: np.ndarray, b: np.ndarray, spec: PhaseSpec
) -> Callable[[slice, np.ndarray], None]:
    """Return a function that computes some rows of D in place.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of unsigned int, ``spec.input`` codes
        K is a multiple of 16.

    Returns
    -------
    callable
        Function of a slice of the rows and of these rows of what ``to_dst`` returns.
    """
    from vitruvian.golden.machines.phases_compiled import NO_FIELD, phase_rows

    out = spec.output
    x, y = source(a, spec), source(b, spec)
    slices_a = np.stack([x.significand >> 6, x.significand >> 1 & 0x1F])
    slices_b = np.stack([y.significand >> 4, (y.significand & 0xF) << 3])
    p, q = (
        np.where(u.sign == 1, -slices, slices).astype(np.int16)
        for u, slices in ((x, slices_a), (y, slices_b))
    )
    field_a, field_b = (np.where(u.field == 0, NO_FIELD, u.field).astype(np.int16) for u in (x, y))
    adjust = -127 if not spec.narrow else 97 if out.name == "fp32" else -15
    # Too large a number becomes an infinity, or the largest code of fp16, whose fields all count.
    largest = 255 << 23 if out.name != "fp16" else 31 << 23 | 0x3FF << 13
    drop = {"fp32": 0, "fp16": 13, "bf16": 16}[out.name]
    numbers = (adjust, drop, largest // (1 << 23) + (out.name == "fp16"), largest)

    def kernel(part: slice, d: np.ndarray) -> None:
        rows = p[:, part], field_a[part]
        phase_rows(*rows, q, field_b, d, spec.phases, *numbers, not spec.blackhole)

    return kernel
