"""From the ports of a core for global memory to the channels of AXI4."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int, one_of

from .ports import (
    ADDRESS_BITS,
    BLOCK_BITS,
    BLOCK_BYTES,
    PLACE_BITS,
    ROW_BITS,
    ReadPort,
    WritePort,
    bits,
)

#: Widths of the data of AXI4 in bits.
WIDTHS = (64, 128, 256)
#: A burst of AXI4 must not cross a multiple of 4 KiB (AMBA IHI 0022, A3.4.1).
_PAGE_BITS = 12 - PLACE_BITS
#: Blocks and bursts that a port has on their way, at most.
_MOST_BLOCKS, _MOST_BURSTS = 63, 15
#: AxBURST of bursts with rising addresses, and AxCACHE of memory that may be buffered and merged
#: (AMBA IHI 0022, A3.4.1 and A4.4).
_INCR, _NORMAL = 1, 3


def address_layout(id_bits: int) -> data.StructLayout:
    """Return the layout of an address: the ID, the first byte, and the number of beats less 1."""
    return data.StructLayout({"id": id_bits, "addr": ADDRESS_BITS, "len": 8})


def response_layout(id_bits: int) -> data.StructLayout:
    """Return the layout of an item of the channel of responses to writes."""
    return data.StructLayout({"id": id_bits, "resp": 2})


def read_layout(width: int, id_bits: int) -> data.StructLayout:
    """Return the layout of an item of the channel of reads."""
    return data.StructLayout({"id": id_bits, "data": width, "resp": 2, "last": 1})


def write_layout(width: int) -> data.StructLayout:
    """Return the layout of an item of the channel of data to write."""
    return data.StructLayout({"data": width, "strb": width // 8, "last": 1})


class _Collector:
    """Blocks at consecutive addresses that become one burst.

    Attributes
    ----------
    open, row, count, source : Signal
        There is a burst; its first block, its number of blocks less 1, and who asks for it.
    offers, sent : Signal
        The burst can be sent, because the next request does not continue it; it is sent.
    room : Signal
        The request of this cycle can be taken.
    """

    def __init__(
        self, m: Module, name: str, *, most: int, request: Value, row: Value, source: Value
    ):
        self.open, self.row = Signal(name=f"{name}_open"), Signal(ROW_BITS, name=f"{name}_row")
        self.count = Signal(range(most), name=f"{name}_count")
        self.source = Signal(len(source), name=f"{name}_source")
        self.offers, self.sent = Signal(name=f"{name}_offers"), Signal(name=f"{name}_sent")
        self.room, self.taken = Signal(name=f"{name}_room"), Signal(name=f"{name}_taken")
        following, continues = (
            Signal(ROW_BITS, name=f"{name}_next"),
            Signal(name=f"{name}_continues"),
        )
        m.d.comb += [
            continues.eq(
                self.open
                & request
                & (row == following)
                & (source == self.source)
                & (self.count != most - 1)
                & (following[:_PAGE_BITS] != 0)
            ),
            self.offers.eq(self.open & ~continues),
            self.room.eq(~self.open | continues | self.sent),
        ]
        with m.If(self.sent):
            m.d.sync += self.open.eq(0)
        with m.If(self.taken):
            m.d.sync += [self.open.eq(1), following.eq(row + 1)]
            with m.If(continues):
                m.d.sync += self.count.eq(self.count + 1)
            with m.Else():
                m.d.sync += [self.row.eq(row), self.count.eq(0), self.source.eq(source)]


class AxiMaster(wiring.Component):
    """AXI4 master behind the ports of a core for global memory.

    Requests for consecutive blocks become one burst of up to ``burst_blocks`` blocks, which ends at
    a multiple of 4 KiB, and also if the unit does not ask for the next block at once. The program
    and the data take turns by bursts. Their reads have different IDs, so the blocks of one do not
    wait for those of the other, and several bursts of each can be on their way.

    Parameters
    ----------
    width : int
        Bits of the data, 64, 128 or 256.
    burst_blocks : int
        Most blocks of 32 bytes in a burst, a power of two from 1 to 16.
    sources : int
        Units that write: MTE3, S, and FIX if they are three. An ID has a bit, or two for three.

    Members
    -------
    fetch, read : In(ReadPort())
        The program, and the data. ``fetch_error`` and ``read_error`` are set with a block if one
        of its beats came with an error.
    write, source : In(WritePort()), In(range(sources))
        The blocks to write, and which unit asks.
    write_open, write_error : Out(sources)
        For each source: not all blocks have been answered; an answer is an error.
    hold, idle : In(1), Out(1)
        Take no more requests; nothing is on its way. What has been taken is always ended.
    ar, aw : Out(stream.Signature(address_layout(id_bits)))
        Addresses of bursts. Of reads, ID 0 is the program and 1 the data; of writes it is the
        source.
    r, w, b : In(stream.Signature(read_layout(width, id_bits))), Out(stream.Signature(write_layout(width))), In(stream.Signature(response_layout(id_bits)))
        Data and answers. ``r`` and ``b`` are always ready.

    Latency
    -------
    Two cycles from a request to its address; a block is there in the cycle of its last beat.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed.
    """  # noqa: E501

    if TYPE_CHECKING:
        fetch: Any
        read: Any
        fetch_error: Signal
        read_error: Signal
        write: Any
        source: Signal
        write_open: Signal
        write_error: Signal
        hold: Signal
        idle: Signal
        ar: stream.Interface
        aw: stream.Interface
        r: stream.Interface
        w: stream.Interface
        b: stream.Interface

    def __init__(self, *, width: int = 64, burst_blocks: int = 8, sources: int = 2):
        one_of("width", width, WIDTHS)
        one_of("sources", sources, (2, 3))
        check_int("burst_blocks", burst_blocks, 1, 16)
        if burst_blocks & (burst_blocks - 1):
            raise ValueError(f"burst_blocks must be a power of two, not {burst_blocks}")
        self.width, self.burst_blocks, self.sources = width, burst_blocks, sources
        self.id_bits = bits(sources)
        self.beats = BLOCK_BITS // width
        super().__init__(
            {
                "fetch": In(ReadPort()),
                "read": In(ReadPort()),
                "fetch_error": Out(1),
                "read_error": Out(1),
                "write": In(WritePort()),
                "source": In(range(sources)),
                "write_open": Out(sources),
                "write_error": Out(sources),
                "hold": In(1),
                "idle": Out(1),
                "ar": Out(stream.Signature(address_layout(self.id_bits))),
                "aw": Out(stream.Signature(address_layout(self.id_bits))),
                "r": In(stream.Signature(read_layout(width, self.id_bits))),
                "w": Out(stream.Signature(write_layout(width))),
                "b": In(stream.Signature(response_layout(self.id_bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        resting = [*self._build_reads(m), *self._build_writes(m)]
        m.d.comb += [self.idle.eq(Cat(*resting).all()), self.r.ready.eq(1), self.b.ready.eq(1)]
        return m

    def _build_reads(self, m: Module) -> list[Value]:
        """Ask for blocks, and put their beats together; return what must be 1 at rest."""
        ports, errors = (self.fetch, self.read), (self.fetch_error, self.read_error)
        resting: list[Value] = []
        collectors = []
        for n, (port, error) in enumerate(zip(ports, errors, strict=True)):
            name = ("fetch", "read")[n]
            on_way = Signal(range(_MOST_BLOCKS + 1), name=f"{name}_on_way")
            request = Signal(name=f"{name}_request")
            m.d.comb += request.eq(port.request & ~self.hold)
            c = _Collector(
                m, name, most=self.burst_blocks, request=request, row=port.address, source=Const(0)
            )
            collectors.append(c)
            m.d.comb += [
                port.grant.eq(request & c.room & (on_way != _MOST_BLOCKS)),
                c.taken.eq(port.grant),
            ]
            m.d.sync += on_way.eq(on_way + port.grant - port.valid)
            self._assemble(m, n, name, port, error)
            resting.append(on_way == 0)
        self._send(m, "ar", collectors)
        return resting

    def _assemble(self, m: Module, number: int, name: str, port: Any, error: Signal) -> None:
        """Put the beats of a port's blocks together, which come in the order of its requests."""
        mine = self.r.valid & (self.r.payload.id == number)
        bad = self.r.payload.resp[1]
        if self.beats == 1:
            m.d.comb += [port.valid.eq(mine), port.data.eq(self.r.payload.data), error.eq(bad)]
            return
        beat = Signal(range(self.beats), name=f"{name}_beat")
        parts = Signal(BLOCK_BITS - self.width, name=f"{name}_parts")
        failed = Signal(name=f"{name}_failed")
        last = beat == self.beats - 1
        m.d.comb += [
            port.valid.eq(mine & last),
            port.data.eq(Cat(parts, self.r.payload.data)),
            error.eq(failed | bad),
        ]
        with m.If(mine):
            m.d.sync += [
                beat.eq(beat + 1),
                parts.eq(Cat(parts, self.r.payload.data)[self.width :]),
                failed.eq(~last & (failed | bad)),
            ]

    def _send(self, m: Module, name: str, collectors: list[_Collector]) -> Signal:
        """Put the bursts of collectors in turns into the register of a channel."""
        channel = getattr(self, name)
        item = Signal(address_layout(self.id_bits), name=f"{name}_item")
        full, free, turn = (Signal(name=f"{name}_{word}") for word in ("full", "free", "turn"))
        m.d.comb += [
            free.eq(~full | channel.ready),
            channel.valid.eq(full),
            channel.payload.eq(item),
        ]
        with m.If(channel.ready):
            m.d.sync += full.eq(0)
        for n, collector in enumerate(collectors):
            others = Cat(*(c.offers for c in collectors if c is not collector)).any()
            chosen = collector.offers & (~others | (turn == n))
            m.d.comb += collector.sent.eq(chosen & free)
            with m.If(collector.sent):
                m.d.sync += [
                    full.eq(1),
                    turn.eq(1 - n),
                    item.id.eq(n if len(collectors) > 1 else collector.source),
                    item.addr.eq(collector.row << PLACE_BITS),
                    item.len.eq((collector.count << bits(self.beats)) | (self.beats - 1)),
                ]
        return full

    def _build_writes(self, m: Module) -> list[Value]:
        """Write blocks, and count the answers; return what must be 1 at rest."""
        port, most = self.write, self.burst_blocks
        blocks_layout = data.StructLayout({"data": BLOCK_BITS, "enable": BLOCK_BYTES})
        m.submodules.blocks = blocks = SyncFIFO(width=blocks_layout.size, depth=2 * most)
        m.submodules.lengths = lengths = SyncFIFO(width=max(bits(most), 1), depth=4)
        request = Signal(name="write_request")
        sources = range(self.sources)
        waiting = [Signal(range(_MOST_BURSTS + 1), name=f"bursts{n}") for n in sources]
        m.d.comb += request.eq(port.request & ~self.hold)
        c = _Collector(m, "write", most=most, request=request, row=port.address, source=self.source)
        fits = lengths.w_rdy & (Array(waiting)[c.source] != _MOST_BURSTS)
        gate = SimpleNamespace(
            offers=c.offers & fits, sent=c.sent, source=c.source, row=c.row, count=c.count
        )
        full = self._send(m, "aw", [gate])  # pyright: ignore[reportArgumentType]
        entering, leaving = (
            data.View(blocks_layout, blocks.w_data),
            data.View(blocks_layout, blocks.r_data),
        )
        m.d.comb += [
            port.grant.eq(request & c.room & blocks.w_rdy),
            c.taken.eq(port.grant),
            entering.data.eq(port.data),
            entering.enable.eq(port.enable),
            blocks.w_en.eq(port.grant),
            lengths.w_data.eq(c.count),
            lengths.w_en.eq(c.sent),
        ]
        self._send_blocks(m, leaving, blocks, lengths)
        for n, bursts in enumerate(waiting):
            answered = self.b.valid & (self.b.payload.id == n)
            m.d.sync += bursts.eq(bursts + (c.sent & (c.source == n)) - answered)
            m.d.comb += [
                self.write_open[n].eq((bursts != 0) | (c.open & (c.source == n))),
                self.write_error[n].eq(answered & self.b.payload.resp[1]),
            ]
        return [~self.write_open.any(), ~full]

    def _send_blocks(self, m: Module, leaving: Any, blocks: SyncFIFO, lengths: SyncFIFO) -> None:
        """Send the blocks of the bursts whose addresses have been sent."""
        beat = Signal(range(max(self.beats, 2)), name="write_beat")
        block = Signal(range(max(self.burst_blocks, 2)), name="write_block")
        last_beat, last_block = beat == self.beats - 1, block == lengths.r_data
        sent = self.w.valid & self.w.ready
        width, strobes = self.width, self.width // 8
        m.d.comb += [
            self.w.valid.eq(lengths.r_rdy),
            self.w.payload.data.eq(
                Array(leaving.data[width * i : width * i + width] for i in range(self.beats))[beat]
            ),
            self.w.payload.strb.eq(
                Array(
                    leaving.enable[strobes * i : strobes * i + strobes] for i in range(self.beats)
                )[beat]
            ),
            self.w.payload.last.eq(last_beat & last_block),
            blocks.r_en.eq(sent & last_beat),
            lengths.r_en.eq(sent & self.w.payload.last),
        ]
        with m.If(sent):
            m.d.sync += beat.eq(Mux(last_beat, 0, beat + 1))
            with m.If(last_beat):
                m.d.sync += block.eq(Mux(last_block, 0, block + 1))


def master_members(width: int, id_bits: int) -> dict[str, Any]:
    """Return the members of a component with an AXI4 master, with the port names of Vivado."""
    address = {"id": id_bits, "addr": ADDRESS_BITS, "len": 8, "size": 3, "burst": 2, "cache": 4}
    channels = {
        "ar": (Out, address | {"prot": 3}),
        "aw": (Out, address | {"prot": 3}),
        "w": (Out, {"data": width, "strb": width // 8, "last": 1}),
        "r": (In, {"id": id_bits, "data": width, "resp": 2, "last": 1}),
        "b": (In, {"id": id_bits, "resp": 2}),
    }
    members: dict[str, Any] = {}
    for name, (there, parts) in channels.items():
        back = In if there is Out else Out
        members |= {f"m_axi_{name}{part}": there(size) for part, size in parts.items()}
        members |= {f"m_axi_{name}valid": there(1), f"m_axi_{name}ready": back(1)}
    return members


def connect_master(m: Module, top: Any, master: AxiMaster) -> None:
    """Connect the channels of a master to the members of ``master_members``."""

    def port(name: str) -> Any:
        return getattr(top, f"m_axi_{name}")

    for name in ("ar", "aw", "w"):
        channel = getattr(master, name)
        m.d.comb += [port(f"{name}valid").eq(channel.valid), channel.ready.eq(port(f"{name}ready"))]
        for part in channel.payload.shape().members:
            m.d.comb += port(f"{name}{part}").eq(channel.payload[part])
        if name != "w":
            m.d.comb += [
                port(f"{name}size").eq(bits(master.width // 8)),
                port(f"{name}burst").eq(_INCR),
                port(f"{name}cache").eq(_NORMAL),
                port(f"{name}prot").eq(0),
            ]
    for name in ("r", "b"):
        channel = getattr(master, name)
        m.d.comb += [channel.valid.eq(port(f"{name}valid")), port(f"{name}ready").eq(channel.ready)]
        for part in channel.payload.shape().members:
            m.d.comb += channel.payload[part].eq(port(f"{name}{part}"))
