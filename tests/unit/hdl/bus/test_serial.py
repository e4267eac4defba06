"""The serial line: its bytes, its frames, and that no fault of the line causes a wrong result."""

import json
import sys
import types
from pathlib import Path

import pytest

from vitruvian.common.errors import UserError, WorkError
from vitruvian.flows.yosys import run_yosys
from vitruvian.hdl.bus import bridge, uart
from vitruvian.hdl.bus.frames import MOST_WORDS, REQUEST, RESPONSE
from vitruvian.sim.bench.bus.serial import Faults, SummingRegisters, soak
from vitruvian.sim.board.model import LineModel
from vitruvian.sim.host import frames
from vitruvian.sim.host.frames import Reader, Request, Response
from vitruvian.sim.rtl.emit import to_verilog

DIVISOR = 4
EVERY = Faults(flip=0.15, lose=0.05, insert=0.05, drop=0.05, follow=0.1)
SMALL = 40


def model(**options):
    return LineModel(SummingRegisters(divisor=DIVISOR), divisor=DIVISOR, **options)


def answers(line, data):
    return list(Reader().put(line.exchange(data)))


def test_the_divisor_is_the_nearest_number():
    assert uart.divisor_of(12_000_000, 115_200) == 104
    assert uart.divisor_of(12_000_000, 1_000_000) == 12
    with pytest.raises(UserError, match=r"at most clock_hz / 4 = 3000000, not 4000000"):
        uart.divisor_of(12_000_000, 4_000_000)
    with pytest.raises(UserError, match=r"within 1 % .*12000000 / 5 = 2400000\), not 2500000"):
        uart.divisor_of(12_000_000, 2_500_000)


def test_the_host_and_the_hardware_have_the_same_frames():
    assert (REQUEST, RESPONSE, MOST_WORDS) == (frames._REQUEST, frames._RESPONSE, frames.MOST_WORDS)
    assert frames.crc(b"123456789") == b"\x29\xb1"  # the check value of CRC-16/IBM-3740


def test_the_bytes_of_the_worked_example(root):
    text = (root / "docs" / "units" / "serial.md").read_text()
    line = model()
    write = Request(sequence=1, address=13, count=2, words=(0x3C00_4000, 1))
    read = Request(sequence=2, address=13, count=1)
    for request in (write, read):
        back = line.exchange(bytes(request))
        assert bytes(request).hex(" ") in text
        assert back.hex(" ") in text
    assert back == bytes(Response(sequence=2, words=(0x3C00_4001,)))


@pytest.mark.parametrize("mismatch", [-0.02, 0, 0.02])
def test_requests_on_a_line_of_another_rate(mismatch):
    checked, traffic = soak(model(mismatch=mismatch), requests=SMALL)
    assert checked > 256 and traffic.refused == traffic.unanswered == 0


def test_a_rate_that_is_too_far_off_is_noticed():
    with pytest.raises(WorkError, match="no answer"):
        soak(model(mismatch=0.12), requests=1)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_fault_causes_a_wrong_result(seed):
    checked, traffic = soak(model(), requests=3 * SMALL, faults=EVERY, seed=seed)
    assert checked > 256 and traffic.refused > 20 and traffic.unanswered > 5


def test_wrong_samples_of_the_line_have_no_effect():
    # Two wrong samples within three cycles, which would have one, do not occur in this run.
    checked, traffic = soak(model(noise=3e-4), requests=SMALL)
    assert checked > 256 and traffic.refused == traffic.unanswered == 0


def test_a_repeated_request_is_executed_once():
    line = model()
    add = bytes(Request(sequence=7, address=1, count=1, words=(5,)))
    assert answers(line, add) == answers(line, add) == [Response(sequence=7)]
    read = bytes(Request(sequence=8, address=1, count=1))
    assert answers(line, read) == answers(line, read) == [Response(sequence=8, words=(5,))]
    # The number 0 is never a repetition.
    begin = bytes(Request(sequence=0, address=1, count=1, words=(5,)))
    assert answers(line, begin) == answers(line, begin) == [Response(sequence=0)]
    assert answers(line, read) == [Response(sequence=8, words=(15,))]


def test_a_damaged_request_is_refused_and_has_no_effect():
    line = model()
    add = bytes(Request(sequence=7, address=1, count=1, words=(5,)))
    for at in range(len(add)):
        for bit in range(8):
            wrong = bytearray(add)
            wrong[at] ^= 1 << bit
            (answer,) = answers(line, bytes(wrong))
            assert answer.refused, (at, bit)
        (answer,) = answers(line, add[:at] + add[at + 1 :])
        assert answer.refused, at
    assert answers(line, bytes(Request(sequence=9, address=1, count=1)))[0].words == (0,)


def test_frames_without_a_gap():
    line = model()
    first = bytes(Request(sequence=1, address=1, count=1, words=(5,)))
    second = bytes(Request(sequence=2, address=1, count=1, words=(6,)))
    # The second one arrives while the bridge sends its first response, so it is refused.
    assert [x.refused for x in answers(line, first + second)] == [False, True]
    assert answers(line, second) == [Response(sequence=2)]
    assert answers(line, bytes(Request(sequence=3, address=1, count=1)))[0].words == (11,)


def test_the_reader_finds_frames_between_other_bytes():
    good = Response(sequence=3, words=(0x5A5A5A5A, 2))
    noise = bytes([RESPONSE, 1, 2, RESPONSE])
    reader = Reader()
    assert list(reader.put(noise + bytes(good)[:5])) == []
    assert list(reader.put(bytes(good)[5:] + b"\x00" * 300)) == [good]
    assert list(reader.put(bytes(good))) == [good]


_REPEATED = "(parts.sequence == parts.last) & parts.last.any()"

#: Mutation -> module, text, and replacement.
MUTATIONS = {
    "no CRC": (bridge, "parts.crc.value != 0", "Const(0, 1)"),
    "repeats": (bridge, _REPEATED, "Const(0, 1)"),
    "session": (bridge, _REPEATED, "parts.sequence == parts.last"),
    "answer": (bridge, "written.addr.eq(Cat(parts.at, 1))", "written.addr.eq(Cat(parts.at, 0))"),
    "silence": (bridge, "parts.receiver.error | quiet", "parts.receiver.error"),
    "address": (bridge, "parts.address + parts.command.increment", "parts.address + 1"),
    "majority": (uart, "line.eq(votes)", "line.eq(level)"),
    "start bit": (uart, "self.divisor // 2 - 1", "self.divisor - 1"),
}


def mutant(name, monkeypatch):
    """Return the class ``UartBridge`` of a changed source text."""
    module, before, after = MUTATIONS[name]
    source = str(module.__file__)
    text = Path(source).read_text()
    assert text.count(before) == 1
    changed = types.ModuleType(module.__name__)
    changed.__package__, changed.__file__ = module.__package__, source
    exec(compile(text.replace(before, after), source, "exec"), vars(changed))
    if module is bridge:
        return changed.UartBridge
    monkeypatch.setattr(bridge, "Receiver", changed.Receiver)
    return bridge.UartBridge


def caught(name, monkeypatch):
    """Check that a test of this file notices a mutant."""
    unit = SummingRegisters(divisor=DIVISOR, bridge=mutant(name, monkeypatch))
    test = sys.modules[__name__]
    monkeypatch.setattr(test, "model", lambda **x: LineModel(unit, divisor=DIVISOR, **x))
    with pytest.raises((AssertionError, ValueError, WorkError)):
        test_no_fault_causes_a_wrong_result(1)
        test_a_repeated_request_is_executed_once()
        test_a_damaged_request_is_refused_and_has_no_effect()
        test_requests_on_a_line_of_another_rate(0.02)
        test_wrong_samples_of_the_line_have_no_effect()


def test_a_mutant_is_caught(monkeypatch):
    caught("no CRC", monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_caught(name, monkeypatch):
    caught(name, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("divisor", [4, 5, 12, 104])
@pytest.mark.parametrize("mismatch", [-0.02, 0.02])
def test_many_requests(divisor, mismatch):
    unit = SummingRegisters(divisor=divisor)
    line = LineModel(unit, divisor=divisor, mismatch=mismatch, noise=1e-5)
    faults = Faults(flip=0.05, lose=0.03, insert=0.03, drop=0.02, follow=0.05)
    checked, traffic = soak(line, requests=1000, faults=faults)
    assert checked > 4_000 and traffic.refused > 100


@pytest.mark.long
def test_the_bridge_is_small():
    """The bridge leaves most of an iCE40UP5K, which has 5280 LUTs, to the matrix unit."""
    text = to_verilog(bridge.UartBridge(divisor=12))
    script = ["read_verilog top.v", "synth_ice40 -top top", "tee -q -o stat.json stat -json"]
    stat = run_yosys("top.v", text, script, "stat.json", task="map the bridge")
    cells = json.loads(stat)["design"]["num_cells_by_type"]
    assert 0 < cells["SB_LUT4"] <= 400
    assert cells["SB_RAM40_4K"] == 1
    assert sum(count for name, count in cells.items() if name.startswith("SB_DFF")) < 200
