"""Tables of the functions exp and ln: coefficients of polynomials on segments, exactly rounded.

A function is a polynomial on each of 2^k segments. Its coefficients come from an interpolation with
50 decimal digits, so they do not depend on any mathematical library.

exp: t = x · log2(e) = n + f, and 2^f = Σ c_j u^j, where f is in segment i at position u in [0, 1).
ln: x = m · 2^e with m in [1, 2), and -ln(m) = Σ c_j u^j. Here u counts down from the last m of a
segment, so that all coefficients but c_0 are positive, as those of exp are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

from vitruvian.common.validate import one_of

_DIGITS = 50
FRACTION = 10  # fraction bits of an FP16 number


@dataclass(frozen=True, kw_only=True)
class FunctionDesign:
    """Widths of the unit for exp and ln of FP16 numbers.

    Parameters
    ----------
    degree : int
        Degree of the polynomials, 2 or 3.
    exp_segments, ln_segments : int
        Base-2 logarithm of the number of segments of each function.
    bits : int
        Fraction bits of the polynomial's value.
    argument_bits : int
        Fraction bits of t.
    constant_bits : int
        Fraction bits of log2(e).
    exp_offsets, ln_offsets : tuple of (int, int)
        Segments whose c_0 is moved, and by how many units of its last place. A segment without an
        entry is moved by ``bias``.
    bias : int
        Units of the last place by which c_0 is moved, because products are cut and not rounded.

    Raises
    ------
    ValueError
        If the degree is neither 2 nor 3.
    """

    degree: int
    exp_segments: int
    ln_segments: int
    bits: int
    argument_bits: int
    constant_bits: int
    bias: int = 0
    exp_offsets: tuple[tuple[int, int], ...] = ()
    ln_offsets: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        one_of("degree", self.degree, (2, 3))

    @property
    def segments(self) -> int:
        """The smaller base-2 logarithm of the numbers of segments."""
        return min(self.exp_segments, self.ln_segments)

    def position_bits(self, power: int) -> int:
        """Return the bits of u that a product needs whose result is a coefficient of ``power``."""
        return self.bits - self.segments * (power + 1) + 1


#: The designs of docs/decisions/0017-vector-unit.md by name. ``sim.bench.vector.functions`` finds
#: the widths: they are the smallest with which every result is correctly rounded.
DESIGNS: dict[str, FunctionDesign] = {
    "quadratic128": FunctionDesign(
        degree=2,
        exp_segments=7,
        ln_segments=7,
        bits=23,
        argument_bits=21,
        constant_bits=21,
        bias=1,
        exp_offsets=((0, 3), (1, 0), (4, 0), (29, 2), (92, 5), (115, 7), (127, 4)),
        ln_offsets=(
            *((0, 0), (5, -1), (10, 0), (11, 0), (38, 0), (45, 0), (49, 0), (116, 0), (124, 0)),
        ),
    ),
    "quadratic64": FunctionDesign(
        degree=2,
        exp_segments=6,
        ln_segments=6,
        bits=24,
        argument_bits=23,
        constant_bits=23,
        bias=1,
        exp_offsets=((0, 0), (52, 2), (63, 2)),
        ln_offsets=((0, 0), (2, 0), (5, 0), (19, 0), (22, 0), (63, 2)),
    ),
    "quadratic32": FunctionDesign(
        degree=2,
        exp_segments=5,
        ln_segments=6,
        bits=24,
        argument_bits=23,
        constant_bits=23,
        bias=1,
        exp_offsets=((0, 0), (7, 2), (26, 3), (31, 2)),
        ln_offsets=((0, 0), (2, 0), (5, 0), (19, 0), (22, 0), (63, 2)),
    ),
    "cubic16": FunctionDesign(
        degree=3,
        exp_segments=4,
        ln_segments=4,
        bits=24,
        argument_bits=23,
        constant_bits=23,
        bias=1,
        exp_offsets=((0, 0), (15, 2)),
        ln_offsets=((4, 0),),
    ),
    "cubic8": FunctionDesign(
        degree=3,
        exp_segments=3,
        ln_segments=4,
        bits=24,
        argument_bits=25,
        constant_bits=23,
        bias=1,
        exp_offsets=((0, -1), (6, 2)),
        ln_offsets=((4, 0),),
    ),
}


def log2_of_e(bits: int) -> int:
    """Return log2(e) · 2^bits, rounded to nearest."""
    with localcontext() as context:
        context.prec = _DIGITS
        return _rounded(1 / Decimal(2).ln(), bits)


def ln_of_2(bits: int) -> int:
    """Return ln(2) · 2^bits, rounded to nearest."""
    with localcontext() as context:
        context.prec = _DIGITS
        return _rounded(Decimal(2).ln(), bits)


@lru_cache
def exp_table(design: FunctionDesign) -> list[list[int]]:
    """Return the coefficients c_0, c_1, … of each segment of 2^f, times 2^bits."""
    k = design.exp_segments
    with localcontext() as context:
        context.prec = _DIGITS
        ln2 = Decimal(2).ln()
        table = [
            _fit(
                lambda u, i=i: ((i + u) / (1 << k) * ln2).exp(),
                _nodes(design.degree, ends=False),
                design.bits,
            )
            for i in range(1 << k)
        ]
    return _moved(table, design.bias, design.exp_offsets)


@lru_cache
def ln_table(design: FunctionDesign) -> list[list[int]]:
    """Return the coefficients of each segment of -ln(m), times 2^bits; from 1.5 on, of -ln(m/2).

    With m/2 in the upper half, a small result is never the difference of two large numbers.
    """
    k = design.ln_segments
    with localcontext() as context:
        context.prec = _DIGITS
        # The last point of a segment is one fraction step before the next segment.
        top = 1 - Decimal(2) ** (k - FRACTION)
        table = []
        for i in range(1 << k):
            scale = 2 if 2 * i >= 1 << k else 1
            # ln is near 0 at the ends of [1, 2), so the polynomial must be exact there.
            ends = i in (0, (1 << k) - 1)
            table.append(
                _fit(
                    lambda u, i=i, scale=scale: -((1 + (i + top - u) / (1 << k)) / scale).ln(),
                    [top * x for x in _nodes(design.degree, ends=ends)],
                    design.bits,
                )
            )
    return _moved(table, design.bias, design.ln_offsets)


def _moved(
    table: list[list[int]], bias: int, offsets: tuple[tuple[int, int], ...]
) -> list[list[int]]:
    by_segment = dict(offsets)
    return [[c[0] + by_segment.get(i, bias), *c[1:]] for i, c in enumerate(table)]


def _nodes(degree: int, *, ends: bool) -> list[Decimal]:
    """Return points in [0, 1] at which a polynomial equals the function.

    These are Chebyshev's points, or points with both ends of the interval.
    """
    if ends:
        quarters = {2: (0, 2, 4), 3: (0, 1, 3, 4)}[degree]
        return [Decimal(n) / 4 for n in quarters]
    two = Decimal(2)
    if degree == 2:
        outer = Decimal(3).sqrt() / 2
        points = [-outer, Decimal(0), outer]
    else:
        inner, outer = (((two + s * two.sqrt()).sqrt()) / 2 for s in (-1, 1))
        points = [-outer, -inner, inner, outer]
    return [(1 + point) / 2 for point in points]


def _fit(function: Callable[[Decimal], Decimal], nodes: list[Decimal], bits: int) -> list[int]:
    """Return the coefficients of the polynomial through the nodes, times 2^bits."""
    count = len(nodes)
    divided = [function(x) for x in nodes]  # Newton's divided differences
    for j in range(1, count):
        for i in range(count - 1, j - 1, -1):
            divided[i] = (divided[i] - divided[i - 1]) / (nodes[i] - nodes[i - j])
    powers = [Decimal(0)] * count
    for i in range(count - 1, -1, -1):
        shifted = [Decimal(0), *powers[:-1]]
        powers = [s - nodes[i] * p for s, p in zip(shifted, powers, strict=True)]
        powers[0] += divided[i]
    return [_rounded(c, bits) for c in powers]


def _rounded(value: Decimal, bits: int) -> int:
    return int((value * (1 << bits)).to_integral_value())
