"""A list of dot products that grows stratum by stratum."""

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import ScaleFormat
from vitruvian.golden.machines.probe.operands import number, random_number, scale_codes, split


class Rows:
    """Operands of dot products in the making.

    Attributes
    ----------
    rng : numpy.random.Generator
    a, b, out : FloatFormat
        Formats of A, of B, and of C and D.
    terms : int
        Terms of a dot product.
    scale : ScaleFormat or None
    block : int or None
        Number of values that share a scale.
    """

    rng: np.random.Generator
    a: FloatFormat
    b: FloatFormat
    out: FloatFormat
    terms: int
    scale: ScaleFormat | None
    block: int | None

    def __init__(
        self,
        rng: np.random.Generator,
        a: FloatFormat,
        b: FloatFormat,
        out: FloatFormat,
        terms: int,
        scale: ScaleFormat | None,
        block: int | None,
    ) -> None:
        self.rng, self.a, self.b, self.out = rng, a, b, out
        self.terms, self.scale, self.block = terms, scale, block
        self._parts: list[dict[str, np.ndarray]] = []

    @property
    def lowest(self) -> int:
        """The least exponent of a product of normal operands."""
        return self.a.emin + self.b.emin

    @property
    def highest(self) -> int:
        """The largest exponent of a product."""
        return self.a.emax + self.b.emax

    @property
    def fraction(self) -> int:
        """The fraction bits of a product."""
        return self.a.fraction_bits + self.b.fraction_bits

    def new(self, count: int) -> dict[str, np.ndarray]:
        """Append ``count`` rows of zeros, with scales of 1, and return their arrays."""
        part = {
            "a": np.zeros((count, self.terms), code_dtype(self.a)),
            "b": np.zeros((count, self.terms), code_dtype(self.b)),
            "c": np.zeros(count, code_dtype(self.out)),
        }
        if self.scale is not None and self.block:
            shape = (count, self.terms // self.block)
            ones = scale_codes(np.zeros(shape, int), self.scale)
            part |= {"scale_a": ones, "scale_b": ones.copy()}
        self._parts.append(part)
        return part

    def put(
        self,
        part: dict[str, np.ndarray],
        position: np.ndarray | int,
        exponent: np.ndarray,
        sign: np.ndarray | int | None = None,
        *,
        exact: bool = False,
    ) -> None:
        """Set one product in every row.

        Parameters
        ----------
        part : dict
            Arrays of the rows.
        position : ndarray of int or int
            Index of the product; it is reduced modulo the number of terms.
        exponent : (n,) ndarray of int
            Sum of the factors' exponents.
        sign : ndarray of int or int, optional
            1 for a negative product; random by default.
        exact : bool
            If True, both significands are 1, otherwise they are random.
        """
        n = len(part["c"])
        place = np.broadcast_to(position, n) % self.terms
        ea, eb = split(self.rng, np.broadcast_to(exponent, n), self.a, self.b)
        minus = self.rng.integers(0, 2, n) if sign is None else np.broadcast_to(sign, n)
        both = self.rng.integers(0, 2, n)
        for name, e, format, s in (("a", ea, self.a, both), ("b", eb, self.b, both ^ minus)):
            if exact:
                fraction = np.zeros(n, int)
            else:
                fraction = self.rng.integers(0, 1 << format.fraction_bits, n)
            part[name][np.arange(n), place] = number(s, e, fraction, format)

    def negate(self, part: dict[str, np.ndarray], source: np.ndarray, target: np.ndarray) -> None:
        """Make the products at ``target`` the negatives of those at ``source``."""
        index = np.arange(len(part["c"]))
        part["a"][index, target] = part["a"][index, source]
        codes = part["b"][index, source]
        masks = np.array([self.b.sign_mask, self.b.negative_zero], codes.dtype)
        mask = masks[(codes == 0).astype(int)]
        part["b"][index, target] = codes ^ mask

    def add(
        self, part: dict[str, np.ndarray], exponent: np.ndarray, sign: bool | None = None
    ) -> None:
        """Set C to random numbers with these exponents."""
        part["c"][:] = random_number(self.rng, exponent, self.out, sign)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all rows."""
        return {n: np.concatenate([part[n] for part in self._parts]) for n in self._parts[0]}
