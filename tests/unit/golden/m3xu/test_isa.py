"""The matrix instructions: shapes, sizes, encoding, text, errors and results."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitruvian.golden.m3xu import gemm, isa
from vitruvian.golden.m3xu.execute import execute
from vitruvian.golden.m3xu.isa import FIELDS, Instruction, Opcode, as_opcode, assemble, disassemble
from vitruvian.sim.rtl.mma import draw_instructions, draw_values
from vitruvian.sim.studies import INSTRUCTIONS

OPERANDS = ("d", "a", "b", "c")


def legal(opcode, operand):
    return range(0, isa.REGISTERS, opcode.fragment(operand).registers)


def apart(opcode, d, other, operand):
    mine = set(range(d, d + opcode.fragment("d").registers))
    return mine.isdisjoint(range(other, other + opcode.fragment(operand).registers))


def instructions():
    """Yield every opcode with every D, A and B without C and with the first C, and with every C."""
    for opcode in Opcode:
        for d, a, b in product(*(legal(opcode, name) for name in "dab")):
            if apart(opcode, d, a, "a") and apart(opcode, d, b, "b"):
                for c in (None, 0):
                    yield Instruction(opcode=opcode, d=d, a=a, b=b, c=c)
        for c in legal(opcode, "c"):
            yield Instruction(opcode=opcode, d=0, a=16, b=32, c=c)


def word_of(opcode, accumulate, d, a, b, c):
    """Encode an instruction by the table of the documentation."""
    return opcode | accumulate << 7 | d << 8 | a << 14 | b << 20 | c << 26


def check_encoding():
    count, seen = 0, set()
    for instruction in instructions():
        word = instruction.encode()
        c = instruction.c or 0
        plain = word_of(
            instruction.opcode.code,
            instruction.c is not None,
            instruction.d,
            instruction.a,
            instruction.b,
            c,
        )
        assert word == plain, instruction
        assert Instruction.decode(word) == instruction
        assert Instruction.parse(str(instruction)) == instruction
        seen.add(word)
        count += 1
    return count, len(seen)


def expected_count():
    """Count ``instructions`` from the aligned positions of D that A and B leave free."""
    total = 0
    for opcode in Opcode:
        d, a, b, c = (len(legal(opcode, name)) for name in OPERANDS)
        per_a, per_b = (max(opcode.fragment(x).registers for x in ("d", y)) for y in ("a", "b"))
        # A and B each exclude the one position (of D's size) that they are in.
        assert per_a == per_b == opcode.fragment("d").registers
        total += 2 * d * (a - a // d) * (b - b // d) + c
    return total


def test_every_instruction_goes_both_ways():
    count, different = check_encoding()
    # The first C occurs twice: its D, A and B of the second loop are also in the first loop.
    assert count == expected_count() and different == count - len(Opcode)


@pytest.mark.parametrize(
    "fields",
    [
        tuple((n, {"a": 20, "b": 14}.get(n, low), w) for n, low, w in FIELDS),
        tuple((n, low - (n == "c"), w) for n, low, w in FIELDS),
        tuple((n, low, w - (n == "d")) for n, low, w in FIELDS),
    ],
    ids=["a and b swapped", "c a bit low", "d a bit short"],
)
def test_another_encoding_is_noticed(monkeypatch, fields):
    monkeypatch.setattr(isa, "FIELDS", fields)
    with pytest.raises((AssertionError, ValueError)):
        check_encoding()


def test_every_opcode_and_field_decodes_or_is_refused():
    """Each field takes all its values; every word that decodes encodes to itself."""
    fields = {name: (low, width) for name, low, width in FIELDS}
    assert sum(width for _, width in fields.values()) == isa.WORD_BITS
    good, bad = 0, 0
    for code, accumulate in product(range(128), range(2)):
        base = word_of(code, accumulate, 8, 0, 4, 0)
        for name in OPERANDS:
            low, width = fields[name]
            for value in range(1 << width):
                word = base & ~(((1 << width) - 1) << low) | value << low
                try:
                    result = Instruction.decode(word)
                except ValueError as error:
                    assert f"{word:#010x}" in str(error)
                    bad += 1
                    continue
                assert result.encode() == word and result.opcode.code == code
                good += 1
    assert good + bad == 128 * 2 * 4 * 64
    codes = [opcode.code for opcode in Opcode]
    assert 0 not in codes and max(codes) < 16 and good > 0
    for code in set(range(128)) - set(codes):
        with pytest.raises(ValueError, match=r"opcode must be one of 0x01, .*, not"):
            Instruction.decode(word_of(code, 0, 8, 0, 4, 0))


@given(st.integers(0, 2**32 - 1), st.sampled_from(Opcode))
def test_any_word(word, opcode):
    for candidate in (word, word & ~0x7F | opcode.code):
        try:
            result = Instruction.decode(candidate)
        except ValueError:
            continue
        assert result.encode() == candidate and Instruction.parse(str(result)) == result


@given(st.text(alphabet="mam.x0123456789fptcr, #z", max_size=40))
def test_any_text(text):
    try:
        result = Instruction.parse(text)
    except ValueError:
        return
    assert Instruction.parse(str(result)) == result


def test_sizes():
    a_and_b = {opcode: [opcode.fragment(x).bits for x in "ab"] for opcode in Opcode}
    assert a_and_b.pop(Opcode.TF32_K4) == [2048, 1024]
    assert set(map(tuple, a_and_b.values())) == {(4096, 2048)}
    for opcode in Opcode:
        wide = opcode in (Opcode.FP32C, Opcode.FP64)
        assert opcode.fragment("c") == opcode.fragment("d")
        assert opcode.fragment("d").bits == 16 * 8 * (64 if wide else 32)
        assert opcode.fragment("d").registers == (8 if wide else 4)
    with pytest.raises(ValueError, match="operand must be one of d, a, b, c, not 'e'"):
        Opcode.FP16.fragment("e")


def test_names_are_unique():
    assert len({opcode.code for opcode in Opcode}) == len(Opcode) == 7
    assert len({opcode.mnemonic for opcode in Opcode}) == len(Opcode)
    for opcode in Opcode:
        assert as_opcode(opcode.mnemonic) is as_opcode(opcode) is opcode


def test_the_kernels_count_these_instructions():
    longest = {}
    for opcode in Opcode:
        name = opcode.precision.name
        longest[name] = max(longest.get(name, (0, 0, 0)), opcode.shape)
    assert longest == INSTRUCTIONS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "instruction must be one of mma.16x8x16.fp16, "),
        ("mma.16x8x8.fp16 r8, r0, r4, zero", ", not 'mma.16x8x8.fp16'"),
        ("mma.16x8x16.fp16", "operands must be d, a, b, c, not 0 operands"),
        ("mma.16x8x16.fp16 r8, r0, r4", "operands must be d, a, b, c, not 3 operands"),
        ("mma.16x8x16.fp16 r8, r0, r4, r0, r4", "operands must be d, a, b, c, not 5 operands"),
        ("mma.16x8x16.fp16 r8, r0, r4, r64", "c must be r0 to r63 or zero, not 'r64'"),
        ("mma.16x8x16.fp16 r8, zero, r4, r0", "a must be r0 to r63, not 'zero'"),
        ("mma.16x8x16.fp16 r08, r0, r4, zero", "d must be r0 to r63, not 'r08'"),
        ("mma.16x8x16.fp16 r8, r0, 4, zero", "b must be r0 to r63, not '4'"),
        ("mma.16x8x16.fp16 r8, r2, r4, zero", "a must be a multiple of 4 in mma.16x8x16.fp16, "),
        ("mma.16x8x4.fp32c r4, r0, r8, zero", "d must be a multiple of 8 in mma.16x8x4.fp32c, "),
        ("mma.16x8x4.fp32c r0, r4, r8, zero", "d must not overlap a: r0 to r7 and r4 to r7"),
        ("mma.16x8x8.fp32 r4, r0, r6, zero", "d must not overlap b: r4 to r7 and r6 to r7"),
    ],
)
def test_wrong_text(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Instruction.parse(text)


def test_wrong_numbers():
    def made(**changes: Any):
        args: dict[str, Any] = {"opcode": Opcode.FP16, "d": 8, "a": 0, "b": 4}
        return Instruction(**(args | changes))

    assert not made().accumulates
    with pytest.raises(TypeError, match="opcode must be an Opcode, not 1"):
        made(opcode=1)
    with pytest.raises(ValueError, match="d must be between 0 and 63, not 64"):
        made(d=64)
    with pytest.raises(TypeError, match=r"a must be an int, not 0\.0"):
        made(a=0.0)
    for word in (-1, 1 << 32):
        with pytest.raises(ValueError, match=f"word must be between 0 and 4294967295, not {word}"):
            Instruction.decode(word)
    with pytest.raises(ValueError, match="c must be 0 if accumulate is 0, not 4 in word 0x"):
        Instruction.decode(word_of(1, 0, 8, 0, 4, 4))


def test_a_listing():
    text = """# D = A·B, then twice more onto it
    mma.16x8x8.fp32 r8, r0, r4, zero
\tmma.16x8x8.fp32\tr8,r0,r4,r8   # in place

    mma.16x8x4.fp32c r16, r0, r4, r24
    """
    program = assemble(text)
    assert [i.opcode for i in program] == [Opcode.FP32, Opcode.FP32, Opcode.FP32C]
    assert [list(i.registers("c")) for i in program[:2]] == [[], [8, 9, 10, 11]]
    words = np.array([i.encode() for i in program], np.uint32)
    assert assemble(disassemble(words)) == program
    with pytest.raises(ValueError, match="line 2: b must be r0 to r63, not 'x'"):
        assemble("# first\nmma.16x8x8.fp32 r8, r0, x, zero")


# Golden execution


@pytest.mark.parametrize("opcode", Opcode, ids=lambda opcode: opcode.mnemonic)
def test_execution_is_gemm_of_the_units_blocks(opcode):
    rng = np.random.default_rng(opcode.code)
    program = draw_instructions(rng, [opcode] * 4)
    unit: dict[str, Any] = {"k": 8, "multiplier_bits": 27 if opcode is Opcode.FP64 else 12}
    for instruction, (a, b, c) in zip(program, draw_values(rng, program), strict=True):
        d = execute(instruction, a, b, c, **unit)
        assert d.shape == (16, 8)
        terms = opcode.precision.elements(**unit)
        chain = c
        for k in range(0, opcode.shape[2], terms):
            part = slice(k, k + terms)
            chain = gemm(a[:, part], b[part], chain, precision=opcode.precision, **unit)
        assert chain is not None and d.tobytes() == chain.tobytes()
        assert execute(opcode, a, b, c, **unit).tobytes() == d.tobytes()


def test_execution_rejects_wrong_operands():
    instruction = Instruction.parse("mma.16x8x8.fp32 r8, r0, r4, r12")
    a, b, c = np.zeros((16, 8), "f4"), np.zeros((8, 8), "f4"), np.zeros((16, 8), "f4")
    with pytest.raises(ValueError, match=r"c must be given in mma.16x8x8.fp32 r8, r0, r4, r12"):
        execute(instruction, a, b)
    with pytest.raises(ValueError, match=r"c must be None in mma.16x8x8.fp32 r8, r0, r4, zero"):
        execute(Instruction.parse("mma.16x8x8.fp32 r8, r0, r4, zero"), a, b, c)
    with pytest.raises(ValueError, match=r"a must be \(..., 16, 8\) in .*, not \(8, 8\)"):
        execute(instruction, b, b, c)
    with pytest.raises(TypeError, match="a must be float32, not float64"):
        execute(instruction, a.astype("f8"), b, c)
    with pytest.raises(TypeError, match="instruction must be an Instruction or an Opcode, not 1"):
        execute(1, a, b, c)  # pyright: ignore[reportArgumentType]
