"""Hostile files for ``tests.system.fuzz_commands``."""

import gzip
import io
import re
import zipfile
from pathlib import Path

import numpy as np

from tests.support.probes import probe_file
from vitruvian.sim.davinci.chip.file import CHIPS


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
    _put_counters(folder)
    for name, text in chip_files().items():
        put(name, text)
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
    np.save(folder / "y.npy", np.zeros(128, np.float16))
    np.save(folder / "nan.npy", np.full(128, np.nan, np.float16))
    _put_probes(folder)
    put("good.onnx", b"\x08\x07\x12\x04test")
    put("junk.onnx", rng.bytes(4096))
    put("empty.onnx", b"")
    put("text.onnx", "model")


def _put_probes(folder: Path) -> None:
    """Write results of the probe kit: good ones, and files that were spoilt."""
    good = bytearray(probe_file())
    (folder / "probe.bin").write_bytes(good)
    (folder / "short.probe.bin").write_bytes(good[:-7])
    good[8] = 99
    (folder / "old.probe.bin").write_bytes(good)
    good[8], good[-100] = 1, good[-100] ^ 0xFF
    good[400] ^= 1
    (folder / "changed.probe.bin").write_bytes(good)
    np.savez(folder / "probe.npz", a=np.zeros((2, 2), "u2"), b=np.zeros((2, 2), "u2"), d=[0, 0])
    shapes = {"terms": (4, 0), "rows": (0, 4), "scalar": (), "bomb": (1 << 20, 300)}
    for name, shape in shapes.items():
        a, d = np.zeros(shape, "u2"), np.zeros(shape[:1], "u4")
        np.savez_compressed(folder / f"{name}.probe.npz", a=a, b=a, d=d)


_COUNTERS = "component,item,work,active_us,total_us\n"
_MSPROF = {
    "PipeUtilization.csv": "block_id,aic_time(us),aic_vec_time(us)\n0,100.0,20.0\n",
    "ArithmeticUtilization.csv": "block_id,aic_cube_fops,aic_vec_fops,aic_vec_fp16_ratio\n"
    "0,0,900,0.1\n",
    "Memory.csv": "block_id,GM_to_L1_datas(KB)\n0,1500\n",
}


def _put_counters(folder: Path) -> None:
    """Write counters in one file, and folders of msprof, good and hostile."""
    row = "V,fp16,900,20,100\n"
    files = {
        "counters": _COUNTERS + row,
        "nocolumn": "component,item\nV,fp16\n",
        "norow": _COUNTERS,
        "nonumber": _COUNTERS + "V,fp16,x,20,100\n",
        "negative": _COUNTERS + "V,fp16,900,-20,100\n",
        "inf": _COUNTERS + "V,fp16,1e999,inf,nan\n",
        "ceiling": _COUNTERS + "V,fp16,9e300,20,100\n",
        "late": _COUNTERS + "V,fp16,900,200,100\n",
        "zero": _COUNTERS + "V,fp16,0,0,0\n",
        "tiny": _COUNTERS + "V,fp16,1e-300,1e-300,1e-300\n",
        "huge": _COUNTERS + "V,fp16,1e300,1e300,1e300\n",
        "unit": _COUNTERS + "W,fp16,900,20,100\nV,fp99,1,1,100\n",
        "twice": _COUNTERS + row + row,
        "quote": _COUNTERS + 'V,"fp16\n900,20,100\n',
        "long": _COUNTERS + "V," + "9" * 200_000 + ",1,1,1\n",
        "nul": _COUNTERS + "V,\0,1,1,1\n",
        "cells": _COUNTERS + "V,fp16,900,20,100,1,2,3\nV\n",
    }
    for name, text in files.items():
        (folder / f"{name}.counters.csv").write_text(text)
    changes: dict[str, tuple[str, str, str]] = {
        "msprof": ("Memory.csv", "", ""),
        "msprof_core": ("Memory.csv", "\n0,", "\n1,"),
        "msprof_text": ("Memory.csv", "1500", "many"),
        "msprof_more": ("Memory.csv", "1500", "1e300"),
        "msprof_time": ("PipeUtilization.csv", "100.0", "0"),
        "msprof_none": ("PipeUtilization.csv", "100.0", "N/A"),
        "msprof_over": ("PipeUtilization.csv", "20.0", "1e9"),
        "msprof_head": ("ArithmeticUtilization.csv", "aic_vec_fops", "x"),
        "msprof_id": ("PipeUtilization.csv", "block_id", "id"),
        "msprof_short": ("PipeUtilization.csv", ",100.0,20.0", ""),
    }
    for name, (file, old, new) in changes.items():
        (folder / name).mkdir()
        for each, text in _MSPROF.items():
            (folder / name / each).write_text(text.replace(old, new) if each == file else text)
    (folder / "msprof_few").mkdir()
    (folder / "msprof_few" / "Memory.csv").write_text(_MSPROF["Memory.csv"])


#: Hostile values of keys of a chip file, and a chip that has the key.
_CHIP_CHANGES = {
    "interlocks": ("ascend910", ('"V"', '["Q"]', "[1]", '["V", "V"]', "{V = 1}", "[[]]")),
    "latency_cycles": ("ascend910", ("-1", "nan", "inf", "1e99", '"5"', "[1]", "1e-99")),
    "drain_ns": ("ascend910", ("-1", "nan", "1e99", "true", "[]", "5_0_")),
    "issue_ns": ("ascend910b", ("-1", "nan", "1e99", '""', "{}")),
    "bursts": ("ascend910b", ("-1", "0", "1.5", "1e9", "99999999999999", '"x"')),
    "block_ns": ("ascend910b", ("-1", "nan", "1e99", "[0]", "1979-05-27")),
}


def chip_files() -> dict[str, str]:
    """Return the texts of chips with a hostile value each, by the name of the file.

    Raises
    ------
    ValueError
        If a chip does not have a key.
    """
    files = {}
    for key, (base, values) in _CHIP_CHANGES.items():
        text = (CHIPS / f"{base}.toml").read_text(encoding="utf-8")
        for number, value in enumerate(values):
            pattern = rf"^({key} = )(\[[^\]]*\]|\S+)$"
            changed, count = re.subn(pattern, rf"\g<1>{value}", text, count=1, flags=re.M)
            if not count:
                raise ValueError(f"{base} must have the key {key}")
            files[f"{key}_{number}.toml"] = changed
    return files


CCE = """
extern "C" __global__ __aicore__ void scale(__gm__ half *x) {
    __ubuf__ half *u = (__ubuf__ half *)get_imm(0);
    copy_gm_to_ubuf(u, x, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(x, u, 0, 1, 8, 0, 0);
}
"""
