"""Distances and lost bits of products that are split into pieces."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..parts.align import clip
from .geometry import Geometry


def near_of(g: Geometry, reference: Value) -> Value:
    """Return E_max in as few bits as a lane needs.

    A larger value is clipped to one that still shifts every product out of the window. E_max
    is negative only if all products are zero; then the distance does not matter.

    Parameters
    ----------
    reference : Value
        E_max on the product scale.
    """
    # A larger E_max is so far above all products that each of them is shifted out anyway.
    return clip(reference[:-1], bits=(g.exponent_max + g.window + 3).bit_length())


def lowered(m: Module, near: Value, shifts: Sequence[tuple[int, Value]]) -> Value:
    """Return ``near`` plus the selected one of the shifts.

    Parameters
    ----------
    near : Value
        Result of ``near_of``.
    shifts : sequence of (int, Value)
        A constant and a select each; at most one select is set.
    """
    most = max([shift for shift, _ in shifts], default=0)
    if not most:
        return near
    added: Value = Const(0, most.bit_length())
    for shift, chosen in shifts:
        added = added | (Const(shift, len(added)) & chosen.replicate(len(added)))
    total = Signal(len(near) + 1, name=f"near{most}")
    m.d.comb += total.eq(near + added)
    return total


def distances_of(
    m: Module,
    near: Value,
    exponents: Sequence[Value],
    pieces: Mapping[int, Value],
    bits: Sequence[int],
) -> list[Value]:
    """Return each lane's distance below E_max.

    A piece lies below all higher pieces of its product, whose widths add to its distance.

    Parameters
    ----------
    near : Value
        E_max in as few bits as a lane needs.
    exponents : sequence of Value
        Exponents of the lanes.
    pieces : mapping of int to Value
        The selects of ``DotCore``.
    bits : sequence of int
        Widths of the lanes' significands.
    """
    tops: dict[tuple[int, ...], Value] = {}
    distances: list[Value] = []
    for k, exponent in enumerate(exponents):
        # Lanes k - k % n … of a group of n are the pieces of one product, the lowest first: a
        # piece lies below those after it by their widths.
        shifts = tuple(sum(bits[k + 1 : k - k % n + n]) for n in pieces)
        if shifts not in tops:
            tops[shifts] = lowered(m, near, list(zip(shifts, pieces.values(), strict=True)))
        top = tops[shifts]
        distance = Signal(len(top), name=f"distance{k}")
        m.d.comb += distance.eq(top - exponent)
        distances.append(distance)
    return distances


def first_cuts(lost: Sequence[Value], pieces: Mapping[int, Value]) -> list[Value]:
    """Return for each lane if it lost bits and no higher piece of its product did.

    Parameters
    ----------
    lost : sequence of Value
        One bit for each lane.
    pieces : mapping of int to Value
        The selects of ``DotCore``.
    """
    first: list[Value] = []
    above: Value = Const(0, 1)
    for k in reversed(range(len(lost))):
        linked = Cat(*[select for n, select in pieces.items() if (k + 1) % n]).any()
        # A product ends where k + 1 is a multiple of its number of pieces, and the chain of lost
        # bits with it.
        above = above & linked if pieces else Const(0, 1)
        first.insert(0, lost[k] & ~above)
        above = above | lost[k]
    return first
