"""Decoded operands, as the multipliers of a unit with several precisions receive them."""

from collections.abc import Sequence

from amaranth.hdl import Value
from amaranth.lib import data

from ..fp.parts.multiply import recoded_bits
from ..fp.parts.unpack import UnpackedCode


def significand_bits(widths: Sequence[int], *, recoded: bool) -> list[int]:
    """Return the bits that significands or limbs of these widths take on a bus.

    Parameters
    ----------
    widths : sequence of int
        Bits of each lane's significand or limb.
    recoded : bool
        If True, the bus carries Booth digits (``hdl.fp.parts.multiply.recode``).
    """
    return [recoded_bits(bits) if recoded else bits for bits in widths]


def bus_layout(exponent_bits: int, widths: Sequence[int]) -> data.StructLayout:
    """Return the layout of a bus of lanes ``lane0``, ``lane1``, and so on.

    A significand that is narrower than its lane lies at the top of it. The exponent has the bias of
    the unit's widest format; it is 1 for zeros and subnormal numbers.

    Parameters
    ----------
    exponent_bits : int
        Exponent bits of the widest format.
    widths : sequence of int
        Bits of each lane's significand or limb.
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


def lanes_of(bus: data.View) -> list[UnpackedCode]:
    """Return all lanes of a bus as unpacked operands."""
    fields = ("sign", "exponent", "significand", "zero", "inf", "nan")
    return [
        UnpackedCode(**{name: Value.cast(bus[key][name]) for name in fields})
        for key, _ in bus.shape()
    ]
