"""The commands ``board`` and ``host`` end to end: the RTL of a whole board behind a terminal."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError, WorkError
from vitruvian.golden.fp import from_float
from vitruvian.golden.simd2.integer import int_mmo
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.sim.bench.bus.serial import Faults, FaultyStream, SummingRegisters
from vitruvian.sim.board.model import LineModel
from vitruvian.sim.board.stream import ModelStream
from vitruvian.sim.board.terminal import Terminal
from vitruvian.sim.host.board import Board
from vitruvian.sim.host.client import Client
from vitruvian.sim.host.products import expected, matmul

#: The smallest boards: one precision and one slot, so some of their signals have no bits.
INT8 = MatrixUnitConfig(m=2, n=2, k=1, precisions=("int8",), slots=1, pipeline=0)
INTEGERS = IntConfig(m=2, n=1, k=2, bits=8, pipeline=1)
MINPLUS = MatrixUnitConfig(
    m=2, n=1, k=1, precisions=("fp16",), operations=("mma", "minplus"), slots=2, pipeline=1
)


def line_model(config, **options):
    unit = SerialUnit(core=BusCore(config=config), clock_hz=4_000_000, baud=1_000_000)
    return LineModel(unit, divisor=unit.divisor, **options)


@contextmanager
def terminal(model):
    """Serve a board at a pseudo-terminal, and return the terminal."""
    with Terminal(model) as board:
        thread = threading.Thread(target=board.serve, daemon=True)
        thread.start()
        try:
            yield board
        finally:
            board.stop()
            thread.join()


class FaultyModel:
    """A board at the end of a line that damages frames in both directions."""

    def __init__(self, model, faults):
        self.stream = FaultyStream(ModelStream(model), faults)
        self.model = model

    @property
    def cycles(self):
        return self.model.cycles

    def exchange(self, data, **_):
        if data:
            self.stream.write(data)
        return self.stream.read(0)


def test_products_on_the_smallest_board(tmp_path, capsys):
    file = tmp_path / "figures.json"
    with terminal(line_model(INT8)) as board:
        line = ["host", "matmul", "--port", board.path, "--size", "5x3x7", "--check"]
        assert main([*line, "--json", str(file)]) == 0
    assert "15 values compared, 0 differ" in capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert figures["products"] == 5 * 3 * 7 and figures["beats"] == 3 * 2 * 4
    assert figures["differences"] == figures["refused"] == figures["unanswered"] == 0
    assert figures["board"] == "2×2 outputs, 1 lanes, int8; mma"


def test_a_long_product_shows_its_progress(monkeypatch, capsys):
    monkeypatch.setattr("vitruvian.common.progress._PAUSE_S", 0.0)
    with terminal(line_model(INT8)) as board:
        assert main(["host", "matmul", "--port", board.path, "--size", "4x2x3"]) == 0
    lines = capsys.readouterr().err.splitlines()
    shown = [line.partition("]")[0] + "] " + line.split()[1] for line in lines]
    assert shown == [f"[{beat}/4] matmul," for beat in range(1, 5)]


def test_shortest_paths_over_a_line_with_faults(capsys):
    faulty = FaultyModel(line_model(MINPLUS), Faults(flip=0.05, lose=0.02, drop=0.01))
    with terminal(faulty) as board:
        line = ["host", "apsp", "--port", board.path, "--size", "4", "--check"]
        assert main([*line, "--timeout", "0.2"]) == 0
    out = capsys.readouterr().out
    assert " 0 differ" in out and " 0 repeated" not in out
    assert faulty.stream.damaged > 5


def test_a_wrong_element_is_reported(monkeypatch, capsys):
    from vitruvian.sim.host import products

    right = products.mmad_any

    def wrong(*operands, **options):
        d = np.array(right(*operands, **options))
        d[0, 0] ^= 1
        return d

    monkeypatch.setattr(products, "mmad_any", wrong)
    with terminal(line_model(INT8)) as board:
        assert main(["host", "matmul", "--port", board.path, "--size", "2", "--check"]) == 1
    assert "4 values compared, 1 differ" in capsys.readouterr().out


def refused(capsys, *words):
    """Return the line with which a command is refused."""
    assert main(["host", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_ports_that_lead_to_no_board(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for port, reason in (
        ("/no/such", "port must be a serial port that can be opened, not '/no/such' (No such file"),
        (str(tmp_path / "file"), "port must be a serial port, not the file "),
        ("/dev/null", "port must be a serial port, not the device '/dev/null'"),
    ):
        assert reason in refused(capsys, "matmul", "--port", port)
    file, other = os.openpty()
    path = os.ttyname(other)
    words = ["matmul", "--port", path, "--timeout", "0.05"]
    reason = f"a board that answers: {path} at 1000000 baud gave no answer to 3 requests in 0."
    assert reason in refused(capsys, *words)
    assert "baud must be a rate of this system (9600, " in refused(capsys, *words, "--baud", "7")
    os.close(file)
    os.close(other)


def test_every_operation_on_an_integer_board(monkeypatch, capsys):
    """K is padded with elements that do not change a result; wrapped sums are right as well."""
    model = line_model(INTEGERS)
    board = Board.find(Client(ModelStream(model), timeout=0))
    rng = np.random.default_rng(3)
    for op in INTEGERS.operations:
        shapes = (3, 3), (3, 2), (3, 2)
        a, b, c = (rng.integers(-128, 127, s, np.int8, endpoint=True) for s in shapes)
        for addend in (c, None):
            product = matmul(board, a, b, addend, precision="int8", operation=op.mnemonic)
            assert np.array_equal(product.d, int_mmo(op, a, b, addend, 8)), op
            assert product.beats == 2 * 2 * 2
    with monkeypatch.context() as patch:
        # With another padding, the shortest distance would be that of the padding.
        patch.setattr("vitruvian.sim.host.integers._filler", lambda op, bits: (0, 0))
        ones = np.ones((3, 3), np.int8)
        product = matmul(board, ones, ones, precision="int8", operation="minplus")
        assert (product.d == 0).all() and (int_mmo("minplus", ones, ones, bits=8) == 2).all()
    with terminal(model) as port:
        line = ["host", "matmul", "--port", port.path, "--size", "3", "--check"]
        assert main(line) == 0
        out = capsys.readouterr().out
        assert "9 values compared, 0 differ" in out and "2×1 outputs, 2 lanes, int8; mma" in out
        text = refused(capsys, "apsp", "--port", port.path)
        assert text == "error: precision must be fp16 for apsp, not int8"


def test_boards_that_are_refused(capsys):
    with terminal(LineModel(SummingRegisters(divisor=4), divisor=4)) as board:
        line = refused(capsys, "matmul", "--port", board.path)
        assert "board must have the identity 0x56495452, not 0x00000000" in line
    with terminal(line_model(INT8)) as board:
        port = ("--port", board.path)
        line = refused(capsys, "apsp", *port)
        assert line == "error: board must have the operation minplus for apsp, not only mma"
        line = refused(capsys, "matmul", *port, "--precision", "fp16")
        assert line == "error: precision must be one of int8, not 'fp16'"
        line = refused(capsys, "digits", *port)
        assert line == "error: precision must be a floating-point one for digits, not int8"
        line = refused(capsys, "matmul", *port, "--size", "1x2")
        assert (
            line == "error: size must be 1 number or 3 numbers from 1 to 1024 for matmul, not 1x2"
        )


@pytest.mark.parametrize(
    ("unit", "result_words", "message"),
    [
        (2, 4, "unit of the kind cube or simd2-int, .* not mma; make one with --core cube"),
        (0, 4 | 1 << 16, "unit that takes a dense A, not a sparse one"),
    ],
)
def test_units_that_the_host_cannot_drive_are_named(unit, result_words, message):
    board = Board(Client(ModelStream(line_model(INT8)), timeout=0), {})
    board.values.update(unit=unit, result_words=result_words)
    with pytest.raises(UserError, match=message):
        board.describe()


def test_an_error_of_the_unit_is_reported():
    client = Client(ModelStream(line_model(INT8)), timeout=0)
    board = Board.find(client)
    client.read("d_data")
    with pytest.raises(WorkError, match="the board reports empty"):
        board.check_errors()
    board.check_errors()


def test_a_board_runs_until_ctrl_c(tmp_path):
    file = tmp_path / "board.json"
    words = ["board", "--m=2", "--n=2", "--k=1", "--precisions=int8", "--slots=1", "--pipeline=0"]
    command = [sys.executable, "-m", "vitruvian", *words, "--json", str(file)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = line.split(":")[0]
        assert main(["host", "matmul", "--port", port, "--size", "2", "--check"]) == 0
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130 and errors.splitlines()[-1] == "interrupted"
    assert json.loads(file.read_text())["port"] == port


@pytest.mark.long
@pytest.mark.parametrize(
    "config",
    [
        CONFIGS["tiny"],
        CONFIGS["cube_4x4x4"],
        MatrixUnitConfig(m=3, n=2, k=4, precisions=("fp16", "int8"), dataflow="systolic"),
        MatrixUnitConfig(m=2, n=2, k=2, precisions=("fp16",), output="fp16", slots=1),
        MatrixUnitConfig(
            m=2, n=2, k=4, precisions=("fp16",), operations=("mma", "minplus", "maxmul", "addnorm")
        ),
    ],
    ids=lambda config: f"{config.m}x{config.n}x{config.k}-{config.slot_count}",
)
def test_every_precision_and_operation(config):
    stream = FaultyStream(ModelStream(line_model(config)), Faults(flip=0.02, lose=0.01))
    board = Board.find(Client(stream, timeout=0))
    rng = np.random.default_rng(1)
    shapes = ((5, 7), (7, 3), (5, 3))
    for precision in config.precisions:
        for operation in config.operations:
            if precision == "int8":
                a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes[:2])
                c = rng.integers(-1000, 1000, shapes[2], dtype=np.int32)
            else:
                a, b = (from_float(rng.normal(size=s), precision) for s in shapes[:2])
                c = from_float(rng.normal(size=shapes[2]), config.output)
            for addend in (c, None):
                options = {"precision": precision, "operation": operation}
                product = matmul(board, a, b, addend, **options)
                right = expected(config, a, b, addend, **options)
                assert np.array_equal(product.d, right), options
    assert stream.damaged > 0


@pytest.mark.long
def test_digits(capsys):
    with terminal(line_model(CONFIGS["tiny"])) as board:
        assert main(["host", "digits", "--port", board.path, "--size", "4", "--check"]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 digits are classified correctly" in out
    assert f"{4 * (32 + 10)} values compared, 0 differ" in out
