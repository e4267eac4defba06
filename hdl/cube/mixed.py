"""Matrix units whose beats name a format for A and another one for B."""

from dataclasses import dataclass
from itertools import product

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.presets import PRESETS

from .checks import check_precisions
from .choices import INT8, PRECISIONS
from .tile import TileConfig


@dataclass(frozen=True, kw_only=True, repr=False)
class MixedUnitConfig(TileConfig):
    """The parameters of a matrix unit in which A and B of a beat may have different formats.

    A beat has the field ``precision_b`` behind ``precision``, which is then the format of A alone.

    Parameters
    ----------
    m, n, k, dataflow, pipeline, slots, multiplier, slot_memory, buffered
        As in ``TileConfig``.
    precisions : sequence of str
        Floating-point formats with codes of one byte that the machine multiplies with each other.
    preset : str
        A machine.
    output : str
        Format of C and D.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is outside its range, or if the preset does not have a pair of formats.
    """

    m: int
    n: int
    k: int
    precisions: tuple[str, ...]
    preset: str
    output: str = "fp32"
    dataflow: str = "broadcast"
    pipeline: int = 3
    slots: int | None = None
    multiplier: str = "booth"
    slot_memory: bool = False
    buffered: bool = False

    def __post_init__(self) -> None:
        self.check_tile()
        check_precisions(self.precisions, self.k, self.output)
        ordered = tuple(name for name in PRECISIONS if name in self.precisions)
        object.__setattr__(self, "precisions", ordered)
        one_of("preset", self.preset, [name for name, p in PRESETS.items() if p.is_machine])
        if INT8 in self.precisions:
            raise ValueError(
                f"precisions must be floating-point with a format for each side, "
                f"not {self.precisions!r}"
            )
        for a, b in product(self.precisions, repeat=2):
            self.pair_spec(a, b)  # raises ValueError if the preset does not have the pair

    @property
    def mixed(self) -> bool:
        """True, because a beat names a format for each side."""
        return True

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """The arithmetic (``spec``) of every format with itself."""
        return {precision: self.pair_spec(precision, precision) for precision in self.precisions}

    def pair_spec(self, a: str, b: str) -> DotSpec:
        """Return the arithmetic of an element in a beat with these formats of A and B."""
        self._known(a)
        self._known(b)
        return PRESETS[self.preset].spec(a, self.output, k=self.terms(a), input_b=b)
