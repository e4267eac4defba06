"""The command ``host run``: kernels on a board with a core, and lines and boards that fail."""

import json

import numpy as np
import pytest

from tests.support.core_stand_in import StandIn, counters
from vitruvian.cli import main
from vitruvian.golden.core.encoding import ENCODINGS, UNITS
from vitruvian.golden.core.encoding import VERSION as ENCODING
from vitruvian.hdl.core.faults import Fault
from vitruvian.sim.host import client

KERNEL = "sim/kernels/text/scale_add.cce"
ARGUMENTS = ["a=normal:2048", "b=normal:2048", "y=zeros:2048", "scale=2", "tiles=1"]


@pytest.fixture
def host(monkeypatch, root, capsys):
    """Run ``host run`` with a kernel at a stand-in; return exit code, output and messages."""

    def run(board, *words, file=None, arguments=ARGUMENTS):
        monkeypatch.setattr(client, "SerialPort", lambda path, baud: board)
        given = [w for text in arguments for w in ("--arg", text)]
        line = ["host", "run", str(file or root / KERNEL), "--port", "/dev/ttyX", *given, *words]
        code = main(line)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def compiled(memory, byte):
    """Run a program on the compiled core, in the place of the one behind the serial line."""
    from vitruvian.sim.rtl.core import run_words

    words = memory[byte:].view("<u8")
    words = words[: int(np.flatnonzero(words == 0)[-1]) + 1]
    done = run_words("tiny", memory[:byte], words)
    memory[:byte] = done.memory
    return counters(done.cycles, **{k.lower(): v for k, v in done.busy.items()}), 0


def right(change=lambda memory: None):
    """Return a board that computes the kernel as NumPy does, and then changes them."""

    def run(memory, byte):
        a, b, y = (memory[4096 * n : 4096 * (n + 1)].view(np.float16) for n in range(3))
        y[:] = np.maximum(np.float16(2) * a + b, 0)
        change(memory)
        return counters(1234, v=200, mte2=100), 0

    return StandIn(run)


def refused(done):
    code, out, err = done
    assert code == 2 and not out
    (line,) = err.splitlines()
    return line


def test_a_kernel_is_loaded_run_and_compared(host, tmp_path):
    board, file = right(), tmp_path / "figures.json"
    code, out, _ = host(board, "--json", str(file))
    assert code == 0 and "12,288 bytes compared with the simulator, 0 differ" in out
    assert "1,234 cycles (V 200, MTE2 100)" in out
    figures = json.loads(file.read_text())
    assert figures["core"] == "tiny" and figures["counters"]["cycles"] == 1234
    assert figures["compared"] == 12288 and figures["differences"] == 0
    assert board.resets == 1


def test_a_wrong_byte_is_counted(host):
    def flip(memory):
        memory[8192] ^= 1
        memory[0] ^= 1

    code, out, _ = host(right(flip))
    assert code == 1 and "12,288 bytes compared with the simulator, 2 differ" in out


@pytest.mark.slow
def test_the_compiled_core_behind_the_host(host):
    code, out, _ = host(StandIn(compiled))
    assert code == 0 and "0 differ" in out


def test_an_assembled_program_runs_without_a_comparison(host, root, tmp_path, capsys):
    folder = tmp_path / "added"
    given = [w for text in ARGUMENTS for w in ("--arg", text)]
    assert main(["assemble", str(root / KERNEL), "--out", str(folder), *given]) == 0
    capsys.readouterr()
    code, out, _ = host(right(), file=folder, arguments=[])
    assert code == 0 and "1,234 cycles" in out and "compared" not in out
    facts = json.loads((folder / "program.json").read_text())
    (folder / "program.json").write_text(json.dumps({**facts, "encoding": 0}))
    line = refused(host(right(), file=folder, arguments=[]))
    assert line.endswith(f"must be in version {ENCODING} of the encoding, not 0")


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_line_that_is_cut_is_told(host, part):
    whole = right()
    assert host(whole)[0] == 0
    board = StandIn(cut_after=int(part * whole.received))
    assert "/dev/ttyX has gone: Input/output error" in refused(host(board))


def test_an_image_that_is_too_large_is_refused_before_it_is_sent(host):
    board = StandIn(memory_bytes=12288)
    line = refused(host(board))
    assert "memory and program must have at most 12,288 bytes for this board, not 12,288 + " in line
    assert board.received < 100


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"encoding": ENCODING + 1}, f"machine code of version {ENCODING}, not {ENCODING + 1}"),
        ({"name": "huge"}, "board must have a core of tiny, micro, "),
    ],
)
def test_another_board_is_refused(host, what, message):
    assert message in refused(host(StandIn(**what)))


def test_a_fault_and_a_program_that_waits_for_ever_are_told(host):
    opcode, unit = ENCODINGS["copy"].code, UNITS.index("MTE3")
    place = {"unit": unit, "opcode": opcode, "fault_pc": 21}
    board = StandIn(lambda memory, byte: (counters(9) | place, Fault.BOUNDS.value))
    assert (
        "baud: the core has stopped at MTE3: copy at word 21: an operand reaches beyond its buffer"
    ) in refused(host(board))
    flags = {"wait_v": 1 | UNITS.index("MTE2") << 1 | 3 << 4 | 9 << 8, "wait_m": 0}
    board = StandIn(lambda memory, byte: (counters(9) | flags, Fault.DEADLOCK.value))
    assert ("the core has stopped in a deadlock: V waits at word 9 for flag 3 of MTE2") in refused(
        host(board)
    )
    board = StandIn(lambda memory, byte: None)
    assert "all its queues wait" in refused(host(board))
    assert board.resets == 2


def test_options_that_do_not_belong_together(capsys):
    for line, message in [
        (["host", "run", "--port", "x"], "host run must have a kernel"),
        (["host", "matmul", "x.cce", "--port", "x"], "a file must come with run, not with matmul"),
        (["board", "--core", "tiny", "--m", "2"], "--m must not come with --core tiny"),
        (["board", "--core", "tiny", "--preset", "tiny"], "--preset must not come with --core"),
        (["board", "--memory-kib", "64"], "--memory-kib must not come with a matrix unit"),
    ]:
        assert main(line) == 2
        assert message in capsys.readouterr().err
