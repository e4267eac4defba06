"""The cocotb framework, which passes a correct unit and fails a faulty one with a full report."""

import pytest

from tests.support.toys import Shapes, StreamAdder
from vitruvian.sim.bench.bits import pack, unpack
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.scoreboard import Scoreboard, ScoreboardError, show
from vitruvian.sim.rtl import ToolError
from vitruvian.sim.rtl.emit import interface_of

MODULE = "tests.bench.bench_adder"
TESTS = {"full_speed", "stalls_everywhere", "reset_in_mid_flight"}


def run(fault="", **options):
    return run_bench(StreamAdder(fault=fault), MODULE, parameters={"count": 200}, **options)


def test_a_good_unit_passes():
    result = run()
    assert result.passed, result.failures
    assert result.tests == len(TESTS)


@pytest.mark.parametrize(
    ("fault", "failing", "text"),
    [
        ("lost", {"stalls_everywhere"}, ""),
        ("twice", TESTS, ""),
        ("hang", TESTS, "not done within"),
        ("sum", TESTS, "golden"),
    ],
)
def test_a_mutation_fails(fault, failing, text):
    result = run(fault)
    assert not result.passed and failing <= set(result.failures), result.failures
    assert all(text in message for message in result.failures.values())


def test_a_failure_shows_how_to_reproduce_it():
    message = run("sum", seed=77).failures["full_speed"]
    for part in (
        "o: sum differs in result",
        "x ",
        "y ",
        "RTL ",
        "golden ",
        "cycle ",
        "seed     77",
    ):
        assert part in message, message
    again = run("sum", seed=77).failures["full_speed"]
    other = run("sum", seed=78).failures["full_speed"]
    assert again == message != other


def test_waves(tmp_path):
    assert run(waves=tmp_path / "adder.vcd").passed
    assert "$enddefinitions" in (tmp_path / "adder.vcd").read_text()[:200_000]


def test_a_bench_that_cannot_be_loaded_fails():
    result = run_bench(StreamAdder(), "tests.bench.no_such_bench")
    assert not result.passed and "no_such_bench" in str(result.failures)


def test_an_unknown_simulator_is_named(monkeypatch):
    monkeypatch.setenv("SIM", "spice")
    with pytest.raises(ToolError, match="SIM must be one of verilator, icarus, not 'spice'"):
        run()
    monkeypatch.setenv("SIM", "icarus")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match="iverilog not found; install it"):
        run()


def test_scoreboard_counts_and_drains():
    board = Scoreboard("d", seed=5, digits=2)
    board.expect(3, "add", a=1, b=[2, 255])
    with pytest.raises(ScoreboardError, match="checked 0 of 1 expected results, 1 still in the"):
        board.finish()
    board.check(3, cycle=4)
    board.finish()
    with pytest.raises(ScoreboardError, match="must be at least 2, not 1"):
        board.finish(at_least=2)
    with pytest.raises(ScoreboardError, match="gave 09 in cycle 6 with nothing expected"):
        board.check(9, cycle=6)
    board.expect(3, "add", a=1, b=[2, 255])
    with pytest.raises(ScoreboardError) as caught:
        board.check(4, cycle=8)
    lines = str(caught.value).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["a", "01"],
        ["b", "02", "ff"],
        ["RTL", "04"],
        ["golden", "03"],
        ["cycle", "8"],
        ["seed", "5"],
    ]
    board = Scoreboard("d", seed=5)
    board.expect(1)
    board.forget()
    with pytest.raises(ScoreboardError, match="must be at least 1, not 0"):
        board.finish()


def test_bits_of_structures():
    pairs, mode = interface_of(Shapes()).inputs[1], interface_of(Shapes()).inputs[0]
    value = [{"x": -64, "y": [4095, -4096]}, {"x": 63, "y": [0, 1]}]
    by_field = {"x": [v["x"] for v in value], "y": [v["y"] for v in value]}
    bits = pack(pairs, by_field)
    assert bits == sum(
        (v["x"] & 127 | (v["y"][0] & 8191) << 7 | (v["y"][1] & 8191) << 20) << 33 * i
        for i, v in enumerate(value)
    )
    assert unpack(pairs, bits) == by_field
    with pytest.raises(ValueError, match="mode must fit 2 bits, not 4"):
        pack(mode, 4)
    with pytest.raises(ValueError, match="pairs must have the field y"):
        pack(pairs, {"x": [1, 2]})
    assert show({"a": 10, "b": [-1, 2]}, 2) == "a = 0a, b = -01 02"
