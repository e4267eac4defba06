"""Stimuli of the units behind buses with golden's results, as the words of their channels."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vitruvian.common.validate import ceil_div
from vitruvian.hdl.bus.axi import Channel, StreamUnit
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.lite import BYTE_ADDRESS_BITS, LiteUnit, Reply
from vitruvian.hdl.bus.registers import MAP, WORD_BITS, constants
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.elaborate import only_described
from vitruvian.sim.bench.arrays import Arrays
from vitruvian.sim.bench.m3xu.vectors import draw
from vitruvian.sim.host.frames import MOST_WORDS, Request, Response
from vitruvian.sim.rtl.ports import Interface, Port, Stream, plain_port

from .beats import make_beats
from .commands import make_packets

#: Expected words of a product of few elements, in the mean, behind AXI4-Lite and on a serial line.
_LITE_WORDS, _LINE_BYTES = 32, 100
#: Cycles from the address of a read to the address of the next one, at least.
_READ_CYCLES = 3


@dataclass(frozen=True)
class _BusAccess:
    """A write, or a read with golden's value, of words of one register."""

    register: str
    write: bool
    words: tuple[int, ...]


def _accesses(core: BusCore, *, count: int, seed: int) -> Iterator[_BusAccess]:
    """Yield the accesses of a driver that computes about a number of products.

    Between them the driver reads registers whose value never changes, so that it need not ask
    whether the unit has finished.
    """
    constant = constants(core)
    for name, value in constant.items():
        yield _BusAccess(name, False, (value,))
    rest = _BusAccess("identity", False, (constant["identity"],))
    steps = max(map(core.matrix_unit.steps, core.precisions), default=1)
    pause = [rest] * ceil_div(core.latency + steps + 2, _READ_CYCLES)
    products = _instructions if core.kind == "mma" else _beats
    yield from products(core, pause, count, seed)
    yield _BusAccess("errors", False, (0,))


def _beats(core: BusCore, pause: list[_BusAccess], count: int, seed: int) -> Iterator[_BusAccess]:
    """Yield the accesses for the products of a unit of beats."""
    for beat in make_beats(core, random.Random(seed), count=count):
        for name, words in beat.words.items():
            yield _BusAccess(f"{name}_data", True, tuple(words))
        yield _BusAccess("command", True, (beat.command,))
        yield from pause
        status = MAP["status"].field("ready").mask | MAP["status"].field("c_ready").mask
        done = MAP["status"].field("d_valid").mask if beat.results else 0
        yield _BusAccess("status", False, (status | done,))
        for words in beat.results:
            yield _BusAccess("d_data", False, tuple(words))


def _instructions(
    core: BusCore, pause: list[_BusAccess], count: int, seed: int
) -> Iterator[_BusAccess]:
    """Yield the accesses for the products of a unit that runs instructions."""
    unit = only_described(core.build())
    # An instruction has many beats, and a beat many words.
    drawn = draw(core.matrix_unit, unit, count=count, seed=seed)
    c, d = iter(drawn.words["c"]), iter(drawn.words["o"])
    a_mask, fetch = (1 << core.a_bits) - 1, MAP["fetch"]
    before = -1
    for n, ab in enumerate(drawn.words["ab"]):
        beat = {name: int(values[n]) for name, values in drawn.beats.items()}
        instruction = drawn.program[beat["instruction"]]
        complex_parts = 1 + instruction.opcode.precision.is_complex
        if beat["instruction"] != before:
            yield _BusAccess("instruction", True, (instruction.encode(),))
            yield from pause
            before = beat["instruction"]
        names = ("row", "column", "block", "first", "last")
        request = sum(beat[name] << fetch.field(name).low for name in names)
        yield _BusAccess("fetch", False, (request | fetch.field("valid").mask,))
        yield _BusAccess("a_data", True, _split(ab & a_mask, core.a_bits))
        yield _BusAccess("b_data", True, _split(ab >> core.a_bits, core.b_bits))
        added = complex_parts if beat["first"] and instruction.accumulates else 0
        if added:
            yield _BusAccess("c_data", True, _split(next(c), core.d_bits))
        yield _BusAccess("send", True, (0,))
        yield from pause
        if added > 1:
            yield _BusAccess("c_data", True, _split(next(c), core.d_bits))
            yield from pause
        for _ in range(complex_parts if beat["last"] else 0):
            yield _BusAccess("d_data", False, _split(next(d), core.d_bits))
            yield from pause


def _split(value: int, bits: int) -> tuple[int, ...]:
    """Return a long value as words of a register, the lowest first."""
    mask = (1 << WORD_BITS) - 1
    return tuple(value >> at & mask for at in range(0, bits, WORD_BITS))


def packets(unit: Any, count: int, seed: int) -> Arrays:
    """Return random commands with their packets for a unit between AXI4-Stream ports."""
    assert isinstance(unit, StreamUnit)
    words = _instruction_words if unit.core.kind == "mma" else _command_words
    words = words(unit, count, seed)
    ins = tuple(channel for channel in unit.channels if channel.inward)
    outs = tuple(channel for channel in unit.channels if not channel.inward)
    return Arrays(
        interface=Interface(
            outputs=tuple(plain_port(name, 1) for name in unit.events),
            streams_in=tuple(_channel(channel) for channel in ins),
            streams_out=tuple(_channel(channel) for channel in outs),
        ),
        inputs={channel.name: words[channel.name] for channel in ins},
        outputs={channel.name: words[channel.name] for channel in outs},
        nets={channel.name: _nets(channel) for channel in unit.channels if channel.last},
        zeros=unit.events,
    )


def _command_words(unit: StreamUnit, count: int, seed: int) -> dict[str, list[int]]:
    """Return the words of the ports of a unit of beats."""
    drawn = make_packets(unit.core, count=max(count // 2, 1), seed=seed)
    words: dict[str, list[int]] = {"command": drawn.commands}
    for channel in unit.channels:
        if channel.name == "command":
            continue
        words[channel.name] = []
        for packet in drawn.d if channel.name == "d" else drawn.inputs[channel.name]:
            octets = channel.data_bits // 8
            items = [packet[at : at + octets] for at in range(0, len(packet), octets)]
            for number, item in enumerate(items):
                last = channel.last and number == len(items) - 1
                word = int.from_bytes(item, "little") | last << channel.data_bits
                words[channel.name].append(word)
    return words


def _instruction_words(unit: StreamUnit, count: int, seed: int) -> dict[str, list[int]]:
    """Return the words of the ports of a unit that runs instructions."""
    core = unit.core
    inner = only_described(core.build())
    drawn = draw(core.matrix_unit, inner, count=count, seed=seed)
    words, owners = drawn.words, drawn.owners
    ends = [owner != after for owner, after in zip(owners, [*owners[1:], -1], strict=True)]
    return {
        "instruction": words["i"],
        "fetch": words["fetch"],
        "a": [word & (1 << core.a_bits) - 1 for word in words["ab"]],
        "b": [word >> core.a_bits for word in words["ab"]],
        "c": words["c"],
        "d": [word | end << core.d_bits for word, end in zip(words["o"], ends, strict=True)],
    }


def _nets(channel: Channel) -> dict[str, int]:
    """Return the nets of an item of a port and their widths, the highest first."""
    last = {f"{channel.prefix}_tlast": 1} if channel.last else {}
    return last | {f"{channel.prefix}_tdata": channel.data_bits}


def _channel(channel: Channel) -> Stream:
    return _stream(channel.name, _nets(channel), f"{channel.prefix}_t")


def _stream(name: str, nets: dict[str, int], prefix: str) -> Stream:
    """Return the stream of a channel whose words consist of some nets."""
    text = ", ".join(nets)
    payload: Port = plain_port(f"{{{text}}}" if len(nets) > 1 else text, sum(nets.values()))
    return Stream(name=name, payload=payload, valid=f"{prefix}valid", ready=f"{prefix}ready")


#: Channels of AXI4-Lite -> nets of a word and their widths, the highest first.
_LITE = {
    "aw": {"s_axi_awaddr": BYTE_ADDRESS_BITS},
    "w": {"s_axi_wstrb": WORD_BITS // 8, "s_axi_wdata": WORD_BITS},
    "ar": {"s_axi_araddr": BYTE_ADDRESS_BITS},
    "b": {"s_axi_bresp": 2},
    "r": {"s_axi_rresp": 2, "s_axi_rdata": WORD_BITS},
}
_STROBES = (1 << WORD_BITS // 8) - 1 << WORD_BITS


def accesses(unit: Any, count: int, seed: int) -> Arrays:
    """Return random products at the registers of a unit behind an AXI4-Lite port.

    A read follows the responses to all writes before it, and a write those to all reads.
    """
    assert isinstance(unit, LiteUnit)
    words: dict[str, list[int]] = {name: [] for name in _LITE}
    after = {key: list[int]() for key in (("aw", "r"), ("w", "r"), ("ar", "b"))}
    for access in _accesses(unit.core, count=max(count // _LITE_WORDS, 2), seed=seed):
        address = MAP[access.register].offset
        for word in access.words:
            if access.write:
                words["aw"].append(address)
                words["w"].append(word | _STROBES)
                words["b"].append(Reply.OKAY.value)
                for channel in ("aw", "w"):
                    after[channel, "r"].append(len(words["r"]))
            else:
                after["ar", "b"].append(len(words["b"]))
                words["ar"].append(address)
                words["r"].append(word | Reply.OKAY.value << WORD_BITS)
    streams = {name: _stream(name, nets, f"s_axi_{name}") for name, nets in _LITE.items()}
    return Arrays(
        interface=Interface(
            streams_in=tuple(streams[name] for name in ("aw", "w", "ar")),
            streams_out=tuple(streams[name] for name in ("b", "r")),
        ),
        inputs={name: words[name] for name in ("aw", "w", "ar")},
        outputs={name: words[name] for name in ("b", "r")},
        nets={name: _LITE[name] for name in ("w", "r")},
        after=after,
    )


def requests(unit: Any, count: int, seed: int) -> Arrays:
    """Return random products as the bytes of a serial line.

    A request follows the response to the one before.
    """
    assert isinstance(unit, SerialUnit)
    sent, received, after = bytearray(), bytearray(), list[int]()
    sequence = 0
    for access in _accesses(unit.core, count=max(count // _LINE_BYTES, 2), seed=seed):
        if access.register == "identity" and sequence:
            continue  # a request takes longer than the unit
        for at in range(0, len(access.words), MOST_WORDS):
            part = access.words[at : at + MOST_WORDS]
            request = Request(
                sequence=sequence,
                address=MAP[access.register].address,
                count=len(part),
                words=part if access.write else None,
            )
            after += [len(received)] * len(bytes(request))
            sent += bytes(request)
            received += bytes(Response(sequence=sequence, words=() if access.write else part))
            sequence = sequence % 255 + 1  # 0 begins a session
    return Arrays(
        interface=Interface(
            inputs=(plain_port("rx", 1),),
            outputs=tuple(plain_port(name, 1) for name in ("tx", "led")),
        ),
        inputs={"rx": list(sent)},
        outputs={"tx": list(received)},
        after={("rx", "tx"): after},
        bit_cycles=unit.divisor,
    )
