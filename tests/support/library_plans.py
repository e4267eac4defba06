"""Library calls that were recorded on an H200: results, plans, and what a kernel tells of them."""

import csv
import json
import re
import sys
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.support.measured import FOLDER
from vitruvian.flows.probes import library_operands
from vitruvian.golden.plans import LibraryCall

#: Terms of a step of wgmma in FP8.
_FP8_STEP = 32
_NAMES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}


@lru_cache
def record() -> dict:
    """Return the header of the recorded calls."""
    with np.load(FOLDER / "calls.npz") as file:
        return json.loads(str(file["header"]))


@lru_cache
def _blob() -> bytes:
    with np.load(FOLDER / "calls.npz") as file:
        return file["samples"].tobytes()


def samples(call: dict) -> dict[str, np.ndarray]:
    """Return the sampled results of a call for each kind of operands."""
    count = record()["samples"]
    size = {"fp64": 8, "fp32": 4}.get(_NAMES[call["result"]], 2)
    return {
        kind: np.frombuffer(_blob(), f"u{size}", count, call["at"] + number * count * size)
        for number, kind in enumerate(library_operands.KINDS)
    }


def call_of(call: dict) -> LibraryCall:
    """Return a recorded call as ``golden.plans`` names it."""
    return LibraryCall(
        **{name: call[name] for name in ("op", "a", "b", "m", "k", "n", "layout")},
        batch=call.get("batch", 1),
        output=_NAMES[call["result"]],
        fast=bool(call.get("fast")),
        scales=call.get("scales") or "",
        bias=bool(call.get("bias")),
    )


def table_row(call: dict) -> dict[str, str]:
    """Return the row of a call with a plan in golden/plans/cublas_h200.csv."""
    fields = {
        name: int(x) if isinstance(x, bool) else x for name, x in asdict(call_of(call)).items()
    }
    plan, a, b = call["plan"], call["a"], call["b"]
    step: object = plan["step"]
    if a in ("e4m3", "e5m2"):
        rule = f"h200_wgmma_{a if a == b else f'{a}x{b}'}_fp32"
        step = "" if step == _FP8_STEP else step
    elif a in ("fp32", "fp64") or (a == "tf32" and step == 1):  # TF32 was allowed, and not used
        rule, step = f"fma_{'fp64' if a == 'fp64' else 'fp32'}", ""
    else:
        rule = f"h200_mma_{a}_fp32"
    starts = plan.get("starts") or [0]
    more = {
        "rule": rule,
        "step": step,
        "restart": plan["restart"] or "",
        "starts": " ".join(map(str, starts)) if starts != [0] else "",
        "cyclic": " ".join(map(str, plan.get("cyclic", ()))),
        "remainder_first": plan.get("remainder_first") or "",
    }
    return {name: str(value) for name, value in (fields | more).items()}


def nvjet_slices(name: str, grid: list[int], m: int, n: int, k: int) -> int:
    """Return the slices of K of a kernel nvjet of cuBLAS, by its name and its grid.

    The name has the tile of the product (whose rows are the columns of PyTorch's result), the tile
    of K, and the cluster; a grid of a kernel that splits K has a block for each tile and slice.
    """
    numbers = re.search(r"nvjet_sm90_\w+?_(\d+)x(\d+)_(\d+)x\d+_(\d+)x(\d+)_[hv]_", name)
    if numbers is None or "splitK" not in name:
        return 1
    rows, columns, depth, wide, high = map(int, numbers.groups())
    tiles = _multiple(-(-n // rows), wide) * _multiple(-(-m // columns), high)
    slices = grid[0] * grid[1] // tiles
    steps = -(-k // depth)
    return -(-steps // -(-steps // slices))  # the last slices may be empty


def _multiple(value: int, of: int) -> int:
    return -(-value // of) * of


#: Kernels of one slice each, by the beginnings of their names, and of several if another follows.
_XMMA = re.compile(r"sm(80|90)_xmma_gemm_f32f32_(f32f32|tf32f32)_f32_")


def kernel_slices(
    kernels: list[tuple[str, list[int]]], m: int, n: int, k: int, *, tf32: bool = False
) -> str | None:
    """Return the slices of K that the kernels of a call make, as ``golden.plans`` writes them.

    None if the family of kernels does not tell: its measured calls have several plans, or none.
    """
    (name, grid), *more = [each for each in kernels if not each[0].startswith("Memset")]
    cleared = len(kernels) > 1 + len(more)  # memory that blocks tell each other by
    if name.startswith("nvjet"):
        # The grid is that of all cores, or slices end at other tiles than here.
        if "splitK" in name and (cleared or "blk128" in name):
            return None
        count = nvjet_slices(name, grid, m, n, k)
        depth = re.search(r"nvjet_sm90_\w+?_\d+x\d+_(\d+)x", name)
        assert depth is not None
        return "1" if count == 1 else f"{count} × {depth[1]}"
    if not _XMMA.match(name) or cleared or ("_ffma_" in name and tf32):
        return None
    if not more:
        return "1"
    return f"{grid[2]} cyclic 8" if "_ffma_" in name and grid[2] > 1 else None


@lru_cache
def shapes() -> dict:
    """Return the record of the kernels of further calls."""
    with np.load(FOLDER / "shapes.npz") as file:
        return json.loads(str(file["record"]))


def shapes_table() -> list[dict[str, str]]:
    """Return the rows of golden/plans/cublas_h200_shapes.csv: slices for each kind of call."""
    rows: dict[tuple[int, int, int], dict[str, str]] = {}
    kinds: dict[str, None] = {}
    for values in shapes()["rows"]:
        call = dict(zip(shapes()["columns"], values, strict=True))
        output = call["out"] or ("fp32" if call["a"] == "tf32" else call["a"])
        more = ["fast"] if call["fast"] else []
        more += [call["scales"]] if call["scales"] else []
        more += ["bias"] if call["bias"] else []
        kind = " ".join((call["op"], call["a"], call["layout"], output, *more))
        kernels = [(shapes()["names"][number], grid) for number, grid in call["kernels"]]
        m, n, k = call["m"], call["n"], call["k"]
        slices = kernel_slices(kernels, m, n, k, tf32=call["a"] == "tf32")
        kinds[kind] = None
        rows.setdefault((m, n, k), {})[kind] = slices or ""
    names = ("m", "n", "k")
    return [
        {**dict(zip(names, map(str, key), strict=True)), **{x: rows[key].get(x, "") for x in kinds}}
        for key in sorted(rows)
    ]


def write(folder: Path) -> None:
    """Write the tables of golden/plans into a folder."""
    rows = sorted(
        (table_row(call) for call in record()["calls"] if call["plan"]),
        key=lambda row: list(row.values()),
    )
    for name, table in (("cublas_h200", rows), ("cublas_h200_shapes", shapes_table())):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
