"""``_scaled_mm`` of PyTorch on an H100: our plans beside the package mmaemu, in bits and in time.

    python benchmarks/plans_mmaemu.py --calls 1000 --progress calls.json
    python benchmarks/plans_mmaemu.py --calls 1000 --small --progress small.json
    python benchmarks/plans_mmaemu.py --speed 1024

Both compute random calls: sizes, formats, slices of K, factors and magnitudes are drawn from the
number of the call, with up to 47 × 368 results of up to 2544 terms, or with ``--small`` up to
8 × 32 of up to 768, in a tenth of the time. A call that mmaemu declines is counted, and not
compared. ``--progress`` keeps the counts in a file, from which a later run goes on. Needs the
packages mmaemu and torch, which this project does not install.
"""

# pyright: basic, reportMissingImports=false

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import mmaemu
import numpy as np
import torch

from vitruvian.golden.plans import multiply, scaled_mm

_OUTPUTS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
_PAIRS = (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"))


def draw(number: int, small: bool = False) -> dict[str, Any]:
    """Return a random call: operands as bytes, and the options of both functions."""
    rng = np.random.default_rng(number)
    limits = (9, 3, 49) if small else (48, 24, 160)
    m, n, k = (int(rng.integers(1, limit)) for limit in limits)
    n, k = 16 * n, 16 * k
    pair = _PAIRS[int(rng.choice(3, p=(0.6, 0.2, 0.2)))]
    operands = []
    for name, shape in zip(pair, ((m, k), (n, k)), strict=True):
        most = 448 if name == "e4m3" else 57344
        values = rng.standard_normal(shape) * rng.choice((0.05, 1, 40))
        clamped = torch.from_numpy(values).clamp(-most, most).to(_FORMATS[name])
        operands.append(clamped)
    return {
        "operands": operands,
        "pair": pair,
        "k": k,
        "slices": int(rng.integers(1, 7)),
        "fast": bool(rng.integers(2)),
        "output": tuple(_OUTPUTS)[int(rng.integers(3))],
        "scales": rng.uniform(0.01, 4, 2).astype(np.float32),
    }


def ours(call: dict[str, Any], threads: int | None = 1) -> np.ndarray:
    """Return the codes by our plan."""
    x, w = (v.view(torch.uint8).numpy() for v in call["operands"])
    first, second = call["pair"]
    plan = scaled_mm(
        call["k"],
        input=first if first == second else f"{first}x{second}",
        fast=call["fast"],
        slices=call["slices"],
        output=call["output"],
    )
    scale_a, scale_b = call["scales"]
    return multiply(x, w.T, plan=plan, scale_a=scale_a, scale_b=scale_b, threads=threads)


def theirs(call: dict[str, Any]) -> np.ndarray:
    """Return the codes by mmaemu."""
    x, w = call["operands"]
    scale_a, scale_b = (torch.tensor(float(v)) for v in call["scales"])
    slices = call["slices"]
    result = mmaemu.scaled_mm(
        x,
        w.t(),
        scale_a,
        scale_b,
        out_dtype=_OUTPUTS[call["output"]],
        use_fast_accum=call["fast"],
        profile="hopper",
        splitk=1 if slices == 1 else (slices, "contiguous"),
    )
    wide = call["output"] == "fp32"
    return result.view(torch.int32 if wide else torch.int16).numpy().view(f"u{4 if wide else 2}")


def compare(calls: int, progress: Path | None, small: bool = False) -> None:
    """Compare calls, and print the counts."""
    counts = {"calls": 0, "declined": 0, "results": 0, "differ": 0, "theirs_s": 0.0, "ours_s": 0.0}
    if progress is not None and progress.exists():
        counts = json.loads(progress.read_text())
    for number in range(counts["calls"], calls):
        call = draw(number, small)
        start = time.process_time()
        try:
            expected = theirs(call)
        except (mmaemu.errors.MmaemuError, RuntimeError, ValueError):
            counts["declined"] += 1
            expected = None
        middle = time.process_time()
        if expected is not None:
            found = ours(call)
            counts["ours_s"] += time.process_time() - middle
            counts["theirs_s"] += middle - start
            counts["results"] += expected.size
            counts["differ"] += int(np.count_nonzero(found != expected))
        counts["calls"] = number + 1
        if progress is not None and (number % 100 == 99 or number + 1 == calls):
            progress.write_text(json.dumps(counts))
    print(
        f"{counts['calls']:,} calls, {counts['declined']:,} declined, {counts['results']:,} "
        f"results, {counts['differ']:,} differ; s of a core: mmaemu {counts['theirs_s']:.1f}, "
        f"ours {counts['ours_s']:.1f}"
    )


def speed(size: int) -> None:
    """Print the time of one product of size × size × size on one core, by both."""
    rng = np.random.default_rng(0)
    operands = [
        torch.from_numpy(rng.standard_normal((size, size))).to(torch.float8_e4m3fn) for _ in "ab"
    ]
    call = {
        "operands": operands,
        "pair": _PAIRS[0],
        "k": size,
        "slices": 1,
        "output": "bf16",
        "scales": np.ones(2, np.float32),
    }
    for fast in (False, True):
        call["fast"] = fast
        ours(call)  # what is compiled at its first use
        times = []
        for compute in (ours, theirs):
            start = time.perf_counter()
            compute(call)
            times.append(time.perf_counter() - start)
        rate = size**3 / 8 / times[0] / 1e6
        print(
            f"{size}³, fast={fast}: ours {times[0]:.2f} s ({rate:.0f} M dots of eight a second), "
            f"mmaemu {times[1]:.2f} s, {times[1] / times[0]:.1f} times as long"
        )


def main() -> None:
    """Parse the command line, compare, and time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100, help="Calls to compare.")
    parser.add_argument("--progress", type=Path, help="File of the counts.")
    parser.add_argument("--small", action="store_true", help="Draw small calls.")
    parser.add_argument("--speed", type=int, help="Time one product of this size instead.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.speed:
        speed(options.speed)
    else:
        compare(options.calls, options.progress, options.small)


if __name__ == "__main__":
    main()
