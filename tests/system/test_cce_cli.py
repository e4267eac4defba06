"""vitruvian cce: macros, folders, arguments, prints, limits, and mistakes in a line."""

import json
from pathlib import Path

import numpy as np
import pytest

import vitruvian.sim
from vitruvian.cli import main

TEXT = Path(vitruvian.sim.__file__).parent / "kernels" / "text"
SOFTMAX = str(TEXT / "softmax.cce")
KERNEL = """#include "value.h"
__global__ __aicore__ void k(__gm__ int32_t *out, int32_t n) {
    for (int i = 0; i < n; i++) out[i] = VALUE;
    printf("n = %d\\033\\n", n);
}
"""
ARGUMENTS = ("--arg", "out=zeros:8", "--arg", "n=3")


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "own" / "k.cce"
    path.parent.mkdir()
    path.write_text(KERNEL)
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "value.h").write_text("#ifndef VALUE\n#define VALUE 5\n#endif\n")
    return path


def test_a_kernel_prints_and_includes(kernel, capsys):
    """The output of a kernel was swallowed; files of other folders needed their whole path."""
    options = [str(kernel), *ARGUMENTS, "-I", str(kernel.parents[1] / "headers")]
    assert main(["cce", *options, "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert "aicore 0: n = 3\\x1b\n" in printed.err
    assert json.loads(printed.out)["prints"] == [{"core": "aicore 0", "text": "n = 3\x1b\n"}]
    assert "out (8 int32): 5 5 5 0 0 0 0 0" in printed.err
    assert main(["cce", *options, "-D", "VALUE=7"]) == 0
    assert "out (8 int32): 7 7 7 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-D", "=1"], "--define must be NAME or NAME=VALUE with a name of C, not '=1'"),
        (["-D", "1x=2"], "--define must be NAME or NAME=VALUE with a name of C, not '1x=2'"),
        (["-D", ""], "--define must be NAME or NAME=VALUE with a name of C, not ''"),
        (["-I", "/nowhere"], "--include must be a folder, not '/nowhere'"),
        (["--arg", "rows"], "--arg must be NAME=VALUE, not 'rows'"),
        (["--arg", "z=1"], "--arg must be of one of x, y, rows, n, not 'z'"),
        (["--arg", "n=1", "--arg", "n=2"], "--arg n must be given once, not as '1' and '2'"),
        (["--arg", "x=zeros:0"], "--arg x=zeros:N must have 1 to 268435456 elements, not '0'"),
        (
            ["--arg", "x=no.npy"],
            "--arg x must be a file .npy, not 'no.npy': No such file or directory",
        ),
        (["--arg", "x=null", "--arg", "y=null", "--arg", "rows=1.5", "--arg", "n=2"], "whole num"),
        (["--steps", "0"], "--steps: must be a whole number from 1 on, not '0'"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    """-D =1 was accepted, and of an argument that was given twice the last was taken."""
    given = [a.partition("=")[0] for a in arguments]
    default = {"x": "zeros:128", "y": "zeros:128", "rows": "1", "n": "128"}
    fill = [w for n, v in default.items() if n not in given for w in ("--arg", f"{n}={v}")]
    try:
        assert main(["cce", SOFTMAX, *arguments, *fill]) == 2
    except SystemExit as stop:
        assert stop.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_file_without_a_kernel(tmp_path, capsys):
    """It said "must be of one of , not 'x'"."""
    for text, argument in (("int x = 3;", "x=1"), ("", "x=1"), ("<html>no kernel</html>", "x=1")):
        (tmp_path / "k.cce").write_text(text)
        assert main(["cce", str(tmp_path / "k.cce"), "--arg", argument]) == 2
        assert capsys.readouterr().err == (
            "error: k.cce:1:1: there is no function in this file; a kernel looks like: "
            "__global__ __aicore__ void name(__gm__ half *x, int32_t n) {...}\n"
        )
    (tmp_path / "k.cce").write_text("__global__ __aicore__ void k() { }")
    assert main(["cce", str(tmp_path / "k.cce"), "--arg", "x=1"]) == 2
    expected = "error: --arg must not be given, not 'x': the kernel has no parameters\n"
    assert capsys.readouterr().err == expected


def test_the_limit_of_steps_is_named_and_can_be_changed(tmp_path, capsys):
    (tmp_path / "k.cce").write_text("__global__ __aicore__ void k() { for (;;) { } }")
    assert main(["cce", str(tmp_path / "k.cce"), "--steps", "1000"]) == 2
    assert capsys.readouterr().err == (
        "error: k.cce:1:34: the kernel must end within 1000 steps; it is here "
        "(--steps or limit= allows more)\n"
    )


def test_files_to_read_are_checked(tmp_path, capsys):
    assert main(["cce", str(tmp_path)]) == 2
    assert main(["cce", "/dev/zero"]) == 2
    assert "/dev/zero: a source must be a plain file" in capsys.readouterr().err
    np.save(tmp_path / "ok.npy", np.zeros(128, np.float16))
    data = (tmp_path / "ok.npy").read_bytes().replace(b"(128,), ", b"(10**9,)")
    (tmp_path / "bad.npy").write_bytes(data.replace(b"(10**9,)", b"(1" + b"0" * 5 + b",)"))
    options = ["--arg", "y=zeros:128", "--arg", "rows=1", "--arg", "n=128"]
    assert main(["cce", SOFTMAX, "--arg", f"x={tmp_path / 'bad.npy'}", *options]) == 2
    error = capsys.readouterr().err
    assert "--arg x must be a file .npy, not" in error and error.count("\n") == 1
    assert main(["cce", SOFTMAX, "--arg", f"x={tmp_path / 'ok.npy'}", *options]) == 0


def test_help_has_sentences_defaults_and_an_example(capsys):
    with pytest.raises(SystemExit):
        main(["cce", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Read a kernel in CCE C, run it on the simulated cores of a chip" in text
    assert "Example: vitruvian cce sim/kernels/text/softmax.cce" in text
    assert "(default: ascend310)" in text and "(default: 10 million)" in text


def test_prints_come_before_the_line_on_a_deadlock(tmp_path, capsys):
    """They were lost."""
    path = tmp_path / "k.cce"
    path.write_text("""__global__ __aicore__ void k(__gm__ int32_t *out) {
    printf("before\\n");
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}
""")
    for options, shown in (((), "out"), (("--json", "-"), "err")):
        assert main(["cce", str(path), "--arg", "out=zeros:8", *options]) == 2
        printed = capsys.readouterr()
        assert "aicore 0: before\n" in getattr(printed, shown)
        assert "deadlock" in printed.err.splitlines()[-1]
        assert options == () or printed.out == ""


def test_texts_without_an_end_share_a_line(tmp_path, capsys):
    """Each print was a line of its own."""
    path = tmp_path / "k.cce"
    path.write_text("""__global__ __aicore__ void k(__gm__ int32_t *out) {
    printf("[");
    for (int i = 0; i < 3; i++) printf("%d ", i);
    printf("]\\nlast");
}
""")
    assert main(["cce", str(path), "--arg", "out=zeros:8", "--blocks", "2"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert shown[-5:-1] == [f"aicore {c}: {text}" for c in (0, 1) for text in ("[0 1 2 ]", "last")]


def test_auto_sync_inserts_what_the_compiler_of_the_device_inserts(tmp_path, capsys):
    lines = Path(SOFTMAX).read_text().splitlines(keepends=True)
    bare = tmp_path / "bare.cce"
    bare.write_text("".join(line for line in lines if "pipe_barrier" not in line))
    given = ["--chip", "ascend910", "--arg", "x=normal:256", "--arg", "y=zeros:256"]
    given += ["--arg", "rows=2", "--arg", "n=128", "--blocks", "2"]
    assert main(["cce", str(bare), *given]) == 1
    assert "hazard: " in capsys.readouterr().out
    assert main(["cce", str(bare), *given, "--auto-sync", "--strict"]) == 0
    printed = capsys.readouterr()
    assert "--auto-sync: 4 barriers of V inserted" in printed.err and "hazard" not in printed.out
