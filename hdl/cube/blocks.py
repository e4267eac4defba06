"""Matrix units of blocks with shared scales: their parameters, and the arithmetic of an element."""

from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import data

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.spec import DotSpec

from ..fp.blocks import RULES, block_spec
from ..fp.units import unit_of
from .checks import check_precisions
from .ports import Beat
from .tile import TileConfig

#: Bits of a scale on the bus.
SCALE_BITS = 8


@dataclass(frozen=True, kw_only=True, repr=False)
class BlockUnitConfig(TileConfig):
    """The parameters of a matrix unit whose operands have block scales.

    A row of A, and a column of B, has the codes of its operands in the low bits, in rising k, and
    above them the scales of its blocks. FP4 codes have 4 bits in the rules of groups, and 8 bits in
    ``mxf8f6f4``, as all formats there. C and D are FP32.

    Parameters
    ----------
    m, n, k, dataflow, pipeline, slots, multiplier, slot_memory, buffered
        As in ``TileConfig``.
    precisions : sequence of str
        One format, that of A and B.
    rule : str
        Key of ``hdl.fp.blocks.RULES``.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is outside its range, or if the rule does not allow the format or K.
    """

    m: int
    n: int
    k: int
    precisions: tuple[str, ...]
    rule: str
    dataflow: str = "broadcast"
    pipeline: int = 3
    slots: int | None = None
    multiplier: str = "booth"
    slot_memory: bool = False
    buffered: bool = False
    #: The rules are those of this machine.
    preset: str = field(init=False, default="b200", repr=False)

    def __post_init__(self) -> None:
        one_of("rule", self.rule, RULES)
        self.check_tile()
        check_precisions(self.precisions, self.k, self.output)
        if len(self.precisions) != 1:
            raise ValueError(
                f"precisions must be one format with block scales, not {self.precisions!r}"
            )
        object.__setattr__(self, "precisions", tuple(self.precisions))
        _ = self.float_specs  # raises ValueError if the rule does not allow the format or K

    @property
    def block_scales(self) -> bool:
        """True, because the scales stand above the codes."""
        return True

    @property
    def spec_of_element(self) -> DotSpec:
        """The arithmetic of an element."""
        return self.float_specs[self.precisions[0]]

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """The arithmetic (``spec``) of the format."""
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

    def connect(self, m: Module, beat: Beat) -> Value:
        """Connect the codes and the scales, and return the result."""
        codes = self.config.code_bits
        for side, word in (("a", beat.a), ("b", beat.b)):
            m.d.comb += [
                Value.cast(getattr(self.dot, side)).eq(word[:codes]),
                Value.cast(getattr(self.dot, f"scale_{side}")).eq(word[codes:]),
            ]
        return self.dot.d
