"""Every operation to words and back, to text and back, and what has no encoding."""

import pytest

from tests.unit.sim.davinci.test_program import CHIP, CHIP_B, every_operation
from vitruvian.golden.core.encoding import ENCODINGS, UNITS
from vitruvian.sim.davinci import Program, load_chip
from vitruvian.sim.davinci.machine_code.decode import DecodingError, decode, split
from vitruvian.sim.davinci.machine_code.encode import EncodingError, Texts, encode
from vitruvian.sim.davinci.machine_code.text import AssemblyError, line, words_of
from vitruvian.sim.kernels import KERNELS

#: Operations of which the bytes that depend on data, or shapes, are not in the words.
_BY_DATA = ("vgather", "vreduce")


def _spans(spans):
    return [span.simplified() for span in spans]


def _same(before, after):
    assert (after.unit, after.op, after.kind) == (before.unit, before.op, before.kind)
    assert (after.path, after.work) == (before.path, before.work)
    if before.op not in _BY_DATA:
        assert _spans(after.reads) == _spans(before.reads), before
        assert _spans(after.writes) == _spans(before.writes), before
    for name, view in before.operands.items():
        other = after.operands[name]
        assert (other.buffer, other.offset, other.dtype) == (view.buffer, view.offset, view.dtype)


def _there_and_back(instructions, core, texts):
    words = [encode(instr, texts) for instr in instructions]
    program = [word for these in words for word in these] + [0]
    for (_, encoding, these), before in zip(split(program), instructions, strict=True):
        after = decode(encoding, these, core, texts.texts)
        _same(before, after)
        assert encode(after, texts) == these
        text = line(encoding, these, texts.texts)
        # Texts get new numbers, so those of the line's own are used.
        again, own = words_of(text)
        assert line(encoding, tuple(again[:-1]), own.texts) == text
    return program


def test_every_operation_comes_back():
    core = Program(CHIP).core()
    other = Program(CHIP_B)
    cube, lanes = other.core(0, "cube"), other.core(1, "vector")
    every_operation(core, cube, lanes)
    seen = set()
    for source in (core, cube, lanes):
        target = Program(source.program.chip).core(source.index, source.kind.name)
        _there_and_back(source.instructions, target, Texts())
        seen |= {instr.op for instr in source.instructions}
    assert seen == set(ENCODINGS)


@pytest.mark.parametrize("name", ["matmul", "maxpool-backward-im2col", "kselect-heap", "softmax"])
def test_a_kernel_comes_back(name):
    program = KERNELS[name].build(chip=load_chip("ascend310"), cores=1).program
    (core,) = [core for core in program if core.instructions]
    target = Program(program.chip).core()
    words = _there_and_back(core.instructions, target, Texts())
    assert len(words) > len(core.instructions)


def test_a_barrier_of_a_unit_is_for_the_queue_of_that_unit():
    """The code of S in the first word would be a barrier of all units."""
    core = Program(CHIP).core()
    for unit in (None, *core.units):
        core.pipe_barrier(unit)
    encoding = ENCODINGS["pipe_barrier"]
    for instr in core.instructions:
        values, _ = encoding.unpack(encode(instr, Texts()))
        alone = instr.fields["unit"]
        assert values["unit?"] == (alone is not None)
        assert UNITS[values["unit"]] == ("S" if alone is None else alone.name)


def test_a_changed_word_is_noticed():
    """The comparison of instructions sees a changed stride, dtype and unit."""
    core = Program(CHIP).core()
    u = core.allocate("UB", (256,), "fp16")
    (instr,) = core.vadd(u, u, u)
    words = list(encode(instr, Texts()))
    for name in ("dst_repeat_stride", "src0.dtype", "dst"):
        place = ENCODINGS["vadd"].places[name]
        changed = list(words)
        changed[place.word] ^= 1 << place.low
        (_, encoding, these), *_ = split([*changed, 0])
        with pytest.raises(AssertionError):
            _same(instr, decode(encoding, these, Program(CHIP).core()))


def test_values_without_room_are_refused_with_the_line():
    core = Program(CHIP).core()
    u = core.allocate("UB", (256,), "fp16")
    (instr,) = core.vadd(u, u, u, repeat=1, strides={"dst": (1, 1 << 16)})
    with pytest.raises(EncodingError, match=r"test_round_trip.py:\d+: dst_repeat_stride of vadd"):
        encode(instr, Texts())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "must end with a word of 0"),
        ([0xFF, 0], "opcode must be 1"),
        ([ENCODINGS["vadd"].code | 1 << 11, 0], "vadd must have 4 or more words, not 1"),
    ],
)
def test_words_that_are_no_program(words, message):
    with pytest.raises(DecodingError, match=message):
        split(words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vad.V", "line 1: operation must be known, not 'vad'"),
        ("\nvadd.X", "line 2: unit of vadd must be one of"),
        ("vadd.V dst=UB:fp16:0", "vadd must have src0=BUFFER:DTYPE:BYTE"),
        ("set_flag.V source=Q", "source of set_flag must be one of"),
        ("set_flag.V register=99", "register of set_flag must be 0 … 15, not 99"),
        ("set_flag.V regster=1", "set_flag has no 'regster' .did you mean register"),
        ("set_flag.V register=1 register=2", "each once"),
    ],
)
def test_text_that_is_no_program(text, message):
    with pytest.raises(AssemblyError, match=message):
        words_of(text)
