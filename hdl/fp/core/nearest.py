"""E_max for the distances of products, early enough that these can have registers.

Where distances and products have the same rank of registers, a shifter gets all its inputs at once
and makes few glitches. The path to the distances is the longest one then. It is short if three
exponents are compared at a time, and if C is one of them instead of a fourth level.
"""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value, signed

from ..parts.align import clip
from ..parts.unpack import UnpackedCode
from .geometry import Geometry


def has_early_distances(g: Geometry, addend: UnpackedCode | None) -> bool:
    """Return whether E_max is the largest exponent of all terms: no floor lies above them."""
    return addend is not None and (g.floor is None or g.floor_of_zero)


def largest_and_near(
    m: Module, g: Geometry, exponents: Sequence[Value], c: UnpackedCode, of_zero: Value | None
) -> tuple[Value, Value]:
    """Return the largest exponent of the products, and E_max in as few bits as a lane needs.

    Parameters
    ----------
    exponents : sequence of Value
        Exponents of the products.
    c : UnpackedCode
        The addend.
    of_zero : Value or None
        The exponent of C if it is zero, on the scale of products; None if such a C has none.
    """
    bits = (g.exponent_max + g.window + 3).bit_length()
    own = Signal(signed(g.scaled_bits), name="c_early")
    inside = Signal(bits, name="c_inside")
    scaled = c.exponent - g.offset
    m.d.comb += own.eq(scaled if of_zero is None else Mux(c.zero, of_zero, scaled))
    # A negative exponent is below those of all products that are not zero. A large one is so far
    # above them that each product is shifted out anyway.
    absent = own[-1] | c.zero if of_zero is None else own[-1]
    m.d.comb += inside.eq(clip(own[:-1], bits=bits) & (~absent).replicate(bits))
    groups = [list(exponents[i : i + 3]) for i in range(0, len(exponents), 3)]
    tops = [_largest(m, group, f"largest0_{i}") for i, group in enumerate(groups)]
    level = 1
    while len(tops) > 3:
        tops = [
            _largest(m, tops[i : i + 3], f"largest{level}_{i // 3}") for i in range(0, len(tops), 3)
        ]
        level += 1
    largest = _largest(m, tops, f"largest{level}_0")
    if level == 1 and len(groups[-1]) < 3:
        # The last group has room for C.
        near = _largest(m, [*tops[:-1], _largest(m, [*groups[-1], inside], "near_last")], "near")
    else:
        near = _largest(m, [largest, inside], "near")
    return largest, near


def _largest(m: Module, values: Sequence[Value], name: str) -> Value:
    """Return the largest of one to three values, after one level of comparisons."""
    if len(values) == 1:
        return values[0]
    result = Signal(max(map(len, values)), name=name)
    if len(values) == 2:
        m.d.comb += result.eq(Mux(values[0] > values[1], *values))
        return result
    x, y, z = values
    above = [Signal(name=f"{name}_{pair}") for pair in ("xy", "yz", "xz")]
    m.d.comb += [above[0].eq(x > y), above[1].eq(y > z), above[2].eq(x > z)]
    chosen = above[0] & above[2], ~above[0] & above[1], ~above[1] & ~above[2]
    words = [value & bit.replicate(len(value)) for value, bit in zip(values, chosen, strict=True)]
    m.d.comb += result.eq(words[0] | words[1] | words[2])
    return result
