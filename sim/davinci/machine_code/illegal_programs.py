"""Random programs with one illegal instruction, and what a core must say about it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, UNITS
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.rtl import StreamError
from vitruvian.sim.rtl.core import CoreFault, run_words
from vitruvian.sim.rtl.core_stop import Stop

from .encode import Texts, encode
from .random_programs import RandomProgram

#: A flag that random programs do not use, and the value of memory that nothing has written.
_FLAG, _BLANK = 7, 0xEE
#: Copies to global memory before and behind the illegal instruction, and their bytes.
_MARKS, _MARK_BYTES = 2, 64
#: A byte that no global memory of a board has.
_FAR = 1 << 28
_QUEUED = UNITS[:6]

Words = tuple[int, ...]


@dataclass(frozen=True)
class IllegalProgram:
    """A program with an illegal instruction.

    Attributes
    ----------
    kind : str
        What is illegal.
    words, memory : ndarray
        The program, and global memory at the start.
    fault, unit, op : str
        What the registers of the core must say; ``op`` is empty for an unknown opcode.
    pc : int
        The number of the word.
    marks : list of int
        First bytes of blocks of memory that copies of MTE3 write, in their order.
    before : int
        How many of the copies precede the illegal instruction.
    ordered : bool
        True if a barrier of all units stands before the illegal instruction.
    waits : dict
        The flags that units wait for.
    """

    kind: str
    words: np.ndarray
    memory: np.ndarray
    fault: str
    unit: str
    op: str
    pc: int
    marks: list[int]
    before: int
    ordered: bool
    waits: dict[str, tuple[str, int, int]] = field(default_factory=dict)


def _pack(op: str, unit: str, **values: Any) -> Words:
    """Return the words of an instruction; buffers and dtypes are given by their names."""
    codes: dict[str, int] = {"unit": UNITS.index(unit)}
    for name, value in values.items():
        place = name.replace("__", ".")
        if isinstance(value, str):
            names = BUFFERS if place.endswith(".buffer") else DTYPES
            value = (names if place.count(".") else UNITS).index(value)
        codes[place] = value
    return ENCODINGS[op].pack(codes)


def copy_words(
    unit: str,
    dst: tuple[str, int],
    src: tuple[str, int],
    size: int = 64,
    steps: tuple[int, int] | None = None,
) -> Words:
    """Return the words of a copy of two bursts, by default one behind the other.

    ``steps`` are the distances of the bursts in the target and in the source.
    """
    to, through = steps or (size // 2, size // 2)
    return _pack(
        "copy",
        unit,
        dst=dst[1],
        dst__buffer=dst[0],
        src=src[1],
        src__buffer=src[0],
        bursts=2,
        burst_bytes=size // 2,
        dst_stride=to % (1 << 32),
        src_stride=through % (1 << 32),
    )


def _add(dst: int, src: int, repeat: int = 1) -> Words:
    strides = {f"{name}_block_stride": 1 for name in ("dst", "src0", "src1")}
    strides |= {f"{name}_repeat_stride": 8 for name in ("dst", "src0", "src1")}
    places = {"dst": dst, "src0": src, "src1": 0}
    buffers = {f"{name}__buffer": "UB" for name in places}
    return _pack("vadd", "V", **places, **buffers, **strides, repeat=repeat)


def _product(m: int, c: int = 0, a: int = 0) -> Words:
    buffers = {"c__buffer": "L0C", "a__buffer": "L0A", "b__buffer": "L0B"}
    return _pack("mmad", "M", c=c, a=a, b=0, **buffers, c__dtype="fp32", m=m, k=16, n=16)


def _load(op: str, dst: int, src: int) -> Words:
    fields = {"repeat": 1}
    if op == "im2col":
        fields |= {"height": 8, "width": 8, "stride_rows": 1, "stride_columns": 1}
        fields |= {"kernel_rows": 1, "kernel_columns": 1, "dilation_rows": 1, "dilation_columns": 1}
    return _pack(op, "MTE1", dst=dst, dst__buffer="L0A", src=src, src__buffer="L1", **fields)


class _Maker:
    """Illegal instructions of a core, each kind by a method that gives words and the fault."""

    def __init__(self, random: np.random.Generator, sizes: dict[str, int]):
        self.random, self.sizes = random, sizes

    def _choice(self, values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def code(self) -> tuple[Words, str]:
        """Return an opcode that no unit has, or that this unit lacks, or a flag that is missing."""
        known = {encoding.code for encoding in ENCODINGS.values()}
        unknown = [code for code in range(1, 256) if code not in known]
        unit = self.random.integers(len(_QUEUED))
        foreign = [ENCODINGS["mmad"].code if unit != UNITS.index("M") else ENCODINGS["vadd"].code]
        code = self._choice([*unknown[:: len(unknown) // 4], *foreign])
        name, other = UNITS[unit], UNITS[(unit + 1) % len(_QUEUED)]
        return self._choice(
            (
                (code | int(unit) << 8 | 1 << 11,),
                _pack("set_flag", name, source=name, target=other, register=_FLAG + 1),
                _pack("wait_flag", name, source=other, target=name, register=2 * _FLAG),
                _pack("set_flag", name, source=name, target=name, register=_FLAG),
            )
        ), "CODE"

    def length(self) -> tuple[Words, str]:
        """Return an instruction with a wrong number of words."""
        words = self._choice((_add(0, 0), _product(16), copy_words("MTE2", ("UB", 0), ("GM", 0))))
        right = len(words)
        wrong = self._choice([n for n in (0, 1, right - 1, right + 3, 31) if n != right])
        return (words[0] & ~(31 << 11) | wrong << 11, *words[1:]), "CODE"

    def buffer(self) -> tuple[Words, str]:
        """Return an operand in a memory that the unit does not reach."""
        return self._choice(
            (
                copy_words("MTE3", ("UB", 0), ("UB", 0)),
                copy_words("MTE2", ("L0C", 0), ("GM", 0)),
                copy_words("MTE1", ("UB", 0), ("GM", 0)),
                copy_words("V", ("L1", 0), ("UB", 0)),
            )
        ), "CODE"

    def unit(self) -> tuple[Words, str]:
        """Return a unit that the core lacks."""
        words = copy_words("MTE3", ("GM", 0), ("UB", 0))
        return (words[0] & ~(7 << 8) | self._choice((6, 7)) << 8, *words[1:]), "UNIT"

    def align(self) -> tuple[Words, str]:
        """Return an operand at a wrong byte."""
        odd = 2 * int(self.random.integers(1, 16))
        return self._choice(
            (
                _add(odd, 0),
                _add(0, 32 + odd),
                _product(16, c=64),
                _product(16, a=32),
                _load("im2col", 0, odd),
                _load("load", 0, odd),
                copy_words("V", ("UB", odd), ("UB", 0)),
                copy_words("V", ("L0C", 0), ("UB", odd)),
                copy_words("MTE1", ("UB", 0), ("L1", odd)),
                _pack("scalar_store", "S", dst=odd + 1, dst__buffer="UB", value=0),
                _pack("scalar_load", "S", src=4, src__buffer="UB", src__dtype="int64"),
                _pack("scalar_load", "S", src=odd | 2, src__buffer="UB", src__dtype="fp32"),
            )
        ), "ALIGN"

    def bounds(self) -> tuple[Words, str]:
        """Return an operand that begins in its buffer, or behind it, and reaches beyond the end."""
        ub, l1 = self.sizes["UB"], self.sizes["L1"]
        a, c = self.sizes["L0A"], self.sizes["L0C"]
        back = 32 * int(self.random.integers(1, 2))
        return self._choice(
            (
                copy_words("MTE2", ("UB", ub - back), ("GM", 0)),
                copy_words("MTE2", ("L1", l1 - back), ("GM", 0)),
                copy_words("MTE3", ("L1", 0), ("UB", ub - back)),
                copy_words("V", ("L0C", c - back), ("UB", 0)),
                copy_words("V", ("UB", 0), ("UB", 1 << 31)),
                *self._far_bursts(),
                _add(ub - 96, 0),
                _add(0, ub - 256 + back),
                _add(0, ub - 512, repeat=3),
                _product(a // 32 + 16),
                _product(16, c=c),
                _product(65535),
                _load("load", a - 256, 0),
                _load("load", 0, l1 - 480),
                _load("im2col", 0, l1 - 480),
                _load("im2col", 0, 1 << 27),
                _pack("scalar_store", "S", dst=ub, dst__buffer="UB", value=0),
            )
        ), "BOUNDS"

    def _far_bursts(self) -> Iterator[Words]:
        """Give copies whose second burst, or the end of a long one, is not in the buffer."""
        far = 1 << int(self.random.integers(20, 31))
        for step in (far, -far, -64, 96 - (1 << 31)):
            yield copy_words("V", ("UB", 0), ("UB", 32), steps=(32, step))
            yield copy_words("MTE1", ("UB", 32), ("L1", 0), steps=(step, 32))
            yield copy_words("MTE2", ("L1", 32), ("GM", 0), steps=(step, 32))
            yield copy_words("MTE3", ("L1", 0), ("UB", 33), steps=(32, step))
        yield copy_words("MTE3", ("L1", 0), ("UB", 5), size=far)
        yield copy_words("MTE1", ("UB", 0), ("L1", 0), size=far)

    def bus(self) -> tuple[Words, str]:
        """Return an address that global memory does not have."""
        load = {"src": _FAR, "src__buffer": "GM", "src__dtype": "fp16"}
        return self._choice(
            (
                copy_words("MTE2", ("UB", 0), ("GM", _FAR)),
                copy_words("MTE3", ("GM", _FAR), ("UB", 0)),
                _pack("scalar_store", "S", dst=_FAR, dst__buffer="GM", value=0),
                (*_pack("scalar_load", "S", **load, **{"expected?": 1}),),
            )
        ), "BUS"

    def value(self) -> tuple[Words, str]:
        """Return a scalar load of another element; the tensors do not begin with this one."""
        load = {"src": 0, "src__buffer": "GM", "src__dtype": "int64", "expected?": 1}
        return _pack("scalar_load", "S", **load, expected=0x0123456789ABCDEF), "VALUE"

    def deadlock(self) -> tuple[Words, str]:
        """Return a wait for a flag that nothing sets."""
        unit = self._choice(_QUEUED)
        source = self._choice([name for name in _QUEUED if name != unit])
        return _pack("wait_flag", unit, source=source, target=unit, register=_FLAG), "DEADLOCK"

    def flag(self) -> tuple[Words, str]:
        """Return a flag that is set twice; the last instruction is the illegal one."""
        unit = self._choice(_QUEUED)
        target = self._choice([name for name in _QUEUED if name != unit])
        words = _pack("set_flag", unit, source=unit, target=target, register=_FLAG)
        return words + words, "FLAG"


#: The kinds of illegal instructions.
KINDS: tuple[str, ...] = tuple(name for name in vars(_Maker) if not name.startswith("_"))


def illegal_program(seed: int, core: Any, kind: str | None = None) -> IllegalProgram:
    """Return a random legal program with one illegal instruction at a random place.

    Parameters
    ----------
    seed : int
    core : str or CoreConfig
    kind : str, optional
        One of ``KINDS``; by default they take turns.
    """
    made = RandomProgram(seed, core, count=8)
    random = np.random.default_rng([seed, 1])
    kind = kind or KINDS[seed % len(KINDS)]
    wrong, fault = getattr(_Maker(random, made.config.buffers), kind)()
    texts = Texts()
    legal: list[Words] = [encode(instr, texts) for instr in made.core.instructions]
    memory = Functional(made.program).gm
    first = -(-len(memory) // _MARK_BYTES) * _MARK_BYTES
    marks = [first + _MARK_BYTES * n for n in range(2 * _MARKS)]
    image = np.full(first + _MARK_BYTES * len(marks), _BLANK, np.uint8)
    image[: len(memory)] = memory
    copies = [copy_words("MTE3", ("GM", mark), ("UB", 0), _MARK_BYTES) for mark in marks]
    ordered = bool(random.integers(2))
    place = int(random.integers(len(legal) + 1))
    head = [*legal[:place], *copies[:_MARKS]]
    if ordered:
        head.append(_pack("pipe_barrier", "S"))
    one = len(wrong) // 2 if kind == "flag" else 0  # the first of two equal instructions
    pc = sum(map(len, head)) + one
    words = [*head, wrong, *copies[_MARKS:], *legal[place:], (0,)]
    unit = wrong[0] >> 8 & 7
    name = UNITS[unit] if unit < len(UNITS) else f"unit {unit}"
    codes = {encoding.code: op for op, encoding in ENCODINGS.items()}
    waits = {}
    if kind == "deadlock":
        source = ENCODINGS["wait_flag"].unpack(wrong)[0]["source"]
        waits = {name: (UNITS[source], _FLAG, pc)}
    return IllegalProgram(
        kind,
        np.array([word for each in words for word in each], np.uint64),
        image,
        fault,
        name,
        codes.get(wrong[0] & 0xFF, ""),
        pc,
        marks,
        _MARKS,
        ordered,
        waits,
    )


def wrong_answers(
    program: IllegalProgram, core: Any, *, latency: int = 1, noise: int = 0
) -> Iterator[str]:
    """Yield what a core says or does wrong in a program.

    Parameters
    ----------
    latency, noise : int
        As ``run_words`` takes them.
    """
    try:
        run_words(core, program.memory, program.words, latency=latency, noise=noise)
    except StreamError as error:
        yield f"the core hangs: {error}"
        return
    except CoreFault as fault:
        stop, after = fault.stop, fault.memory
    else:
        yield f"the core ends without the fault {program.fault}"
        return
    if program.kind == "deadlock":
        again = _set_again(program, stop)
        here = stop.waits.get(stop.unit, ("", 0, -1))
        if not program.waits.items() <= stop.waits.items() or not (again or here[2] == stop.pc):
            yield f"the waits must have {program.waits}, not {stop.waits}"
        # Other units may wait for flags that the legal instructions would set.
        for unit, (source, register, pc) in stop.waits.items():
            wait = _pack("wait_flag", unit, source=source, target=unit, register=register)
            if int(program.words[pc]) != wait[0]:
                yield f"{unit} must wait at a wait_flag of {source}, {register}, not at word {pc}"
        expected_names = () if again else ("fault", "op")
    else:
        expected_names = ("fault", "unit", "op", "pc")
    for name in expected_names:
        told, expected = getattr(stop, name), getattr(program, name)
        if told != expected:
            yield f"{name} must be {expected!r}, not {told!r}"
    written = [bool((after[m : m + _MARK_BYTES] != _BLANK).any()) for m in program.marks]
    count = sum(written)
    if written != [n < count for n in range(len(written))]:
        yield f"copies of MTE3 must end in their order, not as {written}"
    if program.unit == "MTE3" and count != program.before:
        yield f"{program.before} copies before the fault must end, not {count}"
    if program.ordered and count < program.before:
        yield f"{program.before} copies before the barrier must end, not {count}"


def _set_again(program: IllegalProgram, stop: Stop) -> bool:
    """Return whether a flag is set twice because a unit that waits for ever has not taken it."""
    if (stop.fault, stop.op) != ("FLAG", "set_flag"):
        return False
    values, _ = ENCODINGS["set_flag"].unpack((int(program.words[stop.pc]),))
    return UNITS[values["target"]] in stop.waits


def damaged_program(seed: int, core: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of a random program and its global memory; some bits of it are wrong.

    The bits are in the first two words of an instruction: opcode, unit, length, buffers, dtypes,
    and places of operands. Counts are as they were, so that few of the programs take millions of
    cycles.
    """
    made, random = RandomProgram(seed, core, count=8), np.random.default_rng([seed, 2])
    texts = Texts()
    legal = [list(encode(instr, texts)) for instr in made.core.instructions]
    words = legal[int(random.integers(len(legal)))]
    for _ in range(int(random.integers(1, 4))):
        words[int(random.integers(min(len(words), 2)))] ^= 1 << int(random.integers(64))
    program = np.array([word for each in legal for word in each] + [0], np.uint64)
    return program, Functional(made.program).gm


def end_of(seed: int, core: Any) -> str:
    """Return how a damaged program ends: a fault, DEADLOCK, NONE for its end, or HANG."""
    words, memory = damaged_program(seed, core)
    latency, noise = (1 + seed % 40, seed) if seed % 2 else (1, 0)
    try:
        run_words(core, memory, words, latency=latency, noise=noise)
    except StreamError:
        return "HANG"
    except CoreFault as fault:
        return fault.stop.fault
    return "NONE"
