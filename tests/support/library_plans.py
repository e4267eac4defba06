"""Results of recorded library calls, computed by a plan: steps, slices, restarts, epilogue."""

import json
import re
from functools import lru_cache

import numpy as np

from tests.support.measured import FOLDER
from vitruvian.flows.probes import library_operands
from vitruvian.golden.fp import convert, fused_dot
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import find
from vitruvian.golden.machines.spec import fma_step

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


def rule(call: dict) -> DotSpec:
    """Return the rule of one step."""
    a, b, step = call["a"], call["b"], call["plan"]["step"]
    if a == "tf32" and step == 1:
        a = "fp32"  # the library did not use TF32, though it was allowed
    if a in ("e4m3", "e5m2"):
        found = find(f"h200_wgmma_{a if a == b else f'{a}x{b}'}_fp32").rule
    elif a in ("fp32", "fp64"):
        found = fma_step(a, a)
    else:
        found = find(f"h200_mma_{a}_fp32").rule
    assert isinstance(found, DotSpec)
    return found.replace(k=step) if a in ("fp16", "bf16", "tf32") else found


def to_tf32(codes: np.ndarray) -> np.ndarray:
    """Return fp32 codes rounded to nearest even, as the libraries do before a TF32 step."""
    wide = codes.astype(np.uint64)
    return (wide + 0xFFF + (wide >> 13 & 1) & 0xFFFFE000).astype(np.uint32)


def operands(call: dict, number: int, kind: str, count: int) -> tuple[np.ndarray, ...]:
    """Return the rows and columns of some samples, and the operands' codes."""
    rows, columns = library_operands.sampled(number, call["m"], call["n"], 192)
    rows, columns = rows[:count], columns[:count]
    a = library_operands.rows(call["a"], rows, call["k"], kind, "a")
    b = library_operands.rows(call["b"], columns, call["k"], kind, "b")
    rounded = call["a"] == "tf32" and call["plan"]["step"] > 1
    return (rows, columns, *((to_tf32(a), to_tf32(b)) if rounded else (a, b)))


def _chain(a: np.ndarray, b: np.ndarray, step: DotSpec, c: np.ndarray | None = None) -> np.ndarray:
    """Return the codes of the sum of some terms, step by step; missing terms are zero."""
    fill = -a.shape[1] % step.k
    a, b = (np.pad(x, ((0, 0), (0, fill))) for x in (a, b))
    start = np.zeros(len(a), np.uint64 if step.output.name == "fp64" else np.uint32)
    return np.asarray(fused_dot(a, b, start if c is None else c, step))


def _values(codes: np.ndarray) -> np.ndarray:
    return codes.view(np.float64 if codes.itemsize == 8 else np.float32)


def slices(plan: dict, terms: int) -> list[list[np.ndarray]]:
    """Return the places of K that each slice adds, in parts that begin a new step."""
    place = np.arange(terms)
    if "cyclic" in plan:
        tile, count = plan["cyclic"]
        parts = [place[place // tile % count == s] for s in range(count)]
        return [[part] for part in parts if len(part)]
    found = []
    for first, last in zip(plan["starts"], [*plan["starts"][1:], terms], strict=True):
        part = place[first:last]
        rest = len(part) % plan.get("remainder_first", len(part) or 1)
        found.append([x for x in (part[:rest], part[rest:]) if len(x)])
    return found


def sums(call: dict, a: np.ndarray, b: np.ndarray, scale=None) -> np.ndarray:
    """Return the sum before the epilogue: slices are added in their order, in fp32 or fp64.

    Parameters
    ----------
    scale : callable, optional
        Function of a number of a restart that returns the factors of its partial sums; then they
        are added by fused multiply-adds.
    """
    plan, step = call["plan"], rule(call)
    total = None
    for parts in slices(plan, call["k"]):
        if plan["restart"] or scale is not None:
            own, length = None, plan["restart"] or 128
            (part,) = parts
            for first in range(0, len(part), length):
                some = part[first : first + length]
                x = _values(_chain(a[:, some], b[:, some], step))
                if scale is not None:
                    factor = scale(some[0] // length).astype(np.float64)
                    exact = x.astype(np.float64) * factor + (0 if own is None else own)
                    own = exact.astype(np.float32)
                else:
                    own = x if own is None else own + x
        else:
            codes = None
            for part in parts:
                codes = _chain(a[:, part], b[:, part], step, codes)
            assert codes is not None
            own = _values(codes)
        assert own is not None
        total = own if total is None else total + own
    assert total is not None
    return total


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


def results(call: dict, number: int, kind: str, count: int) -> np.ndarray:
    """Return the codes of some samples of a call by its plan."""
    rows, columns, a, b = operands(call, number, kind, count)
    n, k = call["n"], call["k"]

    def scale(block: int) -> np.ndarray:
        first = library_operands.scales(rows * (k // 128) + block, "scale_a")
        place = block * (n // 128) + columns // 128
        return first * library_operands.scales(place, "scale_b")

    with np.errstate(all="ignore"):
        x = sums(call, a, b, scale if call.get("scales") == "block" else None)
        if call.get("scales") in ("tensor", "row"):
            row, column = (rows, columns) if call["scales"] == "row" else (rows * 0, columns * 0)
            first = library_operands.scales(row, "scale_a")
            x = x * (first * library_operands.scales(column, "scale_b"))
        if call.get("bias"):
            format = _NAMES[call["result"]]
            name = "tf32" if call["a"] == "tf32" else format
            codes = library_operands.rows(name, np.array([0]), n, "narrow", "bias")[0][columns]
            x = x + np.asarray(convert(codes, format, "fp32")).view(np.float32)
    if x.dtype == np.float64:
        return x.view(np.uint64)
    return np.asarray(convert(x.view(np.uint32), "fp32", _NAMES[call["result"]]))
