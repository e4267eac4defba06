"""The output-stationary core: products of columns with a vector, reduced column by column."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_type

from .config import OSConfig, Plus
from .operators import ProcessingElement, Reduction, identity_of


@dataclass(frozen=True)
class _Rank:
    """The registers behind a stage: a value in each lane, and the marks of the beat."""

    valid: Value
    values: list[Signal]
    some: Signal  # the lane has at least one element
    last: Signal
    plus: Any  # a signal of the type Plus


class OSCore(wiring.Component):
    """Output-stationary core, bit-exact with ``golden.sparse.cores.os_columns``.

    A beat carries any number of columns, or a part of one. Its products go through an adder tree
    with forwarding: the node between two blocks of lanes joins the column that is open at the end
    of the left block with its first part in the right block, and passes all other columns on. So
    N − 1 reductions suffice for every division of N lanes into columns. A last reduction adds the
    beats of a column that is longer than a beat.

    Members
    -------
    i : In(stream.Signature(config.beat))
        Beats of elements with the operators.
    o : Out(stream.Signature(config.columns))
        Reduced columns, one item for each beat with at least one mark. A column is in the lane of
        its mark.

    Latency
    -------
    ``latency = log2(config.lanes) + 2`` cycles, with one beat per cycle. All ranks stop while ``o``
    waits.

    Raises
    ------
    TypeError
        If ``config`` is no ``OSConfig``.

    References
    ----------
    Zhang 2024, §4.4.3, which names the forwarding adder tree of SIGMA. That tree also has N − 1
    nodes, but its wiring is not that of this one.
    """

    #: Sub-components that tools may build once for all lanes.
    shared = (ProcessingElement, Reduction)

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: OSConfig):
        check_type("config", config, OSConfig)
        self.config = config
        # One rank for the products, one for each level of the tree, and one for the columns.
        self.latency = config.lanes.bit_length() - 1 + 2
        super().__init__(
            {
                "i": In(stream.Signature(config.beat)),
                "o": Out(stream.Signature(config.columns)),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived core has in addition."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._move = move = Signal()
        m.d.comb += [move.eq(~self.o.valid | self.o.ready), self.i.ready.eq(move)]
        rank = self._build_products(m)
        width = 1
        while width < self.config.lanes:
            rank = self._build_level(m, rank, width)
            width *= 2
        self._build_columns(m, rank)
        return m

    def _register(
        self, m: Module, name: str, before: _Rank, values: list[Value], some: Value
    ) -> _Rank:
        """Return a rank of registers behind new values of each lane."""
        n, bits = self.config.lanes, self.config.number.storage_bits
        after = _Rank(
            Signal(name=f"{name}_valid"),
            [Signal(bits, name=f"{name}_value_{k}", reset_less=True) for k in range(n)],
            Signal(n, name=f"{name}_some", reset_less=True),
            Signal(n, name=f"{name}_last", reset_less=True),
            Signal(Plus, name=f"{name}_plus", reset_less=True),
        )
        with m.If(self._move):
            m.d.sync += [
                after.valid.eq(before.valid),
                *(to.eq(value) for to, value in zip(after.values, values, strict=True)),
                after.some.eq(some),
                after.last.eq(before.last),
                after.plus.eq(before.plus),
            ]
        return after

    def _build_products(self, m: Module) -> _Rank:
        beat = self.i.payload
        products: list[Value] = []
        for k in range(self.config.lanes):
            element = ProcessingElement(
                format=self.config.format, multiplier=self.config.multiplier
            )
            m.submodules[f"element_{k}"] = element
            m.d.comb += [
                element.a.eq(beat.lanes[k].a),
                element.b.eq(beat.lanes[k].b),
                element.plus.eq(beat.plus),
                element.times.eq(beat.times),
            ]
            products.append(element.d)
        lanes = range(self.config.lanes)
        last = Signal(self.config.lanes, name="i_last")
        m.d.comb += last.eq(Cat(beat.lanes[k].last for k in lanes))
        some = Cat(beat.lanes[k].present for k in lanes)
        plus = Signal(Plus, name="i_plus")
        m.d.comb += plus.eq(beat.plus)
        entered = _Rank(self.i.valid, [], last, last, plus)
        return self._register(m, "product", entered, products, some)

    def _join(
        self, m: Module, name: str, plus: Value, x: Value, x_some: Value, y: Value, y_some: Value
    ) -> Value:
        """Return x ⊕ y, or the only one of them that exists."""
        m.submodules[name] = node = Reduction(format=self.config.format)
        m.d.comb += [node.a.eq(x), node.b.eq(y), node.plus.eq(plus)]
        return Mux(x_some & y_some, node.d, Mux(x_some, x, y))

    def _select(
        self, m: Module, name: str, rank: _Rank, start: int, stop: int
    ) -> tuple[list[Value], Value, Value]:
        """Choose the lane that holds the first column of a block: its mark, or the block's end.

        Returns
        -------
        chosen : list of Value
            A bit for each lane of the block, of which one is set.
        value, some : Value
            The chosen lane's value, and 1 if it has an element.
        """
        chosen: list[Value] = []
        value = Signal(self.config.number.storage_bits, name=f"{name}_first")
        some = Signal(name=f"{name}_first_some")
        picked: list[Value] = []
        for k in range(start, stop):
            # A column without a mark goes on beyond the block; its value so far is in the last
            # lane.
            ends = rank.last[k] if k + 1 < stop else 1
            earlier = rank.last[start:k].any() if k > start else 0
            bit = Signal(name=f"{name}_is_{k}")
            m.d.comb += bit.eq(~Value.cast(earlier)[0] & ends)
            chosen.append(bit)
            picked.append(rank.values[k] & bit.replicate(len(value)))
        total: Value = picked[0]
        for term in picked[1:]:
            total = total | term
        m.d.comb += [
            value.eq(total),
            some.eq((Cat(chosen) & rank.some[start:stop]).any()),
        ]
        return chosen, value, some

    def _build_level(self, m: Module, rank: _Rank, width: int) -> _Rank:
        """Join pairs of blocks of ``width`` lanes, and register the result."""
        values: list[Value] = list(rank.values)
        some: list[Value] = [rank.some[k] for k in range(self.config.lanes)]
        for middle in range(width, self.config.lanes, 2 * width):
            name = f"node_{middle}"
            chosen, y, y_some = self._select(m, name, rank, middle, middle + width)
            x, x_some = rank.values[middle - 1], rank.some[middle - 1]
            # The column that is open at the end of the left block has its value in that block's
            # last lane.
            joined = Signal(len(y), name=f"{name}_joined")
            m.d.comb += joined.eq(self._join(m, name, rank.plus, x, x_some, y, y_some))
            is_open = ~rank.last[middle - 1]
            for k, bit in enumerate(chosen, middle):
                values[k] = Mux(is_open & bit, joined, rank.values[k])
                # A column may have elements on one side only, or none at all.
                some[k] = rank.some[k] | (is_open & bit & x_some)
        return self._register(m, f"level_{width}", rank, values, Cat(some))

    def _build_columns(self, m: Module, rank: _Rank) -> None:
        """Add the part of the first column that came in earlier beats, and register the output."""
        n, bits = self.config.lanes, self.config.number.storage_bits
        carry = Signal(bits, reset_less=True)
        carry_some = Signal(name="carry_some")
        chosen, y, y_some = self._select(m, "beat", rank, 0, n)
        joined, joined_some = Signal(bits), Signal()
        m.d.comb += [
            joined.eq(self._join(m, "accumulator", rank.plus, carry, carry_some, y, y_some)),
            joined_some.eq(carry_some | y_some),
        ]
        # An empty column gives the identity of the reduction.
        identity = identity_of(m, rank.plus, self.config.number)
        values = [Mux(chosen[k], joined, rank.values[k]) for k in range(n)]
        some = [Mux(chosen[k], joined_some, rank.some[k]) for k in range(n)]
        with m.If(self._move):
            m.d.sync += self.o.valid.eq(rank.valid & rank.last.any())
            for k in range(n):
                m.d.sync += [
                    self.o.payload[k].value.eq(Mux(some[k], values[k], identity)),
                    self.o.payload[k].last.eq(rank.last[k]),
                ]
            with m.If(rank.valid):
                m.d.sync += [
                    carry.eq(values[n - 1]),
                    # A column that ends with the beat leaves nothing for the next one.
                    carry_some.eq(some[n - 1] & ~rank.last[n - 1]),
                ]
