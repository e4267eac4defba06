"""Hostile files and command lines for ``tests.system.fuzz_commands``."""

import dataclasses
import gzip
import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["GRAMMARS", "Grammar", "lines", "make_inputs"]

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
    """Return the names of input files, good ones first."""
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
    """The grammar of the lines of a command.

    Attributes
    ----------
    words : tuple of str
        Program and command.
    places : tuple of tuples
        Values of each positional argument, a good one first.
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
    "--strict": None,
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
    Grammar(("vitruvian", "list"), (("fp*", "relu"),), (), {"--json": _OUTPUTS}),
    Grammar(
        ("vitruvian", "verify"),
        (("nothing", "fp.small int32 codes pipeline=2*"),),
        ("--vectors=100", "--jobs=1"),
        {"--vectors": ("100",), "--seed": _NUMBERS, "--jobs": ("1",), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "silicon"),
        (_SILICON[3:],),
        (),
        {"--preset": ("z9", "a100x"), "--input": ("fp99", "fp8e4m3_x"), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "exhaustive"),
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
        ("vitruvian", "kernels"),
        (("sgemm", "conv", "nothing"),),
        ("--size=4", "--methods=FP16"),
        {
            "--list": None,
            "--size": ("4", "2**3", "2**40"),
            "--methods": ("FP16,FP32", "FP16", "FP99"),
            "--backend": ("golden", "gpu"),
            "--verify": None,
            "--unit": ("8x4x8", "1x1x1", "9999x9999x9999"),
            "--multiplier-bits": ("12", "99"),
            "--preset": ("v100", "a100", "z9"),
            "--seed": _NUMBERS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("vitruvian", "mma"), (("m4xu", "zzz"),), (), {"--list": None, "--count": _NUMBERS}),
    Grammar(
        ("vitruvian", "run"),
        (("apsp", "knn", "mst", "gtc"),),
        ("--graph=IN/good.mtx",),
        {
            "--graph": _GRAPH,
            "--algorithm": ("leyzorek", "floyd-warshall", "zzz"),
            "--all-iterations": None,
            "--input": ("fp16", "fp32", "fp99"),
            "--neighbours": _NUMBERS,
            "--unit": ("4x4x4", "1x1x1", "9999x9999x9999"),
            "--chip": _CHIPS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "run"),
        (("relu", "matmul", "nosuch"),),
        ("--size=16x16x16",),
        {"--size": ("16x16x16", "64", "100000x100000x100000"), "--trace": _OUTPUTS, **_DAVINCI},
    ),
    Grammar(("vitruvian", "trace"), (("relu", "zzz"),), ("--out=out.json",), {"--out": _OUTPUTS}),
    Grammar(
        ("vitruvian", "cce"),
        (_inputs("good.cce", "nested.cce", "bomb.cce", "include.cce", "nokernel.cce"),),
        ("--arg=x=zeros:128",),
        {
            "--entry": ("scale", "zzz"),
            "--chip": _CHIPS,
            "--blocks": _NUMBERS,
            "--kind": ("vector", "all", "zzz"),
            "--define": ("A=1", "=1", "1A=2"),
            "--arg": ("x=zeros:128", "x=IN/x.npy", "x=IN/absurd.npy", "x=zeros:1e9", "y=1", "x"),
            "--out": _OUTPUTS,
            "--trace": _OUTPUTS,
            "--gantt": _OUTPUTS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "tune"),
        (("matmul", "zzz"),),
        ("--size=64x64x64", "--jobs=1"),
        {
            "--chip": _CHIPS,
            "--cores": _NUMBERS,
            "--dtype": ("fp16", "int8", "zzz"),
            "--size": ("64x64x64", "64", "0x1x1", "999999999x64x2**30", "9999999999x1x1"),
            "--output-dtype": ("fp32", "zzz"),
            "--method": ("guided", "zzz"),
            "--jobs": ("1",),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("vitruvian", "units"), (), (), {"--json": _OUTPUTS}),
    Grammar(
        ("vitruvian", "verilog"),
        (("compare", "minmax", "nosuch"),),
        ("--format=fp8e4m3",),
        {"--out": ("new", "IN/junk.bin", "/proc/no", "-"), **_UNITS},
    ),
    Grammar(
        ("vitruvian", "area"),
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
    Grammar(("vitruvian", "cells"), (), (), {"--out": _OUTPUTS, "--json": _OUTPUTS}),
    Grammar(("vitruvian", "docs"), (), ("--check",), {"--zzz": _NUMBERS}),
    Grammar(("vitruvian", ""), (), (), {"--version": None, "--zzz": None}),
    Grammar(("vitruvian", "zzz"), (), (), {"--json": _OUTPUTS}),
)


def lines(count: int, seed: int) -> Iterator[list[str]]:
    """Yield command lines, which depend on the seed; the first word is the program."""
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
    """Return the good value, one of the list, or a hostile text."""
    chance = rng.random()
    if chance < 0.5:
        return values[0]
    return rng.choice(values) if chance < 0.8 else rng.choice(_BAD_TEXT)
