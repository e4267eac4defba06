"""Integer addition, subtraction and shifts of a block, in two's complement."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Bits of the amount of a shift.
AMOUNT_BITS = 6
_HALF, _WORD = 16, 32


class IntegerWord(wiring.Component):
    """Two integers of 16 bits, or one of 32.

    A shift to the left is one to the right of the reversed word. The adder rounds a shift to the
    right: it adds the last bit that was shifted out. Results are those of ``golden.vector``: add,
    sub, shift_left and shift_right; they wrap.

    Members
    -------
    a, b : In(32), In(32)
        The operands. A shift has one.
    wide : In(1)
        One integer of 32 bits.
    subtract : In(1)
        a - b; else a + b.
    shift, left : In(1), In(1)
        A shift; it goes to the left.
    arithmetic, nearest : In(1), In(1)
        A shift to the right keeps the sign; it rounds to nearest, ties up.
    amount : In(6)
        Of a shift.
    d : Out(32)
        The result.

    Latency
    -------
    0 cycles.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        wide: Signal
        subtract: Signal
        shift: Signal
        left: Signal
        arithmetic: Signal
        nearest: Signal
        amount: Signal
        d: Signal

    def __init__(self) -> None:
        flags = ("wide", "subtract", "shift", "left", "arithmetic", "nearest")
        super().__init__(
            {"a": In(_WORD), "b": In(_WORD), "amount": In(AMOUNT_BITS), "d": Out(_WORD)}
            | dict.fromkeys(flags, In(1))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shifted, last = self._build_shift(m)
        rounds = self.nearest & ~self.left
        x = Mux(self.shift, shifted, self.a)
        ones = Mux(self.subtract, (1 << _WORD) - 1, 0)
        y = Mux(self.shift, 0, self.b ^ ones)
        # What is added at the lowest bit: 1 for a difference, or the bit that rounds.
        into = [Mux(self.shift, rounds & last[k], self.subtract) for k in range(2)]
        low = Signal(_HALF + 1, name="low_sum")
        high = Signal(_HALF, name="high_sum")
        m.d.comb += [
            low.eq(x[:_HALF] + y[:_HALF] + into[0]),
            high.eq(x[_HALF:] + y[_HALF:] + Mux(self.wide, low[-1], into[1])),
            self.d.eq(Cat(low[:_HALF], high)),
        ]
        return m

    def _build_shift(self, m: Module) -> tuple[Value, list[Value]]:
        """Return the shifted word, and the last bits that the two halves have lost."""
        word: Value = Mux(self.left, Cat(*reversed(list(self.a))), self.a)
        keeps = self.arithmetic & ~self.left
        fills = [keeps & Mux(self.wide, self.a[-1], self.a[_HALF - 1]), keeps & self.a[-1]]
        last: list[Value] = [Const(0, 1), Const(0, 1)]
        for level in reversed(range(AMOUNT_BITS)):
            step = 1 << level
            take = self.amount[level]
            moved = [self._bit(word, fills, i, step) for i in range(_WORD)]
            lost = [
                Mux(self.wide, word[step - 1], word[step - 1] if step <= _HALF else fills[0]),
                word[_HALF + step - 1] if step <= _HALF else fills[1],
            ]
            stage = Signal(_WORD, name=f"shift_by{step}")
            kept = [Signal(name=f"lost{k}_by{step}") for k in range(2)]
            m.d.comb += stage.eq(Mux(take, Cat(*moved), word))
            m.d.comb += [kept[k].eq(Mux(take, lost[k], last[k])) for k in range(2)]
            word, last = stage, list(kept)
        return Mux(self.left, Cat(*reversed(list(word))), word), last

    def _bit(self, word: Value, fills: list, i: int, step: int) -> Value:
        """Return the bit that a step brings to place i."""
        fill = fills[i >= _HALF]
        inside = word[i + step] if i + step < _WORD else fill
        crosses = i < _HALF <= i + step
        return Mux(self.wide, inside, fill) if crosses else inside
