"""The forms of result blocks: elements, packed elements, packed bits, an extreme with its lane."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .config import VectorConfig
from .control import Form


@dataclass(frozen=True, kw_only=True)
class ResultBlocks:
    """A result block.

    Attributes
    ----------
    data : Value
        The block.
    enable : Value
        A bit for each byte that is to be written.
    flags : Value
        Results of comparisons, a bit for each lane.
    """

    data: Value
    enable: Value
    flags: Value


def first_set(m: Module, bits: Value) -> Value:
    """Return the number of the lowest bit that is set; undefined if none is."""
    number: list[Value] = []
    values = [bits[i] for i in range(len(bits))]
    # Bit k of the number is known from the halves of the groups of 2**(k + 1) bits.
    found = values
    groups: list[list[Value]] = [[] for _ in values]
    while len(found) > 1:
        higher, numbers = [], []
        for i in range(0, len(found), 2):
            any_of = Signal(name=f"any{len(groups[i])}_{i // 2}")
            m.d.comb += any_of.eq(found[i] | found[i + 1])
            higher.append(any_of)
            both = zip(groups[i], groups[i + 1], strict=True)
            chosen = [Mux(found[i], x, y) for x, y in both]
            numbers.append([*chosen, ~found[i]])
        found, groups = higher, numbers
    number = groups[0]
    return Cat(*number)


def build_results(
    m: Module,
    config: VectorConfig,
    *,
    words: Value,
    flags: Value,
    form: Value,
    wide: Value,
    wide_result: Value,
    mask: Value,
) -> ResultBlocks:
    """Return the result block of the beat in the last rank.

    Parameters
    ----------
    words : Value
        Results of the slices, 32 bits each.
    flags : Value
        Flags of the slices, 2 bits each.
    form, wide, wide_result : Value
        Properties of the beat, see ``control``.
    mask : Value
        Enabled lanes of the beat, or enabled elements of a reduction's result.
    """
    slices, lanes = config.slices, config.lanes
    by_lane = Signal(lanes, name="flags_by_lane")
    m.d.comb += by_lane.eq(Mux(wide, Cat(*(flags[2 * i + 1] for i in range(slices))), flags))
    data, wanted = (
        words,
        Mux(
            wide_result,
            Cat(*(mask[i].replicate(4) for i in range(slices))),
            Cat(*(mask[i].replicate(2) for i in range(lanes))),
        ),
    )
    total = config.block_bits

    def choose(which: Form, block: Value, enable: Value) -> None:
        """Replace the low bits of the block, and all enable bits, for one form."""
        nonlocal data, wanted
        now = Signal(name=f"is_{which.name.lower()}")
        m.d.comb += now.eq(form == which.value)
        data = Cat(Mux(now, block, data[: len(block)]), data[len(block) : total])
        wanted = Mux(now, enable, wanted)

    if "convert" in config.groups:
        halves = Cat(*(words[32 * i : 32 * i + 16] for i in range(slices)))
        choose(Form.HALVES, halves, Cat(*(mask[i].replicate(2) for i in range(slices))))
        choose(Form.BYTES, Cat(*(words[16 * i : 16 * i + 8] for i in range(lanes))), mask)
    if "compare" in config.groups:
        size = -(-lanes // 8)
        half_size = -(-slices // 8)
        every = Mux(wide, (1 << half_size) - 1, (1 << size) - 1)
        choose(Form.BITS, Cat(by_lane, Const(0, -lanes % 8)), every)
        if "reduce" in config.groups:
            index = first_set(m, by_lane & mask)
            pair = Signal(64, name="value_and_lane")
            padded = Cat(index, Const(0, 32))
            m.d.comb += pair.eq(
                Mux(wide, Cat(words[:32], padded[:32]), Cat(words[:16], padded[:16]))
            )
            some = mask.any()
            choose(Form.INDEXED, pair, Mux(wide, some.replicate(8), some.replicate(4)))
    return ResultBlocks(data=data, enable=wanted, flags=by_lane)
