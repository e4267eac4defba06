"""The buffer of a matrix in CSC and CSR form, which converts columns to rows as they pass."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_type

from .arbitration import BankOfRows, choose_one, lowest_one, sum_of
from .oei_config import OEIConfig, Refusal


class DualBuffer(wiring.Component):
    """Buffer with CSC space and CSR space, bit-exact with ``golden.sparse.buffer``.

    Beats of columns wait in CSC space. On the order ``columns``, the buffer delivers the columns of
    a sub-tensor, and frees them. At the same time it puts their elements into CSR space. The first
    element of a row reserves the space of the whole row, whose number of elements is in the index;
    each further element takes the row's next slot.

    On the order ``rows`` for sub-tensor K, the buffer delivers the elements of all rows of the
    sub-tensors 0 to K that it has not delivered before, in ascending order of the rows. It leaves
    out the columns of sub-tensor K + 2 and higher, which may arrive at the same time.

    CSR space is a ring. The space of a row is free when all its elements have been delivered, and
    so have those of every row that has reserved its space earlier.

    Members
    -------
    index : In(stream.Signature(config.index))
        The numbers of elements of each group of rows. Group 0 begins a pass and empties CSR space.
        The buffer takes no index while an order is in execution.
    i : In(stream.Signature(config.csc))
        Beats of columns.
    columns : In(stream.Signature(config.sub_bits))
        Order to deliver the columns of a sub-tensor. The first one is 0, and each order is by 1
        higher than the one before.
    columns_done : Out(1)
        1 in the cycle in which all elements of the sub-tensor are in CSR space.
    o : Out(stream.Signature(config.csc))
        Beats of columns for the output-stationary core.
    rows : In(stream.Signature(config.sub_bits))
        Order to deliver the rows up to a sub-tensor K, while sub-tensor K + 2 may arrive.
    rows_done : Out(1)
        1 in the cycle after the last beat of the order has been taken.
    csr : Out(stream.Signature(config.csr))
        Beats of rows for the input-stationary core.
    waiting : Out(1)
        1 while a row waits for space that only the delivery of other rows can free.
    refusal : Out(Refusal)
        ROW or BORDER after a wrong beat. The buffer then stops until a reset.

    Latency
    -------
    A beat of columns takes as many cycles as the most elements for one bank of rows, or for one
    bank of CSR space, and one cycle for each row that reserves its space. A beat of a row takes one
    cycle, and so does each group of rows.

    Raises
    ------
    TypeError
        If ``config`` is no ``OEIConfig``.

    References
    ----------
    Zhang 2024, §4.4.2 and §4.4.4. The thesis repacks its CSR space and evicts the highest rows when
    it is full; this buffer frees space in the order of the reservations and evicts nothing.
    """

    if TYPE_CHECKING:
        index: stream.Interface
        i: stream.Interface
        columns: stream.Interface
        columns_done: Signal
        o: stream.Interface
        rows: stream.Interface
        rows_done: Signal
        csr: stream.Interface
        waiting: Signal
        refusal: Signal

    def __init__(self, *, config: OEIConfig):
        check_type("config", config, OEIConfig)
        self.config = c = config
        super().__init__(
            {
                "index": In(stream.Signature(c.index)),
                "i": In(stream.Signature(c.csc)),
                "columns": In(stream.Signature(c.sub_bits)),
                "columns_done": Out(1),
                "o": Out(stream.Signature(c.csc)),
                "rows": In(stream.Signature(c.sub_bits)),
                "rows_done": Out(1),
                "csr": Out(stream.Signature(c.csr)),
                "waiting": Out(1),
                "refusal": Out(Refusal),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived buffer has in addition."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.config
        #: What is known of a row: the elements that it has in all, that have arrived, and that had
        #: arrived before sub-tensor ``sub``, which is that of the last one; and its first slot.
        self._row = data.StructLayout(
            {
                "count": c.count_bits,
                "fill": c.count_bits,
                "before": c.count_bits,
                "sub": c.sub_bits,
                "start": c.slot_bits,
            }
        )
        self._delivering, self._stopped = Signal(), Signal()
        self._reading = Signal()
        begin, idle = Signal(), Signal()
        m.d.comb += [
            self._stopped.eq(self.refusal != Refusal.NONE),
            self.index.ready.eq(idle),
            begin.eq(idle & self.index.valid & (self.index.payload.group == 0)),
        ]
        self._known = [
            memory.Memory(shape=self._row, depth=c.groups, init=[]) for _ in range(c.lanes)
        ]
        self._slots = [
            memory.Memory(
                shape=c.number.storage_bits + c.row_bits, depth=c.capacity // c.lanes, init=[]
            )
            for _ in range(c.lanes)
        ]
        for k in range(c.lanes):
            m.submodules[f"known_{k}"] = self._known[k]
            m.submodules[f"slots_{k}"] = self._slots[k]
        self._build_space(m, begin)
        busy = self._build_columns(m, begin)
        self._build_rows(m)
        m.d.comb += idle.eq(~busy & ~self._reading & ~self._stopped)
        return m

    def _build_space(self, m: Module, begin: Value) -> None:
        """Build the ring of reservations, which frees the oldest one when its row is finished."""
        c = self.config
        entry = data.StructLayout({"row": c.row_bits, "count": c.count_bits})
        order = memory.Memory(shape=entry, depth=c.rows, init=[])
        m.submodules.order = order
        write, oldest = order.write_port(), order.read_port(domain="comb")
        #: The row that reserves its space in this cycle if ``_grow`` is set, and its elements.
        self._grow = Signal()
        self._grow_row, self._grow_count = Signal(c.row_bits), Signal(c.count_bits)
        self._room, self._next_slot = Signal(), Signal(c.slot_bits)
        #: The row of which the last element is delivered in this cycle.
        self._finish, self._finish_row = Signal(), Signal(c.row_bits)
        finished = Signal(c.rows)
        used = Signal(c.count_bits)
        # One bit more than an address has, so that a full ring differs from an empty one.
        newest_at, oldest_at = Signal(c.row_bits + 1), Signal(c.row_bits + 1)
        self._frees = frees = Signal()
        m.d.comb += [
            write.addr.eq(newest_at),
            write.en.eq(self._grow),
            write.data.row.eq(self._grow_row),
            write.data.count.eq(self._grow_count),
            oldest.addr.eq(oldest_at),
            frees.eq((oldest_at != newest_at) & (finished >> oldest.data.row)[0]),
            # A row reserves all of its slots at once, so it can never be stuck with a part of them.
            self._room.eq(used + self._grow_count <= c.capacity),
        ]
        with m.If(self._finish):
            m.d.sync += finished.bit_select(self._finish_row, 1).eq(1)
        m.d.sync += [
            used.eq(
                used
                + Mux(self._grow, self._grow_count, 0)
                - Mux(frees, self._freed(oldest.data.count), 0)
            ),
            newest_at.eq(newest_at + self._grow),
            oldest_at.eq(oldest_at + frees),
        ]
        # The capacity is a power of two, so that slot numbers wrap around by themselves.
        with m.If(self._grow):
            m.d.sync += self._next_slot.eq(self._next_slot + self._grow_count)
        with m.If(begin):
            m.d.sync += [s.eq(0) for s in (used, newest_at, oldest_at, finished, self._next_slot)]

    def _freed(self, count: Value) -> Value:
        """Return the slots that a finished row gives back."""
        return count

    def _build_columns(self, m: Module, begin: Value) -> Value:
        """Deliver columns, and convert them; return 1 while that goes on."""
        c = self.config
        lanes = range(c.lanes)
        queue = SyncFIFOBuffered(width=self.config.csc.size, depth=c.beats)
        m.submodules.queue = queue
        beat = Signal(c.csc)
        m.d.comb += [
            queue.w_data.eq(self.i.payload.as_value()),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            beat.as_value().eq(queue.r_data),
        ]

        # Columns of the sub-tensor that have passed, and the column of each lane.
        passed = Signal(range(c.columns + 1))
        sub = Signal(c.sub_bits)
        before = [Signal(range(c.columns + c.lanes + 1), name=f"before_{k}") for k in lanes]
        after = Signal(range(c.columns + c.lanes + 1))
        for k in lanes:
            m.d.comb += before[k].eq(passed + sum_of([beat.lanes[j].last for j in range(k)]))
        m.d.comb += after.eq(passed + sum_of([beat.lanes[j].last for j in lanes]))
        crosses, empty, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            crosses.eq(
                Cat(
                    # A beat may not hold columns of two sub-tensors, because an order ends with its
                    # last column.
                    (beat.lanes[k].present | beat.lanes[k].last) & (before[k] >= c.columns)
                    for k in lanes
                ).any()
            ),
            self.o.payload.eq(beat),
            self.o.valid.eq(queue.r_rdy & self._delivering & empty & ~crosses & ~self._stopped),
            taken.eq(self.o.valid & self.o.ready),
            queue.r_en.eq(taken),
        ]
        converting, order_ends = Signal(), Signal()
        m.d.comb += [
            self.columns.ready.eq(~self._delivering & ~converting & ~self._stopped),
            order_ends.eq(taken & (after == c.columns)),
        ]
        with m.If(self.columns.valid & self.columns.ready):
            m.d.sync += [self._delivering.eq(1), sub.eq(self.columns.payload), passed.eq(0)]
        with m.If(taken):
            m.d.sync += passed.eq(after)
        with m.If(order_ends):
            m.d.sync += [self._delivering.eq(0), converting.eq(1)]
        with m.If(queue.r_rdy & self._delivering & crosses):
            m.d.sync += self.refusal.eq(Refusal.BORDER)

        self._build_places(m)
        m.d.comb += empty.eq(self._s1_left == 0)
        with m.If(taken):
            m.d.sync += [
                self._s1_pending.eq(Cat(beat.lanes[k].present for k in lanes)),
                self._s1_sub.eq(sub),
            ]
            for k in lanes:
                # Element and column are one word; the row is known from the slot.
                column = (sub * c.columns + before[k])[: c.row_bits]
                m.d.sync += [
                    self._s1_rows[k].eq(beat.lanes[k].row),
                    self._s1_data[k].eq(Cat(beat.lanes[k].value, column)),
                ]
        with m.Else():
            m.d.sync += self._s1_pending.eq(self._s1_left)
        is_empty = (self._s1_pending == 0) & (self._s2_pending == 0)
        m.d.comb += self.columns_done.eq(converting & is_empty)
        with m.If(self.columns_done):
            m.d.sync += converting.eq(0)
        return self._delivering | converting

    def _build_places(self, m: Module) -> None:
        """Find the slot of each element of a beat, and write the elements to their slots.

        The registers ``_s1_pending``, ``_s1_sub``, ``_s1_rows`` and ``_s1_data`` are the beat that
        ``_build_columns`` hands over; it may hand over the next one when ``_s1_left`` is 0.
        """
        c = self.config
        lanes = range(c.lanes)
        width = c.number.storage_bits + c.row_bits
        # Stage 1: elements that have no slot yet. Each looks up the entry of its row. The entries
        # are in banks, so that elements whose rows share a bank go one after the other.
        self._s1_pending, self._s1_left = Signal(c.lanes), Signal(c.lanes)
        self._s1_sub = Signal(c.sub_bits)
        self._s1_rows = [Signal(c.row_bits, name=f"s1_row_{k}") for k in lanes]
        self._s1_data = [Signal(width, name=f"s1_data_{k}") for k in lanes]
        # Stage 2: elements that have a slot, and wait for the bank of the slot, which takes one
        # element in a cycle. A beat moves to it when all elements of the beat before are written.
        self._s2_pending = Signal(c.lanes)
        s2_slots = [Signal(c.slot_bits, name=f"s2_slot_{k}", reset_less=True) for k in lanes]
        s2_data = [Signal(width, name=f"s2_data_{k}", reset_less=True) for k in lanes]
        s2_left, s2_free = Signal(c.lanes), Signal()
        m.d.comb += s2_free.eq(s2_left == 0)

        # The reservations have the order of the lanes: only the lowest lane may make one. Otherwise
        # two rows that begin in one cycle would get the same slots.
        lowest = Signal(c.lanes)
        m.d.comb += lowest.eq(lowest_one(self._s1_pending))
        slot_of = [Value.cast(0) for _ in lanes]
        served, wrong, wants_room = Value.cast(0), Value.cast(0), Value.cast(0)
        for bank in lanes:
            found = self._build_bank_of_rows(m, bank, lowest, s2_free)
            wants_room = wants_room | found.wants_room
            wrong = wrong | found.full
            served = served | (found.grant & found.goes.replicate(c.lanes))
            for k in lanes:
                slot_of[k] = slot_of[k] | (found.slot & found.grant[k].replicate(c.slot_bits))
        takes = Signal(c.lanes)
        m.d.comb += [
            takes.eq(served),
            self._s1_left.eq(self._s1_pending & ~takes),
            self._grow.eq(wants_room & self._room & s2_free & ~self._stopped),
            self.waiting.eq(wants_room & ~self._room & ~self._frees & ~self._stopped),
        ]
        with m.If(wrong):
            m.d.sync += self.refusal.eq(Refusal.ROW)
        m.d.sync += self._s2_pending.eq(Mux(s2_free, takes, s2_left))
        with m.If(s2_free):
            for k in lanes:
                m.d.sync += [s2_slots[k].eq(slot_of[k]), s2_data[k].eq(self._s1_data[k])]

        m.d.comb += s2_left.eq(self._s2_pending & ~self._build_slots(m, s2_slots, s2_data))

    def _build_bank_of_rows(
        self, m: Module, bank: int, lowest: Signal, s2_free: Signal
    ) -> BankOfRows:
        """Give one waiting element whose row is in a bank a slot, and update the row's entry.

        ``bank`` has the rows with this number in their low bits, ``lowest`` is the lowest lane that
        waits, and ``s2_free`` says that stage 2 takes elements.
        """
        c = self.config
        lanes, low = range(c.lanes), c.lane_bits
        index = self.index.payload
        load = self.index.valid & self.index.ready
        read = self._known[bank].read_port(domain="comb")
        write = self._known[bank].write_port()
        wants = Signal(c.lanes, name=f"rows_{bank}_wants")
        grant = Signal(c.lanes, name=f"rows_{bank}_grant")
        first, full, goes = (
            Signal(name=f"rows_{bank}_{name}") for name in ("first", "full", "goes")
        )
        slot = Signal(c.slot_bits, name=f"rows_{bank}_slot")
        group = Signal(c.group_bits, name=f"rows_{bank}_group")
        row = read.data
        may_reserve = (grant & lowest).any()
        m.d.comb += [
            wants.eq(Cat(self._s1_pending[k] & (self._s1_rows[k][:low] == bank) for k in lanes)),
            grant.eq(lowest_one(wants)),
            group.eq(choose_one(grant, [rows[low:] for rows in self._s1_rows])),
            read.addr.eq(group),
            first.eq(wants.any() & (row.fill == 0)),
            full.eq(wants.any() & (row.fill == row.count)),
            goes.eq(
                wants.any()
                & ~full
                & (~first | (may_reserve & self._room))
                & s2_free
                & ~self._stopped
            ),
            # The first element of a row takes the first of the slots that it reserves in this
            # cycle.
            slot.eq(Mux(first, self._next_slot, row.start + row.fill)),
            write.addr.eq(Mux(load, index.group, group)),
            write.en.eq(goes | load),
            write.data.count.eq(Mux(load, index.counts[bank], row.count)),
            write.data.start.eq(Mux(first, self._next_slot, row.start)),
            write.data.fill.eq(Mux(load, 0, row.fill + 1)),
            write.data.sub.eq(Mux(load, 0, self._s1_sub)),
            # With the first element of another sub-tensor, all that came earlier belongs to former
            # ones.
            write.data.before.eq(Mux(load, 0, Mux(row.sub == self._s1_sub, row.before, row.fill))),
        ]
        with m.If(first & may_reserve):
            m.d.comb += [
                self._grow_row.eq(Cat(Const(bank, low), group)),
                self._grow_count.eq(row.count),
            ]
        wants_room = first & ~full & may_reserve
        return BankOfRows(wants_room=wants_room, full=full, goes=goes, grant=grant, slot=slot)

    def _build_slots(
        self, m: Module, s2_slots: Sequence[Signal], s2_data: Sequence[Signal]
    ) -> Value:
        """Write elements of stage 2 to their slots, and return a bit for each lane that is done."""
        c = self.config
        lanes, low = range(c.lanes), c.lane_bits
        written = Value.cast(0)
        for bank in lanes:
            write = self._slots[bank].write_port()
            wants = Signal(c.lanes, name=f"slots_{bank}_wants")
            grant = Signal(c.lanes, name=f"slots_{bank}_grant")
            m.d.comb += [
                wants.eq(Cat(self._s2_pending[k] & (s2_slots[k][:low] == bank) for k in lanes)),
                grant.eq(lowest_one(wants)),
                write.en.eq(wants.any()),
                write.addr.eq(choose_one(grant, [slot[low:] for slot in s2_slots])),
                write.data.eq(choose_one(grant, list(s2_data))),
            ]
            written = written | grant
        return written

    def _build_rows(self, m: Module) -> None:
        """Deliver the elements of rows that have arrived and have not been delivered."""
        c = self.config
        lanes, low = range(c.lanes), c.lane_bits
        group, end = Signal(range(c.groups + 1)), Signal(range(c.groups + 1))
        arriving = Signal(c.sub_bits)
        unread = [Signal(c.count_bits, name=f"unread_{k}") for k in lanes]
        starts: list[Value] = []
        taken: list[Value] = []
        wholes: list[Value] = []
        writes: list[Any] = []
        index = self.index.payload
        load = self.index.valid & self.index.ready
        for k in lanes:
            known = self._known[k].read_port(domain="comb")
            delivered = memory.Memory(shape=c.count_bits, depth=c.groups, init=[])
            m.submodules[f"delivered_{k}"] = delivered
            read, write = delivered.read_port(domain="comb"), delivered.write_port()
            m.d.comb += [
                known.addr.eq(group),
                read.addr.eq(group),
                write.addr.eq(Mux(load, index.group, group)),
                unread[k].eq(self._arrived(known.data, arriving) - read.data),
            ]
            starts.append((known.data.start + read.data)[: c.slot_bits])
            taken.append(read.data)
            wholes.append(known.data.count)
            writes.append(write)

        full, chosen = Signal(c.lanes), Signal(c.lanes)
        start, left = Signal(c.slot_bits), Signal(c.count_bits)
        count, total = Signal(range(c.lanes + 1)), Signal(c.count_bits)
        issue, move, finishing = Signal(), Signal(), Signal()
        row_lane = sum_of([Mux(chosen[k], k, 0) for k in lanes])[: max(low, 1)]
        row = Cat(row_lane[:low], group)[: c.row_bits]
        m.d.comb += [
            full.eq(Cat(x != 0 for x in unread)),
            chosen.eq(lowest_one(full)),
            start.eq(choose_one(chosen, starts)),
            left.eq(choose_one(chosen, list(unread))),
            count.eq(Mux(left > c.lanes, c.lanes, left)),
            total.eq(choose_one(chosen, taken) + count),
            move.eq(~self.csr.valid | self.csr.ready),
            issue.eq(self._reading & ~finishing & full.any() & move),
            self._finish.eq(issue & (total == choose_one(chosen, wholes))),
            self._finish_row.eq(row),
            self.rows.ready.eq(~self._reading & ~self._stopped),
        ]
        for k, write in enumerate(writes):
            m.d.comb += [
                write.en.eq(load | (issue & chosen[k])),
                write.data.eq(Mux(load, 0, total)),
            ]
        with m.If(self.rows.valid & self.rows.ready):
            m.d.sync += [
                self._reading.eq(1),
                group.eq(0),
                # A group is one row of every bank, and a sub-tensor has as many rows as columns.
                end.eq((self.rows.payload + 1) * (c.columns // c.lanes)),
                arriving.eq(self.rows.payload + 2),
            ]
        with m.If(self._reading & ~finishing & ~full.any()):
            m.d.sync += [group.eq(group + 1), finishing.eq(group + 1 == end)]
        m.d.comb += self.rows_done.eq(finishing & ~self.csr.valid)
        with m.If(self.rows_done):
            m.d.sync += [finishing.eq(0), self._reading.eq(0)]
        self._build_beat(m, move, issue, start, count, row)

    def _arrived(self, known: Any, arriving: Value) -> Value:
        """Return the elements of a row that are not of the sub-tensor that arrives now."""
        return Mux(known.sub == arriving, known.before, known.fill)

    def _turn(self, start: Value) -> Value:
        """Return the bank of the first slot."""
        return start[: self.config.lane_bits]

    def _build_beat(
        self, m: Module, move: Value, issue: Value, start: Value, count: Value, row: Value
    ) -> None:
        """Read ``lanes`` consecutive slots, one from each bank, and rotate them into the lanes."""
        c = self.config
        lanes, low, bits = range(c.lanes), c.lane_bits, c.number.storage_bits
        s1_turn = Signal(max(low, 1), reset_less=True)
        s1_count = Signal(range(c.lanes + 1), reset_less=True)
        s1_row = Signal(c.row_bits, reset_less=True)
        with m.If(move):
            m.d.sync += [
                self.csr.valid.eq(issue),
                s1_turn.eq(self._turn(start)),
                s1_count.eq(count),
                s1_row.eq(row),
            ]
        found: list[Value] = []
        for bank in lanes:
            read = self._slots[bank].read_port()
            m.d.comb += [
                # Consecutive slots are in consecutive banks; banks before the first slot's hold
                # slots of the next address.
                read.addr.eq(start[low:] + (start[:low] > bank)),
                read.en.eq(move),
            ]
            found.append(read.data)
        for k in lanes:
            slot = Signal(bits + c.row_bits, name=f"csr_slot_{k}")
            turned = Array(found[(turn + k) % c.lanes] for turn in lanes)
            m.d.comb += [
                slot.eq(turned[s1_turn]),
                self.csr.payload.lanes[k].value.eq(slot[:bits]),
                self.csr.payload.lanes[k].column.eq(slot[bits:]),
                self.csr.payload.lanes[k].present.eq(k < s1_count),
            ]
        m.d.comb += self.csr.payload.row.eq(s1_row)
