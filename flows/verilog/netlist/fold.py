"""Rules that replace an operator by a simpler value."""

from vitruvian.flows.verilog.netlist.rtlil import Chunk, RtlilCell, Sig, cut, joined, width_of

BITWISE = ("$and", "$or", "$xor")


def constant(value: int, width: int) -> Sig:
    """Return a constant."""
    return (Chunk("", value & (1 << width) - 1, width),) if width else ()


def ones(width: int) -> int:
    """Return the number whose lowest ``width`` bits are set."""
    return (1 << width) - 1


def is_constant(sig: Sig) -> bool:
    """Return whether a value has only constant bits."""
    return all(not chunk.name for chunk in sig)


def number(sig: Sig) -> int:
    """Return a constant as an unsigned number."""
    total = shift = 0
    for _, value, width in sig:
        total |= value << shift
        shift += width
    return total


def extended(sig: Sig, width: int, signed: bool) -> Sig:
    """Return a value with exactly ``width`` bits: cut off, or extended by zeros or its sign."""
    have = width_of(sig)
    if have >= width:
        return cut(sig, 0, width)
    sign = cut(sig, have - 1, 1) if signed and have else ()
    more = sign * (width - have) if sign else constant(0, width - have)
    return joined((*sig, *more))


def folded(cell: RtlilCell, width: int) -> Sig | None:
    """Return the value of a combinational operator if no operator is needed for it, or None.

    Parameters
    ----------
    cell : RtlilCell
        An operator whose operands are in its ports.
    width : int
        Bits of its result.
    """
    kind, a = cell.kind, cell.ports.get("A", ())
    b = cell.ports.get("B", ())
    signed = bool(cell.numbers.get("A_SIGNED"))
    if kind == "$mux":
        return _mux(cell.ports["S"], a, b)
    if kind == "$not":
        return constant(~number(extended(a, width, signed)), width) if is_constant(a) else None
    if kind.startswith("$reduce"):
        return _reduction(kind, a, width)
    if kind in BITWISE:
        return _bitwise(kind, extended(a, width, signed), extended(b, width, signed), width)
    if kind in ("$add", "$sub") and is_constant(b) and not number(b):
        return extended(a, width, signed)
    if kind == "$add" and is_constant(a) and not number(a):
        return extended(b, width, signed)
    if kind == "$mul":
        return _product(a, b, signed, width)
    if kind in ("$eq", "$ne", "$lt", "$le", "$gt", "$ge"):
        return _comparison(kind, a, b, signed, width)
    if kind in ("$shl", "$shr", "$sshr", "$shift") and is_constant(b) and width_of(b) < 24:
        return _shift(kind, a, number(b), signed, width)
    return None


def _product(a: Sig, b: Sig, signed: bool, width: int) -> Sig | None:
    if is_constant(a):
        a, b = b, a
    value = number(b)
    negative = signed and b and value >> width_of(b) - 1
    if not is_constant(b) or value & (value - 1) or negative:
        return None
    if not value:
        return constant(0, width)
    # A product with a power of two is a shift, which needs no cells.
    return extended((*constant(0, value.bit_length() - 1), *a), width, signed)


def _mux(select: Sig, zero: Sig, one: Sig) -> Sig | None:
    if zero == one:
        return zero
    if is_constant(select):
        return one if number(select) else zero
    if is_constant(zero) and is_constant(one) and width_of(one) == 1 and number(one):
        return select
    return None


def _reduction(kind: str, a: Sig, width: int) -> Sig | None:
    if width_of(a) == 1:
        return extended(a, width, False)
    if not is_constant(a):
        values = [chunk for chunk in a if not chunk.name]
        if kind in ("$reduce_or", "$reduce_bool") and any(chunk.low for chunk in values):
            return constant(1, width)
        # One constant bit may decide, whatever the others are.
        if kind == "$reduce_and" and any(c.low != ones(c.width) for c in values):
            return constant(0, width)
        return None
    value, bits = number(a), width_of(a)
    if kind == "$reduce_xor":
        return constant(value.bit_count() & 1, width)
    return constant(value == ones(bits) if kind == "$reduce_and" else value != 0, width)


def _bitwise(kind: str, a: Sig, b: Sig, width: int) -> Sig | None:
    if a == b:
        return constant(0, width) if kind == "$xor" else a
    if is_constant(a):
        a, b = b, a
    if not is_constant(b):
        return None
    mask = number(b)
    if kind == "$xor":
        return a if not mask else None
    bits: list[Chunk] = []
    for index in range(width):
        bit = mask >> index & 1
        # 0 and x is 0, and 1 or x is 1; other bits stay as they are.
        absorbs = bit == (kind == "$or")
        bits += constant(bit, 1) if absorbs else cut(a, index, 1)
    return joined(tuple(bits))


def _comparison(kind: str, a: Sig, b: Sig, signed: bool, width: int) -> Sig | None:
    size = max(width_of(a), width_of(b))
    if is_constant(a) and is_constant(b):
        # With its top bit inverted, a signed number has the place of an unsigned one.
        flip = signed << size - 1 if size else 0
        x, y = (number(extended(sig, size, signed)) ^ flip for sig in (a, b))
        results = {"$eq": x == y, "$ne": x != y, "$lt": x < y}
        results |= {"$le": x <= y, "$gt": x > y, "$ge": x >= y}
        return constant(results[kind], width)
    if not is_constant(b) or signed:
        return None
    value, bits = number(b), width_of(a)
    if bits == 1 and size == 1 and (kind, value) in (("$eq", 1), ("$ne", 0)):
        return extended(a, width, False)
    # Comparisons that are the same for every value of ``a``, as its bits cannot reach the constant.
    known = {
        "$lt": (value == 0, value > ones(bits), 0, 1),
        "$ge": (value == 0, value > ones(bits), 1, 0),
        "$gt": (value >= ones(bits), False, 0, 1),
        "$le": (value >= ones(bits), False, 1, 0),
    }.get(kind)
    if known is None:
        return None
    first, second, one, two = known
    return constant(one, width) if first else constant(two, width) if second else None


def _shift(kind: str, a: Sig, by: int, signed: bool, width: int) -> Sig:
    if kind == "$shl":
        return cut(joined((*constant(0, by), *extended(a, width, signed))), 0, width)
    size = max(width_of(a), width) + by
    fill = signed and kind in ("$sshr", "$shift", "$shr")
    if kind == "$shr":
        # The operand is extended to the width of the result, and then zeros enter.
        a = extended(a, max(width_of(a), width), signed)
        fill = False
    return cut(extended(a, size, fill), by, width)
