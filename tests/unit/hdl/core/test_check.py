"""The check of words in hardware against its table, and the table against the assembler's."""

import pytest
from amaranth.sim import Simulator

from vitruvian.golden.core.encoding import BUFFERS, CARRIERS, DTYPES, ENCODINGS, UNITS
from vitruvian.hdl.core.check import WordCheck, demand, operations
from vitruvian.hdl.core.config import CORES
from vitruvian.hdl.core.faults import Fault
from vitruvian.hdl.core.record import QUEUED
from vitruvian.hdl.core.support import element_bytes, refusal

TINY = CORES["tiny"]
PAIRS = [(unit, op) for unit in QUEUED for op in operations(TINY, unit)]


def legal(unit, op):
    """Return codes of an instruction that the core has."""
    wants = demand(unit, op)
    values = {"unit": UNITS.index(unit)}
    for name in wants.buffers:
        values[f"{name}.buffer"] = BUFFERS.index(wants.buffers[name][0])
    if op == "set_flag":
        values |= {"source": UNITS.index(unit), "target": UNITS.index("V" if unit != "V" else "M")}
    if op == "wait_flag":
        values |= {"target": UNITS.index(unit), "source": UNITS.index("V" if unit != "V" else "M")}
    if op == "mmad":
        values["c.dtype"] = DTYPES.index("fp32")
    if op in ("matrix_out", "vconv"):
        values["src.dtype"] = DTYPES.index("fp32")
    return {name: code for name, code in values.items() if name in ENCODINGS[op].places}


def faults(instructions, config=TINY):
    """Return the fault of the first bad word of each instruction, or NONE."""
    dut = WordCheck(config=config)
    found = []

    async def bench(ctx):
        ctx.set(dut.taken, 1)
        for words in instructions:
            worst = Fault.NONE
            for number, word in enumerate(words):
                ctx.set(dut.word, word)
                ctx.set(dut.number, number)
                worst = worst if worst != Fault.NONE else ctx.get(dut.bad)
                await ctx.tick()
            found.append(worst)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def first_words(checked):
    """Return the fault of each first word, and the fault that the table demands."""
    dut = WordCheck(config=TINY)
    got = []

    async def bench(ctx):
        for word in checked:
            ctx.set(dut.word, word)
            got.append(ctx.get(dut.bad))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got


def test_every_opcode_unit_and_length():
    words, wanted = [], []
    codes = {encoding.code: op for op, encoding in ENCODINGS.items()}
    for opcode in range(256):
        op = codes.get(opcode, "")
        for unit in range(8):
            name = UNITS[unit] if unit < len(UNITS) else ""
            known = unit < len(QUEUED) and op in operations(TINY, name)
            base = ENCODINGS[op].pack(legal(name, op))[0] if known else opcode | unit << 8
            for length in range(32):
                words.append(base & ~(31 << 11) & ~(7 << 8) | unit << 8 | length << 11)
                if unit >= len(QUEUED):
                    wanted.append(Fault.UNIT)
                elif known and demand(name, op).least <= length <= demand(name, op).most:
                    wanted.append(Fault.NONE)
                else:
                    wanted.append(Fault.CODE)
    assert len(words) == 256 * 8 * 32
    got = first_words(words)
    wrong = [hex(w) for w, a, b in zip(words, got, wanted, strict=True) if a != b]
    assert not wrong, wrong[:10]


def test_every_buffer_of_every_operand():
    words, wanted = [], []
    for unit, op in PAIRS:
        wants = demand(unit, op)
        for name, allowed in wants.buffers.items():
            for code in range(16):
                values = legal(unit, op) | {f"{name}.buffer": code}
                words.append(ENCODINGS[op].pack(values)[0])
                good = code < len(BUFFERS) and BUFFERS[code] in allowed
                wanted.append(Fault.NONE if good else Fault.CODE)
    assert len(words) > 1000 and first_words(words) == wanted


def test_every_flag():
    words, wanted = [], []
    for op, other in (("set_flag", "target"), ("wait_flag", "source")):
        for unit in range(len(QUEUED)):
            for code in range(8):
                for register in range(16):
                    values = {"unit": unit, other: code, "register": register}
                    words.append(ENCODINGS[op].pack(values)[0])
                    good = code < len(QUEUED) and code != unit and register < 8
                    wanted.append(Fault.NONE if good else Fault.CODE)
    assert first_words(words) == wanted


@pytest.mark.parametrize("wide", [False, True])
def test_every_low_bit_of_every_operand(wide):
    instructions, wanted = [], []
    for unit, op in PAIRS:
        wants, encoding = demand(unit, op), ENCODINGS[op]
        for name in wants.buffers:
            values = legal(unit, op)
            source = next((n for n in ("src", "src0") if f"{n}.dtype" in encoding.places), None)
            if source and unit == "V":
                values[f"{source}.dtype"] = DTYPES.index("fp32" if wide else "fp16")
            align = (wants.wide if wide else {}).get(name, wants.align.get(name, 1))
            if op in ("scalar_load", "scalar_store"):
                align = element_bytes(DTYPES[0])
            for bit in range(12):
                instructions.append(encoding.pack(values | {name: 1 << bit}))
                wanted.append(Fault.ALIGN if 1 << bit < align else Fault.NONE)
    assert len(instructions) > 500 and faults(instructions) == wanted


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in CARRIERS])
def test_the_element_of_a_scalar(dtype):
    code, size = DTYPES.index(dtype), element_bytes(dtype)
    instructions = [
        ENCODINGS["scalar_load"].pack({"src.buffer": 5, "src.dtype": code, "src": place})
        for place in range(32)
    ]
    wanted = [Fault.ALIGN if place % size else Fault.NONE for place in range(32)]
    assert faults(instructions) == wanted


def test_the_assembler_refuses_what_the_hardware_refuses():
    """Both have their own table; wrong units, buffers and places are wrong in both."""
    checked = 0
    for unit, op in PAIRS:
        wants, encoding, values = demand(unit, op), ENCODINGS[op], legal(unit, op)
        full = dict.fromkeys(encoding.places, 0) | values

        def refused(changes, encoding=encoding, full=full, unit=unit):
            return refusal(TINY, encoding, unit, full | changes)

        assert refused({}) is None, (unit, op, refused({}))
        for name, allowed in wants.buffers.items():
            for code, buffer in enumerate(BUFFERS):
                reason = refused({f"{name}.buffer": code})
                assert (reason is None) == (buffer in allowed), (unit, op, name, buffer, reason)
                checked += 1
        for name, align in wants.align.items():
            if op not in ("vcmpv", "vcmpvs") or name != "dst":
                assert refused({name: align // 2}) is not None, (unit, op, name)
                checked += 1
    assert checked > 500
