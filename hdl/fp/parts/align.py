"""Alignment: the largest exponent, and a right shifter that truncates at the window's end."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


def clip(value: Value, *, bits: int) -> Value:
    """Return an unsigned value in ``bits`` bits; a larger value becomes all ones."""
    if len(value) <= bits:
        return value
    return value[:bits] | value[bits:].any().replicate(bits)


def shift_right(
    m: Module,
    word: Value,
    distance: Value,
    *,
    name: str,
    fill: Value | None = None,
    sticky: bool,
    clear: tuple[int, Value] | None = None,
) -> tuple[Value, Value]:
    """Return ``word >> distance`` for any distance, and the OR of all lost bits.

    Parameters
    ----------
    word : Value
        The word to shift.
    distance : Value
        Number of positions (unsigned).
    name : str
        First part of the new signals' names.
    fill : Value, optional
        The bit that is shifted in at the top (default 0).
    sticky : bool
        If True, compute the OR of all bits that are shifted out.
    clear : (int, Value), optional
        A number of bits, and a select: if it is set, that many bits at the bottom of the result
        are zero.

    Returns
    -------
    shifted : Value
        The shifted word.
    lost : Value
        The OR of the bits that were shifted out (constant 0 without ``sticky``).

    Notes
    -----
    The small steps come first, because the word is still narrow then and the columns that it has
    not reached need no multiplexer. The last two steps are exchanged. The last one is an AND-OR
    with two separate selects, both off if the distance exceeds the shifter's range, so that
    clearing the word costs nothing. For a 22-bit product in a 26-bit window this mapped to 178 µm²;
    large steps first and a clipped distance mapped to 226 µm²
    (docs/decisions/0002-dot-product-datapath.md).
    """
    width = len(word)
    steps = min((width - 1).bit_length(), len(distance))
    beyond = Signal(name=f"{name}_beyond")
    m.d.comb += beyond.eq(distance[steps:].any())
    order = list(range(steps))
    if steps > 2:
        # Exchange the last two steps, see Notes.
        order[-2:] = order[:-3:-1]
    # A distance beyond the range of all steps shifts every bit out.
    lost: list[Value] = [beyond & word.any()] if sticky and len(distance) > steps else []
    for position, bit in enumerate(order):
        step = 1 << bit
        moved = word[step:]
        moved = Cat(moved, (Const(0, 1) if fill is None else fill).replicate(step))
        if sticky:
            lost.append(distance[bit] & word[:step].any())
        stage = Signal(width, name=f"{name}_by{step}")
        if position < len(order) - 1:
            m.d.comb += stage.eq(Mux(distance[bit], moved, word))
        else:
            # Both selects are 0 beyond the range, which clears the word.
            keep = Signal(name=f"{name}_keep")
            move = Signal(name=f"{name}_move")
            m.d.comb += [keep.eq(~(distance[bit] | beyond)), move.eq(distance[bit] & ~beyond)]
            merged = (moved & _mask(move, width, clear)) | (word & _mask(keep, width, clear))
            if fill is not None:
                # Beyond the range a negative word is all ones instead of zero.
                merged = merged | _mask(fill & beyond, width, clear)
            m.d.comb += stage.eq(merged)
        word = stage
    return word, Cat(*lost).any() if lost else Const(0, 1)


def _mask(chosen: Value, width: int, clear: tuple[int, Value] | None) -> Value:
    """Return ``chosen`` in every bit, except the lowest bits if they are to be cleared."""
    if clear is None:
        return chosen.replicate(width)
    bits, cleared = clear
    return Cat((chosen & ~cleared).replicate(bits), chosen.replicate(width - bits))


def maximum(m: Module, values: Sequence[Value], *, name: str) -> Value:
    """Return the largest of unsigned values, from a balanced tree of two-input comparisons.

    Parameters
    ----------
    values : sequence of Value
        Unsigned values; their widths may differ.
    name : str
        First part of the new signals' names.
    """
    level, values = 0, list(values)
    while len(values) > 1:
        following: list[Value] = []
        for index in range(0, len(values) - 1, 2):
            x, y = values[index], values[index + 1]
            larger = Signal(max(len(x), len(y)), name=f"{name}{level}_{index // 2}")
            m.d.comb += larger.eq(Mux(x > y, x, y))
            following.append(larger)
        if len(values) % 2:
            following.append(values[-1])
        values, level = following, level + 1
    return values[0]
