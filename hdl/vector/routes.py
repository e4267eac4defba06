"""The routes of operands to the slices, and the enabled elements of a reduction's result."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.golden.fp.formats import FORMATS

from .config import VectorConfig
from .decode import DecodedCommand

_FP16, _FP32 = FORMATS["fp16"], FORMATS["fp32"]


@dataclass(frozen=True, kw_only=True)
class RoutedOperands:
    """The operands of all slices, ``slices`` words of 32 bits each."""

    a: Value
    b: Value


def by_halves(mask: Value, wide: Value, config: VectorConfig) -> Value:
    """Return a mask with a bit for each lane as one with a bit for each 16 bits of a block."""
    doubled = Cat(*(mask[i].replicate(2) for i in range(config.slices)))
    return Mux(wide, doubled, mask)


def any_enabled(m: Module, mask: Value, level: Value, *, levels: int) -> Value:
    """Return the elements of a reduction's result that have an enabled lane.

    Parameters
    ----------
    mask : Value
        A bit for each lane.
    level : Value
        Number of levels of the tree up to the result.
    levels : int
        The largest number of levels.
    """
    result: Value = Const(0, len(mask))
    for number in range(1, levels + 1):
        halved = Signal(max(len(mask) >> 1, 1), name=f"enabled{number}")
        m.d.comb += halved.eq(Cat(*(mask[2 * i] | mask[2 * i + 1] for i in range(len(mask) // 2))))
        mask = halved
        result = result | (mask & (level == number).replicate(len(mask)))
    return result


def route(
    m: Module,
    config: VectorConfig,
    decoded: DecodedCommand,
    *,
    a: Value,
    b: Value,
    mask: Value,
    back: Value,
    again: Value,
    match: Value,
) -> RoutedOperands:
    """Return the operands of all slices.

    In a level of a reduction, element i is combined from the elements 2i and 2i + 1 of the block
    or, after the first level, of the previous level's results. A disabled lane counts as an
    element that loses: -0 in sums, a NaN in extremes.

    Parameters
    ----------
    decoded : DecodedCommand
        The command.
    a, b : Value
        Blocks from the streams.
    mask : Value
        A bit for each lane.
    back : Value
        The results of the slices.
    again : Value
        One bit; a level of a reduction after the first one.
    match : Value
        One bit; look for the lane of the winner, which is element 0 of ``back``.
    """
    wide = decoded.control.wide
    halves = [a[16 * h : 16 * h + 16] for h in range(config.lanes)]
    direct_b = Mux(decoded.from_scalar, decoded.scalar.replicate(config.slices), b)
    direct_a = a
    if "convert" in config.groups:
        expanded = Cat(*(Cat(halves[i], Const(0, 16)) for i in range(config.slices)))
        direct_a = Mux(decoded.expands, expanded, a)
    if "reduce" not in config.groups:
        return RoutedOperands(a=direct_a, b=direct_b)

    enabled = by_halves(mask, wide, config)
    fp16 = Mux(decoded.sums, _FP16.negative_zero, _FP16.canonical_nan)
    fp32 = Mux(decoded.sums, _FP32.negative_zero, _FP32.canonical_nan)
    loser = Signal(32, name="loser")
    m.d.comb += loser.eq(Mux(wide, fp32, Cat(fp16[:16], fp16[:16])))
    fill = [loser[:16], loser[16:]]
    tree = Signal(config.block_bits, name="tree")
    m.d.comb += tree.eq(
        Mux(again, back, Cat(*(Mux(enabled[h], x, fill[h % 2]) for h, x in enumerate(halves))))
    )
    left, right = [], []
    for i in range(config.slices // 2):
        w = [tree[16 * h : 16 * h + 16] for h in range(4 * i, 4 * i + 4)]
        left += [w[0], Mux(wide, w[1], w[2])]
        right += [Mux(wide, w[2], w[1]), w[3]]
    half = config.block_bits // 2
    folds = decoded.reduces & ~match
    winner = Mux(wide, back[:32], Cat(back[:16], back[:16])).replicate(config.slices)
    return RoutedOperands(
        a=Cat(Mux(folds, Cat(*left), direct_a[:half]), direct_a[half:]),
        b=Mux(match, winner, Cat(Mux(folds, Cat(*right), direct_b[:half]), direct_b[half:])),
    )
