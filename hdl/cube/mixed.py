"""Matrix units whose beats name a format for A and another one for B."""

from dataclasses import dataclass
from itertools import product

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.presets import PRESETS

from .config import MatrixUnitConfig

#: The parameters of which a unit with two formats in a beat has only the default.
_FIXED: dict[str, object] = {
    "operations": ("mma",),
    "assignment": "element",
    "sparsity": False,
    "fast": False,
    "window": None,
    "multiplier_bits": None,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class MixedUnitConfig(MatrixUnitConfig):
    """The parameters of a matrix unit in which A and B of a beat may have different formats.

    A beat has the field ``precision_b`` behind ``precision``, which is then the format of A alone.

    Parameters
    ----------
    **others
        As in ``MatrixUnitConfig``, but the preset is a machine, all precisions are floating-point
        formats with codes of one byte that the machine multiplies with each other, and semirings,
        sparsity, ``fast``, the window, the multipliers' width and every assignment but ``element``
        do not exist.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the preset does not have a pair of formats.
    """

    def _check_combination(self) -> None:
        for name, value in _FIXED.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} must be {value!r} with a format for each side, "
                    f"not {getattr(self, name)!r}"
                )
        if not PRESETS[self.preset].is_machine:
            raise ValueError(
                f"preset must be a machine with a format for each side, not {self.preset!r}"
            )
        if len(self.floats) < len(self.precisions):
            raise ValueError(
                f"precisions must be floating-point with a format for each side, "
                f"not {self.precisions!r}"
            )
        super()._check_combination()
        for a, b in product(self.precisions, repeat=2):
            self.pair_spec(a, b)  # raises ValueError if the preset does not have the pair

    def pair_spec(self, a: str, b: str) -> DotSpec:
        """Return the arithmetic of an element in a beat with these formats of A and B."""
        self._known(a)
        self._known(b)
        output = self.result_format(a).name
        return PRESETS[self.preset].spec(a, output, k=self.terms(a), input_b=b)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations per cycle; all formats have the same number."""
        return self.m * self.n * self.terms(self.precisions[0])
