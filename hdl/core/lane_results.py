"""Results of unit V: those that wait, and blocks that are shorter than the operands."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from vitruvian.golden.core.encoding import ORDERS
from vitruvian.golden.fp.formats import FORMATS

from .config import CoreConfig
from .ports import BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, bits


def holds_results(config: CoreConfig) -> bool:
    """Return whether results wait in a register; it takes one in every second cycle at most."""
    return config.vector.passes > 1


def held(m: Module, results: Any) -> SimpleNamespace:
    """Return a stream that keeps each result in a register, so that it comes a cycle later.

    Grants of UB do not reach the vector unit in their cycle.
    """
    full, kept = Signal(name="result_held"), Signal.like(results.payload, name="result_kept")
    out = SimpleNamespace(valid=full, ready=Signal(name="result_leaves"), payload=kept)
    m.d.comb += results.ready.eq(~full)
    with m.If(~full):
        m.d.sync += [full.eq(results.valid), kept.eq(results.payload)]
    with m.Elif(out.ready):
        m.d.sync += full.eq(0)
    return out


def shrunk(m: Module, s: Any, blocks: int, j: int, result: Signal, enable: Signal) -> None:
    """Take results with half as many bytes as the operands: half of a block, or of a beat."""
    o, relu = s.out.payload, s.now.relu
    count = BLOCK_BITS // 32 if blocks == 1 else BLOCK_BITS // 16
    low = BLOCK_BITS * j
    halves = [o.data[low + 16 * i : low + 16 * i + 16] for i in range(count)]
    block = Cat(*(_positive(x, relu) for x in halves))
    if blocks == 1:
        half = BLOCK_BYTES // 2
        own = o.enable[:half]
        # The place is the lower or the upper half of a block.
        upper = s.done.target[PLACE_BITS - 1].replicate(half)
        m.d.comb += [result.eq(block.replicate(2)), enable.eq(Cat(own & ~upper, own & upper))]
    elif j < blocks // 2:
        m.d.comb += result.eq(block)
    else:
        m.d.comb += enable.eq(0)


def reduced(m: Module, s: Any, blocks: int, result: Signal, enable: Signal) -> None:
    """Repeat the elements in the block, and enable them at their place."""
    now, done, o, per = s.now, s.done, s.out.payload, blocks
    low = done.target[:PLACE_BITS]
    value = Mux(now.wide, o.data[:32], o.data[:16])
    index = Signal(32, name="winning_lane")
    lane = Mux(now.wide, o.data[32:40], o.data[16:24])
    if len(s.partial) == 1:
        m.d.comb += index.eq(lane)
    else:
        # The lane in its beat, and the number of the beat.
        winner = lane[: bits(len(s.partial))]
        step = bits(8 * per)
        m.d.comb += index.eq(
            s.partial_lane[winner] + Mux(now.wide, winner << step, winner << step + 1)
        )
    # A sum, or an extreme for each block.
    size = 16 * per
    several = o.data[:size].replicate(BLOCK_BITS // size)
    wide = o.data[: 2 * size].replicate(max(BLOCK_BITS // (2 * size), 1))
    m.d.comb += [
        result.eq(Mux(now.wide, wide[:BLOCK_BITS], several)),
        enable.eq((o.enable << low)[:BLOCK_BYTES]),
    ]
    with m.If(now.indexed):
        pair, count = _pair(m, now, value, index)
        on = Mux(o.enable[0], (1 << count) - 1, 0)
        m.d.comb += [
            result.eq(pair.replicate(BLOCK_BITS // 64)),
            enable.eq((on << low)[:BLOCK_BYTES]),
        ]


def _pair(m: Module, now: Any, value: Value, index: Value) -> tuple[Signal, Signal]:
    """Return an extreme and its lane in their order, repeated to 64 bits, and their bytes."""
    pair = Signal(64, name="pair")
    count = Signal(4, name="pair_bytes")
    single = Mux(now.wide, value, Cat(value[:16], value[:16]))
    size = Mux(now.wide, 4, 2)
    m.d.comb += [pair.eq(Cat(single, single)), count.eq(size)]
    with m.Switch(now.order):
        with m.Case(ORDERS.index("value_index"), ORDERS.index("index_value")):
            swaps = now.order == ORDERS.index("index_value")
            a, b = Mux(swaps, index, value), Mux(swaps, value, index)
            halves = Cat(a[:16], b[:16])
            m.d.comb += [
                pair.eq(Mux(now.wide, Cat(a[:32], b[:32]), Cat(halves, halves))),
                count.eq(size << 1),
            ]
        with m.Case(ORDERS.index("index")):
            m.d.comb += [pair.eq(Cat(index, index)), count.eq(4)]
    return pair, count


def _positive(element: Value, relu: Value) -> Value:
    """Return an FP16 element, or +0 with ``relu`` if it is negative, -0 or a NaN."""
    lost = element[15] | (element == FORMATS["fp16"].canonical_nan)
    return Mux(relu & lost, 0, element)[:16]
