"""Hostile command lines for ``python -m sim`` and ``python -m flows``.

Run by hand: ``python tests/system/fuzz_commands.py --count 200 --seed 1``. Each command runs in a
process of its own with bounded time and memory. It must end with 0, 1 (a difference was found) or 2
(one line on standard error), without a traceback, without a changed input and without a file that
is not whole. The exit code is 1 if one does not.
"""

import argparse
import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import os
import random
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

#: Lines of standard error that may come before the one that says the mistake.
PRELIMINARY = ("note: ", "warning: ", "compiling ", "[")

MEMORY_BYTES = 8 << 30


# ------------------------------------------------------------------ inputs


def make_inputs(folder: Path) -> None:
    """Fill a folder with files of every kind, good and hostile."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)

    def put(name: str, content: bytes | str) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    header = "%%MatrixMarket matrix coordinate real general\n"
    put("good.mtx", header + "4 4 4\n1 2 1.5\n2 3 2\n3 4 1\n4 1 7\n")
    put("huge.mtx", header + "999999999 999999999 1\n1 2 1.5\n")
    put("short.mtx", header + "4 4 9\n1 2 1.5\n")
    put("negative.mtx", header + "-4 -4 -1\n")
    put("nan.mtx", header + "2 2 1\n1 2 nan\n")
    put("twice.mtx", header + "3 3 2\n1 2 1.5\n1 2 7\n")
    put("bomb.mtx.gz", gzip.compress(header.encode() + b"2 2 1\n" + b" " * (64 << 20)))
    put("points.csv", "1,2\n3,4\n5,6\n7,9\n")
    put("ragged.csv", "a,b\n1\n2,3,4\n")
    put("good.toml", "name = 'x'\n")
    put("deep.toml", "a = " + "[" * 20000)
    put("number.toml", "clock_hz = 1e999999999\n")
    put("latin.toml", b"name = '\xe9\xff'\n")
    put("deep.json", "[" * 100000)
    put("good.json", "{}")
    put("good.cce", CCE)
    put("nested.cce", "void f() { int x = " + "(" * 3000 + "1" + ")" * 3000 + "; }")
    bomb = "\n".join(f"#define D{n + 1} {' '.join([f'D{n}'] * 10)}" for n in range(10))
    put("bomb.cce", f"#define D0 1\n{bomb}\nint x = D10;\n")
    put("include.cce", '#include "/etc/passwd"\n#include "include.cce"\n')
    put("nokernel.cce", "int x;\n")
    put("empty", b"")
    put("junk.bin", rng.bytes(4096))
    put("utf16.txt", "void f() {}".encode("utf-16"))
    put("nul.txt", b"a\0b\n\0")
    put("picture.png", b"\x89PNG\r\n\x1a\n" + rng.bytes(64))
    put("new\nline.txt", "x")
    put("good.lib", "library (x) { cell (A) { area : 1; } }")
    put("deep.lib", "library (x) {" + "cell (A) {" * 20000)
    (folder / "folder.json").mkdir()
    (folder / "loop.mtx").symlink_to(folder / "loop.mtx")
    half = rng.standard_normal((2, 4, 8)).astype(np.float16)
    np.savez(folder / "a100_fp16.npz", a=half[0], b=half[1], d_fp32=np.zeros(4, np.uint32))
    np.savez(folder / "h100_fp16.npz", a=np.zeros(()), b=half[1], d_fp32=np.zeros(4, "f8"))
    np.save(folder / "x.npy", half)
    (folder / "v100_fp16.npz").write_bytes((folder / "x.npy").read_bytes())
    absurd = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        absurd, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 8)}
    )
    with zipfile.ZipFile(folder / "b200_fp16.npz", "w") as archive:
        for name in "abd":
            archive.writestr(f"{name}.npy", absurd.getvalue())
    put("absurd.npy", absurd.getvalue())


CCE = """
extern "C" __global__ __aicore__ void scale(__gm__ half *x) {
    __ubuf__ half *u = (__ubuf__ half *)get_imm(0);
    copy_gm_to_ubuf(u, x, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(x, u, 0, 1, 8, 0, 0);
}
"""

# ------------------------------------------------------------------ command lines

_BAD_TEXT = (
    *("", " ", "-1", "0", "-0", "1e9", "1e999", "nan", "inf", "9" * 40, "9" * 5000),
    *("999999999999", "0x10", "½", "٣", "é", "💥", "a\nb", "../..", "/", "%s%n", "{}", "None"),
    *("[1]", "1,,2", "8-4", "1x1x1", "0x0x0", "100000x100000x100000", "1x", "x", ",", "*"),
    *("999999999x999999999x999999999", "2**99", "fp16", "zzz", "apsp", "a" * 300, "\udcff"),
    *("$(id)", "1_000", "+5", "1.5", "true"),
)
_NUMBERS = ("1", "2", "3", "7")


def _inputs(*good: str) -> tuple[str, ...]:
    """Names of input files, good ones first."""
    bad = "junk.bin empty utf16.txt nul.txt picture.png folder.json deep.json loop.mtx missing.x"
    return (*(f"IN/{name}" for name in (*good, *bad.split())), "IN/new\nline.txt", "/dev/null")


_OUTPUTS = (
    *(
        "out.json",
        "new/folder/out.json",
        "out.json.gz",
        "out.svg",
        "out.png",
        "out.npz",
        "é💥.json",
    ),
    *("out.bmp", "out", "IN/good.json/x.json", "IN/folder.json", "/proc/no/out.json", "/dev/full"),
    *("", ".", "n" * 300 + ".json", "/dev/null/out.svg", "-", "IN/junk.bin/x.npz"),
)


@dataclasses.dataclass(frozen=True)
class Grammar:
    """How lines of a command are made.

    Attributes
    ----------
    words : tuple of str
        Program and command.
    places : tuple of tuples
        What each positional argument may be; a good value comes first.
    given : tuple of str
        Arguments that keep the work small, unless an option replaces them.
    options : dict
        Values by option: a tuple of good and bad ones, or None for a flag.
    """

    words: tuple[str, ...]
    places: tuple[tuple[str, ...], ...] = ()
    given: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...] | None] = dataclasses.field(default_factory=dict)


_GRAPH = _inputs(
    *("good.mtx", "huge.mtx", "short.mtx", "negative.mtx", "nan.mtx", "twice.mtx", "bomb.mtx.gz"),
    *("points.csv", "ragged.csv", "x.npy", "absurd.npy"),
)
_CHIPS = ("ascend310", *_inputs("good.toml", "deep.toml", "number.toml", "latin.toml"), "nosuch")
_DAVINCI = {
    "--chip": _CHIPS,
    "--cube": ("golden", "none", "fast", "gpu"),
    "--cores": _NUMBERS,
    "--tiling": ("1,1,1,1", "2,2,2,2", "0,0,0,0", "9,9,9,9", "1,1"),
    "--seed": _NUMBERS,
    "--no-checks": None,
    "--timeline": None,
    "--gantt": _OUTPUTS,
    "--json": _OUTPUTS,
}
_UNITS = {
    "--format": ("fp8e4m3", "fp8e5m2", "int99"),
    "--pipeline": ("0", "1", "9", "8-4"),
    "--rounding": ("RNE", "RTZ", "up"),
    "--preset": ("a100", "tiny", "z9"),
    "--k": ("1", "8-4", "65"),
    "--width": ("8", "0", "999999999"),
    "--json": _OUTPUTS,
}
_SILICON = _inputs("a100_fp16.npz", "h100_fp16.npz", "v100_fp16.npz", "b200_fp16.npz", "x.npy")

GRAMMARS = (
    Grammar(("sim", "list"), (("fp*", "relu"),), (), {"--json": _OUTPUTS}),
    Grammar(
        ("sim", "verify"),
        (("nothing", "fp.small int32 codes pipeline=2*"),),
        ("--vectors=100", "--jobs=1"),
        {"--vectors": ("100",), "--seed": _NUMBERS, "--jobs": ("1",), "--json": _OUTPUTS},
    ),
    Grammar(
        ("sim", "silicon"),
        (_SILICON[3:],),
        (),
        {"--preset": ("z9", "a100x"), "--input": ("fp99", "fp8e4m3_x"), "--json": _OUTPUTS},
    ),
    Grammar(
        ("sim", "exhaustive"),
        (("nothing", "*fp8e4m3 x fp8e4m3"),),
        ("--limit=1", "--jobs=1"),
        {
            "--list": None,
            "--chunk": ("65536", "1000", "3"),
            "--limit": ("1",),
            "--progress": (*_OUTPUTS, "IN/junk.bin", "IN/good.json", "IN/a100_fp16.npz"),
            "--restart": None,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("sim", "kernels"),
        (("sgemm", "conv", "nothing"),),
        ("--size=4", "--methods=FP16"),
        {
            "--list": None,
            "--size": ("4", "2**3", "2**40"),
            "--methods": ("FP16,FP32", "FP16", "FP99"),
            "--backend": ("golden", "gpu"),
            "--check": None,
            "--unit": ("8x4x8", "1x1x1", "9999x9999x9999"),
            "--multiplier-bits": ("12", "99"),
            "--preset": ("v100", "a100", "z9"),
            "--seed": _NUMBERS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("sim", "mma"), (("m4xu", "zzz"),), (), {"--list": None, "--count": _NUMBERS}),
    Grammar(
        ("sim", "run"),
        (("apsp", "knn", "mst", "gtc"),),
        ("--graph=IN/good.mtx",),
        {
            "--graph": _GRAPH,
            "--algorithm": ("leyzorek", "floyd-warshall", "zzz"),
            "--no-check": None,
            "--inputs": ("fp16", "fp32", "fp99"),
            "--neighbours": _NUMBERS,
            "--unit": ("4x4x4", "1x1x1", "9999x9999x9999"),
            "--chip": _CHIPS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("sim", "run"),
        (("relu", "matmul", "nosuch"),),
        ("--size=16x16x16",),
        {"--size": ("16x16x16", "64", "100000x100000x100000"), "--out": _OUTPUTS, **_DAVINCI},
    ),
    Grammar(("sim", "trace"), (("relu", "zzz"),), ("--out=out.json",), {"--out": _OUTPUTS}),
    Grammar(
        ("sim", "cce"),
        (_inputs("good.cce", "nested.cce", "bomb.cce", "include.cce", "nokernel.cce"),),
        ("--arg=x=zeros:128",),
        {
            "--entry": ("scale", "zzz"),
            "--chip": _CHIPS,
            "--cores": _NUMBERS,
            "--kind": ("vector", "all", "zzz"),
            "--define": ("A=1", "=1", "1A=2"),
            "--arg": ("x=zeros:128", "x=IN/x.npy", "x=IN/absurd.npy", "x=zeros:1e9", "y=1", "x"),
            "--save": _OUTPUTS,
            "--out": _OUTPUTS,
            "--gantt": _OUTPUTS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("sim", "tune"),
        (("matmul", "zzz"), ("64", "0", "999999999"), ("64",), ("64", "10**9")),
        ("--jobs=1",),
        {
            "--chip": _CHIPS,
            "--cores": _NUMBERS,
            "--dtype": ("fp16", "int8", "zzz"),
            "--out": ("fp32", "zzz"),
            "--method": ("guided", "zzz"),
            "--jobs": ("1",),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("flows", "list"), (), (), {"--json": _OUTPUTS}),
    Grammar(
        ("flows", "verilog"),
        (("compare", "minmax", "nosuch"),),
        ("--format=fp8e4m3",),
        {"--folder": ("new", "IN/junk.bin", "/proc/no"), "--stdout": None, **_UNITS},
    ),
    Grammar(
        ("flows", "area"),
        (("compare", "nosuch"),),
        ("--format=fp8e4m3", "--jobs=1"),
        {
            "--liberty": _inputs("good.lib", "deep.lib"),
            "--delay-target": ("1000", "0", "-1", "1e99"),
            "--driving-cell": ("BUF_X4", "NOSUCH"),
            "--load": ("5", "nan", "inf", "-1", "1e300"),
            "--markdown": _OUTPUTS,
            "--svg": _OUTPUTS,
            **_UNITS,
        },
    ),
    Grammar(("flows", "cells"), (), (), {"--write": _OUTPUTS, "--json": _OUTPUTS}),
    Grammar(("flows", "docs"), (), ("--check",), {"--zzz": _NUMBERS}),
    Grammar(("sim", ""), (), (), {"--version": None, "--zzz": None}),
    Grammar(("flows", "zzz"), (), (), {"--json": _OUTPUTS}),
)


def lines(count: int, seed: int) -> Iterator[list[str]]:
    """Command lines, the same for the same seed; the first word is the program."""
    rng = random.Random(seed)
    foreign = sorted({option for grammar in GRAMMARS for option in grammar.options})
    for n in range(count):
        grammar = GRAMMARS[n % len(GRAMMARS)] if n < len(GRAMMARS) else rng.choice(GRAMMARS)
        line = [word for word in grammar.words if word]
        for place in grammar.places:
            line.append(_one(rng, place))
        if rng.random() < 0.1:
            line.append(rng.choice(_BAD_TEXT))
        chosen = rng.sample(sorted(grammar.options), min(len(grammar.options), rng.randrange(4)))
        given = [text for text in grammar.given if text.partition("=")[0] not in chosen]
        for option in chosen:
            values = grammar.options[option]
            given.append(option if values is None else f"{option}={_one(rng, values)}")
        if rng.random() < 0.1:
            given.append(rng.choice(foreign))
        yield line + given


def _one(rng: random.Random, values: tuple[str, ...]) -> str:
    """The good value, one of the list, or any hostile text."""
    chance = rng.random()
    if chance < 0.5:
        return values[0]
    return rng.choice(values) if chance < 0.8 else rng.choice(_BAD_TEXT)


# ------------------------------------------------------------------ running


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a command line."""

    line: list[str]
    code: int
    seconds: float
    mebibytes: float
    faults: tuple[str, ...]
    errors: str


def program(line: list[str]) -> int | str | None:
    """Run a command line in this process."""
    if line[0] == "flows":
        from flows.cli import main
    elif line[0] == "sim":
        from sim.cli import main
    else:
        return PLANTS[line[0]]()
    try:
        return main(line[1:])
    except SystemExit as stop:
        return stop.code


def _plant_traceback() -> int:
    raise RuntimeError("planted")


def _plant_file() -> int:
    Path("half.json").write_text('{"a": ')
    return 0


def _plant_memory() -> int:
    return len(bytearray(2 * MEMORY_BYTES))


def _plant_hang() -> int:
    time.sleep(3600)
    return 0


def _plant_lines() -> int:
    print("error: one\nand another", file=sys.stderr)
    return 2


def _plant_input() -> int:
    Path("../in/good.mtx").write_text("")
    return 0


#: Commands that do what none may do, to prove that it is found.
PLANTS: dict[str, Callable[[], int]] = {
    "traceback": _plant_traceback,
    "file": _plant_file,
    "memory": _plant_memory,
    "hang": _plant_hang,
    "lines": _plant_lines,
    "input": _plant_input,
}


def run(line: list[str], folder: Path, seconds: float) -> Outcome:
    """Run a command line in a child with the folder ``IN`` beside its own; say what is wrong."""
    inputs, own = folder / "in", folder / "own"
    if not inputs.exists():
        make_inputs(inputs)
    own.mkdir()
    before = _digest(inputs)
    words = [word.replace("IN/", "../in/") for word in line]
    began = time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(words, folder)
    status, usage, ended = 0, None, False
    while not ended and time.monotonic() < began + seconds:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        ended = done == pid
        time.sleep(0 if ended else 0.01)
    faults = []
    if not ended:
        faults.append(f"no end after {seconds:g} s")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    errors = (folder / "stderr").read_text(errors="replace")
    output = (folder / "stdout").read_text(errors="replace")
    if ended:
        faults += _faults(code, output, errors, own)
    if _digest(inputs) != before:
        faults.append("an input was changed")
        _remove(inputs)
    _remove(own)
    mebibytes = usage.ru_maxrss / 1024 if usage else 0.0
    return Outcome(line, code, time.monotonic() - began, mebibytes, tuple(faults), errors)


def _child(line: list[str], folder: Path) -> None:
    code: int | str | None = 70
    try:
        os.setsid()
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        streams = (open(n, "w", closefd=False, errors="backslashreplace") for n in (1, 2))
        sys.stdout, sys.stderr = streams  # as __main__ has them
        os.chdir(folder / "own")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = program(line)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _faults(code: int, output: str, errors: str, own: Path) -> list[str]:
    found = []
    if code not in (0, 1, 2):
        found.append(f"exit code {code}")
    if "Traceback (most recent call last)" in errors + output or "Exception ignored" in errors:
        found.append("traceback")
    said = [line for line in errors.splitlines() if not line.startswith(PRELIMINARY)]
    if code == 2 and len(said) != 1:
        found.append(f"{len(said)} lines on standard error")
    if code == 1 and any("error:" in line for line in said):
        found.append("an error with exit code 1")
    for path in sorted(own.rglob("*")):
        if path.is_file():
            if code == 2:
                found.append(f"left {path.name} behind")
            elif not _whole(path):
                found.append(f"{path.name} is not whole")
    return found


def _whole(path: Path) -> bool:
    """Whether a file that a command has written reads back."""
    data = path.read_bytes()
    if path.name.startswith(".") or path.name.endswith((".partial", ".tmp")) or not data:
        return False
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        if data[:1] in (b"{", b"["):
            json.loads(data)
    except (ValueError, OSError, EOFError):
        return False
    ends = {
        b"PK\x03\x04": b"PK\x05\x06",
        b"\x89PNG": b"IEND",
        b"<?xm": b"</svg>",
        b"<svg": b"</svg>",
    }
    return ends.get(data[:4], b"") in data[-64:]


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state.update(os.fsencode(path.name))
        if path.is_file() and not path.is_symlink():
            state.update(path.read_bytes())
    return state.hexdigest()


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    folder.rmdir()


def _preload() -> None:
    """Import what every command needs, once for all children."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    os.environ.setdefault("VITRUVIAN_CACHE", str(Path("build") / "cache"))
    os.environ["VITRUVIAN_CACHE"] = str(Path(os.environ["VITRUVIAN_CACHE"]).absolute())
    import flows.cli  # noqa: F401
    import sim.bench.silicon
    import sim.davinci
    import sim.kernels
    import sim.verify  # noqa: F401


def shown(line: list[str]) -> str:
    """A command line on one line, for a shell."""
    return " ".join(shlex.quote(w) if len(w) < 80 else shlex.quote(w[:70] + "…") for w in line)


def main(arguments: list[str] | None = None) -> int:
    """Run the command lines and print a table of what became of them."""
    parser = argparse.ArgumentParser(
        description="Run hostile command lines and print what became of them."
    )
    parser.add_argument("--count", type=int, default=200, help="command lines (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="choose the lines (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="skip so many (default: 0)")
    parser.add_argument("--seconds", type=float, default=45, help="limit for each (default: 45)")
    parser.add_argument("--all", action="store_true", help="print every line as it ends")
    parser.add_argument("--plant", choices=PLANTS, help="run only this, which must be found")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    _preload()
    chosen = list(lines(options.count, options.seed))[options.first :]
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for number, line in enumerate([[options.plant]] if options.plant else chosen):
            outcome = run(line, Path(name), options.seconds)
            outcomes.append(outcome)
            if options.all or outcome.faults:
                text = "; ".join(outcome.faults) or "good"
                print(f"{options.first + number}: {shown(line)}\n    {outcome.code}, {text}")
                if outcome.errors and (options.all or outcome.faults):
                    print("    " + "\n    ".join(outcome.errors.strip()[-900:].splitlines()[-8:]))
                sys.stdout.flush()
    _print(outcomes, options.seed)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def _print(outcomes: list[Outcome], seed: int) -> None:
    table = Table()
    table.add_column("command", no_wrap=True)
    for name in ("lines", "exit 0", "exit 1", "exit 2", "slowest, s", "largest, MiB", "faults"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(" ".join(outcome.line[:2])[:24], []).append(outcome)
    for name, found in [*sorted(groups.items()), ("all", outcomes)]:
        table.add_row(
            name,
            f"{len(found)}",
            *(f"{sum(o.code == code for o in found)}" for code in (0, 1, 2)),
            f"{max(o.seconds for o in found):.1f}",
            f"{max(o.mebibytes for o in found):.0f}",
            f"{sum(bool(o.faults) for o in found)}",
        )
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(table)
    bad = sum(bool(outcome.faults) for outcome in outcomes)
    console.print(f"{len(outcomes)} command lines (seed {seed}): {bad} with faults")


if __name__ == "__main__":
    sys.exit(main())
