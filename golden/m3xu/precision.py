"""What a matrix unit with narrow multipliers can compute, and in how many steps."""

from dataclasses import dataclass

from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import PRESETS, DotSpec
from vitruvian.validate import check_int, one_of

__all__ = ["LANE_BITS", "PRECISIONS", "Precision", "as_precision"]

#: A lane of the operand bus; narrow formats have one lane, TF32 (stored in 32 bits) two.
LANE_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Precision:
    """One way to read the operands of a matrix unit.

    Attributes
    ----------
    name : str
    format : FloatFormat
        Of every real operand.
    output : FloatFormat
        Of C and D, and of their parts where they are complex.
    is_complex : bool
        Whether operands and results are pairs (real, imaginary).
    """

    name: str
    format: FloatFormat
    output: FloatFormat
    is_complex: bool = False

    def limbs(self, multiplier_bits: int) -> int:
        """n: pieces of ``multiplier_bits`` in a significand, and steps of a product."""
        check_int("multiplier_bits", multiplier_bits, 4, 64)
        return -(-(self.format.fraction_bits + 1) // multiplier_bits)

    def is_wide(self, multiplier_bits: int) -> bool:
        """Whether an element takes several lanes and steps."""
        return self.limbs(multiplier_bits) > 1

    def steps(self, multiplier_bits: int) -> int:
        """Passes through the multipliers for one block: n, and 2n where both parts are formed."""
        return self.limbs(multiplier_bits) * (2 if self.is_complex else 1)

    def terms(self, k: int, multiplier_bits: int) -> int:
        """Real products that one fused sum of a block has, on ``k`` lanes.

        Raises
        ------
        ValueError
            If the lanes do not divide into whole elements.
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
        """Elements of K that one block takes: `terms`, half as many complex ones."""
        return self.terms(k, multiplier_bits) // (2 if self.is_complex else 1)

    def _lanes(self, multiplier_bits: int) -> int:
        storage = -(-self.format.storage_bits // LANE_BITS)
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
        """What one block computes, to the bit; for a complex precision, what each part is.

        Parameters
        ----------
        k : int
            Lanes of the unit.
        multiplier_bits : int
            Width of its multipliers.
        preset : str
            Accuracy of the precisions that take one step; the others are ``ieee`` always.
        window : int, optional
            Fraction bits kept, where the preset is ``ieee``: at least what it asks for. Machines
            have windows of their own.

        Raises
        ------
        ValueError
            For a preset without this format, lanes that do not divide, or a window that is too
            narrow or given to a machine.
        """
        one_of("preset", preset, PRESETS)
        name = "ieee" if self.is_wide(multiplier_bits) else preset
        spec = PRESETS[name].spec(
            self.format.name, self.output.name, k=self.terms(k, multiplier_bits)
        )
        if window is None:
            return spec
        if name != "ieee" or spec.window is None:
            raise ValueError(
                f"window must be None for {self.name} with the preset {name}, not {window!r}"
            )
        check_int("window", window, spec.window)
        return DotSpec(input=spec.input, output=spec.output, k=spec.k, window=window)


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
    """Look up a name; objects pass through.

    Raises
    ------
    ValueError
        If there is no such precision.
    """
    if isinstance(value, Precision):
        return value
    one_of("precision", value, PRECISIONS)
    return PRECISIONS[value]
