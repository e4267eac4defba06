"""Alignment: the largest exponent, and a right shifter that cuts at the end of the window."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["clip", "maximum", "shift_right"]


def clip(value: Value, *, bits: int) -> Value:
    """An unsigned value as ``bits`` bits; anything larger reads as all ones."""
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
    """``word >> distance`` for any distance, and whether a one was cut off.

    Parameters
    ----------
    fill : Value, optional
        What is shifted in at the top (default 0).
    sticky : bool
        Whether the OR of all bits shifted out is wanted.
    clear : (int, Value), optional
        That many bits at the bottom of the result read as zero where the value is set.

    Returns
    -------
    shifted, lost : the word, and the OR of the cut bits (constant 0 if not wanted).

    Notes
    -----
    Small steps come first: the word is narrow then, and the columns it has not reached need no
    multiplexer. The last two steps are exchanged and the last one is an AND-OR with two separate
    selects, both off when the distance passes the shifter's range: clearing the word costs nothing.
    For a 22-bit product in a 26-bit window this mapped to 178 µm², large steps first and a clipped
    distance to 226 (docs/decisions/0002-dot-product-datapath.md).
    """
    width = len(word)
    steps = min((width - 1).bit_length(), len(distance))
    beyond = Signal(name=f"{name}_beyond")
    m.d.comb += beyond.eq(distance[steps:].any())
    order = list(range(steps))
    if steps > 2:
        order[-2:] = order[:-3:-1]
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
            keep = Signal(name=f"{name}_keep")
            move = Signal(name=f"{name}_move")
            m.d.comb += [keep.eq(~(distance[bit] | beyond)), move.eq(distance[bit] & ~beyond)]
            merged = (moved & _mask(move, width, clear)) | (word & _mask(keep, width, clear))
            if fill is not None:
                merged = merged | _mask(fill & beyond, width, clear)
            m.d.comb += stage.eq(merged)
        word = stage
    return word, Cat(*lost).any() if lost else Const(0, 1)


def _mask(chosen: Value, width: int, clear: tuple[int, Value] | None) -> Value:
    """Ones where chosen; the lowest bits not where they are to be cleared."""
    if clear is None:
        return chosen.replicate(width)
    bits, cleared = clear
    return Cat((chosen & ~cleared).replicate(bits), chosen.replicate(width - bits))


def maximum(m: Module, values: Sequence[Value], *, name: str) -> Value:
    """The largest of unsigned values, a balanced tree of two-input comparisons."""
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
