"""The input-stationary core: rows times an element, scattered to banks and accumulated there."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_type

from .config import ISConfig, Kind, Plus
from .operators import ProcessingElement, Reduction


class Bank(wiring.Component):
    """A bank of ``ISCore``: results in memory, and a reduction that adds to them.

    Members
    -------
    valid : In(1)
        A value for an address.
    address : In(config.address_bits)
        The result to change, or to read if there is no value.
    value : In(storage_bits)
    write : In(1)
        The value replaces the result. Otherwise it is reduced with it.
    plus : In(Plus)
        The reduction.
    result : Out(storage_bits)
        The result at the address of the cycle before, as it was before that cycle's value.

    Latency
    -------
    ``latency = 1``. A result is written in the cycle after its value, and read there as well.
    """

    if TYPE_CHECKING:
        valid: Signal
        address: Signal
        value: Signal
        write: Signal
        plus: Signal
        result: Signal

    def __init__(self, *, config: ISConfig):
        check_type("config", config, ISConfig)
        self.config, self.latency = config, 1
        bits = config.number.storage_bits
        super().__init__(
            {
                "valid": In(1),
                "address": In(config.address_bits),
                "value": In(bits),
                "write": In(1),
                "plus": In(Plus),
                "result": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c, bits = self.config, self.config.number.storage_bits
        m.submodules.store = store = memory.Memory(shape=bits, depth=c.depth, init=[])
        write = store.write_port()
        # A read in the cycle of a write to the same address returns the new value.
        read = store.read_port(transparent_for=(write,))
        m.submodules.node = node = Reduction(format=c.format)
        s2_valid = Signal(name="s2_valid")
        s2_address = Signal(c.address_bits, reset_less=True)
        s2_value = Signal(bits, reset_less=True)
        s2_write = Signal(reset_less=True)
        s2_plus = Signal(Plus, reset_less=True)
        m.d.sync += [
            s2_valid.eq(self.valid),
            s2_address.eq(self.address),
            s2_value.eq(self.value),
            s2_write.eq(self.write),
            s2_plus.eq(self.plus),
        ]
        m.d.comb += [
            read.addr.eq(self.address),
            node.a.eq(read.data),
            node.b.eq(s2_value),
            node.plus.eq(s2_plus),
            write.addr.eq(s2_address),
            write.en.eq(s2_valid),
            write.data.eq(Mux(s2_write, s2_value, node.d)),
            self.result.eq(read.data),
        ]
        return m


class ISCore(wiring.Component):
    """Input-stationary core, bit-exact with ``golden.sparse.rows.is_rows``.

    A beat has elements of one row of the matrix, which are multiplied by one element of the vector
    and added to the results in memory. A column's result is in bank ``column % lanes``. A network
    brings each product to its bank. Of several products for a bank, the one in the lowest lane goes
    first, and the beat waits for the others. So every result gets its products in the order of
    beats and lanes, and no product is lost if a row names a column twice.

    Members
    -------
    i : In(stream.Signature(config.beat))
        Beats: elements to add, values to write, or a group of ``lanes`` columns to read.
    o : Out(stream.Signature(config.values))
        Results, one item for each beat that reads.

    Latency
    -------
    ``latency = 3`` cycles from a beat that reads to its item. A beat that adds or writes takes as
    many cycles as the most products for one bank. After a read, the next one waits for its item.

    Raises
    ------
    TypeError
        If ``config`` is no ``ISConfig``.

    References
    ----------
    Zhang 2024, §4.4.3.
    """

    #: Sub-components that tools may build once for all lanes.
    shared = (ProcessingElement, Bank)

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: ISConfig):
        check_type("config", config, ISConfig)
        self.config, self.latency = config, 3
        super().__init__(
            {
                "i": In(stream.Signature(config.beat)),
                "o": Out(stream.Signature(config.values)),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived core has in addition."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.config
        bits, banks = c.number.storage_bits, range(c.lanes)

        # Rank 1: the products of a beat, which stay until each has gone to its bank.
        kind, plus = Signal(Kind), Signal(Plus)
        values = [Signal(bits, name=f"product_{k}", reset_less=True) for k in banks]
        columns = [Signal(c.column_bits, name=f"column_{k}", reset_less=True) for k in banks]
        pending = Signal(c.lanes)
        reading = Signal()  # the beat reads, and has not been granted
        self._build_products(m, values)

        # The network: a bank takes the lowest lane that has a product for it.
        granted: list[Value] = []
        for bank in banks:
            wants = Signal(c.lanes, name=f"bank_{bank}_wants")
            grant = Signal(c.lanes, name=f"bank_{bank}_grant")
            m.d.comb += [
                wants.eq(Cat(pending[k] & (self._bank(columns[k]) == bank) for k in banks)),
                grant.eq(self._granted(wants)),
            ]
            granted.append(grant)
        served = Signal(c.lanes)
        any_grant: Value = granted[0]
        for grant in granted[1:]:
            any_grant = any_grant | grant
        left = Signal(c.lanes)
        m.d.comb += [served.eq(any_grant), left.eq(self._left(pending, served))]

        read_now, read_next = Signal(), Signal()
        m.d.comb += read_now.eq(reading & ~read_next & (~self.o.valid | self.o.ready))
        done = Signal()
        m.d.comb += [
            done.eq((left == 0) & (~reading | read_now)),
            self.i.ready.eq(done),
        ]
        m.d.sync += pending.eq(left)
        with m.If(read_now):
            m.d.sync += reading.eq(0)
        beat = self.i.payload
        with m.If(done & self.i.valid):
            m.d.sync += [
                kind.eq(beat.kind),
                plus.eq(beat.plus),
                pending.eq(
                    Mux(beat.kind == Kind.READ, 0, Cat(beat.lanes[k].present for k in banks))
                ),
                reading.eq(beat.kind == Kind.READ),
                *(columns[k].eq(beat.lanes[k].column) for k in banks),
            ]
            m.d.sync += [values[k].eq(self._products[k]) for k in banks]

        # Rank 2: a bank has read its old result, and writes the new one.
        results: list[Value] = []
        for n, chosen in enumerate(granted):
            bank = Bank(config=c)
            m.submodules[f"bank_{n}"] = bank
            column = Mux(reading, columns[0], self._pick(chosen, columns))
            m.d.comb += [
                bank.valid.eq(chosen.any()),
                bank.address.eq(column[c.bank_bits : c.column_bits]),
                bank.value.eq(self._pick(chosen, values)),
                bank.write.eq(kind == Kind.WRITE),
                bank.plus.eq(plus),
            ]
            results.append(bank.result)
        m.d.sync += read_next.eq(read_now)
        with m.If(read_next):
            m.d.sync += [self.o.valid.eq(1), *(self.o.payload[k].eq(results[k]) for k in banks)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

    def _bank(self, column: Value) -> Value:
        return column[: self.config.bank_bits]

    def _granted(self, wants: Value) -> Value:
        """Return the lowest bit that is set."""
        return wants & (~wants + 1)[: len(wants)]

    def _left(self, pending: Value, served: Value) -> Value:
        """Return the products that wait for another cycle."""
        return pending & ~served

    def _product(self, kind: Value, a: Value, product: Value) -> Value:
        """Return what a lane sends to its bank."""
        return Mux(kind == Kind.WRITE, a, product)

    def _pick(self, chosen: Value, values: list[Signal]) -> Value:
        """Return the value whose bit is set in ``chosen``."""
        total: Value = values[0] & chosen[0].replicate(len(values[0]))
        for k, value in enumerate(values[1:], 1):
            total = total | (value & chosen[k].replicate(len(value)))
        return total

    def _build_products(self, m: Module, values: list[Signal]) -> None:
        """Multiply the elements of the offered beat, or pass on what it writes."""
        beat = self.i.payload
        self._products: list[Value] = []
        for k in range(len(values)):
            element = ProcessingElement(
                format=self.config.format, multiplier=self.config.multiplier
            )
            m.submodules[f"element_{k}"] = element
            m.d.comb += [
                element.a.eq(beat.lanes[k].a),
                element.b.eq(beat.x),
                element.plus.eq(beat.plus),
                element.times.eq(beat.times),
            ]
            self._products.append(self._product(beat.kind, beat.lanes[k].a, element.d))
