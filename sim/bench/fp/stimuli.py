"""Operands for dot products, drawn as bit patterns that reach every corner of the datapath."""

import numpy as np

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec

#: Classes of the vectors of ``dot_vectors``; each has an equal share.
CLASSES = (
    "patterns",  # all bit patterns are equally likely
    "aligned",  # exponents close together, so that the whole window is used
    "cancel",  # products that cancel in pairs exactly or nearly, and a small addend
    "specials",  # zeros, infinities, NaNs and the edges of the ranges
    "subnormal",  # products at the bottom of the output's range and operands below emin
    "ties",  # few bits set in each significand
    "large",  # results around the output's largest number
)


def special_codes(format: FloatFormat) -> np.ndarray:
    """Return the codes at the edges of a format's ranges, with both signs, as uint64."""
    step = 1 << format.storage_shift
    codes = {
        format.zero,
        format.min_subnormal,
        format.min_normal - step,
        format.min_normal,
        format.one,
        format.one + step,
        format.max_finite - step,
        format.max_finite,
        format.canonical_nan,
        *(() if format.infinity is None else (format.infinity, format.infinity + step)),
    }
    both = sorted(codes) + [code | format.sign_mask for code in sorted(codes)]
    return np.array(both, dtype=np.uint64)


def dot_vectors(
    spec: DotSpec, count: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands of all ``CLASSES``.

    Parameters
    ----------
    count : int
        Number of vectors.

    Returns
    -------
    a, b : (count, K) ndarray of codes
    c : (count,) ndarray of codes

    Raises
    ------
    ValueError
        If ``count`` is less than the number of classes.
    """
    if count < len(CLASSES):
        raise ValueError(f"count must be at least {len(CLASSES)}, not {count!r}")
    rng = np.random.default_rng(seed)
    draw = _Draw(rng, spec)
    bounds = [count * n // len(CLASSES) for n in range(len(CLASSES) + 1)]
    parts = [
        getattr(draw, name)(high - low)
        for name, low, high in zip(CLASSES, bounds, bounds[1:], strict=False)
    ]
    a, b, c = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = rng.permutation(count)  # a pipeline must cope with different classes back to back
    return (
        _narrow(a[order], spec.input),
        _narrow(b[order], spec.input_b),
        _narrow(c[order], spec.output),
    )


def int_vectors(
    k: int, signed_a: bool, signed_b: bool, count: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random integer operands.

    A tenth of the rows have the largest possible products, and half of the addends lie within 2^17
    of a limit of int32.

    Parameters
    ----------
    k : int
        Number of terms.
    signed_a, signed_b : bool
        If True, the operand is int8, else uint8.
    count : int
        Number of vectors.

    Returns
    -------
    a, b : (count, K) ndarray of int8 or uint8
    c : (count,) ndarray of int32
    """
    rng = np.random.default_rng(seed)
    a, b = (
        rng.integers(0, 256, (count, k), dtype=np.uint8).view(np.int8 if signed else np.uint8)
        for signed in (signed_a, signed_b)
    )
    extreme = rng.random(count) < 0.1
    a[extreme], b[extreme] = (np.iinfo(x.dtype).min if x.dtype.kind == "i" else 255 for x in (a, b))
    c = rng.integers(-(2**31), 2**31, count)
    edge = 2**31 - 1 - rng.integers(0, 2**17, count)
    c = np.where(rng.random(count) < 0.5, c, rng.choice([-1, 1], count) * edge)
    return a, b, c.astype(np.int32)


def _narrow(codes: np.ndarray, format: FloatFormat) -> np.ndarray:
    return codes.astype(f"u{format.storage_bits // 8}")


class _Draw:
    """The classes of vectors. Each is a method that returns (a, b, c) as uint64 codes."""

    def __init__(self, rng: np.random.Generator, spec: DotSpec):
        self.rng, self.k = rng, spec.k
        self.a, self.b, self.out = spec.input, spec.input_b, spec.output

    def bits(self, format: FloatFormat, shape: tuple[int, ...]) -> np.ndarray:
        words = self.rng.integers(0, 2**64, shape, dtype=np.uint64, endpoint=False)
        return words >> np.uint64(64 - format.code_bits)

    def pack(
        self, format: FloatFormat, exponent: np.ndarray, fraction: np.ndarray | None = None
    ) -> np.ndarray:
        """Return codes with an unbiased exponent, clipped to the format, and a random sign."""
        shape, f = exponent.shape, format.fraction_bits
        if fraction is None:
            fraction = self.bits(format, shape)
        field = np.clip(exponent + format.bias, 0, format.exponent_ones - 1).astype(np.uint64)
        sign = self.rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(format.width - 1)
        code = sign | field << np.uint64(f) | fraction & np.uint64((1 << f) - 1)
        return code << np.uint64(format.storage_shift)

    def sparse(self, format: FloatFormat, shape: tuple[int, ...]) -> np.ndarray:
        """Return fractions with at most two bits set; a fifth of them are inverted."""
        one = np.uint64(1)
        fraction = np.zeros(shape, np.uint64)
        for _ in range(2):
            at = self.rng.integers(0, format.fraction_bits, shape).astype(np.uint64)
            fraction |= self.rng.integers(0, 2, shape).astype(np.uint64) * (one << at)
        return np.where(self.rng.random(shape) < 0.2, ~fraction, fraction)

    def around(self, n: int, target: np.ndarray, spread: int, sparse: bool = False) -> tuple:
        """Return products and an addend whose exponents lie near ``target`` (n, 1).

        Parameters
        ----------
        n : int
            Number of vectors.
        target : (n, 1) ndarray of int
        spread : int
            Largest distance from ``target``.
        sparse : bool
            If True, fractions have at most two bits set.
        """
        shape = (n, self.k)
        total = target + self.rng.integers(-spread, spread + 1, shape)
        low = np.maximum(self.a.emin, total - self.b.emax)
        high = np.minimum(self.a.emax, total - self.b.emin)
        part = self.rng.integers(low, np.maximum(high, low) + 1)
        c = target[:, 0] + self.rng.integers(-spread, spread + 1, n)
        give = self.sparse if sparse else (lambda format, shape: None)
        return (
            self.pack(self.a, part, give(self.a, shape)),
            self.pack(self.b, total - part, give(self.b, shape)),
            self.pack(self.out, c, give(self.out, (n,))),
        )

    def middle(self, n: int) -> np.ndarray:
        """Return exponents that both the products and the addend can have."""
        low = max(self.a.emin + self.b.emin, self.out.emin)
        high = min(self.a.emax + self.b.emax, self.out.emax)
        return self.rng.integers(low, high + 1, (n, 1))

    def patterns(self, n: int) -> tuple:
        shape = (n, self.k)
        return self.bits(self.a, shape), self.bits(self.b, shape), self.bits(self.out, (n,))

    def aligned(self, n: int) -> tuple:
        spread = int(self.rng.integers(1, 4))
        near = self.around(n // 2, self.middle(n // 2), spread)
        far = self.around(n - n // 2, self.middle(n - n // 2), 2 * self.out.fraction_bits)
        return tuple(np.concatenate(pair) for pair in zip(near, far, strict=True))

    def cancel(self, n: int) -> tuple:
        a, b, c = self.around(n, self.middle(n), 2)
        half = self.k // 2
        if half:
            a[:, half : 2 * half], b[:, half : 2 * half] = a[:, :half], b[:, :half]
            b[:, half : 2 * half] ^= np.uint64(self.b.sign_mask)
            flips = self.rng.random((n, half)) < 0.3
            step = np.uint64(1 << self.a.storage_shift)
            a[:, half : 2 * half] ^= np.where(flips, step, np.uint64(0))
        smaller = self.around(n, self.middle(n) - self.out.fraction_bits, 4)[2]
        return a, b, np.where(self.rng.random(n) < 0.5, c, smaller)

    def specials(self, n: int) -> tuple:
        a, b, c = self.around(n, self.middle(n), 3)
        rate = self.rng.choice([0.02, 0.2, 1.0], (n, 1))
        for codes, format, share in (
            (a, self.a, rate),
            (b, self.b, rate),
            (c, self.out, rate[:, 0]),
        ):
            drawn = self.rng.choice(special_codes(format), codes.shape)
            codes[:] = np.where(self.rng.random(codes.shape) < share, drawn, codes)
        zeros = self.rng.random(n) < 0.2  # sums of zeros of both signs
        negative = np.uint64(self.a.sign_mask)
        a[zeros] &= negative
        c[zeros] &= np.uint64(self.out.sign_mask)
        minus = self.rng.random(n) < 0.05
        a[minus], b[minus], c[minus] = negative, self.b.zero, self.out.sign_mask
        return a, b, c

    def subnormal(self, n: int) -> tuple:
        bottom = np.maximum(self.out.emin, self.a.emin + self.b.emin)
        target = bottom + self.rng.integers(-self.out.fraction_bits, 4, (n, 1))
        a, b, c = self.around(n, target, 3)
        for codes, format in ((a, self.a), (b, self.b), (c, self.out)):
            below = self.rng.random(codes.shape) < 0.3
            mask = np.uint64(format.sign_mask | format.fraction_mask)
            codes[:] = np.where(below, codes & mask, codes)
        return a, b, c

    def ties(self, n: int) -> tuple:
        return self.around(n, self.middle(n), self.out.fraction_bits // 2 + 2, sparse=True)

    def large(self, n: int) -> tuple:
        top = min(self.out.emax, self.a.emax + self.b.emax)
        return self.around(n, top - self.rng.integers(0, 4, (n, 1)), 2)
