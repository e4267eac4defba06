"""A bench for the bridge from a serial line: random requests over a line that makes mistakes."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from vitruvian.hdl.bus.bridge import UartBridge
from vitruvian.sim.board.model import LineModel
from vitruvian.sim.board.stream import ModelStream
from vitruvian.sim.host.client import Client, Traffic
from vitruvian.sim.host.frames import MOST_WORDS
from vitruvian.sim.host.port import ByteStream

#: Address of the register that counts its reads.
POPPED = 255
_MASK = (1 << 32) - 1


class SummingRegisters(wiring.Component):
    """Bridge in front of registers that show whether an access was executed once.

    A write adds to a register. A read of the register ``POPPED`` returns the number of its reads.

    Parameters
    ----------
    divisor, quiet_bits : int
        Parameters of the bridge.
    bridge : type
        Class of the bridge, for example of a mutant.

    Members
    -------
    rx, tx, led : In(1), Out(1), Out(1)
        The line, and 1 while the bridge works.
    """

    if TYPE_CHECKING:
        rx: Signal
        tx: Signal
        led: Signal

    def __init__(self, *, divisor: int, quiet_bits: int = 64, bridge: type = UartBridge):
        self.divisor, self.quiet_bits, self._bridge = divisor, quiet_bits, bridge
        super().__init__({"rx": In(1), "tx": Out(1), "led": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Return the bridge, a memory of the registers, and the counter of reads."""
        del platform
        m = Module()
        m.submodules.bridge = bridge = self._bridge(
            divisor=self.divisor, quiet_bits=self.quiet_bits
        )
        m.submodules.memory = memory = Memory(shape=32, depth=256, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        request, response = bridge.bus.request, bridge.bus.response
        full, value, pops = Signal(), Signal(32), Signal(32)
        # The target makes the bridge wait in most cycles, for requests as well as for responses.
        pause = Signal(2)
        m.d.sync += pause.eq(pause + 1)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            self.led.eq(bridge.busy),
            read.addr.eq(request.payload.address),
            write.addr.eq(request.payload.address),
            write.data.eq(read.data + request.payload.data),
            # Both conditions hold in one of four cycles.
            request.ready.eq(~full & (pause == 0)),
            response.valid.eq(full & (pause == 2)),
            response.payload.eq(value),
        ]
        with m.If(request.valid & request.ready):
            m.d.comb += write.en.eq(request.payload.write)
            m.d.sync += [full.eq(1), value.eq(Mux(request.payload.write, 0, read.data))]
            # Like a FIFO: a read that is executed twice is noticed.
            with m.If(~request.payload.write & (request.payload.address == POPPED)):
                m.d.sync += [pops.eq(pops + 1), value.eq(pops)]
        with m.If(response.valid & response.ready):
            m.d.sync += full.eq(0)
        return m


@dataclass(frozen=True)
class Faults:
    """Probabilities that a frame is damaged on its way, in either direction.

    Attributes
    ----------
    flip : float
        A byte gets a wrong bit.
    lose : float
        A byte is lost.
    insert : float
        A random byte is inserted.
    drop : float
        The whole frame is lost.
    follow : float
        Another request follows at once, before the response; only on the way to the board.
    """

    flip: float = 0.0
    lose: float = 0.0
    insert: float = 0.0
    drop: float = 0.0
    follow: float = 0.0


class FaultyStream:
    """A line that damages frames at random.

    Parameters
    ----------
    stream : ByteStream
        The line without faults.

    Attributes
    ----------
    damaged : int
        Number of faults so far.
    """

    def __init__(self, stream: ByteStream, faults: Faults, *, seed: int = 1):
        self._stream, self._faults = stream, faults
        self._random = random.Random(seed)
        self.damaged = 0

    def write(self, data: bytes) -> None:
        """Send bytes to the board, some of them wrong."""
        sent = self._damage(data)
        if self._random.random() < self._faults.follow:
            self.damaged += 1
            # The same request a second time, as a host repeats it after a lost answer.
            sent += data
        self._stream.write(sent)

    def read(self, seconds: float) -> bytes:
        """Return bytes from the board, some of them wrong."""
        data = self._stream.read(seconds)
        return self._damage(data) if data else data

    def close(self) -> None:
        """Close the line."""
        self._stream.close()

    def _damage(self, data: bytes) -> bytes:
        """Return the bytes with at most one fault of each kind."""
        octets, rng, faults = bytearray(data), self._random, self._faults
        chances = [rng.random() for _ in range(4)]
        at = [rng.randrange(len(octets)) for _ in range(3)]
        if chances[0] < faults.flip:
            octets[at[0]] ^= 1 << rng.randrange(8)
        if chances[1] < faults.insert:
            octets.insert(at[1], rng.randrange(256))
        if chances[2] < faults.lose:
            del octets[at[2]]
        if chances[3] < faults.drop:
            octets.clear()
        self.damaged += bytes(octets) != data
        return bytes(octets)


def soak(
    model: LineModel, *, requests: int, faults: Faults | None = None, seed: int = 1
) -> tuple[int, Traffic]:
    """Compare random requests to ``SummingRegisters`` with a model of the registers.

    Parameters
    ----------
    model : LineModel
        The compiled registers, just after their reset.
    requests : int
        Number of random requests. A read of all registers follows them.
    faults : Faults, optional
        Faults of the line.
    seed : int
        Seed of the requests and of the faults.

    Returns
    -------
    checked : int
        Words that were compared.
    traffic : Traffic
        Counts of requests and repetitions.

    Raises
    ------
    AssertionError
        If a word differs.
    WorkError
        If the bridge does not answer.
    """
    rng = random.Random(seed)
    client = Client(FaultyStream(ModelStream(model), faults or Faults(), seed=seed), timeout=0)
    registers, pops, checked = [0] * 256, 0, 0
    client.start("identity", 1)
    for number, (address, count, increment, write) in enumerate(_requests(rng, requests)):
        places = [(address + n * increment) % 256 for n in range(count)]
        if write:
            words = tuple(rng.getrandbits(32) for _ in places)
            client.transfer(address, count, words, increment=increment)
            for place, word in zip(places, words, strict=True):
                # In Python, + binds before &.
                registers[place] = registers[place] + word & _MASK
            continue
        expected = []
        for place in places:
            expected.append(pops if place == POPPED else registers[place])
            pops += place == POPPED
        words = client.transfer(address, count, increment=increment)
        if words != tuple(expected):
            at = next(n for n, word in enumerate(words) if word != expected[n])
            raise AssertionError(
                f"request {number}: read of {places[at]:#x}: {words[at]:#010x}, "
                f"not {expected[at]:#010x} (seed {seed})"
            )
        checked += count
    return checked, client.traffic


def _requests(rng: random.Random, count: int) -> Iterator[tuple[int, int, bool, bool]]:
    """Return address, count of words, increment and write of random requests, then reads of all."""
    for _ in range(count):
        # Random addresses would hardly ever meet it.
        address = POPPED if rng.random() < 0.2 else rng.randrange(256)
        length = rng.choice((0, 1, 2, rng.randrange(8), rng.randrange(MOST_WORDS + 1)))
        yield address, length, rng.random() < 0.5, rng.random() < 0.5
    for address in range(0, 256, 32):
        yield address, 32, True, False
