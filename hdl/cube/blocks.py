"""Matrix units of blocks with shared scales: their parameters, and the arithmetic of an element."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Value
from amaranth.lib import data

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.spec import DotSpec

from ..fp.blocks import RULES, block_spec
from ..fp.units import unit_of
from .config import MatrixUnitConfig

if TYPE_CHECKING:
    from .datapath import Beat

#: Bits of a scale on the bus.
SCALE_BITS = 8
#: The parameters of which a unit with block scales has only the default.
_FIXED: dict[str, object] = {
    "preset": "b200",
    "output": "fp32",
    "operations": ("mma",),
    "assignment": "element",
    "sparsity": False,
    "fast": False,
    "saturate": False,
    "window": None,
    "multiplier_bits": None,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class BlockUnitConfig(MatrixUnitConfig):
    """The parameters of a matrix unit whose operands have block scales.

    A row of A, and a column of B, has the codes of its operands in the low bits, in rising k, and
    above them the scales of its blocks. FP4 codes have 4 bits in the rules of groups, and 8 bits in
    ``mxf8f6f4``, as all formats there.

    Parameters
    ----------
    rule : str
        Key of ``hdl.fp.blocks.RULES``.
    preset : str
        Only ``b200``.
    **others
        As in ``MatrixUnitConfig``, but there is one precision, the format of A and B, the output is
        ``fp32``, and the window, the multipliers' width, semirings, sparsity,
        ``saturate``, ``fast`` and every assignment but ``element`` do not exist.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the rule does not allow the format or K.
    """

    rule: str
    preset: str = "b200"

    def __post_init__(self):
        one_of("rule", self.rule, RULES)
        super().__post_init__()

    def _check_combination(self) -> None:
        for name, value in _FIXED.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} must be {value!r} with block scales, not {getattr(self, name)!r}"
                )
        if len(self.precisions) != 1:
            raise ValueError(
                f"precisions must be one format with block scales, not {self.precisions!r}"
            )
        super()._check_combination()

    @property
    def spec_of_element(self) -> DotSpec:
        """The arithmetic of an element."""
        return self.float_specs[self.precisions[0]]

    @property
    def _plain_specs(self) -> dict[str, DotSpec]:
        return {p: block_spec(self.rule, p, k=self.terms(p)) for p in self.precisions}

    def operand_bits(self, precision: str) -> int:
        """Return the bits of one operand on the bus."""
        return 4 if RULES[self.rule].groups else super().operand_bits(precision)

    @property
    def code_bits(self) -> int:
        """Bits of the codes of a row of A, which are below its scales."""
        return super().bus_bits

    @property
    def bus_bits(self) -> int:
        """Bits of a row of A, and of a column of B, with the scales."""
        spec = self.spec_of_element
        assert spec.scales is not None
        return self.code_bits + SCALE_BITS * (spec.k // spec.scales.block)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations per cycle."""
        return self.m * self.n * self.terms(self.precisions[0])


class BlockDatapath:
    """Sums of products of codes with block scales."""

    def __init__(self, config: BlockUnitConfig):
        spec = config.spec_of_element
        self.config = config
        self.dot: Any = unit_of(spec)(
            spec=spec, pipeline=config.pipeline, multiplier=config.multiplier
        )

    def addend(self, start: Value, control: data.View) -> Value:
        """Return C of the dot product: the slot's value or zero."""
        return start

    def connect(self, m: Module, beat: "Beat") -> Value:
        """Connect the codes and the scales, and return the result."""
        codes = self.config.code_bits
        for side, word in (("a", beat.a), ("b", beat.b)):
            m.d.comb += [
                Value.cast(getattr(self.dot, side)).eq(word[:codes]),
                Value.cast(getattr(self.dot, f"scale_{side}")).eq(word[codes:]),
            ]
        return self.dot.d
