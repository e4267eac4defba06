"""Decoded operands: what the multipliers of a unit with several precisions see of each lane."""

from collections.abc import Sequence

from amaranth.hdl import Value
from amaranth.lib import data

from ..fp.unpack import Unpacked

__all__ = ["bus_layout", "lanes_of"]


def bus_layout(exponent_bits: int, widths: Sequence[int]) -> data.StructLayout:
    """Lanes ``lane0, lane1 …`` side by side, with significands (or limbs) of the given widths.

    A significand narrower than its lane lies at the top. The exponent is biased as in the widest
    format served, and 1 for zeros and subnormals.
    """
    return data.StructLayout(
        {
            f"lane{k}": data.StructLayout(
                {
                    "significand": bits,
                    "exponent": exponent_bits,
                    "sign": 1,
                    "zero": 1,
                    "inf": 1,
                    "nan": 1,
                }
            )
            for k, bits in enumerate(widths)
        }
    )


def lanes_of(bus: data.View) -> list[Unpacked]:
    """All lanes of a bus as the arithmetic takes them."""
    fields = ("sign", "exponent", "significand", "zero", "inf", "nan")
    return [
        Unpacked(**{name: Value.cast(bus[key][name]) for name in fields}) for key, _ in bus.shape()
    ]
