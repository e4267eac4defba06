"""Times and bytes by source line: they add up to those of units, paths and the total."""

import json

import numpy as np
import pytest

from vitruvian.sim.davinci import Program, load_chip, simulate
from vitruvian.sim.davinci.cce import build, read, read_file
from vitruvian.sim.davinci.isa.instruction import Position
from vitruvian.sim.davinci.report.lines import lines_text
from vitruvian.sim.davinci.report.source import ProgramSources

KERNEL = """// A comment with a brace {
inline __aicore__ void load(__ubuf__ half *u, __gm__ half *x) {
    copy_gm_to_ubuf(u, x, 0, 1, 8, 0, 0);
}
__global__ __aicore__ void k(__gm__ half *x, __gm__ half *y) {
    __ubuf__ half *u = (__ubuf__ half *)get_imm(0);
    load(u, x);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int i = 0; i < 3; i++) {
        vrelu(u, u, 1, 1, 1, 8, 8);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y + 128 * block_idx, u, 0, 1, 8, 0, 0);
}
"""
HALVES = np.arange(128, dtype=np.float16)


def kernel_report(blocks=2):
    chip = load_chip("ascend910")
    arguments = {"x": HALVES, "y": np.zeros(256, np.float16)}
    program, _ = build(read(KERNEL, "k.cce"), chip, arguments, blocks=blocks)
    # The repeated ReLU has no barriers, so the checks would add findings to the text.
    return simulate(program, checks=False)


def sums_agree(report):
    lines, units = report.lines(), report.units()
    assert sum(x.busy_s for x in lines) == pytest.approx(sum(u.busy for u in units), rel=1e-12)
    waiting = sum(u.waiting for u in units)
    assert sum(x.waiting_s for x in lines) == pytest.approx(waiting, rel=1e-12, abs=1e-18)
    assert sum(x.nbytes for x in lines) == sum(report.path_bytes().values())
    assert sum(x.count for x in lines) == len(report.lowered)
    rest = report.total_s - report.critical_units()["launch"]
    assert sum(x.critical_s for x in lines) == pytest.approx(rest, rel=1e-12)


def test_lines_of_a_kernel_in_c():
    report = kernel_report()
    sums_agree(report)
    lines = {x.line: x for x in report.lines()}
    assert set(lines) == {3, 8, 9, 11, 13, 14, 15}
    move, relu, wait = lines[3], lines[11], lines[9]
    assert (move.file, move.function, move.units) == ("k.cce", "load", ("MTE2",))
    assert move.text == "copy_gm_to_ubuf(u, x, 0, 1, 8, 0, 0);"
    assert (move.count, move.nbytes, move.waiting_s) == (2, 512, 0)
    assert (relu.function, relu.units, relu.count, relu.nbytes) == ("k", ("V",), 6, 0)
    assert wait.count == 2 and wait.busy_s == 0 and wait.waiting_s > 0 == wait.nbytes
    # The vector unit waits for the load on both cores, and nothing else uses the bus at once.
    assert wait.waiting_s == pytest.approx(move.busy_s, rel=1e-9)


def test_the_hottest_line_is_the_first():
    core = Program(load_chip("ascend310")).core()
    u = core.allocate("UB", (16384,), "fp16")
    core.vrelu(u, u)
    core.vrelu(u[:128], u[:128])
    report = simulate(core.program, checks=False)
    first, second = report.lines()
    assert first.line == second.line - 1, "128 repeats take longer than one and the drain"
    # The busy time counts until the results are there, the critical one until the next instruction.
    assert first.text == "core.vrelu(u, u)"
    assert first.critical_s == pytest.approx(first.busy_s - 40e-9, rel=1e-9)
    assert first.function == "test_the_hottest_line_is_the_first" and first.file == __file__


def test_lines_of_included_files(tmp_path):
    source = KERNEL.replace("    load(u, x);", '#include "body.h"')
    (tmp_path / "body.h").write_text("\nload(u, x);\nvrelu(u, u, 1, 1, 1, 8, 8);\n")
    (tmp_path / "k.cce").write_text(source)
    kernel = read_file(tmp_path / "k.cce")
    assert set(kernel.sources) == {"k.cce", "body.h"}
    chip = load_chip("ascend910")
    program, _ = build(kernel, chip, {"x": HALVES, "y": np.zeros(256, np.float16)})
    report = simulate(program, checks=False)
    sums_agree(report)
    (line,) = [x for x in report.lines() if x.file == "body.h"]
    assert (line.line, line.text, line.count) == (3, "vrelu(u, u, 1, 1, 1, 8, 8);", 1)


def test_text_and_dictionary():
    report = kernel_report()
    assert "source line" not in report.text()
    text = report.text(lines=2)
    table = text[text.index("source line") :].splitlines()
    assert (len(table) == 4 and table[1].startswith("k.cce:")) or "/k.cce:" in table[1]
    assert table[3].startswith("… and 5 more lines with ")
    assert "more lines" not in report.text(lines=7)
    document = json.loads(json.dumps(report.as_dict()))
    assert [x["line"] for x in document["lines"]] == [x.line for x in report.lines()]
    assert document["lines"][0]["units"] == list(report.lines()[0].units)
    with pytest.raises(ValueError, match=r"^lines must be 0 or more, not -1$"):
        report.text(lines=-1)


def test_a_hostile_text_cannot_write_to_the_terminal():
    text = KERNEL.replace("vrelu(u, u,", "vrelu(/*\033[2J\x07*/u, u,")
    program, _ = build(
        read(text, "k.cce"), load_chip("ascend910"), {"x": HALVES, "y": HALVES}, blocks=1
    )
    report = simulate(program)
    shown = "\n".join(lines_text(report.lines(), 9, report.total_s, 1))
    assert "\\x1b[2J\\x07" in shown and "\033" not in shown


def test_functions_of_positions(tmp_path):
    texts = {"k.cce": KERNEL, "bad.py": "def f(:\n", "x.cce": "} { f() {\n g(\n1) { }\n } }\n"}
    sources = ProgramSources(texts)
    assert [sources.function("x.cce", n) for n in (1, 2, 3, 4, 5)] == ["f", "g", "g", "f", ""]
    assert [sources.function("k.cce", n) for n in (1, 2, 3, 4, 5, 11, 16, 17)] == (
        ["", "load", "load", "load", "k", "k", "k", ""]
    )
    assert sources.function("bad.py", 1) == "" == sources.function("x.cce", 9)
    assert sources.line("k.cce", 0) == "" == sources.line("k.cce", 99)
    assert sources.line("/no/such.py", 1) == "" == sources.function("/no/such.py", 1)
    assert str(Position("k.cce", 3)) == "k.cce:3"
    nested = "def outer():\n    def inner():\n        pass\n    return inner\n"
    path = tmp_path / "nested.py"
    path.write_text(nested)
    assert [ProgramSources().function(str(path), n) for n in (1, 2, 3, 4)] == (
        ["outer", "inner", "inner", "outer"]
    )


@pytest.mark.parametrize(
    "text",
    ["/*" * 300_000, "'\\'" * 200_000, "f() {\n" * 100_000, "f(" * 300_000, "a b " * 150_000],
    ids=["comments", "characters", "functions", "calls", "words"],
)
def test_a_hostile_text_costs_linear_time(text):
    """Each takes well below a second; with a search that starts again it would be hours."""
    sources = ProgramSources({"k.cce": text})
    lines = text.count("\n")
    assert sources.function("k.cce", lines) == ("f" if lines else "")
