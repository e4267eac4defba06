"""Illegal programs on the compiled core: the right fault, and a check that notices a wrong one."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Const

from vitruvian.golden.core.encoding import BUFFERS, ENCODINGS, UNITS
from vitruvian.hdl.core import CORES, CoreBoard, guard
from vitruvian.hdl.core.check import WordCheck
from vitruvian.sim.davinci.machine_code import verify
from vitruvian.sim.davinci.machine_code.illegal_programs import (
    KINDS,
    copy_words,
    end_of,
    illegal_program,
    wrong_answers,
)
from vitruvian.sim.rtl import compile, core
from vitruvian.sim.rtl.core import CoreFault, run_words


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_reported(kind):
    program = illegal_program(KINDS.index(kind) + 700, "tiny", kind)
    assert not list(wrong_answers(program, "tiny"))
    assert not list(wrong_answers(program, "tiny", latency=9, noise=5))


def test_a_flag_that_a_unit_in_a_deadlock_does_not_take_is_set_twice():
    program = illegal_program(3208, "tiny")
    with pytest.raises(CoreFault) as caught:
        run_words("tiny", program.memory, program.words)
    assert (program.fault, caught.value.stop.fault) == ("DEADLOCK", "FLAG")
    assert not list(wrong_answers(program, "tiny"))


def test_the_rows_are_right():
    rows = {check.configuration: check for check in verify.checks()}
    illegal = rows["tiny, illegal programs"].run(0, 5)
    assert illegal.vectors == 2 * len(KINDS) and not illegal.mismatches, illegal.examples
    noisy = rows["tiny, random programs, random latency of memory"].run(0, 5)
    assert noisy.vectors > 100_000 and not noisy.mismatches, noisy.examples


def test_programs_with_wrong_bits_end():
    ends = [end_of(seed, "tiny") for seed in range(900, 920)]
    assert "HANG" not in ends and len(set(ends)) > 2, ends


def _without_bounds(monkeypatch):
    monkeypatch.setattr(guard, "reaches", lambda value, limit: Const(0, 1))


def _without_table(monkeypatch):
    def anything(self, m, fits, masks):
        m.d.comb += fits.eq(1)

    monkeypatch.setattr(WordCheck, "_build_table", anything)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (_without_bounds, "bounds", "without the fault BOUNDS"),
        (_without_table, "align", "without the fault ALIGN"),
    ],
)
def test_a_mutant_of_the_core_is_noticed(monkeypatch, change, kind, text):
    """A model that is compiled here, as the cache knows a core by its parameters."""
    change(monkeypatch)
    model = compile(CoreBoard(config=CORES["tiny"], memory_bytes=1 << 20), name="CoreBoard")
    monkeypatch.setattr(core, "board", lambda *_: model)
    found = [t for n in range(4) for t in wrong_answers(illegal_program(n, "tiny", kind), "tiny")]
    assert any(text in each for each in found), found


@pytest.mark.long
def test_a_core_with_other_bounds_is_noticed():
    """What leaves the buffers of tiny does not leave the larger ones of plain."""
    found = [
        text
        for seed in range(6)
        for text in wrong_answers(illegal_program(seed, "tiny", "bounds"), "plain")
    ]
    assert any("without the fault BOUNDS" in text for text in found), found


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"fault": "BUS"}, "fault must be 'BUS', not 'ALIGN'"),
        ({"pc": 1}, "pc must be 1, not"),
        ({"unit": "FIX"}, "unit must be 'FIX', not"),
        ({"op": "vexp"}, "op must be 'vexp', not"),
        ({"words": np.zeros(1, np.uint64)}, "the core ends without the fault ALIGN"),
    ],
)
def test_a_wrong_answer_is_noticed(change, text):
    program = replace(illegal_program(704, "tiny", "align"), **change)
    assert any(text in found for found in wrong_answers(program, "tiny"))


def _stop(*instructions, memory=64):
    words = [word for each in instructions for word in each] + [0]
    with pytest.raises(CoreFault) as raised:
        run_words("tiny", np.zeros(memory, np.uint8), words)
    return raised.value


def _wait(unit, source, flag):
    codes = {"unit": UNITS.index(unit), "source": UNITS.index(source), "register": flag}
    return ENCODINGS["wait_flag"].pack(codes)


def test_a_deadlock_names_all_waits():
    stop = _stop(_wait("V", "MTE2", 3), _wait("M", "V", 1))
    assert str(stop) == (
        "the core has stopped in a deadlock: V waits at word 0 for flag 3 of MTE2, "
        "M waits at word 1 for flag 1 of V"
    )


def test_a_fault_names_unit_operation_and_word():
    stop = _stop(_wait("V", "MTE2", 3), copy_words("MTE2", ("UB", 1 << 16), ("GM", 0)))
    assert str(stop) == (
        "the core has stopped at MTE2: copy at word 1: an operand reaches beyond its buffer"
    )


def test_a_program_that_lies_beyond_memory():
    """The fetch unit meets an error of the bus only where it needs the words."""
    words = ENCODINGS["pipe_barrier"].pack({})
    size = (1 << 20) - 8 * 4
    stop = _stop(*[words] * 3, _wait("V", "MTE2", 0), memory=size - 32)
    assert stop.stop.fault == "DEADLOCK" and stop.stop.pc == 3


def test_zero_repeats_move_nothing():
    buffers = {"dst.buffer": BUFFERS.index("UB"), "src.buffer": BUFFERS.index("GM")}
    codes = {"unit": UNITS.index("MTE2"), **buffers, "burst_bytes": 32, "bursts": 0}
    im2col = {"unit": UNITS.index("MTE1"), "dst.buffer": 2, "src.buffer": 1, "repeat": 0}
    vadd = {"unit": 1, "repeat": 0} | {f"{n}.buffer": 5 for n in ("dst", "src0", "src1")}
    mmad = {"unit": 2, "c.buffer": 4, "a.buffer": 2, "b.buffer": 3, "m": 0, "k": 16, "n": 16}
    named = {"copy": codes, "im2col": im2col, "vadd": vadd}
    words = [word for op, values in named.items() for word in ENCODINGS[op].pack(values)]
    assert run_words("tiny", np.zeros(64, np.uint8), [*words, 0]).cycles < 200
    # A product without rows would walk through all of memory, which is found.
    assert _stop(ENCODINGS["mmad"].pack(mmad)).stop.fault == "BOUNDS"
