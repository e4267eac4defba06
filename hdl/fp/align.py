"""Alignment: a logarithmic right shifter that cuts at the window's end, with an optional sticky bit."""

from amaranth.hdl import Cat, Const, Module, Signal, Value

__all__ = ["saturate_shift", "shift_right"]


def saturate_shift(distance: Value, *, bits: int) -> Value:
    """A distance as ``bits`` bits; anything larger reads as all ones (which must shift everything out)."""
    if len(distance) <= bits:
        return distance
    return distance[:bits] | distance[bits:].any().replicate(bits)


def shift_right(
    m: Module, word: Value, distance: Value, *, name: str, fill: Value | None = None, sticky: bool
) -> tuple[Value, Value]:
    """``word >> distance``, large steps first (most of their positions need an AND, not a multiplexer).

    Parameters
    ----------
    fill : Value, optional
        What is shifted in at the top (default 0).
    sticky : bool
        Whether the OR of all bits shifted out is wanted.

    Returns
    -------
    shifted, lost : the word, and the OR of the cut bits (constant 0 if not wanted).
    """
    width = len(word)
    fill_bit = Const(0, 1) if fill is None else fill
    lost: list[Value] = []
    for bit in reversed(range(len(distance))):
        step = min(1 << bit, width)
        moved = Cat(word[step:], fill_bit.replicate(step))
        if sticky:
            lost.append(distance[bit] & word[:step].any())
        stage = Signal(width, name=f"{name}_by{1 << bit}")
        select = distance[bit].replicate(width)
        m.d.comb += stage.eq((moved & select) | (word & ~select))
        word = stage
    return word, Cat(*lost).any() if sticky else Const(0, 1)
