"""Library calls that were recorded on an H200: results, plans, and what a kernel tells of them."""

import csv
import json
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.support.measured import FOLDER
from vitruvian.flows.probes import library_fit, library_operands
from vitruvian.golden.plans import LibraryCall, Plan

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
    return library_fit.call_of(call, call["result"])


def recorded_call(number: int) -> library_fit.RecordedCall:
    """Return a call with its kernels and its sampled results."""
    call = record()["calls"][number]
    kernels = tuple((record()["kernels"][name], grid) for name, grid in call["kernels"])
    return library_fit.RecordedCall(call_of(call), number, kernels, samples(call))


def plan_of(call: dict) -> Plan:
    """Return the plan that was fitted to the tables of a recorded call."""
    plan, a, b = call["plan"], call["a"], call["b"]
    step = plan["step"]
    if a in ("e4m3", "e5m2"):
        rule = f"h200_wgmma_{a if a == b else f'{a}x{b}'}_fp32"
        step = None if step == _FP8_STEP else step
    elif a in ("fp32", "fp64") or (a == "tf32" and step == 1):  # TF32 was allowed, and not used
        rule, step = f"fma_{'fp64' if a == 'fp64' else 'fp32'}", None
    else:
        rule = f"h200_mma_{a}_fp32"
    key = call_of(call)
    return Plan(
        rule=rule,
        step=step,
        restart=plan["restart"] or 0,
        starts=tuple(plan.get("starts") or (0,)),
        cyclic=tuple(plan["cyclic"]) if plan.get("cyclic") else None,
        remainder_first=plan.get("remainder_first") or 0,
        scales=key.scales,
        bias=key.bias,
        output=key.output,
        evidence="measured",
    )


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
        key = LibraryCall(op=call["op"], a=call["a"], b=call["a"], m=m, n=n, k=k, output=output)
        slices = library_fit.kernel_slices(kernels, key)
        kinds[kind] = None
        rows.setdefault((m, n, k), {})[kind] = slices or ""
    names = ("m", "n", "k")
    return [
        {**dict(zip(names, map(str, key), strict=True)), **{x: rows[key].get(x, "") for x in kinds}}
        for key in sorted(rows)
    ]


def write(folder: Path) -> None:
    """Write the tables of golden/plans into a folder."""
    plans = {call_of(call): plan_of(call) for call in record()["calls"] if call["plan"]}
    library_fit.write(folder / "cublas_h200.csv", plans)
    with (folder / "cublas_h200_shapes.csv").open("w", newline="") as file:
        table = shapes_table()
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
