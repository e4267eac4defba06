"""Decoded operands: what the multipliers of a unit with several precisions see of each lane."""

from dataclasses import dataclass

from amaranth.hdl import Value
from amaranth.lib import data

from ..fp.unpack import Unpacked

__all__ = ["LaneFormat"]


@dataclass(frozen=True, kw_only=True)
class LaneFormat:
    """One format that holds a lane of every precision.

    Attributes
    ----------
    exponent_bits : int
        Of the biased exponent; the bias is that of the widest format served.
    significand_bits : int
        w, the width of the multipliers. Narrower significands lie at the top.
    """

    exponent_bits: int
    significand_bits: int

    @property
    def layout(self) -> data.StructLayout:
        """A lane of an operand bus."""
        return data.StructLayout(
            {
                "significand": self.significand_bits,
                "exponent": self.exponent_bits,
                "sign": 1,
                "zero": 1,
                "inf": 1,
                "nan": 1,
            }
        )

    def view(self, lane: data.View) -> Unpacked:
        """The lane as the arithmetic takes it."""
        fields = ("sign", "exponent", "significand", "zero", "inf", "nan")
        return Unpacked(**{name: Value.cast(lane[name]) for name in fields})
