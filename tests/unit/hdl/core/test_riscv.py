"""The RISC-V of unit S beside golden's: random programs with every instruction."""

import random
import re
from typing import Any

import numpy as np
import pytest

from vitruvian.golden.core import memory_map
from vitruvian.golden.core.riscv import Hart, IllegalInstruction
from vitruvian.hdl.core.riscv_board import ScalarBoard
from vitruvian.sim import rtl
from vitruvian.sim.rtl.emit import to_verilog

_OWN, _UB, _GM = 8192, 1024, 8192  # an image fills global memory
_WRITE, _START = range(2)


def scalar_board() -> ScalarBoard:
    """Return unit S with memories; its quiet times come and go."""
    return ScalarBoard(memory_bytes=_OWN, ub_bytes=_UB, gm_bytes=_GM)


class GoldenBus:
    """The same memories for golden's hart; words go to a list, and 0 ends the program."""

    def __init__(self, image: bytes):
        self.own = bytearray(image.ljust(_OWN, b"\0"))
        self.gm, self.ub = bytearray(_GM), bytearray(_UB)
        self.gm[: len(image)] = image
        self.words: list[int] = []
        self.lower = 0

    def _memory(self, address: int) -> tuple[bytearray, int]:
        region = address >> memory_map.REGION_LOW
        memory = self.gm if region >= 8 else {0: self.ub, 1: self.own}[region]
        return memory, address & (0x7FFFFFFF if region >= 8 else 0x0FFFFFFF)

    def load(self, address: int, size: int) -> int:
        """Return bytes as an integer."""
        memory, place = self._memory(address)
        return int.from_bytes(memory[place : place + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Write bytes, or half a word of an instruction."""
        value &= (1 << 8 * size) - 1
        if address == memory_map.QUEUE:
            self.lower = value
        elif address == memory_map.QUEUE + 4:
            self.words.append(value << 32 | self.lower)
        else:
            memory, place = self._memory(address)
            memory[place : place + size] = value.to_bytes(size, "little")


def _r(kind, rd, a, b, function=0):
    return function << 25 | b << 20 | a << 15 | kind << 12 | rd << 7 | 0x33


def _i(kind, rd, a, value, opcode=0x13):
    return (value & 0xFFF) << 20 | a << 15 | kind << 12 | rd << 7 | opcode


def _s(kind, a, b, offset):
    return (offset >> 5 & 0x7F) << 25 | b << 20 | a << 15 | kind << 12 | (offset & 31) << 7 | 0x23


def _b(kind, a, b, offset):
    high = (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3F) << 25
    low = (offset >> 1 & 0xF) << 8 | (offset >> 11 & 1) << 7
    return high | b << 20 | a << 15 | kind << 12 | low | 0x63


def _j(rd, offset):
    high = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21
    return high | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xFF) << 12 | rd << 7 | 0x6F


def _u(rd, value, opcode=0x37):
    return (value & 0xFFFFF) << 12 | rd << 7 | opcode


#: Registers with addresses of the three memories, and the counter of a loop.
_BASES = {28: memory_map.CODE + 4096, 29: memory_map.UB, 30: memory_map.GM + 4096}
_LOOP = 31
_PLAIN = 28  # registers 0 to 27 hold random numbers


def _step(rng: random.Random) -> list[Any]:
    """Return one step: instructions, of which one may be a function of the distance to a later."""
    rd, a, b = (rng.randrange(_PLAIN) for _ in range(3))
    choice = rng.randrange(11)
    if choice < 2:
        return [_r(rng.randrange(8), rd, a, b)]
    if choice == 2:
        return [_r(rng.choice((0, 5)), rd, a, b, 0x20)]
    if choice == 3:
        return [_r(rng.randrange(4), rd, a, b, 1)]
    if choice == 4:
        kind = rng.randrange(8)
        value = rng.randrange(32) if kind in (1, 5) else rng.randrange(4096)
        return [_i(kind, rd, a, value | (0x400 if kind == 5 and rng.random() < 0.5 else 0))]
    if choice == 5:
        return [_u(rd, rng.getrandbits(20), rng.choice((0x37, 0x17)))]
    base, size = rng.choice(list(_BASES)), rng.randrange(3)
    place = rng.randrange(0, 512, 1 << size)
    if choice in (6, 7):
        kind = size | (4 if size < 2 and rng.random() < 0.5 else 0)
        return [_i(kind, rd, base, place, 0x03)]
    if choice == 8:
        return [_s(size, base, b, place)]
    if choice == 9:
        kind = rng.choice((0, 1, 4, 5, 6, 7))
        return [lambda distance: _b(kind, a, b, distance)]
    if rng.random() < 0.5:
        return [lambda distance: _j(rd, distance)]
    link, back = rng.randrange(1, _PLAIN), rng.randrange(_PLAIN)
    # Bit 0 of the sum is ignored.
    return [_u(link, 0, 0x17), lambda distance: _i(0, back, link, distance + 5, 0x67)]


def _steps(rng: random.Random, count: int) -> list[int]:
    steps = [_step(rng) for _ in range(count)] + [[_i(0, 0, 0, 0)]] * 12
    starts = np.cumsum([0, *map(len, steps)]).tolist()
    words: list[int] = []
    for n, step in enumerate(steps):
        for instruction in step:
            later = starts[min(n + rng.randrange(1, 12), len(steps) - 1)]
            distance = 4 * (later - len(words))
            words.append(instruction if isinstance(instruction, int) else instruction(distance))
    return words


def program_of(seed: int, count: int = 80) -> bytes:
    """Return the image of a random program that passes its registers as words at the end."""
    rng = random.Random(seed)
    # UB gets known bytes first.
    body = [_i(0, 1, 0, 1020), _s(2, 1, 1, 0), _i(0, 1, 1, -4), _b(5, 1, 0, -8)]
    for register in range(1, _PLAIN):
        upper = rng.choice((0, 0x7FFFF, 0x80000, 0xFFFFF, rng.getrandbits(20)))
        body += [_u(register, upper), _i(0, register, register, rng.getrandbits(12))]
    body += [_u(base, address >> 12) for base, address in _BASES.items()]
    for _ in range(4):
        body.append(_i(0, _LOOP, 0, 3))
        loop = _steps(rng, count)
        body += [*loop, _i(0, _LOOP, _LOOP, -1), _b(1, _LOOP, 0, -4 * (len(loop) + 1))]
    body.append(_u(_LOOP, memory_map.QUEUE >> 12))
    for register in range(1, _PLAIN, 2):
        body += [_s(2, _LOOP, register, 0), _s(2, _LOOP, register + 1, 4)]
    body += [_s(2, _LOOP, 0, 0), _s(2, _LOOP, 0, 4), _j(0, 0)]
    return image_of(body, rng.randbytes(_OWN))


def image_of(body: list[int], rest: bytes = bytes(_OWN)) -> bytes:
    """Return an image that fills the memory: a head, instructions, and other bytes."""
    head = [_j(0, memory_map.HEAD_BYTES), _OWN // 32, 0, 1, 0, 0, 0, 0]
    code = np.array(head + body, np.uint32).tobytes()
    return code + rest[len(code) :]


def golden_words(image: bytes, count: int) -> tuple[list[int], Hart]:
    """Return so many words of a program, and the hart that ran it."""
    bus = GoldenBus(image)
    hart = Hart(bus, memory_map.CODE)
    while len(bus.words) < count:
        hart.step()
        assert hart.count < 20_000
    return bus.words, hart


def rtl_run(model: Any, image: bytes, count: int) -> Any:
    """Run an image on the compiled unit until it has passed a number of words."""
    blocks = len(image) // 32
    kind = np.array([_WRITE] * blocks + [_START], np.uint8)
    address = np.array([*range(0, len(image), 32), 0], np.uint32)
    rows = np.zeros((blocks + 1, 4), np.uint64)
    rows[:blocks] = np.frombuffer(image, np.uint64).reshape(blocks, 4)
    return model.stream(
        inputs={"i": {"kind": kind, "address": address, "data": rows}},
        outputs={"o": count},
        quiet_limit=100_000,
    )


@pytest.fixture(scope="module")
def model():
    """Return the compiled unit."""
    return rtl.compile(scalar_board())


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_pass_the_words_of_golden(seed, model):
    image = program_of(seed)
    words, hart = golden_words(image, _PLAIN // 2 + 1)
    assert hart.count > 300
    done = rtl_run(model, image, len(words))
    assert np.asarray(done.outputs["o"]).tolist() == words
    assert not done.ports["trap"]


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        (0x00000000, "no instruction"),
        (_r(4, 1, 2, 3, 1), "no instruction"),  # a division
        (_r(1, 1, 2, 3, 0x20), "no instruction"),
        (_i(1, 1, 2, 0x420), "no instruction"),
        (_i(2, 1, 29, 2, 0x03), "multiple of 4"),
        (_s(1, 29, 1, 1), "multiple of 2"),
        (_b(2, 0, 0, 8), "no instruction"),
        (_i(3, 1, 29, 0, 0x03), "no instruction"),
        (_j(0, 6), "no instruction"),
    ],
)
def test_mistakes_of_a_program_stop_it(instruction, reason, model):
    image = image_of([_u(29, 0), instruction, _u(1, memory_map.QUEUE >> 12), _s(2, 1, 0, 4)])
    bus = GoldenBus(image)
    hart = Hart(bus, memory_map.CODE)
    with pytest.raises(IllegalInstruction, match=reason):
        for _ in range(10):
            hart.step()
    with pytest.raises(rtl.StreamError, match="o gave 0 of 1"):
        rtl_run(model, image, 1)


def test_an_address_without_memory_stops_it(model):
    image = image_of([_u(1, 0x30000), _i(2, 2, 1, 0, 0x03), *[_i(0, 0, 0, 0)] * 2])
    with pytest.raises(rtl.StreamError, match="o gave 0 of 1"):
        rtl_run(model, image, 1)


def test_instructions_take_the_cycles_of_the_docstring(model):
    """One for most, two for a product and for a load, and a jump to another block costs two."""

    def cycles(body):
        end = [_u(31, memory_map.QUEUE >> 12), _s(2, 31, 0, 4)]
        return rtl_run(model, image_of([*body, *end]), 1).cycles

    nothing = [_i(0, 0, 0, 0)] * 64
    base = cycles(nothing)
    assert cycles([*nothing, *nothing[:32]]) == base + 32
    assert cycles([_r(0, 1, 2, 3, 1)] * 32 + nothing[32:]) == base + 32
    own = _u(28, memory_map.CODE >> 12)
    loads = [own, *[_i(2, 1, 28, 0, 0x03)] * 16, *nothing[17:]]
    assert cycles(loads) >= base + 16
    # 32 jumps to the block after next.
    jumps = ([_j(0, 64)] + [_i(0, 0, 0, 0)] * 15) * 4
    assert cycles(jumps) == base - 64 + 4 + 4 * 2


def _differs(model: Any) -> bool:
    """Return True if a model passes other words than golden in one of ten programs."""
    for seed in range(10):
        image = program_of(seed)
        words, _ = golden_words(image, _PLAIN // 2 + 1)
        try:
            found = np.asarray(rtl_run(model, image, len(words)).outputs["o"]).tolist()
        except rtl.StreamError:
            return True
        if found != words:
            return True
    return False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r" >>> ", " >> "),  # an arithmetic shift
        (r"\$signed\((\S+) \) < \$signed\(second\)", r"\1  < second"),  # slt
        (r"\$signed\((\S+) \) < \$signed\(b\)", r"\1  < b"),  # blt
        (r"\{ signs\[1\], b \}", "{ 1'h0, b }"),  # mulh
    ],
)
def test_a_changed_processor_is_noticed(old, new):
    text, count = re.subn(old, new, to_verilog(scalar_board()))
    assert count == 1
    assert _differs(rtl.compile_verilog(text, interface=scalar_board()))
