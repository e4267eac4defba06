"""Record how PyTorch's matrix products on an NVIDIA GPU add their terms.

Run it on a machine with a GPU: ``vitruvian plans record FOLDER``. It writes ``calls.json``, with
the machine, the versions of its libraries, and a record of each call: operation, formats, shape,
kernels, and the places of its arrays in the other file, ``calls.bin.z``, which holds the arrays one
after the other, compressed by zlib. Of each call it records tables of absorption
(``library_tables``), and results of a few elements on operands that are the same on every machine
(``library_operands``), on which a supposed order of
the sum can be judged.
"""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import json
import subprocess
import sys
import time
import zlib
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from vitruvian.flows.probes.library_calls import DTYPES, as_bits, call, extras, matrix, select
from vitruvian.flows.probes.library_operands import KINDS, SEED, sampled
from vitruvian.flows.probes.library_tables import tables

_SAMPLES = 192

SQUARES = [(16, 16, 16), (64, 64, 64), (128, 128, 64), (128, 128, 512), (256, 256, 256)]
SQUARES += [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096)]
LAYERS = [
    (m, n, k)
    for n, k in ((4096, 4096), (1024, 4096), (6144, 4096), (4096, 14336), (14336, 4096))
    for m in (1, 2, 8, 16, 32, 64, 128, 256, 1024)
]
LONG = [
    (m, n, k)
    for m, n in ((16, 16), (64, 64), (128, 128), (256, 256), (64, 1024))
    for k in (2048, 8192, 32768, 65536)
]
ODD = [(100, 100, 100), (33, 65, 129), (7, 9, 511), (128, 128, 17), (128, 128, 33), (128, 128, 72)]
ODD += [(128, 128, 1000), (128, 256, 1001), (1, 1, 1000), (1, 16, 4096), (5, 4096, 4095)]
ODD += [(1000, 1000, 1000), (40, 24, 40), (128, 128, 48)]
BATCHES = [(8, 128, 128, 64), (32, 128, 128, 128), (64, 1, 128, 128), (16, 512, 512, 64)]
BATCHES += [(16, 512, 64, 512), (96, 77, 77, 64), (4, 64, 64, 8192)]
SCALED = [(16, 16, 16), (16, 16, 128), (64, 64, 512), (128, 512, 2048), (256, 256, 16384)]
SCALED += [(64, 64, 32768), (1024, 1024, 1024), (2048, 2048, 2048), (128, 128, 48), (40, 48, 144)]
SCALED += [
    (m, n, k)
    for n, k in ((4096, 4096), (1024, 4096), (4096, 14336), (6144, 4096))
    for m in (1, 16, 64, 128, 512, 2048)
]


def cases() -> list[dict]:
    """Return all calls."""
    found: list[dict] = []

    def add(op: str, a: str, shape, **more) -> None:
        m, n, k = shape
        found.append({"op": op, "a": a, "b": a, "m": m, "n": n, "k": k, "layout": "nt"} | more)

    for shape in SCALED:
        for fast in (False, True):
            add("scaled", "e4m3", shape, out="fp32", fast=fast, scales="tensor")
            add("scaled", "e4m3", shape, out="bf16", fast=fast, scales="tensor")
            add("scaled", "e4m3", shape, out="bf16", fast=fast, scales="row")
        if shape[0] >= 16 and shape[1] % 128 == 0 and shape[2] % 128 == 0:
            add("scaled", "e4m3", shape, out="fp32", fast=False, scales="block")
            add("scaled", "e4m3", shape, out="bf16", fast=False, scales="block")
    for shape in SCALED[3:8]:
        for a, b in (("e5m2", "e4m3"), ("e4m3", "e5m2")):
            for fast in (False, True):
                add("scaled", a, shape, b=b, out="fp32", fast=fast, scales="tensor")
        add("scaled", "e4m3", shape, out="fp16", fast=False, scales="tensor")
        add("scaled", "e4m3", shape, out="bf16", fast=True, scales="tensor", bias=True)
    for format in ("bf16", "fp16"):
        for shape in (*SQUARES, *LAYERS, *LONG, *ODD):
            add("mm", format, shape)
        for shape in (*SQUARES, *LONG[::2], *ODD, *LAYERS[::5]):
            add("mm", format, shape, layout="nn")
        for shape in (*SQUARES[:7], *LONG[::2], *ODD[:6], *LAYERS[::4]):
            add("mm32", format, shape)
        for shape in (*SQUARES, *LAYERS[::2], *LONG[::3], *ODD[:8]):
            add("linear", format, shape, bias=True)
        for count, *shape in BATCHES:
            for layout in ("nt", "nn"):
                add("bmm", format, shape, batch=count, layout=layout)
    for format in ("fp32", "tf32"):
        for shape in (*SQUARES[:8], *LAYERS[::2], *LONG, *ODD):
            add("mm", format, shape)
        for shape in (*SQUARES[:7], *LONG[::3], *ODD):
            add("mm", format, shape, layout="nn")
        for shape in (*SQUARES[:7], *LAYERS[::5], *ODD[:5]):
            add("linear", format, shape, bias=True)
        for count, *shape in BATCHES:
            add("bmm", format, shape, batch=count, layout="nn")
    for shape in (*SQUARES[:7], *LONG[:8:3], *ODD, *LAYERS[:9:3]):
        add("mm", "fp64", shape)
        add("mm", "fp64", shape, layout="nn")
    for shape in (*SQUARES[1:7], *LAYERS[4:9], (32, 64, 65536)):
        add("int_mm", "int8", shape)
    return found


class CallRecorder:
    """The records of all calls and their arrays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[dict] = []
        self._parts: list[bytes] = []
        self._offset = 0

    def keep(self, array: np.ndarray) -> dict:
        """Store an array and return its place."""
        array = np.ascontiguousarray(array)
        place = {"offset": self._offset, "shape": list(array.shape), "dtype": array.dtype.str}
        self._parts.append(array.tobytes())
        self._offset += array.nbytes
        return place

    def write(self, machine: dict) -> None:
        """Write both files."""
        (self.folder / "calls.bin.z").write_bytes(zlib.compress(b"".join(self._parts), 6))
        text = json.dumps({"machine": machine, "calls": self.records}, separators=(",", ":"))
        (self.folder / "calls.json").write_text(text)


def _machine() -> dict:
    """Return the GPU and the versions of everything that may change a result."""
    matmul = torch.backends.cuda.matmul
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "gpu": torch.cuda.get_device_name(0),
        "capability": list(torch.cuda.get_device_capability(0)),
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
        "driver": subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "seed": SEED,
        "reduced_precision_reduction": {
            "fp16": str(matmul.allow_fp16_reduced_precision_reduction),
            "bf16": str(matmul.allow_bf16_reduced_precision_reduction),
        },
        "packages": {
            d.metadata["Name"]: d.version
            for d in distributions()
            if str(d.metadata["Name"]).startswith(("nvidia-", "triton"))
        },
    }


def _samples(case: dict, recorder: CallRecorder, number: int) -> dict:
    """Return the record of sampled results, for each kind of operands."""
    m, n, k = case["m"], case["n"], case["k"]
    rows, columns = sampled(number, m, n, _SAMPLES)
    places = (torch.from_numpy(rows).cuda(), torch.from_numpy(columns).cuda())
    found: dict = {}
    for kind in KINDS if case["a"] != "int8" else ("narrow",):
        a, w = matrix(case["a"], m, k, kind, "a"), matrix(case["b"], n, k, kind, "b")
        d = call(case, a, w, extras(case, w, False))
        found[kind] = recorder.keep(as_bits(d[places]))
        found["out"] = str(d.dtype)
        if m * n <= 1 << 20:
            again = call(case, a, w, extras(case, w, False))
            found["repeats"] = bool((as_bits(again) == as_bits(d)).all())
    return found


def _traced(every: list[dict], records: list[dict], folder: Path) -> list[dict]:
    """Run every call once under the profiler and return the events of its trace."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for number, case in enumerate(every):
            if "error" in records[number]:
                continue
            select(case)
            a = torch.zeros(case["m"], case["k"], device="cuda", dtype=DTYPES[case["a"]])
            w = torch.zeros(case["n"], case["k"], device="cuda", dtype=DTYPES[case["b"]])
            more = extras(case, w, True)
            with record_function(f"case {number}"):
                call(case, a, w, more)
        torch.cuda.synchronize()
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    path.unlink()
    return events


def _add_kernels(events: list[dict], records: list[dict]) -> None:
    """Add the kernels of each call to its record: the launches that lie in the call's time."""
    ranges = sorted(
        (e["ts"], e["ts"] + e["dur"], int(e["name"].split()[1]))
        for e in events
        if e.get("cat") == "user_annotation" and e["name"].startswith("case ")
    )
    starts = np.array([r[0] for r in ranges])
    launches: dict[int, int] = {}
    for e in events:
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {}):
            at = int(np.searchsorted(starts, e["ts"], "right")) - 1
            if at >= 0 and e["ts"] <= ranges[at][1]:
                launches[e["args"]["correlation"]] = ranges[at][2]
    kinds = ("kernel", "gpu_memset", "gpu_memcpy")
    for e in sorted((e for e in events if e.get("cat") in kinds), key=lambda e: e["ts"]):
        number = launches.get(e["args"].get("correlation"))
        if number is not None:
            kernel = {"name": e["name"], "grid": e["args"].get("grid")}
            records[number].setdefault("kernels", []).append(kernel)


def record(folder: Path, most: int | None = None) -> str:
    """Record all calls, or about ``most`` of them, into a folder; return a line about them."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = cases()
    chosen = chosen[:: -(-len(chosen) // (most or len(chosen)))]
    recorder = CallRecorder(folder)
    started = time.monotonic()
    for number, case in enumerate(chosen):
        made = dict(case)
        recorder.records.append(made)
        select(case)
        try:
            made["samples"] = _samples(case, recorder, number)
            if case["a"] != "int8":
                rng = np.random.Generator(np.random.PCG64([SEED, number, 1]))
                made["tables"] = tables(case, recorder.keep, rng)
        except Exception as error:  # one call that a library refuses must not end the others
            made["error"] = str(error)[:300]
    _add_kernels(_traced(chosen, recorder.records, folder), recorder.records)
    recorder.write(_machine())
    failed = sum("error" in made for made in recorder.records)
    return f"{len(chosen)} calls, {failed} failed, {time.monotonic() - started:.0f} s"
