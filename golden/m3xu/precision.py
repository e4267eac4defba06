"""The precisions of a matrix unit with narrow multipliers, and the steps that each takes."""

from dataclasses import dataclass

from vitruvian.common.validate import ceil_div, check_int, one_of
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.machines.presets import PRESETS

#: Bits of a lane of the operand bus. An FP16 or BF16 element takes one lane, a TF32 element (which
#: is stored in 32 bits) two.
LANE_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The formats of a matrix unit's operands and results.

    Attributes
    ----------
    name : str
        Key in ``PRECISIONS``.
    format : FloatFormat
        Format of A and B, or of their parts if they are complex.
    output : FloatFormat
        Format of C and D, or of their parts if they are complex.
    is_complex : bool
        True if operands and results are pairs (real part, imaginary part).
    """

    name: str
    format: FloatFormat
    output: FloatFormat
    is_complex: bool = False

    def limbs(self, multiplier_bits: int) -> int:
        """Return n, the number of limbs of ``multiplier_bits`` bits in a significand.

        A real product takes n steps.

        Raises
        ------
        TypeError, ValueError
            If ``multiplier_bits`` is not an int from 4 to 64.
        """
        check_int("multiplier_bits", multiplier_bits, 4, 64)
        return ceil_div(self.format.fraction_bits + 1, multiplier_bits)

    def is_wide(self, multiplier_bits: int) -> bool:
        """Return True if an element takes several lanes and steps."""
        return self.limbs(multiplier_bits) > 1

    def steps(self, multiplier_bits: int) -> int:
        """Return the passes through the multipliers for one block: n, or 2n if complex."""
        return self.limbs(multiplier_bits) * (2 if self.is_complex else 1)

    def terms(self, k: int, multiplier_bits: int) -> int:
        """Return the number of real products in one fused sum of a block.

        Parameters
        ----------
        k : int
            Lanes of the unit.
        multiplier_bits : int
            Width of its multipliers.

        Raises
        ------
        ValueError
            If ``k`` is not a multiple of the lanes of an element.
        """
        check_int("k", k, 1)
        lanes = self._lanes(multiplier_bits) * (2 if self.is_complex else 1)
        if k % lanes:
            raise ValueError(
                f"k must be a multiple of {lanes} for {self.name} on {multiplier_bits}-bit "
                f"multipliers, not {k!r}"
            )
        return k // self._lanes(multiplier_bits)

    def elements(self, k: int, multiplier_bits: int) -> int:
        """Return the elements of K in one block: ``terms``, or half as many if complex."""
        return self.terms(k, multiplier_bits) // (2 if self.is_complex else 1)

    def _lanes(self, multiplier_bits: int) -> int:
        storage = ceil_div(self.format.storage_bits, LANE_BITS)
        limbs = self.limbs(multiplier_bits)
        return limbs if limbs > 1 else storage

    def spec(
        self,
        *,
        k: int = 8,
        multiplier_bits: int = 12,
        preset: str = "ieee",
        window: int | None = None,
    ) -> DotSpec:
        """Return the arithmetic of one block, or of each part of it if complex.

        Parameters
        ----------
        k : int
            Lanes of the unit.
        multiplier_bits : int
            Width of its multipliers.
        preset : str
            Accuracy of the precisions that take one step; the others are always ``ieee``.
        window : int, optional
            Fraction bits that an ``ieee`` unit keeps, at least as many as the preset needs; with
            any other preset it must be None.

        Raises
        ------
        ValueError
            If the preset is unknown or does not have this format, if ``k`` is not a multiple of
            the lanes of an element, or if ``window`` is too narrow or the preset does not allow
            one.
        """
        one_of("preset", preset, PRESETS)
        name = "ieee" if self.is_wide(multiplier_bits) else preset
        spec = PRESETS[name].spec(
            self.format.name, self.output.name, k=self.terms(k, multiplier_bits)
        )
        if window is None:
            return spec
        if PRESETS[name].is_machine or spec.sum.window is None:
            raise ValueError(
                f"window must be None for {self.name} with the preset {name}, not {window!r}"
            )
        check_int("window", window, spec.sum.window)
        return dot_spec(input=spec.input, output=spec.output, k=spec.k, window=window)


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(name="fp16", format=FORMATS["fp16"], output=FORMATS["fp32"]),
        Precision(name="bf16", format=FORMATS["bf16"], output=FORMATS["fp32"]),
        Precision(name="tf32", format=FORMATS["tf32"], output=FORMATS["fp32"]),
        Precision(name="fp32", format=FORMATS["fp32"], output=FORMATS["fp32"]),
        Precision(name="fp32c", format=FORMATS["fp32"], output=FORMATS["fp32"], is_complex=True),
        Precision(name="fp64", format=FORMATS["fp64"], output=FORMATS["fp64"]),
    )
}


def as_precision(value: "Precision | str") -> Precision:
    """Return the precision called ``value``; a ``Precision`` is returned unchanged.

    Raises
    ------
    ValueError
        If ``value`` is not a key of ``PRECISIONS``.
    """
    if isinstance(value, Precision):
        return value
    one_of("precision", value, PRECISIONS)
    return PRECISIONS[value]
