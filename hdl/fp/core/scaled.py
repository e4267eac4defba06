"""Back end of the dot products with scales: products that can be far beyond the range of C.

The scale of a product multiplies it by a power of two. If all products have the same one, it is not
added to each exponent: the back end adds it to the difference of the two scales of exponents, once.
E_max is then found among unscaled products and a C whose exponent was lowered by the scale.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed

from ..parts.unpack import UnpackedCode
from .dotcore import DotCore
from .geometry import Geometry
from .sideband import SideBand


@dataclass(frozen=True, kw_only=True)
class ScaledGeometry(Geometry):
    """The widths of a back end of scaled products.

    ``floor`` is not used; ``zero_code`` takes its place. Magnitudes are truncated, and every zero
    result is +0.

    Attributes
    ----------
    sum_limit : int
        The magnitude of the sum is below this number of units of 2**E_max.
    scale_max : int
        Largest value of the unsigned scale that is added to ``offset``; 0 without a scale.
    headroom : int
        Exponents on the product scale are larger by this number than those of the rule, so that
        also a product that is a sum itself is below 4 units of its exponent.
    zero_code : int
        Exponent of a zero C on the biased scale of ``output``, without the headroom: the floor of
        E_max, which has no effect on another C. It is 1 if the floor is below all products.
    """

    sum_limit: int
    scale_max: int = 0
    headroom: int = 0
    zero_code: int = 1

    @property
    def integer_bits(self) -> int:
        """Integer bits of the sum, in units of 2**E_max.

        There are so many that the top bit of a sum is never below the last exponent of normal
        numbers. The normalisation can then stop at that exponent and leave a subnormal number.
        """
        return max((self.sum_limit - 1).bit_length(), 2 - self.zero_code - self.headroom)

    @property
    def addend_range(self) -> tuple[int, int]:
        """Least and largest exponent of C on the product scale, without the scale."""
        largest = (1 << self.output.exponent_bits) - 1
        distance = self.headroom - self.offset
        # The scale is added to products or, which is the same, taken from C; the lowest C has the
        # largest scale.
        return self.zero_code + distance - self.scale_max, largest + distance

    @property
    def addend_fraction(self) -> int:
        """Fraction bits of C in units of its exponent on the product scale."""
        return self.output.fraction_bits + self.headroom

    @property
    def shifts_subnormals(self) -> bool:
        """False, because the normalisation leaves subnormal numbers in their place."""
        return False

    @property
    def only_addend_subnormal(self) -> bool:
        """True if every nonzero sum that has a nonzero product is a normal number."""
        return self.exponent_min + self.offset - self.window - 1 >= 1

    @property
    def can_overflow(self) -> bool:
        """True if the sum can exceed the largest finite number of ``output``."""
        top = self.exponent_max + self.offset + self.scale_max
        infinity = (1 << self.output.exponent_bits) - 1
        return top + max(self.integer_bits, self.window + 3) >= infinity


class ScaledCore(DotCore):
    """A builder of the back end of scaled products; ``build`` adds its logic to ``m``.

    Parameters
    ----------
    m : Module
        The module that gets the logic.
    geometry : ScaledGeometry
        The number of lanes and all widths.
    scale : Value
        Unsigned number of at most ``geometry.scale_max`` that is added to the exponent of every
        product; a constant 0 if the lanes have scales of their own.
    **options
        ``rounding``, ``nan_code``, ``stages`` and ``multiplier`` as in ``DotCore``.

    Notes
    -----
    A result below the least normal number needs no shifter of its own. The normalisation shifts to
    the left until a one is at the top, or by the number of positions after which the exponent is
    that of the least normal number.
    """

    g: ScaledGeometry

    def __init__(self, m: Module, *, geometry: ScaledGeometry, scale: Value, **options: Any):
        super().__init__(m, geometry=geometry, zero="positive", **options)
        self.scale = scale

    def _early(self, stage: str, lanes: Any, c: UnpackedCode | None):
        self.scale = self.stages.cross_extra(stage, self.scale, f"{stage}_scale")
        return super()._early(stage, lanes, c)

    def _build_exponents(self, largest: Value, c: UnpackedCode | None):
        """Return E_max (product scale, without the scale) and C's distance from it."""
        m, g = self.m, self.g
        assert c is not None, "a scaled sum has an addend"
        own: Value = c.exponent
        if g.zero_code != 1:
            # The floor of E_max is the exponent of a zero C, so that no comparison with it is
            # needed.
            own = Mux(c.zero, g.zero_code, own)
        addend = Signal(signed(g.scaled_bits), name="c_scaled")
        reference = Signal(signed(g.scaled_bits), name="reference")
        gap = Signal(g.gap_bits, name="c_gap")
        dominates = Signal(name="c_dominates")
        m.d.comb += [
            # One subtraction for C replaces an addition for each product.
            addend.eq(own - (self.scale + (g.offset - g.headroom))),
            dominates.eq(~largest.any() | (addend > largest)),
            reference.eq(Mux(dominates, addend, largest)),
            gap.eq((largest - addend) & (~dominates).replicate(g.gap_bits)),
        ]
        return reference, gap

    def _top(self, reference: Value) -> Value:
        """Return E_max on the output's biased scale."""
        scale = self.stages.cross("product", self.scale, "s1_scale")
        return reference + (scale + self.g.offset)

    def _magnitude(
        self, inverted: Value, lost: Value, side: SideBand
    ) -> tuple[Value, Value | None, Value | None]:
        """Return the magnitude of the sum, None, and the shift that the exponent allows."""
        m, g = self.m, self.g
        magnitude = Signal(g.magnitude_bits, name="magnitude")
        m.d.comb += magnitude.eq(inverted + side.below)
        # More than any shift, so that the leading one always reaches the top.
        everywhere = (1 << g.magnitude_bits.bit_length()) - 1
        if side.subnormal is not None:
            limit = Mux(side.subnormal, g.integer_bits - 1 + g.headroom, everywhere)
        else:
            limit = Signal(len(side.top) + 1, name="limit")
            # The shift that brings the top bit to the exponent 1, that of the least normal number.
            m.d.comb += limit.eq(side.top + (g.integer_bits - 2))
        return magnitude, None, limit
